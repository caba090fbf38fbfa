"""Undo of the last turn, and of what it changed in memory.

Undoing a turn changes the conversation only. The memories it saved are named in the result, and `undo_memories` takes them
back: the user decides, because a memory outlives its conversation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from ..conversation.revision import rewind
from ..core.blocks import Text, ToolResult, ToolUse
from ..core.errors import UsageError
from ..core.inputs import check_type
from ..core.view import Item
from ..tools.bash import has_run
from .start import SessionStart

if TYPE_CHECKING:
    from ..memory.store.change_sets import SetChange, UndoneSet


class UndoneTurn(msgspec.Struct, frozen=True):
    """The turn that `undo_turn` removed from the conversation."""

    words: str  # the user's message
    answers: int  # number of answers
    calls: tuple[str, ...]  # names of the tools that were called
    memories: tuple[SetChange, ...] = ()  # what it changed in memory; this is not undone yet
    files: tuple[str, ...] = ()  # other files that Write and Edit changed; they stay changed
    commands: tuple[str, ...] = ()  # shell commands that ran and may have changed files
    messages: tuple[str, ...] = ()  # the ids of its messages


class TurnUndo(SessionStart):
    """The methods that undo a turn."""

    def undo_turn(self) -> UndoneTurn:
        """Undo the last turn, so that the conversation continues before the user's last message.

        The transcript keeps everything. Files that tools changed stay changed, and so do memories; pass the result to
        `undo_memories` to take those back too.

        Returns:
            What was removed, and the memories that the turn saved, changed, removed or proposed.

        Raises:
            UsageError: There is no turn to undo.
        """
        from ..conversation.compaction.cuts import is_said

        with self._open():
            items = self._c.log.view.items
            last = next((at for at in range(len(items) - 1, -1, -1) if is_said(items[at])), None)
            if last is None:
                raise UsageError("There is nothing to undo: this session has no user message in view.")
            gone = items[last:]
            words = " ".join(block.text for block in gone[0].blocks if isinstance(block, Text))
            answers = {item.key or item.uuid for item in gone if item.role == "assistant"}
            calls = [block.name for item in gone for block in item.blocks if isinstance(block, ToolUse)]
            rewind(self._c, self._c.log.tree.nodes[gone[0].uuid].parent)
            messages = tuple(item.uuid for item in gone)
            memories = self._binding.changes_for(messages)
            return UndoneTurn(words, len(answers), tuple(calls), memories, *self._lasting(gone), messages)

    def _lasting(self, gone: Iterable[Item]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the files outside memory that these messages changed, and their commands that may have changed some."""
        from ..tools.permissions.readonly.paths import within
        from ..tools.permissions.readonly.plan import ReadOnlyPlan, plan_readonly

        blocks = [block for item in gone for block in item.blocks]
        results = {block.tool_use_id: block for block in blocks if isinstance(block, ToolResult)}
        done = [(one, results[one.id]) for one in blocks if isinstance(one, ToolUse) and one.id in results]
        place = self._binding.place
        memory = [str(path) for path in (place.path, place.team) if path is not None] if place is not None else []
        wrote = [_text(one, "file_path") for one, result in done if one.name in ("Write", "Edit") and not result.is_error]
        files = [path for path in wrote if not any(within(str(self.cwd / path), directory) for directory in memory)]
        ran = [_text(one, "command") for one, result in done if one.name == "Bash" and has_run(result)]
        plans = [(command, plan_readonly(command, cwd=self.cwd, roots=(self.cwd,))) for command in ran]
        return tuple(files), tuple(command for command, plan in plans if not isinstance(plan, ReadOnlyPlan))

    def undo_memories(self, turn: UndoneTurn) -> UndoneSet:
        """Take back what an undone turn changed in memory.

        Args:
            turn: The result of `undo_turn`.

        Returns:
            What was undone (`back`), and what was left (`left`, in `sentences`): a memory that was changed since stays as it is. A
            memory that the turn created goes to the trash. Entries in daily logs stay.
        """
        check_type("turn", turn, UndoneTurn, words="the result of undo_turn()")
        with self._open():
            return self._binding.undo_changes(turn.messages)


def _text(call: ToolUse, name: str) -> str:
    """Return an argument of a call. A host's own tool of the same name may take others."""
    return str(call.input.get(name, "")) if isinstance(call.input, dict) else ""
