"""The view: the messages that the model sees, computed as a fold over the records of one conversation.

`View.add` takes the records in log order and updates the view: a message is appended, a decision replaces or removes the items it
names. Decisions refer to ids, never to positions. The same records therefore always give the same view, whether they are added one
by one or all again from the start, which is how a revoke works (see log.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, assert_never

import msgspec

from .blocks import Block, ToolResult, Wire, read_content, text, tool_result
from .copies import copy_with_containers
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
    usage: Usage | None = None  # usage that the answer reported
    stop_reason: str | None = None  # None on an answer: it was cut off, or its output count is only partial
    files: tuple[str, ...] = ()  # files whose text an attachment of another program shows
    whole: tuple[ToolResult, ...] = ()  # its results that were shown once, as the next complete answer saw them
    from_model: bool = True  # False for an answer that a program wrote itself, without a request

    @property
    def complete(self) -> bool:
        """Whether this is an answer that the model finished, so that it has seen everything before it."""
        return self.role == "assistant" and self.from_model and self.stop_reason not in (None, "pause_turn")

    def as_seen(self) -> tuple[Block, ...]:
        """Return the blocks as the next complete answer saw them."""
        if not self.whole:
            return self.blocks
        whole = {block.tool_use_id: block for block in self.whole}
        return tuple(whole.get(block.tool_use_id, block) if isinstance(block, ToolResult) else block for block in self.blocks)


class Settled(NamedTuple):
    """A result that was shown once, and the preview that has replaced it."""

    whole: ToolResult
    preview: ToolResult


class Changed(msgspec.Struct, frozen=True):
    oldest: int  # index of the oldest item with a replaced result; the number of items if there is none
    in_place: bool  # False: one of them is not shown as a result, so the view must be rebuilt


class View:
    def __init__(self) -> None:
        self.items: list[Item] = []
        self.pins: dict[str, Pin] = {}
        self.snapshot: Snapshot | None = None
        # Replacements by tool_use id: the text that the model sees instead of the result. Decided once and never changed.
        self.replaced: dict[str, str] = {}
        # Previews by tool_use id of results that are shown once: whole until the first complete answer after them.
        self.once: dict[str, str] = {}
        # What the last complete answer turned into previews. Whoever counts the view empties it.
        self.settled: list[Settled] = []
        # Answers by record: the blocks that the model sees instead of the original ones. Decided once and never changed.
        self.shortened: dict[str, list[Wire]] = {}
        # Attachments that were cleared. They are out of view, but the memories they showed count until a compaction.
        self.cleared: list[Item] = []
        # Counts view changes other than appending; code that caches something about the view compares it.
        self.generation = 0
        # Indexes of items whose reported usage measured a different view; `voided` counts how often that happened.
        self.void: list[range] = []
        self.voided = 0
        # Number of items → the tokens of a request with them, as an undone compaction recorded it.
        self.recorded: dict[int, int] = {}
        self._undone: dict[str, tuple[int, int]] = {}  # revoked decision → the number of items before it, and its recorded tokens
        self.flat = Flat(self.once)
        self._held: dict[str, int] = {}  # tool_use id → number of real results among the items
        self._boundaries: dict[str, Boundary] = {}  # written but not yet in effect
        self._summary_due = False

    def copy(self) -> View:
        made = copy_with_containers(self)
        made.flat = self.flat.copy(made.once)
        return made

    def messages(self) -> list[Wire]:
        return self.flat.messages()

    def blocks(self) -> Iterator[tuple[Item, Block]]:
        for item in self.items:
            for block in item.blocks:
                yield item, block

    def shows_result(self, tool_use_id: str) -> bool:
        """Return whether the model sees the result of this call unchanged."""
        return tool_use_id in self._held and tool_use_id not in self.replaced

    def measures(self, index: int) -> bool:
        """Return whether the usage that an item reports measured the view up to this item as it is now."""
        return not any(index in part for part in self.void)

    def note_undone(self, decision: Placed) -> None:
        """Note the place of a revoked decision, which is folded no more. Its revoke follows."""
        tokens = decision.tokens_before if isinstance(decision, Boundary) else 0
        self._undone[decision.uuid] = (len(self.items), tokens)

    def add(self, record: Placed, *, rests_on: str | None = None) -> None:
        """Add a record; `rests_on` is the nearest message or boundary above it in the tree."""
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
            case Spill(once=True):
                # Decided before the result is shown, or not at all.
                if record.tool_use_id not in self._held:
                    self.once[record.tool_use_id] = record.preview
            case Spill():
                moved = self.once.pop(record.tool_use_id, None) is not None
                self._replace({record.tool_use_id: record.preview})
                if moved and record.tool_use_id in self._held:
                    self._reflatten()
            case Clear():
                self._replace(record.markers)
                self._shorten(record.shortened)
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
                # Usage reported since the revoked decision measured a view that included it.
                since, tokens = self._undone.get(record.target, (0, 0))
                self._changed(since=since)
                if tokens:
                    self.recorded[since] = tokens
            case _:
                assert_never(record)

    def _add_message(self, record: Message) -> None:
        if record.silent or record.role == "system":
            return
        kind = "summary" if record.summary else "meta" if record.meta else "said"
        role: Literal["user", "assistant"] = "assistant" if record.role == "assistant" else "user"
        blocks = record.blocks if record.synthetic else tuple(self._shown(block) for block in record.blocks)
        item = Item(
            record.uuid,
            role,
            blocks,
            kind,
            record.message_id,
            record.synthetic,
            record.time,
            record.usage,
            record.stop_reason,
            from_model=role == "user" or record.from_model,
        )
        self._append(self._shortened(item))

    def _append(self, item: Item) -> None:
        if item.kind == "summary" and self._summary_due:
            # The order after a compaction is: summary, kept messages, restored context.
            self._summary_due = False
            self.items.insert(0, item)
            self._reflatten()
            return
        if item.complete and self.flat.unseen:
            self._settle()
        self.items.append(item)
        self._show(item)

    def _settle(self) -> None:
        """Show previews from now on, because a complete answer has seen the results.

        No request repeats what changes here, so nothing else in the view moves. Only usage reported between result and answer is void.
        """
        self.settled.clear()
        previews = {call: self.once[call] for call in self.flat.unseen}
        changed = self._put(previews, once=True)
        if not changed.in_place:
            self._reflatten()
        elif self._answered_since(changed.oldest):
            self._changed()

    def as_settled(self, item: Item) -> Item:
        """Return an item as it will be shown after the next complete answer."""
        unseen = self.flat.unseen
        if not unseen or not any(call in unseen for call in _real_results(item)):
            return item
        shown = (
            tool_result(block.tool_use_id, self.once[block.tool_use_id], is_error=block.is_error)
            if isinstance(block, ToolResult) and block.tool_use_id in unseen
            else block
            for block in item.blocks
        )
        return msgspec.structs.replace(item, blocks=tuple(shown))

    def _show(self, item: Item) -> None:
        for call in _real_results(item):
            self._held[call] = self._held.get(call, 0) + 1
        self.flat.add(item.role, item.blocks, key=item.key, synthetic=item.synthetic, complete=item.complete)

    def _take_effect(self, rests_on: str | None) -> None:
        """Apply the boundary that this record depends on; the first such record puts it into effect."""
        boundary = self._boundaries.pop(rests_on, None) if rests_on is not None else None
        if boundary is None:
            return
        kept = set(boundary.kept)
        self.items = [item for item in self.items if item.uuid in kept]
        self.cleared = []
        self._summary_due = True
        self._reflatten()

    def _replace(self, contents: dict[str, str]) -> None:
        """Replace the content of results.

        A result that arrived twice is replaced twice, because a later decision may leave only the second one. A synthetic result
        stays exactly as it was sent.
        """
        changed = self._put(contents)
        if not changed.in_place:
            self._reflatten()
        elif self._answered_since(changed.oldest):
            self._changed()
        elif changed.oldest < len(self.items):  # the reported usage is still valid for everything before
            self.generation += 1

    def _answered_since(self, index: int) -> bool:
        return any(item.role == "assistant" for item in self.items[index:])

    def _put(self, contents: dict[str, str], *, once: bool = False) -> Changed:
        """Replace the content of results, and keep the whole ones that were shown once."""
        self.replaced |= contents
        left = {call: self._held[call] for call in contents if call in self._held}
        in_place, oldest = True, len(self.items)
        # Newest first: most replaced results have just arrived, so the walk is short.
        for index in range(len(self.items) - 1, -1, -1) if left else ():
            here = [call for call in _real_results(self.items[index]) if call in left]
            if not here:
                continue
            oldest = index
            in_place = self._replace_in(index, here, once=once) and in_place
            for call in here:
                left[call] -= 1
                if not left[call]:
                    del left[call]
            if not left:
                break
        return Changed(oldest, in_place)

    def _replace_in(self, index: int, calls: list[str], *, once: bool) -> bool:
        """Replace results in one item. Return False if one of them is not shown as a result, so the view must be rebuilt."""
        item = self.items[index]
        shown = tuple(self._shown(block) for block in item.blocks)
        changed = [
            Settled(old, new)
            for old, new in zip(item.blocks, shown, strict=True)
            if isinstance(old, ToolResult) and isinstance(new, ToolResult) and old.tool_use_id in calls
        ]
        whole = tuple(one.whole for one in changed) if once else item.whole
        self.items[index] = msgspec.structs.replace(item, blocks=shown, whole=whole)
        self.settled += changed if once else ()
        done = [self.flat.replace_result(*one) for one in changed]
        return all(done)

    def _shorten(self, answers: dict[str, list[Wire]]) -> None:
        """Replace the blocks of answers."""
        self.shortened |= answers
        if any(item.uuid in answers for item in self.items):
            self.items = [self._shortened(item) for item in self.items]
            self._reflatten()

    def _shortened(self, item: Item) -> Item:
        blocks = self.shortened.get(item.uuid)
        if blocks is None or item.role != "assistant":
            return item
        return msgspec.structs.replace(item, blocks=read_content(blocks, where=f"record {item.uuid}"))

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

    def _changed(self, *, since: int = 0) -> None:
        self.generation += 1
        self.voided += 1
        self.void = [*(part for part in self.void if part.start < since), range(since, len(self.items))]
        self.recorded = {size: tokens for size, tokens in self.recorded.items() if size < since}

    def _reflatten(self) -> None:
        self._changed()
        self.flat = Flat(self.once)
        self._held = {}
        for item in self.items:
            self._show(item)


def _real_results(item: Item) -> list[str]:
    return [] if item.synthetic else [block.tool_use_id for block in item.blocks if isinstance(block, ToolResult)]
