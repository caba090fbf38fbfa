"""The nine tools of the reference memory server, over Lamina's store, for agents that were set up for it.

An entity is a memory: its observations and relations are the list in the body, as an import of that server's file writes them, and its
type begins the description. Names, arguments and results are those of the reference server. A change goes through the same guard, modes
and journal as any other. Invariant: a memory that is not such a list is shown as one observation, and is never rewritten.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ..core.blocks import Wire
from ..core.errors import InputError, LaminaError
from ..core.fence import escape
from ..maintenance.transfer.mcp_memory import (
    UNTYPED,
    Relation,
    escape_observation,
    listed,
    read_relation,
    relation_item,
    unescape_observation,
    unlisted,
)
from ..maintenance.transfer.portable_topic import kind_of, make_description
from ..memory.memory import Memory
from ..memory.store.contract import ChangeReason, Proposed
from ..memory.store.draft import Draft
from ..memory.store.topic import PERSONAL, Kind, Topic
from ..tools.tool import Builtin, Context, ToolOutput, failure
from .memory_tools import origin_for, printable_name, save_for_client
from .project import ServedProject

# One call creates or deletes at most this many; each is a write with its journal.
MOST_ROWS = 100
LONGEST = 10_000

_TEXT: Wire = {"type": "string", "minLength": 1, "maxLength": LONGEST}
_TEXTS: Wire = {"type": "array", "items": _TEXT, "maxItems": MOST_ROWS}


class Entity(NamedTuple):
    name: str
    kind: str
    observations: list[str]
    relations: list[Relation]
    topic: Topic | None = None
    whole: bool = True  # whether the body is a list that can be written again


class ReferenceTools:
    def __init__(self, project: ServedProject, client: str) -> None:
        self._project = project
        self._origin = origin_for(printable_name(client))
        self._why = ChangeReason("agent", f"saved by {self._origin}")

    def tools(self) -> tuple[Builtin, ...]:
        entity = _object({"name": _TEXT, "entityType": _TEXT, "observations": _TEXTS})
        relation = _object({"from": _TEXT, "to": _TEXT, "relationType": _TEXT})
        added = _object({"entityName": _TEXT, "contents": _TEXTS})
        deleted = _object({"entityName": _TEXT, "observations": _TEXTS})
        make = self._tool
        return (
            make("create_entities", "Create entities with observations.", {"entities": _rows(entity)}, self._create_entities),
            make("create_relations", "Relate entities, in active voice.", {"relations": _rows(relation)}, self._create_relations),
            make("add_observations", "Add observations to entities.", {"observations": _rows(added)}, self._add_observations),
            make("delete_entities", "Delete entities with their relations.", {"entityNames": _TEXTS}, self._delete_entities),
            make("delete_observations", "Delete observations.", {"deletions": _rows(deleted)}, self._delete_observations),
            make("delete_relations", "Delete relations.", {"relations": _rows(relation)}, self._delete_relations),
            make("read_graph", "Read all entities and relations.", {}, self._read_graph, read_only=True),
            make("search_nodes", "Find entities by a query.", {"query": _TEXT}, self._search_nodes, read_only=True),
            make("open_nodes", "Read entities by name.", {"names": _TEXTS}, self._open_nodes, read_only=True),
        )

    def _tool(
        self, name: str, description: str, properties: Wire, act: Callable[[Memory, Wire], Any], *, read_only: bool = False
    ) -> Builtin:
        def run(given: Wire, _: Context) -> ToolOutput:
            try:
                with self._project.open_memory() as memory:
                    return ToolOutput(escape(json.dumps(act(memory, given), ensure_ascii=False, indent=1)))
            except LaminaError as error:
                return failure(f"{name}: {error}")

        schema: Wire = {"type": "object", "properties": properties, "required": list(properties)}
        return Builtin(name=name, description=description, schema=schema, read_only=read_only, act=run)

    # Changes

    def _create_entities(self, memory: Memory, given: Wire) -> list[Wire]:
        made = list[Wire]()
        for row in given["entities"]:
            if memory.get(row["name"]) is None:  # the reference server ignores entities that exist
                entity = Entity(row["name"], row["entityType"], list(dict.fromkeys(row["observations"])), [])
                self._write(memory, entity)
                made.append(_shown(entity))
        return made

    def _create_relations(self, memory: Memory, given: Wire) -> list[Wire]:
        made = list[Wire]()
        for row in given["relations"]:
            entity, relation = _known(memory, row["from"]), Relation(row["to"], row["relationType"])
            if relation not in entity.relations:
                self._write(memory, entity._replace(relations=[*entity.relations, relation]))
                made.append(row)
        return made

    def _add_observations(self, memory: Memory, given: Wire) -> list[Wire]:
        done = list[Wire]()
        for row in given["observations"]:
            entity = _known(memory, row["entityName"])
            new = [said for said in dict.fromkeys(row["contents"]) if said not in entity.observations]
            if new:
                self._write(memory, entity._replace(observations=[*entity.observations, *new]))
            done.append({"entityName": entity.name, "addedObservations": new})
        return done

    def _delete_entities(self, memory: Memory, given: Wire) -> str:
        gone = [entity for entity in _graph(memory) if entity.name in given["entityNames"]]
        names = {entity.name for entity in gone}
        for entity in gone:
            self._project.count_change()
            memory.remove(entity.name, why=self._why)
        for entity in _graph(memory):
            kept = [relation for relation in entity.relations if relation.to not in names]
            if entity.whole and len(kept) < len(entity.relations):
                self._write(memory, entity._replace(relations=kept))
        return "Entities deleted successfully"

    def _delete_observations(self, memory: Memory, given: Wire) -> str:
        for row in given["deletions"]:
            if (topic := memory.get(row["entityName"])) is not None:
                entity = _entity(topic)
                kept = [said for said in entity.observations if said not in row["observations"]]
                if len(kept) < len(entity.observations):
                    self._write(memory, entity._replace(observations=kept))
        return "Observations deleted successfully"

    def _delete_relations(self, memory: Memory, given: Wire) -> str:
        for row in given["relations"]:
            if (topic := memory.get(row["from"])) is not None:
                entity = _entity(topic)
                kept = [relation for relation in entity.relations if relation != (row["to"], row["relationType"])]
                if len(kept) < len(entity.relations):
                    self._write(memory, entity._replace(relations=kept))
        return "Relations deleted successfully"

    def _write(self, memory: Memory, entity: Entity) -> None:
        if not entity.whole:
            raise InputError(
                entity.name, "is a memory in prose, not a list of observations", "change it with `lamina mcp`'s own tools"
            )
        self._project.count_change()
        body = listed([*map(escape_observation, entity.observations), *map(relation_item, entity.relations)])
        about = make_description("\n".join(entity.observations[:1])) or entity.name
        name = entity.topic.file if entity.topic is not None else entity.name
        draft = Draft(name, _type(entity), f"{entity.kind}: {about}", body or f"- {entity.kind}", origin=self._origin)
        done = save_for_client(memory, draft, self._why)
        if isinstance(done, Proposed):
            raise InputError(entity.name, "the change waits for the user's approval", f"they run `lamina inbox accept {done.id}`")

    # Reading

    def _read_graph(self, memory: Memory, _: Wire) -> Wire:
        return _as_graph(_graph(memory))

    def _search_nodes(self, memory: Memory, given: Wire) -> Wire:
        return _as_graph([_entity(found.topic) for found in memory.recall(given["query"], k=20)])

    def _open_nodes(self, memory: Memory, given: Wire) -> Wire:
        found = [topic for name in given["names"] if (topic := memory.get(name)) is not None]
        return _as_graph([_entity(topic) for topic in found])


def _type(entity: Entity) -> Kind:
    """Return the memory's type. A client's call does not show that the user said it, so a new one is not about the user."""
    known = entity.topic.type if entity.topic is not None else kind_of(entity.kind)
    return known if known is not None and (entity.topic is not None or known not in PERSONAL) else "reference"


def _object(properties: Wire) -> Wire:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _rows(item: Wire) -> Wire:
    return {"type": "array", "items": item, "maxItems": MOST_ROWS}


def _graph(memory: Memory) -> list[Entity]:
    return [_entity(topic) for topic in memory.topics()]


def _known(memory: Memory, name: str) -> Entity:
    if (topic := memory.get(name)) is None:
        raise InputError("entityName", f"entity {name[:100]!r} not found", "create it first")
    return _entity(topic)


def _entity(topic: Topic) -> Entity:
    items = unlisted(topic.body.strip())
    kind, colon, _ = topic.description.partition(": ")
    stated = kind if colon and len(kind) <= 60 else topic.type or UNTYPED
    if items is None:
        return Entity(topic.name, stated, [topic.body], [], topic, whole=False)
    related = [found for item in items if (found := read_relation(item)) is not None]
    return Entity(
        topic.name, stated, [unescape_observation(item) for item in items if read_relation(item) is None], related, topic
    )


def _shown(entity: Entity) -> Wire:
    return {"name": entity.name, "entityType": entity.kind, "observations": entity.observations}


def _as_graph(entities: Sequence[Entity]) -> Wire:
    """Return entities and the relations between them, as the reference server does."""
    names = {entity.name for entity in entities}
    related: Iterable[Wire] = (
        {"from": entity.name, "to": each.to, "relationType": each.type}
        for entity in entities
        for each in entity.relations
        if each.to in names
    )
    return {"entities": [_shown(entity) for entity in entities], "relations": list(related)}
