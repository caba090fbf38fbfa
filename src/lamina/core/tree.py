"""The tree of records, which determines the members of the conversation.

Rewinding, retrying and editing history branch the tree. So do parallel tool results, which other programs attach to their own call.
Following the parents from the last record alone would therefore lose results. The members of a conversation are

    the ancestors of its leaf,
    every record that shares a message id with one of them,
    every result of a tool call among those,

in file order, except those that a rewind record cut off. A record *extends* the log if all members stay and it comes after them;
otherwise it *switches* to another branch. The leaf is the last message written, but a result or sibling that joins out of order
does not move it.

A parent is looked up among the records before it, so there are no cycles. A missing parent is replaced by the leaf and counted; so is
a parent that comes later and follows this record itself, which is a cycle in the file.
A decision is attached to a message, and belongs to the conversation while that message does. A boundary is a link in the chain and
becomes a member once a record depends on it. If two records have the same id, the later one replaces the first in its place. If they
are of different kinds, the later one is rejected. Both cases are counted.
"""

from __future__ import annotations

import msgspec

from ..language.wording import plural
from .blocks import ToolResult, ToolUse
from .copies import copy_with_containers
from .records import Attachment, Boundary, Grown, Hung, Message, Placed

# Bookkeeping records of other programs (progress, hooks) are looked up only by records shortly after them. The limit keeps a log
# with millions of them in constant memory.
MAX_LINKS = 20_000
# Cycles that are looked for: each takes one walk through the tree, and a file with more is damaged in any case.
MAX_CYCLES = 100
# The parallel calls of one answer and their results; far more than any model requests at once.
MAX_DETOUR = 200


class Node(msgspec.Struct, frozen=True):
    """A message, attachment or boundary in the tree."""

    seq: int
    parent: str | None
    key: str | None  # message id of an answer
    calls: tuple[str, ...]
    results: tuple[str, ...]
    boundary: bool = False


class Tree:
    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.members: dict[str, None] = {}  # in order
        self.leaf: str | None = None
        self.bridged = 0
        self.duplicates = 0
        self.cycles = 0
        self.missing: dict[str, str] = {}  # a parent that is not there, or not yet → the record that names it
        self._hung: dict[str, str | None] = {}  # decision → the message it is attached to
        self._links: dict[str, str | None] = {}  # any other record → the node it is attached to
        self._calls: dict[str, str] = {}  # tool_use id → node
        self._keys: dict[str, list[str]] = {}  # message id → nodes
        self._results: dict[str, list[str]] = {}  # tool_use id → nodes that contain a result of it
        self._cut: set[str] = set()  # cut off by a rewind; siblings and results among them never return
        self._seq = 0
        self._sidechain: bool | None = None

    def copy(self) -> Tree:
        made = copy_with_containers(self)
        made._keys = {key: nodes.copy() for key, nodes in self._keys.items()}
        made._results = {call: nodes.copy() for call, nodes in self._results.items()}
        return made

    def attach(self, uuid: str, parent: str | None) -> None:
        """Add a record that never affects the view. Its node is stored for later records that name it as their parent."""
        self._links[uuid] = self._above(parent)
        if len(self._links) > MAX_LINKS:
            del self._links[next(iter(self._links))]

    def hang(self, record: Hung) -> bool:
        """Add a decision, which applies while the message it is attached to is a member. Return False if its id already exists."""
        node = self._above(record.parent)
        while node is not None and self.nodes[node].boundary:
            # A boundary becomes a member only once a record depends on it, and a decision must not wait for that.
            node = self.nodes[node].parent
        new = record.uuid not in self._hung
        self.duplicates += not new
        self._hung[record.uuid] = node
        return new

    def holds(self, record: Hung) -> bool:
        node = self._hung.get(record.uuid)
        return node is None or node in self.members

    def clashes(self, record: Placed) -> bool:
        """Whether a record of another kind already has this id."""
        node = self.nodes.get(record.uuid)
        if isinstance(record, Message | Attachment | Boundary):
            return record.uuid in self._hung or (node is not None and node.boundary != isinstance(record, Boundary))
        return node is not None

    def resolve(self, uuid: str | None) -> str | None:
        """Return the node that a parent id refers to."""
        if uuid is None or uuid in self.nodes:
            return uuid
        return self._hung[uuid] if uuid in self._hung else self._links.get(uuid)

    def _above(self, parent: str | None) -> str | None:
        node = self.resolve(parent)
        return self.leaf if node is None and parent is not None else node

    def has_answer(self, message_id: str) -> bool:
        return message_id in self._keys

    def belongs(self, record: Grown) -> bool:
        """Whether the record is on the same side as the first message: the main conversation, or that of a subagent."""
        if self._sidechain is None and not isinstance(record, Boundary):
            self._sidechain = record.sidechain
        return self._sidechain is None or record.sidechain == self._sidechain

    def grow(self, record: Grown) -> bool:
        """Add a node. Return False if the conversation switched to another branch."""
        if record.uuid in self.nodes:
            self.duplicates += 1
            self._learn(record)
            return False
        node = self._node(record)
        self._index(record.uuid, node)
        self._find_cycle(record.uuid)
        if node.boundary:
            return True
        return self._place(record.uuid, node)

    def problems(self) -> list[str]:
        """Return sentences about records that a reader may miss: those with the id of another one, and cycles of parents."""
        found = []
        if self.duplicates:
            have = plural(self.duplicates, "1 record has", f"{self.duplicates:,} records have")
            found.append(f"{have} the id of an earlier record; the later one counts.")
        if self.cycles:
            are = plural(self.cycles, "1 record is its own ancestor", f"{self.cycles:,} records are their own ancestors")
            found.append(f"{are} (a cycle of parents); the order in the file counts.")
        return found

    def _find_cycle(self, uuid: str) -> None:
        """Count a cycle if a record that named this one as its parent, before it came, is among its ancestors."""
        waiting = self.missing.pop(uuid, None)
        at: str | None = uuid if waiting is not None and self.cycles < MAX_CYCLES else None
        while at is not None:
            if at == waiting:
                self.cycles += 1
                return
            at = self.nodes[at].parent

    def rewind(self, target: str | None) -> None:
        """Cut off everything after `target`. An unknown target is before the part of the log that was read.

        The new leaf is the last message of the remaining path. It is never a result that joined out of order, because the records
        between that result and its call would be lost.
        """
        self.bridged += target is not None and target not in self.nodes
        end = self.nodes[target].seq if target is not None and target in self.members else 0
        self._cut.update(uuid for uuid in self.members if self.nodes[uuid].seq > end)
        at = self.leaf
        while at is not None and (self.nodes[at].seq > end or self.nodes[at].boundary):
            at = self.nodes[at].parent
        self.leaf = at
        self.members = self._members_of(at) if at is not None else {}

    def leaf_without(self, gone: set[str]) -> str | None:
        """Return the last record of the path that is not among the revoked ones at its end."""
        at = self.leaf
        while at is not None and at in gone:
            at = self.nodes[at].parent
        return at

    def retreat(self, gone: set[str]) -> None:
        """Continue before the revoked records at the end of the path, so that no later message has one of them as its parent.

        Decisions that were attached to them, such as a pin, are attached to the new leaf.
        """
        leaf = self.leaf_without(gone)
        if leaf is None or leaf == self.leaf:
            return
        self.leaf, self.members = leaf, self._members_of(leaf)
        self._hung = {uuid: leaf if node in gone else node for uuid, node in self._hung.items()}

    def first_after(self, gone: set[str]) -> str | None:
        """Return the record on the path whose parent is among the revoked ones."""
        at = self.leaf
        while at is not None and (at in gone or self.nodes[at].parent not in gone):
            at = self.nodes[at].parent
        return at

    def _learn(self, record: Grown) -> None:
        """Merge a record whose id already exists: its new calls and results count too, its position stays."""
        old, new = self.nodes[record.uuid], self._node(record)
        calls = tuple(call for call in new.calls if call not in old.calls)
        results = tuple(call for call in new.results if call not in old.results)
        self._index(
            record.uuid, msgspec.structs.replace(old, key=new.key if old.key is None else None, calls=calls, results=results)
        )
        self.nodes[record.uuid] = msgspec.structs.replace(
            old, key=old.key if old.key is not None else new.key, calls=old.calls + calls, results=old.results + results
        )
        if self.leaf is not None:
            self.members = self._members_of(self.leaf)

    def _node(self, record: Grown) -> Node:
        declared = record.logical_parent if isinstance(record, Boundary) else record.parent
        parent = self.resolve(declared)
        if parent is None and isinstance(record, Boundary) and declared is None:
            parent = self.leaf  # a boundary replaces what is before it, also if it does not name it
        elif parent is None and declared is not None:
            if len(self.missing) < MAX_LINKS and declared not in self._links and declared not in self._hung:
                self.missing[declared] = record.uuid
            if self.leaf is not None:
                self.bridged += 1
                parent = self.leaf
        self._seq += 1
        if isinstance(record, Boundary):
            return Node(self._seq, parent, None, (), (), boundary=True)
        if isinstance(record, Message) and record.role == "assistant":
            calls = tuple(block.id for block in record.blocks if isinstance(block, ToolUse))
            return Node(self._seq, parent, record.message_id, calls, ())
        results = tuple(block.tool_use_id for block in record.blocks if isinstance(block, ToolResult))
        return Node(self._seq, parent, None, (), results)

    def _index(self, uuid: str, node: Node) -> None:
        self.nodes[uuid] = node
        for call in node.calls:
            self._calls.setdefault(call, uuid)
        for call in node.results:
            self._results.setdefault(call, []).append(uuid)
        if node.key is not None:
            self._keys.setdefault(node.key, []).append(uuid)

    def _place(self, uuid: str, node: Node) -> bool:
        if self._follows_leaf(uuid, node):
            return True
        if self._joins(node):
            self.members[uuid] = None
            return True
        if self._keeps_all(node):
            self.members[uuid] = None
            self.leaf = uuid
            return True
        before = self.members
        self.leaf = uuid
        self.members = self._members_of(uuid)
        # Any other new member is before this record, in the middle of the part that is already folded.
        return len(self.members) == len(before) + 1 and before.keys() <= self.members.keys()

    def _follows_leaf(self, uuid: str, node: Node) -> bool:
        """The common case: the record follows the leaf, or a boundary right after it, and brings back no other records."""
        parent, through = node.parent, None
        if parent is not None and self.nodes[parent].boundary:
            through, parent = parent, self.nodes[parent].parent
        if parent != self.leaf or self._wakes(node):
            return False
        if through is not None:
            self.members[through] = None
        self.members[uuid] = None
        self.leaf = uuid
        return True

    def _joins(self, node: Node) -> bool:
        """Whether the node is a result of a member's call, or another block of a member's answer, but does not follow the leaf."""
        if self._wakes(node):
            return False
        if node.results:
            return all(self._calls.get(call) in self.members for call in node.results)
        return node.key is not None and any(other in self.members for other in self._keys[node.key][:-1])

    def _keeps_all(self, node: Node) -> bool:
        """Whether a quick check proves that all members stay when the leaf moves after `node.parent`.

        It proves that the few records between the old leaf and the point where both paths meet are siblings and results of members
        that stay. Without a proof, the caller computes the members from scratch.
        """
        if node.parent not in self.members or self._wakes(node):
            return False
        old, new = self._upwards(self.leaf), self._upwards(node.parent)
        meet = next((uuid for uuid in old if uuid in new), None)
        if meet is None:
            return False
        stays = set(new[: new.index(meet) + 1])
        if not stays <= self.members.keys():
            return False
        keys = {self.nodes[uuid].key for uuid in stays} - {None}
        for uuid in reversed(old[: old.index(meet)]):
            other = self.nodes[uuid]
            is_result = bool(other.results) and all(self._calls.get(call) in stays for call in other.results)
            if uuid in self._cut or (other.key not in keys and not is_result):
                return False
            stays.add(uuid)
        return True

    def _upwards(self, uuid: str | None) -> list[str]:
        path: list[str] = []
        while uuid is not None and len(path) < MAX_DETOUR:
            path.append(uuid)
            uuid = self.nodes[uuid].parent
        return path

    def boundary_above(self, uuid: str) -> str | None:
        return next((above for above in self._upwards(uuid) if self.nodes[above].boundary), None)

    def _wakes(self, node: Node) -> bool:
        """Whether this record would bring back records of another branch."""
        siblings = self._keys[node.key][:-1] if node.key is not None else ()
        results = (other for call in node.calls for other in self._results.get(call, ()))
        return any(other not in self.members and other not in self._cut for other in (*siblings, *results))

    def _members_of(self, leaf: str) -> dict[str, None]:
        """Compute the members from scratch, by the definition in the module docstring."""
        chain: set[str] = set()
        at: str | None = leaf
        while at is not None and at not in chain:
            chain.add(at)
            at = self.nodes[at].parent
        keys = {self.nodes[uuid].key for uuid in chain} - {None}
        chain.update(other for key in keys if key is not None for other in self._keys[key] if other not in self._cut)
        calls = [call for uuid in chain for call in self.nodes[uuid].calls]
        chain.update(other for call in calls for other in self._results.get(call, ()) if other not in self._cut)
        return dict.fromkeys(sorted(chain, key=lambda uuid: self.nodes[uuid].seq))
