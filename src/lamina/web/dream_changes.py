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
from ..layers.l6_dream.undo import UndoneDream, recover_memory, redo, undo, undo_changes
from ..providers import Provider
from ..session.provider import open_chosen_provider
from .changes import Done, Fields, Undo, change_route
from .dream_data import dreams_of
from .dream_jobs import is_loaded, load_needed
from .dream_list import DISMISS, SHOW_AGAIN, START, STOP, address
from .dream_view import REDO, UNDO, UNDO_ONE
from .memory_changes import bound, place_of
from .memory_places import Place
from .site import Site
from .views_made import Stopped, Work
from .words import Words

# Seconds that a start waits until the dream has begun, or cannot. What takes longer, the list tells.
STARTING = 0.05


def routes(site: Site) -> list[Route]:
    runs: dict[str, Callable[[Site, Words, Fields], Done]] = {
        START: _start,
        STOP: _stop,
        DISMISS: _dismiss,
        SHOW_AGAIN: _show_again,
        UNDO: _undo,
        UNDO_ONE: _undo_one,
        REDO: _redo,
    }
    return [change_route(site, path, bound(site, run)) for path, run in runs.items()]


def _start(site: Site, words: Words, fields: Fields) -> Done:
    place = place_of(site, words, fields)
    if place.project is None or place.agent is not None:
        raise InputError(place.name, words("the directory of its project is unknown, so no dream can run"))
    provider = open_chosen_provider(None, site.places.settings_of(place))
    begun = site.dreams.start(place.id, lambda abort, tell: _run(site, place, provider, abort, tell))
    with suppress(TimeoutError, Stopped):  # the list of dreams shows that it starts, and why it could not
        try:
            begun.result(STARTING if is_loaded() else 0)
        except LaminaError:
            site.dreams.forget(place.id)
            raise
    return Done(
        words("A dream of {name} has started." if begun.done() else "A dream of {name} starts.", name=place.name), None, "/dreams"
    )


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
        return Done(words("The dream stops. Memory stays as it was before."))
    found = dreams_of(site.memories, place)
    if found is None or found.running is None:
        raise InputError("dream", words("no dream is running"))
    said = recover_memory(place.project or place.path, site.home, site.places.settings_of(place))
    return Done(" ".join(map(words, said)) or words("The dream stops. Memory stays as it was before."))


def _dismiss(site: Site, words: Words, fields: Fields) -> Done:
    """Show the reason why a dream could not begin no longer."""
    place, at = place_of(site, words, fields), fields.get("at", "")
    if not site.dreams.dismiss(place.id, at):
        raise InputError(place.name, words("has no dream that could not begin"))
    return Done(words("Dismissed."), Undo(SHOW_AGAIN, {"place": place.id, "at": at}))


def _show_again(site: Site, words: Words, fields: Fields) -> Done:
    place, at = place_of(site, words, fields), fields.get("at", "")
    if not site.dreams.show_again(place.id, at):
        raise InputError(place.name, words("has no dream that could not begin"))
    return Done(words("It is shown again."), Undo(DISMISS, {"place": place.id, "at": at}), "/dreams")


def _undo(site: Site, words: Words, fields: Fields) -> Done:
    place, dream = place_of(site, words, fields), fields.get("dream", "")
    with site.places.open(place) as memory:
        done = undo(memory.store("private"), dream)
    form = Undo(REDO, {"place": place.id, "dream": dream}) if done.undo else None
    return Done(_told(words, done), form, address(place, done.record))


def _undo_one(site: Site, words: Words, fields: Fields) -> Done:
    """Undo the changes of one group: a merge is several files."""
    place, dream = place_of(site, words, fields), fields.get("dream", "")
    files = fields.get("files", "").splitlines()
    if not files:
        raise InputError("dream", words("nothing to change"))
    with site.places.open(place) as memory:
        done = undo_changes(memory.store("private"), dream, files)
    form = Undo(REDO, {"place": place.id, "dream": dream, "undo": done.undo}) if done.undo else None
    return Done(_told(words, done), form)


def _redo(site: Site, words: Words, fields: Fields) -> Done:
    """Put the changes in force again that an undo took back, and let its proposals wait again."""
    place, dream = place_of(site, words, fields), fields.get("dream", "")
    with site.places.open(place) as memory:
        done = redo(memory.store("private"), dream, fields.get("undo", ""))
    told = (
        [words("Done again: {n} memory changed.|Done again: {n} memories changed.", n=len(done.back))]
        if done.back or not done.waiting
        else []
    )
    told += [words("The proposal waits again.|{n} proposals wait again.", n=done.waiting)] if done.waiting else []
    undo_form = Undo(UNDO, {"place": place.id, "dream": dream}) if not fields.get("undo") else None
    return Done(" ".join(told), undo_form, address(place, done.record))


def _told(words: Words, done: UndoneDream) -> str:
    """Return what an undo did: memories restored, proposals withdrawn, files left."""
    restored = words("Undone: {n} memory restored.|Undone: {n} memories restored.", n=len(done.back))
    told = [restored] if done.back or not done.withdrawn else []
    told += [words("{n} proposal withdrawn.|{n} proposals withdrawn.", n=done.withdrawn)] if done.withdrawn else []
    left = [words("{file} {why}.", file=skipped.file, why=words(skipped.why)) for skipped in done.left[:3]]
    return " ".join([*map(words, done.said), *told, *left])
