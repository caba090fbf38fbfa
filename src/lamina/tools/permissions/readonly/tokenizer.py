r"""The tokenizer that read-only commands and rules share: it splits a command line into commands and words, or refuses it.

Invariant: bash reads an accepted line as exactly the words returned here. Anything a shell might read differently is
refused. Nothing is expanded: an unquoted wildcard is marked, for `paths` to expand.

    line     = command ( ("|" | "&&" | "||" | ";") command )* ";"?
    command  = (word | "2>/dev/null" | "2> /dev/null" | "2>&1")+         with at least one word
    word     = (plain | 'anything' | "anything but ` and $name, and \$ for a dollar sign" | \( | \) | \!)+

Refused everywhere: control, format, private and unassigned characters, and white space other than the space. Refused outside
quotes: $ ` < > & ( ) { } # ~ \ and any character that is neither ASCII nor a letter, mark or digit. In double quotes `$` is
accepted behind a backslash, and where no expansion can begin, as in "end$".
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, TypeAlias

import msgspec

from ....language.text import Text, message

# The longest line in any list of real commands is a few hundred characters; a longer one hides something.
MAX_LENGTH = 4_096
MAX_WORDS = 256
MAX_COMMANDS = 8

Joint: TypeAlias = Literal["", "|", "&&", "||", ";"]
Errors: TypeAlias = Literal["shown", "dropped", "joined"]


class CommandRefusal(msgspec.Struct, frozen=True):
    """Why a line may not run: one sentence that tells what to do instead."""

    why: Text


class ShellWord(msgspec.Struct, frozen=True):
    text: str
    wild: tuple[int, ...] = ()  # positions of unquoted wildcards in the text
    plain: bool = True  # written without quotes and backslashes


class CommandPart(msgspec.Struct, frozen=True):
    """One command, with the operator that joins it to the previous one."""

    joint: Joint
    words: tuple[ShellWord, ...]
    errors: Errors = "shown"


class NotReadOnly(Exception):
    """Stops the parsing of a line; its message is the sentence of the refusal."""


_BAD_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_JOINTS: dict[str, Joint] = {"|": "|", "&&": "&&", "||": "||", ";": ";"}
_JOINT = re.compile(r"&&|\|\||\||;")
# Matches the whole redirection and nothing after it: 2>&1x and 2>/dev/nullx would write a file.
_REDIRECTION = re.compile(r"2>(?P<target> {0,4}/dev/null|&1)(?=[ ;|&]|\Z)")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@^_]")
_WILD = frozenset("*?[")
# Before these characters bash keeps a dollar sign in double quotes unchanged.
_AFTER_DOLLAR = frozenset(' "|)\\')
_NAMES = {
    "$": Text("a dollar sign"),
    "`": Text("a backtick"),
    "~": Text("a tilde"),
    "\\": Text("a backslash"),
    "#": Text("a comment sign"),
    "&": Text("a lone &"),
    ">": Text("a redirection other than 2>/dev/null and 2>&1"),
    "<": Text("a redirection"),
}


def split_command(text: str) -> tuple[CommandPart, ...] | CommandRefusal:
    """Split a line into its commands, in order. No text makes it raise."""
    try:
        return _LineReader(text).parts()
    except NotReadOnly as unfit:
        return CommandRefusal(message(unfit))


class _LineReader:
    """One pass over one line."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise NotReadOnly(Text("The command is longer than {most:,} characters; use a shorter one.", most=MAX_LENGTH))
        for character in text:
            category = unicodedata.category(character)
            plain = character.isascii() and character.isprintable()
            if not plain and (category in _BAD_CATEGORIES or category == "Zs"):
                raise NotReadOnly(
                    Text(
                        "The command contains the invisible character U+{code:04X}; write one line without it.",
                        code=ord(character),
                    )
                )
        self.text = text
        self.place = 0
        self.commands: list[CommandPart] = []
        self.joint: Joint = ""
        self.words: list[ShellWord] = []
        self.errors: Errors = "shown"
        self.total = 0

    def parts(self) -> tuple[CommandPart, ...]:
        while self.place < len(self.text):
            if self.text[self.place] == " ":
                self.place += 1
            elif (joint := _JOINT.match(self.text, self.place)) is not None:
                self.end_command()
                self.joint, self.place = _JOINTS[joint[0]], joint.end()
            elif (target := _REDIRECTION.match(self.text, self.place)) is not None:
                self.errors, self.place = "joined" if target["target"] == "&1" else "dropped", target.end()
            else:
                self.add(self.word())
        if self.words or self.errors != "shown" or self.joint != ";":  # a semicolon may also end the line
            self.end_command()
        return tuple(self.commands)

    def end_command(self) -> None:
        if not self.words:
            raise NotReadOnly(Text("A command is missing before or after an operator; write complete commands."))
        self.commands.append(CommandPart(self.joint, tuple(self.words), self.errors))
        if len(self.commands) > MAX_COMMANDS:
            raise NotReadOnly(Text("More than {most} commands are joined; run them separately.", most=MAX_COMMANDS))
        self.words, self.errors = [], "shown"

    def add(self, word: ShellWord) -> None:
        self.words.append(word)
        self.total += 1
        if self.total > MAX_WORDS:
            raise NotReadOnly(Text("The command has more than {most} words; use a shorter one.", most=MAX_WORDS))

    def word(self) -> ShellWord:
        start, letters, wild = self.place, list[str](), list[int]()
        while self.place < len(self.text) and self.text[self.place] not in " |;" and not self.text.startswith("&&", self.place):
            character = self.text[self.place]
            if character in "'\"":
                letters += self.single() if character == "'" else self.double()
                continue
            if character in _WILD:
                wild.append(len(letters))
            letters.append(self.bare(character, start))
        text = "".join(letters)
        return ShellWord(text, tuple(wild), self.text[start : self.place] == text)

    def bare(self, character: str, start: int) -> str:
        """Read one character outside quotes, or a backslash and the character it escapes."""
        self.place += 1
        if character == "\\" and self.text[self.place : self.place + 1] in ("(", ")", "!"):
            self.place += 1
            return self.text[self.place - 1]
        if character == "!" and self.stands_alone(start):
            return character
        if character in _PLAIN or character in _WILD or _is_letter(character):
            return character
        name = _NAMES.get(character) or Text("the character {character}", character=character)
        raise NotReadOnly(
            Text("The command contains {name} outside quotes; put the word in single quotes or leave it out.", name=name)
        )

    def stands_alone(self, start: int) -> bool:
        """Tell whether `!` is safe: `find` accepts it as a word, and it means "not" at the start of a bracket. Elsewhere a
        shell may expand history."""
        alone = start == self.place - 1 and self.text[self.place : self.place + 1] in ("", " ")
        return alone or self.text[self.place - 2 : self.place - 1] == "["

    def single(self) -> str:
        end = self.text.find("'", self.place + 1)
        if end < 0:
            raise NotReadOnly(Text("A single quote is not closed."))
        inside, self.place = self.text[self.place + 1 : end], end + 1
        return inside

    def double(self) -> str:
        letters = list[str]()
        place = self.place + 1
        while (character := self.text[place : place + 1]) != '"':
            after = self.text[place + 1 : place + 2]
            if not character:
                raise NotReadOnly(Text("A double quote is not closed."))
            if character == "`" or (character == "$" and after not in _AFTER_DOLLAR) or (character == "\\" and after == "`"):
                raise NotReadOnly(Text("The command contains a dollar sign or a backtick in double quotes; use single quotes."))
            if character == "\\" and after in ('"', "\\", "$"):
                character, place = after, place + 1
            letters.append(character)
            place += 1
        self.place = place + 1
        return "".join(letters)


def _is_letter(character: str) -> bool:
    """Accept letters outside ASCII that cannot be taken for an operator, a dash or a space: 项 is fine, a full-width
    semicolon is not."""
    if character.isascii() or unicodedata.category(character)[0] not in "LMN":
        return False
    return unicodedata.normalize("NFKC", character) == character
