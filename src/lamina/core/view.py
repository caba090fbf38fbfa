"""The view: what the model sees, as a fold over the records of one conversation.

`View.add` takes the records in log order and changes the view by what is new in each: a message is appended, a decision
replaces or removes what it names. Decisions name ids, never positions, so the same records always give the same view, added one
by one or all again from the start (which is how a revoke is done: see log.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, assert_never

import msgspec

from .blocks import Block, ToolResult, Wire, text, tool_result
from .message_list import Flat
from .records import Attachment, Boundary, Clear, Message, Pin, Placed, Revoke, Snapshot, Span, Spill
from .usage import Usage


class Item(msgspec.Struct, frozen=True):
    """One visible record."""

    uuid: str
    role: Literal["user", "assistant"]
    blocks: tuple[Block, ...]
    kind: str  # said | meta | summary | attachment:<kind> | snip | collapse | partial
    key: str | None = None  # message id
    synthetic: bool = False
    time: str = ""
    usage: Usage | None = None  # what the answer reported
    stop_reason: str | None = None  # None on an answer: it was cut off, or its output count is only partial
    files: tuple[str, ...] = ()  # whose text another program's attachment shows


class View:
    def __init__(self) -> None:
        self.items: list[Item] = []
        self.pins: dict[str, Pin] = {}
        self.snapshot: Snapshot | None = None
        # Frozen replacements by tool_use id: what the model sees instead of the result, decided once (R3, M6).
        self.replaced: dict[str, str] = {}
        # Attachments that were cleared: out of view, but what they surfaced counts until a compaction (M6).
        self.cleared: list[Item] = []
        # Counts view changes that are no append; whoever cached something about the view compares it (T10).
        self.generation = 0
        # Usage reported by items before this index measured another view (T10), and how often that came about.
        self.measured_from = 0
        self.voided = 0
        self.flat = Flat()
        self._held: dict[str, int] = {}  # tool_use id → how many real results of it are among the items
        self._boundaries: dict[str, Boundary] = {}  # written, not yet in effect
        self._summary_due = False

    def messages(self) -> list[Wire]:
        return self.flat.messages()

    def blocks(self) -> Iterator[tuple[Item, Block]]:
        for item in self.items:
            for block in item.blocks:
                yield item, block

    def add(self, record: Placed, *, rests_on: str | None = None) -> None:
        """`rests_on` is the nearest message or boundary above the record in the tree."""
        match record:
            case Message():
                self._take_effect(rests_on)
                self._add_message(record)
            case Attachment():
                self._take_effect(rests_on)
                kind = f"attachment:{record.kind}"
                self._append(Item(record.uuid, "user", record.blocks, kind, time=record.time, files=record.files))
            case Boundary():
                self._boundaries[record.uuid] = record
            case Spill():
                self._replace({record.tool_use_id: record.preview})
            case Clear():
                self._replace(record.markers)
                gone = set(record.attachments)
                self.cleared += [item for item in self.items if item.uuid in gone] if gone else []
                self.drop(record.attachments)
            case Span():
                self._fold(record)
            case Pin():
                self.pins[record.uuid] = record
            case Snapshot():
                self.snapshot = record
            case Revoke():
                # What was reported so far measured a view with the decision in it (T10).
                self._changed()
            case _:
                assert_never(record)

    def _add_message(self, record: Message) -> None:
        if record.silent or record.role == "system":
            return
        kind = "summary" if record.summary else "meta" if record.meta else "said"
        role: Literal["user", "assistant"] = "assistant" if record.role == "assistant" else "user"
        blocks = record.blocks if record.synthetic else tuple(self._shown(block) for block in record.blocks)
        item = Item(
            record.uuid, role, blocks, kind, record.message_id, record.synthetic, record.time, record.usage, record.stop_reason
        )
        self._append(item)

    def _append(self, item: Item) -> None:
        if item.kind == "summary" and self._summary_due:
            # The order after a compaction is summary, kept messages, restored context (C4).
            self._summary_due = False
            self.items.insert(0, item)
            self._reflatten()
            return
        self.items.append(item)
        self._show(item)

    def _show(self, item: Item) -> None:
        for call in _real_results(item):
            self._held[call] = self._held.get(call, 0) + 1
        self.flat.add(item.role, item.blocks, key=item.key, synthetic=item.synthetic)

    def _take_effect(self, rests_on: str | None) -> None:
        """The first record that stands on a boundary puts it into effect."""
        boundary = self._boundaries.pop(rests_on, None) if rests_on is not None else None
        if boundary is None:
            return
        kept = set(boundary.kept)
        self.items = [item for item in self.items if item.uuid in kept]
        self.cleared = []
        self._summary_due = True
        self._reflatten()

    def _replace(self, contents: dict[str, str]) -> None:
        """A result that came twice is replaced twice: the second may be the only one that a later decision leaves. What was made
        up stays as it was sent (C11)."""
        self.replaced |= contents
        left = {call: self._held[call] for call in contents if call in self._held}
        if not left:
            return
        in_place, index = True, len(self.items)
        # Newest first: what is replaced has mostly just arrived, so the walk is short.
        for index in range(len(self.items) - 1, -1, -1):
            here = [call for call in _real_results(self.items[index]) if call in left]
            if not here:
                continue
            in_place = self._replace_in(index, here) and in_place
            for call in here:
                left[call] -= 1
                if not left[call]:
                    del left[call]
            if not left:
                break
        if not in_place:
            self._reflatten()
        elif any(item.role == "assistant" for item in self.items[index:]):
            self._changed()
        else:  # they stand behind the last answer: what was reported still measures all before them
            self.generation += 1

    def _replace_in(self, index: int, calls: list[str]) -> bool:
        """False: one of them is shown in another way than as a result, so all must be flattened again."""
        item = self.items[index]
        shown = tuple(self._shown(block) for block in item.blocks)
        self.items[index] = msgspec.structs.replace(item, blocks=shown)
        done = [
            self.flat.replace_result(old, new)
            for old, new in zip(item.blocks, shown, strict=True)
            if isinstance(old, ToolResult) and isinstance(new, ToolResult) and old.tool_use_id in calls
        ]
        return all(done)

    def _shown(self, block: Block) -> Block:
        if not isinstance(block, ToolResult) or block.tool_use_id not in self.replaced:
            return block
        return tool_result(block.tool_use_id, self.replaced[block.tool_use_id], is_error=block.is_error)

    def drop(self, ids: tuple[str, ...]) -> None:
        gone = set(ids)
        left = [item for item in self.items if item.uuid not in gone]
        if len(left) != len(self.items):
            self.items = left
            self._reflatten()

    def _fold(self, span: Span) -> None:
        gone = set(span.ids)
        first = next((index for index, item in enumerate(self.items) if item.uuid in gone), None)
        if first is None:
            return
        marker = Item(span.uuid, "user", (text(span.text),), span.kind, time=span.time)
        before = self.items[:first]
        self.items = [*before, marker, *(item for item in self.items[first:] if item.uuid not in gone)]
        self._reflatten()

    def _changed(self) -> None:
        self.generation += 1
        self.voided += 1
        self.measured_from = len(self.items)

    def _reflatten(self) -> None:
        self._changed()
        self.flat = Flat()
        self._held = {}
        for item in self.items:
            self._show(item)


def _real_results(item: Item) -> list[str]:
    return [] if item.synthetic else [block.tool_use_id for block in item.blocks if isinstance(block, ToolResult)]
