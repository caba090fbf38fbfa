"""What other programs read in a transcript of ours: claude-agent-sdk's reader, and Claude Code itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import claude_agent_sdk as sdk
from tests.session.plain import Session

from lamina.core.log import Log
from lamina.core.records import Record, Revoke, Span
from lamina.session.base import conversation_of
from lamina.testing import MessagesServer

from .words import Wire

CLAUDE_CODE = Path(sdk.__file__).parent / "_bundled" / "claude"
# A child that no answer reaches would hang for ever.
SECONDS = 120


def read_by_sdk(session: Session) -> list[str]:
    """The ids of the messages that the SDK's reader shows, in order."""
    assert session.home is not None
    os.environ["CLAUDE_CONFIG_DIR"] = str(session.home)
    return [message.uuid for message in sdk.get_session_messages(session.id, directory=str(session.cwd))]


def read_by_us(session: Session) -> list[str]:
    """The ids of our own messages in view, in order. Other programs know no snips, and see the messages themselves."""
    read = list(conversation_of(session).store.read())
    spans = {record.uuid for record in read if isinstance(record, Span)}

    def without_spans() -> list[Record]:
        return [one for one in read if not isinstance(one, Span) and not (isinstance(one, Revoke) and one.target in spans)]

    return [item.uuid for item in Log.load(without_spans).view.items if item.kind in ("said", "summary")]


def sent_by_claude_code(session: Session, prompt: str = "What now?") -> list[Wire]:
    """The messages that Claude Code sends when it resumes a session of ours."""
    assert session.home is not None
    with MessagesServer() as server:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(session.home),
            "CLAUDE_CONFIG_DIR": str(session.home),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "any",
        }
        command = [str(CLAUDE_CODE), "-p", prompt, "--resume", session.id, "--model", "claude-opus-4-6"]
        done = subprocess.run(command, cwd=session.cwd, env=environment, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stderr
        messages: list[Wire] = server.requests[-1].body["messages"]
        return messages


def words_of(messages: list[Wire]) -> list[str]:
    """Texts, calls and results in order, without reminders that a program adds by itself."""
    blocks = [
        block
        for message in messages
        for block in (
            [{"type": "text", "text": message["content"]}] if isinstance(message["content"], str) else message["content"]
        )
    ]
    words = [str(block.get("text") or block.get("id") or block.get("tool_use_id")).strip() for block in blocks]
    return [one for one in words if not one.startswith("<system-reminder>")]
