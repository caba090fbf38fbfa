"""Clearing by size and after a pause: what goes, what stays, where it lies, and what undo and resume make of it."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.core.histories import examples
from tests.session.hosts import lend
from tests.session.plain import Session

import lamina
from lamina import turn
from lamina.conversation import revision
from lamina.core.policy import CLASSIC, LEAN, Policy
from lamina.core.records import Attachment, Pin, Spill
from lamina.core.settings import Settings
from lamina.layers.l2_micro.step import clearable_in
from lamina.session.base import conversation_of

from .clearing import (
    LONG,
    READ,
    TODO,
    Told5,
    begun,
    called,
    cleared,
    clearings,
    events,
    fates,
    numbered,
    opened,
    quiet,
    results_in,
    shown,
    until_cleared,
    work,
)
from .words import Wire, call, extends, reasons, refused, result

# At a quarter of the full window: considered from 40,000 tokens, 10,000 tokens of results stay, 5,000 must be saved.
UNTIL_FULL = 45


@pytest.mark.spec("M2", "K3", "T9")
def test_when_the_window_fills_up_the_oldest_results_go_and_the_break_is_announced(tmp_path: Path) -> None:
    with begun(opened(tmp_path)) as session:
        told = Told5()
        lend(session, observer=told)
        requests = work(session, numbered(UNTIL_FULL))
        first = next(number for number, request in enumerate(requests) if cleared(request))
        assert [cleared(request) for request in requests[:first]] == [[]] * first
        gone = cleared(requests[first])
        assert gone == numbered(len(gone)), "oldest first"
        left = (first + 1 - len(gone)) * 1_000
        assert 9_000 < left <= 10_000
        assert reasons(session.path) == ["clearing"]
        assert all(extends(one, other) for one, other in zip(requests[first:], requests[first + 1 :], strict=False))
        assert all(refused(request) == [] for request in requests)
        (decision,) = clearings(session.path)
        (data,) = told.named("clearing")
        assert (data["ids"], data["tokens_saved"], data["trigger"]) == (gone, decision.tokens_saved, "size")
        assert decision.tokens_saved > 5_000


@pytest.mark.spec("M2", "B1")
def test_the_original_lies_where_the_marker_says_and_every_record_has_its_fate(tmp_path: Path) -> None:
    with begun(opened(tmp_path)) as session:
        last = work(session, numbered(UNTIL_FULL))[-1]
        (decision,) = clearings(session.path)
        for name, marker in decision.markers.items():
            path = session.path.with_suffix("") / "tool-results" / f"{name}.txt" if session.path else Path()
            assert str(path) in marker
            assert path.read_text() == LONG
            assert shown(last)[name] == marker
        told = fates(session.path, decision)
        assert sum(fate.fate == "cleared" for fate in told.values()) == len(decision.markers)
        assert {fate.fate for fate in told.values()} == {"kept", "cleared"}
        assert {Path(fate.where).name for fate in told.values() if fate.where} == {f"{name}.txt" for name in decision.markers}


@pytest.mark.spec("M1")
def test_only_results_of_clearable_tools_go(tmp_path: Path) -> None:
    with begun(opened(tmp_path, tools=[READ, TODO])) as session:
        for number in range(UNTIL_FULL):
            work(session, [f"todo{number}" if number % 2 else f"read{number}"], tool="TodoWrite" if number % 2 else "Read")
        request = session.before_call()
        assert cleared(request)
        assert all(name.startswith("read") for name in cleared(request))


RUN_TESTS: Wire = {"name": "run_tests", "description": "Runs the tests.", "input_schema": {"type": "object"}}
FIND: Wire = {"type": "custom", "name": "find_person", "input_schema": {"type": "object"}}


@pytest.mark.spec("M8")
@pytest.mark.parametrize(("tool", "name"), [(RUN_TESTS, "run_tests"), (FIND, "find_person")])
def test_under_a_loop_of_its_own_every_tool_of_the_host_is_clearable(tmp_path: Path, tool: Wire, name: str) -> None:
    with begun(opened(tmp_path, tools=[tool])) as session:
        requests = work(session, numbered(UNTIL_FULL), tool=name)
        assert cleared(requests[-1])
        gone = cleared(requests[-1])[0]
        assert session.expand(gone).text.startswith(LONG[:200])


@pytest.mark.spec("M8")
@pytest.mark.parametrize("name", ["run_tests", "mcp__tracker__search", "Skill", "MemorySearch"])
def test_tools_that_the_host_excludes_and_those_of_mcp_servers_and_of_lamina_are_not(tmp_path: Path, name: str) -> None:
    policy = replace(CLASSIC, micro=replace(CLASSIC.micro, kept_tools=CLASSIC.micro.kept_tools | {"run_tests"}))
    with begun(opened(tmp_path, tools=[{**RUN_TESTS, "name": name}], policy=policy)) as session:
        assert not cleared(work(session, numbered(UNTIL_FULL - 3), tool=name)[-1])


@pytest.mark.spec("M8", "M1")
def test_lamina_s_own_agent_has_the_closed_list(tmp_path: Path) -> None:
    with lamina.Agent.open("offline", home=tmp_path, cwd=tmp_path) as agent:
        c = conversation_of(agent.session)
        assert {"TodoWrite", "Bash"} < c.prompt.tool_names
        assert clearable_in(c) == CLASSIC.micro.clearable


def test_a_result_is_decided_once(tmp_path: Path) -> None:
    with begun(opened(tmp_path)) as session:
        work(session, numbered(UNTIL_FULL * 3))
        decisions = clearings(session.path)
        assert len(decisions) > 1
        names = [name for decision in decisions for name in decision.markers]
        assert len(names) == len(set(names))
        assert all(decision.tokens_saved >= 5_000 for decision in decisions)


@pytest.mark.spec("F1")
def test_switched_off_nothing_new_goes_and_what_is_gone_stays(tmp_path: Path) -> None:
    with begun(opened(tmp_path)) as session:
        before = cleared(work(session, numbered(UNTIL_FULL))[-1])
        assert before
        conversation_of(session).settings = quiet(size_clearing=False)
        number = UNTIL_FULL
        while not session.window_state.above_warning:
            assert cleared(work(session, numbered(1, number))[-1]) == before
            number += 1
        assert cleared(session.before_call()) == before
        conversation_of(session).settings = quiet()
        assert len(cleared(session.before_call())) > len(before)


def test_a_session_in_memory_clears_nothing(tmp_path: Path) -> None:
    with begun(Session("anthropic:a-model", in_memory=True, window=60_000, settings=quiet(), tools=[READ])) as session:
        assert cleared(work(session, numbered(40))[-1]) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("M3")
def test_after_an_hour_all_but_the_last_five_go_and_only_once(tmp_path: Path) -> None:
    with begun(opened(tmp_path, settings=quiet(idle_clearing=True))) as session:
        work(session, numbered(12))
        assert clearings(session.path) == []
        later = datetime.now(UTC) + timedelta(minutes=61)
        conversation_of(session).use_clock(later.isoformat)
        request = session.before_call()
        assert cleared(request) == numbered(7)
        assert session.before_call()["messages"] == request["messages"]
        (decision,) = clearings(session.path)
        assert decision.trigger == "idle"
        assert reasons(session.path) == ["clearing"]


@pytest.mark.spec("M3")
def test_the_pause_is_off_unless_enabled_and_a_clock_that_went_back_is_no_pause(tmp_path: Path) -> None:
    for enabled, hours in ((False, 2), (True, -2), (True, -20_000)):
        with begun(opened(tmp_path, settings=quiet(idle_clearing=enabled))) as session:
            work(session, numbered(12))
            conversation_of(session).use_clock((datetime.now(UTC) + timedelta(hours=hours)).isoformat)
            assert cleared(session.before_call()) == []


@pytest.mark.spec("M6")
def test_old_memories_go_in_the_same_pass_and_not_alone(tmp_path: Path) -> None:
    with begun(opened(tmp_path)) as session:
        turn.add_context(conversation_of(session), "relevant_memories", "an old memory")
        for number in range(4):
            work(session, [f"early{number}"])
            session.add_user(f"question {number}")
        turn.add_context(conversation_of(session), "relevant_memories", "a young memory")
        assert "an old memory" in json.dumps(session.before_call())
        request = work(session, numbered(UNTIL_FULL))[-1]
        assert cleared(request)
        assert "an old memory" not in json.dumps(request)
        assert "a young memory" in json.dumps(request)
        decision = clearings(session.path)[0]
        memories = [one.uuid for one in conversation_of(session).store.read() if isinstance(one, Attachment)]
        assert decision.attachments == (memories[0],)
        assert fates(session.path, decision)[memories[0]].fate == "cleared"


@pytest.mark.spec("B1", "M2")
def test_undo_brings_back_every_byte_and_nothing_of_it_is_cleared_again(tmp_path: Path) -> None:
    with begun(opened(tmp_path)) as session:
        requests = until_cleared(session)
        (decision,) = clearings(session.path)
        revision.undo(conversation_of(session), decision.uuid)
        back = session.before_call()
        assert shown(back) == dict.fromkeys(numbered(len(requests)), LONG)
        assert reasons(session.path) == ["clearing", "undo"]
        assert extends(requests[0], back)
        work(session, ["later"])
        assert clearings(session.path) == [decision]
        again = session.id
    with opened(tmp_path, resume=again) as session:
        assert session.window_state.above_warning
        assert cleared(session.before_call()) == []


def test_a_resumed_session_sends_the_same_next_request(tmp_path: Path) -> None:
    with begun(opened(tmp_path)) as session:
        work(session, numbered(UNTIL_FULL))
        session.add_user("and now?")
        expected = copy.deepcopy(session.before_call())
        name = session.id
    with opened(tmp_path, resume=name) as session:
        assert session.before_call() == expected
        assert cleared(expected)
        assert len(clearings(session.path)) == 1


def test_a_resumed_session_counts_as_the_one_that_cleared_did(tmp_path: Path) -> None:
    """Nothing was answered since: every usage in the log measured another view."""
    with begun(opened(tmp_path)) as session:
        until_cleared(session)
        expected, name = session.window_state.tokens, session.id
    with opened(tmp_path, resume=name) as session:
        session.before_call()
        assert session.window_state.tokens == expected


def test_a_clearing_that_is_due_when_a_session_ends_is_made_by_the_next_one(tmp_path: Path) -> None:
    with begun(opened(tmp_path, settings=quiet(size_clearing=False))) as session:
        while not session.window_state.above_warning:
            work(session, [f"t{session.window_state.tokens}"])
        name = session.id
    with opened(tmp_path, resume=name) as session:
        assert len(cleared(session.before_call())) > 25


# Bad input


def test_the_session_goes_on_when_originals_cannot_be_saved_and_says_so_once(tmp_path: Path) -> None:
    with begun(opened(tmp_path)) as session:
        assert session.path is not None
        folder = session.path.with_suffix("") / "tool-results"
        folder.parent.mkdir(exist_ok=True)
        folder.write_text("a file where the directory should be")
        number = 0
        while not session.window_state.above_error or number % 2:
            assert cleared(work(session, numbered(1, number))[-1]) == []
            number += 1
        assert cleared(session.before_call()) == []
        assert len([notice for notice in session.notices if "were not cleared" in notice]) == 1
        assert len(events(session.path, "clearing_failed")) == 1
        folder.unlink()
        assert len(cleared(session.before_call())) > 25, "the disk is back"


def test_a_directory_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    with begun(opened(tmp_path)) as session:
        work(session, numbered(UNTIL_FULL))
        assert session.path is not None
        folder = session.path.with_suffix("") / "tool-results"
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        work(session, numbered(UNTIL_FULL, UNTIL_FULL))
        assert len(clearings(session.path)) > 1
        later = {name for decision in clearings(session.path)[1:] for name in decision.markers}
        assert later == {file.stem for file in folder.iterdir()}


def test_empty_results_errors_and_images(tmp_path: Path) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA" * 500}}
    with begun(opened(tmp_path)) as session:
        work(session, ["empty"], content="")
        called(session, "failed")
        session.add_tool_result("failed", LONG, is_error=True)
        session.before_call()
        work(session, ["picture"], content=[{"type": "text", "text": "a chart"}, image])
        request = work(session, numbered(UNTIL_FULL))[-1]
        assert refused(request) == []
        assert cleared(request)[:3] == ["failed", "picture", "t0"]
        assert results_in(session)["failed"].is_error
        assert session.path is not None
        saved = json.loads((session.path.with_suffix("") / "tool-results" / "picture.json").read_text())
        assert saved[1] == image


def test_a_call_id_that_is_no_file_name_is_no_way_out_of_the_directory(tmp_path: Path) -> None:
    names = ["../../evil", "a/b", "CON", "x" * 300, "é"]
    with begun(opened(tmp_path)) as session:
        work(session, names)
        assert cleared(work(session, numbered(UNTIL_FULL))[-1])[:5] == names
        assert session.path is not None
        folder = session.path.with_suffix("") / "tool-results"
        assert len(list(folder.iterdir())) == len(clearings(session.path)[0].markers)
    assert not list(tmp_path.rglob("*evil*"))


def test_results_that_came_in_one_message_are_cleared_one_by_one(tmp_path: Path) -> None:
    request: Wire = {}
    with begun(opened(tmp_path)) as session:
        for start in range(0, UNTIL_FULL, 5):
            usage = {"input_tokens": max(1, session.window_state.tokens), "output_tokens": 20}
            names = numbered(5, start)
            session.after_call(
                {
                    "id": f"m{start}",
                    "model": "a-model",
                    "content": [call(name) for name in names],
                    "stop_reason": "tool_use",
                    "usage": usage,
                }
            )
            for name in names:
                session.add_tool_result(name, LONG)
            request = session.before_call()
            assert refused(request) == []
        assert cleared(request)
        told = fates(session.path, clearings(session.path)[0])
        assert "cleared" in {fate.fate for fate in told.values()}


def test_a_pinned_result_stays(tmp_path: Path) -> None:
    with begun(opened(tmp_path)) as session:
        called(session, "dear")
        record = session.add_tool_result("dear", LONG)
        session.before_call()
        uuid, parent, time = conversation_of(session).head()
        conversation_of(session).append([Pin(uuid, parent, time, target=record)])
        request = work(session, numbered(UNTIL_FULL))[-1]
        assert cleared(request)
        assert shown(request)["dear"] == LONG


def test_a_history_that_the_caller_owns_is_cleared_on_our_side_only(tmp_path: Path) -> None:
    theirs: list[Wire] = [{"role": "user", "content": [{"type": "text", "text": "go"}]}]
    request: Wire = {}
    with opened(tmp_path) as session:
        for name in numbered(60):
            theirs.append({"role": "assistant", "content": [call(name)]})
            theirs.append({"role": "user", "content": [result(name, LONG)]})
            session.sync(theirs)
            request = session.before_call()
        assert cleared(request)
        assert all(message["content"][0].get("content", LONG) == LONG for message in theirs[1:])
        assert session.status.cache_breaks == len(clearings(session.path)) == reasons(session.path).count("clearing")


def spilling(home: Path) -> Session:
    policy = replace(CLASSIC, results=replace(CLASSIC.results, default=12_000))
    switches = Settings(auto_compact=False, session_notes=False)
    return opened(home, policy=policy, settings=switches)


def test_a_spilled_result_is_cleared_to_the_file_it_has(tmp_path: Path) -> None:
    with begun(spilling(tmp_path)) as session:
        request = work(session, numbered(90))[-1]
        assert cleared(request)
        spilled = {one.tool_use_id: one for one in conversation_of(session).log.decisions.values() if isinstance(one, Spill)}
        for name in cleared(request):
            assert spilled[name].path in shown(request)[name]
            assert Path(spilled[name].path).read_text() == LONG
        assert len(list(Path(spilled["t0"].path).parent.iterdir())) == 90


def test_a_spilled_result_whose_record_is_lost_keeps_its_file(tmp_path: Path) -> None:
    """The checkpoint still knows the preview; only the file's name is left to go by, and a preview is never saved as the original."""
    with begun(spilling(tmp_path)) as session:
        work(session, numbered(40))
        conversation_of(session).log.decisions.clear()
        request = work(session, numbered(50, 40))[-1]
        assert len(cleared(request)) > 40
        for name in cleared(request):
            path = shown(request)[name].split(" is in ")[1].split(" and can")[0]
            assert Path(path).name == f"{name}.txt"
            assert Path(path).read_text() == LONG


# Lean: only where it pays


def lean(**window: int) -> Policy:
    return replace(LEAN, window=replace(CLASSIC.window, **window))


@pytest.mark.parametrize(("minutes", "expected"), [(0, False), (6, True)])
def test_a_clearing_that_must_pay_waits_for_a_cold_cache(tmp_path: Path, minutes: int, expected: bool) -> None:
    """Much that stays behind the results and no calls left before the limit: only a cold cache makes it worth while."""
    with begun(opened(tmp_path, policy=lean(warning_offset=100_000))) as session:
        work(session, numbered(16))
        session.add_user("words that stay " * 3_000)
        conversation_of(session).use_clock((datetime.now(UTC) + timedelta(minutes=minutes)).isoformat)
        assert bool(cleared(session.before_call())) is expected


def test_a_clearing_that_pays_is_made_while_the_cache_is_warm(tmp_path: Path) -> None:
    with begun(opened(tmp_path, policy=lean())) as session:
        assert cleared(work(session, numbered(UNTIL_FULL))[-1])


# Any order of events


STEPS = st.lists(
    st.tuples(st.sampled_from(["read", "todo", "say", "undo", "off", "on", "resume", "pause"]), st.integers(0, 3_000)),
    max_size=25,
)


@examples(24)
@given(steps=STEPS)
def test_whatever_happens_every_request_is_valid_and_every_break_is_announced(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    home = tmp_path_factory.mktemp("home")
    switches = Settings(auto_compact=False, session_notes=False, spill=False, idle_clearing=True)
    session = begun(opened(home, window=12_000, tools=[READ, TODO], settings=switches))
    hours = 0
    for number, (kind, size) in enumerate(steps):
        match kind:
            case "read" | "todo" if not session.window_state.at_blocking:
                session.before_call()
                called(session, f"c{number}", "Read" if kind == "read" else "TodoWrite")
                session.add_tool_result(f"c{number}", "x" * size * 4)
            case "say" if not session.window_state.at_blocking:
                session.add_user(f"words {number}")
            case "undo" if found := list(conversation_of(session).log.decisions):
                revision.undo(conversation_of(session), found[size % len(found)])
            case "off" | "on":
                conversation_of(session).settings = replace_switch(on=kind == "on")
            case "pause":
                hours += 2
                conversation_of(session).use_clock((datetime.now(UTC) + timedelta(hours=hours)).isoformat)
            case "resume":
                session.close()
                session = opened(home, window=12_000, tools=[READ, TODO], settings=switches, resume=session.id)
            case _:
                pass
        if not session.window_state.at_blocking:
            assert refused(session.before_call()) == []
    assert "unexplained" not in reasons(session.path)
    for decision in clearings(session.path):
        assert fates(session.path, decision)
    session.close()


def replace_switch(*, on: bool) -> Settings:
    return Settings(auto_compact=False, session_notes=False, spill=False, idle_clearing=on, size_clearing=on)
