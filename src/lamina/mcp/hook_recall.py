"""Recall inside another agent: the memories that fit the user's prompt, added by the hook UserPromptSubmit.

No state is kept between prompts. The transcript holds what the model has been shown, so a memory is added again only after a compaction,
also after a restart of the server.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from msgspec.structs import replace

from ..core.policy import SurfacingPolicy
from ..disk.regular_file import open_regular
from ..history.rollout_lines import BasePart, find_bases
from ..memory.recall.plan import RecallQuestion, SeenMemories, reason_to_skip, split_user_words
from ..memory.recall.selection import choose_by_ranker
from ..memory.store.uses import note_uses
from .hook_input import HookInput
from .project import ServedProject

# The part of a transcript that is looked through: about 20 ms of reading.
MOST_READ = 16 << 20
_SHOWN = re.compile(
    rb'Contents of (?P<path>(?:[^\\"\n]|\\.){1,4096}?) \(a memory(?:, type \w+)?, saved [\w ]+\):\\n<recalled-memory>'
    rb"(?P<text>[^\n]*?)</recalled-memory>"
)
# What follows a compaction, in the transcripts of Claude Code and of Codex.
_COMPACTED = (b'"subtype":"compact_boundary"', b'"type":"compacted"')
_OPENING, _CLOSING = "<system-reminder>\n", "\n</system-reminder>"


def recall_for_prompt(project: ServedProject, given: HookInput, most: int) -> str | None:
    """Return the memories for a prompt as text, or None if none fits."""
    settings = project.settings
    words = split_user_words(given.prompt)[0]
    place = project.locate_memory(settings) if settings.memory and settings.recall and not given.agent_id else None
    if place is None or not place.path.is_dir():
        return None
    asked, policy = RecallQuestion(given.session_id, words), settings.policy.surfacing
    seen = seen_in(given.transcript)
    if reason_to_skip(asked, seen, policy) is not None:
        return None
    with project.open_library(place, settings) as memory:
        found = choose_by_ranker(memory, asked, seen, _fitting(policy, most)).brought
    texts, used = list[str](), list[str]()
    for each in found:
        text = each.text.removeprefix(_OPENING).removesuffix(_CLOSING)
        if sum(map(len, texts)) + len(text) + 2 * len(texts) <= most:
            texts.append(text)
            used.append(each.path)
    if used and settings.memory_mode["private"] not in ("off", "read-only"):
        note_uses(place, used)
    return "\n\n".join(texts) or None


def seen_in(transcript: Path | None) -> SeenMemories:
    """Return the memories that this hook has added since the last compaction, with their size."""
    data = _tail(transcript) if transcript is not None else b""
    since = max(data.rfind(mark) for mark in _COMPACTED)
    shown = {_path(found["path"]): len(found["text"]) for found in _SHOWN.finditer(data, max(0, since))}
    return SeenMemories(frozenset(shown), size=sum(shown.values()))


def _tail(path: Path) -> bytes:
    """Return the end of a transcript. A fork of Codex begins with what the model was shown in its base."""
    data = b""
    try:
        parts = (*find_bases(path).parts, BasePart(str(path), os.stat(path).st_size))
        for part in reversed(parts):
            room = MOST_READ - len(data)
            with open_regular(part.path) as file:
                file.seek(max(0, part.size - room))
                data = file.read(min(room, part.size)) + data
    except OSError:
        pass  # what was read until then
    return data


def _path(raw: bytes) -> str:
    """Return a path as texts spell it. In a transcript it is part of a JSON string."""
    try:
        return str(json.loads(b'"' + raw + b'"'))
    except ValueError:
        return raw.decode("utf-8", "replace")


def _fitting(policy: SurfacingPolicy, most: int) -> SurfacingPolicy:
    """Return the policy with a limit for one memory that leaves room for another."""
    return replace(policy, file_bytes=min(policy.file_bytes, most // 2))
