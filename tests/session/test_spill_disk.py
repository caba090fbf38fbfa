"""Layer 1 without a disk, with a disk that fails and comes back, in windows of every size, and switched off."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.session.plain import Session

from lamina.core.blocks import tool_result
from lamina.core.errors import DiskError, WindowFull
from lamina.core.policy import ResultPolicy
from lamina.core.settings import Settings, resolve
from lamina.disk.crash_points import watched
from lamina.layers.l1_results.plan import budget_for
from lamina.layers.l1_results.reopen import open_spill
from lamina.session.base import add_results, conversation_of
from lamina.testing import MessagesServer

from .compacting import provider_at
from .spills import LINES, asked, contents, directory, events, hand_in, logged, spills, use
from .words import Wire, answer, refused

ALONE = Settings(auto_compact=False, size_clearing=False, session_notes=False)


@contextmanager
def failing(code: int, *, at: str = "spill.write", after: int = 0) -> Iterator[None]:
    """Every call of this name fails, but for the first ones."""
    left = after

    def watch(name: str, _: int) -> None:
        nonlocal left
        if name == at:
            left -= 1
            if left < 0:
                raise OSError(code, os.strerror(code))

    with watched(watch):
        yield


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EDQUOT], ids=errno.errorcode.get)
@pytest.mark.parametrize("at", ["spill.write", "temp.create", "dir.child", "temp.rename"])
def test_where_nothing_can_be_written_a_result_stays_whole_and_the_person_is_told_once(code: int, at: str) -> None:
    with Session("offline", settings=ALONE) as session:
        asked(session, use("a"), use("b"), use("c"))
        with failing(code, at=at):
            session.add_tool_result("a", "a" * 60_000)
            hand_in(session, "b", io.BytesIO(b"b" * 60_000))
        shown = contents(session.before_call())
        assert shown["a"] == "a" * 60_000
        assert shown["b"] == "b" * 60_000
        assert sum("large tool results stay" in notice for notice in session.notices) == 1
        assert len(events(session, "spill_failed")) == 1
        assert spills(session) == []
        assert not directory(session).exists() or list(directory(session).iterdir()) == []


def test_when_the_disk_is_back_it_works_again_and_the_next_failure_is_told_again() -> None:
    with Session("offline", settings=ALONE) as session:
        asked(session, *(use(name) for name in "abcd"))
        with failing(errno.ENOSPC):
            session.add_tool_result("a", "a" * 60_000)
            session.add_tool_result("b", "b" * 60_000)
        session.add_tool_result("c", "c" * 60_000)
        assert [spill.tool_use_id for spill in spills(session)] == ["c"]
        with failing(errno.ENOSPC):
            session.add_tool_result("d", "d" * 60_000)
        assert sum("large tool results stay" in notice for notice in session.notices) == 2


def test_a_directory_deleted_in_mid_session_is_made_again_and_what_was_in_it_is_missed_by_name() -> None:
    with Session("offline", settings=ALONE) as session:
        asked(session, use("a"), use("b"))
        session.add_tool_result("a", LINES)
        shutil.rmtree(directory(session).parent)
        session.add_tool_result("b", LINES)
        assert (directory(session) / "b.txt").read_text() == LINES
        gone, there = spills(session)
        with pytest.raises(DiskError, match=r"a\.txt: the file with the complete result is missing; only the preview"):
            open_spill(gone)
        assert open_spill(there) == LINES


def test_a_file_that_was_changed_is_not_taken_for_the_result() -> None:
    with Session("offline", settings=ALONE) as session:
        asked(session, use("a"))
        session.add_tool_result("a", LINES)
        (spill,) = spills(session)
        Path(spill.path).write_text(LINES.replace("line 5\n", "LINE 5\n"))
        with pytest.raises(DiskError, match="checksum mismatch"):
            open_spill(spill)


def test_files_that_moved_with_their_session_are_found() -> None:
    with Session("offline", settings=ALONE) as session:
        asked(session, use("a"))
        session.add_tool_result("a", LINES)
        (spill,) = spills(session)
        moved = directory(session).parent.with_name("moved")
        directory(session).parent.rename(moved)
        assert open_spill(spill, moved) == LINES


@pytest.mark.parametrize("given", ["str", "bytes", "stream"])
def test_what_cannot_fit_and_cannot_be_kept_is_cut_and_says_so(given: str) -> None:
    big = "some words of a long story\n" * 200_000  # 5.4 million characters
    with Session("offline", in_memory=True, settings=ALONE, window=50_000) as session:
        asked(session, use("a"))
        output = {"str": big, "bytes": big.encode(), "stream": io.BytesIO(big.encode())}[given]
        hand_in(session, "a", output)
        request = session.before_call()
        shown = contents(request)["a"]
        head, _, rest = shown.partition("\n[This result was cut")
        assert big.startswith(head)
        assert big.endswith(rest.partition("]\n")[2])
        assert bool(rest.partition("]\n")[2]) == (given == "str")
        assert 50_000 < len(shown) < 250_000
        assert "could not be saved (this session is in memory only" in shown
        assert sum("was cut" in notice for notice in session.notices) == 1
        assert refused(request) == []


@pytest.mark.spec("C4", "R6")
def test_a_result_that_nearly_fills_the_window_is_cut_and_shown_instead_of_compacted_away(
    messages_server: MessagesServer,
) -> None:
    lines = [f"row {number}: the value is {number * 7}\n" for number in range(30_000)]
    big = "".join(lines)[:690_000]
    messages_server.reply(tool_use=[("Read", {"file_path": "/w/rows.txt"}, "a")])
    messages_server.reply(text="I see it.")
    with closing(provider_at(messages_server)) as provider, Session(provider, in_memory=True, window=200_000) as session:
        session.add_user("Which rows are there?")
        session.ask()
        session.add_tool_result("a", big)
        session.ask()
        assert len(messages_server.requests) == 2, "no summary was made"
        shown = contents(messages_server.requests[-1].body)["a"]
        head, _, rest = shown.partition("\n[This result was cut: ")
        note, _, tail = rest.partition("]\n")
        assert big.startswith(head)
        assert big.endswith(tail)
        assert len(head) + len(tail) > 150_000
        assert f"{690_000 - len(head) - len(tail):,} of its 690,000 characters are left out here" in note
        assert [notice for notice in session.notices if "was cut" in notice]


@pytest.mark.spec("C4", "R6")
@pytest.mark.parametrize("together", [False, True])
def test_several_results_that_are_too_large_are_all_shown_and_none_is_compacted_away(together: bool) -> None:
    big = "some words of a long story\n" * 30_000
    settings = Settings(session_notes=False, size_clearing=False)
    with Session("anthropic:a-model", in_memory=True, settings=settings, window=200_000) as session:
        names = ["a", "b", "c", "d"]
        asked(session, *(use(name) for name in names))
        for some in [names] if together else [[name] for name in names]:
            add_results(session, [tool_result(name, big) for name in some])
        shown = contents(session.before_call())
        assert list(shown) == names
        assert all("of its 810,000 characters are left out here" in text for text in shown.values())
        assert session.window_state.above_autocompact is False


def test_a_list_with_a_result_that_was_cut_is_still_in_step_with_the_log() -> None:
    rows = "".join(f"row {number}\n" for number in range(80_000))
    calls: list[Wire] = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": [use("a")]}]
    given: list[Wire] = [*calls, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": rows}]}]
    with Session("offline", in_memory=True, settings=ALONE, window=50_000) as session:
        session.sync(given)
        before = session.messages
        session.sync([*given, {"role": "assistant", "content": "Done."}])
        assert session.messages[: len(before)] == before
        assert [message["role"] for message in session.messages] == ["user", "assistant", "user", "assistant"]


def test_a_session_in_memory_keeps_what_fits_and_says_nothing() -> None:
    with Session("offline", in_memory=True, settings=ALONE) as session:
        asked(session, use("a"))
        session.add_tool_result("a", LINES)
        assert contents(session.before_call())["a"] == LINES
        assert session.notices == []


def test_many_results_at_once_without_a_disk_fill_the_window_and_do_not_block_it() -> None:
    with Session("offline", in_memory=True, settings=ALONE, window=50_000) as session:
        names = [f"c{number}" for number in range(20)]
        asked(session, *(use(name) for name in names))
        add_results(session, [tool_result(name, f"{name} of some words\n" * 2_000) for name in names])
        shown = contents(session.before_call())
        assert sum("This result was cut" in text for text in shown.values()) > 5
        assert not session.window_state.at_blocking
        assert sum("was cut" in notice for notice in session.notices) == 1


def test_half_a_stream_on_a_disk_that_fills_up_is_still_shown_from_its_beginning() -> None:
    data = b"".join(b"line %d\n" % number for number in range(1_000_000))
    with Session("offline", settings=ALONE) as session:
        asked(session, use("a"))
        with failing(errno.ENOSPC, after=3):
            hand_in(session, "a", io.BytesIO(data))
        shown = contents(session.before_call())["a"]
        assert data.startswith(shown.rpartition("\n[This result was cut")[0].encode())
        assert len(shown) > 100_000
        assert "the disk is full" in shown
        assert list(directory(session).iterdir()) == []


@pytest.mark.spec("T9", "R1")
@pytest.mark.parametrize("window", [1_000, 2_000, 4_000, 8_000, 32_000, 128_000])
@pytest.mark.parametrize("text", ["words and more words ", '{"k":[1,22,333],"x":"é"},', "0123456789abcdef", "日本語の文章。"])
def test_one_result_of_any_size_never_blocks_a_small_window(window: int, text: str) -> None:
    with Session("offline", settings=ALONE, window=window) as session:
        asked(session, use("a", "Bash"), use("b", "Bash"))
        limits = conversation_of(session).limits
        budget = budget_for(ResultPolicy(), limits.effective, scale=limits.scale)
        kept = (text * budget.single).encode()[: budget.single].decode("utf-8", "ignore")[: budget.threshold("Bash")]
        session.add_tool_result("b", kept * 40)
        # The words around a preview take a third of a window of 1,000: there a second result has no room beside it.
        session.add_tool_result("a", kept if window >= 4_000 else "short")
        assert not session.window_state.at_blocking
        shown = contents(session.before_call())
        assert window < 4_000 or shown["a"] == kept
        assert shown["b"].startswith("<persisted-output>")


@pytest.mark.spec("F1")
def test_switched_off_nothing_new_is_decided_and_what_was_decided_stays() -> None:
    with Session("offline", session_id="s", settings=ALONE) as session:
        asked(session, use("a"))
        session.add_tool_result("a", LINES)
        before = contents(session.before_call())
        session.after_call(answer("m2", use("b"), use("c"), use("d")))
        conversation_of(session).settings = Settings(spill=False, auto_compact=False, size_clearing=False)
        session.add_tool_result("b", "b" * 300_000)
        session.add_tool_result("c", "")
        hand_in(session, "d", io.BytesIO(b"d" * 60_000))
        after = contents(session.before_call())
        assert after["a"] == before["a"]
        assert after["b"] == "b" * 300_000
        assert after["c"] == ""
        assert after["d"] == "d" * 60_000
        assert len(spills(session)) == 1


@pytest.mark.spec("R5", "F1")
def test_thresholds_are_set_by_settings_and_by_remote_flags_and_a_wrong_type_is_ignored_and_said() -> None:
    remote = resolve(
        user={"lamina": {"results": {"perTool": {"Grep": 1_000}}}},
        remote={"lamina.results.default": 2_000, "lamina.results.perMessage": "many"},
    )
    assert any("lamina.results.perMessage" in found.key for found in remote.findings)
    with Session("offline", settings=remote) as session:
        asked(session, use("a", "Grep"), use("b", "Grep"), use("c", "Glob"), use("d", "Glob"), use("e", "Bash"))
        for name, size in (("a", 1_000), ("b", 1_001), ("c", 2_000), ("d", 2_001), ("e", 30_000)):
            session.add_tool_result(name, "x" * size)
        session.before_call()
        assert [spill.tool_use_id for spill in spills(session)] == ["b", "d"]


def test_the_variable_people_know_for_bash_lowers_its_threshold() -> None:
    settings = resolve(environ={"BASH_MAX_OUTPUT_LENGTH": "10000"})
    with Session("offline", settings=settings) as session:
        asked(session, use("a", "Bash"), use("b", "Grep"))
        session.add_tool_result("a", "x" * 10_001)
        session.add_tool_result("b", "x" * 10_001)
        assert [spill.tool_use_id for spill in spills(session)] == ["a"]


def test_a_window_that_was_full_before_takes_a_preview_of_the_next_result() -> None:
    with Session("offline", settings=ALONE, window=20_000) as session:
        session.add_user("words " * 6_500)
        session.before_call()
        session.after_call(answer("m1", use("a")))
        session.add_tool_result("a", LINES)
        assert logged(session)[0]["content"].startswith("<persisted-output>")


def test_a_result_at_the_blocking_limit_without_a_disk_is_cut_to_a_preview() -> None:
    with Session("offline", in_memory=True, settings=ALONE, window=20_000) as session:
        session.add_user("words " * 6_500)
        session.before_call()
        session.after_call(answer("m1", use("a"), usage={"input_tokens": 14_700, "output_tokens": 10}))
        hand_in(session, "a", LINES)
        shown = session.messages[-1]["content"][0]["content"]
        assert 500 < len(shown) < 3_000
        assert "could not be saved" in shown
        with pytest.raises(WindowFull):
            session.before_call()
