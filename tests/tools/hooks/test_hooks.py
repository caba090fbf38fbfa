"""The user's commands: which run, what their output means, and that none can hang or flood a session."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.clocks import UpWhenReady

from lamina.core.settings import Settings
from lamina.tools.hooks.protocol import INLINE, SHOWN, HookOutcome, plan_hooks
from lamina.tools.hooks.run import MAX_OUTPUT, run_hooks

PYTHON = f'"{sys.executable}"'


def hooks(event: str, *commands: str, matcher: str | None = None, timeout: float | None = None) -> Any:
    entries = [{"type": "command", "command": command} | ({"timeout": timeout} if timeout else {}) for command in commands]
    group: dict[str, Any] = {"hooks": entries} | ({"matcher": matcher} if matcher is not None else {})
    return Settings(hooks={event: [group]}).hooks


def run(event: Any, table: Any, cwd: Path, **payload: Any) -> HookOutcome:
    return run_hooks(event, payload, table, cwd=cwd, environ=dict(os.environ), matching=payload.get("source", ""))


# A process does not end at the moment the signal is sent: it may first have to wait for a core.
PATIENCE = 120.0
GLANCE = 0.01


def ended(pid: int) -> bool:
    """Whether the process is gone, or dead and not yet reaped by its parent."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        os.kill(pid, 0)
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


def ends(pid: int) -> bool:
    """Whether the process ends before patience runs out."""
    never = threading.Event()
    return any(ended(pid) or never.wait(GLANCE) for _ in range(round(PATIENCE / GLANCE)))


def test_a_hook_reads_the_event_as_json_and_its_output_becomes_context(tmp_path: Path) -> None:
    reads = f"{PYTHON} -c \"import json,sys; e = json.load(sys.stdin); print(e['hook_event_name'], e['prompt'], e['cwd'])\""
    found = run("UserPromptSubmit", hooks("UserPromptSubmit", reads), tmp_path, prompt="hello")
    assert found == HookOutcome(context=(f"UserPromptSubmit hello {tmp_path}",))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"additionalContext": "be brief"}, HookOutcome(context=("be brief",))),
        ({"hookSpecificOutput": {"additionalContext": "be brief"}}, HookOutcome(context=("be brief",))),
        ({"decision": "block", "reason": "not now"}, HookOutcome(block="not now")),
        ({"continue": False, "stopReason": "enough"}, HookOutcome(block="enough")),
        ({"systemMessage": "by the way"}, HookOutcome(messages=("by the way",))),
        ({}, HookOutcome()),
    ],
)
def test_a_hook_may_answer_in_json(answer: dict[str, Any], expected: HookOutcome, tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    assert run("SessionStart", hooks("SessionStart", "cat answer.json"), tmp_path) == expected


def test_exit_code_two_blocks_with_what_was_said_on_stderr(tmp_path: Path) -> None:
    assert run("Stop", hooks("Stop", "echo 'tests still fail' >&2; exit 2"), tmp_path).block == "tests still fail"


def test_a_failing_hook_is_reported_and_passed_over(tmp_path: Path) -> None:
    found = run("PreCompact", hooks("PreCompact", "echo broken >&2; exit 3", "echo keep the plan"), tmp_path)
    assert found.context == ("keep the plan",)
    assert found.block is None
    assert "code 3: broken" in found.faults[0]


def test_a_hook_that_hangs_is_ended_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.disk.child.time", UpWhenReady(tmp_path / "ready"))
    hangs = "sleep 1000 & echo $! > child.pid; touch ready; wait"
    found = run("Stop", hooks("Stop", hangs, timeout=1.0), tmp_path)
    assert "exceeded its timeout of 1 second and" in found.faults[0]
    assert ends(int((tmp_path / "child.pid").read_text()))


@pytest.mark.exhaustive
@pytest.mark.spec("U6")
def test_a_child_that_ignores_the_first_signal_is_killed_with_a_hook_that_hangs(tmp_path: Path) -> None:
    hangs = "sh -c \"trap '' TERM; echo > ready; exec sleep 1000\" & echo $! > child.pid; until test -e ready; do :; done; wait"
    found = run("Stop", hooks("Stop", hangs, timeout=2.0), tmp_path)
    assert "exceeded its timeout" in found.faults[0]
    assert (tmp_path / "ready").exists()
    assert ends(int((tmp_path / "child.pid").read_text()))


def test_a_child_left_behind_with_the_pipe_open_does_not_hold_the_session_up(tmp_path: Path) -> None:
    found = run("SessionStart", hooks("SessionStart", "sleep 1000 & echo ready"), tmp_path)
    assert found.context == ("ready",)


def test_a_hook_that_floods_is_cut(tmp_path: Path) -> None:
    found = run("SessionStart", hooks("SessionStart", "head -c 5000000 /dev/zero | tr '\\0' x"), tmp_path)
    assert found.context[0].startswith("x" * SHOWN + "\n[The first 2,000 of")
    assert f"dropped {5_000_000 - MAX_OUTPUT:,} bytes." in found.faults[0]


@pytest.mark.spec("U6")
def test_context_is_whole_up_to_its_limit_and_its_beginning_above_it(tmp_path: Path) -> None:
    for size, whole in ((INLINE, True), (INLINE + 1, False)):
        [context] = run("SessionStart", hooks("SessionStart", f"head -c {size} /dev/zero | tr '\\0' x"), tmp_path).context
        assert (context == "x" * size) is whole
        assert len(context) <= INLINE


@pytest.mark.spec("U6")
def test_timeouts_are_those_that_hooks_are_written_for() -> None:
    def timeout(event: Any, given: Any = None) -> float:
        entry = {"type": "command", "command": "x"} | ({"timeout": given} if given is not None else {})
        [command], _ = plan_hooks(event, Settings(hooks={event: [{"hooks": [entry]}]}).hooks)
        return command.timeout

    assert [timeout(event) for event in ("PreToolUse", "Stop", "UserPromptSubmit")] == [600, 600, 30]
    assert [timeout("Stop", given) for given in (5, 0.5, 3_600, 1e300)] == [5, 0.5, 3_600, 86_400]
    assert [timeout("Stop", given) for given in (0, -1, "5", True)] == [600] * 4


@pytest.mark.spec("U6")
def test_prompts_and_stops_have_nothing_to_match(tmp_path: Path) -> None:
    assert run_hooks(
        "UserPromptSubmit", {}, hooks("UserPromptSubmit", "echo x", matcher="Bash"), cwd=tmp_path, environ=dict(os.environ)
    ).context == ("x",)


def test_a_hook_need_not_read_its_input(tmp_path: Path) -> None:
    assert run("Stop", hooks("Stop", "exec <&-; true"), tmp_path, text="x" * 1_000_000).faults == ()


def test_a_matcher_chooses_and_a_bad_one_is_named(tmp_path: Path) -> None:
    table = hooks("SessionStart", "echo again", matcher="resume|compact")
    assert run("SessionStart", table, tmp_path, source="startup").context == ()
    assert run("SessionStart", table, tmp_path, source="resume").context == ("again",)
    commands, faults = plan_hooks("SessionStart", hooks("SessionStart", "echo x", matcher="(("), matching="startup")
    assert commands == ()
    assert "'(('" in faults[0]


def test_the_same_command_runs_once(tmp_path: Path) -> None:
    run("Stop", hooks("Stop", "echo x >> ran", "echo x >> ran"), tmp_path)
    assert (tmp_path / "ran").read_text() == "x\n"
