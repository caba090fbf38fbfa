"""Reading, checking, measuring and cutting notes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.layers.l3_notes.sections import (
    Misfit,
    Notes,
    Template,
    cut,
    is_fresh,
    own_template,
    read_notes,
    read_template,
    render,
    sizes,
)

SMALL = "# One\n_what one is_\n\n# Two\n_what two is_\n"
NAMES = [
    "Session Title",
    "Current State",
    "Task specification",
    "Files and Functions",
    "Workflow",
    "Errors & Corrections",
    "Codebase and System Documentation",
    "Learnings",
    "Key results",
    "Worklog",
]


def template(text: str = SMALL) -> Template:
    read = read_template(text)
    assert isinstance(read, Template)
    return read


def notes(text: str, of: Template | None = None) -> Notes:
    read = read_notes(text, of or template())
    assert isinstance(read, Notes), read
    return read


def letters(text: str) -> int:
    return len(text)


@pytest.mark.spec("N1")
def test_our_template_has_the_ten_sections_each_with_an_italic_line_and_nothing_below() -> None:
    ours = own_template()
    assert [head.name for head in ours.heads] == NAMES
    assert all(head.description.startswith("_") and head.description.endswith("_") for head in ours.heads)
    assert set(ours.notes.bodies) == {""}


def test_what_stands_below_the_description_is_the_body() -> None:
    read = notes("# One\n_what one is_\nfirst\n\nsecond\n\n\n# Two\n_what two is_\n")
    assert read.bodies == ("first\n\nsecond", "")
    assert not is_fresh(read, template())
    assert is_fresh(notes(SMALL), template())


ALTERED = {
    "a heading in other words": SMALL.replace("# One", "# Uno"),
    "a heading in another case": SMALL.replace("# One", "# one"),
    "a heading of another level": SMALL.replace("# Two", "## Two"),
    "a heading left out": "# One\n_what one is_\nall of it\n",
    "a heading added at the end": SMALL + "# Three\n_what three is_\n",
    "a heading added between": SMALL.replace("# Two", "# Other\n\n# Two"),
    "another order": "# Two\n_what two is_\n\n# One\n_what one is_\n",
    "a heading twice": SMALL + SMALL,
    "a description in other words": SMALL.replace("what one is", "what one was"),
    "a description left out": SMALL.replace("_what one is_\n", ""),
    "a description moved down": SMALL.replace("# One\n", "# One\n\n"),
    "a code block that swallows a heading": SMALL.replace("\n# Two", "```\n# Two"),
    "nothing": "",
    "something else": "All is well.",
}


@pytest.mark.spec("N1")
@pytest.mark.parametrize("text", ALTERED.values(), ids=ALTERED)
def test_a_text_with_altered_headings_or_descriptions_is_refused_with_a_reason(text: str) -> None:
    read = read_notes(text, template())
    assert isinstance(read, Misfit)
    assert read.why


KEPT = {
    "deeper headings": "## part\ntext",
    "comments in code": "```sh\n# not a heading\nmake\n```",
    "code in tildes": "~~~\n# no\n```\n# no\n~~~",
    "inline code of three": "```x``` and\nmore",
    "no heading without a blank": "#hashtag",
    "italic lines": "_said so_",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_what_only_looks_like_a_heading_belongs_to_the_body(body: str) -> None:
    assert notes(f"# One\n_what one is_\n{body}\n\n# Two\n_what two is_\n").bodies == (body, "")


def test_line_ends_and_blanks_behind_a_heading_alter_nothing() -> None:
    assert notes("# One  \r\n _what one is_ \r\nbody\r\n\r\n# Two\r\n_what two is_\r\n").bodies == ("body", "")


@pytest.mark.spec("N5")
def test_a_template_of_the_user_says_which_headings_are_fixed() -> None:
    own = template("Read me first.\n\n# Goal\n*why*\n\n## Steps\n- first\n")
    assert [head.name for head in own.heads] == ["Goal", "Steps"]
    assert [head.description for head in own.heads] == ["*why*", ""]
    assert own.notes.bodies == ("", "- first")
    assert isinstance(read_notes("# Goal\n*why*\n\n## Stages\n", own), Misfit)
    assert notes("# Goal\n*why*\nship\n\n## Steps\n### one\n", own).bodies == ("ship", "### one")


def test_a_template_without_a_heading_is_none() -> None:
    assert isinstance(read_template("just words\n"), Misfit)


BODIES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="#`~\r"), max_size=60).map(lambda text: text.strip("\n").rstrip()),
    min_size=10,
    max_size=10,
)


@given(bodies=BODIES)
def test_rendered_notes_read_as_the_same_notes(bodies: list[str]) -> None:
    ours = own_template()
    sections = tuple(section._replace(body=body) for section, body in zip(ours.notes.sections, bodies, strict=True))
    assert notes(render(Notes(sections)), ours) == Notes(sections)


@pytest.mark.spec("N2")
def test_sections_over_their_limit_are_named_with_their_size() -> None:
    read = notes(f"# One\n_what one is_\n{'x' * 30}\n\n# Two\n_what two is_\nshort\n")
    found = sizes(read, letters, section=20, total=1_000)
    assert [(one.name, one.tokens) for one in found.long] == [("One", 30)]
    assert found.total == letters(render(read))


@pytest.mark.spec("N2")
def test_notes_too_large_in_all_name_their_largest_sections() -> None:
    parts = [section._replace(body="x" * number) for number, section in enumerate(own_template().notes.sections)]
    found = sizes(Notes(tuple(parts)), letters, section=100, total=200)
    assert [one.name for one in found.long] == NAMES[-3:]
    assert sizes(Notes(tuple(parts)), letters, section=100, total=100_000).long == ()


@pytest.mark.spec("N6")
def test_a_section_is_cut_to_its_limit_at_a_lines_end() -> None:
    read = notes("# One\n_what one is_\nfirst line\nsecond line\nthird line\n\n# Two\n_what two is_\nshort\n")
    assert cut(read, letters, 25, "[cut]").bodies == ("first line\n[cut]", "short")
    assert cut(read, letters, 100, "[cut]") == read


@given(body=st.text(st.characters(codec="utf-8"), max_size=300), limit=st.integers(10, 200))
def test_a_cut_section_is_never_over_its_limit(body: str, limit: int) -> None:
    (section, *_) = template().notes.sections
    (after,) = cut(Notes((section._replace(body=body),)), letters, limit, "[cut]").bodies
    assert len(after) <= limit
    assert after == body or after.endswith("[cut]")
