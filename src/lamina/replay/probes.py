"""What of a conversation still stands in the context, asked at a few fixed points of it (K4's probe facts). Pure.

The questions come from the script alone, so every policy is asked the same: facts of everything said until then, and the files used until
then. An answer in the context is an exact string that stands in what the model would be sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..conversation.compaction.probes import Fact, drawn, judged, texts_of
from ..core.view import Item
from .figures import ReplayFigures
from .repeated_reads import path_of
from .script import ReplayScript

# A quarter, the half, three quarters, the end: a policy that forgets at once and one that forgets late must not look alike.
POINTS = 4


class Probe(NamedTuple):
    facts: tuple[Fact, ...]
    files: tuple[str, ...]


def probes_of(script: ReplayScript) -> dict[int, Probe]:
    """By step."""
    return {point: _probe(script, point) for point in script.spread(POINTS)}


def _probe(script: ReplayScript, point: int) -> Probe:
    said = [item for at, item in script.items if at <= point]
    calls = [call for at, answer in script.answers.items() if at <= point for call in answer.calls]
    files = dict.fromkeys(path for call in calls if (path := path_of(call)) is not None)
    return Probe(tuple(drawn(said)), tuple(files))


def look_for(probe: Probe, view: Iterable[Item]) -> ReplayFigures:
    shown = tuple(texts_of(view))
    context = "\n".join(shown)
    return ReplayFigures(
        facts=len(probe.facts),
        facts_in_context=judged(probe.facts, shown, reachable=False).in_context,
        files=len(probe.files),
        files_in_context=sum(path in context for path in probe.files),
    )
