"""What a user reads after a slip: the thing by its name, a near name, and what to do. Nothing to show is said too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lamina import Memory

from .running import failed, here, misused


@pytest.fixture
def project(tmp_path: Path) -> Path:
    with Memory.open(tmp_path) as memory:
        memory.save("testing-db", type="feedback", description="Tests use a real database", body="Mocks hid a migration.")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("memory", "show", "testing-bd"), "Memory 'testing-bd' not found. Did you mean 'testing-db'?"),
        (("memory", "show", "nothing"), "Memory 'nothing' not found. Run `lamina memory list` to see the names."),
        (
            ("memory", "log", "nothing"),
            "No changes of a memory 'nothing' are recorded. Run `lamina memory log` to list all changes.",
        ),
        (
            ("memory", "diff", "nothing"),
            "No changes of a memory 'nothing' are recorded. Run `lamina memory log` to list all changes.",
        ),
        (("memory", "diff", "--version", "12ab"), "Change '12ab' not found. Run `lamina memory log` to see the ids."),
        (("memory", "save", "new"), "A new memory needs a text: pass BODY or --description."),
        (("config", "lamina.polcy"), "Unknown setting 'lamina.polcy'. Did you mean 'lamina.policy'?"),
        (("config", "nothing"), "Unknown setting 'nothing'. Run `lamina config --all` to list them."),
        (("--verison",), "No such option '--verison'. Did you mean '--version'?"),
        (("memory", "list", "--jsno"), "No such option '--jsno'. Did you mean '--json'?"),
        (("-p", "x", "--zzz"), "No such option '--zzz'. Run `lamina chat --help` to list the options."),
        (("list",), "No such command 'list'. Did you mean 'lamina memory list' or 'lamina sessions list' or 'lamina team list'?"),
        (("restore",), "No such command 'restore'. Did you mean 'lamina memory restore'?"),
        (("memry",), "No such command 'memry'. Did you mean 'memory'?"),
        (("remember", "it"), "No such command 'remember'. Did you mean `lamina -p \"Remember: …\"`?"),
        (("help",), "No such command 'help'. Did you mean `lamina --help`?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_slip_is_named_with_a_way_on(project: Path, words: tuple[str, ...], said: str) -> None:
    done = here(*words, cwd=project)
    assert misused(done), done
    assert done.stderr.startswith(f"lamina: {said}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("memory", "log"), "No changes are recorded yet."),
        (("memory", "log", "--removed"), "The trash is empty."),
        (("memory", "index"), "The index is empty: there are no memories yet."),
    ],
)
def test_nothing_to_show_is_said(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = here(*words, "--cwd", str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"{said}\n")


def test_with_no_session_to_continue_that_is_said_of_the_directory(tmp_path: Path) -> None:
    done = here("--continue", "-p", "x", cwd=tmp_path)
    assert failed(done)
    assert done.stderr.startswith(f"lamina: No session was recorded in {tmp_path}. Run `lamina sessions list --all`")


def test_saving_one_part_of_a_memory_keeps_the_others(project: Path) -> None:
    for more in (("--type", "project"), ("--description", "Tests need PostgreSQL"), ("A mock hid a migration.",)):
        here("memory", "save", "testing-db", *more, "--cwd", str(project))
    shown = json.loads(here("memory", "show", "testing-db", "--json", "--cwd", str(project)).stdout)
    assert (shown["type"], shown["description"], shown["body"]) == (
        "project",
        "Tests need PostgreSQL",
        "A mock hid a migration.\n",
    )


def test_every_json_document_is_one_line(project: Path) -> None:
    assert here("config", "--json", "--cwd", str(project)).stdout.count("\n") == 1
