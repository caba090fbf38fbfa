"""Copies of the caller's arguments as plain values, so that later changes to the caller's objects never affect a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from types import NoneType

import msgspec

from ..language.wording import plural
from .blocks import Wire, scrub, text, unmarked
from .errors import InputError

# Keys that the session fills in and keeps track of; an option with one of these names would override them.
RESERVED = frozenset({"model", "max_tokens", "messages", "system", "tools"})
# Lifetimes of cache marks; AUTO leaves it to the policy.
AUTO = "auto"
TTLS = ("5m", "1h", AUTO)
# Names of argument types in messages.
_WORDS = {str: "a string", int: "a whole number", bool: "True or False", PathLike: "a path", BaseException: "an exception"}


class Given(msgspec.Struct, frozen=True):
    """The parts of a request that the caller chose; None means not given."""

    system: list[Wire] | None
    tools: list[Wire] | None
    options: Wire | None
    max_tokens: int | None
    cache_ttl: str | None

    @property
    def free_ttl(self) -> bool:
        """Whether the policy sets the lifetime of cache marks, before each request."""
        return self.cache_ttl == AUTO

    @property
    def first_ttl(self) -> str | None:
        """The lifetime until the policy sets one."""
        return "5m" if self.free_ttl else self.cache_ttl


def read_given(
    *,
    system: object,
    tools: object,
    options: object,
    max_tokens: object,
    cache_ttl: object,
    provider: str,
) -> Given:
    """Validate and copy the arguments of a Session, for callers without a type checker. `provider` is the provider's name."""
    if max_tokens is not None and (not isinstance(max_tokens, int) or max_tokens is True or max_tokens < 1):
        raise InputError("max_tokens", f"invalid value {max_tokens!r}", "use a whole number of at least 1")
    if not (cache_ttl is None or (isinstance(cache_ttl, str) and cache_ttl in TTLS)):
        raise InputError("cache_ttl", f"invalid value {cache_ttl!r}", f"use one of {', '.join(TTLS)} or None")
    return Given(
        system_blocks(system) if system is not None else None,
        _plain_tools(tools, provider) if tools is not None else None,
        plain_options(options) if options is not None else None,
        max_tokens,
        cache_ttl,
    )


def check_type(name: str, value: object, *kinds: type, words: str = "") -> None:
    """Raise InputError unless an argument has one of these types, for callers without a type checker."""
    if isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds):
        return
    wanted = words or " or ".join(_WORDS.get(kind, f"a {kind.__name__}") for kind in kinds if kind is not NoneType)
    raise InputError(name, f"must be {wanted}, not {type(value).__name__}")


def _plain_tools(tools: object, provider: str) -> list[Wire]:
    """Return tool definitions in the form of the Messages API. Those in another form are converted, or refused."""
    rows = plain_rows(tools, "tools")
    for number, row in enumerate(rows):
        _check_tool(f"tools[{number}]", row, provider)
    if len({"function" in row for row in rows}) > 1:
        raise InputError("tools", "the forms of two APIs are mixed", "write all tools as {'type': 'function', 'function': …}")
    plain = [
        # In the form of the Messages API, the parameters of a function are its input schema.
        {
            **{key: value for key, value in row["function"].items() if key != "parameters"},
            "input_schema": row["function"].get("parameters") or {"type": "object", "properties": {}},
        }
        if "function" in row
        else row
        for row in rows
    ]
    names = [row.get("name") for row in plain]
    for number, name in enumerate(names):
        if name is not None and name in names[:number]:
            raise InputError(f"tools[{number}]", f"{name} is defined twice", "give each tool a name of its own")
    return plain


def _check_tool(where: str, tool: Wire, provider: str) -> None:
    """Raise InputError if the provider's API does not take a tool. One that the provider runs may have a type alone."""
    inner = next((tool[key] for key in ("function", "custom") if isinstance(tool.get(key), Mapping)), tool)
    name, kind, anthropic = inner.get("name"), tool.get("type"), provider == "anthropic"
    served = kind not in (None, "custom", "function")
    if not ((isinstance(name, str) and name) or (name is None and inner is tool and served)):
        raise InputError(where, "has no name", "give each tool a 'name'")
    messages_form = "use 'name', 'description' and 'input_schema'"
    if inner is tool and kind == "function":
        form = messages_form if anthropic else "put its fields into an object 'function'"
        raise InputError(where, f"{name} has the form of the Responses API", form)
    if inner is not tool and kind == "custom":
        kind_of_tool = messages_form if anthropic else "use a tool of the type 'function'"
        raise InputError(where, f"{name} takes plain text instead of JSON", kind_of_tool)
    if inner is not tool and anthropic:
        raise InputError(where, f"{name} has the form of Chat Completions", messages_form)
    if inner is tool and "input_schema" not in tool and provider != "offline":
        if not served:
            raise InputError(where, f"{name} has no schema", "add 'input_schema'")
        if not anthropic:
            raise InputError(where, f"{name or kind} runs on Anthropic's servers", "remove it")
    if not isinstance(inner.get("input_schema" if inner is tool else "parameters", {}), Mapping):
        raise InputError(where, f"the parameters of {name} must be an object", "use a JSON schema")


def plain_options(options: object) -> Wire:
    if not isinstance(options, Mapping):
        raise InputError("options", "must be an object")
    if reserved := sorted(RESERVED & set(options)):
        problem = f"{', '.join(reserved)} {plural(len(reserved), 'is', 'are')} not allowed here"
        raise InputError("options", problem, "use the session's own arguments instead")
    return plain_rows([options], "options")[0]


def system_blocks(system: object) -> list[Wire]:
    if isinstance(system, str):
        return [text(system).wire] if system else []
    return plain_rows(system, "system")


def plain_rows(rows: object, where: str) -> list[Wire]:
    """Return a copy of tools or system blocks without cache marks."""
    if isinstance(rows, str) or not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(where, "must be a list of objects")
    try:
        plain: list[Wire] = msgspec.json.decode(msgspec.json.encode(scrub([dict(row) for row in rows])))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(where, f"is not plain JSON ({error})") from error
    return [dict(unmarked(row)) for row in plain]
