"""Amounts, tokens, shares, lengths and times as the page writes them.

An amount is money under `lamina.billing` list: two decimals, never extrapolated, and "price unknown" rather than zero where no price
is known. Under subscription it is units, and no dollar sign is written. Times are relative, with the absolute time on hover and
in `datetime`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from ..core.usage import Usage
from ..language.wording import short_count
from ..providers.amounts import Amount
from . import labels
from .html import Html, tag
from .words import Words

MINUTE, HOUR, DAY = 60, 3_600, 86_400
# In place of a cost or a share that cannot be known, since the transcript has no token counts.
NO_COUNTS = "–"


def money(usd: float) -> str:
    """Return an amount at list price."""
    if 0 < abs(usd) < 0.005:
        return "<$0.01" if usd > 0 else ">−$0.01"
    return f"{'−' if usd < 0 else ''}${abs(usd):,.2f}"


def sum_known(numbers: Iterable[float | None]) -> float | None:
    """Return the sum; None if one of the numbers is unknown."""
    found = list(numbers)
    return None if None in found else sum(number or 0.0 for number in found)


def price(words: Words, number: float | None) -> str:
    """Return the number of an amount: dollars, or units under a subscription."""
    if number is None:
        return words("price unknown")
    if words.billing == "list":
        return money(number)
    return words("{n} units", n=f"{'−' if round(number) < 0 else ''}{short_count(abs(round(number)))}")


def amount(words: Words, found: Amount, *, short: bool = False) -> str:
    """Return an amount, with "≥" if it is short: not all of it was recorded."""
    return at_least(words, found.number(words.billing), short=short)


def at_least(words: Words, number: float | None, *, short: bool) -> str:
    if not short or number is None:
        return price(words, number)
    shown = price(words, number)
    return f"≥ {price(words, 0.0) if shown.startswith('<') else shown}"


def signed(words: Words, number: float) -> str:
    """Return a change of an amount with its sign."""
    return price(words, number) if number < 0 else f"+{price(words, number)}"


def tokens_apart(words: Words, usage: Usage) -> str:
    """Return the tokens of each price class that occurs; they are never summed."""
    counts = {
        "read": usage.cache_read,
        "written": usage.cache_write,
        "uncached": usage.input_tokens,
        "output": usage.output_tokens,
    }
    found = [words(labels.TOKEN_COUNTS[name], tokens=short_count(count)) for name, count in counts.items() if count]
    return words(", ").join(found) or words("no tokens")


def parts_apart(words: Words, usage: Usage) -> list[str]:
    """Return the tokens that were read, written and output. Uncached ones are shown beside written ones: their price differs."""
    sent = [tokens(usage.cache_write)] if usage.cache_write or not usage.input_tokens else []
    sent += [words("{tokens} uncached", tokens=tokens(usage.input_tokens))] if usage.input_tokens else []
    return [tokens(usage.cache_read), " + ".join(sent), tokens(usage.output_tokens)]


def tokens(count: float) -> str:
    return f"{round(count):,}"


def share(part: float, whole: float) -> str:
    """Return a share in percent: one decimal below ten."""
    value = 100 * part / whole if whole else 0.0
    return f"{value:.1f}%" if value < 9.95 else f"{value:.0f}%"


def size(count: int) -> str:
    """Return a number of bytes: 900 B, 12 kB, 9.8 MB."""
    if count < 1_000:
        return f"{count} B"
    return f"{count / 1_000:.0f} kB" if count < 1_000_000 else f"{count / 1e6:.1f} MB"


def length(words: Words, seconds: float) -> str:
    """Return a length of time: 40 s, 12 min, 2 h 5 min, 1 day 16 h, 8 days."""
    if seconds < MINUTE:
        return words("{n} s", n=int(seconds))
    if seconds < HOUR:
        return words("{n} min", n=int(seconds // MINUTE))
    if seconds < DAY:
        return words("{h} h {m} min", h=int(seconds // HOUR), m=int(seconds % HOUR // MINUTE))
    days, hours = int(seconds // DAY), int(seconds % DAY // HOUR)
    return words("{n} day {h} h|{n} days {h} h", n=days, h=hours) if hours and days < 7 else words("{n} day|{n} days", n=days)


def moment(value: str | float) -> datetime | None:
    """Read an ISO time, or seconds since the epoch, as local time; None if it cannot be read."""
    try:
        found = datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else datetime.fromisoformat(value)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone()
    except (ValueError, OverflowError, OSError):
        return None


def absolute(words: Words, value: str | float) -> str:
    """Return the full local time."""
    at = moment(value)
    if at is None:
        return words("time unknown")
    return f"{day(words, at)} {at:%H:%M:%S}"


def day(words: Words, at: datetime) -> str:
    return words("{d} {month} {y}", d=at.day, month=labels.MONTHS[at.month - 1], y=at.year)


def ago(words: Words, value: str | float, now: float) -> Html:
    """Return a relative time, with the absolute one on hover."""
    at = moment(value)
    if at is None:
        return tag("span", {"class": "soft"}, words("time unknown"))
    return tag("time", {"datetime": at.isoformat(), "title": absolute(words, value)}, _relative(words, now - at.timestamp(), at))


def ago_text(words: Words, value: str | float, now: float) -> str:
    """Return a relative time for a sentence."""
    at = moment(value)
    return words("time unknown") if at is None else _relative(words, now - at.timestamp(), at)


def clock(words: Words, value: str | float, *, seconds: bool = False) -> Html:
    """Return the time of day, with the full time on hover."""
    at = moment(value)
    if at is None:
        return tag("span", {"class": "soft"}, "–")
    return tag(
        "time", {"datetime": at.isoformat(), "title": absolute(words, value)}, f"{at:%H:%M:%S}" if seconds else f"{at:%H:%M}"
    )


def time_of_day(value: str | float) -> str:
    """Return the time of day as plain text, with seconds."""
    at = moment(value)
    return "–" if at is None else f"{at:%H:%M:%S}"


def _relative(words: Words, seconds: float, at: datetime) -> str:
    if seconds < MINUTE:
        return words("just now")
    if seconds < HOUR:
        return words("{n} minute ago|{n} minutes ago", n=int(seconds // MINUTE))
    if seconds < DAY:
        return words("{n} hour ago|{n} hours ago", n=int(seconds // HOUR))
    if seconds < 7 * DAY:
        return words("{n} day ago|{n} days ago", n=int(seconds // DAY))
    return day(words, at)
