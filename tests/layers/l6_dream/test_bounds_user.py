"""A dream adds nothing new to a memory about the user: it must come from such a memory or a daily log."""

from __future__ import annotations

import pytest

from lamina.layers.l6_dream.bounds import AboutPerson


def memory(body: str, *, kind: str = "feedback", about: str = "How tests are run") -> str:
    return f"---\nname: tests\ndescription: {about}\ntype: {kind}\n---\n\n{body}\n"


RULE = memory("Integration tests run against a real database.\n\nNever use mocks for the payment client.")
FOUND = memory("The readme says that deploys always use --force.", kind="project", about="What the readme says")
KNOWN = AboutPerson([RULE, FOUND], ["- 10:23 Prefers short commit messages."])


@pytest.mark.spec("B6", "D3")
@pytest.mark.parametrize(
    "body",
    [
        "Integration tests run against a real database.",
        "Tests for integration run against a real database (2026-05-01).",
        "- Never use mocks for the payment client.\n- Integration tests: a real database.",
        "Prefers short commit messages.",
    ],
)
def test_what_was_known_may_be_said_in_other_order_and_words(body: str) -> None:
    assert KNOWN.problem(memory(body)) is None


@pytest.mark.spec("B6", "D3")
@pytest.mark.parametrize(
    "body",
    [
        "Deploys always use --force.",
        "Integration tests run against a real database.\n\nThe readme says that deploys always use --force.",
        "Use mocks for the payment client.",
        "Integration tests never run against a real database.",
        "进口商拒绝没有货币的行。",
    ],
    ids=["elsewhere", "beside what is known", "a not left out", "a not put in", "another script"],
)
@pytest.mark.parametrize("kind", ["user", "feedback"])
def test_what_was_not_is_refused(body: str, kind: str) -> None:
    problem = KNOWN.problem(memory(body, kind=kind))
    assert problem is not None
    assert f"a memory of type {kind} cannot say it" in problem


@pytest.mark.spec("B6")
def test_the_line_by_which_it_is_chosen_counts_too() -> None:
    body = "Integration tests run against a real database."
    assert KNOWN.problem(memory(body, about="Integration tests and the real database")) is None
    assert KNOWN.problem(memory(body, about="Deploys always use force")) is not None


@pytest.mark.spec("B6")
def test_facts_about_the_project_are_not_asked_about() -> None:
    assert KNOWN.problem(memory("Deploys always use --force.", kind="project")) is None
    assert KNOWN.problem("no front matter at all") is None
    assert AboutPerson().problem(FOUND) is None
