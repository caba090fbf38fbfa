"""One request block by block: sizes, age, cost, copies, and the difference to another request."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.histories import Builder, examples, histories, use, words

from lamina.core.errors import InputError
from lamina.core.records import Clear, Record
from lamina.core.settings import Settings
from lamina.core.usage import Usage
from lamina.history.explanation import NOTHING, Explainer, explain_each
from lamina.history.request_blocks import RequestBlocks, SessionRequests, request_blocks, tokens_of
from lamina.history.window_series import KINDS, window_series

CODE = "def answer(question):\n    return table[question]\n" * 200
MODEL = "claude-opus-4-5"


def blocks(records: list[Record], number: int, against: int | None = None) -> RequestBlocks:
    return request_blocks(records, number, Settings(), origin="claude-code", against=against)


def reading(*paths: str) -> Builder:
    """A session that reads these files, one a request, and asks once more."""
    b, tokens, read = Builder(), 28_000, 0
    b.said("read them")
    for number, path in enumerate((*paths, ""), 1):
        block = {**use(f"c{number}"), "input": {"file_path": path}} if path else words("done")
        b.answer(block, key=f"m{number}", model=MODEL, usage=Usage(0, read, tokens - read, 0, 50))
        tokens, read = tokens + 2_700, tokens
        if path:
            b.results(f"c{number}", content=f"{CODE}{number}")
    return b


@examples(40)
@given(histories())
def test_the_blocks_of_a_request_add_up_to_what_the_window_shows(records: list[Record]) -> None:
    found = window_series(records, Settings(), origin="claude-code")
    for point in found.requests[-3:]:
        made = request_blocks(records, point.number, Settings(), series=found)
        assert made.usage is None or made.tokens == made.usage.prompt
        assert {block.kind for block in made.blocks} <= set(KINDS)


@examples(40)
@given(histories(), st.randoms(use_true_random=False))
def test_a_request_explained_from_a_kept_state_is_the_one_explained_from_the_start(records: list[Record], draw: Random) -> None:
    numbers = [point.number for point in window_series(records, Settings(), origin="claude-code").requests]
    plain = {one.turn: one for one in explain_each(records, dict.fromkeys(numbers, NOTHING), tokens_of)} if numbers else {}
    explainer = Explainer(records, step=1)
    for number in draw.choices(numbers, k=2 * len(numbers)) if numbers else ():
        assert [*explainer.explain_each({number: NOTHING}, tokens_of)] == [plain[number]]
    for pair in (sorted(set(draw.choices(numbers, k=2))) for _ in numbers):
        assert [*explainer.explain_each(dict.fromkeys(pair, NOTHING), tokens_of)] == [plain[number] for number in pair]


def test_two_requests_far_apart_cost_only_the_records_since_the_state_nearest_to_each() -> None:
    passed: list[int] = []
    records = reading(*(f"/{number}.py" for number in range(60))).records
    explainer = Explainer(records, step=10, pause=lambda: passed.append(1))
    for _ in range(2):
        passed.clear()
        assert [one.turn for one in explainer.explain_each({5: NOTHING, 58: NOTHING}, tokens_of)] == [5, 58]
    assert len(passed) <= 2 * 10


def test_what_stands_in_no_record_is_a_block_of_its_own() -> None:
    made = blocks(reading("/a.py").records, 1)
    head, said = made.blocks
    assert (head.kind, said.kind) == ("unrecorded_head", "user")
    assert head.tokens + said.tokens == 28_000
    assert said.tokens < 20
    assert "the transcript does not hold" in head.why


@pytest.mark.spec("B10", "V2")
def test_a_block_knows_since_when_it_is_there_and_what_carrying_it_cost() -> None:
    made = blocks(reading("/a.py", "/b.py", "/c.py").records, 4)
    results = [block for block in made.blocks if block.kind == "files"]
    assert [block.entered_at for block in results] == [2, 3, 4]
    costs = [block.carried_usd or 0.0 for block in results]
    assert [block.carried_units for block in results] == pytest.approx([cost / 5e-6 for cost in costs])
    assert costs[0] > costs[1] > costs[2]
    # Written once at 6.25 dollars a million, and for each request since then read at 0.50.
    assert costs[2] == pytest.approx(results[2].tokens * 6.25e-6, rel=0.1)
    assert costs[0] - costs[2] == pytest.approx(results[0].tokens * 1.0e-6, rel=0.3)
    assert made.blocks[0].entered_at == 1


@pytest.mark.spec("V2")
def test_what_the_blocks_of_the_first_requests_cost_is_what_was_paid() -> None:
    """The system prompt of a new session is mostly read: others have written it before. A new message may be sent without the cache."""
    b = Builder()
    b.said("read it")
    used = [Usage(10, 20_000, 7_990, 0, 50), Usage(2_700, 28_000, 0, 0, 50)]
    b.answer({**use("c1"), "input": {"file_path": "/a.py"}}, key="m1", model=MODEL, usage=used[0])
    b.results("c1", content=CODE)
    b.answer(words("done"), key="m2", model=MODEL, usage=used[1])
    paid = units = 0.0
    for number, usage in enumerate(used, 1):
        parts = 5.0 * usage.input_tokens, 0.5 * usage.cache_read, 6.25 * usage.cache_write
        paid, units = paid + sum(parts) / 1e6, units + sum(parts) / 5
        made = blocks(b.records, number)
        assert sum(block.carried_usd or 0.0 for block in made.blocks) == pytest.approx(paid, rel=0.02)
        assert sum(block.carried_units for block in made.blocks) == pytest.approx(units, rel=0.02)


def test_a_call_names_its_file_and_is_no_copy_of_it() -> None:
    made = blocks(reading("/a.py", "/a.py").records, 3)
    calls = [(block.file, block.about, block.older_copy) for block in made.blocks if block.kind == "call"]
    assert calls == [("/a.py", "/a.py", False)] * 2


def test_the_older_copy_of_a_file_is_marked() -> None:
    made = blocks(reading("/a.py", "/b.py", "/a.py").records, 4)
    copies = [(block.file, block.older_copy) for block in made.blocks if block.kind == "files"]
    assert copies == [("/a.py", True), ("/b.py", False), ("/a.py", False)]


def test_only_what_was_cleared_in_the_middle_went() -> None:
    b = reading("/a.py", "/b.py", "/c.py")
    b.put(Clear("clear", b.last, b.time, {"c2": "gone"}, trigger="auto"), moves=False)
    b.said("go on")
    b.answer(words("yes"), key="end", model=MODEL, usage=Usage(0, 20_000, 13_600, 0, 5))
    made = blocks(b.records, 5)
    assert [(block.kind, block.words[:4]) for block in made.went] == [("files", "def ")]
    assert [block.words[:5] for block in made.came] == ["gone", "done", "go on"]
    assert made.against == 4
    far = blocks(b.records, 5, against=1)
    assert far.against == 1
    assert len(far.came) > len(made.came)


def test_a_request_that_does_not_exist_is_refused_in_one_sentence() -> None:
    with pytest.raises(InputError, match=r"request 9 does not exist \(the session has 2 requests\)"):
        blocks(reading("/a.py").records, 9)
    assert blocks(reading("/a.py").records, 1).against is None


def test_a_request_that_is_asked_for_again_or_against_another_one_is_the_same_as_when_asked_first() -> None:
    records = reading("/p/a.py", "/p/b.py").records
    requests = SessionRequests(records, window_series(records, Settings(), origin="claude-code"))
    for number, against in ((3, None), (3, None), (3, 1), (2, None), (3, None)):
        assert requests.blocks(number, against) == blocks(records, number, against)


def test_a_call_and_its_result_name_their_tool() -> None:
    found = blocks(reading("/a.py").records, 2).blocks
    assert [
        (block.kind, block.label, block.tool) for block in found if block.label not in ("message", "answer", "not recorded")
    ] == [
        ("call", "call of Read", "Read"),
        ("files", "result of Read", "Read"),
    ]
    assert {block.tool for block in found if block.label == "message"} == {""}
