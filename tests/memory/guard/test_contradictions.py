"""Contradictions without a model: found by one value, a "not" or opposite sides, and asked about once with both texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.agent.manual_dream import run_by_hand
from lamina.core.settings import Settings
from lamina.memory.guard.contradictions import find_contradictions, without_sentence
from lamina.memory.memory import Memory
from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.topic import Topic, read_topic
from lamina.session.provider import offline

OPPOSED = [
    ("The standup is at nine.", "The standup is at ten."),
    ("The API limit is 100 requests a minute.", "The API limit is 1000 requests a minute."),
    ("Deploys happen on Thursdays.", "Deploys happen on Tuesdays."),
    ("Commit messages are in English.", "Commit messages are in German."),
    ("Deploys need an approval.", "Deploys need no approval."),
    ("Always squash commits.", "Never squash commits."),
    ("I prefer tabs over spaces.", "I prefer spaces over tabs."),
    ("Anna leads the billing team.", "Jon leads the billing team."),
    ("提交信息用英文写。", "提交信息用中文写。"),
    ("我们周二部署。", "我们周四部署。"),
    ("安娜负责账单。", "李雷负责账单。"),
    ("提交前要跑测试。", "提交前不要跑测试。"),
    ("金曜日にデプロイする。", "月曜日にデプロイする。"),
    ("Integration tests use the real database.", "Integration tests never use the real database."),
    ("The API listens on port 8080 by default.", "The API listens on port 9090 by default."),
    ("生产环境使用 Redis 缓存。", "生产环境不使用 Redis 缓存。"),
    ("Use tabs for indentation.", "Use spaces for indentation."),
    ("包管理器用 npm。", "包管理器用 pnpm。"),
    ("Keep answers short.", "Keep answers long and detailed."),
    ("代码评审由王工负责。", "代码评审由李工负责。"),
    ("The docs are maintained by Anna.", "The docs are maintained by Jon."),
    ("Use rebase, not merge.", "Use merge, not rebase."),
]
BOTH_HOLD = [
    ("Anna likes tea.", "Bob likes tea."),
    ("Ticket 12 needs a review.", "Ticket 13 needs a review."),
    ("Service A runs on port 80.", "Service B runs on port 81."),
    ("The standup is at nine.", "The retro is at ten."),
    ("Use two spaces in YAML.", "Use two spaces in YAML."),
    ("We support Python 3.11 and Linux.", "We support Python 3.12 and Linux."),
    ("Do not deploy on Fridays.", "Do not merge on Fridays."),
    ("The frontend uses pnpm.", "The docs site uses yarn."),
    ("支付由测试组审批。", "发布由产品组审批。"),
]


def topic(file: str, body: str, *, day: float) -> Topic:
    return read_topic(file, f"---\nname: {file[:-3]}\ndescription: about {file[:-3]}\ntype: project\n---\n\n{body}\n", day)


@pytest.mark.spec("D3", "O1")
def test_what_cannot_both_hold_is_found_and_look_alikes_are_not() -> None:
    def found(pair: tuple[str, str]) -> bool:
        one, other = pair
        return bool(find_contradictions([topic("b.md", other, day=2.0), topic("a.md", one, day=1.0)]))

    assert [pair for pair in OPPOSED if not found(pair)] == []
    assert [pair for pair in BOTH_HOLD if found(pair)] == []


def test_the_older_side_goes_and_the_rest_of_its_memory_stays() -> None:
    old = topic("a.md", "The standup is at nine. Jon hosts it.\n\n**Why:** Nine suits Jon.", day=1.0)
    [one] = find_contradictions([topic("b.md", "The standup is at ten.", day=2.0), old])
    assert (one.old.text, one.new.text) == ("The standup is at nine.", "The standup is at ten.")
    text = without_sentence(one.old)
    assert text is not None
    assert "at nine" not in text
    assert "Jon hosts it." in text
    assert without_sentence(one.new) is None, "it says nothing else"


def test_a_pair_called_distinct_is_left_out_and_what_has_many_values_is_no_contradiction() -> None:
    pair = [topic("a.md", "The standup is at nine.", day=1.0), topic("b.md", "The standup is at ten.", day=2.0)]
    assert find_contradictions(pair, lambda old, new: (old.file, new.file) == ("a.md", "b.md")) == []
    many = [topic(f"{at}.md", f"The ticket has {at} votes.", day=at) for at in range(3_000)]
    assert find_contradictions(many) == []
    assert len(find_contradictions(many[:2])) == 1


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Memory:
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    return Memory.open(tmp_path / "work", settings=Settings())


@pytest.mark.spec("D3", "O1", "B4")
def test_a_dream_by_rules_asks_once_and_changes_neither_side(memory: Memory, tmp_path: Path) -> None:
    def save(name: str, body: str) -> None:
        memory.save(name, type="project", description=body, body=body, why=ChangeReason("extraction", "said"))

    save("standup-nine", "The standup is at nine.")
    save("standup-ten", "The standup is at ten.")

    def dream() -> None:
        run_by_hand(offline(), cwd=tmp_path / "work", settings=Settings())

    dream()
    assert sorted(each.name for each in memory.topics()) == ["standup-nine", "standup-ten"], "nothing is settled silently"
    [asked] = memory.waiting()
    assert (asked.action, asked.name) == ("remove", "standup-nine")
    assert '"The standup is at nine."' in asked.why.why
    assert '"The standup is at ten."' in asked.why.why
    memory.reject(asked.id)
    dream()
    assert memory.waiting() == [], "an answer counts"
    save("standup-eleven", "The standup is at eleven.")
    dream()
    assert {each.name for each in memory.waiting()} <= {"standup-nine", "standup-ten"}
    assert memory.waiting(), "a new side is a new question"
    memory.accept(memory.waiting()[0].id)
    assert len(memory.topics()) == 2
