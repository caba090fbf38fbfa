"""The tree: which records of a log are the conversation.

Theory. Rewinding, retrying and editing history branch the tree; so do parallel tool results, which other programs hang on their
own call. Following parents from the last record alone therefore loses results. The members of a conversation are

    the ancestors of its leaf,
    every record that shares a message id with one of them,
    every result of a tool call among those,

in file order, less what a rewind record cut off. A record *extends* the log when all members stay and it comes behind them;
otherwise it *switches* to another branch. The leaf is the last message written, except that a result or sibling that joins out
of order does not move it.

A parent is looked up among the records before it, so a cycle cannot arise; a parent that is not there is bridged to the leaf and
counted. Decisions hang on a message and belong to the conversation while that message does. A boundary is a link in the chain
and a member once something rests on it. Of two records with one id the later counts, in the place of the first; an id that a
record of another kind has is refused. Both are counted.
"""

from __future__ import annotations

from typing import NamedTuple

from .blocks import ToolResult, ToolUse
from .records import Attachment, Boundary, Grown, Hung, Message, Placed

# Links of other programs' bookkeeping (progress, hooks) are looked up only by records close behind them; a bound keeps a log of
# millions of them in constant memory.
MAX_LINKS = 20_000
# One answer's parallel calls and their results: far more than any model asks for at once.
MAX_DETOUR = 200


class Node(NamedTuple):
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
        self._hung: dict[str, str | None] = {}  # decision → the message it hangs on
        self._links: dict[str, str | None] = {}  # any other record → the node it hangs on
        self._calls: dict[str, str] = {}  # tool_use id → node
        self._keys: dict[str, list[str]] = {}  # message id → nodes
        self._results: dict[str, list[str]] = {}  # tool_use id → nodes that hold a result of it
        self._cut: set[str] = set()  # left out by a rewind; siblings and results among them do not come back
        self._seq = 0
        self._sidechain: bool | None = None

    def attach(self, uuid: str, parent: str | None) -> None:
        """A record no view depends on: remember which node it hangs on, for those that name it as their parent."""
        self._links[uuid] = self._above(parent)
        if len(self._links) > MAX_LINKS:
            del self._links[next(iter(self._links))]

    def hang(self, record: Hung) -> bool:
        """A decision: it holds while the message it hangs on is a member. False when its id was there already."""
        node = self._above(record.parent)
        while node is not None and self.nodes[node].boundary:
            # A boundary is a member only once something rests on it, and a decision must not wait for that.
            node = self.nodes[node].parent
        new = record.uuid not in self._hung
        self.duplicates += not new
        self._hung[record.uuid] = node
        return new

    def holds(self, record: Hung) -> bool:
        node = self._hung.get(record.uuid)
        return node is None or node in self.members

    def clashes(self, record: Placed) -> bool:
        """Whether a record of another kind has this id."""
        node = self.nodes.get(record.uuid)
        if isinstance(record, Message | Attachment | Boundary):
            return record.uuid in self._hung or (node is not None and node.boundary != isinstance(record, Boundary))
        return node is not None

    def resolve(self, uuid: str | None) -> str | None:
        """The node a parent stands for."""
        if uuid is None or uuid in self.nodes:
            return uuid
        return self._hung[uuid] if uuid in self._hung else self._links.get(uuid)

    def _above(self, parent: str | None) -> str | None:
        node = self.resolve(parent)
        return self.leaf if node is None and parent is not None else node

    def has_answer(self, message_id: str) -> bool:
        return message_id in self._keys

    def belongs(self, record: Grown) -> bool:
        """A file may hold the side conversations of subagents; the first message says which kind this one is about."""
        if self._sidechain is None and not isinstance(record, Boundary):
            self._sidechain = record.sidechain
        return self._sidechain is None or record.sidechain == self._sidechain

    def grow(self, record: Grown) -> bool:
        """Add a node; False when the conversation switched to another branch."""
        if record.uuid in self.nodes:
            self.duplicates += 1
            self._learn(record)
            return False
        node = self._node(record)
        self._index(record.uuid, node)
        if node.boundary:
            return True
        return self._place(record.uuid, node)

    def rewind(self, target: str | None) -> None:
        """Leave out everything behind `target`. One that is not here stands before the part that was read. The leaf is then the
        last message of the path that is left: a result that had joined out of order is no place to go on from, what lies between
        it and its call would be lost."""
        self.bridged += target is not None and target not in self.nodes
        end = self.nodes[target].seq if target is not None and target in self.members else 0
        self._cut.update(uuid for uuid in self.members if self.nodes[uuid].seq > end)
        at = self.leaf
        while at is not None and (self.nodes[at].seq > end or self.nodes[at].boundary):
            at = self.nodes[at].parent
        self.leaf = at
        self.members = self._members_of(at) if at is not None else {}

    def _learn(self, record: Grown) -> None:
        """The same id again: what its new content calls and answers counts too, its place stays."""
        old, new = self.nodes[record.uuid], self._node(record)
        calls = tuple(call for call in new.calls if call not in old.calls)
        results = tuple(call for call in new.results if call not in old.results)
        self._index(record.uuid, old._replace(key=new.key if old.key is None else None, calls=calls, results=results))
        self.nodes[record.uuid] = old._replace(
            key=old.key if old.key is not None else new.key, calls=old.calls + calls, results=old.results + results
        )
        if self.leaf is not None:
            self.members = self._members_of(self.leaf)

    def _node(self, record: Grown) -> Node:
        declared = record.logical_parent if isinstance(record, Boundary) else record.parent
        parent = self.resolve(declared)
        if parent is None and declared is not None and self.leaf is not None:
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
        # Whoever is new besides this record stands before it, in the middle of what was folded.
        return len(self.members) == len(before) + 1 and before.keys() <= self.members.keys()

    def _follows_leaf(self, uuid: str, node: Node) -> bool:
        """The plain case: behind the leaf, or behind a boundary that stands on it, and waking nothing that was left out."""
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
        """A result of a member's call, or a further block of a member's answer, that is not behind the leaf."""
        if self._wakes(node):
            return False
        if node.results:
            return all(self._calls.get(call) in self.members for call in node.results)
        return node.key is not None and any(other in self.members for other in self._keys[node.key][:-1])

    def _keeps_all(self, node: Node) -> bool:
        """A quick proof that nobody leaves when the leaf moves behind `node.parent`: the few records between the old leaf and
        where the two paths meet are siblings and results of what stays. No proof means the definition is computed in full."""
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
        """Whether this record would bring records of another branch back in."""
        siblings = self._keys[node.key][:-1] if node.key is not None else ()
        results = (other for call in node.calls for other in self._results.get(call, ()))
        return any(other not in self.members and other not in self._cut for other in (*siblings, *results))

    def _members_of(self, leaf: str) -> dict[str, None]:
        """The definition, computed in full."""
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
