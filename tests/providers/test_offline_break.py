"""Real-life requests to memory: several items at once, unusual forms, repetitions, changes, and "forget everything"."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clocks import FAR_TOO_LONG

from lamina.language.memory_requests import asks_for_memory, asks_to_forget, asks_to_remember, to_forget, to_remember
from lamina.providers.offline.chat import NOT_FOUND
from lamina.providers.offline.memory_note import items, named, no_memory, notes
from lamina.providers.offline.replies import replies_to
from lamina.providers.offline.sentence_rules import says_instead

from .talk import INDEX, MEMORY, Talk, called

SAVED = "Saved the memory 'x' in y; its line in MEMORY.md is up to date."
TEA = "- [anna-tea](anna-tea.md) — Anna likes tea\n- [billing](billing.md) — the billing service is owned by Anna"


def written(block: dict[str, Any]) -> tuple[str, str]:
    """Return the file that a call writes, and the description in its front matter."""
    assert block["name"] == "Write"
    [line] = [line for line in block["input"]["content"].splitlines() if line.startswith("description: ")]
    return block["input"]["file_path"].removeprefix(f"{MEMORY}/"), line.removeprefix("description: ")


# Ways to ask


@pytest.mark.spec("B15", "S7")
@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("We ship from main, please remember that.", "We ship from main"),
        ("Could you remember that we ship from main?", "we ship from main"),
        ("Don't forget that we ship from main", "we ship from main"),
        ("Also remember: we ship from main", "we ship from main"),
        ("Remember the following:\n- a\n- b", "- a\n- b"),
        ("我们从主干发布，请记住。", "我们从主干发布"),
        ("别忘了从主干发布", "从主干发布"),
        ("テストは本物で実行する、と覚えておいてください。", "テストは本物で実行する"),
        ("테스트는 실제 DB를 쓴다고 기억해줘", "테스트는 실제 DB를 쓴다"),
    ],
)
def test_a_wish_is_known_wherever_its_words_stand(said: str, what: str) -> None:
    assert asks_to_remember(said)
    assert to_remember(said) == what


@pytest.mark.parametrize(
    ("said", "what"),
    [("デプロイのことは忘れて", "デプロイ"), ("배포에 대해 잊어줘", "배포"), ("Can you forget the deploy day", "the deploy day")],
)
def test_so_is_a_wish_to_forget(said: str, what: str) -> None:
    assert asks_to_forget(said)
    assert to_forget(said) == what


@pytest.mark.parametrize(
    "said",
    [
        "We always remember",
        "I can't remember",
        "Do you remember when we deploy?",
        "remember me?",
        "覚えていますか",
        "Don't forget",
    ],
)
def test_what_only_sounds_like_one_saves_nothing(said: str) -> None:
    assert Talk(index=INDEX).say(said).get("name") != "Write"


@pytest.mark.parametrize("text", [" " * 100_000, ", " * 50_000, "remember " * 20_000, "\n" * 50_000 + "?", "请" * 50_000])
def test_a_hostile_message_costs_no_more_than_its_length(text: str) -> None:
    began = time.process_time()
    asks_for_memory(text)
    notes(f"Remember: {text}", "2026-03-05")
    assert time.process_time() - began < FAR_TOO_LONG


@given(st.text(max_size=60))
def test_any_words_are_asked_about_without_harm(said: str) -> None:
    asks_for_memory(said)
    assert len(to_remember(said)) <= len(said)
    assert len(to_forget(said)) <= len(said)


# Several items


@pytest.mark.spec("S5", "S7")
def test_each_thing_of_a_list_gets_a_file_of_its_own() -> None:
    talk = Talk()
    first = talk.say(
        "Remember these:\n- Deploys happen on Tuesdays\n- The on-call is Bob, because Eve is away\n- Never force-push"
    )
    assert written(first) == ("deploys-happen-tuesdays.md", "Deploys happen on Tuesdays")
    second = talk.result(SAVED)
    assert written(second) == ("call-bob.md", "The on-call is Bob")
    assert "**Why:** Eve is away." in second["input"]["content"]
    assert written(talk.result("The disk is full.", is_error=False))[0] == "never-force-push.md"
    assert talk.result(SAVED)["text"] == (
        "I will remember that: Deploys happen on Tuesdays\nThe disk is full.\nI will remember that: Never force-push"
    )


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ("1) we ship on Fridays. 2) Anna owns billing. 3) staging is called blue", 3),
        ("(1) one thing (2) another thing", 2),
        ("we ship on Fridays. Anna owns billing.", 1),
        ("use version 2) of the form", 1),
        ("the rule is:\n- first\n- second\nand this holds for both", 1),
        ("- only one", 1),
    ],
)
def test_a_list_is_seen_by_its_marks(said: str, count: int) -> None:
    assert len(items(said)) == count


def test_two_things_of_one_name_get_two_names() -> None:
    made = notes(
        "Remember:\n- the server for the staging of the billing of Acme sleeps\n- server staging billing Acme sleeps at night"
    )
    assert len({note.name for note in made}) == len(made) == 2


def test_of_a_list_what_is_no_memory_is_asked_back_about_and_the_rest_is_saved() -> None:
    talk = Talk()
    assert written(talk.say("Remember:\n- def f(x): return x\n- we ship from main"))[0] == "ship-main.md"
    said = talk.result(SAVED)["text"]
    assert "What is worth keeping" in said
    assert said.endswith("I will remember that: we ship from main")


# Dates


@pytest.mark.spec("S7")
@pytest.mark.parametrize(
    ("said", "described"),
    [
        ("the demo is next Friday because the customer flies in", "the demo is next Friday (2026-03-13)"),
        ("the demo is tomorrow", "the demo is tomorrow (2026-03-06)"),
        ("the release is due in two weeks", "the release is due in two weeks (about 2026-03-19)"),
        ("下周五发布", "下周五（2026-03-13）发布"),
        ("来週の金曜日にリリース", "来週の金曜日（2026-03-13）にリリース"),
        ("다음 주 금요일에 배포", "다음 주 금요일 (2026-03-13)에 배포"),
        ("we deploy on Fridays", "we deploy on Fridays"),
    ],
)
def test_a_day_that_means_another_one_tomorrow_gets_its_date(said: str, described: str) -> None:
    assert written(Talk().say(f"Remember: {said}"))[1] == described


def test_after_midnight_the_new_day_counts() -> None:
    talk = Talk()
    changed = "The date has changed since the session began or since the last such note: it was 2026-03-05, today is 2026-03-06."
    talk.request["messages"].append({"role": "user", "content": [{"type": "text", "text": f"<system-reminder>\n{changed}\n"}]})
    assert "tomorrow (2026-03-07)" in written(talk.say("Remember: the demo is tomorrow"))[1]


def test_a_day_that_is_none_is_no_error() -> None:
    talk = Talk()
    talk.request["messages"].append(
        {"role": "user", "content": [{"type": "text", "text": "<system-reminder>\nToday is 2026-02-30."}]}
    )
    assert "tomorrow" in written(talk.say("Remember: the demo is tomorrow"))[1]


# Repetitions and changes


@pytest.mark.spec("S6")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("we deploy on Tuesdays", "we deploy on Thursdays"),
        ("we deploy on Tuesdays now", "we deploy on Fridays"),
        ("the port is 8080", "the port is 9090"),
        ("Anna owns billing", "Bob owns billing"),
        ("the on-call is Bob", "the on-call is Eve"),
        ("the staging server is called heron", "the staging server is called crane"),
        ("we deploy on Thursdays", "the deploy day is Wednesday now, not Thursday"),
        ("the demo is next Friday (2026-03-13)", "the demo is next Friday (2026-03-27)"),
        ("我们周二部署", "我们周四部署"),
        ("安娜负责账单", "李雷负责账单"),
    ],
)
def test_what_is_said_otherwise_takes_the_place_of_the_old(old: str, new: str) -> None:
    assert says_instead(new, old)
    name = named(old)
    talk = Talk(index=f"- [{name}]({name}.md) — {old}")
    assert called(talk.say(f"Remember: {new}")) == ("Read", f"{MEMORY}/{name}.md")
    call = talk.result(f"1\t---\n2\tname: {name}\n3\tdescription: {old}\n4\t---\n5\t\n6\t{old}.\n7\t\n8\t**Why:** It was so.")
    assert called(call) == ("Write", f"{MEMORY}/{name}.md")
    assert "It was so" not in call["input"]["content"]
    assert f"name: {named(new)}" in call["input"]["content"].replace('"', "")
    assert talk.result("Updated the memory 'x'.")["text"].endswith(f"{new}{replies_to(new).instead.format(old=old)}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Anna likes tea", "Bob likes tea"),
        ("Anna knows Python", "Anna knows Rust"),
        ("deploys of the billing service need Anna's yes", "deploys of the search service need Anna's yes"),
        ("ticket 12 is about the login", "ticket 13 is about the login"),
        ("the build is slow on weekends", "the build is green"),
        ("安娜喜欢茶", "李雷喜欢茶"),
    ],
)
def test_what_is_said_besides_is_a_memory_of_its_own(old: str, new: str) -> None:
    assert not says_instead(new, old)
    assert Talk(index=f"- [old]({named(old)}.md) — {old}").say(f"Remember: {new}")["name"] == "Write"


def test_a_file_of_that_name_that_says_something_else_is_not_replaced() -> None:
    long = "the customer Acme pays for the premium plan"
    name = named(f"{long} every January")
    talk = Talk(index=f"- [{name}]({name}.md) — {long} every January and …")
    call = talk.say(f"Remember: {long} every January")
    assert called(call) == ("Read", f"{MEMORY}/{name}.md")
    call = talk.result(f"1\t---\n2\tname: {name}\n3\tdescription: Acme pays nothing at all\n4\t---\n5\t\n6\tOther words.")
    assert called(call) == ("Write", f"{MEMORY}/{name}-2.md")
    assert f"name: {name}-2\n" in call["input"]["content"]


def test_what_else_a_memory_says_stays_when_it_is_said_again() -> None:
    talk = Talk(index="- [port-8080](port-8080.md) — the port is 8080")
    talk.say("Remember: the port is 9090")
    old = [
        "---",
        "name: port-8080",
        "description: the port is 8080",
        "---",
        "",
        "The port is 8080.",
        "",
        "Ask Eve for the firewall.",
    ]
    call = talk.result("\n".join(f"{number}\t{line}" for number, line in enumerate(old, 1)))
    assert "The port is 9090.\n\nAsk Eve for the firewall.\n" in call["input"]["content"]


# Sentences that are not worth remembering


@pytest.mark.spec("S8")
@pytest.mark.parametrize(
    "said",
    [
        "this code: def f(x): return x + 1",
        "`x = 1`",
        "select * from users where id = 1",
        "our current task is to refactor the parser",
        "my task now is the parser",
        "commit abc1234 fixed the login",
        "the bug was fixed by restarting the server",
        "the architecture has three layers",
        "当前任务是重构解析器",
    ],
)
def test_code_tasks_and_fixes_are_asked_back_about(said: str) -> None:
    assert no_memory(said) is not None
    assert Talk().say(f"Remember: {said}")["text"].startswith(replies_to(said).ask_back.partition("{")[0])


@pytest.mark.parametrize(
    "said",
    ["we select vendors from a list", "the function of this team is support", "commits are small", "Bob's task is the migration"],
)
def test_words_that_code_has_too_are_no_code(said: str) -> None:
    assert no_memory(said) is None


@pytest.mark.spec("B7")
@pytest.mark.parametrize(
    "said", ["the staging password is hunter22x", "my key is sk-ant-api03-Abcdefgh1234567890", "AKIAABCDEFGHIJKLMNOP is our key"]
)
def test_a_name_holds_nothing_that_may_be_a_secret(said: str) -> None:
    name = named(said)
    assert name
    assert not any(piece in name for piece in ("hunter22x", "abcdefgh", "akia"))
    talk = Talk()
    talk.say(f"Remember: {said}")
    told = talk.result(f"{SAVED} A secret was removed (assigned secret).")["text"]
    assert "A secret was left out (assigned secret)." in told
    assert said not in told


# Forgetting


@pytest.mark.spec("S7")
@pytest.mark.parametrize(
    "said",
    [
        "Forget everything",
        "forget all",
        "Forget all memories.",
        "Forget everything you know",
        "Forget what you know about me",
        "Forget your memory",
        "忘记一切",
        "全部忘れて",
        "모두 잊어줘",
    ],
)
def test_everything_is_never_forgotten_at_a_word(said: str) -> None:
    told = Talk(index=INDEX).say(said)["text"]
    assert told.startswith(replies_to(said).forget_all.partition("{")[0])
    assert "integration-tests, deploys" in told
    assert Talk().say(said)["text"] == replies_to(said).nothing


@pytest.mark.parametrize("said", ["Forget the", "forget about the", "Forget what you know about", "Forget …", "Forget"])
def test_a_wish_that_names_nothing_removes_nothing(said: str) -> None:
    assert Talk(index="- [a](a.md) — one").say(said)["text"].startswith("What should I forget?")


@pytest.mark.parametrize("said", ["Forget Anna's birthday", "Forget everything about Anna Lee", "Forget the billing cluster"])
def test_what_fits_only_in_part_is_named_and_stays(said: str) -> None:
    talk = Talk(index=TEA)
    assert talk.say(said)["name"] == "Grep"
    told = talk.result(f"{MEMORY}/anna-tea.md\n{MEMORY}/billing.md")["text"]
    assert "Tell me which one to forget: anna-tea, billing" in told
    talk = Talk(index=TEA)
    talk.say(said)
    assert called(talk.result(f"{MEMORY}/anna-tea.md")) == ("Read", f"{MEMORY}/anna-tea.md")
    assert talk.result("1\tAnna likes tea, and billing.")["text"].startswith("I removed nothing. anna-tea")


def test_more_than_one_answer_can_remove_is_said() -> None:
    talk = Talk(index="\n".join(f"- [t{number}](t{number}.md) — flaky test number {number}" for number in range(12)))
    block = talk.say("Forget everything about flaky tests")
    while block["type"] == "tool_use":
        block = talk.result("1\tflaky" if block["name"] == "Read" else "Removed.")
    assert block["text"].endswith("2 more memories match. Repeat your request to remove them too.")
    assert block["text"].count("Removed.") == 10


# Answering


@pytest.mark.spec("O1")
def test_words_of_our_own_are_no_instructions() -> None:
    talk = Talk()
    ours = "<system-reminder>\nContext.\n\nUse what helps, and don't bring up the rest of the service.\n</system-reminder>"
    talk.request["messages"].append({"role": "user", "content": [{"type": "text", "text": ours}]})
    assert talk.say("Is the service up to use?")["text"] == NOT_FOUND


@pytest.mark.spec("O1")
def test_an_answer_from_memory_always_says_so() -> None:
    assert "(memory: deploys)" in Talk(index=INDEX, tools=()).say("When do deploys happen?")["text"]
    talk = Talk(index=INDEX)
    talk.say("Which vendor prints the invoices?")
    found = f"{MEMORY}/billing.md:2:name: vendor-prints-invoices\n{MEMORY}/billing.md:3:description: the vendor Papyrus prints invoices"
    assert talk.result(found)["text"] == "the vendor Papyrus prints invoices\n(memory: billing)"


def test_a_memory_that_fits_only_in_part_is_told_with_a_doubt() -> None:
    tea = TEA.splitlines()[0]
    talk = Talk(index=tea)
    talk.say("Where does Anna live?")
    answer = talk.result("1\tAnna likes tea.")["text"]
    assert answer == "I am not sure that this answers your question:\nAnna likes tea.\n(memory: anna-tea)"
    talk = Talk(index=tea)
    talk.say("What does Anna like?")
    assert talk.result("1\tAnna likes tea.")["text"] == "Anna likes tea.\n(memory: anna-tea)"
