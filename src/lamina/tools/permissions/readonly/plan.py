"""Plans for read-only commands: decide whether a command line only reads, and what exactly will run.

Planning reads directory entries and links, nothing else, and never raises for the content of a line. The plan contains
finished argument lists: no shell will look at them again.

The commands, and every option each of them accepts, are listed in commands.toml.

Arguments are split into options and operands by the allow-list; anything else is refused. Invariant: an option is used only as it appears
on the command's list, alone or in a cluster of letters. Abbreviations that GNU would accept (`--outp`) are refused. The result is in an
order that every getopt reads alike: options, `--`, operands.

`find` has a different grammar: paths first, then tests that only look. Invariant: each primary is on one of the lists, with
exactly the words that find expects after it, so a value can never be read as an action. The only action on the lists is
printing. -L is not on them either, because it would follow links out of the tree.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ....language.text import Text, message, system_reason
from ....language.wording import counted, shorten
from .paths import ReadableRoots, expand_word, matching_names
from .tokenizer import CommandPart, CommandRefusal, Errors, Joint, NotReadOnly, ShellWord, split_command

# Far below any system's limit for arguments, far above what anyone reads.
MAX_ARGUMENT_BYTES = 100_000
SHOWN = 40

Somewhere: TypeAlias = str | os.PathLike[str]
When: TypeAlias = Literal["always", "after success", "after failure"]
_WHEN: dict[Joint, When] = {"": "always", ";": "always", "|": "always", "&&": "after success", "||": "after failure"}


# files: each operand is a path. pattern: the first operand is a pattern unless an option gave it. texts: never paths.
# words: every word is printed, so none is an option that has to be known.
Takes: TypeAlias = Literal["files", "pattern", "texts", "words", "nothing", "expression"]


class LongOption(NamedTuple):
    """A long option: without a value, with one, or with an optional one (then only with `=`)."""

    value: str | None = None
    optional: bool = False


class ReadOnlyCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    takes: Takes
    flags: str = ""  # letters without a value
    values: Mapping[str, str] = MappingProxyType({})  # letters with a value
    attached: Mapping[str, str] = MappingProxyType({})  # letters with an optional value, written without a space
    long: Mapping[str, LongOption] = MappingProxyType({})
    number: str = ""  # the letter that `-20` stands for
    recursive: frozenset[str] = frozenset()  # options that make it walk a tree
    pattern: frozenset[str] = frozenset()  # options that give the pattern
    opens: bool = True  # reads the content of files, not only their names
    here: bool = False  # looks at the working directory if no operand is given
    input: bool = True  # `-` means standard input
    least: int = 0  # minimum number of operands
    most: int = 1_000  # maximum number of operands
    operand: str = r"(?s:.*)"  # what each text must look like
    apart: bool = False  # a value must be a word of its own: some versions read `-Po` as two options
    walks: bool = False  # looks at everything below a directory
    unlinked: str = ""  # the option without which it follows links inside a directory
    entries: frozenset[str] = frozenset()  # options with which it shows a link itself, not what it leads to; "" means always


class FindTests(NamedTuple):
    """The tests of find that only look."""

    alone: frozenset[str]
    files: frozenset[str]  # followed by the name of a file that find looks at
    valued: Mapping[str, str]  # followed by any other value


class ReadOnlyLists(NamedTuple):
    commands: Mapping[str, ReadOnlyCommand]
    find: FindTests
    instead: Mapping[str, str]  # alternatives for common commands, for the refusal


@cache
def read_only_lists() -> ReadOnlyLists:
    """Return the lists in commands.toml, for this system."""
    import tomllib  # most sessions run no command

    data = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))
    forms: dict[str, str] = {}

    def form(text: str) -> str:
        return re.sub(r"\{([A-Z]+)\}", lambda name: forms[name[1]], text)

    def all_forms(values: Mapping[str, str]) -> dict[str, str]:
        return {name: form(value) for name, value in values.items()}

    for name, text in data["forms"].items():
        forms[name] = form(text)
    commands = dict[str, ReadOnlyCommand]()
    for name, fields in (data["commands"] | (data["darwin"] if sys.platform == "darwin" else {})).items():
        long = {f"--{option}": LongOption() for option in fields.pop("long", "").split()}
        long |= {f"--{option}": LongOption(value) for option, value in all_forms(fields.pop("valued", {})).items()}
        long |= {f"--{option}": LongOption(value, True) for option, value in all_forms(fields.pop("optional", {})).items()}
        fields |= {key: all_forms(fields[key]) for key in ("values", "attached") if key in fields}
        commands[name] = msgspec.convert(fields | {"long": long}, ReadOnlyCommand)
    tests = {name: form(value) for value, names in data["find"]["valued"].items() for name in names.split()}
    find = FindTests(frozenset(data["find"]["alone"].split()), frozenset(data["find"]["files"].split()), tests)
    return ReadOnlyLists(commands, find, data["instead"])


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
        return CommandRefusal(Text("Read-only commands are not available on Windows; use the Read, Grep and Glob tools."))
    try:
        readable = ReadableRoots(cwd, roots)
        planned = [_plan_part(part, readable) for part in parts]
    except NotReadOnly as unfit:
        return CommandRefusal(message(unfit))
    except OSError as error:
        return CommandRefusal(
            Text("The directories could not be read ({reason}); try another path.", reason=system_reason(error))
        )
    pipelines = list[Pipeline]()
    for part, (program, _) in zip(parts, planned, strict=True):
        if part.joint == "|":
            pipelines[-1] = Pipeline(pipelines[-1].when, (*pipelines[-1].stages, program))
        else:
            pipelines.append(Pipeline(_WHEN[part.joint], (program,)))
    reads = tuple(dict.fromkeys(chain.from_iterable(reads for _, reads in planned)))
    return ReadOnlyPlan(command, readable.cwd, tuple(pipelines), reads)


def _plan_part(part: CommandPart, readable: ReadableRoots) -> tuple[PlannedProgram, tuple[ReadTarget, ...]]:
    first, *others = part.words
    command = read_only_lists().commands.get(first.text) if first.plain else None
    if command is None:
        raise NotReadOnly(_unknown(first))
    if command.takes == "expression":
        options, reads = _find(command, others, readable)
    elif command.takes == "words":
        options, reads = _words(first.text, others, readable)
    else:
        options, reads = _ordinary(first.text, command, others, readable)
    argv = (first.text, *options)
    if sum(len(os.fsencode(word)) + 1 for word in argv) > MAX_ARGUMENT_BYTES:
        raise NotReadOnly(
            Text(
                "The arguments of {name} are longer than {most:,} bytes; name fewer files.",
                name=first.text,
                most=MAX_ARGUMENT_BYTES,
            )
        )
    return PlannedProgram(argv, part.errors), reads


def _unknown(word: ShellWord) -> Text:
    lists = read_only_lists()
    return Text(
        "{name} is not a read-only command ({commands}); {instead}.",
        name=shorten(word.text, SHOWN) or Text("An empty word"),
        commands=", ".join(lists.commands),
        instead=Text.whole(lists.instead.get(word.text, "use one of these")),
    )


def _ordinary(
    name: str, command: ReadOnlyCommand, words: list[ShellWord], readable: ReadableRoots
) -> tuple[list[str], tuple[ReadTarget, ...]]:
    arguments = CommandArguments(name, command, words)
    wants_pattern = command.takes == "pattern" and not arguments.names & command.pattern
    texts = len(arguments.operands) if command.takes == "texts" else int(wants_pattern)
    if len(arguments.operands) < max(texts, command.least) or (command.takes == "pattern" and not words):
        raise NotReadOnly(Text("{name} needs a pattern.", name=name))
    if any(re.fullmatch(command.operand, word.text) is None for word in arguments.operands[:texts]):
        raise NotReadOnly(Text("{name} does not accept this operand here; leave it out.", name=name))
    _refuse_expanding((*arguments.texts, *arguments.operands[:texts]), readable)
    links = bool({"", *arguments.names} & command.entries)
    files = list[_FileName]()
    for word in arguments.operands[texts:]:
        for expanded in expand_word(word, readable):
            # A link that leads outside is named without its slash, so that the command shows the link.
            outside = links and bool(word.wild) and not readable.holds(expanded)
            files.append(_FileName(expanded.rstrip("/"), True) if outside else _FileName(expanded))
    operands = [word.text for word in arguments.operands[:texts]] + [file.name for file in files]
    if len(operands) > command.most:
        raise NotReadOnly(
            Text(
                "{name} accepts at most {operands} here; leave the others out.",
                name=name,
                operands=counted(command.most, "operand"),
            )
        )
    tree = bool(arguments.names & command.recursive)
    reads = _reads(command, files, tree, readable, here=command.here or tree)
    if command.unlinked and command.unlinked not in arguments.names and any(target.tree for target in reads):
        raise NotReadOnly(Text("{name} follows links inside a directory; add {option}.", name=name, option=command.unlinked))
    return [*arguments.options, *(["--", *operands] if operands else [])], reads


class _FileName(NamedTuple):
    """A file name to pass on; `link` if it stands for the link itself and not for what it leads to."""

    name: str
    link: bool = False


def _words(name: str, words: list[ShellWord], readable: ReadableRoots) -> tuple[list[str], tuple[ReadTarget, ...]]:
    """Plan a command that prints its words. A wildcard among them reads names of the working directory."""
    texts = [text for word in words for text in expand_word(word, readable)]
    if texts in (["--help"], ["--version"]):
        raise NotReadOnly(Text("{name} {option} is not the same in every shell; leave it out.", name=name, option=texts[0]))
    wild = any(word.wild for word in words)
    return texts, (ReadTarget(readable.real(".", opens=False), False, False),) if wild else ()


def _reads(
    command: ReadOnlyCommand, files: list[_FileName], tree: bool, readable: ReadableRoots, *, here: bool
) -> tuple[ReadTarget, ...]:
    named = [file for file in files if not (file.name == "-" and command.input)]
    looked = named or ([_FileName(".")] if here and not files else [])
    targets = list[ReadTarget]()
    for file in looked:
        path = readable.entry(file.name) if file.link else readable.real(file.name, opens=command.opens)
        targets.append(ReadTarget(path, command.opens, tree or (command.walks and os.path.isdir(path))))
    return tuple(targets)


def _find(command: ReadOnlyCommand, words: list[ShellWord], readable: ReadableRoots) -> tuple[list[str], tuple[ReadTarget, ...]]:
    search = read_find(words)
    _refuse_expanding((*search.values, *search.files), readable)
    paths = [path for word in search.paths for path in expand_word(word, readable)]
    if "-" in paths:
        raise NotReadOnly(Text("- is not a path for find; name a directory."))
    reads = _reads(command, [_FileName(path) for path in paths], True, readable, here=True)
    compared = tuple(ReadTarget(readable.real(word.text, opens=False), False, False) for word in search.files)
    return [*paths, *search.expression], reads + compared


def _refuse_expanding(words: Iterable[ShellWord], readable: ReadableRoots) -> None:
    """Refuse wildcards outside file names that match files: a shell would insert the names there."""
    for word in words:
        if word.wild and matching_names(word, readable):
            raise NotReadOnly(
                Text("{word} matches files, and a shell would insert their names; put it in single quotes.", word=word.text)
            )


class CommandArguments:
    """A command's options and operands, each option allowed. The constructor reads all of them."""

    def __init__(self, name: str, command: ReadOnlyCommand, words: Sequence[ShellWord]) -> None:
        self._name = name
        self._command = command
        self._rest = iter(words)
        self.options = list[str]()  # in order, as they will be passed
        self.operands = list[ShellWord]()
        self.names = set[str]()  # letters and long names in use
        self.texts = list[ShellWord]()  # options and values as written: a shell might expand a wildcard in them
        for word in self._rest:
            text = word.text
            if text == "--":
                self.operands += self._rest
            elif not text.startswith("-") or text == "-":
                self.operands.append(word)
            else:
                self.texts.append(word)
                self._long(text) if text.startswith("--") else self._letters(text)

    def _long(self, text: str) -> None:
        name, equals, value = text.partition("=")
        option = self._command.long.get(name)
        if option is None:
            raise self._unknown(name)
        self.names.add(name)
        self.options.append(text)
        if equals:
            self._check(name, value, option.value)
        elif option.value is not None and not option.optional:
            self.options.append(self._following(name, option))

    def _following(self, name: str, known: LongOption) -> str:
        value = next(self._rest, None)
        if value is None:
            raise NotReadOnly(Text("{name} {option} needs a value.", name=self._name, option=name))
        self.texts.append(value)
        self._check(name, value.text, known.value)
        return value.text

    def _letters(self, text: str) -> None:
        if self._command.number and re.fullmatch(r"-[0-9]{1,12}", text):
            self.names.add(self._command.number)
            self.options += (f"-{self._command.number}", text[1:])
            return
        self.options.append(text)
        for place, letter in enumerate(text[1:], 2):
            self.names.add(letter)
            if letter in self._command.attached:
                if text[place:]:
                    self._check(f"-{letter}", text[place:], self._command.attached[letter])
                return
            if letter in self._command.values:
                pattern = self._command.values[letter]
                if text[place:] and self._command.apart:
                    raise NotReadOnly(Text("{name} -{option} needs a space before its value.", name=self._name, option=letter))
                if text[place:]:
                    self._check(f"-{letter}", text[place:], pattern)
                else:
                    self.options.append(self._following(f"-{letter}", LongOption(pattern)))
                return
            if letter not in self._command.flags:
                raise self._unknown(text if len(text) == 2 else f"-{letter} (in {text})")

    def _check(self, name: str, value: str, pattern: str | None) -> None:
        if pattern is None or re.fullmatch(pattern, value) is None:
            raise NotReadOnly(
                Text("{name} {option} does not accept this value here; leave it out.", name=self._name, option=name)
            )

    def _unknown(self, option: str) -> NotReadOnly:
        return NotReadOnly(
            Text("{name} {option} is not on the list of options that only read; leave it out.", name=self._name, option=option)
        )


_SIGNS = frozenset({"(", ")", "!", ","})


class FindArguments(msgspec.Struct, frozen=True):
    paths: tuple[ShellWord, ...]
    files: tuple[ShellWord, ...]  # files the tests look at
    values: tuple[ShellWord, ...]  # all other values
    expression: tuple[str, ...]


def read_find(words: Sequence[ShellWord]) -> FindArguments:
    remaining, tests = iter(words), read_only_lists().find
    paths, word = _paths(remaining)
    files, values, expression = list[ShellWord](), list[ShellWord](), list[str]()
    while word is not None:
        text = word.text
        expression.append(text)
        if text in tests.valued or text in tests.files:
            value = _value(text, tests.valued.get(text), remaining)
            expression.append(value.text)
            (files if text in tests.files else values).append(value)
        elif text not in tests.alone and text not in _SIGNS:
            raise NotReadOnly(Text("find {test} is not on the list of tests that only read; leave it out.", test=text))
        word = next(remaining, None)
    return FindArguments(tuple(paths), tuple(files), tuple(values), tuple(expression))


def _paths(rest: Iterator[ShellWord]) -> tuple[list[ShellWord], ShellWord | None]:
    """Return the words before the expression, and the expression's first word."""
    paths = list[ShellWord]()
    for word in rest:
        if word.text == "-P" and not paths:
            continue  # this is the default of find
        if word.text.startswith("-") or word.text in _SIGNS:
            return paths, word
        paths.append(word)
    return paths, None


def _value(test: str, pattern: str | None, words: Iterator[ShellWord]) -> ShellWord:
    value = next(words, None)
    if value is None or (pattern is not None and re.fullmatch(pattern, value.text) is None):
        raise NotReadOnly(Text("find {test} needs a valid value.", test=test))
    return value
