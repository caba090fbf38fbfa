"""One update of the notes: read the file, ask a fork for changes, check them, and write the file.

`begin` reads and `finish` writes; `rewrite` is the flow between them and does neither. All three run in the job's thread, on
frozen values. Invariant: the file is written once, by `finish`, with checked notes. A failure before that leaves the file
unchanged, and a failed update does not move the cursor (N3).

A fork that edits the notes works on a draft in memory, so that the file changes only once, at the end (N1, N4). It gets an Edit
tool with the usual name and schema, since a different tool list would break the cached prefix, but this tool edits the draft.
Invariant: the draft has the template's headings and descriptions after every edit. An edit that would change them is refused with
the reason, which is remembered.

Owns `session-memory/summary.md` of a session, and reads the user's two files in `session-memory/config/` of the home directory
(N5). The notes file is replaced as a whole, and only if it still has the content that the update started from, so a change by the
user always wins. A file that is no longer valid notes is renamed, never deleted. A crash at any line leaves the old notes or the
new ones. The one exception is a crash between renaming an invalid file and writing a new one: then no notes exist until the next
update.
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
from ...language.text import Text
from ...tools.edit import EDIT_SCHEMA, EditRefusal, plan_edit
from ...tools.tool import Builtin, Context, Tool, ToolOutput, failure
from .plan import Cursor
from .sections import (
    How,
    Misfit,
    Notes,
    NotesLimits,
    Size,
    Template,
    Texts,
    between_tags,
    directive,
    is_fresh,
    merged,
    read_notes,
    render,
    seen,
    sizes,
    texts_in_force,
)

DIRECTORY = "session-memory"
NAME = "summary.md"

# Eighty times the token limits: a larger file cannot be notes.
MAX_NOTES = 4 << 20
# Enough for any template or prompt.
MAX_CONFIG = 256 << 10
# Maximum number of renamed files in one session. More than this means that some program keeps writing there.
MAX_BESIDE = 1_000


def notes_path(session: Path) -> Path:
    return Path(os.path.abspath(session / DIRECTORY / NAME))


def read_file(path: Path) -> bytes | None:
    """Return the content of the notes file, or None if there is no file yet."""
    data = read(path, MAX_NOTES + 1)
    if data is not None and len(data) > MAX_NOTES:
        raise DiskError(
            str(path), Text("is larger than {limit} MiB", limit=MAX_NOTES >> 20), "move it away, and Lamina starts a new one"
        )
    return data


def read_config(home: Path | None, name: str) -> str | None:
    """Return the user's `template.md` or `prompt.md`, or None if there is no such file. It may be a symbolic link."""
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
    """Write the new notes. Return False and write nothing if the file no longer has the content `expected`."""
    with RootDir.open(path.parent) as root:
        return root.replace_if(path.name, data, expected=expected)


def move_beside(path: Path, *, expected: bytes) -> Path | None:
    """Rename the file to a free name and return its new path, or None if it no longer has the content `expected`."""
    with RootDir.open(path.parent) as root:
        if root.read_bytes(path.name, len(expected) + 1) != expected:
            return None
        names_in_use = {entry.name for entry in root.listdir()}
        names = (f"{path.stem}.kept-{number}{path.suffix}" for number in range(1, MAX_BESIDE + 1))
        free = next((name for name in names if name not in names_in_use), None)
        if free is None:
            raise DiskError(str(path), f"cannot be renamed, since {MAX_BESIDE:,} older copies exist", "remove some of them")
        root.rename(path.name, free)
        return path.with_name(free)


CHANGED = "Changed."
REFUSED = "Not changed: {why}. Keep the headings and the italic lines below them as they are, and write below them."


class Draft:
    def __init__(self) -> None:
        self.text = ""
        self.template: Template | None = None
        self.altered = ""  # why the last edit that touched a heading was refused

    def begin(self, text: str, template: Template) -> None:
        self.text, self.template, self.altered = text, template, ""

    def edit(self, arguments: Wire, context: Context) -> ToolOutput:
        """Edit the draft. The permission check has already made sure that the call is for the notes file."""
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
        notes = read_notes(planned.text, self.template)
        if isinstance(notes, Misfit):
            self.altered = notes.why
            return failure(REFUSED.format(why=notes.why))
        self.text = planned.text
        return ToolOutput(CHANGED)


def is_our_edit(tool: Tool) -> bool:
    """Return whether a host's tool is the built-in Edit, which the draft can replace."""
    return tool.name == "Edit" and tool.schema == EDIT_SCHEMA


def with_draft(tools: tuple[Tool, ...], draft: Draft) -> tuple[Tool, ...]:
    """Return the same tools, with an Edit that changes the draft."""
    return tuple(
        Builtin(name="Edit", description=tool.description, schema=tool.schema, read_only=False, act=draft.edit)
        if is_our_edit(tool)
        else tool
        for tool in tools
    )


# Notes over the limit are accepted, and the next update is asked to shorten them. Notes over twice the limit are rejected.
TOO_LONG = 2

PURPOSE = "notes"


class NotesOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The inputs of an update."""

    path: Path
    home: Path | None
    how: How
    limits: NotesLimits
    cursor: Cursor  # recorded if the update succeeds
    max_tokens: int | None = None


class Begun(NamedTuple):
    texts: Texts
    notes: Notes
    content: bytes | None  # of the file; the update is written only if it is still the same
    nonsense: bool = False  # the file does not match the template
    remarks: tuple[str, ...] = ()


class Rewritten(NamedTuple):
    notes: Notes
    outcomes: tuple[ForkOutcome, ...]


class NotUpdated(NamedTuple):
    """The update failed for this reason, and the old file stays."""

    why: str
    outcomes: tuple[ForkOutcome, ...] = ()
    remarks: tuple[str, ...] = ()


class Updated(NamedTuple):
    cursor: Cursor
    tokens: int  # tokens of the notes
    outcomes: tuple[ForkOutcome, ...]
    remarks: tuple[str, ...] = ()
    beside: str = ""  # new path of a renamed invalid file


UpdateOutcome: TypeAlias = Updated | NotUpdated


def load_texts(home: Path | None) -> Texts:
    """Return the texts in use. A user file that cannot be read is reported and ignored."""
    files: dict[str, str | None] = {}
    remarks: list[str] = []
    for name in ("template.md", "prompt.md"):
        try:
            files[name] = read_config(home, name)
        except DiskError as error:
            files[name] = None
            remarks.append(f"{error} The built-in {name} is used instead.")
    texts = texts_in_force(files["template.md"], files["prompt.md"])
    return texts._replace(remarks=(*remarks, *texts.remarks))


def read_current(data: bytes | None, template: Template) -> Notes | Misfit | None:
    """Return the notes in a file's content, or None if there is no file."""
    if data is None:
        return None
    try:
        return read_notes(data.decode("utf-8-sig"), template)
    except UnicodeDecodeError:
        return Misfit("it is not UTF-8 text")


def begin(order: NotesOrder) -> Begun:
    texts = load_texts(order.home)
    content = read_file(order.path)
    current = read_current(content, texts.template)
    if isinstance(current, Misfit):
        remark = f"{order.path} no longer matches the notes template: {current.why}. It is renamed, and new notes are started."
        return Begun(texts, texts.template.notes, content, nonsense=True, remarks=(*texts.remarks, remark))
    return Begun(texts, current or texts.template.notes, content, remarks=texts.remarks)


def rewrite(order: NotesOrder, begun: Begun, handover: Handover, draft: Draft, size: Size) -> Flow[Rewritten | NotUpdated]:
    """Ask for the new notes, as edits or as the sections that change, and check the answer. If calls failed, ask once more."""
    template, path = begun.texts.template, str(order.path)
    before = str(escape(render(begun.notes)))
    draft.begin(before, template)
    prompt = directive(begun.texts, begun.notes, path, order.how, size=size, limits=order.limits)
    tried = yield from _one_try(handover, prompt, order)
    outcomes: tuple[ForkOutcome, ...] = (tried.outcome,)
    if tried.failures:
        now = read_notes(draft.text, template)
        notes = begun.notes if isinstance(now, Misfit) else now
        prompt = directive(begun.texts, notes, path, order.how, size=size, limits=order.limits, failures=tried.failures)
        tried = yield from _one_try(handover, prompt, order)
        outcomes = (*outcomes, tried.outcome)
    if tried.failures:
        return NotUpdated(draft.altered or tried.failures[0], outcomes)
    answer = between_tags(tried.outcome.reply.text)
    new = read_notes(draft.text, template) if answer is None else _with_sections(answer, before, begun, size, order.limits)
    if answer is None and draft.text == before:
        return NotUpdated(_why_no_notes(tried.outcome), outcomes)
    return _checked(new, begun, size, order.limits, outcomes)


def _with_sections(answer: str, before: str, begun: Begun, size: Size, limits: NotesLimits) -> Notes | Misfit:
    """Put the sections of an answer into the notes it was shown. An empty answer means that the notes are up to date."""
    texts = begun.texts
    notes = read_notes(before, texts.template)
    if isinstance(notes, Misfit) or not answer:
        return notes
    measured = sizes(begun.notes, size, section=limits.section, total=limits.total)
    return merged(str(escape(answer)), notes, texts.template, seen(texts, begun.notes, size, measured).hidden)


class _Tried(NamedTuple):
    outcome: ForkOutcome
    failures: tuple[str, ...]  # the error results of failed calls


def _one_try(handover: Handover, prompt: str, order: NotesOrder) -> Flow[_Tried]:
    """Ask for one answer and collect the errors of its calls, which the driver of the flow runs."""
    flow = run_fork(handover, prompt, purpose=PURPOSE, max_tokens=order.max_tokens, tools=order.how == "edit")
    failures: list[str] = []
    try:
        effect = next(flow)
        while True:
            result = yield effect
            if isinstance(effect, RunTools):
                failures += [tool_result.text for tool_result in result if tool_result.is_error]
            effect = flow.send(result)
    except StopIteration as stop:
        return _Tried(stop.value, tuple(failures))
    finally:
        flow.close()


def _why_no_notes(outcome: ForkOutcome) -> str:
    stop = outcome.reply.stop_reason
    if stop == "refusal":
        return "the model declined"
    if stop is None or stop in ("max_tokens", "model_context_window_exceeded"):
        return "the answer was cut off"
    return "the answer contained no notes" if outcome.reply.text.strip() else "the answer was empty"


def _checked(
    answer: Notes | Misfit, begun: Begun, size: Size, limits: NotesLimits, outcomes: tuple[ForkOutcome, ...]
) -> Rewritten | NotUpdated:
    if isinstance(answer, Misfit):
        return NotUpdated(answer.why, outcomes)
    notes = answer._replace(preamble=begun.notes.preamble)
    if is_fresh(notes, begun.texts.template):
        return NotUpdated("nothing was noted", outcomes)
    if (tokens := size(render(notes))) > TOO_LONG * limits.total:
        return NotUpdated(
            f"they have about {tokens:,} tokens, more than {TOO_LONG} times the limit of {limits.total:,}", outcomes
        )
    return Rewritten(notes, outcomes)


def finish(order: NotesOrder, begun: Begun, rewritten: Rewritten | NotUpdated, size: Size) -> UpdateOutcome:
    """Write the checked notes, unless the file changed in the meantime: a change by the user wins."""
    if isinstance(rewritten, NotUpdated):
        return rewritten._replace(remarks=begun.remarks)
    text = render(rewritten.notes)
    beside, expected = "", begun.content
    if begun.nonsense and begun.content is not None:
        moved = move_beside(order.path, expected=begun.content)
        if moved is None:
            return NotUpdated("the file changed in the meantime", rewritten.outcomes, begun.remarks)
        beside, expected = str(moved), None
    if not publish(order.path, text.encode(), expected=expected):
        return NotUpdated("the file changed in the meantime", rewritten.outcomes, begun.remarks)
    return Updated(order.cursor, size(text), rewritten.outcomes, begun.remarks, beside)
