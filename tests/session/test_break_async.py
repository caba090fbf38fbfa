"""An async session under several tasks, cancelled, closed and aborted in the middle of a compaction, with a client of its event loop."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.session.plain import AsyncSession, Session

from lamina.core.effects import Ask
from lamina.core.errors import Aborted, NotCompacted, SessionClosed
from lamina.core.records import Boundary
from lamina.core.settings import Settings
from lamina.fork.model_call import ask_on_loop
from lamina.layers.l4_compact.plan import Pivot
from lamina.session.base import conversation_of
from lamina.testing import MessagesServer

from .breaking import InHand
from .compacting import LONG, SUMMARY, provider_at, quiet, rounds
from .compacting import opened as compacting
from .noting import answering, asked_for_notes
from .words import records, refused, said

WINDOW = 20_000
PATIENCE = 120.0


def opened(provider: InHand, home: Path, **given: Any) -> AsyncSession:
    return AsyncSession(provider, home=home, cwd=home, window=WINDOW, max_tokens=500, **{"settings": quiet(), **given})


async def filled(session: AsyncSession, provider: InHand) -> None:
    """Up to the threshold: the next call compacts, and its summary waits."""
    while session.window_state.tokens < conversation_of(session).limits.autocompact:
        session.add_user(f"Question {len(provider.asked)} {LONG}")
        await session.ask()
    provider.gate = asyncio.Event()


def boundaries(session: AsyncSession) -> list[Boundary]:
    return [record for record in records(session.path) if isinstance(record, Boundary)]


@pytest.mark.spec("C1")
def test_two_tasks_at_once_make_one_summary_and_send_the_same(tmp_path: Path) -> None:
    async def run() -> None:
        provider = InHand()
        async with opened(provider, tmp_path) as session:
            await filled(session, provider)
            session.add_user("and now?")
            tasks = [asyncio.create_task(session.before_call()) for _ in range(2)]
            await provider.came.wait()
            assert provider.gate is not None
            provider.gate.set()
            first, second = await asyncio.gather(*tasks)
            assert provider.asked.count("summary") == 1
            assert len(boundaries(session)) == 1
            assert said(first["messages"]) == said(second["messages"])

    asyncio.run(run())


@pytest.mark.spec("B1", "B2")
@pytest.mark.parametrize("side", ["all", "from"])
def test_what_is_said_while_a_summary_is_made_stays_in_view(tmp_path: Path, side: str) -> None:
    async def run() -> None:
        provider = InHand()
        async with opened(provider, tmp_path) as session:
            await filled(session, provider)
            items = [item.uuid for item in conversation_of(session).log.view.items]
            pivot = Pivot("from", items[2]) if side == "from" else None
            task = asyncio.create_task(session.compact(pivot=pivot))
            await provider.came.wait()
            late = session.add_user("do not forget this")
            assert provider.gate is not None
            provider.gate.set()
            assert (await task).done
            assert late in [item.uuid for item in conversation_of(session).log.view.items]
            request = await session.before_call()
            assert "do not forget this" in said(request["messages"])
            assert refused(request) == []
            session.undo()
            assert said(session.messages)[-1] == "do not forget this"

    asyncio.run(run())


@pytest.mark.spec("B1")
def test_a_conversation_that_branched_while_its_summary_was_made_keeps_its_history(tmp_path: Path) -> None:
    async def run() -> None:
        provider = InHand()
        async with opened(provider, tmp_path) as session:
            messages: list[Any] = []
            while session.window_state.tokens < conversation_of(session).limits.autocompact:
                messages.append({"role": "user", "content": f"Question {len(messages)} {LONG}"})
                session.sync(messages)
                reply = await session.ask()
                messages.append({"role": "assistant", "content": reply.text})
            provider.gate = asyncio.Event()
            task = asyncio.create_task(session.compact("all of it"))
            await provider.came.wait()
            session.sync([*messages[:4], {"role": "user", "content": "another way"}])
            provider.gate.set()
            with pytest.raises(NotCompacted, match="changed"):
                await task
            assert said(session.messages)[-1] == "another way"
            assert boundaries(session) == []

    asyncio.run(run())


@pytest.mark.spec("B1")
def test_a_cancelled_compaction_changes_nothing_and_the_next_one_works(tmp_path: Path) -> None:
    async def run() -> None:
        provider = InHand()
        async with opened(provider, tmp_path) as session:
            await filled(session, provider)
            session.add_user("and now?")
            before = session.messages
            task = asyncio.create_task(session.before_call())
            waiting = asyncio.create_task(session.before_call())
            await provider.came.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert session.messages == before
            assert provider.gate is not None
            provider.gate.set()
            assert refused(await waiting) == []
            assert len(boundaries(session)) == 1

    asyncio.run(run())


@pytest.mark.parametrize("how", ["close", "abort"])
def test_a_session_that_ends_while_a_summary_is_made_writes_nothing_more(tmp_path: Path, how: str) -> None:
    async def run() -> None:
        provider = InHand()
        session = opened(provider, tmp_path)
        await filled(session, provider)
        session.add_user("and now?")
        task = asyncio.create_task(session.before_call())
        await provider.came.wait()
        if how == "close":
            await session.close()
        else:
            session.abort()
        assert session.path is not None
        before = session.path.read_bytes()
        assert provider.gate is not None
        provider.gate.set()
        with pytest.raises(SessionClosed):
            await task
        assert session.path.read_bytes() == before
        with Session(provider, home=tmp_path, resume=session.id, settings=quiet(), window=WINDOW) as resumed:
            assert said(resumed.messages)[-1] == "and now?"

    asyncio.run(run())


def test_a_session_is_used_in_one_event_loop_after_the_other(tmp_path: Path) -> None:
    provider = InHand()
    session = opened(provider, tmp_path)

    async def turn(words: str) -> None:
        session.add_user(words)
        first, second = await asyncio.gather(session.before_call(), session.before_call())
        assert first["messages"][-1] == second["messages"][-1]
        await session.after_call(provider.ask(first))

    asyncio.run(turn("one"))
    asyncio.run(turn("two"))
    asyncio.run(session.close())
    assert said(session.messages) == ["one", "ok", "two", "ok"]


# A client that knows only its event loop


@pytest.mark.spec("N4")
def test_notes_are_kept_with_an_async_client_alone(messages_server: MessagesServer, tmp_path: Path) -> None:
    anthropic = pytest.importorskip("anthropic")
    answering(messages_server)

    async def run() -> None:
        async with anthropic.AsyncAnthropic(api_key="any", base_url=messages_server.url) as client:
            session = AsyncSession("anthropic:claude-sonnet-5-5", client=client, home=tmp_path, cwd=tmp_path, window=60_000)
            messages_server.follow(breaks=lambda: [None] * session.status.cache_breaks)
            for number in range(6):
                session.add_user(f"Step {number}. {LONG}")
                await session.ask()
            await session.close()
            assert session.path is not None
            assert (session.path.with_suffix("") / "session-memory" / "summary.md").is_file()
            assert [notice for notice in session.notices if "local rules" in notice] == []

    asyncio.run(run())
    assert asked_for_notes(messages_server)


@pytest.mark.spec("O1")
def test_a_plain_session_with_an_async_client_says_once_that_rules_take_the_models_part(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    anthropic = pytest.importorskip("anthropic")
    client = anthropic.AsyncAnthropic(api_key="any", base_url=messages_server.url)
    given: Any = {"client": client, "home": tmp_path, "cwd": tmp_path, "window": WINDOW}
    with Session("anthropic:claude-sonnet-5-5", **given) as session:
        for number in range(8):
            session.add_user(f"Step {number}. {LONG}")
            session.before_call()
            session.after_call(InHand().ask({"messages": session.messages}))
        assert session.compact("all of it").done
        assert len([notice for notice in session.notices if "because the client is async" in notice]) == 1
    assert messages_server.requests == []


def test_a_call_on_a_loop_is_left_by_an_abort_and_by_the_end_of_the_loop() -> None:
    class Never(InHand):
        async def ask_async(self, *_: Any, **__: Any) -> Any:
            entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                left.set()

    entered, left, abort = threading.Event(), threading.Event(), threading.Event()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def stop() -> None:
        entered.wait(PATIENCE)
        abort.set()

    threading.Thread(target=stop).start()
    with pytest.raises(Aborted):
        ask_on_loop(loop, abort, Never(), Ask({"messages": []}, "notes"))
    assert left.wait(PATIENCE)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(PATIENCE)
    loop.close()
    with pytest.raises(Aborted):
        ask_on_loop(loop, threading.Event(), Never(), Ask({"messages": []}, "notes"))


# The plain session


def test_an_abort_from_another_thread_leaves_a_summary_that_is_being_made(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    """The server has begun to answer and takes its time: nobody waits for the rest."""
    held, asked = threading.Event(), threading.Event()

    def note(_: Any) -> bool:
        asked.set()
        return True

    with compacting(messages_server, tmp_path) as session:
        rounds(session, messages_server, 4)
        messages_server.reply(text=SUMMARY, fork="summary", when=note, delay=held)
        raised: list[BaseException] = []

        def compact() -> None:
            try:
                session.compact("all of it")
            except Aborted as error:
                raised.append(error)

        thread = threading.Thread(target=compact)
        thread.start()
        assert asked.wait(PATIENCE)
        ender = threading.Thread(target=session.abort)
        ender.start()
        held.set()
        ender.join(PATIENCE)
        thread.join(PATIENCE)
        assert not thread.is_alive()
        assert raised
        with pytest.raises(SessionClosed):
            session.add_user("too late")


@pytest.mark.parametrize("ended", ["close", "abort"])
def test_no_thread_is_left_behind(messages_server: MessagesServer, tmp_path: Path, ended: str) -> None:
    answering(messages_server)
    before = set(threading.enumerate())
    provider = provider_at(messages_server)
    session = Session(provider, home=tmp_path, cwd=tmp_path, window=60_000, settings=Settings())
    messages_server.follow(breaks=lambda: [None] * session.status.cache_breaks)
    for number in range(6):
        session.add_user(f"Step {number}. {LONG}")
        session.ask()
    getattr(session, ended)()
    provider.close()
    for thread in set(threading.enumerate()) - before:
        # The server's own threads may be just about to start.
        if thread.name.startswith("lamina") and not thread.name.startswith("lamina-testing"):
            thread.join(PATIENCE)
            assert not thread.is_alive(), thread
