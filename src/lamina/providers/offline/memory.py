"""Remembering, forgetting and answering from memory without a model: the same tools a model would call.

Where memory lies is in the system prompt, what it holds in the first reminder's index and in the calls of this conversation; nothing
else is known. Each function answers with the next call, or with words when there is nothing left to call; how far a row of calls has
come is read from the conversation behind the prompt, so nothing is kept between two requests.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from ...core.blocks import Wire
from ...core.words import FORGET, REMEMBER, normal, sought, terms
from .note import ASK_BACK, no_memory, noted

ONLY_HERE = "Noted in this conversation only: {why}."
# Two sentences that share this much of their words say the same thing.
SAME = 0.6
# A memory shares at least this part of a question's terms, or of a subject to forget.
ENOUGH = 0.34
HALF = 0.5
# Memories that fit nearly as well as the best are read too.
NEARLY = 0.85
MOST_READ = 3
MOST_FORGOTTEN = 10
# What is shown of a memory; the whole of it stands in the conversation above.
SHOWN = 1_200
# Lines a search in memory brings back.
MOST_LINES = 40

_DIRECTORY = re.compile(r"^- Memory directory: (?P<path>.+)$", re.MULTILINE)
_INDEX = re.compile(r"^Contents of (?P<path>[^\n]+):\n<memory-index>\n(?P<text>.*?)\n</memory-index>$", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"^\s*[-*+] \[(?P<title>[^\n]*?)\]\((?P<file><[^<>\n]*>|[^()\s]*)\)(?:\s*(?:—|–|-|:)\s*(?P<hook>.*))?$")
_FRONT = re.compile(r"---\n(?P<head>.*?)\n---\n+(?P<body>.*)", re.DOTALL)
_NUMBER = re.compile(r"^\s*\d+\t", re.MULTILINE)
_WHY = re.compile(r"^\*\*Why:\*\*\s*(?P<why>.+)$", re.MULTILINE)
_TODAY = re.compile(r"^Today is (\d{4}-\d\d-\d\d)\.$", re.MULTILINE)
_WIDE = re.compile(
    r"^(?:(?:what|everything|all|anything)(?: that)?"
    r"(?: (?:you|i)(?:'ve| have)? (?:know|remember|saved|told you|said))?(?: (?:about|of))?\s+"
    r"|about\s+|(?:你(?:所)?(?:知道|记得)的)?(?:关于|有关|關於|有關)\s*)(?P<what>.+)$",
    re.IGNORECASE,
)
_TAIL = re.compile(r"(?:的(?:一切|所有(?:事情|内容)?|事情?|内容|记忆))?\s*[.!?。！？]*\s*$|\s*について.*$")
_ARTICLE = re.compile(r"^(?:the|our|my|your|that|this)\s+", re.IGNORECASE)
_WITHOUT = re.compile(
    r"\b(?:ignore|without|don't use|do not use)\b.{0,20}\bmemor(?:y|ies)\b|(?:忽略|不要用|不用|别用).{0,6}记忆", re.IGNORECASE
)
_OVERVIEW = re.compile(
    r"^\s*(?:what (?:do|can) you (?:remember|know)(?: about (?:me|us|this project|the project))?"
    r"|你(?:还)?(?:记得|记住了)(?:些)?什么|何を覚えて)"
    r"[^\w]*$",
    re.IGNORECASE,
)


class Known(NamedTuple):
    """A memory as far as it can be seen: its title, the path of its file, the hook of its index line."""

    title: str
    path: str
    hook: str

    @property
    def words(self) -> str:
        return f"{self.title} {self.hook}"


class Done(NamedTuple):
    """A call behind the prompt, and what came of it."""

    name: str
    given: Wire
    said: str
    failed: bool


class Asked(NamedTuple):
    """What a turn is decided from."""

    prompt: str
    at: int  # the prompt's place among the messages
    directory: str | None  # where memory lies; None: there is none
    known: tuple[Known, ...]
    cut: bool  # the index was too long to be sent whole
    done: tuple[Done, ...]
    tools: frozenset[str]
    today: str


def read_asked(request: Wire, prompt: str, at: int) -> Asked:
    messages = request["messages"]
    system = request.get("system") or ""
    said = system if isinstance(system, str) else "\n".join(str(block.get("text", "")) for block in system)
    found = _DIRECTORY.search(said)
    directory = found["path"].strip() if found else None
    reminders = [text for message in messages for text in _texts(message) if text.startswith("<system-reminder>")]
    indexes = [index for text in reminders for index in _INDEX.finditer(text)]
    today = [day for text in reminders for day in _TODAY.findall(text)]
    return Asked(
        prompt,
        at,
        directory,
        tuple(_known(indexes, messages[: at + 1], directory)),
        any("\n> Warning: MEMORY.md" in index["text"] for index in indexes),
        tuple(_done(messages[at + 1 :])),
        frozenset(str(tool.get("name")) for tool in request.get("tools") or ()),
        today[-1] if today else "",
    )


def _texts(message: Wire) -> Iterator[str]:
    yield from (block["text"] for block in message["content"] if block.get("type") == "text")


def _known(indexes: Sequence[re.Match[str]], messages: Sequence[Wire], directory: str | None) -> list[Known]:
    """The index as it was sent, and what this conversation has written and removed since."""
    found: dict[str, Known] = {}
    for index in indexes:
        base = posixpath.dirname(index["path"])
        for line in index["text"].split("\n"):
            if entry := _LINE.match(line):
                path = posixpath.join(base, unquote(entry["file"].strip("<>")))
                found[path] = Known(entry["title"], path, entry["hook"] or "")
    for done in _done(messages):
        path = str(done.given.get("file_path", ""))
        if done.name != "Write" or done.failed or directory is None or not path.startswith(f"{directory}/"):
            continue
        found.pop(path, None)
        if (text := _FRONT.match(str(done.given.get("content", "")))) is not None:
            found[path] = Known(_field(text["head"], "name"), path, _field(text["head"], "description"))
    return list(found.values())


def _field(head: str, name: str) -> str:
    found = re.search(rf"^{name}: *(.*)$", head, re.MULTILINE)
    return found[1].strip().strip('"') if found else ""


def _done(messages: Sequence[Wire]) -> Iterator[Done]:
    calls: dict[str, Wire] = {}
    for message in messages:
        for block in message["content"]:
            if block.get("type") == "tool_use":
                calls[block["id"]] = block
            elif block.get("type") == "tool_result" and (call := calls.get(str(block.get("tool_use_id")))) is not None:
                given = call["input"] if isinstance(call.get("input"), dict) else {}
                yield Done(str(call["name"]), given, result_text(block), bool(block.get("is_error")))


def result_text(result: Wire) -> str:
    content = result.get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": str(content or "")}]
    return "\n".join(str(part.get("text")) for part in parts if part.get("type") == "text").strip()


# Saving


def remember(asked: Asked) -> list[Wire]:
    """The next step of "Remember: …"."""
    text = REMEMBER.sub("", asked.prompt, count=1).strip()
    if not text:
        return _say('What shall I remember? Say "Remember: …".')
    if (what := no_memory(text)) is not None:
        return _say(ASK_BACK.format(what=what))
    if asked.directory is None or "Write" not in asked.tools:
        return _say(
            ONLY_HERE.format(why="there is no memory to save it in" if asked.directory is None else "I have no Write tool")
        )
    note = noted(asked.prompt, asked.today)
    there = next((known for known in asked.known if _same(note.name, note.rule, known)), None)
    path = there.path if there is not None else f"{asked.directory}/{note.name}.md"
    last = asked.done[-1] if asked.done else None
    read = next((done for done in asked.done if done.name == "Read" and not done.failed), None)
    if last is None and there is not None and "Read" in asked.tools:
        return _call(asked, "Read", {"file_path": path})
    if last is None or last.name == "Read":
        old = _content(read.said) if read is not None else ""
        why = _WHY.search(old)
        name = _field(old, "name") if read is not None else ""
        return _call(asked, "Write", {"file_path": path, "content": note.file(why["why"] if why else "", name)})
    if last.failed and "Read it" in last.said and len(asked.done) < 3 and "Read" in asked.tools:
        return _call(asked, "Read", {"file_path": path})
    if last.failed:
        return _say(f"That is not saved: {last.said}")
    kept = last.said.startswith(("Saved", "Updated")) or "says that already" in last.said
    return _say(f"I will remember that: {note.description}" if kept else last.said)


def _same(name: str, rule: str, known: Known) -> bool:
    file = posixpath.basename(known.path).removesuffix(".md")
    if normal(name) in (normal(file), normal(known.title)):
        return True
    one, other = set(terms(rule)), set(terms(known.hook))
    return bool(one and other) and len(one & other) / len(one | other) >= SAME


# Forgetting


def forget(asked: Asked) -> list[Wire]:
    """The next step of "Forget …": each memory it means is read and written empty, which removes it."""
    what, wide = subject(asked.prompt)
    if not what:
        return _say('What shall I forget? Say "Forget NAME" or "Forget what you know about …".')
    if asked.directory is None or not {"Read", "Write"} <= asked.tools:
        return _say(ONLY_HERE.format(why="there is no memory from which I could remove it"))
    targets = _targets(what, wide, asked.known)
    left = list(asked.done)
    if not targets:
        if "Grep" in asked.tools and not left:
            return _grep(asked, what, files=True)
        targets = _files(left.pop(0).said) if left and left[0].name == "Grep" and not left[0].failed else []
        if not targets:
            return _say(f"I know nothing about {what} in memory.")
        if len(targets) > 1:
            return _say(f"Several memories mention it. Say which: {', '.join(_title(path) for path in targets)}.")
    return _remove(asked, targets, left)


def _remove(asked: Asked, targets: Sequence[str], left: list[Done]) -> list[Wire]:
    said: list[str] = []
    for path in targets:
        if not left:
            return _call(asked, "Read", {"file_path": path})
        read = left.pop(0)
        if read.failed:
            said.append(read.said)
            continue
        if not left:
            return _call(asked, "Write", {"file_path": path, "content": ""})
        said.append(left.pop(0).said)
    return _say("\n".join(said))


def subject(prompt: str) -> tuple[str, bool]:
    """What is to be forgotten, and whether that is all about a subject rather than one memory."""
    text = _TAIL.sub("", FORGET.sub("", prompt.strip(), count=1).strip(), count=1)
    wide = _WIDE.match(text)
    return _ARTICLE.sub("", wide["what"] if wide else text).strip(), wide is not None


def _targets(what: str, wide: bool, known: Sequence[Known]) -> list[str]:
    named = [each.path for each in known if normal(what) in (normal(each.title), normal(_title(each.path)))]
    if named:
        return named[:1]
    scored = [(share(what, each.words), each.path) for each in known]
    whole = [path for part, path in scored if part >= 1]
    if wide and whole:
        return whole[:MOST_FORGOTTEN]
    best = max((part for part, _ in scored), default=0.0)
    fitting = [path for part, path in scored if part == best and part >= HALF]
    return fitting if wide or len(fitting) == 1 else []


def share(of: str, text: str) -> float:
    """How many of the terms of one text are in another, 0 to 1."""
    wanted = set(terms(of))
    return len(wanted & set(terms(text))) / len(wanted) if wanted else 0.0


def _title(path: str) -> str:
    return posixpath.basename(path).removesuffix(".md")


# Answering


def without_memory(prompt: str) -> bool:
    """Told to ignore memory, it is as if there were none."""
    return bool(_WITHOUT.search(prompt))


def overview(asked: Asked) -> list[Wire] | None:
    """The answer to "What do you remember?"; None for any other question."""
    if not _OVERVIEW.match(asked.prompt):
        return None
    lines = [f"- {known.title}: {known.hook}" if known.hook else f"- {known.title}" for known in asked.known]
    return _say("I remember:\n" + "\n".join(lines) if lines else "Nothing is remembered here yet.")


def recall(asked: Asked, fitting: Sequence[Known]) -> list[Wire] | None:
    """The next step of answering a question from these memories, or by a search through all; None where memory has no answer."""
    if asked.directory is None:
        return None
    if fitting:
        return _from_files(asked, fitting)
    if "Grep" not in asked.tools or not (asked.known or asked.cut):
        return None
    if not asked.done:
        return _grep(asked, asked.prompt) if sought(asked.prompt) else None
    return _from_lines(asked, asked.done[-1])


def _from_files(asked: Asked, fitting: Sequence[Known]) -> list[Wire]:
    files = fitting[:MOST_READ] if "Read" in asked.tools else ()
    if len(asked.done) < len(files):
        return _call(asked, "Read", {"file_path": files[len(asked.done)].path})
    told = []
    for known, done in zip(files, asked.done, strict=False):
        body = known.hook if done.failed else _body(done.said) or known.hook
        told.append(f"{body[:SHOWN].rstrip()}{'…' if len(body) > SHOWN else ''}\n(memory: {known.title})")
    return _say("\n\n".join(told) or "\n".join(known.hook or known.title for known in fitting))


def _from_lines(asked: Asked, done: Done) -> list[Wire] | None:
    """Of the lines a search brought, the one that shares most with the question."""
    rows = [] if done.failed else [row for row in (_row(line) for line in done.said.splitlines()) if row is not None]
    best = max(rows, key=lambda row: share(asked.prompt, row[1]), default=None)
    if best is None or share(asked.prompt, best[1]) < ENOUGH:
        return None
    return _say(f"{best[1]}\n(memory: {_title(best[0])})")


def _row(line: str) -> tuple[str, str] | None:
    found = re.match(r"(?P<path>.+?\.md)[:-]\d+[:-](?P<text>.*)$", line)
    if found is None or posixpath.basename(found["path"]) == "MEMORY.md":
        return None
    return found["path"], re.sub(r"^(?:name|description|type): *", "", found["text"].strip())


def _grep(asked: Asked, what: str, *, files: bool = False) -> list[Wire]:
    """A search through memory for any word of a text, in the form the Grep tool takes."""
    pattern = "|".join(re.escape(term) for term in sought(what)[:8])
    given: Wire = {"pattern": pattern, "path": asked.directory, "glob": "*.md", "-i": True}
    mode: Wire = (
        {"output_mode": "files_with_matches"} if files else {"output_mode": "content", "-n": True, "head_limit": MOST_LINES}
    )
    return _call(asked, "Grep", given | mode)


def _files(said: str) -> list[str]:
    """The paths a search names, the index left out."""
    lines = (line.strip() for line in said.splitlines())
    return [line for line in lines if line.endswith(".md") and posixpath.basename(line) != "MEMORY.md"][:MOST_FORGOTTEN]


def _content(read: str) -> str:
    """A file as Read shows it, without the line numbers."""
    return _NUMBER.sub("", read)


def _body(read: str) -> str:
    text = _content(read).strip()
    found = _FRONT.match(f"{text}\n")
    return (found["body"] if found else text).strip()


def _call(asked: Asked, name: str, given: Wire) -> list[Wire]:
    # The place makes the id new: the same words may be said again later.
    return [{"type": "tool_use", "id": f"toolu_offline_{asked.at}_{len(asked.done)}", "name": name, "input": given}]


def _say(text: str) -> list[Wire]:
    return [{"type": "text", "text": text}]
