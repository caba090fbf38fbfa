"""One update of the notes: what it begins with, what the fork is asked, and whether its answer takes the place of the old notes.

`begin` and `finish` read and write; `rewrite` is the flow between them and does neither. All three run in a job's thread, on frozen
values. Invariant: the file is written once, by `finish`, with notes that were checked; whatever goes wrong before that leaves it as
it was, and an update that does not end well moves no cursor (N3).

The notes while a fork edits them: in memory, so that the file changes once, when all is well (N1, N4).

Owns the Edit tool that a fork of this room is lent in place of the real one: same name and schema, since another list would be
another prefix, but it works on the draft. Invariant: the draft has the template's headings and descriptions after every edit; one that
would change them is refused with the reason, and remembered.

Owns `session-memory/summary.md` of a session, and reads the two files in `session-memory/config/` of the home by which a person changes
how notes are kept (N5). The file is replaced as a whole and only while it holds what the update began with, so a person's change always
wins; what is no longer notes is moved beside, never removed. A crash at any line leaves the old notes or the new ones; between moving a
file beside and writing a fresh one there is none, and the next update begins one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from ...core.blocks import Wire
from ...core.effects import Flow, RunTools
from ...core.errors import DiskError
from ...core.fence import escape
from ...disk.files import read
from ...disk.trees.rootdir import RootDir
from ...disk.user_files import read_whole
from ...fork.fork import ForkOutcome, run_fork
from ...fork.handover import Handover
from ...tools.edit import SCHEMA, EditRefusal, plan_edit
from ...tools.tool import Builtin, Context, Tool, ToolOutput, failure
from .plan import Cursor
from .sections import Misfit, Notes, Size, Template, is_fresh, merged, read_notes, render, sizes
from .template import How, Limits, Texts, between_tags, directive, seen, texts_in_force

DIRECTORY = "session-memory"
NAME = "summary.md"

# Eighty times what the limits allow: a file beyond this holds no notes.
MAX_NOTES = 4 << 20
# Templates and prompts are pages, not books.
MAX_CONFIG = 256 << 10
# Files moved beside in one session; whoever has more has a program that writes there.
MAX_BESIDE = 1_000


def notes_path(session: Path) -> Path:
    return Path(os.path.abspath(session / DIRECTORY / NAME))


def read_file(path: Path) -> bytes | None:
    """All of the notes; None where there are none yet."""
    data = read(path, MAX_NOTES + 1)
    if data is not None and len(data) > MAX_NOTES:
        raise DiskError(str(path), f"is larger than {MAX_NOTES >> 20} MiB", "move it away; a fresh one is begun")
    return data


def read_config(home: Path | None, name: str) -> str | None:
    """The user's `template.md` or `prompt.md`; None where there is none. A person may keep it behind a link."""
    if home is None:
        return None
    path = home / DIRECTORY / "config" / name
    content = read_whole(path, MAX_CONFIG)
    if content is None:
        return None
    try:
        return content.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DiskError(str(path), "is not UTF-8 text", "save it as UTF-8") from error


def publish(path: Path, data: bytes, *, expected: bytes | None) -> bool:
    """Puts the new notes there; False, and nothing written, when the file no longer holds `expected`."""
    with RootDir.open(path.parent) as root:
        return root.replace_if(path.name, data, expected=expected)


def move_beside(path: Path, *, expected: bytes) -> Path | None:
    """Frees the name without losing what stood there; None when it no longer holds `expected`."""
    with RootDir.open(path.parent) as root:
        if root.read_bytes(path.name, len(expected) + 1) != expected:
            return None
        taken = {entry.name for entry in root.listdir()}
        names = (f"{path.stem}.kept-{number}{path.suffix}" for number in range(1, MAX_BESIDE + 1))
        free = next((name for name in names if name not in taken), None)
        if free is None:
            raise DiskError(str(path), f"can't be moved beside, {MAX_BESIDE:,} files lie there already", "remove some of them")
        root.rename(path.name, free)
        return path.with_name(free)


CHANGED = "Changed."
REFUSED = "Not changed: {why}. Headings and the italic lines below them stay as they are; write below them."


class Draft:
    def __init__(self) -> None:
        self.text = ""
        self.template: Template | None = None
        self.altered = ""  # why the last edit that touched a heading was refused

    def begin(self, text: str, template: Template) -> None:
        self.text, self.template, self.altered = text, template, ""

    def edit(self, arguments: Wire, context: Context) -> ToolOutput:
        """Permission has been asked: the call is about the notes' file."""
        assert self.template is not None
        planned = plan_edit(
            self.text,
            arguments["old_string"],
            arguments["new_string"],
            everywhere=arguments.get("replace_all", False),
            line_end="\n",
        )
        if isinstance(planned, EditRefusal):
            return failure(planned.sentence)
        read = read_notes(planned.text, self.template)
        if isinstance(read, Misfit):
            self.altered = read.why
            return failure(REFUSED.format(why=read.why))
        self.text = planned.text
        return ToolOutput(CHANGED)


def is_our_edit(tool: Tool) -> bool:
    """Whether a host's tool is the Edit that this room knows how to stand in for."""
    return tool.name == "Edit" and tool.schema == SCHEMA


def with_draft(tools: tuple[Tool, ...], draft: Draft) -> tuple[Tool, ...]:
    """The same tools; Edit changes the draft."""
    return tuple(
        Builtin(name="Edit", description=tool.description, schema=tool.schema, read_only=False, act=draft.edit)
        if is_our_edit(tool)
        else tool
        for tool in tools
    )


# Over the limit the next update is asked to shorten; an answer of more than twice of it did not understand what notes are.
TOO_LONG = 2

PURPOSE = "notes"


class NotesOrder(msgspec.Struct, frozen=True, kw_only=True):
    """All that an update works with."""

    path: Path
    home: Path | None
    how: How
    limits: Limits
    cursor: Cursor  # recorded if it ends well
    max_tokens: int | None = None


class Begun(NamedTuple):
    texts: Texts
    notes: Notes
    found: bytes | None  # what the file held; the update counts only if it still does
    nonsense: bool = False  # the file is no longer notes of this template
    remarks: tuple[str, ...] = ()


class Rewritten(NamedTuple):
    notes: Notes
    outcomes: tuple[ForkOutcome, ...]


class NotUpdated(NamedTuple):
    """The old file stays, for this reason."""

    why: str
    outcomes: tuple[ForkOutcome, ...] = ()
    remarks: tuple[str, ...] = ()


class Updated(NamedTuple):
    cursor: Cursor
    tokens: int  # of the notes
    outcomes: tuple[ForkOutcome, ...]
    remarks: tuple[str, ...] = ()
    beside: str = ""  # where a file that was no longer notes lies now


UpdateOutcome: TypeAlias = Updated | NotUpdated


def load_texts(home: Path | None) -> Texts:
    """What is in force; a file of the user's that cannot be read is said and passed over."""
    given: dict[str, str | None] = {}
    remarks: list[str] = []
    for name in ("template.md", "prompt.md"):
        try:
            given[name] = read_config(home, name)
        except DiskError as error:
            given[name] = None
            remarks.append(f"{error} Ours is used instead.")
    texts = texts_in_force(given["template.md"], given["prompt.md"])
    return texts._replace(remarks=(*remarks, *texts.remarks))


def read_current(data: bytes | None, template: Template) -> Notes | Misfit | None:
    """What a file holds; None where there is none."""
    if data is None:
        return None
    try:
        return read_notes(data.decode("utf-8-sig"), template)
    except UnicodeDecodeError:
        return Misfit("it is not UTF-8 text")


def begin(order: NotesOrder) -> Begun:
    texts = load_texts(order.home)
    found = read_file(order.path)
    current = read_current(found, texts.template)
    if isinstance(current, Misfit):
        remark = f"{order.path} is no longer used as notes: {current.why}; it is kept beside, and fresh notes are begun."
        return Begun(texts, texts.template.notes, found, nonsense=True, remarks=(*texts.remarks, remark))
    return Begun(texts, current or texts.template.notes, found, remarks=texts.remarks)


def rewrite(order: NotesOrder, begun: Begun, handover: Handover, draft: Draft, size: Size) -> Flow[Rewritten | NotUpdated]:
    """Ask for the new notes, by edits or by the sections that change, and check what comes. What an answer got wrong is said once."""
    template, path = begun.texts.template, str(order.path)
    before = str(escape(render(begun.notes)))
    draft.begin(before, template)
    said = directive(begun.texts, begun.notes, path, order.how, size=size, limits=order.limits)
    tried = yield from _one_try(handover, said, order)
    outcomes: tuple[ForkOutcome, ...] = (tried.outcome,)
    if tried.failures:
        now = read_notes(draft.text, template)
        notes = begun.notes if isinstance(now, Misfit) else now
        said = directive(begun.texts, notes, path, order.how, size=size, limits=order.limits, failures=tried.failures)
        tried = yield from _one_try(handover, said, order)
        outcomes = (*outcomes, tried.outcome)
    if tried.failures:
        return NotUpdated(draft.altered or tried.failures[0], outcomes)
    said_so = between_tags(tried.outcome.reply.text)
    new = read_notes(draft.text, template) if said_so is None else _with_sections(said_so, before, begun, size, order.limits)
    if said_so is None and draft.text == before:
        return NotUpdated(_nothing(tried.outcome), outcomes)
    return _checked(new, begun, size, order.limits, outcomes)


def _with_sections(said: str, before: str, begun: Begun, size: Size, limits: Limits) -> Notes | Misfit:
    """An answer that names sections, put into the notes it was shown; one that names none says that they are up to date."""
    texts = begun.texts
    notes = read_notes(before, texts.template)
    if isinstance(notes, Misfit) or not said:
        return notes
    found = sizes(begun.notes, size, section=limits.section, total=limits.total)
    return merged(str(escape(said)), notes, texts.template, seen(texts, begun.notes, size, found).hidden)


class _Tried(NamedTuple):
    outcome: ForkOutcome
    failures: tuple[str, ...]  # what the calls that did not work were told


def _one_try(handover: Handover, said: str, order: NotesOrder) -> Flow[_Tried]:
    """One answer; its calls are run by whoever drives this, and what failed is looked at."""
    flow = run_fork(handover, said, purpose=PURPOSE, max_tokens=order.max_tokens, tools=order.how == "edit")
    failures: list[str] = []
    try:
        effect = next(flow)
        while True:
            result = yield effect
            if isinstance(effect, RunTools):
                failures += [one.text for one in result if one.is_error]
            effect = flow.send(result)
    except StopIteration as stop:
        return _Tried(stop.value, tuple(failures))
    finally:
        flow.close()


def _nothing(outcome: ForkOutcome) -> str:
    stop = outcome.reply.stop_reason
    if stop == "refusal":
        return "the model declined"
    if stop is None or stop in ("max_tokens", "model_context_window_exceeded"):
        return "the answer was cut off"
    return "the answer held no notes" if outcome.reply.text.strip() else "the answer was empty"


def _checked(
    read: Notes | Misfit, begun: Begun, size: Size, limits: Limits, outcomes: tuple[ForkOutcome, ...]
) -> Rewritten | NotUpdated:
    if isinstance(read, Misfit):
        return NotUpdated(read.why, outcomes)
    notes = read._replace(preamble=begun.notes.preamble)
    if is_fresh(notes, begun.texts.template):
        return NotUpdated("nothing was noted", outcomes)
    if (tokens := size(render(notes))) > TOO_LONG * limits.total:
        return NotUpdated(f"it has about {tokens:,} tokens, more than {TOO_LONG} times the limit of {limits.total:,}", outcomes)
    return Rewritten(notes, outcomes)


def finish(order: NotesOrder, begun: Begun, done: Rewritten | NotUpdated, size: Size) -> UpdateOutcome:
    """Write what was checked, unless the file changed while the model was at work: the person's change wins."""
    if isinstance(done, NotUpdated):
        return done._replace(remarks=begun.remarks)
    text = render(done.notes)
    beside, expected = "", begun.found
    if begun.nonsense and begun.found is not None:
        moved = move_beside(order.path, expected=begun.found)
        if moved is None:
            return NotUpdated("the file was changed meanwhile", done.outcomes, begun.remarks)
        beside, expected = str(moved), None
    if not publish(order.path, text.encode(), expected=expected):
        return NotUpdated("the file was changed meanwhile", done.outcomes, begun.remarks)
    return Updated(order.cursor, size(text), done.outcomes, begun.remarks, beside)
