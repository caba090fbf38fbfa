"""The memory section of the system prompt.

The wording is in `prompts/`. Pure: the same arguments give the same bytes. Nothing depends on the clock or on the memories,
so the prefix of a session stays as first sent. The lines with the directories have a fixed form, because the offline
provider parses them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..core.claude_home import new_memory_file
from ..core.fence import fence
from ..core.prompt_files import prompt_sections
from ..core.reach import FILE_TOOLS, MEMORY_SAVE, MEMORY_SEARCH, PAST_SEARCH
from ..core.settings import Mode
from .store.daily_logs import LOGS, MOST_CHARACTERS, PATTERN
from .store.index import load_index
from .store.scopes import AgentMemoryLocation, MemoryLocation, path_text
from .store.topic import KINDS


def memory_instructions(
    *,
    place: MemoryLocation,
    mode: Mode,
    tools: Sequence[str],
    index: bool = True,
    past: bool = True,
    transcripts: Path | None = None,
    extra: str | None = None,
    assistant: bool = False,
    recall: bool = True,
    extracts: bool = False,
) -> str:
    """Return the section; empty if memory is off. `transcripts` is the directory of this project's transcripts. With
    `assistant`, notes go to daily logs. `recall` and `extracts` tell which layers work for a model that cannot open files."""
    if mode == "off":
        return ""
    if FILE_TOOLS.isdisjoint(tools):
        return _without_files(mode, tools, index=index, recall=recall, extracts=extracts, extra=extra)
    texts = prompt_sections(__file__, "memory")
    daily = prompt_sections(__file__, "daily") if assistant else {}
    # The pattern of the path, never a date: the prompt must not change when the day changes.
    log = {"memory": path_text(place.path), "pattern": PATTERN, "most": MOST_CHARACTERS}
    writes = mode != "read-only" and "Write" in tools
    parts = [
        texts["opening"].format(memory=path_text(place.path), index=texts["index" if index else "no index"]),
        texts["asked"] if writes else texts["read-only"],
        *((texts["types"], *_type_sections(team=place.team is not None)) if writes else ()),
        *((texts["not saved"], daily["log"].format(**log) if assistant else _saving(place.path)) if writes else ()),
        texts["confirm"] if writes and mode == "confirm" and not assistant else "",
        "\n".join(part for part in (texts["reading"], daily.get("reading", "")) if part),
        texts["recommending"],
        texts["other"] if writes else "",
        texts["team"].format(team=path_text(place.team)) if place.team is not None else "",
        _past(place, transcripts, tools, assistant=assistant) if past else "",
        (extra or "").strip(),
    ]
    return "\n\n".join(filter(None, parts))


def _without_files(mode: Mode, tools: Sequence[str], *, index: bool, recall: bool, extracts: bool, extra: str | None) -> str:
    """Return the section for a model that cannot open the files: it names no file and no tool that is not there."""
    texts, shared = prompt_sections(__file__, "host"), prompt_sections(__file__, "memory")
    writes = mode != "read-only"
    saves, extracts = writes and MEMORY_SAVE in tools, writes and extracts
    told = {
        "recall": recall,
        "index": index,
        "search": MEMORY_SEARCH in tools,
        "saving": saves,
        "extraction": extracts and not saves,
        "read-only": not (saves or extracts),
        "confirm": mode == "confirm" and (saves or extracts),
        "ignoring": True,
    }
    parts = [
        texts["opening"],
        "\n".join(texts[name] for name, true in told.items() if true),
        *((shared["types"], *_type_sections(team=False), shared["not saved"]) if saves else ()),
        shared["recommending"],
        (extra or "").strip(),
    ]
    return "\n\n".join(filter(None, parts))


def what_to_save(*, team: bool) -> str:
    """Return what is worth keeping, of which type, and what is never saved, for a review without the section above."""
    texts = prompt_sections(__file__, "memory")
    return "\n\n".join([texts["types"], *_type_sections(team=team), texts["not saved"]])


def _type_sections(*, team: bool) -> list[str]:
    texts = prompt_sections(__file__, "types")
    return [texts[kind] if team else re.sub(r"\n- Scope:.*", "", texts[kind]) for kind in KINDS]


def _saving(directory: Path) -> str:
    """Return how to save, with an example of a file name as the directory has them."""
    example = "testing-db.md"
    return prompt_sections(__file__, "memory")["saving"].replace(example, new_memory_file(directory, example, "feedback"))


def _past(place: MemoryLocation, transcripts: Path | None, tools: Sequence[str], *, assistant: bool = False) -> str:
    """Explain how to search with the available tool; empty without one."""
    if "Grep" in tools:
        by = 'Grep with pattern="…" path="{path}" glob="{glob}"'
    elif "Bash" in tools:
        by = '`grep -rn "…" {path} --include="{glob}"`'
    else:
        return ""
    memory = by.format(path=path_text(place.path), glob="*.md")
    if assistant:
        memory += f" {prompt_sections(__file__, 'daily')['past'].format(logs=LOGS)}"
    if place.team is not None and not place.team.is_relative_to(place.path):
        memory += f", and the same in {path_text(place.team)}"
    last = by.format(path=path_text(transcripts), glob="*.jsonl") if transcripts is not None else "none are kept here"
    if PAST_SEARCH in tools:
        last = f"{PAST_SEARCH}, which also knows the sessions of other agents; or {last}"
    return prompt_sections(__file__, "memory")["past"].format(search_memory=memory, search_transcripts=last)


def agent_instructions(
    place: AgentMemoryLocation, *, mode: Mode, tools: Sequence[str], index: str, extra: str | None = None
) -> str:
    """Return the section for an agent's system prompt; empty if its memory is off. `index` is the text of the index file."""
    if mode == "off":
        return ""
    own, shared = prompt_sections(__file__, "agent"), prompt_sections(__file__, "memory")
    writes = mode != "read-only" and "Write" in tools
    listed = load_index(index)
    parts = [
        own["opening"].format(memory=path_text(place.path), scope=own[place.scope]),
        own["asked"] if writes else shared["read-only"],
        *((shared["types"], *_type_sections(team=False), shared["not saved"], shared["saving"]) if writes else ()),
        shared["confirm"] if writes and mode == "confirm" else "",
        shared["reading"],
        shared["recommending"],
        (extra or "").strip(),
        f"{own['index']}\n\n{fence('memory-index', listed) if listed else own['empty']}",
    ]
    return "\n\n".join(filter(None, parts))
