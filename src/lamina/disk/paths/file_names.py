"""Checks which characters and names a path may contain. The answer is the same on every system and depends on the text alone.

Owns the rules by which one spelling means one file everywhere. Invariant: no two accepted names differ only in ways that some
file system, terminal or reader does not see (Unicode form, invisible characters, trailing dots, short names). Case is left to
`rootdir`, which sees the other names in a directory.

Each check returns the problem as a phrase ("contains a wildcard"), or None.
"""

from __future__ import annotations

import re
import unicodedata

from ...language.wording import shorten

# The name of a guard or side file, which is longer, must still fit into the 255 bytes that file systems allow.
MAX_NAME_BYTES = 240
# The smallest PATH_MAX of the systems we run on (macOS).
MAX_PATH_BYTES = 1_024

# Long enough for ordinary paths, short enough for a one-line message.
LONGEST_SHOWN = 200

# Cc controls, Cf format (bidi, zero width), Cs lone surrogates, Co private use (some mounts hide `:` and `*` there), Zl and Zp.
_BAD_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
# Invisible, but classified as letters, marks or symbols: grapheme joiner, Hangul fillers, Khmer inherent vowels, Mongolian and
# other variation selectors, braille blank, musical null, and the ranges Unicode reserves for more of them.
_INVISIBLE = (
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U0001d159\U000e0000-\U000e0fff]"
)
_NONCHARACTER = "[\ufdd0-\ufdef]|[" + "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF)) + "]"
# Thai and Lao AM are ordinary letters and must be allowed, although NFKC decomposes them.
_PLAIN_AM = str.maketrans({"\u0e33": "", "\u0eb3": ""})

# Characters with a special meaning in a shell, a URL, Windows or a search pattern.
_FORBIDDEN = {
    "\\": "a backslash",
    ":": "a colon (a drive, a stream or a URL)",
    "%": "a percent sign (an encoding or a variable)",
    "$": "a dollar sign (a variable)",
    "*": "a wildcard",
    "?": "a wildcard",
    "[": "a wildcard",
    "]": "a wildcard",
    "{": "a wildcard",
    "}": "a wildcard",
    "<": "a character that Windows refuses",
    ">": "a character that Windows refuses",
    "|": "a character that Windows refuses",
    '"': "a character that Windows refuses",
    "`": "a backtick",
}
# Characters that look like a slash or a backslash: strokes through letters, fraction, division, set minus, box drawing.
_LIKE_A_SLASH = frozenset("\u0337\u0338\u2044\u2215\u2216\u2571\u2572\u29f5\u29f8\u29f9")
# Devices on Windows with any suffix and in any case.
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$", "clock$"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)}
)
# NAME~1: the short name that Windows assigns to a long one.
_SHORT_NAME = re.compile(r"~[0-9]")


def bad_text(text: str) -> str | None:
    """Return the problem with the characters of a path, or None."""
    for character in text:
        if character.isascii() and character.isprintable():
            if character in _FORBIDDEN:
                return f"contains {_FORBIDDEN[character]}"
            continue
        if character in _LIKE_A_SLASH:
            return "contains a character that looks like a slash"
        if (category := unicodedata.category(character)) in _BAD_CATEGORIES:
            return "contains a control, format or private character"
        if category == "Zs":
            return "contains unusual white space"
    if not text.isascii() and (re.search(_NONCHARACTER, text) or re.search(_INVISIBLE, text)):
        return "contains an invisible character"
    plain = text.translate(_PLAIN_AM)
    if unicodedata.normalize("NFKC", plain) != plain:
        return "contains characters that have a simpler form (Unicode NFKC)"
    return None


def bad_name(name: str) -> str | None:
    """Return the problem with one component of a path, or None. Its characters are checked by `bad_text`."""
    if name in ("", ".", ".."):
        return "has a component that is empty, `.` or `..`"
    if name != name.strip(" ") or name.endswith("."):
        return "has a component that begins with a space or ends in a dot or a space"
    if name.split(".")[0].rstrip(" ").casefold() in _DEVICES:
        return "has a name that is a device on Windows"
    if _SHORT_NAME.search(name):
        return "has a component that looks like a short name of Windows"
    if name.casefold() == ".git":
        return "leads into a git directory"
    if len(name.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        return f"has a component longer than {MAX_NAME_BYTES} bytes"
    return None


def fold(name: str) -> str:
    """Return the folded name. Two names with the same fold are the same file on some systems."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def printable_path(text: object) -> str:
    """Return a refused path in a form that is safe to print on a terminal."""
    return shorten(text if isinstance(text, str) and text and text.isprintable() else ascii(text), LONGEST_SHOWN)
