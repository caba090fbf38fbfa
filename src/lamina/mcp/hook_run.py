"""Answers a hook of a coding agent that runs commands. The agent waits, so this imports as little as it can.

Reads the hook's JSON from standard input and prints nothing or a whole answer. Invariant: it fails open. Whatever the input or the
memory is like, the exit code is 0, and the agent goes on as if there were no hook. Work that takes longer than a hook may runs in a child
process of its own session, which outlives the agent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..disk.prompt_claim import CLIENT, claim_for_command

if TYPE_CHECKING:
    from .hook_input import HookInput
    from .project import HookAgent, ServedProject

EVENTS = ("SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SessionEnd")
# The work of child processes.
REVIEW, MEND = "review", "mend"
CODEX = "codex"
# A larger input is not read: hooks of these events get a few hundred bytes.
MOST_INPUT = 16 << 20
# A larger transcript takes longer to read than its last turn is worth.
MOST_TRANSCRIPT = 200 << 20
# Set by Claude Code for a session without a user in front of it: the first for its commands, the second for `claude -p` everywhere.
UNATTENDED = {"CLAUDE_CODE_SESSION_ATTENDED": "0", "CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}
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
    client = os.environ.get(CLIENT, "")
    if client.isdecimal() and not claim_for_command(int(client), given.prompt):
        return None
    from .hook_recall import recall_for_prompt

    return recall_for_prompt(project, given, most)


def _act(event: str, agent: HookAgent, project: ServedProject, given: HookInput, data: bytes) -> None:
    """Do the work of an event that has no answer."""
    if event == "SessionEnd":
        if project.agent_memory() is not None:
            start_child(MEND, agent, data)
    elif event == "Stop":
        if wants_review(project, given):
            start_child(REVIEW, agent, data)
    elif event == MEND:
        from .hook_session import mend_memory

        mend_memory(project)
    elif event == REVIEW and wants_review(project, given):
        from .hook_review import review_turn

        review_turn(project, given)


def reviews_turns(project: ServedProject) -> bool:
    """Return whether turns of this session may be reviewed for memories. It loads little: most sessions need no review."""
    settings = project.settings
    alone = any(os.environ.get(name) == value for name, value in UNATTENDED.items())
    if not (settings.memory and settings.extraction) or (alone and not settings.extraction_non_interactive):
        return False
    writable = settings.memory_mode["private"] not in ("off", "read-only")
    return writable and not settings.remote and project.agent_memory() is None


def wants_review(project: ServedProject, given: HookInput) -> bool:
    """Return whether the turn that ended may be reviewed."""
    path = given.transcript
    if path is None or given.agent_id or not reviews_turns(project):
        return False
    if not path.is_file() or path.stat().st_size > MOST_TRANSCRIPT:
        return False
    if project.agent != CODEX or project.settings.extraction_non_interactive:
        return True
    from ..history.codex import is_unattended

    return not is_unattended(path)


def start_child(work: str, agent: str, data: bytes) -> None:
    """Start a process that does the work and outlives this one."""
    import threading

    from ..disk.child import start_detached

    process = start_detached([sys.executable, "-P", "-m", "lamina", "hook", work, "--agent", agent], stdin=data)
    # A server that started it lives on, and would keep the ended process as a zombie.
    threading.Thread(target=process.wait, daemon=True).start()


def plain_call(argv: Sequence[str]) -> Callable[[], None] | None:
    """Return the call for a plain `hook EVENT [--agent AGENT]`, which needs no parser: loading one would double the time."""
    event, options = argv[1] if len(argv) > 1 else "-", list(argv[2:])
    if event.startswith("-") or options not in ([], ["--agent", "claude-code"], ["--agent", CODEX]):
        return None
    return lambda: run_hook(event, "codex" if CODEX in options else "claude-code")
