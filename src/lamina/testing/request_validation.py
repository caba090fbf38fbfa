"""Decides whether a request is accepted and what the model would see of it. Pure: all inputs are arguments."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

from ..core.blocks import Wire
from ..core.cache import Piece, Prompt, PromptReader, shown
from ..core.errors import InputError
from . import chat_rules, messages_rules
from .api_json import Problem, bad
from .context_edits import apply_edits
from .thinking_signatures import BINDING_BETA, check_thinking


class Limits(msgspec.Struct, frozen=True):
    """The server's limits and features."""

    window: int = 200_000
    models: frozenset[str] | None = None  # the accepted models; None accepts any name
    cache_edits: bool = True  # whether the `cache_edits` field is supported; see lamina.core.cache.prompt_reader
    check_signatures: bool = True  # turn off for recorded conversations, whose thinking another server signed
    bind_thinking: bool = False  # as in newer models: thinking is only valid after the conversation it was made in
    limit_output: bool = False  # as in older models: refuse if prompt and max_tokens together exceed the window


class Judged(NamedTuple):
    problem: Problem | None
    sent: Prompt | None = None  # every block as it arrived
    seen: Prompt | None = None  # the blocks that the model sees
    extra: dict[str, Any] | None = None  # additional fields for the answer


def judge_messages(body: Any, betas: Collection[str], limits: Limits, reader: PromptReader) -> Judged:
    problem = next(messages_rules.problems(body, betas, models=limits.models, cache_edits=limits.cache_edits), None)
    if problem is not None:
        return Judged(problem)
    try:
        sent = reader.read_sent(body)
    except InputError as error:
        # An error about the number of marks refers to no single block.
        return Judged(bad(f"{error.problem}." if error.where == "cache_control" else f"{error.where}: {error.problem}"))
    dropped: tuple[Piece, ...] = ()
    if limits.check_signatures:
        problem, dropped = check_thinking(sent, body, bind=limits.bind_thinking)
        if problem is not None:
            return Judged(problem, sent)
    extra: dict[str, Any] = {}
    seen = shown(sent, body)
    if body.get("context_management") is not None:
        edited = apply_edits(body, reader)
        extra["context_management"] = {"applied_edits": list(edited.applied)}
        seen = shown(reader.read_sent(edited.body), edited.body)
    if dropped:
        lost = {piece.digest for piece in dropped}
        seen = seen._replace(pieces=[piece for piece in seen.pieces if piece.digest not in lost])
    if BINDING_BETA in betas:
        extra["input_transformations"] = [
            {"type": "thinking_dropped", "path": piece.path, "reason": "prefix_binding_mismatch"} for piece in dropped
        ]
    return Judged(None, sent, seen, extra)


def judge_chat(body: Any, limits: Limits, reader: PromptReader) -> Judged:
    problem = next(chat_rules.problems(body, models=limits.models), None)
    if problem is not None:
        return Judged(problem)
    sent = reader.read_chat(body)
    return Judged(None, sent, sent)


def too_long(body: Wire, tokens: int, limits: Limits) -> Problem | None:
    """Return the Messages API's error for a full window, if it applies."""
    if tokens > limits.window:
        return bad(f"prompt is too long: {tokens} tokens > {limits.window} maximum")
    if limits.limit_output and tokens + body["max_tokens"] > limits.window:
        return bad(
            f"input length and `max_tokens` exceed context limit: {tokens} + {body['max_tokens']} > {limits.window}, "
            "decrease one of them"
        )
    return None
