"""The long session again on every kind of wire, session, policy and window there is: the same proofs hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import pytest
from tests.sampling import sampled
from tests.session.plain import AsyncSession, Session

from lamina.core.errors import UsageError
from lamina.providers import Provider
from lamina.providers.anthropic import AnthropicProvider
from lamina.providers.openai import OpenAIProvider
from lamina.testing import Limits, MessagesServer

from .long import TOOLS, Work, blocks_of, check_requests, decisions, events, playing, prove, records, stages, without_decisions
from .words import unmarked

pytestmark = pytest.mark.exhaustive

THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1_024}}
FAILURES = ("layer_failed", "fork_failed", "notes_failed", "compaction_failed")


class Waited:
    """An AsyncSession for code that does not await: each call runs the loop until it is done."""

    def __init__(self, session: AsyncSession, run: Callable[[Any], Any]) -> None:
        self._session = session
        self._run = run

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._session, name)
        if not asyncio.iscoroutinefunction(found):
            return found
        return lambda *given, **options: self._run(found(*given, **options))


@contextmanager
def waited(provider: Any, **options: Any) -> Iterator[Session]:
    with asyncio.Runner() as runner:
        session = AsyncSession(provider, **options)
        try:
            yield cast(Session, Waited(session, runner.run))
        finally:
            runner.run(session.close())
            runner.run(provider.aclose())


def messages_at(server: MessagesServer) -> Provider:
    return AnthropicProvider("claude-sonnet-5-5", base_url=server.url, api_key="any", max_retries=0)


def chat_at(server: MessagesServer) -> Provider:
    return OpenAIProvider("gpt-5.5", base_url=server.openai_url, api_key="any", max_retries=0)


class Variant(NamedTuple):
    provider: Callable[[MessagesServer], Provider] = messages_at
    session: Callable[..., Any] = Session
    window: int = 12_000
    thinking: bool = False
    options: Mapping[str, Any] = MappingProxyType({})
    turns: int = 12
    made: frozenset[str] = frozenset({"clearing", "notes", "summary"})
    refusals: int = 0


VARIANTS = {
    "chat completions": Variant(chat_at),
    "async": Variant(session=waited),
    # A provider at an unknown address learns by one refusal that thinking is bound there.
    "bound thinking": Variant(thinking=True, options={"options": THINKING, "max_tokens": 2_500}, refusals=1),
    "lean": Variant(window=24_000, turns=8, options={"policy": "lean"}, made=frozenset({"summary"})),
    "8,000 tokens": Variant(window=8_000, made=frozenset({"summary"})),
}


@pytest.mark.spec("B1", "T9", "K3")
@pytest.mark.parametrize("name", sampled(VARIANTS, 2))
def test_the_same_holds(make_messages_server: Callable[..., MessagesServer], tmp_path: Path, name: str) -> None:
    variant = VARIANTS[name]
    server = make_messages_server(limits=Limits(window=variant.window, bind_thinking=variant.thinking))
    server.answer_with(playing())
    given = {"tools": TOOLS, "system": "Be careful.", "max_tokens": 500, "window": variant.window, **variant.options}
    with (
        closing(cast(Any, variant.provider(server))) as provider,
        variant.session(provider, home=tmp_path, cwd=tmp_path, **given) as session,
    ):
        server.follow(breaks=lambda: [None] * session.status.cache_breaks)
        work = Work(session, server, thinking=variant.thinking)
        work.turns(variant.turns // 2, rounds=3, together=4)
        assert session.compact("Keep the names.").how == "summary"
        work.turns(variant.turns // 2, rounds=3, together=4)
        assert variant.made <= set(prove(session, work))
        assert [(one, events(session, one)) for one in FAILURES if events(session, one)] == []
        check_requests(server, variant.window, refusals=variant.refusals)
        take_all_back(session)


def take_all_back(session: Session) -> None:
    written, made = records(session), decisions(session)
    before = {stage.decision.uuid: [block.wire for item in stage.before for block in item.blocks] for stage in stages(written)}
    for decision in reversed(made):
        assert session.undo().id == decision.uuid
        assert blocks_of(session.messages)[: len(before[decision.uuid])] == before[decision.uuid]
    with pytest.raises(UsageError):
        session.undo()
    assert unmarked(session.messages) == without_decisions(written)
