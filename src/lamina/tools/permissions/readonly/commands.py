"""The allow-lists: the commands that may run, and every option each of them accepts.

Invariant: options are listed exactly as they must be written. Left out on purpose is any option that writes (`sort -o`),
runs a program (`--compress-program`), reads a list of names from a file (`-f`, `--files0-from`), follows links inside a tree
(`grep -R`, `ls -L`), or never ends (`tail -f`). An abbreviated long option is another spelling, so it is refused.
Also left out: setting the clock (`date -s`), compiling or naming magic files (`file -C`, `-m`), unpacking (`file -z`), and
paging (`diff -l`), which runs another program.

An option's value is a regular expression for the whole value; TEXT accepts any text.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

import msgspec

TEXT = r"(?s:.*)"
# Twelve digits count the bytes of any file; more digits would only serve to overflow something.
COUNT = r"[0-9]{1,12}"
SIGNED = rf"[+-]?{COUNT}"
# The form that `head` and `tail` accept: 20, +5, 4K.
AMOUNT = rf"{SIGNED}[bkKMG]?"
RANGES = r"[0-9,-]{1,200}"
WHEN = r"never|auto|always"
KEY = r"[0-9.,bdfghiMnrV]{1,40}"
SIZE = rf"-?({COUNT}[kKMGT]?|[kKMGT])(i?B)?"
# A date in words or digits. Without quotes and `=` it cannot name a time zone file, as in TZ="/etc/passwd".
DATE = r"[\w @:+,./-]{1,100}"
ISO = r"date|hours|minutes|seconds|ns"

# files: each operand is a path. pattern: the first operand is a pattern unless an option gave it. texts: never paths.
# words: every word is printed, so none is an option that has to be known.
Takes: TypeAlias = Literal["files", "pattern", "texts", "words", "nothing", "expression"]


class LongOption(NamedTuple):
    """A long option: without a value, with one, or with an optional one (then only with `=`)."""

    value: str | None = None
    optional: bool = False


class ReadOnlyCommand(msgspec.Struct, frozen=True):
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
    operand: str = TEXT  # what each text must look like
    apart: bool = False  # a value must be a word of its own: some versions read `-Po` as two options
    walks: bool = False  # looks at everything below a directory
    unlinked: str = ""  # the option without which it follows links inside a directory
    entries: frozenset[str] = frozenset()  # options with which it shows a link itself, not what it leads to; "" means always


def _long(names: str, values: Mapping[str, str] = MappingProxyType({}), **optional: str) -> Mapping[str, LongOption]:
    """Build `--name` options: plain ones from `names`, ones with a value, and ones with an optional value."""
    plain = {f"--{name}": LongOption() for name in names.split()}
    valued = {f"--{name}": LongOption(value) for name, value in values.items()}
    return MappingProxyType(plain | valued | {f"--{name}": LongOption(value, True) for name, value in optional.items()})


_LS = ReadOnlyCommand(
    takes="files",
    flags="1AaBbCcdFfGghiklmNnopQqRrSstUuvXx",
    long=_long(
        """all almost-all author classify directory escape full-time group-directories-first human-readable inode literal no-group
        numeric-uid-gid quote-name recursive reverse si size""",
        {
            "sort": "none|size|time|version|extension|width",
            "time": "atime|access|use|ctime|status|birth|creation",
            "time-style": r"(posix-)?(full-iso|long-iso|iso|locale)|\+.*",
            "format": "across|commas|long|single-column|verbose|vertical",
            "ignore": TEXT,
            "hide": TEXT,
        },
        color=WHEN,
    ),
    recursive=frozenset({"R", "--recursive"}),
    opens=False,
    here=True,
    input=False,
    entries=frozenset({"d", "--directory"}),
)
_CAT = ReadOnlyCommand(
    takes="files",
    flags="AbEenstTuv",
    long=_long("number number-nonblank show-all show-ends show-nonprinting show-tabs squeeze-blank"),
)
_HEAD = ReadOnlyCommand(
    takes="files",
    flags="qv",
    values={"n": AMOUNT, "c": AMOUNT},
    long=_long("quiet silent verbose", {"lines": AMOUNT, "bytes": AMOUNT}),
    number="n",
)
_WC = ReadOnlyCommand(takes="files", flags="clLmw", long=_long("bytes chars lines max-line-length words"))
_STAT = ReadOnlyCommand(
    takes="files",
    flags="fLt",
    values={"c": TEXT},
    long=_long("dereference file-system terse", {"format": TEXT, "printf": TEXT}),
    opens=False,
    input=False,
)
# On macOS stat is different: -f is followed by the format.
_STAT_BSD = ReadOnlyCommand(takes="files", flags="FLlnqrsx", values={"f": TEXT, "t": TEXT}, opens=False, input=False)
_GREP = ReadOnlyCommand(
    takes="pattern",
    flags="abcEFGHhiILlnoPqrsTUvwxyZz",
    values={"e": TEXT, "m": COUNT, "A": COUNT, "B": COUNT, "C": COUNT},
    long=_long(
        """basic-regexp byte-offset count extended-regexp files-with-matches files-without-match fixed-strings ignore-case
        initial-tab invert-match line-buffered line-number line-regexp no-filename no-ignore-case no-messages null only-matching
        perl-regexp quiet recursive silent text with-filename word-regexp""",
        {
            "regexp": TEXT,
            "max-count": COUNT,
            "after-context": COUNT,
            "before-context": COUNT,
            "context": COUNT,
            "include": TEXT,
            "exclude": TEXT,
            "exclude-dir": TEXT,
            "binary-files": "binary|text|without-match",
        },
        color=WHEN,
        colour=WHEN,
    ),
    number="C",
    recursive=frozenset({"r", "--recursive"}),
    pattern=frozenset({"e", "--regexp"}),
)
_SORT = ReadOnlyCommand(
    takes="files",
    flags="bCcdfghiMnrsuV",
    values={"k": KEY, "t": r".|\\0"},
    long=_long(
        """check dictionary-order general-numeric-sort human-numeric-sort ignore-case ignore-leading-blanks ignore-nonprinting
        month-sort numeric-sort reverse stable unique version-sort""",
        {"key": KEY, "field-separator": r".|\\0"},
    ),
)
_UNIQ = ReadOnlyCommand(
    takes="files",
    flags="cDdiu",
    values={"f": COUNT, "s": COUNT, "w": COUNT},
    long=_long("count ignore-case repeated unique", {"skip-fields": COUNT, "skip-chars": COUNT, "check-chars": COUNT}),
    most=1,  # a second operand would be an output file
)
_CUT = ReadOnlyCommand(
    takes="files",
    flags="ns",
    values={"b": RANGES, "c": RANGES, "d": r"(?s:.?)", "f": RANGES},
    long=_long(
        "complement only-delimited",
        {"bytes": RANGES, "characters": RANGES, "delimiter": r"(?s:.?)", "fields": RANGES, "output-delimiter": TEXT},
    ),
)
_TR = ReadOnlyCommand(
    takes="texts", flags="Ccdst", long=_long("complement delete squeeze-repeats truncate-set1"), least=1, most=2
)
_PWD = ReadOnlyCommand(takes="nothing", flags="P", long=_long("physical"), here=True, most=0)
_ECHO = ReadOnlyCommand(takes="words")
_DATE = ReadOnlyCommand(
    takes="texts",
    flags="Ru",
    values={"d": DATE},
    attached={"I": ISO},
    long=_long("rfc-email universal utc", {"date": DATE, "rfc-3339": "date|seconds|ns"}, **{"iso-8601": ISO}),
    most=1,
    operand=r"\+(?s:.*)",  # any other operand sets the clock
)
# On macOS -d and -I mean something else.
_DATE_BSD = ReadOnlyCommand(takes="texts", flags="Ru", most=1, operand=_DATE.operand)
_DIFF = ReadOnlyCommand(
    takes="files",
    flags="aBbcdEeiNnpqrstTuwyZ",
    values={"C": COUNT, "F": TEXT, "I": TEXT, "L": TEXT, "U": COUNT, "W": COUNT, "x": TEXT},
    long=_long(
        """brief ed expand-tabs ignore-all-space ignore-blank-lines ignore-case ignore-space-change ignore-tab-expansion
        ignore-trailing-space initial-tab left-column minimal new-file no-dereference normal rcs recursive report-identical-files
        show-c-function side-by-side speed-large-files strip-trailing-cr suppress-blank-empty suppress-common-lines text""",
        {
            "exclude": TEXT,
            "ignore-matching-lines": TEXT,
            "label": TEXT,
            "show-function-line": TEXT,
            "tabsize": COUNT,
            "width": COUNT,
        },
        color=WHEN,
        context=COUNT,
        unified=COUNT,
    ),
    walks=True,
    unlinked="--no-dereference",
    most=2,
)
_DU = ReadOnlyCommand(
    takes="files",
    flags="0abchklmPSsx",
    values={"B": SIZE, "d": COUNT, "t": SIZE},
    long=_long(
        """all apparent-size bytes count-links human-readable inodes no-dereference null one-file-system separate-dirs si summarize
        total""",
        {"block-size": SIZE, "exclude": TEXT, "max-depth": COUNT, "threshold": SIZE},
        time="atime|access|use|ctime|status",
    ),
    opens=False,
    here=True,
    input=False,
    walks=True,
    entries=frozenset({""}),
)
_FILE = ReadOnlyCommand(
    takes="files",
    flags="0bEhIikNnr",
    values={"e": r"[a-z]{1,20}", "F": TEXT},
    long=_long(
        "brief extension keep-going mime mime-encoding mime-type no-buffer no-dereference no-pad print0 raw",
        {"exclude": r"[a-z]{1,20}", "separator": TEXT},
    ),
)
_TREE = ReadOnlyCommand(
    takes="files",
    flags="ACDFJNQSUXacdfghinpqrstuvx",
    values={"I": TEXT, "L": COUNT, "P": TEXT},
    long=_long(
        "device dirsfirst du filesfirst ignore-case inodes matchdirs noreport prune si",
        {"filelimit": COUNT, "sort": "name|version|size|mtime|ctime|none"},
    ),
    opens=False,
    here=True,
    input=False,
    walks=True,
    apart=True,
)
_FIND = ReadOnlyCommand(takes="expression", opens=False, here=True, input=False, recursive=frozenset({""}))

COMMANDS: Mapping[str, ReadOnlyCommand] = MappingProxyType(
    {
        "cat": _CAT,
        "cut": _CUT,
        "date": _DATE_BSD if sys.platform == "darwin" else _DATE,
        "diff": _DIFF,
        "du": _DU,
        "echo": _ECHO,
        "file": _FILE,
        "find": _FIND,
        "grep": _GREP,
        "head": _HEAD,
        "ls": _LS,
        "pwd": _PWD,
        "sort": _SORT,
        "stat": _STAT_BSD if sys.platform == "darwin" else _STAT,
        "tail": _HEAD,
        "tr": _TR,
        "tree": _TREE,
        "uniq": _UNIQ,
        "wc": _WC,
    }
)

# Alternatives for common commands, for the refusal message.
INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "rg": "use the Grep tool",
        "egrep": "use grep -E",
        "fgrep": "use grep -F",
        "awk": "use cut, or the Read and Grep tools",
        "sed": "use head, tail or the Read tool",
        "less": "use cat, head or the Read tool",
        "more": "use cat, head or the Read tool",
        "git": "git is not allowed here, because a repository can make it run programs",
        "xargs": "name the files, or use the Grep tool",
        "cd": "name the directory in the command",
        "fd": "use find or the Glob tool",
    }
)
