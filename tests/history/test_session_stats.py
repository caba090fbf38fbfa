"""Statistics of a session: each answer is counted once, actions count for their layer, and sessions add up."""

from __future__ import annotations

import pytest
from tests.core.histories import Builder, words

from lamina.core.blocks import Block, read_block, text
from lamina.core.records import Break, Clear, Event, Message, Record, Revoke, Spill
from lamina.core.usage import Usage
from lamina.history.session_stats import SessionStats, SideCost, session_stats

USED = Usage(input_tokens=10, cache_read=80, cache_write=10, output_tokens=5)


def result(call: str) -> Block:
    return read_block({"type": "tool_result", "tool_use_id": call, "content": "x"})


def event(name: str, **data: object) -> Event:
    return Event(f"e-{name}-{len(data)}", None, "", name, dict(data))


RECORDS: list[Record] = [
    Message("u1", None, "", "user", (text("hello"),)),
    Message("a1", "u1", "", "assistant", (text("hi"),), "m1", USED, "tool_use", "a-model"),
    Message("a2", "a1", "", "assistant", (text("there"),), "m1", USED, "tool_use", "a-model"),
    Spill("s1", "a2", "", "c1", "short", "/f", size=4_005),
    event("spill", path="/f"),
    Message("u2", "a2", "", "user", (result("c1"),)),
    Message("a3", "u2", "", "assistant", (text("done"),), "m2", USED, "end_turn", "b-model"),
    Message("x1", "a3", "", "assistant", (text("error"),), silent=True),
    Clear("k1", "a3", "", {"c1": "gone"}, trigger="size", tokens_saved=900),
    event("clearing", trigger="size", tokens_saved=900),
    event("clearing", trigger="cache_edits", tokens_saved=50),
    event("fork", purpose="summary", input=1, cache_read=99, cache_write=0, output=7, usd=0.25),
    event("compaction", by="summary", tokens_before=1_000, tokens_after=300, because="by price: …"),
    event("compaction_failed", why="empty"),
    event("autocompact", stopped="three failed"),
    event("autocompact", stopped="three failed"),
    event("cache_break", lost=5),
    event("layer_failed", layer="l2_micro"),
    Message("sum", "b1", "", "user", (text("summary"),), summary=True),
    Break("b1", "a3", "", "compaction", 0, 5),
    Revoke("r1", "a3", "", "k1"),
    Message("u3", "sum", "", "user", (text("again"),)),
]


@pytest.mark.spec("K4")
def test_each_answer_counts_once_and_each_layer_for_itself() -> None:
    found = session_stats(RECORDS)
    assert (found.calls, found.turns) == (2, 2)
    assert found.usage == {"a-model": USED, "b-model": USED}
    assert found.hit_ratio == 0.8
    assert found.side == {"summary": SideCost(1, Usage(1, 99, 0, 0, 7), 0.25)}
    assert found.summaries_per_100_turns == 50
    assert found.compactions == {"summary": 1}
    assert found.compactions_by_price == 1
    assert (found.compaction_failures, found.breaker_trips) == (1, 1)
    assert found.clearings == {"size": 1, "cache_edits": 1}
    assert found.saved == {"results": 1_000, "clearing": 950, "compaction": 700}
    assert (found.spills, found.undos, found.missed) == (1, 1, 1)
    assert found.breaks == {"compaction": 1}
    assert found.failures == {"l2_micro": 1}


@pytest.mark.spec("K4")
def test_sessions_add_up() -> None:
    one = session_stats(RECORDS)
    both = one + one
    assert both.calls == 2 * one.calls
    assert both.usage["a-model"] == USED + USED
    assert both.saved["clearing"] == 1_900
    assert both.hit_ratio == one.hit_ratio
    assert one + SessionStats() == one
    unpriced = SessionStats(side={"subagent": SideCost(2, USED, None)})
    assert (one + unpriced).side_total() == SideCost(3, USED + Usage(1, 99, 0, 0, 7), None)
    assert (one + unpriced).side_total(agents=False) == one.side_total()
    assert (one + unpriced).side_total(agents=True) == unpriced.side_total()
    assert SessionStats().hit_ratio == SessionStats().summaries_per_100_turns == 0.0


def test_tokens_that_were_written_again_count_whoever_caused_it() -> None:
    b = Builder()
    b.said("go")
    for number, (read, written) in enumerate([(0, 50_000), (50_000, 1_000), (20_000, 32_000), (52_000, 100)]):
        b.answer(words("yes"), key=f"m{number}", model="claude-x", usage=Usage(0, read, written, 0, 5))
        b.said("more")
    b.boundary()
    b.summary()
    b.answer(words("on"), key="after", model="claude-x", usage=Usage(0, 18_000, 16_000, 0, 5))
    b.answer(words("No response requested."), key="none", model="<synthetic>")
    found = session_stats(b.records)
    assert found.written_again == 31_000 + 16_000
    assert found.calls == 5
