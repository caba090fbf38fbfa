"""The hooks at the ends of a session and before a compaction: the context for the model, and repairs of memory."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.fence import escape, fence
from ..core.prompt_files import prompt_sections
from ..disk.regular_file import open_regular
from ..language.wording import counted
from ..memory.store.scopes import INBOX
from ..memory.store.topic import INDEX
from .hook_input import HookInput
from .project import ServedProject

if TYPE_CHECKING:
    from ..memory.recall.library import LoadedIndex

# A summary follows short instructions better than long ones.
MOST_STATEMENTS = 30
MOST_NOTES = 6_000
# Where Claude Code and layer 3 keep the notes of a session.
NOTES = Path("session-memory") / "summary.md"


def session_start(project: ServedProject, given: HookInput, most: int) -> str | None:
    """Return the index of memories and the number of pending changes.

    A resumed session and a fork have them already. An agent that writes memories itself also sends their index.
    """
    settings = project.settings
    if given.source in ("resume", "fork") or given.agent_id or not settings.memory:
        return None
    place = project.locate_memory(settings)
    if place is None or not place.path.is_dir():
        return None
    sends_index = settings.index_in_prompt and project.agent_memory() is None
    has_inbox = any(scope is not None and (scope / INBOX).is_dir() for scope in (place.path, place.team))
    if not sends_index and not has_inbox:
        return None  # as a rule, when Claude Code writes the memories
    texts, waiting = prompt_sections(__file__, "hooks"), 0
    # Opening the store would take most of the time. It counts what is pending, and rebuilds a missing index.
    if has_inbox or not (place.path / INDEX).is_file():
        with project.open_memory() as memory:
            waiting = len(memory.waiting())
    indexes: Sequence[LoadedIndex] = ()
    if sends_index:
        with project.open_library(place, settings) as library:
            indexes = library.indexes()
    parts = [texts["inbox"].format(changes=counted(waiting, "memory change"))] if waiting else []
    index = "\n".join(index.text for index in indexes)
    if index:
        room = most - sum(map(len, parts)) - len(texts["index"]) - len(texts["cut"]) - 100
        shown = _whole_lines(index, room)
        parts.insert(0, f"{texts['index']}\n{fence('memory-index', shown)}")
        parts.insert(1, texts["cut"]) if len(shown) < len(index) else None
    return "\n\n".join(parts) or None


def _whole_lines(text: str, most: int) -> str:
    """Return the first lines that fit once they are escaped."""
    if len(escape(text)) <= most:
        return text
    shown, size = list[str](), 0
    for line in text.split("\n"):
        size += len(escape(line)) + 1
        if size > most:
            break
        shown.append(line)
    return "\n".join(shown)


def before_compaction(project: ServedProject, given: HookInput, most: int) -> str | None:
    """Return instructions for the summary: what the user stated, and the notes of the session."""
    path = given.transcript
    if path is None or not path.is_file():
        return None
    texts = prompt_sections(__file__, "hooks")
    parts = []
    if stated := _statements(path):
        parts.append("\n".join([texts["statements"], *(f"- {escape(one)}" for one in stated)])[: most - MOST_NOTES])
    if notes := _notes(path.with_suffix("")):
        parts.append(f"{texts['notes']}\n{fence('past-session', notes)}")
    return "\n\n".join(parts)[:most] or None


def _statements(path: Path) -> Sequence[str]:
    """Return the newest sentences of the user that hold beyond the current task, and what the user asked to remember."""
    from ..core.log import Log
    from ..history.sessions import read
    from ..language.memory_requests import asks_for_memory
    from ..layers.l5_extract.signals import SENTENCE_CHARS, find_signals
    from ..memory.recall.plan import user_words
    from ..memory.store.secrets import redact

    found: dict[str, None] = {}
    for item in Log.load(lambda: read(path)).view.items:
        words = user_words(item)
        if words and asks_for_memory(words.strip()):
            found[" ".join(words.split())[:SENTENCE_CHARS]] = None
        elif words:
            found |= dict.fromkeys(one.quote for one in find_signals(words))
    return [redact(one).text for one in found][-MOST_STATEMENTS:]


def _notes(directory: Path) -> str:
    """Return the session's notes, if any were kept."""
    from ..memory.store.secrets import redact

    try:
        with open_regular(directory / NOTES) as file:
            return redact(file.read(MOST_NOTES).decode("utf-8", "replace")).text[: MOST_NOTES - 500].strip()
    except OSError:
        return ""


def mend_memory(project: ServedProject) -> list[str]:
    """Repair the memories that the agent itself wrote: relative dates become dates, and its index lists every memory.

    Returns what was done. Everything else that `lamina doctor` finds is left to the user.
    """
    from ..maintenance.doctor.examination import examine
    from ..maintenance.doctor.finding import DateIt, PathFix
    from ..maintenance.doctor.fixes import mend

    path = project.agent_memory()
    if path is None or not path.is_dir():
        return []
    environ, now = {**os.environ, "LAMINA_HOME": str(path.parents[2])}, time.time()
    report = examine(cwd=Path(project.cwd), environ=environ, now=now, memory_only=True)
    safe = [
        found
        for found in report.findings
        if isinstance(found.fix, DateIt) or (isinstance(found.fix, PathFix) and found.fix.action == "mend-index")
    ]
    return [each.text for each in mend(safe, now=now, shared=report.shared) if each.ok]
