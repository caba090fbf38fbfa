"""Remote flags: a plain mapping, or a function that returns one flag at a time.

A flag has the key of the setting it sets (`lamina.recall`, `autoDreamEnabled`, `lamina.notes.firstAt`). None means that the flag is
not set. A function that fails leaves the flag unset too: flags are read between turns, and an unreachable flag server must not
stop a conversation. OpenFeature is an optional extra and is imported only when `openfeature_flags` is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

import msgspec

from .errors import MissingExtra

FlagReader: TypeAlias = Callable[[str, object], object]
Flags: TypeAlias = Mapping[str, object] | FlagReader

# Exceptions that a flag reader may raise when its server is unreachable or its response is invalid.
_READER_FAULTS = (OSError, LookupError, ValueError, TypeError, RuntimeError)


class Mistyped(msgspec.Struct, frozen=True):
    """The result of a flag reader if it cannot return a value of the setting's type; `problem` follows "expected …,"."""

    problem: str


def ask(flags: Flags, key: str, sample: object) -> object | None:
    """Return the flag `key`, or None if it is not set; `sample` is a value of the expected type."""
    if isinstance(flags, Mapping):
        return flags.get(key)
    try:
        return flags(key, sample)
    except _READER_FAULTS as fault:
        return Mistyped(f"but reading the flag failed ({type(fault).__name__})")


def openfeature_flags(*, domain: str | None = None, context: Any = None, client: Any = None) -> FlagReader:
    """Read flags from this program's OpenFeature provider; pass an EvaluationContext as `context`, or an existing `client`."""
    if client is None:
        try:
            api = import_module("openfeature.api")
        except ImportError:
            raise MissingExtra("openfeature-sdk", "flags") from None
        client = api.get_client(domain)

    def read(key: str, sample: object) -> object | None:
        details = _openfeature_details(client, context, key, sample)
        if _name(details.error_code) == "TYPE_MISMATCH" and isinstance(sample, float):
            # A provider that reads its flags from JSON treats 24 as an integer.
            details = client.get_integer_details(key, int(sample), context)
        if _name(details.error_code) == "TYPE_MISMATCH":
            return Mistyped("but the flag has another type")
        if details.error_code is not None or _name(details.reason) == "DISABLED":
            return None
        # The sample came back, so it may be the fallback or a real answer. Treat the flag as unset.
        if _name(details.reason) == "DEFAULT" and details.value == sample:
            return None
        value: object = details.value
        return value

    return read


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
