"""Clearing against a server with a prompt cache: what it costs there, cache edits, the provider's own clearing, bound thinking."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anthropic
import pytest
from msgspec.structs import replace
from tests.session.hosts import lend
from tests.session.plain import AsyncSession, Session

from lamina.conversation import revision
from lamina.core.errors import ServerFault
from lamina.core.policy import CLASSIC
from lamina.core.records import Break
from lamina.providers import Capabilities
from lamina.session.base import conversation_of
from lamina.testing import MessagesServer
from lamina.testing.request_validation import Limits

from .clearing import (
    ABLE,
    LONG,
    READ,
    Told5,
    begun,
    cleared,
    clearings,
    connected,
    events,
    fates,
    numbered,
    opened,
    quiet,
    reading,
    run,
    shown,
    until_cleared,
    work,
)
from .words import records, refused

Make = Callable[..., MessagesServer]
UNABLE = Capabilities("messages", cache_marks=True, thinking=True)
TOOL_USES = {"edits": [{"type": "clear_tool_uses_20250919"}]}
CALLS, TOGETHER = 500, 4
SHORT = "line of a file, nothing special in it\n" * 60


@pytest.mark.exhaustive
@pytest.mark.spec("M2", "B1", "K3")
def test_five_hundred_calls_stay_within_the_window_with_a_receipt_for_every_clearing(
    make_messages_server: Make, tmp_path: Path
) -> None:
    server = make_messages_server(limits=Limits(window=120_000))
    server.answer_with(reading(CALLS // TOGETHER, together=TOGETHER))
    with connected(server, tmp_path, window=120_000, cwd="/") as session:
        session.add_user("Read everything.")
        assert run(session, content=SHORT) == CALLS // TOGETHER
        assert len(shown({"messages": session.messages})) == CALLS
        decisions = clearings(session.path)
        breaks = [record for record in records(session.path) if isinstance(record, Break)]
        assert len(decisions) > 3
        assert [record.reason for record in breaks] == ["clearing"] * len(decisions)
        assert session.status.cache_misses == ()
        for decision in decisions:
            assert {told.fate for told in fates(session.path, decision).values()} == {"kept", "cleared"}
    assert {received.status for received in server.requests} == {200}
    assert len(server.requests) == CALLS // TOGETHER + 1
    # Every break is announced, and between two of them all that was sent before is read from the cache.
    announced = [number for number, received in enumerate(server.requests) if received.breaks]
    assert len(announced) == len(decisions)
    for number, (before, after) in enumerate(itertools.pairwise(server.requests), start=1):
        if number not in announced and before.use is not None and after.use is not None and before.use.total > 1_024:
            assert after.use.read == before.use.read + before.use.write_5m


# M4: cache edits


@pytest.mark.spec("M4")
def test_edits_ride_on_the_request_the_messages_stay_and_the_cache_is_kept(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    messages_server.answer_with(reading(60))
    with connected(messages_server, tmp_path, settings=quiet(cache_edits=True)) as session:
        told = Told5()
        lend(session, observer=told)
        session.add_user("Read everything.")
        assert run(session) == 60
        assert clearings(session.path) == []
        assert session.status.cache_breaks == 0
        assert session.status.cache_misses == ()
        assert not any(content != LONG for content in shown({"messages": session.messages}).values())
    sent = [received.body.get("cache_edits", {}).get("delete", []) for received in messages_server.requests]
    assert sent[20] == []
    assert sent[21] == [f"toolu_{number:04}" for number in range(16)], "the oldest beyond the last five"
    assert all(set(before) <= set(after) for before, after in itertools.pairwise(sent))
    confirmed = [name for data in told.named("clearing") for name in data["ids"]]
    assert confirmed == sent[-1]
    assert all(data["trigger"] == "cache_edits" and data["tokens_saved"] > 0 for data in told.named("clearing"))
    totals = [received.use.total for received in messages_server.requests if received.use]
    assert max(totals) < 30_000, "60 results of 1,000 tokens were sent, and never more than 26 of them counted"
    for received in messages_server.requests[2:]:
        assert received.use is not None
        assert received.use.read > 0.8 * (received.use.total - 1_200)


@pytest.mark.spec("M4")
def test_edits_are_kept_when_the_call_fails_and_by_a_resumed_session(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(reading(21))
    with connected(messages_server, tmp_path, settings=quiet(cache_edits=True)) as session:
        session.add_user("Read everything.")
        run(session)
        session.add_user("More.")
        messages_server.fail(500, times=5)
        with pytest.raises(ServerFault):
            session.ask()
        request = session.before_call()
        name = session.id
    asked = messages_server.requests[-1].body["cache_edits"]
    assert len(asked["delete"]) == 16
    assert request["extra_body"]["cache_edits"] == asked
    with connected(messages_server, tmp_path, settings=quiet(cache_edits=True), resume=name) as session:
        assert session.before_call() == request
        messages_server.answer_with(None)
        session.ask()
    assert messages_server.requests[-1].body["cache_edits"] == asked


@pytest.mark.spec("M4", "M7")
@pytest.mark.parametrize("refuses", [True, False], ids=["refuses the key", "ignores the key"])
def test_a_provider_that_does_not_edit_is_noticed_and_cleared_by_size(
    make_messages_server: Make, tmp_path: Path, refuses: bool
) -> None:
    server = make_messages_server(limits=Limits(cache_edits=not refuses))
    server.answer_with(reading(70))
    with connected(server, tmp_path, settings=quiet(cache_edits=True)) as session:
        if not refuses:
            session.provider = Deaf(session.provider)
        session.add_user("Read everything.")
        assert run(session) == 70
        assert [notice for notice in session.notices if "cache edits" in notice] == [
            "The provider ignored the requested cache edits. From now on, old tool results are cleared by size."
        ]
        assert clearings(session.path)
        name = session.id
    asked = [received for received in server.requests if "cache_edits" in received.body]
    assert len(asked) == 1
    with connected(server, tmp_path, settings=quiet(cache_edits=True), resume=name) as session:
        session.add_user("more")
        assert "cache_edits" not in json.dumps(session.before_call())


class Deaf:
    """A provider whose server does not know what became of the edits."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    def ask(self, request: dict[str, Any], **options: Any) -> Any:
        reply = self._provider.ask(request, **options)
        return replace(reply, notes={key: value for key, value in reply.notes.items() if key != "cache_edits"})


@pytest.mark.spec("M7")
def test_after_a_pause_results_are_cleared_here_and_the_edits_begin_anew(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(reading(24))
    with connected(messages_server, tmp_path, settings=quiet(cache_edits=True, idle_clearing=True)) as session:
        session.add_user("Read everything.")
        run(session)
        assert "cache_edits" in messages_server.requests[-1].body
        session.add_user("Still there?")
        conversation_of(session).use_clock((datetime.now(UTC) + timedelta(hours=2)).isoformat)
        request = session.before_call()
        assert len(cleared(request)) == 19
        assert "extra_body" not in request
        assert events(session.path, "cache_edits")[-1]["ids"] == []


def test_without_the_capability_nothing_is_edited(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(reading(50))
    with connected(messages_server, tmp_path, settings=quiet(cache_edits=True), capabilities=UNABLE) as session:
        session.add_user("Read everything.")
        run(session)
        assert clearings(session.path)
    assert not any("cache_edits" in received.body for received in messages_server.requests)


@pytest.mark.spec("F1", "M4")
def test_edits_switched_off_stay_as_they_are(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(reading(24))
    with connected(messages_server, tmp_path, settings=quiet(cache_edits=True)) as session:
        session.add_user("Read everything.")
        run(session)
        before = messages_server.requests[-1].body["cache_edits"]
        conversation_of(session).settings = quiet()
        messages_server.answer_with(reading(60))
        session.add_user("More.")
        for _ in range(15):
            reply = session.ask()
            session.add_tool_result(reply.tool_uses[0].id, LONG)
    assert messages_server.requests[-1].body["cache_edits"] == before


# M5: the provider's own


@pytest.mark.spec("M5", "M7")
def test_the_provider_clears_by_itself_and_we_neither_clear_nor_edit(messages_server: MessagesServer, tmp_path: Path) -> None:
    policy = replace(CLASSIC, micro=replace(CLASSIC.micro, api_trigger=20_000, api_clear_at_least=10_000))
    messages_server.answer_with(reading(60))
    switches = quiet(api_clearing=True, cache_edits=True)
    with connected(messages_server, tmp_path, settings=switches, policy=policy, window=200_000) as session:
        told = Told5()
        lend(session, observer=told)
        session.add_user("Read everything.")
        assert run(session) == 60
        assert clearings(session.path) == []
        assert session.status.cache_breaks == 0
        asked = messages_server.requests[0].body["context_management"]["edits"]
        assert asked[-1]["trigger"] == {"type": "input_tokens", "value": 20_000}
        told_tokens = [data["tokens_saved"] for data in told.named("clearing")]
        assert told_tokens
        assert told_tokens == sorted(set(told_tokens)), "told when more is cleared, not in every response"
        assert {data["trigger"] for data in told.named("clearing")} == {"provider"}
    assert not any("cache_edits" in received.body for received in messages_server.requests)


@pytest.mark.spec("M5", "M7", "T9")
def test_the_provider_clears_before_compaction_and_size_clearing_is_the_net(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    """In a window of 200,000 the provider's own numbers are beyond the blocking limit."""
    messages_server.answer_with(reading(40))
    with connected(messages_server, tmp_path, settings=quiet(api_clearing=True), window=200_000) as session:
        told = Told5()
        lend(session, observer=told)
        session.add_user("Read everything.")
        assert run(session, content=LONG * 8) == 40
        limits = conversation_of(session).limits
        (asked,) = messages_server.requests[0].body["context_management"]["edits"]
        assert asked["trigger"]["value"] == limits.autocompact * 90 // 100 < limits.warning
        assert asked["clear_at_least"]["value"] < asked["trigger"]["value"]
        assert told.named("clearing"), "somebody clears"
        assert session.window_state.tokens < limits.blocking


@pytest.mark.spec("M2")
def test_a_long_window_is_cleared_long_before_it_is_full(tmp_path: Path) -> None:
    with begun(opened(tmp_path, window=1_000_000)) as session:
        requests = work(session, numbered(28), content=LONG * 8)
        first = next(number for number, request in enumerate(requests) if cleared(request))
        assert (first + 2) * 8_100 >= 180_000
        (made,) = clearings(session.path)
        assert made.tokens_saved >= 20_000


@pytest.mark.spec("M4")
def test_cache_edits_that_the_provider_does_not_have_are_reported_once(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(reading(50))
    with connected(messages_server, tmp_path, capabilities=UNABLE, settings=quiet(cache_edits=True)) as session:
        session.add_user("Read everything.")
        run(session)
        assert session.notices == ["The provider does not support cache edits (lamina.cacheEdits), so they are not used."]
        assert clearings(session.path), "cleared by size instead"


@pytest.mark.spec("M5")
def test_a_callers_own_context_management_wins(tmp_path: Path, messages_server: MessagesServer) -> None:
    own = {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}}
    with connected(messages_server, tmp_path, settings=quiet(api_clearing=True), options=own) as session:
        session.add_user("hello")
        assert session.before_call()["extra_body"]["context_management"] == own["context_management"]


@pytest.mark.spec("M5", "M7")
def test_where_the_provider_cannot_clear_we_do(tmp_path: Path, messages_server: MessagesServer) -> None:
    """Asked for in the options, and left out of the request: then nobody would clear but us."""
    own = {"context_management": TOOL_USES}
    messages_server.answer_with(reading(50))
    with connected(messages_server, tmp_path, capabilities=UNABLE, options=own) as session:
        session.add_user("Read everything.")
        run(session)
        assert clearings(session.path)
    assert not any("context_management" in received.body for received in messages_server.requests)


@pytest.mark.spec("M5")
@pytest.mark.parametrize("asked", [{"settings": quiet(api_clearing=True)}, {"options": {"context_management": TOOL_USES}}])
def test_clearing_by_a_server_that_is_not_known_to_clear_is_reported_once(
    messages_server: MessagesServer, tmp_path: Path, asked: dict[str, Any]
) -> None:
    client = anthropic.Anthropic(api_key="any", base_url=messages_server.url)
    with Session("anthropic:a-model", client=client, home=tmp_path, cwd=tmp_path, window=60_000, **asked) as session:
        session.add_user("hello")
        session.before_call()
        session.before_call()
        assert [notice for notice in session.notices if "lamina.apiClearing" in notice] == [
            "This server is not known to clear old tool results itself (lamina.apiClearing, context_management), so it is not asked to. "
            "Lamina clears them by size instead."
        ]


# Bound thinking


@pytest.mark.spec("C11", "M2")
def test_thinking_bound_to_what_was_cleared_is_dropped_and_the_conversation_goes_on(
    make_messages_server: Make, tmp_path: Path
) -> None:
    server = make_messages_server(limits=Limits(bind_thinking=True))
    server.answer_with(reading(45, thinking="Which file is next?"))
    with connected(server, tmp_path) as session:
        session.add_user("Read everything.")
        while not clearings(session.path):
            session.add_tool_result(session.ask().tool_uses[0].id, LONG)
        revision.undo(conversation_of(session), clearings(session.path)[0].uuid)
        server.answer_with(None)
        session.ask()
    refusals = [received for received in server.requests if received.status == 400]
    assert len(refusals) == 1, "asked once, and from then on as the server wants it"
    assert "bound to a different conversation" in refusals[0].error
    bodies = [received.body for received in server.requests[refusals[0].index + 1 :]]
    drop = {"prefix_mismatch_behavior": "drop_block"}
    assert [body["thinking"] for body in bodies] == [{"type": "adaptive", "block_binding": drop}] * len(bodies)
    assert server.requests[-1].status == 200


def test_models_known_to_bind_are_asked_to_drop_from_the_start(tmp_path: Path) -> None:
    for model, binds in (("claude-sonnet-5-5", True), ("claude-fable-5-1-20261001", True), ("claude-sonnet-4-5", False)):
        with Session(f"anthropic:{model}", home=tmp_path, cwd=tmp_path, settings=quiet()) as session:
            session.add_user("hello")
            request = session.before_call()
            assert ("block_binding" in str(request.get("thinking"))) is binds
            assert ("thinking-binding-controls" in str(request.get("extra_headers"))) is binds
    options = {"thinking": {"type": "disabled"}}
    with Session("anthropic:claude-sonnet-5-5", home=tmp_path, cwd=tmp_path, settings=quiet(), options=options) as session:
        session.add_user("hello")
        assert session.before_call()["thinking"] == {"type": "disabled"}


# The other kind of session


def test_an_async_session_clears_the_same(tmp_path: Path) -> None:
    import asyncio

    with begun(_plain(Session, tmp_path / "a")) as session:
        expected = until_cleared(session)[-1]

    async def same() -> dict[str, Any]:
        async with _plain(AsyncSession, tmp_path / "b") as other:
            other.add_user("look at everything")
            await other.before_call()
            request: dict[str, Any] = {}
            for number in range(len(shown(expected))):
                use = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": f"t{number}.py"}}
                usage = {"input_tokens": max(1, other.window_state.tokens), "output_tokens": 20}
                await other.after_call(
                    {"id": f"m-t{number}", "model": "a", "content": [use], "stop_reason": "tool_use", "usage": usage}
                )
                other.add_tool_result(f"t{number}", LONG)
                request = await other.before_call()
            return request

    request = asyncio.run(same())
    assert cleared(request) == cleared(expected)
    assert refused(request) == []


def _plain(kind: Any, home: Path) -> Any:
    home.mkdir()
    return kind("anthropic:a-model", home=home, cwd=home, window=60_000, system="s", settings=quiet(), tools=[READ])


def test_an_answer_that_says_nothing_of_edits_it_never_carried_changes_nothing(
    tmp_path: Path, messages_server: MessagesServer
) -> None:
    with connected(messages_server, tmp_path, settings=quiet(cache_edits=True), capabilities=ABLE) as session:
        session.add_user("hello")
        session.ask()
        assert session.notices == []
