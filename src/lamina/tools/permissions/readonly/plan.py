"""Plans for read-only commands: decide whether a command line only reads, and what exactly will run.

Planning reads directory entries and links, nothing else, and never raises for the content of a line. The plan contains
finished argument lists: no shell will look at them again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ....language.wording import counted, shorten
from .arguments import CommandArguments, read_find
from .commands import COMMANDS, INSTEAD, ReadOnlyCommand
from .paths import ReadableRoots, expand_word, matching_names
from .tokenizer import CommandPart, CommandRefusal, Errors, Joint, NotReadOnly, ShellWord, split_command

# Far below any system's limit for arguments, far above what anyone reads.
MAX_ARGUMENT_BYTES = 100_000
SHOWN = 40

Somewhere: TypeAlias = str | os.PathLike[str]
When: TypeAlias = Literal["always", "after success", "after failure"]
_WHEN: dict[Joint, When] = {"": "always", ";": "always", "|": "always", "&&": "after success", "||": "after failure"}


class PlannedProgram(msgspec.Struct, frozen=True):
    """One program of a pipeline."""

    argv: tuple[str, ...]
    errors: Errors


class Pipeline(msgspec.Struct, frozen=True):
    when: When
    stages: tuple[PlannedProgram, ...]


class ReadTarget(msgspec.Struct, frozen=True):
    """A path that a plan reads, with links resolved."""

    path: str
    contents: bool  # the content, not only name, size and times
    tree: bool  # including everything below


class ReadOnlyPlan(msgspec.Struct, frozen=True):
    command: str
    cwd: str
    pipelines: tuple[Pipeline, ...]
    reads: tuple[ReadTarget, ...]


def plan_readonly(
    command: str, *, cwd: Somewhere, roots: Iterable[Somewhere], windows: bool = os.name == "nt"
) -> ReadOnlyPlan | CommandRefusal:
    """Return what to run for `command`, or why it is not known to be a command that only reads inside `roots`."""
    parts = split_command(command)
    return parts if isinstance(parts, CommandRefusal) else plan_parts(parts, command, cwd=cwd, roots=roots, windows=windows)


def plan_parts(
    parts: tuple[CommandPart, ...], command: str, *, cwd: Somewhere, roots: Iterable[Somewhere], windows: bool = os.name == "nt"
) -> ReadOnlyPlan | CommandRefusal:
    """Plan commands that are already split."""
    if windows:
        return CommandRefusal("Read-only commands are not available on Windows; use the Read, Grep and Glob tools.")
    try:
        readable = ReadableRoots(cwd, roots)
        planned = [_plan_part(part, readable) for part in parts]
    except NotReadOnly as unfit:
        return CommandRefusal(str(unfit))
    except OSError as error:
        return CommandRefusal(f"The directories could not be read ({error.strerror}); try another path.")
    pipelines = list[Pipeline]()
    for part, (program, _) in zip(parts, planned, strict=True):
        if part.joint == "|":
            pipelines[-1] = Pipeline(pipelines[-1].when, (*pipelines[-1].stages, program))
        else:
            pipelines.append(Pipeline(_WHEN[part.joint], (program,)))
    reads = tuple(dict.fromkeys(chain.from_iterable(reads for _, reads in planned)))
    return ReadOnlyPlan(command, readable.cwd, tuple(pipelines), reads)


def _plan_part(part: CommandPart, readable: ReadableRoots) -> tuple[PlannedProgram, tuple[ReadTarget, ...]]:
    first, *rest = part.words
    command = COMMANDS.get(first.text) if first.plain else None
    if command is None:
        raise NotReadOnly(_unknown(first))
    if command.takes == "expression":
        arguments, reads = _find(command, rest, readable)
    elif command.takes == "words":
        arguments, reads = _words(first.text, rest, readable)
    else:
        arguments, reads = _ordinary(first.text, command, rest, readable)
    argv = (first.text, *arguments)
    if sum(len(os.fsencode(word)) + 1 for word in argv) > MAX_ARGUMENT_BYTES:
        raise NotReadOnly(f"The arguments of {first.text} are longer than {MAX_ARGUMENT_BYTES:,} bytes; name fewer files.")
    return PlannedProgram(argv, part.errors), reads


def _unknown(word: ShellWord) -> str:
    known = ", ".join(COMMANDS)
    instead = INSTEAD.get(word.text)
    return (
        f"{shorten(word.text, SHOWN) or 'An empty word'} is not a read-only command ({known}); {instead or 'use one of these'}."
    )


def _ordinary(
    name: str, command: ReadOnlyCommand, words: list[ShellWord], readable: ReadableRoots
) -> tuple[list[str], tuple[ReadTarget, ...]]:
    given = CommandArguments(name, command, words)
    wants_pattern = command.takes == "pattern" and not given.names & command.pattern
    texts = len(given.operands) if command.takes == "texts" else int(wants_pattern)
    if len(given.operands) < max(texts, command.least) or (command.takes == "pattern" and not words):
        raise NotReadOnly(f"{name} needs a pattern.")
    if any(re.fullmatch(command.operand, word.text) is None for word in given.operands[:texts]):
        raise NotReadOnly(f"{name} does not accept this operand here; leave it out.")
    _refuse_expanding((*given.texts, *given.operands[:texts]), readable)
    links = bool({"", *given.names} & command.entries)
    files = [found for word in given.operands[texts:] for found in _file_names(word, readable, links=links and bool(word.wild))]
    operands = [word.text for word in given.operands[:texts]] + [file.name for file in files]
    if len(operands) > command.most:
        raise NotReadOnly(f"{name} accepts at most {counted(command.most, 'operand')} here; leave the others out.")
    tree = bool(given.names & command.recursive)
    reads = _reads(command, files, tree, readable, here=command.here or tree)
    if command.unlinked and command.unlinked not in given.names and any(read.tree for read in reads):
        raise NotReadOnly(f"{name} follows links inside a directory; add {command.unlinked}.")
    return [*given.options, *(["--", *operands] if operands else [])], reads


class _FileName(NamedTuple):
    """A file name to pass on; `link` if it stands for the link itself and not for what it leads to."""

    name: str
    link: bool = False


def _file_names(word: ShellWord, readable: ReadableRoots, *, links: bool = False) -> Iterator[_FileName]:
    """Expand a word. With `links`, a link that leads outside is named without its slash, so that the command shows the link."""
    for name in expand_word(word, readable):
        outside = links and not readable.holds(name)
        yield _FileName(name.rstrip("/"), True) if outside else _FileName(name)


def _words(name: str, words: list[ShellWord], readable: ReadableRoots) -> tuple[list[str], tuple[ReadTarget, ...]]:
    """Plan a command that prints its words. A wildcard among them reads names of the working directory."""
    texts = [text for word in words for text in expand_word(word, readable)]
    if texts in (["--help"], ["--version"]):
        raise NotReadOnly(f"{name} {texts[0]} is not the same in every shell; leave it out.")
    wild = any(word.wild for word in words)
    return texts, (ReadTarget(readable.real(".", opens=False), False, False),) if wild else ()


def _reads(
    command: ReadOnlyCommand, files: list[_FileName], tree: bool, readable: ReadableRoots, *, here: bool
) -> tuple[ReadTarget, ...]:
    named = [file for file in files if not (file.name == "-" and command.input)]
    looked = named or ([_FileName(".")] if here and not files else [])
    found = list[ReadTarget]()
    for file in looked:
        path = readable.entry(file.name) if file.link else readable.real(file.name, opens=command.opens)
        found.append(ReadTarget(path, command.opens, tree or (command.walks and os.path.isdir(path))))
    return tuple(found)


def _find(command: ReadOnlyCommand, words: list[ShellWord], readable: ReadableRoots) -> tuple[list[str], tuple[ReadTarget, ...]]:
    search = read_find(words)
    _refuse_expanding((*search.values, *search.files), readable)
    paths = [found for word in search.paths for found in expand_word(word, readable)]
    if "-" in paths:
        raise NotReadOnly("- is not a path for find; name a directory.")
    reads = _reads(command, [_FileName(path) for path in paths], True, readable, here=True)
    compared = tuple(ReadTarget(readable.real(word.text, opens=False), False, False) for word in search.files)
    return [*paths, *search.expression], reads + compared


def _refuse_expanding(words: Iterable[ShellWord], readable: ReadableRoots) -> None:
    """Refuse wildcards outside file names that match files: a shell would insert the names there."""
    for word in words:
        if word.wild and matching_names(word, readable):
            raise NotReadOnly(f"{word.text} matches files, and a shell would insert their names; put it in single quotes.")
