"""The usage that the SDK reports over a conversation: growth, forks, expiry, look-back, and changes that drop the cache."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest

from lamina.testing import Clock, MessagesServer

pytest_plugins = ["lamina.testing.plugin"]

MODEL = "claude-sonnet-5"
MARK = {"type": "ephemeral"}
HOUR: Any = {"type": "ephemeral", "ttl": "1h"}
TOOL: Any = {"name": "Read", "description": "d" * 4_000, "input_schema": {"type": "object"}}


class Talk:
    """A conversation that marks its system prompt for an hour and its last block for five minutes."""

    def __init__(self, client: anthropic.Anthropic, **settings: Any) -> None:
        self.client = client
        self.settings: dict[str, Any] = {"model": MODEL, "max_tokens": 5_000, "tools": [TOOL], "system": "s" * 8_000, **settings}
        self.messages: list[Any] = []

    def say(self, words: str, *, blocks: int = 1, **more: Any) -> anthropic.types.Usage:
        content: list[Any] = [{"type": "text", "text": f"{words} {at}"} for at in range(blocks)]
        marked = [*content[:-1], {**content[-1], "cache_control": MARK}]
        settings = {**self.settings, **more}
        system = settings.pop("system")
        answer: anthropic.types.Message = self.client.messages.create(
            **settings,
            system=[{"type": "text", "text": system, "cache_control": HOUR}],
            messages=[*self.messages, {"role": "user", "content": marked}],
        )
        self.messages += [{"role": "user", "content": content}, {"role": "assistant", "content": answer.content}]
        return answer.usage


def written(usage: anthropic.types.Usage) -> tuple[int, int]:
    assert usage.cache_creation is not None
    return usage.cache_creation.ephemeral_1h_input_tokens, usage.cache_creation.ephemeral_5m_input_tokens


def total(usage: anthropic.types.Usage) -> int:
    return usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)


def test_a_growing_conversation_reads_all_of_the_last_request(client: anthropic.Anthropic) -> None:
    talk = Talk(client)
    first = talk.say("hello")
    assert (first.cache_read_input_tokens, first.input_tokens) == (0, 0)
    assert sum(written(first)) == first.cache_creation_input_tokens == total(first)
    assert all(written(first))
    before = total(first)
    for at in range(3):
        usage = talk.say(f"turn {at}")
        assert usage.cache_read_input_tokens == before
        assert written(usage)[0] == 0
        before = total(usage)


@pytest.mark.spec("A1")
def test_a_fork_with_the_same_prefix_reads_it_and_one_with_another_system_does_not(client: anthropic.Anthropic) -> None:
    talk = Talk(client)
    talk.say("hello")
    usage = talk.say("more")
    fork, stranger = Talk(client), Talk(client, system="t" * 8_000)
    fork.messages, stranger.messages = list(talk.messages), list(talk.messages)
    reading = fork.say("summarise this", extra_headers={"x-lamina-fork": "notes"})
    assert reading.cache_read_input_tokens == total(usage)
    # The other system prompt makes it a conversation of its own, which it says.
    lost = stranger.say("summarise this", extra_headers={"x-lamina-session": "stranger"})
    assert lost.cache_read_input_tokens == 0
    assert talk.say("and on").cache_read_input_tokens == total(usage)


def test_time_runs_only_when_the_test_moves_it(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    clock = messages_server.clock
    assert isinstance(clock, Clock)
    talk = Talk(client)
    start = total(talk.say("hello"))
    clock.advance(299)
    assert talk.say("still there").cache_read_input_tokens == start
    clock.advance(301)
    cold = talk.say("after five minutes")
    assert cold.cache_read_input_tokens == start - 2
    assert written(cold)[0] == 0
    clock.advance(3_601)
    frozen = talk.say("after an hour")
    assert frozen.cache_read_input_tokens == 0
    assert all(written(frozen))


@pytest.mark.parametrize(("blocks", "hit"), [(18, True), (19, False)])
def test_twenty_blocks_further_on_the_last_request_is_out_of_sight(blocks: int, hit: bool, client: anthropic.Anthropic) -> None:
    talk = Talk(client)
    before = total(talk.say("hello"))
    usage = talk.say("many", blocks=blocks)
    # The answer is one block more; without the hit only the system prompt's own mark finds anything.
    assert usage.cache_read_input_tokens == (before if hit else before - 2)


@pytest.mark.prefix_free("settings are changed on purpose")
@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"tool_choice": {"type": "any"}}, "system"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2_000}}, "system"),
        ({"output_config": {"effort": "low"}}, "system"),
        ({"system": "t" * 8_000}, "nothing"),
        ({"tools": [{**TOOL, "name": "Write"}]}, "nothing"),
        ({"model": "claude-opus-5"}, "nothing"),
        ({"metadata": {"user_id": "u"}}, "all"),
        ({"stop_sequences": ["x"]}, "all"),
    ],
)
def test_what_drops_the_cache_and_how_much_of_it(change: dict[str, Any], kept: str, client: anthropic.Anthropic) -> None:
    talk = Talk(client)
    before = total(talk.say("hello"))
    usage = talk.say("more", **change)
    assert usage.cache_read_input_tokens == {"all": before, "system": before - 2, "nothing": 0}[kept]


@pytest.mark.prefix_free("an image joins on purpose")
def test_the_first_image_drops_the_messages_and_the_second_nothing(client: anthropic.Anthropic) -> None:
    image: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    talk = Talk(client)
    before = total(talk.say("hello"))
    talk.messages.append({"role": "user", "content": [image]})
    seen = talk.say("what is it?")
    assert seen.cache_read_input_tokens == before - 2
    talk.messages.append({"role": "user", "content": [image]})
    assert talk.say("and this?").cache_read_input_tokens == total(seen)
