"""TodoWrite: a list that makes sense, or the old one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lamina.tools.tool import Context, Todo

from .doing import call, context, done, refused


@pytest.fixture
def here(tmp_path: Path) -> Context:
    return context(tmp_path, todos=[Todo("old")])


def row(content: str, status: str, **more: str) -> dict[str, Any]:
    return {"content": content, "status": status, **more}


def test_the_list_is_replaced_and_shown(here: Context) -> None:
    todos = [row("Read", "completed"), row("Fix", "in_progress", activeForm="Fixing"), row("Test", "pending")]
    output = call("TodoWrite", here, todos=todos)
    assert output.content == "1. [x] Read\n2. [>] Fix\n3. [ ] Test"
    assert output.facts == {"pending": 1, "in_progress": 1, "completed": 1}
    assert here.todos == [Todo("Read", "completed"), Todo("Fix", "in_progress"), Todo("Test", "pending")]


def test_only_one_may_be_in_progress(here: Context) -> None:
    todos = [row("A", "in_progress"), row("B", "in_progress")]
    assert "only one entry may be in_progress, but 2 are: A; B." in refused("TodoWrite", here, todos=todos)
    assert here.todos == [Todo("old")]


@pytest.mark.parametrize(
    ("todos", "sentence"),
    [
        ([row("A", "done")], "todos[0].status must be one of pending, in_progress, completed, not 'done'"),
        ([{"status": "pending"}], "todos[0].content is missing"),
        ([row("A", "pending")] * 101, "todos has 101 entries"),
        ([row("A" * 301, "pending")], "todos[0].content is too long"),
        ("A, B", "todos must be a list"),
    ],
)
def test_a_list_that_makes_no_sense_is_refused_and_the_old_one_stays(here: Context, todos: Any, sentence: str) -> None:
    assert sentence in refused("TodoWrite", here, todos=todos)
    assert here.todos == [Todo("old")]


def test_the_list_can_be_emptied(here: Context) -> None:
    assert done("TodoWrite", here, todos=[]) == "The list is now empty."
    assert here.todos == []
