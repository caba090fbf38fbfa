"""The tool runner: one result per call in its place, readers in parallel, writers in order, and nothing runs without permission."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.tools.doing import ENVIRON

from lamina.core.blocks import ToolUse, Wire, read_block
from lamina.core.settings import Permissions
from lamina.fork.tool_runner import CompletedCall, PermissionAnswer, ToolRunner
from lamina.tools.permissions.request import Allow, AskUser, Deny, Mode, PermissionContext
from lamina.tools.permissions.rules import PermissionRules, read_rules
from lamina.tools.registry import builtin_tools
from lamina.tools.tool import Context, Tool, ToolOutput

# Far more than a thread needs to start on a busy machine. Only a failing test waits this long.
PATIENCE = 120


class Custom(msgspec.Struct, frozen=True, kw_only=True):
    """A tool written by a user of the library."""

    name: str
    act: Callable[[Wire], Any]
    read_only: bool = True
    description: str = "Does something."
    schema: Wire = msgspec.field(default_factory=lambda: {"type": "object", "properties": {}})

    def run(self, arguments: Wire, context: Context) -> ToolOutput:
        done: ToolOutput = self.act(arguments)
        return done


class Talk:
    """A tool runner over real files, a user with prepared answers, and a record of questions, starts and ends."""

    def __init__(
        self,
        cwd: Path,
        *tools: Tool,
        mode: Mode = "ask",
        says: Sequence[PermissionAnswer] | None = None,
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
    ) -> None:
        self.tools = (*builtin_tools(), *tools)
        self.context = Context(cwd=cwd, roots=(cwd,), environ=ENVIRON, scratch=cwd.parent / "scratch")
        self.rules = read_rules(Permissions(allow=tuple(allow), deny=tuple(deny)))
        self.says = None if says is None else list(says)
        self.asked: list[tuple[str, AskUser]] = []
        self.begun: list[str] = []
        self.ended: list[str] = []
        readers = {tool.name for tool in self.tools if tool.read_only}
        self.tool_runner = ToolRunner(
            tools=self.tools,
            context=self.context,
            permission=PermissionContext(cwd=cwd, tool_is_read_only=readers.__contains__),
            mode=lambda: mode,
            rules=lambda: self.rules,
            ask=self.ask if says is not None else None,
            on_start=lambda call: self.begun.append(call.id),
            on_end=lambda ran: self.ended.append(ran.call.id),
        )

    def ask(self, call: ToolUse, question: AskUser) -> PermissionAnswer:
        assert self.says is not None
        self.asked.append((call.id, question))
        said = self.says.pop(0)
        if said == "always":
            assert question.suggestion is not None
            added = read_rules(Permissions(allow=(question.suggestion,)))
            self.rules = PermissionRules(allow=(*self.rules.allow, *added.allow), deny=self.rules.deny)
        return said

    def run(self, *calls: ToolUse) -> list[CompletedCall]:
        return list(self.tool_runner.run(calls))

    def said(self, *calls: ToolUse) -> list[str]:
        return [text_of(ran) for ran in self.run(*calls)]


def call(name: str, call_id: str = "t1", /, **given: Any) -> ToolUse:
    block = read_block({"type": "tool_use", "id": call_id, "name": name, "input": given})
    assert isinstance(block, ToolUse)
    return block


def text_of(ran: CompletedCall) -> str:
    return ran.result.text


def fine(_: Wire) -> ToolOutput:
    return ToolOutput("fine")


def when_ready(pipe: Path, act: Callable[[], object]) -> threading.Thread:
    """Act as soon as a command has written to the pipe."""

    def wait() -> None:
        pipe.read_bytes()
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "project"
    made.mkdir()
    (made / "a.txt").write_text("one\n")
    (made / "b.txt").write_text("two\n")
    (tmp_path / "outside.txt").write_text("not yours\n")
    return made


# Order and number of results


@pytest.mark.spec("C11")
def test_every_call_has_one_result_in_its_place_whatever_became_of_it(cwd: Path) -> None:
    def breaks(_: Wire) -> ToolOutput:
        raise RuntimeError("out of order")

    talk = Talk(cwd, Custom(name="Fine", act=fine), Custom(name="Breaks", act=breaks), deny=["Glob"])
    ran = talk.run(
        call("Fine", "c1"),
        call("NoSuchTool", "c2"),
        call("Glob", "c3", pattern="*"),
        call("Write", "c4", file_path="new.txt", content="x"),
        call("Breaks", "c5"),
        call("Read", "c6", file_path=str(cwd / "a.txt")),
        call("Read", "c7", file_path=7, limit=[]),
        call("Bash", "c8", command="cat a.txt"),
    )
    assert [one.result.tool_use_id for one in ran] == [f"c{number}" for number in range(1, 9)]
    assert [one.result.is_error for one in ran] == [False, True, True, True, True, False, True, False]
    assert all(text_of(one) for one in ran)
    assert sorted(talk.begun) == sorted(talk.ended) == [f"c{number}" for number in range(1, 9)]
    assert not (cwd / "new.txt").exists()


def test_no_calls_no_results(cwd: Path) -> None:
    assert Talk(cwd).run() == []


def test_fifty_calls_in_one_answer_come_back_in_order_and_never_more_than_eight_at_once(cwd: Path) -> None:
    lock, inside, most = threading.Lock(), 0, 0

    def count(arguments: Wire) -> ToolOutput:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        text = (cwd / "a.txt").read_text()
        with lock:
            inside -= 1
        return ToolOutput(f"{arguments['n']} {text}")

    talk = Talk(cwd, Custom(name="Count", act=count))
    assert talk.said(*(call("Count", f"c{n}", n=n) for n in range(50))) == [f"{n} one\n" for n in range(50)]
    assert most <= 8


def test_calls_that_only_read_run_at_the_same_time(cwd: Path) -> None:
    """Two calls that wait for each other: in sequence they would never end."""
    meet = threading.Barrier(2)

    def wait(_: Wire) -> ToolOutput:
        meet.wait(PATIENCE)
        return ToolOutput("met")

    talk = Talk(cwd, Custom(name="Left", act=wait), Custom(name="Right", act=wait))
    assert talk.said(call("Left", "l"), call("Right", "r")) == ["met", "met"]


def test_calls_that_write_run_one_after_another_and_readers_between_them_see_what_was_written(cwd: Path) -> None:
    log: list[str] = []

    def write(arguments: Wire) -> ToolOutput:
        log.append(f"begin {arguments['n']}")
        (cwd / "log").write_text(str(arguments["n"]))
        log.append(f"end {arguments['n']}")
        return ToolOutput("written")

    def read(_: Wire) -> ToolOutput:
        return ToolOutput((cwd / "log").read_text())

    talk = Talk(cwd, Custom(name="Put", act=write, read_only=False), Custom(name="Get", act=read), mode="all")
    said = talk.said(call("Put", "1", n=1), call("Get", "2"), call("Put", "3", n=2), call("Put", "4", n=3), call("Get", "5"))
    assert said == ["written", "1", "written", "written", "3"]
    assert log == [f"{word} {n}" for n in (1, 2, 3) for word in ("begin", "end")]


# Permission


def test_a_person_is_asked_before_anything_of_the_answer_runs(cwd: Path) -> None:
    talk = Talk(cwd, says=["yes", "no"])
    begun_at_question: list[list[str]] = []
    ask = talk.ask

    def asking(one: ToolUse, question: AskUser) -> PermissionAnswer:
        begun_at_question.append(list(talk.begun))
        return ask(one, question)

    talk.tool_runner = msgspec.structs.replace(talk.tool_runner, ask=asking)
    first, second, third = talk.run(
        call("Write", "w1", file_path="x.txt", content="x"),
        call("Read", "r1", file_path="a.txt"),
        call("Write", "w2", file_path="y.txt", content="y"),
    )
    assert begun_at_question == [[], []]
    assert [one for one, _ in talk.asked] == ["w1", "w2"]
    assert (cwd / "x.txt").read_text() == "x"
    assert not (cwd / "y.txt").exists()
    assert not first.result.is_error
    assert not second.result.is_error
    assert "Denied by the user" in text_of(third)
    assert isinstance(third.verdict, Deny)


def test_always_counts_for_the_next_call_of_the_same_answer(cwd: Path) -> None:
    talk = Talk(cwd, says=["always"])
    said = talk.said(call("Bash", "1", command="touch x"), call("Bash", "2", command="touch x"))
    assert len(talk.asked) == 1
    assert all("no output" in words for words in said)


def test_where_nobody_can_be_asked_the_model_is_told_so(cwd: Path) -> None:
    [ran] = Talk(cwd).run(call("Bash", "1", command="touch x"))
    assert ran.result.is_error
    assert "Nobody is there to allow it" in text_of(ran)
    assert not (cwd / "x").exists()


@pytest.mark.parametrize(("mode", "runs"), [("ask", False), ("accept-edits", True), ("read-only", False), ("all", True)])
def test_the_mode_decides_about_a_write_without_a_person(cwd: Path, mode: Mode, runs: bool) -> None:
    [ran] = Talk(cwd, mode=mode).run(call("Write", file_path="new.txt", content="x"))
    assert (cwd / "new.txt").exists() is runs
    assert ran.result.is_error is not runs


def test_a_deny_rule_is_not_asked_about(cwd: Path) -> None:
    talk = Talk(cwd, mode="all", says=[], deny=["Bash(rm:*)"])
    [ran] = talk.run(call("Bash", command="rm a.txt"))
    assert "Bash(rm:*)" in text_of(ran)
    assert (cwd / "a.txt").exists()
    assert talk.asked == []


def test_an_unknown_tool_is_named_with_the_ones_there_are(cwd: Path) -> None:
    talk = Talk(cwd, says=[])
    [ran] = talk.run(call("raed", file_path="a.txt"))
    assert "Unknown tool 'raed'" in text_of(ran)
    assert "Did you mean Read?" in text_of(ran)


def test_a_command_that_only_reads_runs_without_a_question_and_without_a_shell(cwd: Path) -> None:
    talk = Talk(cwd, says=[])
    [ran] = talk.run(call("Bash", command="grep -c one a.txt; grep nothing a.txt"))
    assert isinstance(ran.verdict, Allow)
    assert ran.verdict.plan is not None
    assert text_of(ran) == "1\n[exit code 1]"
    assert not ran.result.is_error


def test_what_a_reading_command_prints_is_bounded_and_plain(cwd: Path) -> None:
    (cwd / "big.txt").write_text("x" * 79 + "\n" + "y" * 79 + "\n" * 10_000 + "the end\n" * 10_000)
    (cwd / "odd.bin").write_bytes(b"\x1b[31mred\x1b[0m\x00\xff\x07 plain\r\n")
    big, odd = Talk(cwd).run(call("Bash", "1", command="cat big.txt"), call("Bash", "2", command="cat odd.bin"))
    words = text_of(big)
    assert len(words.encode()) <= 31_000
    assert words.startswith("xxxx")
    assert "omitted" in words
    cut, _, where = words.rpartition("\n[The whole output is in ")
    assert cut.endswith("the end")
    assert Path(where.partition(";")[0]).read_bytes() == (cwd / "big.txt").read_bytes()
    assert text_of(odd) == "red\ufffd plain"


def test_a_reading_command_that_prints_too_much_says_so(cwd: Path) -> None:
    with (cwd / "huge.txt").open("wb") as file:
        file.truncate(8 << 20)
    [ran] = Talk(cwd).run(call("Bash", command="cat huge.txt"))
    assert "too much output" in text_of(ran)
    assert ran.result.is_error


# Permissions that depend on the state of the disk


def test_a_reading_command_sees_what_the_call_before_it_wrote(cwd: Path) -> None:
    talk = Talk(cwd, mode="accept-edits")
    written, listed = talk.run(
        call("Write", "1", file_path=str(cwd / "c.txt"), content="three\n"), call("Bash", "2", command="cat *.txt")
    )
    assert not written.result.is_error
    assert text_of(listed) == "one\ntwo\nthree"


def test_a_link_made_by_the_call_before_does_not_lead_a_read_outside(cwd: Path) -> None:
    talk = Talk(cwd, allow=["Bash(ln:*)"])
    linked, read = talk.run(
        call("Bash", "1", command=f"ln -s {cwd.parent / 'outside.txt'} link.txt"),
        call("Read", "2", file_path=str(cwd / "link.txt")),
    )
    assert not linked.result.is_error
    assert (cwd / "link.txt").is_symlink()
    assert read.result.is_error
    assert "not yours" not in text_of(read)


def test_a_yes_of_the_person_is_not_judged_again(cwd: Path) -> None:
    talk = Talk(cwd, says=["yes", "yes"])
    ran = talk.run(
        call("Bash", "1", command="touch x"),
        call("Read", "2", file_path=str(cwd.parent / "outside.txt")),
    )
    assert [one.result.is_error for one in ran] == [False, False]
    assert "not yours" in text_of(ran[1])


# Tools that misbehave


@pytest.mark.parametrize(
    "error", [RuntimeError("broken"), SystemExit(3), RecursionError("deep")], ids=lambda error: type(error).__name__
)
def test_a_tool_that_raises_is_a_result(cwd: Path, error: BaseException) -> None:
    def breaks(_: Wire) -> ToolOutput:
        raise error

    talk = Talk(cwd, Custom(name="Breaks", act=breaks), Custom(name="Fine", act=fine))
    broken, after = talk.run(call("Breaks", "1"), call("Fine", "2"))
    assert broken.result.is_error
    assert type(error).__name__ in text_of(broken)
    assert text_of(after) == "fine"


@pytest.mark.parametrize(
    "returned",
    [None, "just words", {"content": "x"}, ToolOutput(object()), ToolOutput([{"type": "text", "text": {1, 2}}])],  # type: ignore[arg-type]
    ids=["nothing", "a text", "a dict", "no content", "no JSON"],
)
def test_a_tool_that_returns_something_else_is_a_result(cwd: Path, returned: Any) -> None:
    talk = Talk(cwd, Custom(name="Odd", act=lambda _: returned), Custom(name="Fine", act=fine))
    odd, after = talk.run(call("Odd", "1"), call("Fine", "2"))
    assert odd.result.tool_use_id == "1"
    assert odd.result.wire["type"] == "tool_result"
    assert text_of(after) == "fine"


# Abort


def test_an_abort_before_the_calls_runs_none_of_them_and_asks_nobody(cwd: Path) -> None:
    talk = Talk(cwd, says=[])
    talk.context.abort.set()
    ran = talk.run(
        call("Write", "1", file_path="x", content="x"), call("Read", "2", file_path="a.txt"), call("Bash", "3", command="ls")
    )
    assert [one.result.is_error for one in ran] == [True] * 3
    assert all("topped" in text_of(one) for one in ran)
    assert not (cwd / "x").exists()


def test_an_abort_during_a_call_ends_it_and_what_stands_behind_it_does_not_begin(cwd: Path) -> None:
    talk = Talk(cwd, mode="all")

    def stop(_: Wire) -> ToolOutput:
        talk.context.abort.set()
        return ToolOutput("told to stop")

    talk.tool_runner = msgspec.structs.replace(
        talk.tool_runner, tools=(*talk.tools, Custom(name="Stop", act=stop, read_only=False))
    )
    first, second, third = talk.run(
        call("Bash", "1", command="touch before"), call("Stop", "2"), call("Bash", "3", command="touch after")
    )
    assert not first.result.is_error
    assert text_of(second) == "told to stop"
    assert third.result.is_error
    assert (cwd / "before").exists()
    assert not (cwd / "after").exists()


def test_an_abort_ends_a_command_that_hangs(cwd: Path) -> None:
    talk = Talk(cwd, mode="all")
    os.mkfifo(cwd / "ready")
    stopper = when_ready(cwd / "ready", talk.context.abort.set)
    [ran] = talk.run(call("Bash", command="echo begun; echo > ready; exec sleep 1000"))
    stopper.join(PATIENCE)
    assert text_of(ran) == "Stopped by the user.\nbegun"


def test_ctrl_c_ends_the_command_and_every_call_still_has_its_result(cwd: Path) -> None:
    """The signal reaches only the waiting thread; the tools run in others."""
    talk = Talk(cwd, mode="all")
    os.mkfifo(cwd / "ready")
    presser = when_ready(cwd / "ready", lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
    done, hung, behind = talk.run(
        call("Bash", "1", command="touch done"),
        call("Bash", "2", command="echo > ready; exec sleep 1000"),
        call("Bash", "3", command="touch behind"),
    )
    presser.join(PATIENCE)
    assert talk.context.abort.is_set()
    assert not done.result.is_error
    assert "Stopped by the user" in text_of(hung)
    assert behind.result.is_error
    assert not (cwd / "behind").exists()
