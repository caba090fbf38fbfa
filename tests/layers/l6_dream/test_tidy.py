"""Tidying by rules: duplicates are merged, relative dates replaced, the index repaired, and no sentence is lost."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.layers.l6_dream.plan import MOST_CHARS
from lamina.layers.l6_dream.tidy import MemoryPage, Tidied, tidy_pages
from lamina.memory.guard.facts import facts_of, is_said

DAY = date(2026, 4, 1)
HELD = "The importer holds back rows that have no currency, because the bank refuses them all."
TRIED = "Rows that were held back are tried again on the first of each month by the importer."


def page(name: str, body: str, *, kind: str = "project", day: date = DAY, about: str = "", more: str = "") -> MemoryPage:
    return MemoryPage(f"{name}.md", f"---\nname: {name}\ndescription: {about or name}\ntype: {kind}\n{more}---\n\n{body}\n", day)


def index_of(*pages: MemoryPage) -> str:
    return "".join(f"- [{page.file[:-3]}]({page.file}) — {page.file[:-3]}\n" for page in pages)


def tidy(*pages: MemoryPage, index: str | None = None) -> Tidied:
    there = {page.file for page in pages}
    return tidy_pages(pages, index_of(*pages) if index is None else index, there.__contains__)


@pytest.mark.spec("O1")
def test_a_memory_in_order_gives_no_change() -> None:
    done = tidy(page("importer", HELD), page("printer", "The printer on the second floor is called Ada."))
    assert done == Tidied({}, None)


@pytest.mark.spec("O1")
def test_one_that_another_says_all_of_goes() -> None:
    done = tidy(page("a", HELD), page("b", f"{HELD} {TRIED}"))
    assert done.texts == {"a.md": ""}
    assert done.index == "- [b](b.md) — b\n"
    assert done.merged == 1


@pytest.mark.spec("O1")
def test_of_two_that_are_nearly_the_same_one_keeps_what_both_say() -> None:
    shared = f"{HELD} The rows are written to a file of their own, one for each day, and nobody deletes them before the audit."
    one, other = page("a", f"{shared}\n\n- Ask Mara first."), page("b", f"{shared}\n\n- Ask Jon when Mara is away.")
    done = tidy(one, other)
    assert done.texts["b.md"] == ""
    assert done.texts["a.md"] == one.text.rstrip("\n") + "\n- Ask Jon when Mara is away.\n"


@pytest.mark.spec("O1")
def test_evidence_of_both_stays() -> None:
    done = tidy(page("a", HELD, more="evidence:\n- a.py\n"), page("b", HELD, more="evidence:\n- b.py\n"))
    assert "a.py" in done.texts["a.md"]
    assert "b.py" in done.texts["a.md"]


@pytest.mark.spec("O1")
@pytest.mark.parametrize(
    "other",
    [
        page("b", HELD, kind="feedback"),
        MemoryPage("b.md", HELD, DAY),
        page("b", "The importer holds back rows."),
    ],
    ids=["another type", "no front matter", "other words"],
)
def test_what_is_not_surely_the_same_stays(other: MemoryPage) -> None:
    assert "b.md" not in tidy(page("a", HELD), other).texts


APPROVED = "at ten after the meeting, and Anna has to approve each of them in the channel of the release before it goes out."
PUSHED = "push to the main branch of this repository without a review by somebody of the platform team who knows it."


@pytest.mark.spec("O1")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"Deploys happen on Tuesdays {APPROVED}", f"Deploys happen on Thursdays {APPROVED}"),
        (f"Never {PUSHED}", PUSHED.capitalize()),
        ("部署在周二上午十点进行,需要安娜在发布频道批准。", "部署在周四上午十点进行,需要安娜在发布频道批准。"),
        (f"| api | 80 |\n|---|---|\n\n{HELD}", f"| api | 81 |\n|---|---|\n\n{HELD}"),
        (f"{HELD}\n\n```sh\nmake all\n```", f"{HELD}\n\n```sh\nif test -f x; then\n    make docs\nfi\n```"),
        (f"{HELD}\n- staging:\n  - port 80\n- live:\n  - port 90", f"{HELD}\n- staging:\n  - port 90\n- live:\n  - port 80"),
        (
            f"{HELD}\n# Staging\nThe port is 80.\n# Live\nThe port is 90.",
            f"{HELD}\n# Live\nThe port is 80.\n# Staging\nThe port is 90.",
        ),
    ],
    ids=["a day", "not", "chinese", "a row", "code", "below a point", "below a heading"],
)
def test_what_may_contradict_or_has_its_sense_from_its_place_stays_in_two_memories(one: str, other: str) -> None:
    assert (
        tidy(page("a", one, about="One and the same description"), page("b", other, about="One and the same description")).texts
        == {}
    )


@pytest.mark.spec("O1")
def test_what_only_a_description_says_is_kept_too() -> None:
    done = tidy(page("a", HELD), page("b", HELD, about="Mara of the finance team answers all questions"))
    assert done.texts["b.md"] == ""
    assert "\n\nMara of the finance team answers all questions\n" in done.texts["a.md"]


@pytest.mark.spec("O1")
def test_the_one_in_the_index_is_kept_then_the_one_that_says_more_then_the_older() -> None:
    young, old = page("a", HELD, day=date(2026, 4, 2)), page("b", HELD)
    assert tidy(young, old).texts == {"a.md": ""}
    assert tidy(young, old, index=index_of(young)).texts == {"b.md": ""}


@pytest.mark.spec("O1", "S7")
def test_a_day_gets_its_date_by_the_day_of_the_memory() -> None:
    done = tidy(page("release", "The branch was cut yesterday by Mara.\n\nToday it was tagged."))
    assert "cut yesterday (2026-03-31) by Mara." in done.texts["release.md"]
    assert "Today (2026-04-01) it was tagged." in done.texts["release.md"]
    assert done.dated == 2
    again = tidy(MemoryPage("release.md", done.texts["release.md"], date(2026, 6, 1)))
    assert again.texts == {}


@pytest.mark.spec("O1", "S7")
def test_a_weekday_of_the_description_gets_the_date_that_the_body_gives_it() -> None:
    done = tidy(page("release", "The release is on Thursday.", about="Release on Thursday"))
    assert "description: Release on Thursday (2026-04-02)\n" in done.texts["release.md"]
    assert "The release is on Thursday (2026-04-02)." in done.texts["release.md"]
    assert tidy(page("deploys", "We deploy on Thursday.", about="Deploys on Thursday")).texts == {}


@pytest.mark.spec("O1")
def test_rules_speak_of_any_day_and_doubles_with_fresh_dates_are_joined_the_next_time() -> None:
    rule = page("rule", "Say what was done yesterday before anything else.", kind="feedback")
    assert tidy(rule).texts == {}
    one, other = page("a", f"{HELD} It began yesterday."), page("b", f"{HELD} It began yesterday.", day=date(2026, 4, 5))
    done = tidy(one, other)
    assert "yesterday (2026-03-31)" in done.texts["a.md"]
    assert "yesterday (2026-04-04)" in done.texts["b.md"]


@pytest.mark.spec("O1", "S3")
def test_dead_and_double_lines_go_and_long_ones_are_shortened() -> None:
    one = page("a", HELD)
    long = f"- [a](a.md) — {'word ' * 60}\n"
    done = tidy(one, index=f"# Mine\n{long}- [Gone](gone.md) — nothing\n- [a again](a.md) — twice\n")
    assert done.index is not None
    assert done.index.startswith("# Mine\n- [a](a.md) — word word")
    assert max(map(len, done.index.splitlines())) <= 150
    assert len(done.index.splitlines()) == 2
    assert done.lines == 3


@pytest.mark.spec("O1", "Z7")
def test_a_memory_that_would_grow_too_large_is_left_as_two() -> None:
    words = [" ".join(f"w{number}x{each}" for each in range(12)) + "." for number in range(MOST_CHARS // 80 - 4)]
    one, other = (
        page("a", "\n".join([*words, "One."])),
        page("b", "\n".join([*words, *(f"More of it, {at}." for at in range(60))])),
    )
    assert len(one.text) + 60 * len("More of it, 00.\n") > MOST_CHARS > len(one.text)
    assert tidy(one, other).texts == {}


SENTENCES = st.sampled_from(
    [HELD, TRIED, "The printer is called Ada.", "- Ask Mara.", "数据库在周五之前不能停机。", "We met yesterday.", "# Heading", ""]
)


@pytest.mark.spec("O1", "B4")
@settings(max_examples=50)
@given(st.lists(st.lists(SENTENCES, max_size=6), min_size=1, max_size=6))
def test_no_fact_is_ever_lost(bodies: list[list[str]]) -> None:
    pages = [page(f"m{number}", "\n".join(body)) for number, body in enumerate(bodies)]
    done = tidy(*pages)
    after = [text for each in pages if (text := done.texts.get(each.file, each.text))]
    plain = [text.replace(" (2026-03-31)", "") for text in after]
    for each in pages:
        for fact in facts_of(each.text).each if done.texts.get(each.file) == "" else ():
            assert any(is_said(fact, text) for text in plain), fact


SAME_TWICE = [
    ("Use pnpm and never npm in this project.", "Use pnpm, never npm in this project."),
    ("Run the tests before pushing, and fix warnings.", "Run the tests before pushing and also fix warnings."),
    ("Answer briefly but completely.", "Answer briefly and completely."),
    ("回答要简短，不要总结。", "回答要简短，不要总结。"),
    ("我们每周三下午部署，而且不发周报。", "我们每周三下午部署，不发周报。"),
    ("Please don't add comments to generated code.", "Do not add comments to generated code."),
    ("I prefer tabs over spaces.", "The user prefers tabs over spaces."),
    ("提交之前先跑测试。", "提交之前要先跑测试。"),
]
LOOK_ALIKE = [
    ("We deploy on Wednesday afternoon.", "We deploy on Tuesday afternoon."),
    ("Use tabs and spaces in tables.", "Use tabs or spaces in tables."),
    ("Use mocks for the database in tests.", "Do not use mocks for the database in tests."),
    ("我们每周三下午部署。", "我们每周二下午部署。"),
]


@pytest.mark.spec("O1")
def test_two_that_differ_in_a_conjunction_or_in_the_description_are_merged_and_look_alikes_are_not() -> None:
    for pairs, merged in ((SAME_TWICE, 1), (LOOK_ALIKE, 0)):
        found = {one: tidy(page("a", one, about=one[:9]), page("b", other, about=other[:5])).merged for one, other in pairs}
        assert found == {one: merged for one, _ in pairs}


@pytest.mark.spec("S7", "O1")
@pytest.mark.parametrize(
    ("said", "dated"),
    [
        ("The freeze starts next Friday.", "The freeze starts next Friday (2026-04-10)."),
        ("It ships in two weeks.", "It ships in two weeks (about 2026-04-15)."),
        ("The outage was last week.", "The outage was last week (the week of 2026-03-23)."),
        ("下周三冻结代码。", "下周三（2026-04-08）冻结代码。"),
    ],
)
def test_a_relative_date_of_a_plan_gets_its_date_in_body_description_and_index(said: str, dated: str) -> None:
    done = tidy(page("plan", said, about=said), index=f"- [plan](plan.md) — {said}\n")
    assert done.texts["plan.md"].count(dated) == 2
    assert done.index == f"- [plan](plan.md) — {dated}\n"
    assert tidy(page("rule", said, about=said, kind="feedback"), index="- [rule](rule.md) — x\n") == Tidied({}, None)
