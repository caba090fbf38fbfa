"""Conflicts of changes to memories: who changed the file meanwhile and when, both versions, and forms that keep one of them."""

from __future__ import annotations

from ..core.errors import DiskError
from ..memory.memory import Memory
from ..memory.store.contract import MemoryVersion
from ..memory.store.topic import Topic
from . import labels
from .changes import Conflict, Fields
from .html import Child, Html, bdi, tag
from .memory_forms import button, change_form, editor_fields, plain
from .memory_list import address
from .memory_places import Place
from .memory_stores import mtime
from .numbers import ago_text
from .site import Site
from .words import Words

EDIT, NEW, KEEP = (f"/changes/memories/{name}" for name in ("edit", "new", "keep"))
# The reasons of changes end in this; those of the command line are these.
EDITED, WRITTEN, REMOVED = "edited on the page", "written on the page", "removed on the page"
RESTORED, CHECKED = "restored on the page", "checked the evidence on the page"
ON_PAGE = frozenset({EDITED, WRITTEN, REMOVED, RESTORED, CHECKED})
OF_COMMANDS = ("", "edited by hand")


def look_again(words: Words, sentence: str, href: str) -> Conflict:
    """Return the conflict of a form whose subject is another one now, with a link to the present one."""
    link = tag("a", {"class": "btn sm", "href": href}, words("Look again"))
    return Conflict(words("This was changed meanwhile. Nothing was lost."), tag("p", {"class": "notice"}, sentence, " ", link))


def find_conflict(site: Site, words: Words, place: Place, memory: Memory, fields: Fields) -> Conflict:
    """Return the conflict of a form, or of an undo, whose memory was renamed, removed or changed meanwhile."""
    file = fields.get("file", "")
    topic = memory.get(file)
    if topic is None or topic.file != file:
        return _moved(site, words, place, memory, fields)
    return _changed(site, words, place, memory, topic, fields)


def _changed(site: Site, words: Words, place: Place, memory: Memory, topic: Topic, fields: Fields) -> Conflict:
    """Return both versions: the file as it is now, and the user's text with a form that saves it over that one."""
    digest, log = memory.digest(topic.file), memory.log(topic.file)
    known = log[0] if log and log[0].digest == digest else None  # else somebody changed it whom the journal does not know yet
    when = known.time if known is not None else mtime(memory.where(topic.file)) / 1e9
    told = words("Changed by {who} {when}. Nothing was lost.", who=_who(words, known), when=ago_text(words, when, site.clock()))
    if "body" not in fields:
        told = f"{told} {words('The history of “{name}” has every version.', name=topic.name)}"
    theirs = (
        tag("p", None, tag("b", None, bdi(topic.name))),
        tag("p", None, bdi(topic.description)),
        tag("pre", {"class": "version"}, bdi(topic.body)),
        tag("a", {"class": "btn", "href": address(place, topic.file), "data-anew": "1"}, words("Keep theirs")),
    )
    mine = _editor(words, EDIT, {"place": place.id, "file": topic.file, "digest": digest}, fields)
    return Conflict(told, _both(words, told, theirs, mine), address(place, topic.file))


def _who(words: Words, version: MemoryVersion | None) -> str:
    """Return who made a change, as far as the journal knows it."""
    if version is None or version.why is None:
        return words("an editor")
    why = version.why
    if why.who == "user" and why.why in ON_PAGE:
        return words("you on the page")
    if why.who == "user" and why.why in OF_COMMANDS and why.session is None:
        return words("the command line")
    return words(labels.AUTHORS_IN_SENTENCES[why.who])


def _moved(site: Site, words: Words, place: Place, memory: Memory, fields: Fields) -> Conflict:
    """Return the conflict for a memory that was renamed, moved or removed meanwhile."""
    file = fields.get("file", "")
    log = memory.log(file) if file else []
    now = memory.get(log[0].file) if log and log[0].digest else None
    if now is None:  # a file moved by hand has the same content
        now = memory.get(next((one.file for one in memory.headers() if _is_same(memory, one.file, fields.get("digest", ""))), ""))
    if now is None:
        return _removed(site, words, place, memory, log, fields)
    known = next((one.name for one in log if one.digest == fields.get("digest")), now.name)
    told = (
        words("This memory was renamed to “{name}” meanwhile.", name=now.name)
        if now.name != known
        else words("The file of this memory was moved to “{file}” meanwhile.", file=now.file)
    )
    theirs = (tag("p", None, bdi(told)), tag("a", {"class": "btn", "href": address(place, now.file)}, words("Open it")))
    mine = _editor(words, EDIT, {"place": place.id, "file": now.file, "digest": memory.digest(now.file)}, fields)
    return Conflict(told, _both(words, told, theirs, mine), address(place, now.file))


def _is_same(memory: Memory, file: str, digest: str) -> bool:
    """Tell whether a file has this digest. A file that is too large, or not text, has none."""
    try:
        return bool(digest) and memory.digest(file) == digest
    except DiskError:
        return False


def _removed(site: Site, words: Words, place: Place, memory: Memory, log: list[MemoryVersion], fields: Fields) -> Conflict:
    """Return the conflict for a removed memory. Mine restores it and changes it, or becomes a new one if the journal lacks the old one."""
    told = words("This memory was removed meanwhile.")
    if log and log[0].action == "remove":
        when = ago_text(words, log[0].time, site.clock())
        told = words("This memory was removed meanwhile, by {who} {when}.", who=_who(words, log[0]), when=when)
    trash = f"/memories/trash?project={place.id}"
    theirs = (tag("p", None, told), tag("a", {"class": "btn", "href": trash}, words("Trash")))
    last = next((one for one in log if one.digest and memory.content(one.id) is not None), None)
    if last is not None:
        wanted = {"place": place.id, "file": fields.get("file", ""), "version": last.id, "name": last.name}
        return Conflict(told, _both(words, told, theirs, _editor(words, KEEP, wanted, fields)), trash)
    name = tag("label", None, words("Name"), tag("input", {"name": "name", "required": True, "dir": "auto"}))
    return Conflict(told, _both(words, told, theirs, _editor(words, NEW, {"place": place.id}, fields, name)), trash)


def _editor(words: Words, action: str, wanted: dict[str, str], fields: Fields, name: Html | None = None) -> Html | None:
    """Return the form that keeps the user's version; None if the form had no text."""
    if "body" not in fields:
        return None
    return change_form(
        action,
        wanted,
        name,
        editor_fields(words, fields.get("type", ""), fields.get("description", ""), plain(fields["body"])),
        tag("div", {"class": "btns"}, button(words("Keep mine"), {"class": "btn main", "id": "edit"})),
        attributes={"class": "editor", "id": "editor", "data-unsaved": "1"},
    )


def _both(words: Words, told: str, theirs: Child, mine: Html | None) -> Html:
    sides = [tag("div", None, tag("h3", None, words("The version on disk")), theirs)]
    sides += [tag("div", None, tag("h3", None, words("Your version")), mine)] if mine is not None else []
    return tag(
        "div", {"class": "pad"}, tag("p", {"class": "notice", "role": "alert"}, told), tag("div", {"class": "both"}, sides)
    )
