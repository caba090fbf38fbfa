"""Cache marks: at most two in the messages, on copies, at the end of the last answered request and of this one."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.prompt.cache_marks import BlockPosition, end_before_last_answer, mark, mark_messages, marked_last

Wire = dict[str, Any]


def text(words: str) -> Wire:
    return {"type": "text", "text": words}


THINKING: Wire = {"type": "thinking", "thinking": "hm", "signature": "s"}
HIDDEN: Wire = {"type": "redacted_thinking", "data": "x"}


def user(*blocks: Wire) -> Wire:
    return {"role": "user", "content": list(blocks) or [text("u")]}


def assistant(*blocks: Wire) -> Wire:
    return {"role": "assistant", "content": list(blocks) or [text("a")]}


def marked(messages: list[Wire]) -> list[tuple[int, int]]:
    return [
        (row, at)
        for row, message in enumerate(messages)
        for at, block in enumerate(message["content"])
        if "cache_control" in block
    ]


TABLE: list[tuple[list[Wire], list[tuple[int, int]]]] = [
    ([user()], [(0, 0)]),
    ([user(text("a"), text("b"))], [(0, 1)]),
    ([user(), assistant(), user()], [(0, 0), (2, 0)]),
    ([user(text("a"), text("b")), assistant(), user(text("c"), text("d"))], [(0, 1), (2, 1)]),
    ([user(), assistant(), user(), assistant(), user()], [(2, 0), (4, 0)]),
    # A paused answer stands last.
    ([user(), assistant()], [(0, 0), (1, 0)]),
    ([user(), assistant(text("a"), THINKING)], [(0, 0), (1, 0)]),
    ([user(), assistant(text("a"), THINKING, HIDDEN)], [(0, 0), (1, 0)]),
    ([user(), assistant(THINKING)], [(0, 0)]),
    ([assistant(), user()], [(1, 0)]),
]


@pytest.mark.parametrize(("messages", "expected"), TABLE)
def test_marks_stand_where_the_next_request_will_look(messages: list[Wire], expected: list[tuple[int, int]]) -> None:
    mark_messages(messages, "5m")
    assert marked(messages) == expected


@given(st.lists(st.lists(st.sampled_from([text("a"), THINKING, HIDDEN]), min_size=1, max_size=3), min_size=1, max_size=8))
def test_the_shared_messages_and_blocks_never_change(rows: list[list[Wire]]) -> None:
    shared: list[Wire] = [assistant(*blocks) if number % 2 else user(*blocks) for number, blocks in enumerate(rows)]
    before, request = copy.deepcopy(shared), shared.copy()
    mark_messages(request, "1h")
    assert shared == before
    assert len(marked(request)) <= 2
    for index, (own, theirs) in enumerate(zip(request, shared, strict=True)):
        at = {place for row, place in marked(request) if row == index}
        assert (own is theirs) == (not at)
        assert all(
            (mine is block) == (place not in at)
            for place, (mine, block) in enumerate(zip(own["content"], theirs["content"], strict=True))
        )
    assert all(request[row]["content"][place]["type"] == "text" for row, place in marked(request))


def test_the_mark_of_a_request_is_still_there_in_the_next_one() -> None:
    """The next request looks up exactly what the previous one wrote to the cache, however many blocks came since."""
    messages = [user()]
    for number in range(6):
        this = messages.copy()
        mark_messages(this, "5m")
        last = marked(this)[-1]
        messages += [assistant(*[text(str(number))] * 30), user(*[text(str(number))] * 30)]
        following = messages.copy()
        mark_messages(following, "5m")
        assert last in marked(following)


def test_tools_and_system_get_one_mark_on_a_copy_of_their_last() -> None:
    blocks = [text("a"), text("b")]
    done = marked_last(blocks, "5m")
    assert done == [text("a"), {**text("b"), "cache_control": {"type": "ephemeral"}}]
    assert done[0] is blocks[0]
    assert blocks == [text("a"), text("b")]
    assert marked_last([], "5m") == []


def test_the_usual_lifetime_is_not_spelled_out() -> None:
    assert mark("5m") == {"type": "ephemeral"}
    assert mark("1h") == {"type": "ephemeral", "ttl": "1h"}


def test_the_end_of_the_last_answered_request_is_read_off_the_messages() -> None:
    assert end_before_last_answer([]) is None
    assert end_before_last_answer([user()]) is None
    assert end_before_last_answer([user(text("a"), text("b")), assistant()]) == BlockPosition(0, 1)
    assert end_before_last_answer([user(), assistant(), user(), user()]) == BlockPosition(0, 0)
