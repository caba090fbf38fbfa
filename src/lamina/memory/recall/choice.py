"""From a message to the memories that stand beside it: looks through a memory, lets the ranker or a model choose, reads what was chosen.

Owns the order. Decides with `surfacing`, `fit` and `select`; reads files, writes nothing. Invariants: what is brought was open to the
message, at most as many as the policy allows, each once; a model that fails, dawdles or answers nonsense is replaced by the ranker, and
that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from ...core.blocks import Wire
from ...core.policy import SurfacingPolicy
from ..store.scan import MOST_IN_MANIFEST, Header, manifest
from . import selection as select
from .library import STALE_SHARE, Look, Recalled
from .plan import Asked, Seen, open_to
from .rank import explained
from .render import age_words, cut, on_one_line, plain, shown
from .threshold import LOOKED_AT, clear_fits

By: TypeAlias = Literal["local", "model"]
# The ranker's reasons name terms; so many characters of them say enough.
REASON_CHARS = 200


class Brought(NamedTuple):
    """A memory as it is put in: its file, its path as texts name it, why, the text, and what other readers call its parts."""

    file: str
    path: str
    why: str
    text: str
    facts: Wire


class Choice(NamedTuple):
    brought: tuple[Brought, ...] = ()
    by: By = "local"
    model: str = ""
    instead: str = ""  # why the ranker chose in a model's place


# Sends a request; the answer's text, or why there is none.
Ask: TypeAlias = Callable[[Wire], "Said"]


class Said(NamedTuple):
    text: str = ""
    failed: str = ""


def by_ranker(memory: Look, asked: Asked, seen: Seen, policy: SurfacingPolicy, *, instead: str = "") -> Choice:
    """Q1: what clearly fits; often nothing."""
    headers = memory.headers()
    found = memory.ranked(headers, asked.words, LOOKED_AT)
    fits = clear_fits(asked.words, [ranked for _, ranked in found], [header.name for header, _ in found], len(headers))
    mine = {headers[fit.ranked.at].file: fit for fit in fits}
    wanted = _open(memory, [headers[fit.ranked.at] for fit in fits], asked, seen)[: policy.files]
    # One after the other: the turn waits, and five small files take 0.5 ms so and 1.0 ms in five threads.
    read = [each for header in wanted if (each := memory.read(header)) is not None]
    ordered = sorted(read, key=lambda each: -mine[each.topic.file].words * (STALE_SHARE if _stale(each) else 1.0))
    whys = [explained(mine[each.topic.file].ranked)[:REASON_CHARS] for each in ordered]
    brought = (_brought(memory, each, why, policy) for each, why in zip(ordered, whys, strict=True))
    return Choice(tuple(brought), "local", instead=instead)


def _stale(each: Recalled) -> bool:
    """B8: such a memory comes behind others that fit about as well."""
    return each.evidence.state == "stale"


def by_model(memory: Look, asked: Asked, seen: Seen, policy: SurfacingPolicy, *, model: str, ask: Ask) -> Choice:
    """Q4: what a model chooses from the list; the ranker where it does not."""
    headers = memory.headers()
    listed = manifest(_open(memory, headers, asked, seen), lambda rest, room: best_of(memory, headers, rest, asked.words, room))
    if not listed:
        return Choice((), "model", model)
    said = ask(select.request(model, listed, asked.words, tools=asked.tools, most=policy.files))
    names = None if said.failed else select.read_answer(said.text, {header.file for header in listed}, policy.files)
    if names is None:
        return by_ranker(memory, asked, seen, policy, instead=said.failed or "its answer names no memory of the list")
    heads = {header.file: header for header in listed}
    read = _at_once(memory, [heads[name] for name in names])
    return Choice(tuple(_brought(memory, each, f"chosen by {model}", policy) for each in read), "model", model)


def _open(memory: Look, headers: Sequence[Header], asked: Asked, seen: Seen) -> list[Header]:
    return open_to(headers, lambda file: on_one_line(memory.where(file)), seen, asked.tools)


def best_of(memory: Look, headers: list[Header], rest: Sequence[Header], words: str, room: int) -> list[Header]:
    """S11: the ranker's best of what the newest leave; the newest of the rest where it finds fewer."""
    left = {header.file: header for header in rest}
    ranked = [header for header, _ in memory.ranked(headers, words, room + MOST_IN_MANIFEST) if header.file in left]
    return [*ranked, *(header for header in rest if header not in set(ranked))][:room]


def _at_once(memory: Look, headers: Sequence[Header]) -> list[Recalled]:
    """The disk may be a slow one. What is gone meanwhile is left out."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max(1, len(headers)), "lamina-recall") as pool:
        return [each for each in pool.map(memory.read, headers) if each is not None]


def _brought(memory: Look, each: Recalled, why: str, policy: SurfacingPolicy) -> Brought:
    path = memory.where(each.topic.file)
    text = shown(each.topic, path, age=each.age, evidence=each.evidence, lines=policy.lines, size=policy.file_bytes)
    content = cut(plain(each.topic.body), lines=policy.lines, size=policy.file_bytes).text
    header = f"A memory, saved {age_words(each.age)}"
    facts = {"path": str(path), "content": content, "mtimeMs": int(each.topic.modified * 1000), "header": header}
    return Brought(each.topic.file, on_one_line(path), why, text, facts)
