"""A dream without a model: what can be put in order by rules is, by the calls a model would make (O1).

A pure function of the request. It reads the index, the memories and the daily logs that wait, then writes what `tidy` and `distil` make
of them, then the index, then says what it did; how far it has come is read from the calls behind the directive. What was not shown whole
is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from ...core.blocks import Wire
from ...fork.fork import directive_in
from ...memory.store.daily_logs import log_day
from ...memory.store.index import INDEX
from ...providers.offline.turn_context import Done, read_turn
from .bounds import MOST_FILES
from .directive import Asked, read_directive
from .distil import Log, distilled
from .tidy import Page, Tidied, tidied

# Of one answer: all memories of most projects.
READS = 60
_LOG_FILE = re.compile(r"logs/\d{4}/\d\d/[\d-]{10}\.md$")
_ROW = re.compile(r"^\s*\d+\t", re.MULTILINE)
NOTHING = "Memory is in order; nothing was changed. (These are rules, not a language model.)"


def answer(request: Wire) -> list[Wire]:
    asked = read_directive(directive_in(request) or "")
    done = read_turn(request, "", _at(request["messages"])).done
    read = {str(one.given.get("file_path")): one for one in done if one.name == "Read"}
    wrote = {str(one.given.get("file_path")) for one in done if one.name == "Write"}
    wanted = [f"{asked.work}/{file}" for file in (INDEX, *(one.file for one in asked.listed))] if asked.work else []
    wanted += asked.logs
    if left := [path for path in wanted if path not in read]:
        return [_call("Read", number + len(read), {"file_path": path}) for number, path in enumerate(left[:READS])]
    pages = _pages(asked, read)
    change = _tidied(asked, pages, read)
    new = _distilled(asked, pages, read, change)
    writes = {f"{asked.work}/{file}": text for file, text in {**change.texts, **new}.items()}
    if change.index is not None:
        writes[f"{asked.work}/{INDEX}"] = change.index
    if left := [path for path in writes if path not in wrote][: MOST_FILES - len(wrote)]:
        return [_call("Write", number, {"file_path": path, "content": writes[path]}) for number, path in enumerate(left)]
    return [{"type": "text", "text": _told(change, len(new)) if wrote else NOTHING}]


def _at(messages: Sequence[Wire]) -> int:
    """Where the directive stands: the last user message that holds one."""
    found = [
        at for at, one in enumerate(messages) if any(str(part.get("text", "")).startswith("<fork ") for part in one["content"])
    ]
    return found[-1] if found else len(messages) - 1


def _call(name: str, number: int, given: Wire) -> Wire:
    return {"type": "tool_use", "id": f"dream_{name}_{number}", "name": name, "input": given}


def _pages(asked: Asked, read: dict[str, Done]) -> list[Page]:
    pages = list[Page]()
    for one in asked.listed:
        text = _whole(read.get(f"{asked.work}/{one.file}"))
        if text is not None:
            pages.append(Page(one.file, text, date.fromisoformat(one.day)))
    return pages


def _distilled(asked: Asked, pages: Sequence[Page], read: dict[str, Done], change: Tidied) -> dict[str, str]:
    """What the daily logs say and no memory does; where not all memories were read, nothing is sure. The memories are those that were
    tidied: a log is looked at once, and what it says of one of them must not wait for another time."""
    if asked.more or len(pages) < len(asked.listed):
        return {}
    texts = {path: _whole(read.get(path)) for path in asked.logs}
    now = [page._replace(text=change.texts.get(page.file, page.text)) for page in pages]
    logs = [Log(day, text) for path, text in texts.items() if text and (day := _day(path))]
    return distilled(logs, [page for page in now if page.text])


def _day(path: str) -> date | None:
    found = _LOG_FILE.search(path)
    return log_day(found[0]) if found else None


def _tidied(asked: Asked, pages: Sequence[Page], read: dict[str, Done]) -> Tidied:
    index = _whole(read.get(f"{asked.work}/{INDEX}"))
    known = {one.file for one in asked.listed}
    # What is not in the list may be there all the same: only a list that is whole says that a file is gone.
    return tidied(pages, index or "", lambda file: file in known or asked.more)


def _whole(read: Done | None) -> str | None:
    """A file as Read showed it; None where it showed only a part."""
    if read is None or read.failed:
        return None
    lines = read.said.split("\n")
    if not all(_ROW.match(line) for line in lines):
        return None
    return "".join(f"{_ROW.sub('', line, count=1)}\n" for line in lines)


def _told(change: Tidied, new: int) -> str:
    counted = (
        (new, "memories made of daily logs"),
        (change.merged, "memories merged into others"),
        (change.dated, "relative dates made absolute"),
        (change.lines, "lines of the index mended"),
    )
    said = ", ".join(f"{what}: {count}" for count, what in counted if count)
    return f"Memory was put in order by rules ({said or 'its index'})."
