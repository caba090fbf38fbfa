"""Daily logs become memories without a model: new facts, known ones, and ones that a later day contradicts."""

from __future__ import annotations

from datetime import date

import pytest

from lamina.layers.l6_dream.directive import DreamScene, read_directive, render_directive
from lamina.layers.l6_dream.offline import DailyLog, distil_logs
from lamina.layers.l6_dream.plan import NEW_A_LOG
from lamina.layers.l6_dream.tidy import MemoryPage
from lamina.memory.store.topic import read_topic

MONDAY, TUESDAY = date(2026, 3, 30), date(2026, 3, 31)


def page(file: str, description: str, body: str = "", *, day: date = MONDAY, name: str = "") -> MemoryPage:
    text = f"---\nname: {name or file.removesuffix('.md')}\ndescription: {description}\ntype: project\n---\n\n{body or description}\n"
    return MemoryPage(file, text, day)


def made(logs: list[DailyLog], *pages: MemoryPage) -> dict[str, str]:
    """Map each file to its description."""
    return {file: read_topic(file, text, 0).description for file, text in distil_logs(logs, pages).items()}


@pytest.mark.spec("W2", "O1")
def test_each_bullet_that_no_memory_says_becomes_one_with_its_reason_and_its_date() -> None:
    log = DailyLog(
        MONDAY, "- 09:00 deploys happen on Thursdays because Friday is short\n- 10:00 the release is tomorrow\nno bullet\n"
    )
    found = distil_logs([log], [])
    assert list(found) == ["deploys-happen-thursdays.md", "release-tomorrow.md"]
    topic = read_topic("x.md", found["deploys-happen-thursdays.md"], 0)
    assert (topic.type, topic.problems) == ("project", ())
    assert "**Why:** Friday is short." in topic.body
    assert "2026-03-31" in found["release-tomorrow.md"], "tomorrow of the day it was noted on"


@pytest.mark.spec("W2")
def test_what_a_memory_says_and_what_is_none_to_keep_is_passed_over() -> None:
    text = "- 09:00 Deploys happen on Thursdays\n- 09:01 I am working on the parser\n- 09:02 see src/lamina/turn.py\n"
    assert made([DailyLog(TUESDAY, text)], page("d.md", "When we deploy", "We know: deploys happen on Thursdays.")) == {}


@pytest.mark.spec("W2")
def test_a_later_day_replaces_what_can_have_one_value_and_an_older_one_never_does() -> None:
    logs = [DailyLog(TUESDAY, "- 09:00 deploys happen on Tuesdays\n"), DailyLog(MONDAY, "- 09:00 deploys happen on Thursdays\n")]
    assert made(logs) == {"deploys-happen-thursdays.md": "deploys happen on Tuesdays"}, "whatever the order of the logs"
    newer = page("when.md", "deploys happen on Fridays", day=date(2026, 4, 2))
    assert made(logs, newer) == {}
    older = page("when.md", "deploys happen on Fridays", day=date(2026, 3, 1), name="my own name")
    assert made(logs, older) == {"when.md": "deploys happen on Tuesdays"}
    assert "name: my own name" in distil_logs(logs, [older])["when.md"]


def test_one_day_adds_no_more_than_it_may_and_no_file_is_taken_from_another() -> None:
    many = "".join(f"- 09:00 fact {number} is about thing{number} in city{number}\n" for number in range(30))
    assert len(distil_logs([DailyLog(MONDAY, many)], [])) == NEW_A_LOG
    taken = page("Anna-leads-team.md", "something else entirely", "Nothing alike at all.", name="other")
    assert list(made([DailyLog(MONDAY, "- 09:00 Anna leads the team\n")], taken)) == ["anna-leads-team-2.md"]


@pytest.mark.spec("W2", "D3")
def test_the_directive_names_the_logs_that_no_dream_has_seen(tmp_path_factory: pytest.TempPathFactory) -> None:
    base = tmp_path_factory.getbasetemp()
    logs = (base / "logs/2026/03/2026-03-31.md", base / "logs/2026/03/2026-03-30.md")
    text = render_directive(DreamScene(base / "work", base, "2026-04-01", logs=base / "logs", unseen=logs))
    assert read_directive(text).logs == tuple(map(str, logs))
    assert read_directive(render_directive(DreamScene(base / "work", base, "2026-04-01"))).logs == ()


@pytest.mark.spec("W2", "B4")
def test_a_new_value_takes_the_place_of_one_sentence_and_all_else_stays() -> None:
    body = "Deploys happen on Fridays. Anna approves them.\n\n**Why:** Mondays are busy.\n\n**How to apply:** Ask in the channel first."
    old = page("when.md", "deploys happen on Fridays", body, name="my own name")
    old = old._replace(text=old.text.replace("type: project\n", "type: feedback\nevidence: [ci.yml]\n"))
    text = distil_logs([DailyLog(TUESDAY, "- 09:00 deploys happen on Tuesdays\n")], [old])["when.md"]
    said = text.partition("---\n\n")[2]
    assert said == "Deploys happen on Tuesdays.\n\nAnna approves them.\n\n**How to apply:** Ask in the channel first.\n"
    assert "type: feedback\nevidence: [ci.yml]\n" in text


@pytest.mark.spec("W2")
def test_what_says_more_than_a_memory_that_is_like_it_is_not_taken_for_said() -> None:
    old = page("d.md", "the staging database runs on port five", "The staging database runs on port five.")
    log = DailyLog(TUESDAY, "- 09:00 the staging database runs on port five behind Anna's proxy\n")
    assert len(made([log], old)) == 1
    assert "d.md" not in made([log], old)
