"""The prefix rule: the digest chain gives the same answer as a comparison of all bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.histories import Builder, examples, grow, grown, histories, words

from lamina.core.blocks import Wire, canonical
from lamina.core.log import Log
from lamina.core.prefix import Difference, Sent, base_chain, compare, first_difference
from lamina.core.records import Record

TOOLS: list[Wire] = [{"name": "Read", "input_schema": {"type": "object"}}, {"name": "Bash", "input_schema": {"type": "object"}}]
SYSTEM = [words("be brief"), words("be kind")]


class Request:
    """A request in two forms: as the session remembers it, and as the full sequence that the provider's cache sees."""

    def __init__(self, log: Log, tools: list[Wire], system: list[Wire]) -> None:
        self.tools, self.base = len(tools), base_chain(tools, system)
        messages = log.view.messages()
        self.chain = log.view.flat.chain
        self.sent = Sent(self.base, len(self.chain), self.chain[-1] if self.chain else b"", len(tools))
        self.row = [
            *(("tools", canonical(_plain(tool))) for tool in tools),
            *(("system", canonical(_plain(block))) for block in system),
            *((message["role"], canonical(block)) for message in messages for block in message["content"]),
        ]

    def to(self, new: Request) -> Difference | None:
        return compare(self.sent, self.chain, new.base, new.tools, new.chain)


def _plain(row: Wire) -> Wire:
    return {key: value for key, value in row.items() if key != "cache_control"}


def truly(old: Request, new: Request) -> int | None:
    """Find the first difference the slow way; None if the new sequence starts with the whole old one."""
    if new.row[: len(old.row)] == old.row:
        return None
    pairs = zip(old.row, new.row, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(old.row), len(new.row)))


@pytest.mark.spec("K3")
@examples(200)
@given(histories(), st.data())
def test_the_chain_and_a_comparison_of_all_bytes_agree(records: list[Record], data: st.DataObject) -> None:
    log = Log()
    requests: list[Request] = []
    for at in range(len(records)):
        grow(log, records, at)
        if data.draw(st.booleans()) and log.view.messages():
            new = Request(log, TOOLS, SYSTEM)
            for old in requests[-3:]:
                found = old.to(new)
                assert (found.block if found is not None else None) == truly(old, new)
                assert found is None or found.where == "messages"
            requests.append(new)


rows = st.lists(st.sampled_from([words("a"), words("b"), {**words("a"), "cache_control": {"type": "ephemeral"}}]), max_size=3)


@examples(200)
@given(rows, rows, rows, rows)
def test_a_change_of_tools_or_system_is_placed(
    tools: list[Wire], system: list[Wire], more: list[Wire], other: list[Wire]
) -> None:
    b = Builder()
    b.said("go")
    old, new = Request(grown(b.records), tools, system), Request(grown(b.records), more, other)
    found = old.to(new)
    assert (found.block if found is not None else None) == truly(old, new)
    if [_plain(tool) for tool in tools] != [_plain(tool) for tool in more]:
        assert found is not None
        assert found.where == "tools"
    elif found is not None:
        assert found.where == "system"


def test_marks_are_no_part_of_the_prefix() -> None:
    marked = [*TOOLS[:1], {**TOOLS[1], "cache_control": {"type": "ephemeral"}}]
    assert base_chain(marked, SYSTEM) == base_chain(TOOLS, SYSTEM)


def test_the_place_of_a_block_counts_not_only_its_bytes() -> None:
    assert base_chain([words("a")], []) != base_chain([], [words("a")])
    assert base_chain([words("a"), words("b")], []) != base_chain([words("b"), words("a")], [])


@examples(200)
@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_halving_finds_the_first_link_that_differs(same: int, left: int, right: int) -> None:
    common = [bytes([1, at]) for at in range(same)]
    old = common + [bytes([2, at]) for at in range(left)]
    new = common + [bytes([3, at]) for at in range(right)]
    assert first_difference(old, new) == same


def test_a_shorter_request_differs_where_it_ends() -> None:
    b = Builder()
    b.said("one")
    b.said("two")
    long, short = Request(grown(b.records), [], []), Request(grown(b.records[:1]), [], [])
    assert long.to(short) == Difference("messages", 1)
    assert short.to(long) is None


def test_results_that_arrive_behind_a_request_that_failed_are_found_at_their_place() -> None:
    """A request with a synthetic result was sent but not answered; the real result replaces it in the same message."""
    b = Builder()
    b.said("go")
    b.answer({"type": "tool_use", "id": "t1", "name": "Read", "input": {}}, key="m1")
    b.said("hurry")
    log = grown(b.records)
    old = Request(log, TOOLS, SYSTEM)
    b.results("t1")
    grow(log, b.records, len(b.records) - 1)
    new = Request(log, TOOLS, SYSTEM)
    assert old.to(new) == Difference("messages", 4 + 2)
