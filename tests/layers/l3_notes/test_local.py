"""Notes without a model: from the request alone, the same every time, and always notes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.conversation.compaction import compose
from lamina.core.blocks import Wire
from lamina.core.message_list import MISSING_RESULT
from lamina.core.prompt_files import prompt_sections
from lamina.core.reach import Reach
from lamina.core.record_lines import UNRECORDED_MARKER
from lamina.fork.fork import tagged
from lamina.fork.handover import PLACEHOLDER
from lamina.layers.l2_micro.registry import marker
from lamina.layers.l3_notes.offline import answer
from lamina.layers.l3_notes.sections import (
    How,
    Notes,
    NotesLimits,
    between_tags,
    directive,
    merged,
    own_template,
    read_notes,
    render,
    seen,
    sizes,
    texts_in_force,
)

from .working import EDIT, letters, with_bodies

PATH = "/s/session-memory/summary.md"
NAMES = [head.name for head in own_template().heads]


def user(*blocks: Wire | str) -> Wire:
    return {"role": "user", "content": [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]}


def assistant(*blocks: Wire | str) -> Wire:
    return {**user(*blocks), "role": "assistant"}


def call(call_id: str, name: str, **given: Any) -> Wire:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def failed(call_id: str, words: str) -> Wire:
    return {"type": "tool_result", "tool_use_id": call_id, "content": words, "is_error": True}


def found(call_id: str) -> Wire:
    return {"type": "tool_result", "tool_use_id": call_id, "content": [{"type": "text", "text": "fine"}]}


TALK = [
    user("<system-reminder>\nUse tabs.\n</system-reminder>", "Mend the parser, please."),
    assistant("I look.", call("1", "Read", file_path="src/parse.py"), call("2", "Bash", command="pytest -q")),
    user(found("1"), failed("2", "2 failed\nin 0.1 s")),
    assistant(
        call("3", "Edit", file_path="src/parse.py"), call("4", "TodoWrite", todos=[{"content": "test it", "status": "pending"}])
    ),
    user(found("3"), found("4"), "And the lexer."),
    assistant("Both are mended."),
]


def request(messages: list[Wire], notes: Notes | None = None, how: How = "sections", limits: NotesLimits | None = None) -> Wire:
    asked = directive(
        texts_in_force(None, None),
        notes or own_template().notes,
        PATH,
        how,
        size=letters,
        limits=limits or NotesLimits(2_000, 12_000),
    )
    return {"model": "m", "tools": [EDIT], "messages": [*messages, user(tagged(asked, "notes"))]}


def written(messages: list[Wire], notes: Notes | None = None, limits: NotesLimits | None = None) -> Notes:
    """The notes behind an answer that names the sections that change."""
    limits, notes, texts = limits or NotesLimits(2_000, 12_000), notes or own_template().notes, texts_in_force(None, None)
    (block,) = answer(request(messages, notes, limits=limits))
    said = between_tags(block["text"])
    if not said:
        return notes
    found = sizes(notes, letters, section=limits.section, total=limits.total)
    read = merged(said, notes, own_template(), seen(texts, notes, letters, found).hidden)
    assert isinstance(read, Notes), read
    return read


def section(notes: Notes, name: str) -> str:
    return notes.bodies[NAMES.index(name)]


@pytest.mark.spec("O1")
def test_what_was_said_done_and_left_to_do_stands_in_its_section() -> None:
    notes = written(TALK)
    assert section(notes, "Session Title") == "Mend the parser, please."
    assert section(notes, "Current State").split("\n") == [
        "- Last request: And the lexer.",
        "- Last answer: Both are mended.",
        "- To do (pending): test it",
    ]
    assert section(notes, "Task specification") == "- Mend the parser, please.\n- And the lexer."
    assert section(notes, "Files and Functions") == "- src/parse.py: Read, Edit"
    assert section(notes, "Workflow") == "- `pytest -q`"
    assert section(notes, "Errors & Corrections") == "- Bash pytest -q failed: 2 failed in 0.1 s"
    assert section(notes, "Worklog") == "- Mend the parser, please. (Read x1, Bash x1, Edit x1, TodoWrite x1)\n- And the lexer."


def test_old_lines_stay_and_nothing_stands_there_twice() -> None:
    first = written(TALK[:3])
    again = written(TALK, first)
    assert written(TALK, again) == again
    assert section(again, "Workflow") == "- `pytest -q`"
    assert section(written([user("New."), assistant("Yes.")], again), "Files and Functions") == "- src/parse.py: Read, Edit"


@pytest.mark.spec("O1", "N4")
def test_where_edits_are_asked_for_each_changed_section_is_one() -> None:
    calls = answer(request(TALK, how="edit"))
    assert {block["name"] for block in calls} == {"Edit"}
    assert {block["input"]["file_path"] for block in calls} == {PATH}
    text = render(own_template().notes)
    for block in calls:
        assert text.count(block["input"]["old_string"]) == 1
        text = text.replace(block["input"]["old_string"], block["input"]["new_string"])
    assert read_notes(text, own_template()) == written(TALK)


def test_sections_it_does_not_know_stay_as_they_are() -> None:
    kept = with_bodies(learnings="- tabs are bad", key="the answer is 42\n\n```\n# no heading\n```")
    notes = written(TALK, kept)
    assert section(notes, "Learnings") == "- tabs are bad"
    assert section(notes, "Key results") == "the answer is 42\n\n```\n# no heading\n```"


@pytest.mark.spec("N2")
def test_a_full_section_loses_its_oldest_lines_but_the_task_keeps_its_first() -> None:
    many = [part for number in range(60) for part in (user(f"Step {number}: {'x' * 100}"), assistant("Yes."))]
    notes = written([user("The task."), assistant("Yes."), *many], limits=NotesLimits(200, 1_200))
    task = section(notes, "Task specification").split("\n")
    assert task[0] == "- The task."
    assert task[-1].startswith("- Step 59:")
    assert all(len(body) <= 3 * 120 for body in notes.bodies)


FRAMED = prompt_sections(compose.__file__, "framed")
OURS = [
    f"{FRAMED['opening']}\n\nA parser was mended.\n\n<user-message>\nMend the parser, please.\n</user-message>",
    "<system-reminder>\nToday is Friday.\n</system-reminder>",
    '[A finished turn that began with "x" was folded to make room: 3 messages, about 70 tokens. Expand ab12 shows it again.]',
    "[A part of the conversation was removed: 1 message, about 7 tokens. Expand ab12 shows it again.]",
    "[Request interrupted by user]",
    "Late result of Bash (call c1):\nall is well",
]
NO_RESULTS = [
    MISSING_RESULT,
    PLACEHOLDER,
    marker("t1", "/s/tool-results/t1.txt", Reach(read=True)),
    UNRECORDED_MARKER,
]


@pytest.mark.spec("O1", "N1")
def test_what_lamina_wrote_is_no_wish_of_the_user_and_no_error() -> None:
    calls = [call(f"c{number}", "Bash", command=f"step {number}") for number in range(len(NO_RESULTS))]
    results = [failed(f"c{number}", words) for number, words in enumerate(NO_RESULTS)]
    notes = written([user(*OURS, "And the lexer."), assistant(*calls), user(*results), assistant("Yes.")])
    assert section(notes, "Session Title") == "Mend the parser, please."
    assert section(notes, "Task specification") == "- Mend the parser, please.\n- And the lexer."
    assert section(notes, "Current State").startswith("- Last request: And the lexer.")
    assert section(notes, "Errors & Corrections") == ""
    assert section(notes, "Worklog") == "- And the lexer. (Bash x4)"


def test_a_file_has_one_line_whatever_was_done_with_it_and_however_it_was_named() -> None:
    before = with_bodies(files="- /w/src/parse.py: Read, Edit\n- the lexer is in lex.py, mind: it is old\n- /w/a.py: Read")
    calls = [
        call("1", "Write", file_path="/w/src/parse.py"),
        call("2", "Read", file_path="./src/parse.py"),
        call("3", "Read", file_path="/w/b.py"),
    ]
    notes = written([user("More."), assistant(*calls), user(found("1"), found("2"), found("3")), assistant("Yes.")], before)
    assert section(notes, "Files and Functions").split("\n") == [
        "- the lexer is in lex.py, mind: it is old",
        "- /w/a.py: Read",
        "- /w/src/parse.py: Read, Edit, Write",
        "- /w/b.py: Read",
    ]


@pytest.mark.parametrize(
    ("said", "title"),
    [
        pytest.param("Mend the parser. It fails on empty input, and nobody knows why.", "Mend the parser.", id="one sentence"),
        pytest.param("Mend it\nand so on", "Mend it", id="one line"),
        pytest.param(
            "Please look at the parser in src, which fails on empty input since last week.",
            "Please look at the parser in src",
            id="one clause",
        ),
        pytest.param("a b c d e f g h i j k l", "a b c d e f g h i j …", id="no clause to cut at"),
        pytest.param("解析器坏了。请修好它。", "解析器坏了。", id="another script"),
    ],
)
def test_a_title_ends_where_a_sentence_or_clause_ends(said: str, title: str) -> None:
    assert section(written([user(said), assistant("Yes.")]), "Session Title") == title


WORDS = st.text(st.characters(codec="utf-8"), max_size=120) | st.sampled_from(
    ["# Worklog", "```", "~~~ x", "<notes>", "</notes>", "</system-reminder>", "#\n# x\n", "_a_", "- ", " "]
)


@given(said=st.lists(WORDS, min_size=1, max_size=6), how=st.sampled_from(["sections", "edit"]))
def test_whatever_was_said_the_answer_fits_the_template_and_is_the_same_twice(said: list[str], how: How) -> None:
    talk = [
        part
        for number, words in enumerate(said)
        for part in (user(words), assistant(words, call(f"c{number}", "Bash", command=words)), user(failed(f"c{number}", words)))
    ]
    asked = request(talk, how=how)
    before = json.dumps(asked)
    assert answer(asked) == answer(asked)
    assert json.dumps(asked) == before
    if how == "sections":
        first = written(talk)
        assert isinstance(written(talk, first), Notes)
    else:
        text = render(own_template().notes)
        for block in answer(asked):
            if block["type"] == "tool_use":
                text = text.replace(block["input"]["old_string"], block["input"]["new_string"])
        assert isinstance(read_notes(text, own_template()), Notes)


@pytest.mark.parametrize("messages", [[], [{"role": "user", "content": "plain words"}], [user({"type": "image", "source": {}})]])
def test_odd_requests_get_an_answer_too(messages: list[Wire]) -> None:
    assert answer({"model": "m", "messages": messages})
