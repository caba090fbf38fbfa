"""Window: how many tokens the model takes (T4).

Owns the order in which the sources are asked. What is known of models is a table passed in, so that this file has no model names
and a new model needs no release.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from ...core.errors import InputError
from .thresholds import MIN_WINDOW

LONG_WINDOW = 1_000_000
LONG_SUFFIX = "[1m]"
# SPEC's last resort; a policy brings its own.
DEFAULT_WINDOW = 200_000
ENVIRON_NAME = "LAMINA_CONTEXT_WINDOW"
SETTING_NAME = "contextWindow"

Source: TypeAlias = Literal["argument", "setting", "environment", "suffix", "model", "header", "default"]


class ModelFacts(msgspec.Struct, frozen=True):
    window: int
    max_output: int | None = None
    needs_header: bool = False  # the window is there only for requests that carry the 1M beta header


class Window(msgspec.Struct, frozen=True):
    tokens: int
    source: Source
    max_output: int | None = None  # None where the model is not known
    findings: tuple[str, ...] = ()  # what was asked for and could not be used, one sentence each


def window_for(
    model: str,
    *,
    explicit: int | None = None,
    setting: int | None = None,
    environ_value: str | None = None,
    beta_1m: bool = False,
    known: Mapping[str, ModelFacts],
    default: int = DEFAULT_WINDOW,
) -> Window:
    if explicit is not None and explicit < MIN_WINDOW:
        raise InputError("window", f"{explicit:,} tokens are too few for a conversation", f"use at least {MIN_WINDOW:,}")
    facts = facts_of(model, known)
    findings: list[str] = []
    tokens, source = _asked_for(explicit, setting, environ_value, findings) or _from_model(model, facts, beta_1m, default)
    return Window(tokens, source, facts.max_output if facts else None, tuple(findings))


def facts_of(model: str, known: Mapping[str, ModelFacts]) -> ModelFacts | None:
    """The model's own line, or that of its name without the date of a snapshot."""
    name = base_name(model)
    if name in known:
        return known[name]
    stem, _, tail = name.replace("@", "-").rpartition("-")
    dated = tail == "latest" or (len(tail) == len("20250101") and tail.isdigit())
    return known.get(stem) if dated else None


def base_name(model: str) -> str:
    """The name the provider takes: without the suffix."""
    return model[: -len(LONG_SUFFIX)] if model.lower().endswith(LONG_SUFFIX) else model


def _asked_for(
    explicit: int | None, setting: int | None, environ_value: str | None, findings: list[str]
) -> tuple[int, Source] | None:
    if explicit is not None:
        return explicit, "argument"
    if (tokens := _usable(setting, SETTING_NAME, findings)) is not None:
        return tokens, "setting"
    if (tokens := _usable(environ_value, ENVIRON_NAME, findings)) is not None:
        return tokens, "environment"
    return None


def _from_model(model: str, facts: ModelFacts | None, beta_1m: bool, default: int) -> tuple[int, Source]:
    if model.lower().endswith(LONG_SUFFIX):
        return LONG_WINDOW, "suffix"
    if facts is not None and not facts.needs_header:
        return facts.window, "model"
    if beta_1m:
        return LONG_WINDOW, "header"
    return default, "default"


def _usable(value: int | str | None, name: str, findings: list[str]) -> int | None:
    if value is None or value == "":
        return None
    try:
        tokens = int(value)
    except ValueError:
        tokens = 0
    if tokens >= MIN_WINDOW:
        return tokens
    findings.append(f"{name} is {str(value)!r} and was ignored; give a whole number of tokens of at least {MIN_WINDOW:,}.")
    return None
