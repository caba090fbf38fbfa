"""The file of the MCP memory server: one line of JSON per entity and relation of a knowledge graph.

    {"type":"entity","name":"ann","entityType":"person","observations":["Leads the audit"]}
    {"type":"relation","from":"ann","to":"billing","relationType":"works on"}

An entity becomes a memory, its observations a list in the body, and its relations items of that list: `- → works on
[[billing]]`. Data without a place in an entity goes under its key `lamina`, which the server's own reader skips; the server
drops it when it saves the graph. An import also accepts one document with `entities` and `relations`, as the server's tools
return it. The order of relations of different entities is not kept; a relation without a source entity is reported and skipped.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from .portable_topic import (
    Imported,
    JsonRow,
    PortableTopic,
    document,
    extras_beyond,
    kind_of,
    make_description,
    rows,
    with_extras,
    without_field,
)

# The type of untyped entities, since the server requires one.
UNTYPED = "memory"
_RELATION = re.compile(r"→ (?P<type>.+) \[\[(?P<to>.+)\]\]", re.DOTALL)


class Relation(NamedTuple):
    to: str
    type: str


def read_mcp_memory(text: str) -> Imported:
    found, problems = _rows(text)
    entities, relations = list[Mapping[str, Any]](), dict[str, list[Relation]]()
    for line, row in found:
        match row:
            case {"type": "entity", "name": str(), "entityType": str(), "observations": [*said]} if {*map(type, said)} <= {str}:
                entities.append(row)
            case {"type": "relation", "from": str(source), "to": str(to), "relationType": str(kind)}:
                relations.setdefault(source, []).append(Relation(to, kind))
            case _:
                problems.append(f"line {line}: neither an entity (with name, entityType and observations) nor a relation")
    topics = [_topic(row, relations.pop(row["name"], [])) for row in entities]
    lost = [
        f"relation {source!a} → {each.to!a}: entity {source!a} not found" for source, all_ in relations.items() for each in all_
    ]
    return Imported(tuple(topics), (*problems, *lost))


def _rows(text: str) -> tuple[list[JsonRow], list[str]]:
    """Read one document with a graph, or one row per line."""
    graph = document(text, "the file", strict=False)
    if isinstance(graph, dict) and isinstance(graph.get("entities"), list):
        named = [("entity", row) for row in graph["entities"]]
        related = graph.get("relations")
        named += [("relation", row) for row in related] if isinstance(related, list) else []
        return [
            JsonRow(number, {**row, "type": kind} if isinstance(row, dict) else row)
            for number, (kind, row) in enumerate(named, 1)
        ], []
    return rows(text)


def _topic(row: Mapping[str, Any], relations: Sequence[Relation]) -> PortableTopic:
    extras = row.get("lamina")
    said: list[str] = row["observations"]
    shown = [each for each in relations if read_relation(relation_item(each)) == each]
    hidden = [[each.to, each.type] for each in relations if each not in shown]
    whole = isinstance(extras, dict) and extras.get("text") is True and len(said) == 1 and not relations
    body = said[0] if whole else listed([*map(escape_observation, said), *map(relation_item, shown)])
    kind = row["entityType"]
    fields = {} if kind == (kind_of(kind) or UNTYPED) else {"entityType": kind}
    carried = PortableTopic(row["name"], make_description("\n".join(said[:1])), kind_of(kind), body, None, fields)
    topic = with_extras(carried, extras)
    return msgspec.structs.replace(topic, fields={**topic.fields, "relations": hidden}) if hidden else topic


def write_mcp_memory(topics: Sequence[PortableTopic]) -> str:
    entities, relations = list[dict[str, Any]](), list[dict[str, Any]]()
    for topic in topics:
        entity, related = _entity(topic)
        entities.append(entity)
        relations += [{"type": "relation", "from": topic.name, "to": to, "relationType": kind} for to, kind in related]
    return "".join(msgspec.json.encode(row).decode() + "\n" for row in [*entities, *relations])


def _entity(topic: PortableTopic) -> tuple[dict[str, Any], list[Relation]]:
    items = unlisted(topic.body)
    whole = items is None
    related = [found for item in items or () if (found := read_relation(item)) is not None]
    said = [topic.body] if items is None else [unescape_observation(item) for item in items if read_relation(item) is None]
    if items is not None and listed([*map(escape_observation, said), *map(relation_item, related)]) != topic.body:
        whole, said, related = True, [topic.body], []
    stated = topic.fields.get("entityType")
    kind = stated if isinstance(stated, str) else topic.type or UNTYPED
    row = {"type": "entity", "name": topic.name, "entityType": kind, "observations": said}
    hidden = _hidden(topic.fields.get("relations"))
    bare = without_field(topic, "relations") if hidden else topic
    extras = {**({"text": True} if whole else {}), **extras_beyond(bare, _topic(row, related))}
    return row | ({"lamina": extras} if extras else {}), [*related, *hidden]


def as_saved_by_server(topic: PortableTopic) -> PortableTopic:
    """Return a memory as it reads back after the server has saved the file, which drops the key `lamina`."""
    row, related = _entity(topic)
    return _topic({key: value for key, value in row.items() if key != "lamina"}, related)


def _hidden(value: object) -> list[Relation]:
    """Return relations that cannot be written as list items, from their field; empty if the field is not ours."""
    found = list[Relation]()
    for pair in value if isinstance(value, list) else ():
        match pair:
            case [str(to), str(kind)] if read_relation(relation_item(Relation(to, kind))) != Relation(to, kind):
                found.append(Relation(to, kind))
            case _:
                return []
    return found


# Lists


def listed(items: Sequence[str]) -> str:
    return "\n".join("- " + item.replace("\n", "\n  ") for item in items)


def unlisted(body: str) -> list[str] | None:
    """Return the items of a body that is exactly a list as `listed` writes it; None otherwise."""
    if not body:
        return []
    items = [part.removeprefix("- ").replace("\n  ", "\n") for part in re.split(r"\n(?=- )", body)]
    return items if listed(items) == body else None


def relation_item(relation: Relation) -> str:
    return f"→ {relation.type} [[{relation.to}]]"


def read_relation(item: str) -> Relation | None:
    found = _RELATION.fullmatch(item)
    return Relation(found["to"], found["type"]) if found else None


def escape_observation(observation: str) -> str:
    """Escape an observation that looks like a relation, or like an escaped one, with a backslash."""
    return f"\\{observation}" if re.match(r"\\*→ ", observation) else observation


def unescape_observation(item: str) -> str:
    return item[1:] if re.match(r"\\+→ ", item) else item


def looks_like(row: object) -> bool:
    match row:
        case {"type": "entity", "observations": _} | {"type": "relation", "relationType": _} | {"entities": list()}:
            return True
        case _:
            return False
