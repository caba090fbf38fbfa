"""Answers a hook of a coding agent that runs commands. The agent waits, so this imports as little as it can.

Reads the hook's JSON from standard input and prints nothing or a whole answer. Invariant: it fails open. Whatever the input or the
memory is like, the exit code is 0, and the agent goes on as if there were no hook. Work that takes longer than a hook may runs in a child
process of its own session, which outlives the agent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .hook_input import HookInput
    from .project import HookAgent, ServedProject

EVENTS = ("SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SubagentStop", "SessionEnd")
# The work of child processes.
REVIEW, MEND = "review", "mend"
CODEX = "codex"
# A larger input is not read: hooks of these events get a few hundred bytes.
MOST_INPUT = 16 << 20
# Set to any value, it turns off every hook of Lamina.
SWITCH = "LAMINA_DISABLE_HOOKS"


def run_hook(event: str, agent: HookAgent = "claude-code") -> None:
    """Answer one hook and leave the process with exit code 0, without waiting for anything else."""
    try:
        answer = "" if os.environ.get(SWITCH) else _answer(event, agent, sys.stdin.buffer.read(MOST_INPUT + 1))
        if answer:
            sys.stdout.buffer.write(answer.encode("utf-8", "replace"))
        sys.stdout.flush()
    except Exception:  # noqa: BLE001, S110  # a hook never disturbs the agent it runs in
        pass
    finally:
        # Closing memory and threads is done; the interpreter's own cleanup would only cost time.
        os._exit(0)


def _answer(event: str, agent: HookAgent, data: bytes) -> str | None:
    if event not in (*EVENTS, REVIEW, MEND) or len(data) > MOST_INPUT:
        return None
    from .hook_input import MOST_CHARS, MOST_CHARS_CODEX, hook_answer, read_hook_input
    from .project import ServedProject

    given = read_hook_input(data)
    where = os.environ.get("CLAUDE_PROJECT_DIR", "") or given.cwd
    if not os.path.isabs(where) or not os.path.isdir(where):
        return None
    project, most = ServedProject(Path(where), agent=agent), MOST_CHARS_CODEX if agent == CODEX else MOST_CHARS
    if event == "PreCompact":
        from .hook_session import before_compaction

        return before_compaction(project, given, most)
    if event in ("SessionStart", "UserPromptSubmit"):
        text = _context(event, project, given, most)
        return hook_answer(event, additionalContext=text) if text else None
    _act(event, agent, project, given, data)
    return None


def _context(event: str, project: ServedProject, given: HookInput, most: int) -> str | None:
    if event == "SessionStart":
        from .hook_session import session_start

        return session_start(project, given, most)
    from .hook_recall import recall_for_prompt

    return recall_for_prompt(project, given, most)


def _act(event: str, agent: HookAgent, project: ServedProject, given: HookInput, data: bytes) -> None:
    """Do the work of an event that has no answer. A SubagentStop needs none: the session's own Stop covers the turn, and Claude Code fires
    it for compactions too."""
    if event == "SessionEnd":
        if project.agent_memory() is not None:
            start_child(MEND, agent, data)
    elif event == "Stop":
        start_child(REVIEW, agent, data)
    elif event == MEND:
        from .hook_session import mend_memory

        mend_memory(project)
    elif event == REVIEW:
        from .hook_review import review_turn, wants_review

        if wants_review(project, given):
            review_turn(project, given)


def start_child(work: str, agent: str, data: bytes) -> None:
    """Start a process that does the work and outlives this one."""
    import subprocess
    import threading

    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "lamina", "hook", work, "--agent", agent],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=os.name != "nt",
    )
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.close()
    # A server that started it lives on, and would keep the ended process as a zombie.
    threading.Thread(target=process.wait, daemon=True).start()


def fast_arguments(argv: Sequence[str]) -> tuple[str, HookAgent] | None:
    """Return event and agent of a plain `hook EVENT [--agent AGENT]`, which needs no parser: loading one would double the time."""
    if argv[:1] != ["hook"] or len(argv) not in (2, 4) or argv[1].startswith("-"):
        return None
    if len(argv) == 2:
        return argv[1], "claude-code"
    return (argv[1], "codex" if argv[3] == CODEX else "claude-code") if argv[2] == "--agent" else None
