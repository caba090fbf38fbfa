"""Reading a request into pieces: order, marks, counts, and the blocks that the model does not see."""

from __future__ import annotations

from typing import Any
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.cache import HOUR, MINUTES_5, PromptReader, count_block, keeps_thinking
from lamina.core.cache.prompt_reader import IMAGE_TOKENS
from lamina.core.errors import InputError

MARK = {"type": "ephemeral"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 4_000}}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def request(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-5", "messages": list(messages), **more}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def test_pieces_come_in_the_order_tools_system_messages() -> None:
    prompt = PromptReader().read(request(user(text("hi")), tools=[{"name": "Read"}], system=[text("be kind")]))
    assert [piece.path for piece in prompt.pieces] == ["tools.0", "system.0", "messages.0.content.0"]
    assert (prompt.system_at, prompt.messages_at) == (1, 2)


def test_a_string_is_the_same_as_one_text_block() -> None:
    short = PromptReader().read({"model": "m", "system": "s", "messages": [{"role": "user", "content": "hi"}]})
    long = PromptReader().read({"model": "m", "system": [text("s")], "messages": [user(text("hi"))]})
    assert [piece.digest for piece in short.pieces] == [piece.digest for piece in long.pieces]


def test_a_mark_changes_neither_digest_nor_bytes() -> None:
    plain, marked = (
        PromptReader().read(request(user(block))).pieces[0] for block in (text("hi"), text("hi", cache_control=MARK))
    )
    assert (plain.digest, plain.data, plain.ttl) == (marked.digest, marked.data, 0)
    assert marked.ttl == MINUTES_5


def test_a_mark_inside_a_result_counts_as_the_result_s_own() -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [text("a"), text("b", cache_control={**MARK, "ttl": "1h"})]}
    piece = PromptReader().read(request(user(result))).pieces[0]
    assert piece.ttl == HOUR
    assert b"cache_control" not in piece.data


def test_a_mark_on_the_request_goes_to_the_last_block_that_can_carry_it() -> None:
    said = {"role": "assistant", "content": [text("ok"), {"type": "thinking", "thinking": "x", "signature": "s"}]}
    prompt = PromptReader().read(request(user(text("hi")), said, cache_control=MARK))
    assert [piece.ttl for piece in prompt.pieces] == [0, MINUTES_5, 0]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (request(*[user(text(str(at), cache_control=MARK)) for at in range(5)]), "Found 5"),
        (request(user(text("a", cache_control=MARK), text("b", cache_control={**MARK, "ttl": "1h"}))), "ttl='1h'"),
        (request(user(text("a", cache_control={"type": "eternal"}))), "ephemeral"),
        (request(user(text("a", cache_control={**MARK, "ttl": "2h"}))), "'5m' or '1h'"),
        (request({"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "cache_control": MARK}]}), "thinking"),
        (request(user(text("a", cache_control=MARK)), cache_control={**MARK, "ttl": "1h"}), "different lifetime"),
        (request(user(text("a")), cache_edits={"delete": "toolu_1"}), "list of tool_use ids"),
    ],
)
def test_marks_and_edits_the_api_would_refuse_are_named(body: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        PromptReader().read(body)


@pytest.mark.parametrize(
    ("block", "tokens"),
    [
        (text("abcd"), 1),
        (text("abcde"), 2),
        (text(""), 1),
        (text("äöü"), 2),
        (IMAGE, IMAGE_TOKENS),
        ({"type": "tool_result", "tool_use_id": "t", "content": [text("abcd"), IMAGE]}, IMAGE_TOKENS + 1),
        ({"a": "bc"}, 3),
    ],
)
def test_the_default_count_is_a_quarter_of_the_bytes_and_a_fixed_size_for_images(block: dict[str, Any], tokens: int) -> None:
    assert count_block(block) == tokens


def test_the_count_is_the_caller_s() -> None:
    assert PromptReader(count=lambda block: 7).read(request(user(text("any"), text("two")))).tokens == 14


@pytest.mark.parametrize(
    ("model", "keeps"),
    [
        ("claude-3-7-sonnet-latest", False),
        ("claude-sonnet-4-5-20250929", False),
        ("claude-sonnet-4-20250514", False),
        ("claude-opus-4-1", False),
        ("claude-haiku-4-5", False),
        ("claude-sonnet-4-6", True),
        ("claude-opus-4-5", True),
        ("claude-opus-5-5", True),
        ("anything-else", True),
    ],
)
def test_older_models_forget_the_thinking_of_earlier_turns(model: str, keeps: bool) -> None:
    assert keeps_thinking(model) is keeps


def test_thinking_is_dropped_behind_a_new_user_message_but_not_within_a_tool_round() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
    settings = {"model": "claude-haiku-4-5", "thinking": {"type": "enabled", "budget_tokens": 2_000}}
    round_trip = [user(text("hi")), {"role": "assistant", "content": [thought, call]}, user(result)]
    reader = PromptReader()
    within = reader.read({**settings, "messages": round_trip})
    behind = {**settings, "messages": [*round_trip, {"role": "assistant", "content": [text("done")]}, user(text("more"))]}
    assert [piece.kind for piece in within.pieces] == ["text", "thinking", "tool_use", "tool_result"]
    assert [piece.kind for piece in reader.read(behind).pieces] == ["text", "tool_use", "tool_result", "text", "text"]
    assert reader.read(behind).results() == {"t1": 2}
    assert len(reader.read_sent(behind).pieces) == 6
    kept = {**behind, "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}
    assert len(reader.read(kept).pieces) == 6


def test_a_shared_reader_reads_a_block_once_and_gives_the_same_prompt() -> None:
    counted: list[object] = []

    def count(block: Any) -> int:
        counted.append(block)
        return count_block(block)

    reader = PromptReader(count=count, shared=True)
    body = request(user(text("hi")), user(text("there")))
    first = reader.read(body)
    assert reader.read(request(*body["messages"], user(text("new")))).pieces[:2] == first.pieces
    assert len(counted) == 3
    assert first == PromptReader().read(body)


def test_a_shared_reader_keeps_the_blocks_of_the_last_request_only() -> None:
    class Block(dict[str, Any]):
        """A dict that tells when it is gone."""

    reader = PromptReader(shared=True)
    blocks = [Block(text(f"block {at}")) for at in range(5)]
    gone = [ref(block) for block in blocks]
    while blocks:
        assert reader.read(request(user(blocks.pop()))).tokens == 2
    assert [found() is None for found in gone] == [False, True, True, True, True]


THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
MESSAGES = [
    user(text("hi")),
    user(text("there"), text("again", cache_control=MARK)),
    {"role": "user", "content": "plain"},
    {"role": "assistant", "content": [THOUGHT, text("said")]},
    {"role": "assistant", "content": [THOUGHT, {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]},
    user({"type": "tool_result", "tool_use_id": "t1", "content": "ok"}),
    user({"type": "tool_result", "tool_use_id": "t2", "content": [IMAGE]}),
    user(IMAGE),
    user({"type": "document", "source": {"type": "text", "data": "d"}, "citations": {"enabled": True}}),
    user(text("hi", cache_control={"type": "ephemeral", "ttl": "3h"})),
]
OPTIONS: list[dict[str, Any]] = [
    {"model": "claude-opus-4-6", "system": [text("be kind")]},
    {"model": "claude-haiku-4-5", "tools": [{"name": "Read"}, {"type": "web_search_1", "name": "w"}]},
    {"model": "claude-haiku-4-5", "thinking": {"type": "enabled", "budget_tokens": 2_000}, "cache_control": MARK},
]


def told(reader: PromptReader, body: dict[str, Any]) -> Any:
    try:
        return reader.read(body)
    except InputError as error:
        return str(error)


@given(st.lists(st.tuples(st.sampled_from(OPTIONS), st.lists(st.sampled_from(MESSAGES), max_size=8)), max_size=8))
def test_a_shared_reader_gives_the_same_prompts_as_one_that_reads_everything_again(
    bodies: list[tuple[dict[str, Any], list[dict[str, Any]]]],
) -> None:
    shared = PromptReader(shared=True)
    for options, messages in bodies:
        body = {**options, "messages": messages}
        assert told(shared, body) == told(PromptReader(), body)


def test_a_shared_reader_reads_what_is_new_in_a_request_however_long_it_is() -> None:
    counted: list[object] = []

    def count(block: Any) -> int:
        counted.append(block)
        return 1

    reader = PromptReader(count=count, shared=True)
    messages: list[dict[str, Any]] = []
    for at in range(200):
        messages += [{"role": "assistant", "content": [THOUGHT, text("said")]}, user(text(f"question {at}"))]
        marked = user({**messages[-1]["content"][0], "cache_control": MARK})
        counted.clear()
        reader.read({**OPTIONS[1], "messages": [*messages[:-1], marked]})
        # The two tools once, then an answer and a question, and the last question again without its mark.
        assert len(counted) <= (3 if at else 4)
        reader.read({**OPTIONS[1], "messages": messages[:4]})  # a shorter request forgets nothing


def test_a_chat_request_is_one_piece_per_tool_and_message() -> None:
    body = {
        "model": "gpt-test",
        "tools": [{"type": "function"}],
        "messages": [{"role": "system", "content": "s"}, {"role": "user"}],
    }
    prompt = PromptReader().read_chat(body)
    assert [(piece.role, piece.path) for piece in prompt.pieces] == [
        ("tools", "tools.0"),
        ("system", "messages.0"),
        ("user", "messages.1"),
    ]
