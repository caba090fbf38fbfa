"""A project, a memory directory, a home and a place outside, and calls to ask about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec

from lamina.core.blocks import ToolUse, read_block
from lamina.core.settings import Permissions
from lamina.tools.permissions.decision import decide
from lamina.tools.permissions.request import Mode, PermissionContext, Verdict
from lamina.tools.permissions.rules import PermissionRules, read_rules

MODES: tuple[Mode, ...] = get_args(Mode)
READING = {"Read", "Grep", "Glob", "Fetcher"}


def call(tool: str, /, **arguments: Any) -> ToolUse:
    block = read_block({"type": "tool_use", "id": "t1", "name": tool, "input": arguments})
    assert isinstance(block, ToolUse)
    return block


def shown(asked: ToolUse | str | None) -> str:
    return f"{asked.name} {asked.input}" if isinstance(asked, ToolUse) else str(asked)


def rules(*, allow: Sequence[str] = (), ask: Sequence[str] = (), deny: Sequence[str] = ()) -> PermissionRules:
    return read_rules(Permissions(allow=tuple(allow), ask=tuple(ask), deny=tuple(deny)))


class House(msgspec.Struct, frozen=True):
    base: Path

    @property
    def cwd(self) -> Path:
        return self.base / "home" / "work" / "app"

    @property
    def memory(self) -> Path:
        return self.base / "home" / ".lamina" / "projects" / "app" / "memory"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    def context(self, **changes: Any) -> PermissionContext:
        home = self.base / "home"
        usual: dict[str, Any] = {"cwd": self.cwd, "memory_dir": self.memory, "home": home, "lamina_home": home / ".lamina"}
        return PermissionContext(**{**usual, "tool_is_read_only": READING.__contains__, **changes})

    def decide(self, asked: ToolUse, mode: Mode = "ask", given: PermissionRules | None = None, **changes: Any) -> Verdict:
        return decide(asked, mode=mode, rules=given or PermissionRules(), context=self.context(**changes))


def build(base: Path) -> House:
    made = House(base.resolve())
    for directory in (made.cwd / "src", made.memory / "team", made.outside):
        directory.mkdir(parents=True)
    (made.cwd / "src" / "a.py").write_text("a\n")
    (made.cwd / ".env").write_text("KEY=1\n")
    (made.memory / "MEMORY.md").write_text("- [a](a.md)\n")
    (made.outside / "x.txt").write_text("x\n")
    return made
