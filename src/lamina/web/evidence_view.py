"""Show how a memory's evidence changed: for each changed file, the difference to the version that the memory relied on.

The version is looked for in the project's git history, by the digest that the memory keeps. Reads only.
"""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..memory.store.evidence import (
    MOST_BYTES,
    Anchor,
    AnchorTarget,
    is_recorded_version,
    judge_anchor,
    read_evidence,
    read_target,
)
from ..memory.store.topic import evidence_of
from ..prompt.git_status import FileVersion, find_version
from .diff import diff_texts, whole_text
from .html import Child, Html, bdi, tag
from .numbers import ago
from .page import fragment
from .site import Site
from .words import Words, words_for

# The beginning of a file that is shown if its earlier version is not found.
LINES_SHOWN = 40


def routes(site: Site) -> list[Route]:
    def changed(request: Request) -> Response:
        return _changed(site, request)

    return [Route("/memories/{place}/{file:path}/changed-evidence", changed)]


def _changed(site: Site, request: Request) -> Response:
    words = words_for(request)
    place = site.places.find(request.path_params["place"])
    found = site.memories.one(place, request.path_params["file"]) if place is not None else None
    if place is None or found is None:
        return fragment(tag("p", {"class": "notice"}, words("This memory is no longer on disk.")), 404)
    root = place.project or place.path
    shown = []
    for anchor in read_evidence(evidence_of(found.topic)).anchors:
        target = read_target(anchor.path, root)
        if judge_anchor(anchor, target).state == "stale":
            shown.append(_one(site, words, root, anchor, target))
    return fragment(tag("div", {"class": "changed"}, shown or words("Nothing differs any more.")))


def _one(site: Site, words: Words, root: Path, anchor: Anchor, target: AnchorTarget) -> Html:
    now = target.decode("utf-8", "replace") if isinstance(target, bytes) else ""
    old = _version(site, root, anchor)
    head: list[Child] = [tag("b", {"class": "mono"}, bdi(anchor.path)), " "]
    if old is not None:
        since = words("since commit {commit}", commit=old.commit[:8])
        head.append(tag("span", {"class": "soft"}, since, " (", ago(words, old.time, site.clock()), ")"))
        before = old.data.decode("utf-8", "replace")
        body = diff_texts(before, now) if target is not None else whole_text(before, added=False)
    else:
        head.append(
            tag(
                "span",
                {"class": "soft"},
                words(
                    "No commit holds the version that the memory relied on. The file begins like this now:"
                    if target is not None
                    else "This file no longer exists, and no commit holds it."
                ),
            )
        )
        body = tag("pre", {"class": "version"}, bdi("\n".join(now.splitlines()[:LINES_SHOWN]))) if now else None
    return tag("div", None, tag("p", None, head), body)


def _version(site: Site, root: Path, anchor: Anchor) -> FileVersion | None:
    if not anchor.digest:
        return None
    file = root.joinpath(*anchor.path.split("/"))
    return find_version(file, lambda data: is_recorded_version(anchor, data), environ=site.environ, most=MOST_BYTES)
