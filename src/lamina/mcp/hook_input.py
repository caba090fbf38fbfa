"""The input of a hook, and its answer.

The agent that calls may be of any version, so nothing is required: a field that is missing or has another type is empty, and an input that
is not a JSON object is an empty one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..core.decoding import UNDECODABLE
from ..disk.home.agent_homes import agent_homes

# A hook that adds more than 10,000 characters has them moved to a file by Claude Code, of which the model sees the beginning.
MOST_CHARS = 9_500
# Codex keeps the head and the tail of what is longer than 2,500 tokens.
MOST_CHARS_CODEX = 7_000


class HookInput(NamedTuple):
    session_id: str = ""
    transcript_path: str = ""
    cwd: str = ""
    prompt: str = ""
    source: str = ""
    tool_name: str = ""
    tool_use_id: str = ""
    agent_id: str = ""
    tool_response: Any = None

    @property
    def transcript(self) -> Path | None:
        """The transcript, if it is one of an agent's sessions."""
        path = Path(os.path.normpath(self.transcript_path)) if os.path.isabs(self.transcript_path) else None
        inside = path is not None and any(path.is_relative_to(home) for home in agent_homes(os.environ).values())
        return path if inside and path is not None and path.suffix == ".jsonl" else None

    @property
    def session_directory(self) -> Path | None:
        """The directory with the files of a Claude Code session."""
        path, home = self.transcript, agent_homes(os.environ).get("claude-code")
        inside = path is not None and home is not None and path.is_relative_to(home / "projects")
        return path.with_suffix("") if path is not None and inside else None


def read_hook_input(given: object) -> HookInput:
    if isinstance(given, bytes):
        try:
            given = msgspec.json.decode(given)
        except UNDECODABLE:
            given = None
    fields = given if isinstance(given, Mapping) else {}
    texts = {name: value for name in HookInput._fields if isinstance(value := fields.get(name), str)}
    response = texts.pop("tool_response", fields.get("tool_response"))
    return HookInput(**texts, tool_response=_decoded(response) if isinstance(response, str) else response)


def _decoded(response: str) -> Any:
    """Return the value of a response. Claude Code fills an object into a hook's input as JSON, and a text as it is."""
    if not response.startswith(("{", "[")):
        return response
    try:
        return msgspec.json.decode(response)
    except UNDECODABLE:
        return response


def hook_answer(event: str, **fields: Any) -> str:
    """Return the JSON that a hook answers with."""
    return msgspec.json.encode({"hookSpecificOutput": {"hookEventName": event, **fields}}).decode()
