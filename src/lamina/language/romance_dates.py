"""Relative dates in French and Spanish: "demain", "la semaine prochaine", "el lunes que viene", "hace tres días".

Both languages put together a date in the same ways, so they share one pattern. "Vendredi prochain" is the coming Friday. A bare weekday
and "en dos semanas" are dates only in a plan, as in the other languages. Pure, and linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta

from .calendar_days import ago, ahead, day_of_week, span, weekday

_DAYS = {
    "avant-hier": -2, "hier": -1, "aujourd'hui": 0, "demain": 1, "après-demain": 2,
    "anteayer": -2, "antes de ayer": -2, "ayer": -1, "hoy": 0, "mañana": 1, "pasado mañana": 2,
}  # fmt: skip
_WEEKDAYS = {
    name: day
    for names in ("lundi mardi mercredi jeudi vendredi samedi dimanche", "lunes martes miércoles jueves viernes sábado domingo")
    for day, name in enumerate(names.split())
}
_NUMBERS = {
    name: number
    for names in ("un deux trois quatre cinq six sept huit neuf dix", "un dos tres cuatro cinco seis siete ocho nueve diez")
    for number, name in enumerate(names.split(), 1)
} | {"une": 1, "una": 1, "quinze": 15, "quince": 15}
# How the names of the units begin.
_UNITS = {"jour": "day", "d": "day", "sem": "week", "m": "month", "a": "year"}
_NEXT, _LAST = "prochaine?|que viene|próxim[oa]", "dernière?|dernier|passée?|pasad[oa]"
_STEP = f"(?:{_NEXT}|{_LAST})"
_UNIT = "(?:jours?|semaines?|mois|années?|ans?|días?|semanas?|mes(?:es)?|años?)"
_COUNT = rf"(?:\d{{1,3}}|{'|'.join(_NUMBERS)})"
_WEEKDAY = f"(?:{'|'.join(_WEEKDAYS)})"
_SPAN = "(?:semaine|mois|année|an|semana|mes|año)"
_PHRASE = re.compile(
    rf"(?<![\w-])(?:(?P<day>(?<!la )(?<!esta )(?:{'|'.join(sorted(_DAYS, key=len, reverse=True))}))"
    rf"|(?P<weekday>{_WEEKDAY})\s+(?P<step>{_STEP})|(?P<step_first>ce|este|{_STEP})\s+(?P<weekday_last>{_WEEKDAY})"
    rf"|(?P<span>{_SPAN})\s+(?P<span_step>{_STEP})|(?P<span_step_first>cette|cet?|est[ae]|{_STEP})\s+(?P<span_last>{_SPAN})"
    rf"|(?:dans|dentro\s+de)\s+(?P<ahead>{_COUNT})\s+(?P<ahead_unit>{_UNIT})|(?:il\s+y\s+a|hace)\s+(?P<ago>{_COUNT})\s+(?P<ago_unit>{_UNIT})"
    rf"|(?:avant|jusqu'à|d'ici|dès|partir\s+de|antes\s+del|hasta\s+el|desde\s+el|partir\s+del)\s+(?P<by>{_WEEKDAY})(?!\s+\d)"
    # "Le lundi" and "los lunes" recur, and a day before a number is a date already.
    rf"|(?P<bare>en\s+(?P<bare_count>{_COUNT})\s+(?P<bare_unit>{_UNIT})"
    rf"|(?<!le )(?<!les )(?<!los )(?P<bare_day>{_WEEKDAY})(?!\s+\d)))(?![\w-])",
    re.IGNORECASE,
)


def romance_dates(text: str, written: date) -> Iterator[tuple[re.Match[str], str, bool]]:
    """Yield the relative dates of a French or Spanish text: the phrase, the date or span it meant, and whether that is a single day."""
    for match in _PHRASE.finditer(text.replace("’", "'")):
        try:
            yield match, *_meant(match, written)
        except (ValueError, OverflowError):
            continue  # before the first year, or after the last


def _meant(match: re.Match[str], written: date) -> tuple[str, bool]:
    words = {name: " ".join(value.lower().split()) for name, value in match.groupdict().items() if value is not None}
    if "day" in words:
        word = words["day"]
        return (written + timedelta(_DAYS[word])).isoformat(), word != "mañana"  # also "morning"
    if unit := words.get("span") or words.get("span_last"):
        return span(written, _unit(unit), _steps(words.get("span_step") or words["span_step_first"])), False
    if "ago" in words:
        return ago(written, _count(words["ago"]), _unit(words["ago_unit"]))
    if count := words.get("ahead") or words.get("bare_count"):
        return ahead(written, _count(count), _unit(words.get("ahead_unit") or words["bare_unit"])), False
    return _weekday(words, written), False


def _weekday(found: dict[str, str], written: date) -> str:
    if name := found.get("by") or found.get("bare_day"):
        return weekday(written, "coming", _WEEKDAYS[name])
    day, steps = _WEEKDAYS[found.get("weekday") or found["weekday_last"]], _steps(found.get("step") or found["step_first"])
    if steps < 0:
        return (written - timedelta((written.weekday() - day - 1) % 7 + 1)).isoformat()
    return weekday(written, "coming", day) if steps else day_of_week(written, 0, day)


def _steps(word: str) -> int:
    return 1 if re.fullmatch(_NEXT, word) else -1 if re.fullmatch(_LAST, word) else 0


def _unit(word: str) -> str:
    return next(unit for begins, unit in _UNITS.items() if word.startswith(begins))


def _count(word: str) -> int:
    return int(word) if word.isdecimal() else _NUMBERS[word]
