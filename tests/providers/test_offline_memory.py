"""Memory without a model: notes from a sentence, and the calls that save, find and remove them."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.fence import Fenced, fence, reminder
from lamina.core.front_matter import read_front_matter
from lamina.providers.offline.chat import NOT_FOUND, answer
from lamina.providers.offline.memory_note import no_memory, noted
from lamina.providers.offline.replies import replies_to

from .talk import INDEX, MEMORY, Talk, called, text

SAID = "Remember: integration tests run against a real database, because mocks once hid a broken migration"


@pytest.mark.spec("S7", "O1")
def test_a_wish_to_remember_is_a_file_with_front_matter() -> None:
    talk = Talk()
    call = talk.say(SAID)
    assert called(call) == ("Write", f"{MEMORY}/integration-tests-real-database.md")
    assert call["input"]["content"] == (
        "---\nname: integration-tests-real-database\ndescription: integration tests run against a real database\ntype: feedback\n"
        "---\n\nIntegration tests run against a real database.\n\n**Why:** Mocks once hid a broken migration.\n"
    )
    done = talk.result("Saved the memory 'integration-tests-real-database' in x; its line in MEMORY.md is up to date.")
    assert done["text"] == "I will remember that: integration tests run against a real database"


@pytest.mark.spec("S6")
def test_the_same_again_updates_and_keeps_the_reason() -> None:
    talk = Talk(index=INDEX)
    assert called(talk.say("Please remember that integration tests run against the real database")) == (
        "Read",
        f"{MEMORY}/integration-tests.md",
    )
    there = "1\t---\n2\tname: integration-tests\n3\tdescription: x\n4\t---\n5\t\n6\tThey do.\n7\t\n8\t**Why:** Mocks hid it."
    call = talk.result(there)
    assert called(call) == ("Write", f"{MEMORY}/integration-tests.md")
    assert "name: integration-tests\n" in call["input"]["content"]
    assert "**Why:** Mocks hid it." in call["input"]["content"]


def test_a_file_that_is_there_after_all_is_read_first() -> None:
    talk = Talk()
    talk.say(SAID)
    call = talk.result("x exists but has not been read in this conversation. Read it first, then try again.", is_error=True)
    assert call["name"] == "Read"
    assert talk.result("1\told")["name"] == "Write"
    assert talk.result("The disk is full.", is_error=True)["text"] == "Not saved: The disk is full."


def test_what_waits_for_a_yes_is_told_to_the_user_and_not_to_a_model() -> None:
    talk = Talk()
    talk.say(SAID)
    said = "x is not changed yet: the change waits for the user's approval. Tell them: lamina inbox accept 12"
    assert talk.result(said)["text"] == "That waits for your approval. Run `lamina inbox accept 12` to accept it."


@pytest.mark.parametrize(
    ("talk", "why"), [(Talk(memory=None), "there is no memory"), (Talk(tools=("Read",)), "I have no Write tool")]
)
def test_without_memory_it_says_that_it_is_kept_here_only(talk: Talk, why: str) -> None:
    said = talk.say(SAID)["text"]
    assert said.startswith("Noted in this conversation only")
    assert why in said
    assert "real database" in talk.say("What do integration tests run against?")["text"]


@pytest.mark.spec("S8")
@pytest.mark.parametrize(
    "said",
    [
        "Remember: ```def f(): return 1```",
        "Remember: the parser is in src/lamina/parser.py",
        "Remember: we are currently working on the login bug",
        "记住：我们正在修复登录问题",
    ],
)
def test_what_is_no_memory_is_asked_back_about(said: str) -> None:
    assert Talk().say(said)["text"].startswith(replies_to(said).ask_back.partition("{")[0])


@pytest.mark.spec("S8")
@pytest.mark.parametrize("said", ["Remember:", "Remember: 🎉", 'Remember: "', "记住：😀😀"])
def test_without_words_it_asks_what_to_remember(said: str) -> None:
    assert Talk().say(said)["text"] == replies_to(said).remember_what


@pytest.mark.parametrize(
    "said",
    [
        "integration tests need a real database",
        "the tracker is at https://tracker.example/board/index.html",
        "never touch src/vendor/x.py, because it is generated elsewhere",
        "and/or is fine in prose",
        "version 1.2/1.3 is supported",
    ],
)
def test_other_things_are_not_taken_for_code(said: str) -> None:
    assert no_memory(said) is None


@pytest.mark.spec("S7")
@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("I am a physicist and new to Rust", "user"),
        ("我是后端工程师", "user"),
        ("never mock the database", "feedback"),
        ("we prefer small commits", "feedback"),
        ("不要使用快照测试", "feedback"),
        ("the dashboard is at https://grafana.example/d/1", "reference"),
        ("pipeline bugs are tracked in INGEST", "reference"),
        ("Ana leads the migration to the new billing", "project"),
        ("发布由安娜负责", "project"),
    ],
)
def test_the_type_follows_simple_rules(said: str, kind: str) -> None:
    assert noted(f"Remember: {said}").type == kind


@pytest.mark.parametrize(
    ("said", "rule", "why"),
    [
        ("Deploys wait for Tuesday because people are on call", "Deploys wait for Tuesday", "people are on call"),
        ("Because the linter is slow, run it last", "run it last", "the linter is slow"),
        ("部署在周二，因为有人值班", "部署在周二", "有人值班"),
        ("因为有人值班，所以周二部署", "周二部署", "有人值班"),
        ("Deploys wait for Tuesday", "Deploys wait for Tuesday", ""),
    ],
)
def test_the_reason_is_kept_apart(said: str, rule: str, why: str) -> None:
    note = noted(said)
    assert (note.rule, note.why) == (rule, why)


@pytest.mark.spec("S7")
def test_a_day_that_means_another_one_tomorrow_is_dated() -> None:
    call = Talk().say("Remember: merges are frozen from Thursday")
    assert "Said on 2026-03-05." in call["input"]["content"]
    assert "Said on" not in Talk().say("Remember: merges go through review")["input"]["content"]


@given(st.text(max_size=80))
def test_any_words_make_a_file_that_can_be_read(said: str) -> None:
    note = noted(f"Remember: {said}")
    assert note.name
    assert "/" not in note.name
    matter = read_front_matter(note.file())
    assert matter.fields["name"] == note.name
    assert matter.fields["type"] == note.type


# Forgetting


@pytest.mark.spec("S7")
@pytest.mark.parametrize(
    ("said", "file"),
    [
        ("Forget what you know about the integration tests", "integration-tests.md"),
        ("forget integration-tests", "integration-tests.md"),
        ("Please forget everything about deploys.", "deploys.md"),
        ("忘记关于部署的一切", "部署 日.md"),
        ("忘掉部署", "部署 日.md"),
    ],
)
def test_what_is_to_be_forgotten_is_read_and_written_empty(said: str, file: str) -> None:
    talk = Talk(index=INDEX)
    path = posixpath.join(MEMORY, file)
    assert called(talk.say(said)) == ("Read", path)
    call = talk.result("1\ttext")
    assert called(call) == ("Write", path)
    assert call["input"]["content"] == ""
    assert talk.result("Removed the memory 'x'.")["text"] == replies_to(said).removed.format(name=file.removesuffix(".md"))


def test_a_subject_takes_all_its_memories() -> None:
    talk = Talk(index="- [a](a.md) — flaky tests are retried\n- [b](b.md) — tests that are flaky are marked\n- [c](c.md) — lunch")
    assert called(talk.say("Forget all about flaky tests"))[1].endswith("/a.md")
    talk.result("1\tx")
    assert called(talk.result("Removed a."))[1].endswith("/b.md")
    talk.result("b.md does not exist.", is_error=True)
    assert talk.request["messages"][-1]["content"][0]["text"] == "Removed a.\nb.md does not exist."


def test_what_is_not_in_the_index_is_searched_for() -> None:
    talk = Talk(index=INDEX)
    call = talk.say("Forget the kubernetes cluster")
    assert call["name"] == "Grep"
    assert call["input"]["path"] == MEMORY
    assert called(talk.result(f"{MEMORY}/MEMORY.md\n{MEMORY}/old.md")) == ("Read", f"{MEMORY}/old.md")
    assert called(talk.result("1\tThe kubernetes cluster is old.")) == ("Write", f"{MEMORY}/old.md")
    talk = Talk(index=INDEX)
    talk.say("Forget the kubernetes cluster")
    assert "which one to forget: a, b" in talk.result(f"{MEMORY}/a.md\n{MEMORY}/b.md")["text"]
    talk = Talk(index=INDEX)
    talk.say("Forget the kubernetes cluster")
    assert "There is no memory about kubernetes cluster" in talk.result("No files match.")["text"]


def test_what_was_saved_in_this_conversation_can_be_forgotten_in_it() -> None:
    talk = Talk()
    talk.say(SAID)
    talk.result("Saved the memory.")
    assert called(talk.say("Forget what you know about integration tests")) == (
        "Read",
        f"{MEMORY}/integration-tests-real-database.md",
    )
    talk.result("1\tx")
    talk.result("Removed.")
    assert talk.say("What do integration tests run against?")["text"] == NOT_FOUND


# Answering


@pytest.mark.spec("S9")
def test_a_question_is_answered_from_the_file_behind_the_line() -> None:
    talk = Talk(index=INDEX)
    assert called(talk.say("What do our integration tests run against?")) == ("Read", f"{MEMORY}/integration-tests.md")
    said = talk.result("1\t---\n2\tname: integration-tests\n3\t---\n4\t\n5\tA real database.\n6\t\n7\t**Why:** Mocks.")["text"]
    assert said == "A real database.\n\n**Why:** Mocks.\n(memory: integration-tests)"


def test_a_memory_that_came_with_the_message_answers_where_no_line_of_the_index_surely_does() -> None:
    talk = Talk(index="- [testing-db](testing-db.md) — tests use a real database\n- [deploys](deploys.md) — on Tuesdays")
    came = f"Contents of {MEMORY}/port-8123.md (a memory):\n{fence('recalled-memory', 'Port 8123 is for tests.')}"
    talk.request["messages"].append(
        {"role": "user", "content": [text("Which port is for tests?"), text(reminder([Fenced(came)]))]}
    )
    [said] = answer(talk.request)
    assert said == text("Port 8123 is for tests.\n(memory: port-8123)")


def test_a_file_that_cannot_be_read_leaves_the_line() -> None:
    talk = Talk(index=INDEX)
    talk.say("When do deploys happen?")
    assert "deploys happen on Tuesdays" in talk.result("Not allowed.", is_error=True)["text"]
    assert "Tuesdays" in Talk(index=INDEX, tools=()).say("When do deploys happen?")["text"]


def test_what_only_a_body_says_is_searched_for() -> None:
    talk = Talk(index=INDEX)
    call = talk.say("Which vendor prints the invoices?")
    assert (call["name"], call["input"]["path"]) == ("Grep", MEMORY)
    found = f"{MEMORY}/MEMORY.md:1:- invoices\n{MEMORY}/billing.md:7:The vendor Papyrus prints invoices."
    assert talk.result(found)["text"] == "The vendor Papyrus prints invoices.\n(memory: billing)"
    talk = Talk(index=INDEX)
    talk.say("Which vendor prints the invoices?")
    assert talk.result("No lines match.")["text"] == NOT_FOUND


@pytest.mark.spec("S9")
@pytest.mark.parametrize("said", ["Ignore memory. When do deploys happen?", "忽略记忆。什么时候部署？"])
def test_told_to_ignore_memory_it_is_as_if_there_were_none(said: str) -> None:
    assert Talk(index=INDEX).say(said)["text"] == replies_to(said).not_found


def test_asked_what_it_remembers_it_lists_the_memories_of_now() -> None:
    asked = "What do you remember?"
    assert "- deploys: deploys happen on Tuesdays" in Talk(index=INDEX, tools=()).say(asked)["text"]
    talk = Talk(index=INDEX)
    call = talk.say(asked)
    assert (call["name"], call["input"]["path"]) == ("Grep", MEMORY)
    assert talk.result(f"{MEMORY}/tabs.md:3:description: I prefer tabs")["text"] == "I remember:\n- tabs: I prefer tabs"
    talk = Talk()
    talk.say(asked)
    assert talk.result("No matches.")["text"] == "There are no memories here yet."


@pytest.mark.spec("O1")
@pytest.mark.parametrize(
    "asked",
    [
        "What do you know about me so far?",
        "Was weißt du über mich?",
        "Woran erinnerst du dich?",
        "Que sais-tu de moi ?",
        "¿Qué sabes sobre mí?",
        "你知道我什么？",
        "你对我了解多少？",
        "你都记得哪些事？",
        "私について何を知っていますか?",
        "何を覚えていますか?",
        "저에 대해 뭘 알고 있나요?",
    ],
)
def test_it_lists_the_memories_in_every_language(asked: str) -> None:
    said = Talk(index=INDEX, tools=()).say(asked)["text"]
    assert said.startswith(f"{replies_to(asked).remembered}\n- ")
    assert "\n- deploys: deploys happen on Tuesdays\n" in said


@pytest.mark.spec("O1")
@pytest.mark.parametrize("asked", ["你知道部署在什么时候吗？", "Was weißt du über Deploys?", "What do you know about deploys?"])
def test_a_question_about_a_subject_lists_no_others(asked: str) -> None:
    found = Talk(index=INDEX).say(asked)
    assert replies_to(asked).remembered not in str(found)


@pytest.mark.spec("O1")
@pytest.mark.parametrize(
    "said", ["Forget that", "Vergiss das", "Oublie cela", "Olvida eso", "忘掉这个", "それを忘れて", "그거 잊어 줘"]
)
def test_a_request_to_forget_that_names_nothing_is_asked_back(said: str) -> None:
    assert Talk(index=INDEX).say(said)["text"] == replies_to(said).forget_what


@pytest.mark.spec("O1")
@pytest.mark.parametrize(
    "said", ["Forget everything", "Vergiss alles", "Vergiss bitte alles!", "Oublie tout", "Olvida todo", "忘掉一切"]
)
def test_a_request_to_forget_everything_removes_nothing_in_every_language(said: str) -> None:
    assert Talk(index=INDEX).say(said)["text"].startswith(replies_to(said).forget_all.partition("{")[0])
