"""Search results for models: memories and sessions of this project only, without secrets, between fences.

Pure but for the search. Invariants: no text leaves without redaction and a fence. The size is bounded. Memories that belong to no
project and the session that asks are left out. Only the user's own settings can widen this to all projects.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence

from ..core.errors import Aborted
from ..core.fence import escape, fence
from ..core.settings import Settings
from ..memory.recall.render import cut_text, readable_text
from ..memory.store.secrets import redact
from .places import NAMES
from .query import NO_WORDS, SearchResult, search
from .scan import one_line

# A result is a paragraph or two; the messages around it say what it is about.
MOST_LINES = 40
MOST_BYTES = 2_000
AROUND_BYTES = 200
# Sentences about what could not be searched.
MOST_TOLD = 3
NOTHING = "Nothing was found. Try other words, or fewer."


def search_for_model(
    query: str,
    *,
    cwd: str | os.PathLike[str],
    count: int,
    exact: bool,
    settings: Settings,
    environ: Mapping[str, str],
    skip: Collection[str] = (),
    stopped: Callable[[], bool] = lambda: False,
) -> str:
    """Search this project, or all if the user allows it, and return the results as text for a model.

    `skip` are paths of sessions to leave out. Raises Aborted once `stopped` returns True.
    """
    told: list[str] = []

    def tell(done: int, of: int) -> None:
        if stopped():
            raise Aborted

    found = search(
        query,
        cwd,
        count,
        exact=exact,
        settings=settings,
        environ=environ,
        notices=told,
        skip=skip,
        everywhere=settings.search_all_projects,
        of_project_only=not settings.search_all_projects,
        redacted=True,
        tell=tell,
    )
    trouble = [escape(one) for one in told if one != NO_WORDS]  # a model has no command line, and NOTHING says the same
    return render_results(found) if found else " ".join([*trouble[:MOST_TOLD], NOTHING])


def render_results(found: Sequence[SearchResult]) -> str:
    return "\n\n".join(_rendered(one) for one in found)


def _rendered(found: SearchResult) -> str:
    if found.kind == "memory":
        head = f"Memory {found.title} of {NAMES[found.origin]}"
    else:
        place = f"session {found.session_id} of {NAMES[found.origin]}, turn {found.turn}"
        head = f"{found.speaker}, {found.time[:16].replace('T', ' ')}, {place}"
    parts = [("Before", found.before, AROUND_BYTES), ("", found.text, MOST_BYTES), ("After", found.after, AROUND_BYTES)]
    texts = [f"{name}: {_clean(text, size)}" if name else _clean(text, size) for name, text, size in parts if text]
    return f"{escape(one_line(redact(head).text))}\n{fence('past-session', chr(10).join(texts))}"


def _clean(text: str, size: int) -> str:
    """Redact first: a cut could leave half of a secret that no longer looks like one."""
    part = cut_text(readable_text(redact(text).text), lines=MOST_LINES, size=size)
    return part.text if part.whole else f"{part.text} …"
