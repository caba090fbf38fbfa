"""Results that are shown once: whole to the first complete answer after them, then always as their preview."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.session.plain import Session

from lamina import turn
from lamina.conversation import forks, revision
from lamina.conversation.window.count import recount
from lamina.core.cache import ONCE_HEADER, SESSION_HEADER
from lamina.core.effects import drive
from lamina.core.errors import ServerFault
from lamina.core.policy import BALANCED, CLASSIC, LEAN, THRIFTY, OncePolicy
from lamina.core.settings import Settings
from lamina.core.view import Item
from lamina.fork.fork import run_fork
from lamina.history.explanation import explain
from lamina.history.session_stats import session_stats
from lamina.providers.anthropic import AnthropicProvider
from lamina.providers.openai import OpenAIProvider
from lamina.session.base import working
from lamina.testing import MessagesServer, Received
from lamina.testing.script import Answer

from .breaking import InHand
from .spills import asked, contents, directory, logged, spills, use
from .words import EXPAND, GREP, READ, Wire, answer, cut_off, extends, marks, reasons, records, refused, result, unmarked

Make = Callable[..., MessagesServer]
POLICY = replace(CLASSIC, once=OncePolicy(from_chars=1_500, preview=500))
LONG = "".join(f"{line:05} a line of the output\n" for line in range(220))  # 6,380 characters
BASH: Wire = {"name": "Bash", "description": "Runs a command.", "input_schema": {"type": "object"}}
# A model that does not bind its thinking to everything before it.
MODEL = "anthropic:claude-sonnet-4-6"


def opened(home: Path, provider: Any = MODEL, **more: Any) -> Session:
    given = {"policy": POLICY, "settings": quiet(), "system": "Be brief.", "tools": [READ, BASH, GREP], "max_tokens": 500, **more}
    return Session(provider, home=home, cwd=home, **given)


def quiet(**switches: bool) -> Settings:
    """Settings under which only layer 1 works."""
    return Settings(**{"auto_compact": False, "session_notes": False, "size_clearing": False, **switches})


def preview_of(session: Session, call: str) -> str:
    return next(one.preview for one in spills(session) if one.tool_use_id == call)


def seen(session: Session, number: int = 1) -> None:
    """A complete answer to the next request, and a new question."""
    session.before_call()
    session.after_call(answer(f"seen-{number}", "I see."))
    session.add_user(f"Question {number}")


@pytest.mark.spec("P3", "R3")
def test_a_long_result_is_sent_whole_until_a_complete_answer_and_then_always_as_its_preview(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        asked(session, use("a", "Bash"))
        session.add_tool_result("a", LONG)
        (made,) = spills(session)
        assert made.once
        assert Path(made.path).read_text() == LONG
        first = session.before_call()
        assert contents(first)["a"] == LONG
        session.after_call(answer("m1", "I see."))
        session.add_user("and now?")
        shown = contents(session.before_call())["a"]
        assert shown == made.preview
        assert LONG.startswith(shown.partition("It begins:\n")[2].removesuffix("\n</persisted-output>"))
        assert len(shown) < 900
        seen(session)
        last = session.before_call()
        assert contents(last)["a"] == shown
        assert reasons(session.path) == []
        assert session.expand("a").text == LONG
    with opened(tmp_path, resume=session.id) as again:
        assert again.before_call() == last


@pytest.mark.spec("P3")
def test_which_results_are_shown_once_is_decided_on_arrival(tmp_path: Path) -> None:
    calls = [use("bash", "Bash"), use("read"), use("short", "Bash"), use("error", "Bash"), use("picture", "Bash")]
    calls[1]["name"] = "Read"
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    with opened(tmp_path) as session:
        asked(session, *calls)
        session.add_tool_result("bash", LONG)
        session.add_tool_result("read", LONG)
        session.add_tool_result("short", LONG[:1_400])
        session.add_tool_result("error", LONG, is_error=True)
        session.add_tool_result("picture", [{"type": "text", "text": LONG}, image])
        seen(session)
        shown = contents(session.before_call())
        assert [name for name, content in shown.items() if "shown once" in str(content)] == ["bash"]
        assert [one.tool_use_id for one in spills(session)] == ["bash"]
    assert (BALANCED.once.from_chars, THRIFTY.once.from_chars, THRIFTY.once.preview) == (20_000, 1_500, 500)
    assert not CLASSIC.once.from_chars
    assert not LEAN.once.from_chars


@pytest.mark.spec("P3", "K1")
def test_of_parallel_results_those_shown_once_come_last_and_the_last_mark_is_before_them(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        asked(session, use("a", "Bash"), use("b", "Read"), use("c", "Bash"), use("d", "Grep"))
        for name, content in (("a", LONG), ("b", LONG), ("c", LONG), ("d", "found")):
            session.add_tool_result(name, content)
        session.add_user("and this")
        first = session.before_call()
        assert refused(first) == []
        assert list(contents(first)) == ["b", "d", "a", "c"]
        assert first["messages"][-1]["content"][-1]["type"] == "text"
        assert marks(first)[-1] == "messages.2.1"
        assert first["extra_headers"][ONCE_HEADER] == "a"
        session.after_call(answer("m1", use("e", "Bash")))
        session.add_tool_result("e", LONG)
        second = session.before_call()
        assert extends(first, second)
        assert list(contents(second)) == ["b", "d", "a", "c", "e"]
        assert [name for name, content in contents(second).items() if content == LONG] == ["b", "e"]
        # The first is where the last request ended, the second on the call before the result.
        assert marks(second)[-2:] == ["messages.2.1", "messages.3.0"]
        assert reasons(session.path) == []


@pytest.mark.spec("P3")
def test_an_answer_that_was_cut_off_or_paused_leaves_the_result_whole(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        asked(session, use("a", "Bash"))
        session.add_tool_result("a", LONG)
        first = session.before_call()
        again = session.before_call()  # the call failed, and is made again
        assert again == first
        session.after_call(answer("m1", "wait", stop="pause_turn"))
        paused = session.before_call()
        assert contents(paused)["a"] == LONG
        assert marks(paused)[-1] == marks(first)[-1]
        session.after_call(cut_off("m2", "I s"))
        session.add_user("go on")
        whole = session.before_call()
        assert contents(whole)["a"] == LONG
        assert marks(whole)[-1] == marks(first)[-1]
        session.after_call(answer("m3", "I see."))
        session.add_user("and now?")
        last = session.before_call()
        assert contents(last)["a"] == preview_of(session, "a")
        assert extends(whole, last)
        assert reasons(session.path) == []


@pytest.mark.spec("P3", "K3")
def test_a_branch_before_the_answer_shows_the_result_whole_again_and_is_announced(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        asked(session, use("a", "Bash"))
        session.add_tool_result("a", LONG)
        with working(session) as c:
            came = c.log.view.items[-1].uuid
        first = session.before_call()
        seen(session)
        session.before_call()
        with working(session) as c:
            revision.rewind(c, came)
        again = session.before_call()
        assert unmarked(again["messages"]) == unmarked(first["messages"])
        assert reasons(session.path) == ["branch"]
    with opened(tmp_path, resume=session.id) as resumed:
        assert contents(resumed.before_call())["a"] == LONG


@pytest.mark.spec("P3", "B2")
def test_a_result_that_replaces_a_rewound_one_is_not_shown_as_the_old_preview(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        asked(session, use("a", "Bash"))
        with working(session) as c:
            called = c.log.view.items[-1].uuid
        session.add_tool_result("a", LONG)
        seen(session)
        with working(session) as c:
            revision.rewind(c, called)
        session.add_tool_result("a", LONG[::-1])
        assert contents(session.before_call())["a"] == LONG[::-1]
        seen(session, 2)
        assert contents(session.before_call())["a"] == spills(session)[-1].preview


def bounds(items: list[Item]) -> int:
    return sum(len(item.whole) for item in items)


@pytest.mark.spec("P3", "T1", "T10")
def test_the_count_is_what_was_reported_less_the_difference_to_the_preview(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        asked(session, use("a", "Bash"))
        session.add_tool_result("a", LONG)
        session.before_call()
        before = session.window_state.tokens
        usage = {"input_tokens": before, "output_tokens": 10}
        session.after_call(answer("m1", "I see.", usage=usage))
        gone = (len(LONG) - len(preview_of(session, "a"))) / 3
        assert before + 10 - 2 * gone < session.window_state.tokens < before + 10 - gone / 2
        for number in range(2, 6):
            session.add_user("again")
            asked(session, use(f"a{number}", "Bash"))
            session.add_tool_result(f"a{number}", LONG)
            with working(session) as c:
                assert recount(c.log.view, c.memo) == c.count
            session.before_call()
            reported = {"input_tokens": session.window_state.tokens + 7 * number, "output_tokens": 10} if number != 4 else None
            session.after_call(answer(f"m{number}", "I see.") | {"usage": reported})
            with working(session) as c:
                assert recount(c.log.view, c.memo) == c.count
                assert bounds(c.log.view.items) == number
        tokens = session.window_state.tokens
    with opened(tmp_path, resume=session.id) as again:
        assert again.window_state.tokens == tokens


@pytest.mark.spec("P3", "R2")
def test_without_a_file_a_result_is_kept_whole(tmp_path: Path) -> None:
    with opened(tmp_path, in_memory=True) as session:
        asked(session, use("a", "Bash"))
        session.add_tool_result("a", LONG)
        seen(session)
        assert contents(session.before_call())["a"] == LONG
    with opened(tmp_path) as session:
        asked(session, use("a", "Bash"))
        os.makedirs(directory(session).parent, exist_ok=True)
        directory(session).write_text("in the way")
        session.add_tool_result("a", LONG)
        seen(session)
        request = session.before_call()
        assert contents(request)["a"] == LONG
        assert ONCE_HEADER not in request.get("extra_headers", {})
        assert spills(session) == []
        assert any("tool results stay in the conversation" in notice for notice in session.notices)


@pytest.mark.spec("P3", "F1")
def test_nothing_is_shown_once_while_the_model_binds_its_thinking_or_spilling_is_off(tmp_path: Path) -> None:
    """With thinking switched off there is none to lose."""
    ways: list[tuple[str, Wire, bool]] = [
        ("anthropic:claude-sonnet-5-5", {}, False),
        ("anthropic:claude-sonnet-5-5", {"options": {"thinking": {"type": "disabled"}}}, True),
        (MODEL, {"settings": quiet(spill=False)}, False),
    ]
    for model, more, expected in ways:
        with opened(tmp_path, model, **more) as session:
            asked(session, use("a", "Bash"))
            session.add_tool_result("a", LONG)
            assert bool(spills(session)) is expected, (model, more)
    provider = AnthropicProvider("claude-sonnet-6", api_key="any")
    with opened(tmp_path, provider) as session:
        asked(session, use("a", "Bash"))
        session.add_tool_result("a", LONG)
        assert len(spills(session)) == 1
        assert provider._adapt(ServerFault("thinking is bound to a different conversation"))  # type: ignore[arg-type]
        session.before_call()
        session.after_call(answer("m1", use("b", "Bash")))
        session.add_tool_result("b", LONG)
        assert len(spills(session)) == 1, "what the server refused is learned"


@pytest.mark.spec("P3", "R1")
def test_results_that_do_not_fit_together_are_spilled_even_if_they_were_to_be_shown_once(tmp_path: Path) -> None:
    policy = replace(POLICY, results=replace(POLICY.results, per_message=10_000))
    with opened(tmp_path, policy=policy) as session:
        asked(session, use("a", "Bash"), use("b", "Bash"))
        session.add_tool_result("a", LONG)
        session.add_tool_result("b", LONG)
        first = contents(session.before_call())
        assert sorted(len(content) for content in first.values())[0] < 3_000
        assert [content for content in first.values() if content == LONG] == [LONG]
        seen(session)
        second = session.before_call()
        assert refused(second) == []
        assert reasons(session.path) == []
        with working(session) as c:
            assert c.log.view.flat.unseen == {}


@pytest.mark.spec("P3", "M3")
def test_a_clearing_of_its_preview_names_the_file_and_is_undone_to_the_preview(tmp_path: Path) -> None:
    policy = replace(POLICY, micro=replace(CLASSIC.micro, idle_keep=1))
    with opened(tmp_path, policy=policy, settings=quiet(idle_clearing=True)) as session:
        asked(session, use("a", "Bash"), use("b", "Bash"))
        session.add_tool_result("a", LONG)
        session.add_tool_result("b", LONG)
        seen(session, 1)
        seen(session, 2)
        before = unmarked(session.messages)
        with working(session) as c:
            c.use_clock(lambda: "2099-01-01T00:00:00.000Z")
        shown = contents(session.before_call())
        assert shown["a"].startswith("[Cleared")
        assert spills(session)[0].path in shown["a"]
        assert shown["b"] == preview_of(session, "b")
        assert [path.name for path in sorted(directory(session).iterdir())] == ["a.txt", "b.txt"]
        assert reasons(session.path) == ["clearing"]
        session.undo()
        assert unmarked(session.messages) == before
        assert session.expand("a").text == LONG


@pytest.mark.spec("P3", "C4")
def test_a_compaction_that_keeps_an_unseen_result_keeps_it_whole_and_a_resume_too(tmp_path: Path) -> None:
    policy = replace(POLICY, compact=replace(POLICY.compact, tail_min=2_000, tail_max=4_000))
    provider = InHand()
    with opened(tmp_path, provider, policy=policy) as session:
        for number in range(4):
            session.add_user(f"Question {number}")
            session.before_call()
            session.after_call(answer(f"q{number}", "An answer. " + "word " * 2_000))
        asked(session, use("a", "Bash"))
        session.add_tool_result("a", LONG)
        session.compact()
        assert contents(session.before_call())["a"] == LONG
        name = session.id
    with opened(tmp_path, provider, policy=policy, resume=name) as again:
        assert contents(again.before_call())["a"] == LONG
        seen(again)
        assert contents(again.before_call())["a"] == preview_of(again, "a")
        messages = unmarked(again.messages)
    with opened(tmp_path, provider, policy=policy, resume=name) as last:
        assert unmarked(last.messages) == messages


@pytest.mark.spec("P3")
def test_a_list_of_the_callers_own_keeps_matching_the_log(tmp_path: Path) -> None:
    rows: list[Wire] = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [use("a", "Bash")]},
        {"role": "user", "content": [result("a", LONG)]},
    ]
    with opened(tmp_path) as session:
        session.sync(rows)
        assert contents(session.before_call())["a"] == LONG
        rows = [*rows, {"role": "assistant", "content": [use("b", "Bash")]}, {"role": "user", "content": [result("b", LONG)]}]
        session.sync(rows)
        shown = contents(session.before_call())
        assert (shown["a"], shown["b"]) == (preview_of(session, "a"), LONG)
        assert session.notices == []
        assert len(logged(session)) == 2


@pytest.mark.spec("P3", "B2")
def test_explain_and_statistics_name_what_was_shown_once(tmp_path: Path) -> None:
    with opened(tmp_path, tools=[BASH, EXPAND]) as session:
        asked(session, use("a", "Bash"))
        session.add_tool_result("a", LONG)
        seen(session)
        session.before_call()
        session.after_call(answer("m9", "Good."))
        written = records(session.path)
        whole, preview = (
            next(piece.why for piece in explain(written, number, lambda block: 1).pieces if piece.kind.startswith("result"))
            for number in (2, 3)
        )
        path = spills(session)[0].path
        assert whole == f"shown whole once; later requests show a preview, and the full text is in {path}"
        assert preview == f"preview of a result that was shown once; the full text is in {path}"
        stats = session_stats(written)
        assert (stats.spills, stats.shown_once) == (0, 1)
        assert stats.saved["results"] > 1_000


def test_a_switch_to_a_model_that_binds_its_thinking_sends_a_valid_request(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        asked(session, use("a", "Bash"))
        session.add_tool_result("a", LONG)
        session.before_call()
        session.switch_model(AnthropicProvider("claude-sonnet-5-5", api_key="any"))
        request = session.before_call()
        assert (refused(request), contents(request)["a"]) == ([], LONG)
        session.after_call(answer("m1", use("b", "Bash")))
        session.add_tool_result("b", LONG)
        shown = contents(session.before_call())
        assert (shown["a"], shown["b"]) == (preview_of(session, "a"), LONG)
        assert reasons(session.path) == ["model"]


# Against a server with a prompt cache


def calling(rounds: int) -> Callable[[Received], Answer | str]:
    """Two calls an answer: a command with a long output, and a file."""
    made = iter(range(rounds))

    def reply(received: Received) -> Answer | str:
        if received.fork or (number := next(made, None)) is None:
            return "Done."
        return Answer(blocks=(use(f"toolu_a{number}", "Bash"), use(f"toolu_b{number}", "Read")), stop_reason="tool_use")

    return reply


@contextmanager
def working_with(server: MessagesServer, home: Path, *, chat: bool = False, **more: Any) -> Iterator[Session]:
    """A session that has made six rounds of calls."""
    server.answer_with(calling(6))
    make, model, url = (
        (OpenAIProvider, "gpt-5", f"{server.url}/v1") if chat else (AnthropicProvider, "claude-sonnet-4-6", server.url)
    )
    provider = make(model, base_url=url, api_key="any", max_retries=0)
    with opened(home, provider, system="Be brief. " * 600, **more) as session:
        session.add_user("Run everything.")
        while calls := session.ask().tool_uses:
            for call in calls:
                session.add_tool_result(call.id, LONG if call.name == "Bash" else LONG[:600])
        yield session
    provider.close()


def units(server: MessagesServer) -> float:
    uses = [received.use for received in server.requests if received.use is not None and not received.fork]
    return sum(0.1 * use.read + 1.25 * use.write_5m + use.plain for use in uses)


@pytest.mark.spec("P3", "K1", "K3")
def test_showing_results_once_costs_less_and_no_cached_token_is_lost(make_messages_server: Make, tmp_path: Path) -> None:
    kept, once = make_messages_server(), make_messages_server()
    with working_with(kept, tmp_path, policy=CLASSIC):
        pass
    with working_with(once, tmp_path) as session:
        assert session.status.cache_misses == ()
        assert session.status.cache_breaks == 0
        uses = [received.use for received in once.requests if received.use is not None]
        for before, after in pairwise(uses):
            assert after.read == before.read + before.write_5m
        assert units(once) < 0.9 * units(kept)
        with working(session) as c:
            handed = forks.hand_over(c)
            outcome = drive(run_fork(handed, "Summarise.", purpose="summary"), forks.side(c))
        assert outcome.first.cache_read == outcome.readable
        fork = once.requests[-1]
        assert not any(block.get("content") == LONG for message in fork.messages for block in message["content"])


@pytest.mark.spec("P3", "K2")
def test_an_automatic_cache_is_expected_to_be_read_up_to_the_result(make_messages_server: Make, tmp_path: Path) -> None:
    server = make_messages_server()
    with working_with(server, tmp_path, chat=True) as session:
        assert session.status.cache_misses == ()
        server.answer_with(lambda received: Answer(blocks=(use("toolu_z", "Bash"),), stop_reason="tool_use"))
        session.add_user("Once more.")
        session.ask()
        session.add_tool_result("toolu_z", LONG * 2)
        server.answer_with(lambda received: "Done.")
        # The first answer is lost, so the cache holds the whole result when the request is sent again.
        with working(session) as c:
            session.provider.ask(drive(turn.before_call(c), session._perform))
        session.ask()
        session.add_user("And now?")
        session.ask()
        read = [received.use.read for received in server.requests if received.use is not None]
        assert read[-1] < read[-2] - 2_000
        assert session.status.cache_misses == ()
        assert session.status.cache_breaks == 0


@pytest.mark.prefix_free("the rule is broken on purpose")
def test_the_prefix_rule_knows_results_that_are_shown_once(make_messages_server: Make) -> None:
    from lamina.testing.prefix_rule import check_prefixes

    server = make_messages_server()
    provider = AnthropicProvider("claude-sonnet-4-6", base_url=server.url, api_key="any", max_retries=0)
    mark = {"cache_control": {"type": "ephemeral"}}

    def send(content: str, *, marked: bool = False, once: bool = True, said: str = "look") -> list[str]:
        block = result("a", content) | (mark if marked else {})
        messages = [
            {"role": "user", "content": [{"type": "text", "text": said}]},
            {"role": "assistant", "content": [use("a", "Bash")]},
            {"role": "user", "content": [block]},
        ]
        headers = {SESSION_HEADER: "s"} | ({ONCE_HEADER: "a"} if once else {})
        server.answer_with(lambda received: "Done.")
        request = {"model": "claude-sonnet-4-6", "max_tokens": 9, "tools": [BASH], "messages": messages, "extra_headers": headers}
        provider.ask(request)
        return [violation.sentence for violation in check_prefixes(server.requests)]

    assert send("whole") == []
    assert send("preview") == []
    assert "a cache mark on messages.2.content.0" in send("preview", marked=True)[0]
    assert len(send("another", once=False)) == 1
    assert "messages.2.content.0 was tool_result" in send("changed", once=False)[-1]
    assert "messages.0.content.0 was text" in send("changed", said="see")[-1]
    provider.close()
