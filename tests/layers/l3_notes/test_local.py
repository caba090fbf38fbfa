"""Notes without a model: from the request alone, the same every time, and always notes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.blocks import Wire
from lamina.fork.fork import tagged
from lamina.layers.l3_notes.offline import answer
from lamina.layers.l3_notes.sections import Notes, merged, read_notes, render, sizes
from lamina.layers.l3_notes.template import How, Limits, between_tags, directive, own_template, seen, texts_in_force

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


def request(messages: list[Wire], notes: Notes | None = None, how: How = "sections", limits: Limits | None = None) -> Wire:
    asked = directive(
        texts_in_force(None, None),
        notes or own_template().notes,
        PATH,
        how,
        size=letters,
        limits=limits or Limits(2_000, 12_000),
    )
    return {"model": "m", "tools": [EDIT], "messages": [*messages, user(tagged(asked, "notes"))]}


def written(messages: list[Wire], notes: Notes | None = None, limits: Limits | None = None) -> Notes:
    """The notes behind an answer that names the sections that change."""
    limits, notes, texts = limits or Limits(2_000, 12_000), notes or own_template().notes, texts_in_force(None, None)
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
    notes = written([user("The task."), assistant("Yes."), *many], limits=Limits(200, 1_200))
    task = section(notes, "Task specification").split("\n")
    assert task[0] == "- The task."
    assert task[-1].startswith("- Step 59:")
    assert all(len(body) <= 3 * 120 for body in notes.bodies)


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
