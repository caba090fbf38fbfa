"""Updates see a part of the notes, and answers contain only the sections that change."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.layers.l3_notes.sections import (
    ADD,
    END_TOKENS,
    WHOLE_TOKENS,
    Misfit,
    Notes,
    NotesLimits,
    Section,
    Shown,
    directive,
    left_out,
    merged,
    own_template,
    read_notes,
    render,
    shown,
    texts_in_force,
)
from lamina.layers.l3_notes.update import Updated

from .working import answer, letters, order, updated

TEMPLATE = own_template()
NAMES = [head.name for head in TEMPLATE.heads]


def notes_with(**bodies: str) -> Notes:
    """By the first word of a section's name."""
    return Notes(tuple(Section(head, bodies.get(head.name.split()[0].lower(), "")) for head in TEMPLATE.heads))


def body(notes: Notes | Misfit, name: str) -> str:
    assert isinstance(notes, Notes), notes
    return notes.bodies[NAMES.index(name)]


def rows(count: int, first: int = 1) -> str:
    return "\n".join(f"- step {number} was taken" for number in range(first, first + count))


LONG = rows(40)


@pytest.mark.spec("N4")
def test_a_long_section_that_collects_is_shown_by_its_end() -> None:
    seen = shown(notes_with(worklog=LONG), letters)
    lines = body(seen.notes, "Worklog").split("\n")
    assert lines[0] == left_out(40 - len(lines[1:]))
    assert lines[1:] == LONG.split("\n")[-len(lines[1:]) :]
    assert letters("\n".join(lines[1:])) <= END_TOKENS
    assert seen.hidden == {"# Worklog": 40 - len(lines[1:])}


@pytest.mark.parametrize(
    "bodies",
    [
        {"current": LONG},  # says how things stand
        {"task": LONG},
        {"key": LONG},
        {"worklog": "x" * WHOLE_TOKENS},
        {"worklog": f"```\n{LONG}\n```"},  # a code block is not cut in two
        {},
    ],
)
def test_what_says_how_things_stand_what_is_short_and_what_holds_code_is_shown_whole(bodies: dict[str, str]) -> None:
    notes = notes_with(**bodies)
    assert shown(notes, letters) == Shown(notes, {})


@pytest.mark.spec("N2")
def test_a_section_that_is_to_be_shortened_is_shown_whole() -> None:
    said = directive(
        texts_in_force(None, None), notes_with(worklog=LONG), "/n.md", "sections", size=letters, limits=NotesLimits(100, 12_000)
    )
    assert "- step 1 was taken" in said
    assert "- Worklog: about" in said


@pytest.mark.spec("N5")
def test_a_prompt_of_the_users_own_is_given_the_notes_whole() -> None:
    texts = texts_in_force(None, "Mine: {{currentNotes}}")
    said = directive(texts, notes_with(worklog=LONG), "/n.md", "sections", size=letters, limits=NotesLimits(2_000, 12_000))
    assert "- step 1 was taken" in said


def test_an_answer_changes_the_sections_it_names_and_no_other() -> None:
    notes = notes_with(session="old title", worklog="- a", learnings="- tabs")
    new = merged("# Session Title\nnew title\n\n# Worklog\n…\n- b", notes, TEMPLATE, {})
    assert (body(new, "Session Title"), body(new, "Worklog"), body(new, "Learnings")) == ("new title", "- a\n- b", "- tabs")


@pytest.mark.parametrize("mark", [ADD, "..."])
def test_what_is_added_stands_below_and_not_twice(mark: str) -> None:
    new = merged(f"# Worklog\n{mark}\n- b\n- c\n", notes_with(worklog="- a\n- b"), TEMPLATE, {})
    assert body(new, "Worklog") == "- a\n- b\n- c"


def test_a_section_whose_beginning_was_not_shown_keeps_it_whatever_the_answer_says() -> None:
    notes = notes_with(worklog=LONG)
    seen = shown(notes, letters)
    (left,) = seen.hidden.values()
    new = merged(f"# Worklog\n{left_out(left)}\n- all new", notes, TEMPLATE, seen.hidden)
    assert body(new, "Worklog") == f"{rows(left)}\n- all new"
    emptied = merged("# Worklog\n", notes, TEMPLATE, seen.hidden)
    assert body(emptied, "Worklog") == rows(left)


@pytest.mark.spec("N1")
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("# Log\n- a", "was added"),
        ("# Worklog\n_One short line._\n- a", "was changed"),
        ("# Worklog\n- a\n\n# Worklog\n- b", "twice"),
        ("- a", "no heading"),
        ("", "no heading"),
    ],
)
def test_headings_and_descriptions_are_the_templates(said: str, why: str) -> None:
    found = merged(said, notes_with(), TEMPLATE, {})
    assert isinstance(found, Misfit)
    assert why in found.why


def test_the_italic_line_may_be_there_and_may_be_left_out() -> None:
    head = TEMPLATE.heads[-1]
    for said in (f"{head.line}\n{head.description}\n- a", f"{head.line}\n\n{head.description}\n\n- a", f"{head.line}\n- a"):
        assert body(merged(said, notes_with(), TEMPLATE, {}), "Worklog") == "- a"


def test_an_update_that_names_one_section_leaves_the_others_in_the_file(tmp_path: Path) -> None:
    job = order(tmp_path)
    job.path.parent.mkdir(parents=True)
    job.path.write_text(render(notes_with(session="a title", worklog=LONG)))
    ended, model = updated(job, answer(f"<notes>\n# Worklog\n{ADD}\n{rows(1, 41)}\n</notes>"))
    assert isinstance(ended, Updated)
    assert job.path.read_text() == render(notes_with(session="a title", worklog=rows(41)))
    assert "- step 1 was taken" not in model.asked[0]
    assert "- step 40 was taken" in model.asked[0]


LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r#`~"), min_size=1, max_size=60), max_size=30)


@given(old=LINES, new=LINES, adds=st.booleans())
def test_no_hidden_line_is_ever_lost_and_the_result_fits_the_template(old: list[str], new: list[str], adds: bool) -> None:
    notes = read_notes(render(notes_with(worklog="\n".join(f"- {line}" for line in old))), TEMPLATE)
    assert isinstance(notes, Notes)
    seen = shown(notes, letters)
    said = "\n".join(["# Worklog", *([ADD] if adds else []), *(f"- {line}" for line in new)])
    done = merged(said, notes, TEMPLATE, seen.hidden)
    assert isinstance(done, Notes)
    kept = body(notes, "Worklog").split("\n")[: seen.hidden.get("# Worklog", 0)]
    assert body(done, "Worklog").split("\n")[: len(kept)] == kept or not kept
    assert read_notes(render(done), TEMPLATE) == done


@pytest.mark.spec("N3")
def test_an_answer_that_names_no_section_says_that_the_notes_are_up_to_date(tmp_path: Path) -> None:
    job = order(tmp_path)
    job.path.parent.mkdir(parents=True)
    job.path.write_text(render(notes_with(session="a title")))
    ended, _ = updated(job, answer("<notes>\n\n</notes>"))
    assert isinstance(ended, Updated)
    assert job.path.read_text() == render(notes_with(session="a title"))
