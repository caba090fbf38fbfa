"""Starts, stops and undoes dreams: the same run, lock, bounds and undo as `lamina dream` has.

A dream that was started here runs in a thread of the server and stops with it, and memory is then as it was before.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event

from starlette.routing import Route

from ..core.errors import InputError, LaminaError
from ..disk.locks.dream_lock import DreamLock
from ..layers.l6_dream.record import request_kill
from ..layers.l6_dream.undo import UndoneDream, recover_memory, undo, undo_change
from ..providers import Provider
from ..session.provider import open_chosen_provider
from .changes import Done, Fields, change_route
from .dream_data import DreamDetail, dreams_of, read_dream
from .dream_list import START, STOP, address
from .dream_view import UNDO, UNDO_ONE
from .memory_changes import bound, place_of
from .memory_places import Place
from .site import Site
from .words import Words

# Most seconds that a start waits for the dream's record, or for the reason why there is none.
STARTING = 5.0


def routes(site: Site) -> list[Route]:
    runs: dict[str, Callable[[Site, Words, Fields], Done]] = {START: _start, STOP: _stop, UNDO: _undo, UNDO_ONE: _undo_one}
    return [change_route(site, path, bound(site, run)) for path, run in runs.items()]


def _start(site: Site, words: Words, fields: Fields) -> Done:
    place = place_of(site, words, fields)
    if place.project is None or place.agent is not None:
        raise InputError(place.name, words("dreams.no_project"))
    provider = open_chosen_provider(None, site.places.settings_of(place))
    told = SimpleQueue[str]()  # the reason why there is no dream; empty once it has begun
    site.dreams.start(lambda abort: _run(site, place, provider, abort, told.put))
    with suppress(Empty):
        if why := told.get(timeout=STARTING):
            raise InputError("dream", words.told(why.rstrip(".")))
    return Done(words("dreams.started", name=place.name), None, "/dreams")


def _run(site: Site, place: Place, provider: Provider, abort: Event, tell: Callable[[str], None]) -> None:
    from ..agent.manual_dream import run_by_hand  # with all it needs; few look at dreams to start one

    try:
        outcome = run_by_hand(
            provider,
            cwd=place.project or place.path,
            home=site.home,
            settings=site.places.settings_of(place),
            environ=site.environ,
            abort=abort,
            heard=lambda _: tell(""),
        )
        tell(outcome.stop.why if outcome.stop is not None else "")
    except LaminaError as error:
        tell(str(error))


def _stop(site: Site, words: Words, fields: Fields) -> Done:
    """Ask a dream to stop; a dream whose process died is recovered, as the next session would do."""
    place, dream = place_of(site, words, fields), fields.get("dream", "")
    with site.memories.gated(place) as gated:
        holder = DreamLock(gated.store.root).holder()
        asked = holder is not None and holder.alive and request_kill(gated.store.root, dream)
    if asked:
        return Done(words("dreams.stopping"))
    found = dreams_of(site.memories, place)
    if found is None or found.running is None:
        raise InputError("dream", words("dreams.none_runs"))
    said = recover_memory(place.project or place.path, site.home, site.places.settings_of(place))
    return Done(" ".join(said) or words("dreams.stopping"))


def _undo(site: Site, words: Words, fields: Fields) -> Done:
    place, dream = place_of(site, words, fields), fields.get("dream", "")
    found = read_dream(site.memories, place, dream)
    with site.places.open(place) as memory:
        done = undo(memory.store("private"), dream, now=site.clock())
    return Done(_told(words, found, [done]), None, address(place, done.record))


def _undo_one(site: Site, words: Words, fields: Fields) -> Done:
    """Undo the changes of one group: a merge is several files."""
    place, dream = place_of(site, words, fields), fields.get("dream", "")
    found, files = read_dream(site.memories, place, dream), fields.get("files", "").splitlines()
    if not files:
        raise InputError("dream", words("dreams.nothing"))
    with site.places.open(place) as memory:
        done = [undo_change(memory.store("private"), dream, file, now=site.clock()) for file in files]
    return Done(_told(words, found, done))


def _told(words: Words, found: DreamDetail | None, done: list[UndoneDream]) -> str:
    """Return what an undo did to the changes that were in force before it: memories restored, proposals withdrawn, files left."""
    was = {one.file: one.state for one in found.active} if found is not None else {}
    states = [was.get(file) for one in done for file in one.back]
    restored, withdrawn = states.count("applied"), states.count("waiting")
    told = [words("dreams.undone", n=restored)] if restored or not withdrawn else []
    told += [words("dreams.withdrawn", n=withdrawn)] if withdrawn else []
    left = [f"{one.file} {one.why}." for each in done for one in each.left]
    return " ".join([*(sentence for one in done for sentence in one.said), *told, *left[:3]])
