"""Money, tokens, shares, lengths and times as the page writes them.

Money has two decimals, is never extrapolated, and is "price unknown" rather than zero where no price is known. Times are relative,
with the absolute time on hover and in `datetime`.
"""

from __future__ import annotations

from datetime import UTC, datetime

from .html import Html, tag
from .words import Words

MINUTE, HOUR, DAY = 60, 3_600, 86_400


def money(usd: float) -> str:
    """Return an amount at list price."""
    if 0 < abs(usd) < 0.005:
        return "<$0.01" if usd > 0 else ">−$0.01"
    return f"{'−' if usd < 0 else ''}${abs(usd):,.2f}"


def money_or_unknown(words: Words, usd: float | None) -> str:
    return words("money.unknown") if usd is None else money(usd)


def at_least(words: Words, usd: float | None, *, short: bool) -> str:
    """Return an amount, with "≥" if not all of it was recorded."""
    return f"≥ {money(usd)}" if short and usd is not None else money_or_unknown(words, usd)


def signed(usd: float) -> str:
    """Return a change of money with its sign."""
    return money(usd) if usd < 0 else f"+{money(usd)}"


def tokens(count: float) -> str:
    return f"{round(count):,}"


def short_tokens(count: int) -> str:
    """Return a number of tokens in few characters: 830, 12k, 1.2M."""
    if count >= 999_500:
        return f"{count / 1e6:.1f}M"
    return f"{round(count / 1_000)}k" if count >= 1_000 else str(count)


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
        return words("time.seconds", n=int(seconds))
    if seconds < HOUR:
        return words("time.minutes", n=int(seconds // MINUTE))
    if seconds < DAY:
        return words("time.hours", h=int(seconds // HOUR), m=int(seconds % HOUR // MINUTE))
    days, hours = int(seconds // DAY), int(seconds % DAY // HOUR)
    return words("time.days_hours", n=days, h=hours) if hours and days < 7 else words("time.days", n=days)


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
        return words("time.unknown")
    return f"{day(words, at)} {at:%H:%M:%S}"


def day(words: Words, at: datetime) -> str:
    return words("time.date", d=at.day, month=words(f"month.{at.month}"), m=at.month, y=at.year)


def ago(words: Words, value: str | float, now: float) -> Html:
    """Return a relative time, with the absolute one on hover."""
    at = moment(value)
    if at is None:
        return tag("span", {"class": "soft"}, words("time.unknown"))
    return tag("time", {"datetime": at.isoformat(), "title": absolute(words, value)}, _relative(words, now - at.timestamp(), at))


def clock(words: Words, value: str | float, *, seconds: bool = False) -> Html:
    """Return the time of day, with the full time on hover."""
    at = moment(value)
    if at is None:
        return tag("span", {"class": "soft"}, "–")
    return tag(
        "time", {"datetime": at.isoformat(), "title": absolute(words, value)}, f"{at:%H:%M:%S}" if seconds else f"{at:%H:%M}"
    )


def _relative(words: Words, seconds: float, at: datetime) -> str:
    if seconds < MINUTE:
        return words("time.now")
    if seconds < HOUR:
        return words("time.minutes_ago", n=int(seconds // MINUTE))
    if seconds < DAY:
        return words("time.hours_ago", n=int(seconds // HOUR))
    if seconds < 7 * DAY:
        return words("time.days_ago", n=int(seconds // DAY))
    return day(words, at)
