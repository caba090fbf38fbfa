"""Remote flags: a plain mapping, or a function that is asked for one flag at a time.

A flag has the key of the setting it sets (`lamina.recall`, `autoDreamEnabled`, `lamina.notes.firstAt`). None means that nobody
said anything. A function that fails counts as having said nothing: flags are asked between turns, and a server that is away must
not stop a conversation. OpenFeature is an extra, imported when `openfeature_flags` is called and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

from .errors import MissingExtra

FlagReader: TypeAlias = Callable[[str, object], object]
Flags: TypeAlias = Mapping[str, object] | FlagReader

# What a reader of flags may raise when its server is away or its answer is broken.
_READER_FAULTS = (OSError, LookupError, ValueError, TypeError, RuntimeError)


class Mistyped(NamedTuple):
    """An answer whose type is not the setting's: a function returns it instead of the value it cannot give."""

    problem: str


def ask(flags: Flags, key: str, sample: object) -> object | None:
    """What is said about `key`; `sample` has the type that is expected."""
    if isinstance(flags, Mapping):
        return flags.get(key)
    try:
        return flags(key, sample)
    except _READER_FAULTS as fault:
        return Mistyped(f"and asking for it failed ({type(fault).__name__})")


def openfeature_flags(*, domain: str | None = None, context: Any = None, client: Any = None) -> FlagReader:
    """Flags from this program's OpenFeature provider; `context` is an EvaluationContext, `client` one that exists already."""
    if client is None:
        try:
            api = import_module("openfeature.api")
        except ImportError:
            raise MissingExtra("openfeature-sdk", "flags") from None
        client = api.get_client(domain)

    def read(key: str, sample: object) -> object | None:
        return _openfeature_value(client, context, key, sample)

    return read


def _openfeature_value(client: Any, context: Any, key: str, sample: object) -> object | None:
    details = _openfeature_details(client, context, key, sample)
    if _name(details.error_code) == "TYPE_MISMATCH" and isinstance(sample, float):
        # A provider that reads its flags from JSON takes 24 for an integer.
        details = client.get_integer_details(key, int(sample), context)
    if _name(details.error_code) == "TYPE_MISMATCH":
        return Mistyped("not what the flag holds")
    if details.error_code is not None or _name(details.reason) == "DISABLED":
        return None
    # The value that was handed in came back: whether the provider or nobody said it can't be told, so nobody did.
    if _name(details.reason) == "DEFAULT" and details.value == sample:
        return None
    value: object = details.value
    return value


def _openfeature_details(client: Any, context: Any, key: str, sample: object) -> Any:
    match sample:
        case bool():
            return client.get_boolean_details(key, sample, context)
        case int():
            return client.get_integer_details(key, sample, context)
        case float():
            return client.get_float_details(key, sample, context)
        case Mapping():
            return client.get_object_details(key, dict(sample), context)
        case _:
            return client.get_string_details(key, str(sample), context)


def _name(code: Any) -> str:
    return str(getattr(code, "value", code))
