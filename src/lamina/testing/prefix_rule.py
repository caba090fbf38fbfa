"""The prefix rule: a request starts with all blocks of the previous one in its conversation, or a break was announced.

Conversations are identified by request headers (lamina.core.cache: SESSION_HEADER, FORK_HEADER). A fork's first request must
start with some request of its parent conversation; from then on the fork is a separate conversation. Settings that drop the cache
(model, thinking, effort, tool choice) count as part of the prefix, and a fork must share its parent's betas too. A refused
request does not count as the previous one, because it may be repaired and sent again.

A request may name a result that it shows once (ONCE_HEADER). The next request repeats everything before that result, so no cache mark
may be on it or after it.

`cache_miss_reason` answers `diagnostics.previous_message_id` with the kind of the first difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.blocks import Wire
from ..core.cache import BREAK_HEADER, FORK_HEADER, Piece, Prompt
from ..language.wording import counted
from .received_request import Announced, Received

# Characters shown of a block, enough to recognise it.
EXCERPT = 60


class Violation(NamedTuple):
    session: str
    fork: str
    request: int  # its index
    sentence: str


def check_prefixes(requests: Iterable[Received], *, decisions: int | None = None) -> list[Violation]:
    """Return all violations, in the order of the requests.

    `decisions` is the number of decisions that the layers made. More announced breaks of conversations than decisions is a violation
    too. Breaks of forks do not count: the fork that writes a summary belongs to the decision that the conversation announces next.
    """
    last: dict[tuple[str, str], Received] = {}
    main: dict[str, list[Received]] = {}
    carried: dict[tuple[str, str], tuple[Announced, ...]] = {}  # announced with a request that was then refused
    found: list[Violation] = []
    announced: list[tuple[Received, Announced]] = []
    for received in requests:
        if received.wire == "count":
            continue
        thread = (received.session, received.fork)
        breaks = carried.pop(thread, ()) + received.breaks
        if received.prompt is None or received.refused:
            carried[thread] = breaks
            continue
        announced.extend((received, record) for record in breaks)
        if not received.fork:
            found.extend(_marked_once(received))
        if not breaks and thread in last:
            found.extend(_against(last[thread], received))
        elif not breaks and received.fork and main.get(received.session):
            found.extend(_forked(main[received.session], received))
        last[thread] = received
        if not received.fork:
            main.setdefault(received.session, []).append(received)
    found.extend(_too_many(announced, decisions))
    return found


def _marked_once(received: Received) -> Iterator[Violation]:
    assert received.prompt is not None
    changing = received.prompt.pieces[len(_repeated(received)) :]
    if (marked := next((piece for piece in changing if piece.ttl), None)) is not None:
        yield _violation(
            received, f"has a cache mark on {marked.path}, but the next request repeats only what is before {received.once}"
        )


def _repeated(received: Received) -> Sequence[Piece]:
    """Return the blocks that the next request repeats: all, or those before the first result that is shown once."""
    assert received.prompt is not None
    pieces = received.prompt.pieces
    if not received.once:
        return pieces
    first = next((at for at, piece in enumerate(pieces) if _result_id(piece) == received.once), len(pieces))
    return pieces[:first]


def _result_id(piece: Piece) -> object:
    return piece.block.get("tool_use_id") or piece.block.get("tool_call_id")


def _against(before: Received, after: Received) -> Iterator[Violation]:
    change = settings_changed(before, after) or block_changed(before, after)
    if change:
        fork = "" if after.fork else f" (or, if it is a fork, name it with the header {FORK_HEADER})"
        yield _violation(after, f"does not start with request {before.index}: {change}; announce the break{fork}")


def _forked(parents: Sequence[Received], first: Received) -> Iterator[Violation]:
    """Compare a fork's first request with its parent: the newest request that it extends."""
    for parent in reversed(parents):
        if block_changed(parent, first) is None:
            change = settings_changed(parent, first)
            if change is None and parent.betas != first.betas:
                change = f"betas was {parent.betas!r} and is now {first.betas!r}"
            if change:
                yield _violation(first, f"is a fork of request {parent.index}, but {change}")
            return
    change = block_changed(parents[-1], first)
    yield _violation(first, f"is a fork that extends no request: compared with request {parents[-1].index}, {change}")


def _too_many(announced: Sequence[tuple[Received, Announced]], decisions: int | None) -> Iterator[Violation]:
    own = [received for received, _ in announced if not received.fork]
    if decisions is not None and len(own) > decisions:
        breaks, made = counted(len(own), "announced break"), counted(decisions, "decision")
        yield _violation(own[-1], f"brings the total to {breaks}, but the layers made only {made}")
    seen: dict[str, int] = {}
    for received, record in announced:
        if record.decision and record.decision in seen:
            first = seen[record.decision]
            yield _violation(received, f"breaks for decision {record.decision}, but request {first} already did")
        seen.setdefault(record.decision, received.index)


def block_changed(before: Received, after: Received) -> str | None:
    """Describe the first block of `before` that `after` does not start with; None if there is none."""
    assert before.prompt is not None
    assert after.prompt is not None
    old, new = _repeated(before), after.prompt.pieces
    at = first_change(old, new)
    if at is None:
        return None
    if at >= len(new):
        return f"{old[at].path} is missing, it was {_words(old[at])}"
    if old[at].role != new[at].role:
        return f"{old[at].path} was {_words(old[at])} of {old[at].role} and is now {_words(new[at])} of {new[at].role}"
    return f"{old[at].path} was {_words(old[at], new[at])} and is now {_words(new[at], old[at])}"


def settings_changed(before: Received, after: Received) -> str | None:
    old, new = settings_of(before), settings_of(after)
    for name in old:
        if old[name] != new.get(name):
            return f"{name} was {old[name]!r} and is now {new.get(name)!r}"
    return None


def settings_of(received: Received) -> Mapping[str, Any]:
    """Return the settings, besides the blocks, that a provider's cache depends on."""
    body = received.body
    config = body.get("output_config")
    return {
        "model": body.get("model"),
        "thinking": body.get("thinking"),
        "effort": config.get("effort") if isinstance(config, Mapping) else body.get("reasoning_effort"),
        "tool_choice": body.get("tool_choice"),
        "speed": body.get("speed"),
        "response_format": body.get("response_format"),
    }


def _violation(received: Received, what: str) -> Violation:
    who = f"conversation {received.session}" + (f", fork {received.fork}" if received.fork else "")
    return Violation(received.session, received.fork, received.index, f"Request {received.index} ({who}) {what}.")


def _words(piece: Piece, other: Piece | None = None) -> str:
    """Return the block's kind and the text around the first difference."""
    text = piece.data.decode("utf-8", "replace")
    start = 0
    if other is not None:
        against = other.data.decode("utf-8", "replace")
        same = next(
            (at for at, (one, two) in enumerate(zip(text, against, strict=False)) if one != two), min(len(text), len(against))
        )
        start = max(0, same - EXCERPT // 2)
    shown = text[start : start + EXCERPT]
    return f"{piece.kind or piece.role} {'…' if start else ''}{shown}{'…' if start + EXCERPT < len(text) else ''}"


def rule(violations: Sequence[Violation]) -> str:
    """Return the message for a test that failed because of these violations."""
    lines = "\n  ".join(violation.sentence for violation in violations)
    return f"The prefix rule was broken:\n  {lines}\nAnnounce deliberate breaks with the header {BREAK_HEADER}."


def cache_miss_reason(before: Prompt | None, after: Prompt) -> Wire | None:
    """Return why the cache was missed, or None if nothing that was sent before has changed."""
    if before is None:
        return {"type": "previous_message_not_found"}
    if before.model != after.model:
        return _changed("model_changed", before.pieces)
    for section, kind in (("system", "system_changed"), ("tools", "tools_changed")):
        old, new = _section(before, section), _section(after, section)
        at = first_change(old, new)
        if at is not None or len(old) != len(new):
            changed = old[at if at is not None else min(len(old), len(new)) :]
            return _changed(kind, [*changed, *_section(before, "messages")])
    at = first_change(_section(before, "messages"), _section(after, "messages"))
    if at is not None:
        return _changed("messages_changed", _section(before, "messages")[at:])
    if (before.system_key, before.messages_key) != (after.system_key, after.messages_key):
        return {"type": "unavailable"}
    return None


def first_change(before: Sequence[Piece], after: Sequence[Piece]) -> int | None:
    """Return the index of the first block of `before` that differs in `after`, or None if `after` starts with all of them."""
    for at, piece in enumerate(before):
        if at >= len(after) or after[at].digest != piece.digest or after[at].role != piece.role:
            return at
    return None


def _section(prompt: Prompt, section: str) -> list[Piece]:
    return [piece for piece in prompt.pieces if piece.at[0] == section]


def _changed(kind: str, lost: Sequence[Piece]) -> Wire:
    return {"type": kind, "cache_missed_input_tokens": sum(piece.tokens for piece in lost)}
