"""Relative dates: which phrases are found, what they meant on the day of writing, and which are ignored."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.language.dates import COMPUTED, MOST_PHRASES, dated, relative_dates

# A Tuesday.
DAY = date(2026, 3, 31)

MEANT = [
    ("It broke yesterday.", "2026-03-30", True),
    ("Ship it Tomorrow", "2026-04-01", True),
    ("as of today, two", "2026-03-31", True),
    ("the day before yesterday", "2026-03-29", True),
    ("3 days ago it worked", "2026-03-28", True),
    ("two  days\nago it worked", "2026-03-29", True),
    ("yesterday's build", "2026-03-30", False),
    ("two weeks ago", "about 2026-03-17", False),
    ("next week we move", "the week of 2026-04-06", False),
    ("last month", "2026-02", False),
    ("next year", "2027", False),
    ("昨天上线了", "2026-03-30", True),
    ("后天发布", "2026-04-02", True),
    ("三天前坏了", "2026-03-28", True),
    ("下周三发布", "2026-04-08", False),
    ("来週の金曜日にリリース", "2026-04-10", False),
    ("다음 주 금요일에 배포", "2026-04-10", False),
    ("the demo is next Friday", "2026-04-10", False),
    ("the demo is this Friday", "2026-04-03", False),
    ("it broke last Monday", "2026-03-23", False),
    ("frozen from Thursday", "2026-04-02", False),
    ("done by Tuesday", "2026-04-07", False),
    ("the release is due in two weeks", "about 2026-04-14", False),
    ("the visit is in 3 days", "2026-04-03", False),
    ("the contract ends in a month", "about 2026-04-30", False),
    ("上个月", "2026-02", False),
    ("来週リリース", "the week of 2026-04-06", False),
    ("어제 배포", "2026-03-30", True),
    ("Gestern ging es noch", "2026-03-30", True),
    ("morgen ist die Abnahme", "2026-04-01", False),
    ("übermorgen", "2026-04-02", True),
    ("nächste Woche ist Urlaub", "the week of 2026-04-06", False),
    ("nächsten Freitag ist die Demo", "2026-04-10", False),
    ("Abgabe bis Freitag", "2026-04-03", False),
    ("letzten Monat", "2026-02", False),
    ("heute Morgen", "2026-03-31", True),
    ("a week from Thursday we ship", "2026-04-09", False),
    ("the demo is on Tuesday next week", "2026-04-07", False),
    ("nächste Woche Dienstag", "2026-04-07", False),
    ("vor drei Tagen fiel er aus", "2026-03-28", True),
    ("大后天演示", "2026-04-03", True),
    ("十五天前签的合同", "2026-03-16", True),
    ("三日前に移しました", "2026-03-28", True),
    ("2주 전에 바꿨다", "about 2026-03-17", False),
    ("In zwei Wochen ist Abgabe.", "about 2026-04-14", False),
    ("The deadline is the end of next month.", "2026-04-30", False),
    ("Die Abnahme ist Ende des Monats.", "2026-03-31", False),
    ("Am Donnerstag ist das Release.", "2026-04-02", False),
    ("Am Freitag beginnt der Umzug.", "2026-04-03", False),
    ("下礼拜三发布", "2026-04-08", False),
    ("下个星期三发布", "2026-04-08", False),
    ("上个礼拜换了数据库", "the week of 2026-03-23", False),
    ("done by the end of the month", "2026-03-31", False),
    ("signed off before the end of next year", "2027-12-31", False),
    ("signed off before the end of next week", "the week of 2026-04-06", False),
    ("月底之前完成迁移", "2026-03-31", False),
    ("年底前换供应商", "2026-12-31", False),
    # Announced: it happens once.
    ("The freeze is on Thursday.", "2026-04-02", False),
    ("The trial ends on Friday.", "2026-04-03", False),
    ("The deadline is Friday", "2026-04-03", False),
    ("Die Abnahme ist am Freitag.", "2026-04-03", False),
    ("la démo est jeudi", "2026-04-02", False),
    ("la demo es el jueves", "2026-04-02", False),
    ("周五之前要交付", "2026-04-03", False),
    ("发布定在星期四", "2026-04-02", False),
    ("两周后审计", "about 2026-04-14", False),
    ("两个星期后审计", "about 2026-04-14", False),
    ("审计在三天后", "2026-04-03", False),
]


@pytest.mark.parametrize(("text", "says", "certain"), MEANT)
def test_a_phrase_means_a_date_of_the_day_it_was_written(text: str, says: str, certain: bool) -> None:
    [found] = relative_dates(text, DAY)
    assert (found.says, found.certain) == (says, certain)


@pytest.mark.parametrize(
    "text",
    [
        "Every standup names what was done yesterday.",
        "Always say what changed today.",
        "每天说明昨天做了什么",
        "Write `yesterday` as a date.",
        'The button says "Today" on it.',
        "```\nlast week\n```",
        "https://example.com/next/today",
        "yesterday (2026-03-30)",
        "next week (the week of 2026-04-06)",
        "昨天（2026-03-30）",
        "the yesterdays of a todayish week",
        "11月30日前完成，2020年前的代码不动",
        "5월 3일 전까지",
        "weekly, monthly, yearly",
        "Guten Morgen!",
        "Am Morgen ist es ruhig, jeden Freitag auch.",
        "Immer sagen, was heute neu ist.",
        "Vertagt wird nichts.",
        "We deploy on Fridays.",
        "We deploy on Friday.",
        "The standup is on Monday.",
        "Am Montag ist Standup.",
        "A fix in two days is a good fix.",
        "The retro is on Friday.",
        "Our release day is Tuesday.",
        "站会在周一",
        "部署只在星期二进行",
        "合并两天后部署",
        "Invoices go out at the end of the month.",
        "每月月底前对账",
        "Bugs are fixed in two days.",
        "Every report is due by Friday.",
        "2026-03-30",
        "",
    ],
)
def test_what_is_no_date_of_one_day_is_left_alone(text: str) -> None:
    assert relative_dates(text, DAY) == []


def test_lines_are_counted() -> None:
    assert [found.line for found in relative_dates("a\nyesterday\n\ntoday and tomorrow", DAY)] == [2, 4, 4]


def test_dates_are_put_behind_the_words() -> None:
    text = "It broke yesterday; 明天修。"
    assert dated(text, relative_dates(text, DAY)) == "It broke yesterday (2026-03-30); 明天（2026-04-01）修。"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("上周我们换了数据库", "上周（2026-03-23 那一周）我们换了数据库"),
        ("审计在两周后", "审计在两周后（2026-04-14 前后）"),
        ("来週リリース", "来週（2026-04-06 の週）リリース"),
        ("다음 주에 배포", "다음 주 (2026-04-06 주)에 배포"),
        ("Nächste Woche ist Urlaub", "Nächste Woche (die Woche ab 2026-04-06) ist Urlaub"),
        ("Last week we moved.", "Last week (the week of 2026-03-23) we moved."),
        ("La semaine prochaine, pas de livraison.", "La semaine prochaine (la semaine du 2026-04-06), pas de livraison."),
        ("La version 4 sort dans un mois.", "La version 4 sort dans un mois (vers le 2026-04-30)."),
        ("La próxima semana no hay despliegues.", "La próxima semana (la semana del 2026-04-06) no hay despliegues."),
        ("Hace dos semanas cambió el banco.", "Hace dos semanas (hacia el 2026-03-17) cambió el banco."),
        # The words of the date decide, since the rest of a short clause may look like another language.
        ("Release nächste Woche", "Release nächste Woche (die Woche ab 2026-04-06)"),
        ("We call it 下周 on the board of the team", "We call it 下周（2026-04-06 那一周） on the board of the team"),
    ],
)
def test_a_date_is_put_in_the_words_of_the_text(text: str, shown: str) -> None:
    assert dated(text, relative_dates(text, DAY)) == shown
    assert relative_dates(shown, DAY) == []
    assert COMPUTED.sub("", shown) == text


WORDS = st.sampled_from(
    ["yesterday", "today", "next week", "昨天", "3 days ago", "every", '"', "`", "```", "\n", " ", ".", "x", "2026-01-01"]
)


@given(st.lists(WORDS, max_size=30).map(" ".join))
def test_dating_a_text_twice_changes_nothing_more(text: str) -> None:
    once = dated(text, relative_dates(text, DAY))
    assert dated(once, relative_dates(once, DAY)) == once


@given(st.text(max_size=200), st.dates())
def test_no_text_and_no_day_makes_it_raise(text: str, day: date) -> None:
    for found in relative_dates(f"{text} 999 years ago, yesterday, next month", day):
        assert found.says


def test_a_text_that_is_full_of_them_gives_the_first() -> None:
    assert len(relative_dates("yesterday " * 100_000, DAY)) == MOST_PHRASES
    assert relative_dates("every " + "yesterday " * 1_000, DAY)[0].start > 100


@pytest.mark.spec("S7")
def test_in_a_plan_a_bare_weekday_is_the_coming_one() -> None:
    plans = {
        "We freeze on Thursday.": "2026-04-02",
        "We show it on Tuesday.": "2026-04-07",
        "Wir liefern am Freitag.": "2026-04-03",
        "我们周三发布": "2026-04-01",
        "我们礼拜三发布": "2026-04-01",
        "木曜日にデモ": "2026-04-02",
        "목요일에 출시": "2026-04-02",
        "It is shut down in two weeks.": "about 2026-04-14",
        "Wir liefern in zwei Wochen.": "about 2026-04-14",
        "合并两周后上线": "about 2026-04-14",
        "We freeze at the end of the month.": "2026-03-31",
        "Ende nächsten Monats liefern wir.": "2026-04-30",
        "我们月底上线": "2026-03-31",
        "年底换数据库": "2026-12-31",
        "月末にリリース": "2026-03-31",
    }
    assert {text: [each.says for each in relative_dates(text, DAY, plan=True)] for text in plans} == {
        text: [says] for text, says in plans.items()
    }
    assert [text for text in plans if relative_dates(text, DAY)] == []
    assert relative_dates("每周三发布, every week on Thursday", DAY, plan=True) == []


@pytest.mark.spec("S7")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Demain, Karim reprend le support.", "2026-04-01"),
        ("Avant-hier, le disque est tombé.", "2026-03-29"),
        ("La semaine prochaine, pas de livraison.", "the week of 2026-04-06"),
        ("Le mois dernier, on a changé de banque.", "2026-02"),
        ("Vendredi prochain, on coupe le serveur.", "2026-04-03"),
        ("Lundi dernier, le budget a été coupé.", "2026-03-30"),
        ("La version 4 sort dans deux semaines.", "about 2026-04-14"),
        ("Il y a trois jours, la copie a échoué.", "2026-03-28"),
        ("Le gel commence à partir de jeudi.", "2026-04-02"),
        ("Ayer cerramos el contrato.", "2026-03-30"),
        ("El pasado martes falló la copia.", "2026-03-24"),
        ("La próxima semana no hay despliegues.", "the week of 2026-04-06"),
        ("La auditoría empieza el lunes que viene.", "2026-04-06"),
        ("El año pasado se perdió la base.", "2025"),
        ("Hace dos semanas cambió el banco.", "about 2026-03-17"),
        ("El certificado caduca dentro de un mes.", "about 2026-04-30"),
    ],
)
def test_french_and_spanish_dates_are_absolute(text: str, says: str) -> None:
    assert [found.says for found in relative_dates(text, DAY)] == [says]


@pytest.mark.spec("S7")
def test_a_french_or_spanish_day_that_recurs_or_has_a_date_is_left_alone() -> None:
    for text in (
        "Chaque lundi, point d'équipe.",
        "Le lundi, on fait le point avec les autres.",
        "Todos los viernes hacemos limpieza.",
        "Los viernes no se despliega nada.",
        "La démo est lundi 11 mai.",
        "Por la mañana no hay nadie en la oficina.",
        "Hier liegt der Fehler, und morgens ist es kalt.",
    ):
        assert relative_dates(text, DAY, plan=True) == []
    assert [found.says for found in relative_dates("La auditoría es el jueves.", DAY, plan=True)] == ["2026-04-02"]
    assert relative_dates("La auditoría cae el jueves.", DAY) == []
