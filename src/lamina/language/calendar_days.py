"""Dates and spans that are so many days, weeks, months or years from a given day, as a memory states them. Pure."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta


def ago(written: date, count: int, unit: str) -> tuple[str, bool]:
    """Return the day so long before the given one, and whether that is exact."""
    match unit:
        case "day":
            return (written - timedelta(count)).isoformat(), True
        case "week":
            return f"about {(written - timedelta(weeks=count)).isoformat()}", False
        case _:
            return span(written, unit, -count), False


def ahead(written: date, steps: int, unit: str) -> str:
    """Return the day so long after the given one."""
    if unit == "day":
        return (written + timedelta(steps)).isoformat()
    if unit == "week":
        return f"about {(written + timedelta(weeks=steps)).isoformat()}"
    if unit == "year":
        return span(written, unit, steps)
    months = written.year * 12 + written.month - 1 + steps
    year, month = months // 12, months % 12 + 1
    return f"about {date(year, month, min(written.day, monthrange(year, month)[1])).isoformat()}"


def weekday(written: date, which: str, day: int) -> str:
    """Return the date of a weekday. "this", "next" and "last" name a week; every other word means the coming one."""
    match which:
        case "this" | "next" | "last":
            return day_of_week(written, {"this": 0, "next": 1, "last": -1}[which], day)
        case _:
            return (written + timedelta((day - written.weekday() - 1) % 7 + 1)).isoformat()


def day_of_week(written: date, steps: int, day: int) -> str:
    """Return the date of a day in the week that is so many weeks away."""
    return (written + timedelta(days=7 * steps + day - written.weekday())).isoformat()


def end_of(written: date, unit: str, steps: int) -> str:
    """Return the last day of the month or year that is so many steps away."""
    if unit == "year":
        return date(written.year + steps, 12, 31).isoformat()
    months = written.year * 12 + written.month - 1 + steps
    year, month = months // 12, months % 12 + 1
    return date(year, month, monthrange(year, month)[1]).isoformat()


def span(written: date, unit: str, steps: int) -> str:
    """Return the week, month or year that is so many steps away."""
    if unit == "week":
        return f"the week of {(written + timedelta(days=7 * steps - written.weekday())).isoformat()}"
    if unit == "year":
        return f"{date(written.year + steps, 1, 1).year}"
    months = written.year * 12 + written.month - 1 + steps
    return f"{date(months // 12, months % 12 + 1, 1):%Y-%m}"
