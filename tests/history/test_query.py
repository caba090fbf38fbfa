"""One search over the memories and turns of all agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lamina
from lamina.history.query import NO_WORDS, query_words

from .agents import CLAUDE, CODEX, PI, claude_answer, claude_user, codex_message, codex_rows, said, write
from .conftest import Agents


def ask(agents: Agents, query: str, k: int = 5, **options: Any) -> list[lamina.SearchResult]:
    return lamina.search(query, agents.project, k, **options)


@pytest.mark.spec("S10", "U3")
def test_a_question_finds_the_turn_that_answers_it_in_any_agents_sessions(agents: Agents) -> None:
    [answer, *_] = [one for one in ask(agents, "why did we drop redis") if one.kind == "turn"]
    assert (answer.origin, answer.session_id, answer.turn) == ("claude-code", CLAUDE, 1)
    [answer, *_] = ask(agents, "which script is called to generate it?")
    assert (answer.origin, answer.text) == ("codex", "A script called tablegen.")
    assert answer.link == f"lamina sessions show {CODEX} --turn {answer.turn}"
    [answer, *_] = ask(agents, "what is the accent colour of the theme?")
    assert (answer.origin, answer.session_id) == ("pi", PI)


@pytest.mark.spec("S10")
def test_a_result_says_who_said_it_when_and_what_surrounds_it(agents: Agents) -> None:
    [found] = ask(agents, "lost messages on restart", 1)
    assert (found.speaker, found.time) == ("assistant", "2026-03-02T10:00:05.000Z")
    assert found.text == "It lost messages on restart, so the queue uses Postgres now."
    assert (found.before, found.after) == ("I will look.", "Rename the queue module.")
    assert (found.title, found.project) == ("Queue without redis", str(agents.project))


def test_memories_are_ranked_with_the_turns(agents: Agents) -> None:
    [found] = ask(agents, "does the queue run on postgres?", 1)
    assert (found.kind, found.origin, found.title) == ("memory", "claude-code", "queue")
    assert found.link == found.path
    memory = lamina.Memory.open(agents.project)
    memory.save("accent", type="project", description="The accent colour must stay teal", body="Decided by design.")
    memory.close()
    [found, *rest] = ask(agents, "which accent colour")
    assert (found.kind, found.origin, found.title) == ("memory", "lamina", "accent")
    assert {one.origin for one in rest} == {"pi"}


def test_a_memory_directory_of_the_settings_is_searched(agents: Agents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_MEMORY_DIR", str(tmp_path / "elsewhere" / "memory"))
    with lamina.Memory.open(agents.project) as memory:
        memory.save("zebra", type="project", description="Zebra crossing", body="Stripes.")
    assert [one.title for one in ask(agents, "zebra")] == ["zebra"]


def test_the_message_before_is_part_of_the_document(agents: Agents) -> None:
    rows = [claude_user(1, "How often is the zeppelin painted?", agents.project), *claude_answer(1, said("Every second spring."))]
    write(agents.claude, rows)
    assert [one.text for one in ask(agents, "zeppelin")] == ["How often is the zeppelin painted?", "Every second spring."]


def test_an_answer_after_many_steps_is_found_by_its_question(agents: Agents) -> None:
    steps = [row for number in range(2, 6) for row in claude_answer(number, said(f"Step {number} of the work."))]
    rows = [claude_user(1, "How often is the zeppelin painted?", agents.project), *claude_answer(1, said("I will look."))]
    write(agents.claude, [*rows, *steps, *claude_answer(6, said("Every second spring."))])
    assert [one.text for one in ask(agents, "zeppelin")] == ["How often is the zeppelin painted?", "Every second spring."]
    assert ask(agents, "zeppelin")[1].before == "How often is the zeppelin painted?"
    assert [one.text for one in ask(agents, "zeppelin step 3")][:1] == ["Step 3 of the work."]


@pytest.mark.parametrize("exact", [False, True])
def test_a_link_opens_the_right_one_of_two_sessions_with_the_same_id(agents: Agents, exact: bool) -> None:
    twin = agents.codex.with_name(f"rollout-2026-04-02T08-00-00-{CLAUDE}.jsonl")
    write(twin, [*codex_rows(agents.project, CLAUDE)[:4], codex_message("user", "The walrus sleeps.", 5)])
    [found] = ask(agents, "walrus", exact=exact)
    assert (found.session_id, found.link) == (CLAUDE, f"lamina sessions show {twin} --turn 1")
    [found] = ask(agents, "lost messages", 1, exact=exact)
    assert found.link == f"lamina sessions show {agents.claude} --turn 1"


def test_a_text_in_several_sessions_appears_once(agents: Agents) -> None:
    (agents.claude.parent / "copy.jsonl").write_bytes(agents.claude.read_bytes())
    texts = [one.text for one in ask(agents, "queue redis postgres", 20)]
    assert len(texts) == len(set(texts))


def test_the_search_stays_in_the_project_unless_asked(agents: Agents, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write(agents.claude.parent.parent / "-other" / "x.jsonl", [claude_user(1, "The walrus sleeps.", other)])
    assert ask(agents, "walrus") == []
    assert [one.text for one in ask(agents, "walrus", everywhere=True)] == ["The walrus sleeps."]
    assert [one.text for one in lamina.search("walrus", other)] == ["The walrus sleeps."]


@pytest.mark.spec("B15")
@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("我们决定用数据库代替缓存。", "为什么不用缓存?"),
        ("キューはデータベースに置き換えた。", "データベース"),
        ("Der Käfer läuft.", "kafer"),
    ],
)
def test_other_languages_are_found(agents: Agents, text: str, question: str) -> None:
    write(agents.claude, [claude_user(1, text, agents.project)])
    assert [one.text for one in ask(agents, question)] == [text]


def test_the_index_follows_new_messages(agents: Agents) -> None:
    assert ask(agents, "ostrich") == []
    with open(agents.claude, "ab") as file:
        file.write(write(agents.project / "row", [claude_user(9, "An ostrich ran by.", agents.project)]).read_bytes())
    assert [one.text for one in ask(agents, "ostrich")] == ["An ostrich ran by."]


@pytest.mark.spec("S10")
def test_exact_finds_literal_text_also_in_tool_output_and_memories(agents: Agents) -> None:
    assert [(one.kind, one.origin) for one in ask(agents, "tablegen", exact=True)] == [("memory", "codex"), ("turn", "codex")]
    [stored] = ask(agents, "error e474", exact=True)
    assert (stored.speaker, stored.session_id) == ("stored result toolu_1.txt", CLAUDE)
    assert ask(agents, "accent colour does the", exact=True)[0].turn == 1
    assert ask(agents, "colour the accent", exact=True) == []


@pytest.mark.parametrize("query", ["🦓", "what is it and why do you", "???", "\x00", "'\" OR * NEAR("])
def test_a_query_without_words_gives_one_sentence(agents: Agents, query: str) -> None:
    told: list[str] = []
    assert lamina.search(query, agents.project, notices=told) == [] or query_words(query)
    assert told == ([] if query_words(query) else [NO_WORDS])


def test_a_query_of_a_megabyte_is_bounded(agents: Agents) -> None:
    found = ask(agents, "redis queue " + "filler words here " * 60_000 + " postgres restart")
    assert found[0].session_id == CLAUDE or found[0].kind == "memory"
    assert len(query_words("word%d " * 9 % tuple(range(9)) * 100_000)) <= 48
    assert ask(agents, "x" * 1_000_000, exact=True) == []
    assert ask(agents, "redis", 0) == []


def test_sources_that_are_off_are_not_searched(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_SOURCES", "0")
    assert ask(agents, "redis queue parser accent") == []
