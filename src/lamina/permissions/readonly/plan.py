"""Decides whether a command line only reads (G2), and what exactly will run if it does.

Owns the decision. It reads directory entries and links, and nothing else; it never raises for what a line says. The plan holds
finished argument lists: no shell will look at them again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import chain
from typing import Literal, TypeAlias

import msgspec

from .commands import COMMANDS, INSTEAD, Command
from .finding import take_find
from .globs import expand, matches
from .options import take_options
from .places import Places
from .words import Errors, Joint, Part, Refusal, Unfit, Word, split

# Far below what any system takes for the arguments of a program, far above what a person reads.
MAX_ARGUMENT_BYTES = 100_000
SHOWN = 40

Somewhere: TypeAlias = str | os.PathLike[str]
When: TypeAlias = Literal["always", "after success", "after failure"]
_WHEN: dict[Joint, When] = {"": "always", ";": "always", "|": "always", "&&": "after success", "||": "after failure"}


class Stage(msgspec.Struct, frozen=True):
    """One program of a pipeline."""

    argv: tuple[str, ...]
    errors: Errors


class Pipeline(msgspec.Struct, frozen=True):
    when: When
    stages: tuple[Stage, ...]


class Place(msgspec.Struct, frozen=True):
    """Something a plan looks at, by its real path."""

    path: str
    contents: bool  # what is in it, not only its name, size and times
    tree: bool  # and everything below


class Plan(msgspec.Struct, frozen=True):
    command: str
    cwd: str
    pipelines: tuple[Pipeline, ...]
    reads: tuple[Place, ...]


class _Ready(msgspec.Struct, frozen=True):
    stage: Stage
    reads: tuple[Place, ...]


def plan_readonly(command: str, *, cwd: Somewhere, roots: Iterable[Somewhere], windows: bool = os.name == "nt") -> Plan | Refusal:
    """What to run for `command`, or why it is not known to be a command that only reads inside `roots`."""
    parts = split(command)
    return parts if isinstance(parts, Refusal) else plan_parts(parts, command, cwd=cwd, roots=roots, windows=windows)


def plan_parts(
    parts: tuple[Part, ...], command: str, *, cwd: Somewhere, roots: Iterable[Somewhere], windows: bool = os.name == "nt"
) -> Plan | Refusal:
    """The same for commands that are cut already."""
    if windows:
        return Refusal("Read-only commands do not run on Windows; use the Read, Grep and Glob tools.")
    try:
        places = Places(cwd, roots)
        ready = [_ready(part, places) for part in parts]
    except Unfit as unfit:
        return Refusal(str(unfit))
    except OSError as error:
        return Refusal(f"The directories could not be looked at ({error.strerror}); try another path.")
    reads = tuple(dict.fromkeys(chain.from_iterable(item.reads for item in ready)))
    return Plan(command, places.cwd, _pipelines(parts, ready), reads)


def _pipelines(parts: tuple[Part, ...], ready: list[_Ready]) -> tuple[Pipeline, ...]:
    found = list[Pipeline]()
    for part, item in zip(parts, ready, strict=True):
        if part.joint == "|":
            found[-1] = Pipeline(found[-1].when, (*found[-1].stages, item.stage))
        else:
            found.append(Pipeline(_WHEN[part.joint], (item.stage,)))
    return tuple(found)


def _ready(part: Part, places: Places) -> _Ready:
    first, *rest = part.words
    command = COMMANDS.get(first.text) if first.plain else None
    if command is None:
        raise Unfit(_unknown(first))
    if command.takes == "expression":
        arguments, reads = _find(command, rest, places)
    else:
        arguments, reads = _ordinary(first.text, command, rest, places)
    argv = (first.text, *arguments)
    if sum(len(os.fsencode(word)) + 1 for word in argv) > MAX_ARGUMENT_BYTES:
        raise Unfit(f"The arguments of {first.text} are longer than {MAX_ARGUMENT_BYTES:,} bytes; name fewer files.")
    return _Ready(Stage(argv, part.errors), reads)


def _unknown(word: Word) -> str:
    text = word.text if len(word.text) <= SHOWN else word.text[:SHOWN] + "…"
    known = ", ".join(COMMANDS)
    instead = INSTEAD.get(word.text)
    return f"{text or 'An empty word'} is not a read-only command ({known}); {instead or 'use one of these'}."


def _ordinary(name: str, command: Command, words: list[Word], places: Places) -> tuple[list[str], tuple[Place, ...]]:
    given = take_options(name, command, words)
    texts = 0
    if command.takes == "sets":
        texts = len(given.operands)
    elif command.takes == "pattern" and not given.names & command.pattern:
        texts = 1
    if len(given.operands) < texts or (command.takes in ("pattern", "sets") and not words):
        raise Unfit(f"{name} needs a pattern; give it one.")
    _refuse_expanding((*given.wild, *given.operands[:texts]), places)
    files = [found for word in given.operands[texts:] for found in expand(word, places)]
    operands = [word.text for word in given.operands[:texts]] + files
    if len(operands) > command.most:
        raise Unfit(f"{name} takes no more than {command.most} operands here; leave the others out.")
    tree = bool(given.names & command.recursive)
    reads = _reads(command, files, tree, places, here=command.here or tree)
    return [*given.options, *(["--", *operands] if operands else [])], reads


def _reads(command: Command, files: list[str], tree: bool, places: Places, *, here: bool) -> tuple[Place, ...]:
    named = [text for text in files if not (text == "-" and command.input)]
    looked = named or (["."] if here and not files else [])
    return tuple(Place(places.real(text, opens=command.opens), command.opens, tree) for text in looked)


def _find(command: Command, words: list[Word], places: Places) -> tuple[list[str], tuple[Place, ...]]:
    search = take_find(words)
    _refuse_expanding((*search.wild, *(word for word in search.files if word.wild)), places)
    paths = [found for word in search.paths for found in expand(word, places)]
    if "-" in paths:
        raise Unfit("find has no path called -; name a directory.")
    reads = _reads(command, paths, True, places, here=True)
    compared = tuple(Place(places.real(word.text, opens=False), False, False) for word in search.files)
    return [*paths, *search.expression], reads + compared


def _refuse_expanding(words: Iterable[Word], places: Places) -> None:
    """A wildcard outside the file names means itself only as long as no file matches; a shell would put the names there."""
    for word in words:
        if word.wild and matches(word, places):
            raise Unfit(f"{word.text} matches files here and would be replaced by their names; put it in single quotes.")
