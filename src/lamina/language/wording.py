"""Number agreement for messages, `1 memory is` and `2 memories are`, and the short forms of counts and texts.

Every message that contains a count goes through `plural` or `counted`, so no sentence reads "1 memories are"."""

from __future__ import annotations

from .text import Text


def plural(number: float, one: str, many: str = "") -> str:
    """Return `one` for the number 1 and `many` for every other; `many` defaults to the regular English plural of `one`."""
    return one if number == 1 else many or (f"{one[:-1]}ies" if one[-1:] == "y" and one[-2:-1] not in "aeiou" else f"{one}s")


def counted(number: int, one: str, many: str = "") -> Text:
    """Return the number with its noun: `1 call`, `2 calls`, `1,000 memories`. The nouns are literals, like a template."""
    return Text(f"{{n}} {one}|{{n}} {plural(2, one, many)}", n=number)


def short_count(count: int) -> str:
    """Return a count in few characters: 830, 12k, 1.2M."""
    if count >= 999_500:
        return f"{count / 1e6:.1f}M"
    return f"{round(count / 1_000)}k" if count >= 1_000 else str(count)


def shorten(text: str, most: int, mark: str = "…") -> str:
    """Return a text of at most `most` characters: a longer one ends with the mark, which counts too."""
    return text if len(text) <= most else f"{text[: max(0, most - len(mark))].rstrip()}{mark}"
