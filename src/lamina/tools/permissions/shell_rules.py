r"""Bash rules: matching of command lines against the text in `Bash(…)`.

An `allow` rule must match a whole part of the line, word by word, as the tokenizer understands it. A line that the tokenizer
refuses is matched only by exactly the same text. For `deny` and `ask`, everything counts that could run the forbidden
command: each part, the command behind a wrapper such as `sudo`, the script passed to a shell, and the pieces of a line that
cannot be split reliably.

`npm run test` matches that command. `npm run test:*` and `npm run test *` also match it with further arguments. In `git *
main` the star matches any text; `\*` is a literal star.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Literal, TypeAlias

import msgspec

from .readonly.tokenizer import CommandPart, CommandRefusal, ShellWord, split_command

Match: TypeAlias = Literal["no", "maybe", "yes"]

# A longer line is not analysed: every restricting rule may match it.
MAX_LOOKED_AT = 10_000
# Rules are shorter than this, so later words can't matter to them.
MAX_RULE_WORDS = 50

_STAR = re.compile(r"(?<!\\)\*")
_ASSIGNMENT = re.compile(r"\w+\+?=")
# Where another command may begin in a line that the tokenizer refuses.
_SEPARATORS = re.compile(r"[;&|\n\r(){}`<>]")
# Syntax that a shell expands before it looks up the command.
_MADE = re.compile(r"[$*?\[]|,.*\}")
_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
# Substitutions inside substitutions, as deep as people write them.
_NESTED = 4
# Words that precede a command without being one.
_BEFORE = frozenset({"!", "if", "then", "elif", "else", "while", "until", "do", "time", "{"})
# Commands that run their arguments, as words or as a script.
_RUNNING = """. bash builtin chroot command coproc dash doas env eval exec find fish ionice ksh nice nohup noglob parallel script
    setsid sh source ssh stdbuf strace su sudo taskset timeout unshare watch xargs zsh"""
_CARRIERS = frozenset(_RUNNING.split())
# Commands known not to run their arguments. Any command on neither list may.
_HARMLESS = """[ basename cat cd chmod cp cut date dirname du echo false grep head ln ls mkdir mv printf pwd rm rmdir sort stat
    tail test touch tr true uniq wc"""
_DATA_ONLY = frozenset(_HARMLESS.split())


class ShellPattern(msgspec.Struct, frozen=True):
    raw: str  # as written, with stars unescaped, to compare whole lines
    pieces: tuple[str, ...]  # the text between the stars, in the form of `canonical`
    loose: tuple[str, ...]  # the same without quotes and in lower case
    prefix: bool  # whether the only star is at the end, behind a whole word


def read_shell(text: str) -> ShellPattern | str:
    """Parse a pattern; return it, or the problem with it."""
    spelled = text[:-2] + " *" if text.endswith(":*") else text
    pieces = [piece.replace("\\*", "*") for piece in _STAR.split(spelled)]
    if not "".join(pieces).strip():
        return "names no command; write Bash alone to match all commands"
    prefix = len(pieces) == 2 and pieces[1] == "" and pieces[0].endswith(" ")
    if prefix or len(pieces) == 1:
        plain = pieces[0].strip()
        ends = ("",) if prefix else ()
        return ShellPattern(plain, (_tidy(plain), *ends), (_loose(plain), *ends), prefix)
    return ShellPattern("*".join(pieces), tuple(pieces), tuple(_loose(piece, keep=True) for piece in pieces), False)


def _tidy(text: str) -> str:
    parts = split_command(text)
    return text if isinstance(parts, CommandRefusal) or len(parts) != 1 else canonical(parts[0].words)


def _loose(text: str, *, keep: bool = False) -> str:
    plain = re.sub(r"['\"\\]", "", text).casefold()
    return plain if keep else " ".join(plain.split())


def canonical(words: Sequence[ShellWord]) -> str:
    """Spell equal words the same way: one space in between, single quotes where needed, wildcards unchanged."""
    return " ".join(word.text if word.wild and word.plain else _quoted(word) for word in words)


def _quoted(word: ShellWord) -> str:
    pieces, start = list[str](), 0
    for place in word.wild:
        pieces += [shlex.quote(word.text[start:place]) if place > start else "", word.text[place]]
        start = place + 1
    if start < len(word.text) or not pieces:
        pieces.append(shlex.quote(word.text[start:]))
    return "".join(pieces)


def allows(pattern: ShellPattern, part: CommandPart) -> bool:
    return _fits(pattern.pieces, canonical(part.words), prefix=pattern.prefix)


def is_exactly(pattern: ShellPattern, command: str) -> bool:
    return len(pattern.pieces) == 1 and pattern.raw == command.strip()


def holds_back(pattern: ShellPattern, command: str) -> Match:
    """Tell whether the line runs the command of the pattern: yes, maybe, or no as far as can be determined."""
    if _fits(pattern.loose, _loose(command), prefix=pattern.prefix):
        return "yes"
    if len(command) > MAX_LOOKED_AT:
        return "maybe"
    matches = [sure for sure, text in _candidates(command) if _fits(pattern.loose, text, prefix=pattern.prefix)]
    return "yes" if any(matches) else "maybe" if matches or _named_later(command) else "no"


@lru_cache(maxsize=32)
def _named_later(command: str) -> bool:
    """Tell whether a command's name is known only at run time: `$x`, `$(…)`, `r{m,}`, `/bin/r?`. Quoted text is not a
    command."""

    def without_quotes(quoted: re.Match[str]) -> str:
        """Replace quoted text by one word; an expansion in double quotes stays visible."""
        inside = quoted[0][1:-1] if quoted[0][0] == '"' else ""
        return re.sub(r"[\s;&|<>]", "q", inside) if re.search(r"[$`]", inside) else "q"

    plain = _QUOTED.sub(without_quotes, command)
    for _ in range(_NESTED):
        plain = re.sub(r"\$\([^()]*\)|`[^`]*`", "$", plain)
    lines = plain.partition("\n")[0] if "<<" in plain else plain  # the rest is usually the text of a here-document
    for piece in re.split(r"[;&|\n\r]", lines):
        words = _without_prefix(piece.split())
        name = words[0].lstrip("({").rpartition("/")[2] if words else ""
        if name not in ("[", "[[") and _MADE.search(name):
            return True
    return False


def _without_prefix(words: list[str]) -> list[str]:
    start = next((number for number, word in enumerate(words) if word not in _BEFORE and not _ASSIGNMENT.match(word)), len(words))
    return words[start:]


def _fits(pieces: tuple[str, ...], text: str, *, prefix: bool) -> bool:
    if prefix:
        fixed = pieces[0]
        # `ls:*` does not match lsof; after a slash or an equals sign the word may continue.
        return text == fixed or text.startswith(fixed if fixed[-1:] in ("/", "=", ":") else f"{fixed} ")
    if len(pieces) == 1:
        return text == pieces[0]
    first, *middle, last = pieces
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    start, end = len(first), len(text) - len(last)
    for piece in middle:
        place = text.find(piece, start, end)
        if place < 0:
            return False
        start = place + len(piece)
    return True


@lru_cache(maxsize=32)
def _candidates(command: str) -> tuple[tuple[bool, str], ...]:
    """List everything the line may run, each with whether it certainly does. Cached, because every rule asks."""
    parts = split_command(command)
    if isinstance(parts, CommandRefusal):
        pieces = [_loose(piece, keep=True).split() for piece in _SEPARATORS.split(command)]
    else:
        pieces = [[word.text for word in part.words] for part in parts]
    candidates = chain.from_iterable(_of_part(words) for words in pieces)
    return tuple((sure, _loose(" ".join(words[:MAX_RULE_WORDS]))) for sure, words in candidates)


def _of_part(words: list[str], depth: int = 0) -> Iterator[tuple[bool, list[str]]]:
    words = _without_prefix(words)
    if not words:
        return
    name = words[0].rpartition("/")[2].casefold()
    yield True, [name, *words[1:]]
    if name in _DATA_ONLY:
        return
    sure = name in _CARRIERS
    for number in range(1, len(words)):
        yield sure, [words[number].rpartition("/")[2], *words[number + 1 : number + MAX_RULE_WORDS]]
        # A word may contain a script. Nested scripts are analysed only as deep as people write them.
        if depth < 2 and re.search(r"\s", words[number]):
            for piece in _SEPARATORS.split(words[number]):
                yield from ((sure and inner, nested) for inner, nested in _of_part(_loose(piece, keep=True).split(), depth + 1))


@lru_cache(maxsize=32)
def words_of(command: str) -> tuple[str, ...]:
    """Return every word that may be a path: the words themselves, and values after an equals sign."""
    parts = split_command(command)
    if isinstance(parts, CommandRefusal):
        words = re.split(r"[\s;&|(){}`<>]+", re.sub(r"['\"\\]", "", command))
    else:
        words = [word.text for part in parts for word in part.words]
    values = [word.partition("=")[2] for word in words if "=" in word]
    return tuple(dict.fromkeys(word for word in (*words, *values) if word and "\0" not in word))
