"""Starts, stops and undoes dreams: the same run, lock, bounds and undo as `lamina dream` has.

A dream that was started here runs in a thread of the server and stops with it, and memory is then as it was before.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Event

from starlette.routing import Route

from ..core.errors import InputError, LaminaError
from ..disk.locks.dream_lock import DreamLock
from ..layers.l6_dream.record import request_kill
from ..layers.l6_dream.redo import can_redo, redo_changes
from ..layers.l6_dream.undo import UndoneDream, recover_memory, undo, undo_change
from ..providers import Provider
from ..session.provider import open_chosen_provider
from .changes import Done, Fields, Undo, change_route
from .dream_data import DreamDetail, dreams_of, read_dream
from .dream_jobs import is_loaded, load_needed
from .dream_list import START, STOP, address
from .dream_view import UNDO, UNDO_ONE
from .inbox_view import wait_again
from .memory_changes import bound, place_of
from .memory_places import Place
from .site import Site
from .views_made import Stopped, Work
from .words import Words

REDO = "/changes/dreams/redo"
# Seconds that a start waits until the dream has begun, or cannot. What takes longer, the list tells.
STARTING = 0.05


def routes(site: Site) -> list[Route]:
    runs: dict[str, Callable[[Site, Words, Fields], Done]] = {
        START: _start,
        STOP: _stop,
        UNDO: _undo,
        UNDO_ONE: _undo_one,
        REDO: _redo,
    }
    return [change_route(site, path, bound(site, run)) for path, run in runs.items()]


def _start(site: Site, words: Words, fields: Fields) -> Done:
    place = place_of(site, words, fields)
    if place.project is None or place.agent is not None:
        raise InputError(place.name, words("dreams.no_project"))
    provider = open_chosen_provider(None, site.places.settings_of(place))
    begun = site.dreams.start(place.id, lambda abort, tell: _run(site, place, provider, abort, tell))
    with suppress(TimeoutError, Stopped):  # the list of dreams shows that it starts, and why it could not
        try:
            begun.result(STARTING if is_loaded() else 0)
        except LaminaError:
            site.dreams.forget(place.id)
            raise
    return Done(words("dreams.started" if begun.done() else "dreams.starts", name=place.name), None, "/dreams")


def _run(site: Site, place: Place, provider: Provider, abort: Event, tell: Callable[[], None]) -> None:
    load_needed(site.views.pause(Work.LATER))
    from ..agent.manual_dream import run_by_hand

    outcome = run_by_hand(
        provider,
        cwd=place.project or place.path,
        home=site.home,
        settings=site.places.settings_of(place),
        environ=site.environ,
        abort=abort,
        heard=lambda _: tell(),
    )
    if outcome.stop is not None:
        raise InputError("dream", outcome.stop.why.rstrip("."))


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
    return Done(" ".join(map(words.told, said)) or words("dreams.stopping"))


def _undo(site: Site, words: Words, fields: Fields) -> Done:
    place, dream = place_of(site, words, fields), fields.get("dream", "")
    found, waited = read_dream(site.memories, place, dream), _pending(site, place, dream)
    with site.places.open(place) as memory:
        done = [undo(memory.store("private"), dream, now=site.clock())]
    withdrawn = waited - _pending(site, place, dream)
    return Done(_told(words, found, done), _redo_of(place, found, done, withdrawn, whole=True), address(place, done[0].record))


def _undo_one(site: Site, words: Words, fields: Fields) -> Done:
    """Undo the changes of one group: a merge is several files."""
    place, dream = place_of(site, words, fields), fields.get("dream", "")
    found, waited = read_dream(site.memories, place, dream), _pending(site, place, dream)
    files = fields.get("files", "").splitlines()
    if not files:
        raise InputError("dream", words("dreams.nothing"))
    with site.places.open(place) as memory:
        done = [undo_change(memory.store("private"), dream, file, now=site.clock()) for file in files]
    return Done(_told(words, found, done), _redo_of(place, found, done, waited - _pending(site, place, dream), whole=False))


def _pending(site: Site, place: Place, dream: str) -> set[str]:
    """Return the ids of the proposals of a dream that wait."""
    return {one.id for _, one in site.memories.waiting([place]) if one.why.dream == dream}


def _redo_of(
    place: Place, found: DreamDetail | None, done: list[UndoneDream], withdrawn: set[str], *, whole: bool
) -> Undo | None:
    """Return the form that takes an undo back; None if not all of it can be."""
    was = {one.file for one in found.active if one.state == "applied"} if found is not None else set[str]()
    files = [file for one in done for file in one.back if file in was]
    if found is None or not (files or withdrawn) or not can_redo(found.record, files, whole=whole):
        return None
    fields = {"place": place.id, "dream": found.record.id, "files": "\n".join(files), "ids": " ".join(sorted(withdrawn))}
    return Undo(REDO, fields)


def _redo(site: Site, words: Words, fields: Fields) -> Done:
    """Put the changes in force again that an undo took back, and let its proposals wait again."""
    place, dream = place_of(site, words, fields), fields.get("dream", "")
    files, ids = fields.get("files", "").splitlines(), fields.get("ids", "").split()
    with site.places.open(place) as memory:
        done = redo_changes(memory.store("private"), dream, files)
    wait_again(site, words, ids)
    told = [words("dreams.redone", n=len(done.back))] if done.back else []
    told += [words("inbox.waits_again", n=len(ids))] if ids else []
    return Done(" ".join([*told, *_left(words, [done])]), None, address(place, done.record))


def _left(words: Words, done: list[UndoneDream]) -> list[str]:
    return [words("dreams.left", file=one.file, why=words.told(one.why)) for each in done for one in each.left][:3]


def _told(words: Words, found: DreamDetail | None, done: list[UndoneDream]) -> str:
    """Return what an undo did to the changes that were in force before it: memories restored, proposals withdrawn, files left."""
    was = {one.file: one.state for one in found.active} if found is not None else {}
    states = [was.get(file) for one in done for file in one.back]
    restored, withdrawn = states.count("applied"), states.count("waiting")
    told = [words("dreams.undone", n=restored)] if restored or not withdrawn else []
    told += [words("dreams.withdrawn", n=withdrawn)] if withdrawn else []
    return " ".join([*(words.told(sentence) for one in done for sentence in one.said), *told, *_left(words, done)])
