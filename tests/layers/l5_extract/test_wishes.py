"""Standing wishes without "always": kept with their reason, and told apart from commands about the current task."""

from __future__ import annotations

import pytest

from lamina.layers.l5_extract.offline import UserText, find_signals, plan_memories
from lamina.layers.l5_extract.plan import ExtractDirective

TODAY = "2026-05-04"  # a Monday
ASKED = ExtractDirective(1, TODAY, "m", "", "")

WISHES = """
No emojis in commit messages.
I like small commits.
Please don't add comments that repeat the code.
Ask me before you install a new dependency.
When you show me a diff, leave out generated files.
Stop summarising what you did at the end of every answer.
You don't need to explain basic Git commands to me.
Hör auf, am Ende alles zusammenzufassen.
Kommentare im Code bitte auf Englisch.
别再在结尾总结了。
请不要自动提交代码。
每次改完代码都要先跑测试再提交。
コミットメッセージに絵文字を使わないでください。
毎回最後に要約を書くのはやめてください。
커밋 메시지에 이모지를 쓰지 마세요.
"""
TASKS = """
No tests were run, the runner crashed.
Don't commit, the tests are red.
Don't worry about tests, it is a prototype.
I want tests for calc and parse.
Add tests, otherwise coverage drops.
Use print, it is faster to debug.
Merge main - the conflict is trivial.
Show me the code before you change it.
When you add an item, show a toast.
Stop asking me for the password every time, cache it.
You don't need to write tests, I have some.
No emojis in the output, the terminal shows boxes.
Sure, never test anything, what could go wrong.
The logs go into Datadog when I enable debug.
Messages are in Slack format.
We are moving the button this sprint, update the CSS.
I'm learning a lot from your answers.
I'm a terrible programmer.
If we used pnpm, I would prefer small commits.
Keine Tests gefunden.
Ich will keine Tests, nur den Fix.
Am Montag ist das Release-Skript abgestürzt.
别提交，测试没过。
每次点击都要等三秒。
代码里不要的部分删掉。
テストが通らないのでコミットしないでください。
メッセージが表示されないようにしてほしい。
커밋하지 마세요, 테스트 중이에요.
"""


def _signals(text: str) -> list[str]:
    return [found.signal for found in find_signals(text, TODAY)]


@pytest.mark.spec("O1", "S7", "S8")
def test_a_wish_for_every_task_is_kept_and_a_command_for_this_one_is_not() -> None:
    assert [text for text in WISHES.split("\n") if text and _signals(text) != ["preference"]] == []
    assert {text: found for text in TASKS.split("\n") if (found := _signals(text))} == {}


@pytest.mark.spec("O1", "S7")
@pytest.mark.parametrize(
    ("said", "rule", "why"),
    [
        ("Use pnpm instead of npm — the lockfile breaks otherwise.", "Use pnpm instead of npm", "the lockfile breaks otherwise."),
        ("Don't mock the database in tests, it hid a bug.", "Don't mock the database in tests", "it hid a bug."),
        ("Write dates as ISO 8601, otherwise our importer breaks.", "Write dates as ISO 8601", "otherwise our importer breaks."),
        ("Never squash my commits, since I bisect a lot.", "Never squash my commits", "I bisect a lot."),
        (
            "Verwende pnpm statt npm, weil sonst das Lockfile kaputtgeht.",
            "Verwende pnpm statt npm",
            "sonst das Lockfile kaputtgeht.",
        ),
        ("不要在测试里模拟数据库，因为上次掩盖了一个错误。", "不要在测试里模拟数据库", "上次掩盖了一个错误。"),
        ("变量名不要用拼音，否则国外同事看不懂。", "变量名不要用拼音", "否则国外同事看不懂。"),
        (
            "テストではモックを使わないでください。以前バグを見逃したからです。",
            "テストではモックを使わないでください",
            "以前バグを見逃した",
        ),
        ("테스트에서 모킹하지 마세요. 예전에 버그를 놓쳤거든요.", "테스트에서 모킹하지 마세요", "예전에 버그를 놓쳤거든요."),
    ],
)
def test_the_reason_of_a_wish_is_kept_as_its_why(said: str, rule: str, why: str) -> None:
    [plan] = plan_memories(ASKED, [UserText(said, "")])
    assert (plan.note.type, plan.note.rule.rstrip(".。"), plan.note.why) == ("feedback", rule, why)


@pytest.mark.spec("S7")
def test_a_plan_has_its_date_and_a_readable_name() -> None:
    [plan] = plan_memories(ASKED, [UserText("We're freezing merges on Thursday because of the audit.", "")])
    assert (plan.note.type, plan.note.name) == ("project", "freezing-merges-thursday")
    assert plan.note.description == "We're freezing merges on Thursday (2026-05-07)"
    [role] = plan_memories(ASKED, [UserText("I'm a data engineer and I don't know SQL.", "")])
    assert role.note.name == "data-engineer-not-know-sql"
