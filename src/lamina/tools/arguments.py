"""Validation of a tool's arguments, for the part of JSON Schema that our schemas use.

Models send numbers and booleans as strings, lists as JSON text, null for "not given", and arguments of other programs'
tools: all of these are accepted. Missing values, other wrong types (a number where text is expected may have lost digits) and
values out of range are refused with one sentence that names the field.

Supported: object with properties and required; string (minLength, maxLength, enum), integer and number (minimum, maximum),
boolean, array (items, maxItems). Anything else in a schema is our own mistake and raises.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ..core.blocks import Wire, scrub
from ..core.decoding import UNDECODABLE

# A message names a few of them; a model that sends a hundred has mixed up two tools.
_MOST_NAMED = 5
# Longer values are cut.
_SHOWN = 60


class InvalidArguments(Exception):
    """The arguments are invalid; the text is a sentence for the model."""


class CheckedArguments(NamedTuple):
    values: Wire
    note: str  # the ignored arguments, for the model to know


Schema: TypeAlias = Mapping[str, Any]


def check_arguments(schema: Schema, arguments: object) -> CheckedArguments:
    if not isinstance(arguments, Mapping):
        raise InvalidArguments(f"the arguments must be a JSON object, not {_describe(arguments)}.")
    values = _object(schema, scrub(arguments), "")
    known = schema["properties"]
    unknown = [str(name) for name in arguments if name not in known]
    if not unknown:
        return CheckedArguments(values, "")
    named = ", ".join(repr(name[:_SHOWN]) for name in unknown[:_MOST_NAMED]) + (", …" if len(unknown) > _MOST_NAMED else "")
    return CheckedArguments(values, f"[Ignored: {named}. This tool accepts {', '.join(known)}.]")


def _object(schema: Schema, given: Mapping[str, Any], where: str) -> Wire:
    values: Wire = {}
    for name, inner in schema["properties"].items():
        place = f"{where}.{name}" if where else name
        if given.get(name) is not None:
            values[name] = _value(inner, given[name], place)
        elif name in schema.get("required", ()):
            raise InvalidArguments(f"{place} is missing. It must be {_wanted(inner)}.")
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
        case "object" if isinstance(given, Mapping):
            return _object(schema, given, where)
        case "object":
            raise _wrong(schema, given, where)
        case other:
            raise ValueError(f"a schema with the type {other!r} can't be checked")


def _string(schema: Schema, given: Any, where: str) -> str:
    if not isinstance(given, str) or given not in schema.get("enum", (given,)):
        raise _wrong(schema, given, where)
    if len(given) < schema.get("minLength", 0):
        raise InvalidArguments(f"{where} must not be empty.")
    if len(given) > schema.get("maxLength", math.inf):
        raise InvalidArguments(f"{where} is too long ({len(given):,} characters, at most {schema['maxLength']:,}).")
    return given


def _number(schema: Schema, given: Any, where: str) -> int | float:
    if isinstance(given, str):
        try:
            given = float(given) if not given.strip().lstrip("+-").isdecimal() else int(given)
        except ValueError:
            raise _wrong(schema, given, where) from None
    # `isfinite` cannot take a whole number of hundreds of digits.
    if isinstance(given, bool) or not isinstance(given, int | float) or (isinstance(given, float) and not math.isfinite(given)):
        raise _wrong(schema, given, where)
    number = int(given) if given == int(given) else given
    whole = schema["type"] == "integer"
    if (whole and not isinstance(number, int)) or not schema.get("minimum", -math.inf) <= number <= schema.get(
        "maximum", math.inf
    ):
        raise _wrong(schema, given, where)
    return number


def _boolean(schema: Schema, given: Any, where: str) -> bool:
    if isinstance(given, str) and given.strip().lower() in ("true", "false"):
        return given.strip().lower() == "true"
    if not isinstance(given, bool):
        raise _wrong(schema, given, where)
    return given


def _array(schema: Schema, given: Any, where: str) -> list[Any]:
    if isinstance(given, str):
        try:
            given = msgspec.json.decode(given)
        except UNDECODABLE:
            raise _wrong(schema, given, where) from None
    if not isinstance(given, list):
        raise _wrong(schema, given, where)
    if len(given) > schema.get("maxItems", math.inf):
        raise InvalidArguments(f"{where} has {len(given):,} entries; at most {schema['maxItems']:,} are accepted.")
    return [_value(schema["items"], item, f"{where}[{index}]") for index, item in enumerate(given)]


def _wrong(schema: Schema, given: object, where: str) -> InvalidArguments:
    return InvalidArguments(f"{where} must be {_wanted(schema)}, not {_shown(given)[:_SHOWN]}.")


def _shown(given: object) -> str:
    match given:
        case str():
            return repr(given[:_SHOWN])
        case int() | float() if not isinstance(given, bool):
            return str(given)
        case _:
            return _describe(given)


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


def _describe(given: object) -> str:
    match given:
        case None | bool():
            return msgspec.json.encode(given).decode()
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
