"""Finds relative dates in memories, such as "yesterday", which means a different day a week later.

It supports English, German, French, Spanish, Chinese, Japanese and Korean, and computes the date that was meant on the day of writing.
Invariants: code, quotations, URLs and sentences about recurring events are ignored. So is a phrase that is already
followed by a date. So are a bare weekday and a bare "in two weeks", which may be recurring or a duration, unless they are announced or
the caller knows that the text is a plan. The time is linear in the length of the text. The day of writing is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

from .announcements import is_announced
from .calendar_days import ago, ahead, day_of_week, end_of, span, weekday
from .detection import language_of
from .romance_dates import romance_dates

# A text with more relative dates is a diary, and the first ones are enough to see that.
MOST_PHRASES = 200


class Phrase(NamedTuple):
    """A relative date in a text. `says` is the date or span it meant; `certain` means a single day in any context."""

    start: int
    end: int
    line: int  # from 1
    text: str
    says: str
    certain: bool


_DAYS = {
    "day before yesterday": -2, "yesterday": -1, "today": 0, "tonight": 0, "tomorrow": 1, "day after tomorrow": 2,
    "大前天": -3, "前天": -2, "昨天": -1, "昨日": -1, "今天": 0, "今日": 0, "明天": 1, "明日": 1, "后天": 2, "大后天": 3,
    "一昨日": -2, "明後日": 2, "明々後日": 3, "그저께": -2, "어제": -1, "오늘": 0, "내일": 1, "모레": 2,
}  # fmt: skip
_SPANS = {
    "last week": ("week", -1), "this week": ("week", 0), "next week": ("week", 1),
    "last month": ("month", -1), "this month": ("month", 0), "next month": ("month", 1),
    "last year": ("year", -1), "this year": ("year", 0), "next year": ("year", 1),
    "上个月": ("month", -1), "上月": ("month", -1),
    "本月": ("month", 0), "这个月": ("month", 0), "下个月": ("month", 1), "下月": ("month", 1),
    "去年": ("year", -1), "今年": ("year", 0), "明年": ("year", 1),
    "先週": ("week", -1), "今週": ("week", 0), "来週": ("week", 1), "先月": ("month", -1), "来月": ("month", 1), "来年": ("year", 1),
    "지난주": ("week", -1), "이번 주": ("week", 0), "다음 주": ("week", 1), "지난달": ("month", -1), "다음 달": ("month", 1),
    "작년": ("year", -1), "올해": ("year", 0), "내년": ("year", 1),
}  # fmt: skip
_HAN_WEEKS = ("周", "星期", "礼拜", "个星期", "个礼拜")
_SPANS |= {
    f"{which}{week}": ("week", step) for which, step in {"上": -1, "这": 0, "本": 0, "下": 1}.items() for week in _HAN_WEEKS
}
_WEEKDAYS = {name: day for day, name in enumerate(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"])}
# Monday to Sunday in Chinese, Japanese and Korean.
_DAY_SIGNS = {sign: day for row in ("一二三四五六日", "月火水木金土日", "월화수목금토일") for day, sign in enumerate(row)} | {
    "天": 6
}
# "By Friday" is the coming Friday, "this Friday" the one of this week, and "next Friday" the one of next week.
_COMING = (
    "by",
    "until",
    "till",
    "before",
    "from",
    "starting",
    "starts",
    "begins",
    "ends",
    "due",
    "due on",
    "coming",
    "deadline is",
)
# "Due in two weeks" is a date; "fixed in two days" is a duration.
_AHEAD = "is|are|be|due|starts?|begins?|ends?|happens?|launch(?:es)?|ships?|expires?|leaves?|moves?|live|back|comes?"
# "Morgen" also means morning, so it is never certain, and it is ignored after words that make it a morning.
_GERMAN_DAYS = {"vorgestern": -2, "gestern": -1, "heute": 0, "morgen": 1, "übermorgen": 2}
_GERMAN_STEPS = {"letzte": -1, "vorige": -1, "diese": 0, "nächste": 1, "kommende": 1}
_GERMAN_UNITS = {"woche": "week", "monat": "month", "jahr": "year"}
_GERMAN_TIMES = {"tag": "day", **_GERMAN_UNITS}
_END_UNITS = {"month": "month", "year": "year", "月": "month", "年": "year", **_GERMAN_UNITS}
_GERMAN_WEEKDAYS = {
    name: day for day, name in enumerate(["montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag"])
}
_GERMAN_NUMBERS = {"einem": 1, "einer": 1} | {
    word: number for number, word in enumerate(["zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"], 2)
}
_ENGLISH = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {"a": 1, "an": 1} | {word: number for number, word in enumerate(_ENGLISH.split())}
_HAN = {"两": 2, "両": 2} | {word: number for number, word in enumerate("零一二三四五六七八九十")}
# Units of time in Chinese, Japanese and Korean.
_UNITS = {
    "天": "day", "日": "day", "일": "day", "週間": "week", "주": "week", **dict.fromkeys(_HAN_WEEKS, "week"),
    "个月": "month", "か月": "month", "ヶ月": "month", "カ月": "month", "개월": "month", "年": "year", "년": "year",
}  # fmt: skip
_AFTER = "[之以]?后|後|후|뒤"


def _either(words: Sequence[str]) -> str:
    return "|".join(re.escape(word).replace("\\ ", r"\s+") for word in sorted(words, key=len, reverse=True))


_LATIN = [word for word in (*_DAYS, *_SPANS) if word.isascii()]
_OTHERS = [word for word in (*_DAYS, *_SPANS) if not word.isascii()]
_ANY_WEEKDAY = _either((*_WEEKDAYS, *_GERMAN_WEEKDAYS))
_COUNT = rf"\d{{1,3}}|{_either(list(_NUMBERS))}"
# A number behind one of these signs is part of a date or an ordinal: 11月30日前, 2026年后, 第3周.
_HAN_COUNT = rf"(?<![\d月年第월/.-])(?<!월 )(?:\d{{1,3}}|[{''.join(_HAN)}]{{1,3}})"
# 30日前 is "before the 30th" in Chinese and "30 days ago" in Japanese, where kana follow.
_HAN_AGO = rf"(?:{_either([unit for unit in _UNITS if unit != '日'])})(?:[之以]?前|\s?전)|日前(?=[\u3040-\u30ff])"
# "Next week on Tuesday", "Tuesday of next week", "nächste Woche Dienstag", "Dienstag nächster Woche".
_WEEK_STEPS = {"last": -1, "this": 0, "next": 1, **_GERMAN_STEPS}
_WEEK = rf"(?P<{{0}}>{_either(list(_WEEK_STEPS))})[nmrs]?\s+(?:week|woche)"
_PHRASE = re.compile(
    rf"(?<![\w-])(?:(?:on|am)\s+)?(?P<day_of>{_ANY_WEEKDAY})\s+(?:of\s+|der\s+)?{_WEEK.format('after')}(?![\w-])"
    rf"|(?<![\w-]){_WEEK.format('ahead')},?\s+(?:on\s+|am\s+)?(?P<day_in>{_ANY_WEEKDAY})(?![\w-])"
    rf"|(?<![\w-])(?P<weeks>{_COUNT})\s+weeks?\s+from\s+(?P<from_day>{_either(list(_WEEKDAYS))}|today|tomorrow|now)(?![\w-])"
    rf"|(?<![\w-])(?P<latin>{_either(_LATIN)})(?P<own>['’]s)?(?![\w-])"
    rf"|(?<![\w-])(?P<ago>(?P<count>{_COUNT})\s+(?P<unit>day|week|month|year)s?\s+ago)\b"
    rf"|(?<![\w-])(?P<which>this|next|last|{_either(_COMING)})\s+(?P<weekday>{'|'.join(_WEEKDAYS)})(?![\w-])"
    rf"|(?<![\w-])(?:{_AHEAD})\s+in\s+(?P<in_count>{_COUNT})\s+(?P<in_unit>day|week|month)s?(?![\w-])"
    r"|(?P<week>[上这本下](?:周|个?星期|个?礼拜)|先週|今週|来週|지난주|이번\s주|다음\s주)"
    r"(?:(?P<sign>[一二三四五六日天])|の?(?P<kana>[月火水木金土日])曜日?|\s?(?P<hangul>[월화수목금토일])요일)"
    rf"|(?P<han>{_HAN_COUNT})\s?(?P<han_ago>{_HAN_AGO})"
    r"|(?<![\w-])(?:by|before|until|till)\s+(?:the\s+)?end\s+of\s+(?:the\s+|(?P<end_step>this|next)\s+)?(?P<end_unit>month|year)(?![\w-])"
    r"|(?P<end_which>下个?|[本这]个?)?(?P<end_sign>[月年])底(?=[之以]?前)"
    rf"|(?<![\w-])vor\s+(?P<german_count>\d{{1,3}}|{'|'.join(_GERMAN_NUMBERS)})\s+(?P<german_ago>tag|woche|monat|jahr)e?n?(?![\w-])"
    rf"|(?<![\w-])(?<!heute )(?<!gestern )(?<!guten )(?<!am )(?<!jeden )(?<!diesen )(?P<german_day>{'|'.join(_GERMAN_DAYS)})(?![\w-])"
    rf"|(?<![\w-])(?P<german_step>{'|'.join(_GERMAN_STEPS)})[nmrs]?\s+(?:(?P<german_unit>{'|'.join(_GERMAN_UNITS)})"
    rf"|(?P<german_weekday>{'|'.join(_GERMAN_WEEKDAYS)}))(?![\w-])"
    rf"|(?<![\w-])(?:bis|bis\s+zum|ab|vor)\s+(?P<german_by>{'|'.join(_GERMAN_WEEKDAYS)})(?![\w-])"
    rf"|(?P<other>{_either(_OTHERS)})"
    # Bare forms, which are dates only in a plan.
    rf"|(?P<bare>(?<![\w-])(?:on|am)\s+(?P<bare_day>{'|'.join((*_WEEKDAYS, *_GERMAN_WEEKDAYS))})(?![\w-])"
    r"|(?:周|星期|礼拜)(?P<bare_sign>[一二三四五六日天])|(?P<bare_kana>[月火水木金土日])曜日?|(?P<bare_hangul>[월화수목금토일])요일"
    rf"|(?<![\w-])in\s+(?P<bare_count>{_COUNT}|{'|'.join(_GERMAN_NUMBERS)})"
    r"\s+(?P<bare_unit>day|week|month|tag|woche|monat)(?:s|e?n)?(?![\w-])"
    r"|(?<![\w-])(?:at\s+)?(?:the\s+)?end\s+of\s+(?:the|(?P<bare_end_step>this|next))\s+(?P<bare_end>month|year)(?![\w-])"
    r"|(?<![\w-])ende\s+(?:de[sr]|diese[sr]|(?P<bare_ende_step>nächste[nrs]))\s+(?P<bare_ende>monat|jahr)e?s(?![\w-])"
    r"|(?P<bare_end_which>下个?|[本这]个?)?(?P<bare_end_sign>[月年])[底末]"
    rf"|(?P<bare_han>{_HAN_COUNT})\s?(?P<bare_han_unit>{_either(list(_UNITS))})\s?(?:{_AFTER}))",
    re.IGNORECASE,
)
# Words that mark a statement about recurring events.
_GENERAL = re.compile(
    r"\b(?:every|each|daily|weekly|monthly|always|never|whenever|usually|relative dates?|jede[nmrs]?|immer|täglich|nie)\b"
    r"|\b(?:chaque|tous les|toutes les|toujours|jamais|cada|tod[oa]s l[oa]s|siempre|nunca)\b"
    r"|每|总是|从不|毎|いつも|매일|매주|항상",
    re.IGNORECASE,
)
_MASKED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]{0,80}\"|“[^”\n]{0,80}”|「[^」\n]{0,80}」|‘[^’\n]{0,80}’|https?://\S+", re.DOTALL
)
# The date is already given: "yesterday (2026-03-31)", "next week, from 2026-04-06".
_DATED = re.compile(r"[\s,，]*(?:[(（][^()（）\n]{0,24})?(?:on |from )?\d{4}-\d\d")


def relative_dates(text: str, written: date, *, plan: bool = False) -> list[Phrase]:
    """Return the relative dates in a text that was written on the given day. In a plan, a bare weekday is the coming one."""
    romance = language_of(text) in ("fr", "es")
    if not romance and not _may_hold(text):
        return []
    masked = _MASKED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    matches = ((match, *_meant(match, written)) for match in _PHRASE.finditer(masked))
    phrases = list[Phrase]()
    start, line = 0, 1
    for match, says, certain in romance_dates(masked, written) if romance else matches:
        if len(phrases) == MOST_PHRASES:
            break
        line += masked.count("\n", start, match.start())
        start = match.start()
        if not says or (match["bare"] is not None and not (plan or _is_announced(match, masked))):
            continue
        if not _GENERAL.search(_line_at(masked, match.start())) and not _DATED.match(masked, match.end()):
            phrases.append(Phrase(match.start(), match.end(), line, match[0], says, certain))
    return phrases


def _is_announced(match: re.Match[str], text: str) -> bool:
    return is_announced(text, match.start(), match.end(), after_count=match.groupdict().get("bare_han") is not None)


_GERMAN_STEMS = ("heute", "gestern", "morgen", "woche", "monat", "jahr", "tag", "mittwoch")
# Every phrase contains one of these; searching for them costs a tenth of searching for the phrases.
_STEMS = ("yesterday", "today", "tonight", "tomorrow", "week", "month", "year", " ago", "\nago", "\tago", "day", *_GERMAN_STEMS)
_SIGNS = re.compile(
    rf"[{''.join(sorted({word[0] for word in _OTHERS}))}]|[周期拜曜]|[月年][底末]|요일"
    rf"|[{''.join(unit[-1] for unit in _UNITS)}]\s?(?:[之以]?前|전|{_AFTER})"
)


def _may_hold(text: str) -> bool:
    lower = text.lower()
    return any(stem in lower for stem in _STEMS) or (not text.isascii() and _SIGNS.search(text) is not None)


# Characters searched for "every" on each side of a phrase, so that a line of a megabyte is not searched for each phrase in it.
_AROUND = 200


def _line_at(text: str, place: int) -> str:
    begin = text.rfind("\n", max(0, place - _AROUND), place) + 1 or max(0, place - _AROUND)
    end = text.find("\n", place, place + _AROUND)
    return text[begin : place + _AROUND if end < 0 else end]


def _meant(match: re.Match[str], written: date) -> tuple[str, bool]:
    word = " ".join((match["latin"] or match["other"] or "").lower().split())
    try:
        if match["day_of"] or match["day_in"]:
            name, which = (match["day_of"] or match["day_in"]).lower(), (match["after"] or match["ahead"]).lower()
            return day_of_week(written, _WEEK_STEPS[which], {**_WEEKDAYS, **_GERMAN_WEEKDAYS}[name]), False
        if match["from_day"] is not None:
            return _weeks_from(written, _count(match["weeks"]), match["from_day"].lower()), False
        if match["weekday"] is not None:
            return weekday(written, " ".join(match["which"].lower().split()), _WEEKDAYS[match["weekday"].lower()]), False
        if match["week"] is not None:
            steps = _SPANS[" ".join(match["week"].split())][1]
            return day_of_week(written, steps, _DAY_SIGNS[match["sign"] or match["kana"] or match["hangul"]]), False
        if (german := _german(match, written)) is not None:
            return german
        if match["end_unit"] is not None:
            return end_of(written, match["end_unit"].lower(), (match["end_step"] or "").lower() == "next"), False
        if match["end_sign"] is not None:
            return end_of(written, _END_UNITS[match["end_sign"]], (match["end_which"] or "").startswith("下")), False
        if match["in_unit"] is not None:
            return ahead(written, _count(match["in_count"]), match["in_unit"].lower()), False
        if match["bare"] is not None:
            return _bare(match, written), False
        if word in _DAYS:
            return (written + timedelta(_DAYS[word])).isoformat(), match["own"] is None and word != "tonight"
        if word in _SPANS:
            return span(written, *_SPANS[word]), False
        if match["german_ago"] is not None:
            return ago(written, _count(match["german_count"]), _GERMAN_TIMES[match["german_ago"].lower()])
        unit = match["unit"].lower() if match["unit"] else _UNITS[match["han_ago"].rstrip("之以前전 ")]
        return ago(written, _count(match["count"] or match["han"]), unit)
    except (ValueError, OverflowError):
        return "", False


def _german(match: re.Match[str], written: date) -> tuple[str, bool] | None:
    if match["german_day"] is not None:
        word = match["german_day"].lower()
        return (written + timedelta(_GERMAN_DAYS[word])).isoformat(), word != "morgen"
    if match["german_by"] is not None:
        return weekday(written, "by", _GERMAN_WEEKDAYS[match["german_by"].lower()]), False
    if match["german_step"] is None:
        return None
    steps = _GERMAN_STEPS[match["german_step"].lower()]
    if match["german_weekday"] is not None:
        return day_of_week(written, steps, _GERMAN_WEEKDAYS[match["german_weekday"].lower()]), False
    return span(written, _GERMAN_UNITS[match["german_unit"].lower()], steps), False


def _bare(match: re.Match[str], written: date) -> str:
    if (unit := match["bare_end"] or match["bare_ende"] or match["bare_end_sign"]) is not None:
        step = match["bare_end_step"] or match["bare_ende_step"] or match["bare_end_which"] or ""
        return end_of(written, _END_UNITS[unit.lower()], step.lower().startswith(("next", "nächste", "下")))
    if match["bare_unit"] is not None:
        unit = match["bare_unit"].lower()
        return ahead(written, _count(match["bare_count"]), _GERMAN_TIMES.get(unit, unit))
    if match["bare_han"] is not None:
        return ahead(written, _count(match["bare_han"]), _UNITS[match["bare_han_unit"]])
    sign = match["bare_sign"] or match["bare_kana"] or match["bare_hangul"]
    name = (match["bare_day"] or "").lower()
    return weekday(written, "coming", _DAY_SIGNS[sign] if sign else {**_WEEKDAYS, **_GERMAN_WEEKDAYS}[name])


def _weeks_from(written: date, weeks: int, day: str) -> str:
    start = date.fromisoformat(weekday(written, "coming", _WEEKDAYS[day])) if day in _WEEKDAYS else written
    return (start + timedelta(weeks=weeks, days=day == "tomorrow")).isoformat()


def _count(text: str) -> int:
    if text.isdecimal():
        return int(text)
    if "十" in text:  # 十五, 二十, 二十五
        tens, ones = text.split("十", 1)
        return _HAN.get(tens, 1) * 10 + _HAN.get(ones, 0)
    return _NUMBERS.get(text.lower(), _HAN.get(text, _GERMAN_NUMBERS.get(text.lower(), 0)))


# A week, and a day that is not certain, in the words of the date: its unit shows their language.
_WORDED: tuple[tuple[re.Pattern[str], tuple[str, str]], ...] = tuple(
    (re.compile(unit, re.IGNORECASE), words)
    for unit, words in (
        ("woche|monat", ("die Woche ab {day}", "etwa {day}")),
        ("semaine|mois", ("la semaine du {day}", "vers le {day}")),
        ("semana|mes", ("la semana del {day}", "hacia el {day}")),
        ("[\uac00-\ud7af]", ("{day} 주", "{day}쯤")),
        ("[週かヶカ]", ("{day} の週", "{day} 頃")),
        ("[周期拜月]", ("{day} 那一周", "{day} 前后")),
    )
)
# The date that `dated` inserts: "on Thursday (2026-11-19)", 上周（2026-11-09 那一周）.
_FORMS = "|".join(form.replace("{day}", r"\d{4}(?:-\d\d){0,2}") for _, forms in _WORDED for form in forms)
COMPUTED = re.compile(rf"\s*[(（](?:(?:the week of |about )?\d{{4}}(?:-\d\d){{0,2}}|{_FORMS})[)）]")
# Han and kana take brackets of their own width, without a space before them.
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff]$")


def _worded(phrase: Phrase) -> str:
    kinds = ("the week of ", "about ")
    words = next((words for unit, words in _WORDED if unit.search(phrase.text)), kinds)
    for beginning, form in zip(kinds, words, strict=True):
        if "{day}" in form and phrase.says.startswith(beginning):
            return form.format(day=phrase.says.removeprefix(beginning))
    return phrase.says


def dated(text: str, phrases: Sequence[Phrase]) -> str:
    """Insert the date after each phrase, in its language. The original words stay in the text."""
    for phrase in sorted(phrases, reverse=True):
        says = _worded(phrase)
        insertion = f"（{says}）" if _WIDE.search(phrase.text) else f" ({says})"
        text = f"{text[: phrase.end]}{insertion}{text[phrase.end :]}"
    return text
