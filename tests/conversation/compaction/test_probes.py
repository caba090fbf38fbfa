"""Which facts are looked for after a compaction, and what becomes of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.conversation.compaction.probes import MOST, MOST_TEXT, Fact, Fidelity, drawn, judged, texts_of
from lamina.core.blocks import text, tool_result
from lamina.core.view import Item

from ...layers.l4_compact.made import said


def result(uuid: str, words: str) -> Item:
    return Item(uuid, "user", (tool_result(uuid, words),), "said")


@pytest.mark.spec("K4")
def test_names_paths_numbers_errors_and_sentences_are_found() -> None:
    items = [
        said("u", "Please make it faster. It took 340 ms yesterday!"),
        result("r", "src/app/main.py\nValueError: no such port\ndef read_config(path): return HttpClient(path)"),
    ]
    found = drawn(items)
    assert {fact for fact in found if fact.kind != "name"} == {
        Fact("sentence", "Please make it faster."),
        Fact("sentence", "It took 340 ms yesterday!"),
        Fact("number", "340 ms"),
        Fact("path", "src/app/main.py"),
        Fact("error", "Error: no such port"),
    }
    assert {fact.text for fact in found if fact.kind == "name"} == {"read_config", "HttpClient", "ValueError"}


@pytest.mark.spec("K4")
def test_the_same_items_give_the_same_facts_and_never_more_than_the_most() -> None:
    items = [said(f"u{n}", f"The service number {n} listens on port_{n} in conf/app_{n}.yaml after {n} ms.") for n in range(500)]
    found = drawn(items)
    assert found == drawn(items)
    assert len(found) == MOST
    texts = {fact.text for fact in found if fact.kind == "sentence"}
    numbers = sorted(int(one.split()[3]) for one in texts)
    assert numbers[0] < 50
    assert numbers[-1] > 400, "spread over all of it"


@pytest.mark.spec("K4")
def test_a_fact_is_in_context_or_one_call_away_or_lost() -> None:
    facts = [Fact("name", "read_config"), Fact("path", "src/main.py")]
    shown = ["It has read_config\nin it."]
    assert judged(facts, shown, reachable=True) == Fidelity(1, 1, 0)
    assert judged(facts, shown, reachable=False) == Fidelity(1, 0, 1)
    sentence = judged(facts, shown, reachable=True).sentence()
    assert sentence == "Of 2 facts removed, 1 is still in the context, 1 is one tool call away."
    assert Fidelity().sentence() is None


def test_a_sentence_is_found_however_its_lines_are_broken() -> None:
    items = [said("u", "Keep the old names of the fields.")]
    assert judged(drawn(items), ["…\n> Keep the old\nnames of the fields."], reachable=True).in_context == 1


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=200), max_size=20))
def test_whatever_was_said_what_stays_in_view_is_in_context(words: list[str]) -> None:
    items = [Item(str(n), "user", (text(one),), "said") for n, one in enumerate(words) if one]
    facts = drawn(items)
    assert judged(facts, texts_of(items), reachable=True).in_context == len(facts)


def test_a_hostile_text_is_bounded() -> None:
    for unit in ("a/", "1,", "aB", "Error: ", "a_", "-.", "a.b-", "((", "1 "):
        assert len(drawn([said("u", unit * MOST_TEXT)])) <= MOST
