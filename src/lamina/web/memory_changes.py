"""Changes to memories, each through the same modes, guard and journal as on the command line, and each with its undo.

Invariants: a form carries the digest of the file that it shows. If the file is another one by now, both versions are shown and
nothing is overwritten; the store compares once more under its guard. The user is the author of every change made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.routing import Route

from ..core.errors import InputError
from ..memory.memory import Memory, Merged
from ..memory.store.contract import ChangeReason, Saved
from ..memory.store.evidence import anchor_text, read_anchor
from ..memory.store.secrets import redact
from ..memory.store.topic import KINDS, Kind, Topic, evidence_of
from .changes import Done, Fields, Run, Undo, change_route
from .memory_conflicts import CHECKED, EDIT, EDITED, KEEP, NEW, REMOVED, RESTORED, WRITTEN, find_conflict
from .memory_forms import plain
from .memory_list import address
from .memory_places import Place
from .site import Site
from .words import Words, words_for

REMOVE, RESTORE, CHECK = (f"/changes/memories/{name}" for name in ("remove", "restore", "check"))
# The view of pairs: undoing a removal that was made there leads back to the other pairs.
DUPLICATES = "/memories/duplicates"


def routes(site: Site) -> list[Route]:
    runs = {EDIT: _edit, KEEP: _keep, REMOVE: _remove, RESTORE: _restore, NEW: _new, CHECK: _check}
    site.memories.after_looks.append(lambda: redact(""))  # compiles its patterns, so that the first change need not
    return [change_route(site, path, bound(site, run)) for path, run in runs.items()]


def bound(site: Site, run: Callable[[Site, Words, Fields], Done]) -> Run:
    """Return a change of this page, in the language of its request."""
    return lambda request, fields: run(site, words_for(request), fields)


def user(why: str) -> ChangeReason:
    return ChangeReason("user", why)


def place_of(site: Site, words: Words, fields: Fields) -> Place:
    place = site.places.find(fields.get("place", ""))
    if place is None:
        raise InputError("project", words("no such project"))
    if not place.own:
        raise InputError(place.name, words("another agent keeps these memories, so they cannot be changed here"))
    return place


@contextmanager
def _shown(site: Site, words: Words, fields: Fields) -> Iterator[tuple[Place, Memory, Topic]]:
    """Open the memory that a form shows. Raises Conflict if it was renamed, removed or changed meanwhile."""
    place, file = place_of(site, words, fields), fields.get("file", "")
    with site.places.open(place) as memory:
        topic = memory.get(file)
        if topic is None or topic.file != file or memory.digest(file) != fields.get("digest", ""):
            raise find_conflict(site, words, place, memory, fields)
        yield place, memory, topic


def _edit(site: Site, words: Words, fields: Fields) -> Done:
    with _shown(site, words, fields) as (place, memory, topic):
        saved = _saved(words, memory, topic, fields, fields["digest"])
        message = with_notices(words, words("Saved “{name}”.", name=saved.topic.name), saved)
        return _done(message, memory, place, saved.topic.file, fields.get("back", ""), topic.file)


def with_notices(words: Words, message: str, saved: Saved | Merged) -> str:
    """Return the answer to a save, with the secrets that were removed from the text, and why the index may lack the new line."""
    kinds = [words(kind) for kind in saved.redacted]
    secrets = [words("A secret was removed from the text ({kind}).", kind=", ".join(kinds))] if kinds else []
    return " ".join([message, *secrets, *([saved.unfinished] if saved.unfinished else [])])


def _saved(words: Words, memory: Memory, topic: Topic, fields: Fields, base: str) -> Saved:
    done = memory.save(
        topic.name,
        type=kind_of(fields),
        description=fields.get("description", ""),
        body=plain(fields.get("body", "")),
        scope="team" if topic.file.startswith("team/") else "private",
        why=user(EDITED),
        base=base,
    )
    if not isinstance(done, Saved):
        raise InputError(topic.name, words("the change waits in the inbox"))
    return done


def kind_of(fields: Fields) -> Kind | None:
    return next((kind for kind in KINDS if kind == fields.get("type")), None)


def _done(message: str, memory: Memory, place: Place, file: str, back: str, was: str) -> Done:
    """Return the answer to a change of a memory, with the restore of the version before it."""
    log = memory.log(file)
    before = log[0].before if log else ""
    if log and log[0].action == "rename" and len(log) > 1:
        before = log[1].before
    version = next((one.id for one in log if one.digest == before and before), "")
    fields = {"place": place.id, "file": file, "version": version, "digest": memory.digest(file), "back": back}
    undo = Undo(RESTORE, fields) if version else None
    location = back if back.startswith("/memories") and file == was else address(place, file)
    return Done(message, undo, location)


def _new(site: Site, words: Words, fields: Fields) -> Done:
    place = place_of(site, words, fields)
    with site.places.open(place, create=True) as memory:
        if (there := memory.get(fields.get("name", ""))) is not None:
            raise InputError(there.name, words("is already a memory; open and edit that one"))
        done = memory.save(
            fields.get("name", ""),
            type=kind_of(fields),
            description=fields.get("description", ""),
            body=plain(fields.get("body", "")),
            why=user(WRITTEN),
            base="",
        )
        assert isinstance(done, Saved)  # a user's own memory never waits
        file = done.topic.file
        message = with_notices(words, words("Saved “{name}”.", name=done.topic.name), done)
        return Done(message, _removal(memory, place, file), address(place, file))


def _keep(site: Site, words: Words, fields: Fields) -> Done:
    """Save the user's version of a memory that was removed meanwhile. The memory is restored first, with what the form does not show."""
    place, file = place_of(site, words, fields), fields.get("file", "")
    with site.places.open(place) as memory:
        if (there := memory.get(file) or memory.get(fields.get("name", ""))) is not None:
            raise find_conflict(site, words, place, memory, {**fields, "file": there.file})
        topic = memory.restore(file, fields.get("version") or None, why=user(RESTORED), base="")
        saved = _saved(words, memory, topic, fields, memory.digest(topic.file))
        message = with_notices(words, words("Saved “{name}”.", name=saved.topic.name), saved)
        return Done(message, _removal(memory, place, saved.topic.file), address(place, saved.topic.file))


def _removal(memory: Memory, place: Place, file: str) -> Undo:
    return Undo(REMOVE, {"place": place.id, "file": file, "digest": memory.digest(file), "back": "/memories"})


def _remove(site: Site, words: Words, fields: Fields) -> Done:
    with _shown(site, words, fields) as (place, memory, topic):
        digest = fields["digest"]
        memory.remove(topic.file, why=user(REMOVED), base=digest)
        version = next((one.id for one in memory.log(topic.file) if one.digest == digest), "")
    back = fields.get("back", "")
    undo = Undo(RESTORE, {"place": place.id, "file": topic.file, "version": version, "digest": "", "back": back})
    return Done(
        words("Moved “{name}” to the trash.", name=topic.name), undo, back if back.startswith("/memories") else "/memories"
    )


def _restore(site: Site, words: Words, fields: Fields) -> Done:
    """Restore a version, or a removed memory. The form carries the digest of the present file, empty for a removed memory."""
    place, file, digest = place_of(site, words, fields), fields.get("file", ""), fields.get("digest", "")
    with site.places.open(place) as memory:
        there = memory.get(file)
        is_there = there is not None and there.file == file
        if (digest or is_there) and not (is_there and memory.digest(file) == digest):
            raise find_conflict(site, words, place, memory, fields)
        topic = memory.restore(file, fields.get("version") or None, why=user(RESTORED), base=digest)
        message = words("Restored “{name}”.", name=topic.name)
        if not digest:
            back = fields.get("back", "")
            location = back if back == DUPLICATES else address(place, topic.file)
            return Done(message, _removal(memory, place, topic.file), location)
        return _done(message, memory, place, topic.file, fields.get("back", ""), file)


def _check(site: Site, words: Words, fields: Fields) -> Done:
    """Pin the evidence of a memory to its files as they are now: the user looked at them."""
    with _shown(site, words, fields) as (place, memory, topic):
        anchors = [read_anchor(entry) for entry in evidence_of(topic)]
        entries = [anchor_text(one._replace(digest="")) for one in anchors if one is not None]
        done = memory.save(
            topic.name,
            type=topic.type,
            description=topic.description,
            body=topic.body,
            evidence=entries,
            scope="team" if topic.file.startswith("team/") else "private",
            why=user(CHECKED),
            base=fields["digest"],
        )
        assert isinstance(done, Saved)
        message = with_notices(words, words("Evidence of “{name}” is checked as of now.", name=topic.name), done)
        return _done(message, memory, place, topic.file, fields.get("back", ""), topic.file)
