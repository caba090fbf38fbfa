"""A tool's arguments against its schema: the small part of JSON Schema that our schemas use.

Owns what is forgiven and what is refused. Models send numbers and booleans as strings, lists as JSON text, null for "not given"
and arguments of other programs' tools: all that is understood. What is missing, of another kind or out of range is refused with
one sentence that names the field.

Understood: object with properties and required; string (minLength, maxLength, enum), integer and number (minimum, maximum),
boolean, array (items, minItems, maxItems). Anything else in a schema is a mistake of ours and raises.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ..core.blocks import Wire, scrub

# A sentence names a few of them; a model that sends a hundred has mixed up two tools.
_MOST_NAMED = 5
# Longer values are shown by their beginning.
_SHOWN = 60


class Checked(NamedTuple):
    values: Wire
    notes: tuple[str, ...]  # what was ignored, for the model to know


class Refused(NamedTuple):
    sentence: str


class _Bad(NamedTuple):
    where: str
    problem: str


Schema: TypeAlias = Mapping[str, Any]


def check(schema: Schema, arguments: object) -> Checked | Refused:
    if not isinstance(arguments, Mapping):
        return Refused(f"the arguments must be a JSON object, not {_kind(arguments)}.")
    read = _object(schema, scrub(arguments), "")
    if isinstance(read, _Bad):
        return Refused(f"{read.where} {read.problem}.")
    known = schema["properties"]
    unknown = [str(name) for name in arguments if name not in known]
    if not unknown:
        return Checked(read, ())
    named = ", ".join(repr(name[:_SHOWN]) for name in unknown[:_MOST_NAMED]) + (", …" if len(unknown) > _MOST_NAMED else "")
    return Checked(read, (f"Ignored: {named}. This tool knows {', '.join(known)}.",))


def _object(schema: Schema, given: Mapping[str, Any], where: str) -> Wire | _Bad:
    values: Wire = {}
    for name, inner in schema["properties"].items():
        place = f"{where}.{name}" if where else name
        if given.get(name) is None:
            if name in schema.get("required", ()):
                return _Bad(place, f"is missing: it must be {_wanted(inner)}")
            continue
        value = _value(inner, given[name], place)
        if isinstance(value, _Bad):
            return value
        values[name] = value
    return values


def _value(schema: Schema, given: Any, where: str) -> Any:
    match schema["type"]:
        case "string":
            return _string(schema, given, where)
        case "integer" | "number":
            return _number(schema, given, where)
        case "boolean":
            return _boolean(schema, given, where)
        case "array":
            return _array(schema, given, where)
        case "object":
            return _object(schema, given, where) if isinstance(given, Mapping) else _wrong(schema, given, where)
        case other:
            raise ValueError(f"a schema with the type {other!r} can't be checked")


def _string(schema: Schema, given: Any, where: str) -> str | _Bad:
    if isinstance(given, int | float) and not isinstance(given, bool):
        given = str(given)
    if not isinstance(given, str):
        return _wrong(schema, given, where)
    if "enum" in schema and given not in schema["enum"]:
        return _wrong(schema, given, where)
    if len(given) < schema.get("minLength", 0):
        return _Bad(where, "must not be empty")
    if len(given) > schema.get("maxLength", math.inf):
        return _Bad(where, f"is too long ({len(given):,} characters, at most {schema['maxLength']:,})")
    return given


def _number(schema: Schema, given: Any, where: str) -> int | float | _Bad:
    if isinstance(given, str):
        try:
            given = float(given) if not given.strip().lstrip("+-").isdecimal() else int(given)
        except ValueError:
            return _wrong(schema, given, where)
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        return _wrong(schema, given, where)
    number = int(given) if given == int(given) else given
    if schema["type"] == "integer" and not isinstance(number, int):
        return _wrong(schema, given, where)
    if not schema.get("minimum", -math.inf) <= number <= schema.get("maximum", math.inf):
        return _wrong(schema, given, where)
    return number


def _boolean(schema: Schema, given: Any, where: str) -> bool | _Bad:
    if isinstance(given, str) and given.strip().lower() in ("true", "false"):
        return given.strip().lower() == "true"
    return given if isinstance(given, bool) else _wrong(schema, given, where)


def _array(schema: Schema, given: Any, where: str) -> list[Any] | _Bad:
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _wrong(schema, given, where)
    if not isinstance(given, list):
        return _wrong(schema, given, where)
    if not schema.get("minItems", 0) <= len(given) <= schema.get("maxItems", math.inf):
        return _Bad(where, f"has {len(given):,} entries, at most {schema.get('maxItems', len(given)):,} are taken")
    values = []
    for index, item in enumerate(given):
        value = _value(schema["items"], item, f"{where}[{index}]")
        if isinstance(value, _Bad):
            return value
        values.append(value)
    return values


def _wrong(schema: Schema, given: object, where: str) -> _Bad:
    shown = given if isinstance(given, str) else None
    said = f"{shown[:_SHOWN]!r}" if shown is not None else str(given) if isinstance(given, int | float) else _kind(given)
    return _Bad(where, f"must be {_wanted(schema)}, not {said[:_SHOWN]}")


def _wanted(schema: Schema) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    words = {"string": "a string", "boolean": "true or false", "array": "a list", "object": "an object"}
    if (kind := schema["type"]) in words:
        return words[kind]
    word = "a whole number" if kind == "integer" else "a number"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{word} from {low:,} to {high:,}"
    return f"{word} of at least {low:,}" if low is not None else word


def _kind(given: object) -> str:
    match given:
        case None:
            return "null"
        case bool():
            return str(given).lower()
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
        case _:
            return f"a {type(given).__name__}"
