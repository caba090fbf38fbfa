"""No path a model supplies writes outside its root, even while another program swaps directories for links (Z8).

Its root: for the main conversation what was judged when the call was allowed; for a fork and for memories the memory directory.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lamina.core.blocks import ToolUse
from lamina.core.errors import LaminaError
from lamina.core.settings import Permissions
from lamina.disk.user_files import replace
from lamina.fork.tool_runner import CompletedCall, PermissionAnswer, ToolRunner
from lamina.memory.memory import Memory
from lamina.tools.permissions.request import AskUser, Mode, PermissionContext
from lamina.tools.permissions.rules import read_rules
from lamina.tools.registry import builtin_tools
from lamina.tools.tool import Context

from .house import call

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no directory-relative calls")

PATIENCE = 120.0
TIMES = 200


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "project" / "sub").mkdir(parents=True)
    return tmp_path / "project"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return tmp_path / "outside"


def tool_runner_for(project: Path, mode: Mode = "accept-edits", **given: Any) -> ToolRunner:
    return ToolRunner(
        tools=builtin_tools(),
        context=Context(cwd=project, roots=(project,)),
        permission=PermissionContext(cwd=project),
        mode=lambda: mode,
        rules=lambda: read_rules(Permissions()),
        **given,
    )


def swap(directory: Path, outside: Path) -> Callable[[], None]:
    """A link that leads outside takes the directory's place; what is returned puts it back."""
    aside = directory.with_name(f"{directory.name}-aside")
    os.rename(directory, aside)
    directory.symlink_to(outside)

    def back() -> None:
        directory.unlink()
        os.rename(aside, directory)

    return back


@contextmanager
def swapping(directory: Path, outside: Path) -> Iterator[None]:
    """A thread that does so again and again, whatever else is put in the directory's place meanwhile. It has had its turn before the
    block begins and while it ran; in the end the directory is there."""
    stop, swapped = threading.Event(), threading.Event()
    aside, link = directory.with_name("aside"), directory.with_name("leads-outside")

    def work() -> None:
        for number in count():
            link.symlink_to(outside)
            with suppress(OSError):
                os.rename(directory, aside)
            with suppress(OSError):  # somebody made a directory here
                os.rename(link, directory)
            if directory.is_symlink():
                directory.unlink()
            link.unlink(missing_ok=True)
            for again in range(1_000):  # the writer may make the directory anew each time
                try:
                    os.rename(aside, directory)
                    break
                except OSError:
                    os.rename(directory, directory.with_name(f"in-between-{number}-{again}"))
            swapped.set()
            if stop.is_set():
                return

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        assert swapped.wait(PATIENCE)
        swapped.clear()
        yield
        assert swapped.wait(PATIENCE)
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()


def worked(ran: CompletedCall) -> bool:
    return not ran.output.is_error


def write(path: Path, text: str = "model") -> ToolUse:
    return call("Write", file_path=str(path), content=text)


# The main conversation


@pytest.mark.spec("Z8")
def test_write_in_a_race_writes_inside_or_not_at_all(project: Path, outside: Path) -> None:
    tool_runner, wrote = tool_runner_for(project), 0
    with swapping(project / "sub", outside):
        for number in range(TIMES):
            [ran] = tool_runner.run([write(project / "sub" / f"new{number % 5}" / f"{number}.txt")])
            wrote += worked(ran)
    assert list(outside.iterdir()) == []
    found = [*project.rglob("*.txt")]
    assert len(found) >= wrote
    assert {path.read_text() for path in found} <= {"model"}


@pytest.mark.spec("Z8")
def test_edit_in_a_race_changes_the_file_inside_or_none(project: Path, outside: Path) -> None:
    tool_runner = tool_runner_for(project)
    for place in (outside, project / "sub"):
        (place / "a.txt").write_text("0")
    tool_runner.run([call("Read", file_path=str(project / "sub" / "a.txt"))])
    now = 0
    with swapping(project / "sub", outside):
        for number in range(1, TIMES):
            edit = call("Edit", file_path=str(project / "sub" / "a.txt"), old_string=str(now), new_string=str(number))
            [ran] = tool_runner.run([edit])
            now = number if worked(ran) else now
    assert (outside / "a.txt").read_text() == "0"
    assert (project / "sub" / "a.txt").read_text() == str(now)


@pytest.mark.spec("Z8")
@pytest.mark.parametrize("mode", ["ask", "accept-edits", "all"])
@pytest.mark.parametrize("what", ["directory", "file", "above"])
def test_what_is_swapped_behind_the_judgement_is_not_followed(project: Path, outside: Path, mode: Mode, what: str) -> None:
    (project / "sub" / "deep").mkdir()
    path = project / "sub" / "deep" / "new.txt"

    def once(_: ToolUse) -> None:
        match what:
            case "directory":
                swap(project / "sub" / "deep", outside)
            case "above":
                swap(project / "sub", outside)
            case _:
                path.symlink_to(outside / "new.txt")

    def yes(_: ToolUse, __: AskUser) -> PermissionAnswer:
        return "yes"

    [ran] = tool_runner_for(project, mode, on_start=once, ask=yes).run([write(path)])
    assert not worked(ran)
    assert list(outside.iterdir()) == []


@pytest.mark.spec("Z8")
def test_a_person_s_yes_is_for_the_file_that_was_shown(project: Path, outside: Path, tmp_path: Path) -> None:
    """Outside the project too: the write goes where it was allowed, or nowhere."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def swap_and_say_yes(_: ToolUse, question: AskUser) -> PermissionAnswer:
        assert "outside the project" in question.why
        swap(elsewhere, outside)
        return "yes"

    [ran] = tool_runner_for(project, "ask", ask=swap_and_say_yes).run([write(elsewhere / "x.txt")])
    assert not worked(ran)
    assert list(outside.iterdir()) == []
    elsewhere.unlink()
    (tmp_path / "elsewhere-aside").rename(elsewhere)
    [ran] = tool_runner_for(project, "ask", ask=lambda *_: "yes").run([write(elsewhere / "deeper" / "x.txt")])
    assert worked(ran)
    assert (elsewhere / "deeper" / "x.txt").read_text() == "model"


def test_links_that_were_there_when_it_was_judged_are_followed_inside(project: Path) -> None:
    (project / "link").symlink_to(project / "sub")
    (project / "sub" / "a.txt").write_text("old")
    (project / "b.txt").symlink_to(project / "sub" / "a.txt")
    tool_runner = tool_runner_for(project)
    assert worked(tool_runner.run([write(project / "link" / "new.txt")])[0])
    assert (project / "sub" / "new.txt").read_text() == "model"
    tool_runner.run([call("Read", file_path=str(project / "b.txt"))])
    assert worked(tool_runner.run([write(project / "b.txt")])[0])
    assert (project / "sub" / "a.txt").read_text() == "model"
    assert (project / "b.txt").is_symlink()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root opens every directory")
def test_below_a_directory_that_may_be_passed_but_not_opened_files_can_be_written(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "mine").mkdir(parents=True)
    closed.chmod(0o711)
    replace(closed / "mine" / "x.txt", b"mine", expect=None, target=os.path.realpath(closed / "mine" / "x.txt"))
    assert (closed / "mine" / "x.txt").read_text() == "mine"


# Forks and memories


@pytest.mark.spec("Z8", "X6")
def test_a_fork_in_a_race_writes_inside_the_memory_directory_or_not_at_all(project: Path, outside: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    (memory / "sub").mkdir(parents=True)
    tool_runner = tool_runner_for(project).restrict(abort=threading.Event(), memory_dir=memory)
    with swapping(memory / "sub", outside):
        for number in range(TIMES):
            tool_runner.run([write(memory / "sub" / f"{number}.md"), write(project / f"{number}.md")])
    assert list(outside.iterdir()) == []
    assert [*project.glob("*.md")] == []


@pytest.mark.spec("Z8", "G1")
@pytest.mark.parametrize("what", ["", ".history"])
def test_saving_in_a_race_writes_inside_the_memory_directory_or_not_at_all(
    tmp_path: Path, outside: Path, project: Path, what: str
) -> None:
    """A memory directory that is a link when it is opened was chosen by the user; later changes of the link are not followed."""
    home = tmp_path / "home"
    with Memory.open(project, home=home) as memory:
        memory.save("first", type="user", description="one", body="x")
        assert memory.path.is_relative_to(home)
        with swapping(memory.path / what, outside):
            for number in range(TIMES // 4):
                with suppress(LaminaError, OSError):
                    memory.save(f"m{number % 3}", type="user", description=f"number {number}", body=f"body {number}")
    assert list(outside.iterdir()) == []
    with Memory.open(project, home=home) as memory:
        assert memory.save("last", type="user", description="it still works", body="x")
