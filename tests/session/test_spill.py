"""Whole turns with results that are too large: spilled once, shown the same for ever, found again."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import pytest
from tests.session.hosts import lend
from tests.session.plain import Session

from lamina.core.blocks import tool_result
from lamina.core.receipts import Told, open_receipt
from lamina.core.records import Message
from lamina.core.settings import Settings
from lamina.layers.l1_results import step as results
from lamina.layers.l1_results.reopen import as_kept, open_spill, receipt_of
from lamina.session.base import add_results, conversation_of, working

from .spills import LINES, asked, contents, directory, events, hand_in, logged, spills, use
from .words import READ, answer, extends, records, refused


@pytest.mark.spec("R1", "R2")
def test_a_result_over_its_threshold_goes_to_a_file_and_a_preview_to_the_model() -> None:
    with Session("offline", tools=[READ]) as session:
        asked(session, use("toolu_1"))
        session.add_tool_result("toolu_1", LINES)
        request = session.before_call()
        file = directory(session) / "toolu_1.txt"
        assert file.read_text() == LINES
        shown = contents(request)["toolu_1"]
        assert shown.startswith("<persisted-output>\n")
        assert str(file) in shown
        assert f"{len(LINES):,} bytes" in shown
        assert len(shown) < 2_700
        assert refused(request) == []


@pytest.mark.spec("R2", "B1")
def test_the_big_text_never_enters_the_log_and_its_record_says_where_it_is() -> None:
    with Session("offline", tools=[READ]) as session:
        asked(session, use("toolu_1"))
        session.add_tool_result("toolu_1", LINES)
        assert session.path is not None
        assert session.path.stat().st_size < 20_000
        (spill,) = spills(session)
        assert spill.path == str(directory(session) / "toolu_1.txt")
        assert (spill.size, spill.sha256) == (len(LINES), hashlib.sha256(LINES.encode()).hexdigest())
        assert logged(session)[0]["content"] == spill.preview
        kinds = [type(record).__name__ for record in records(session.path)]
        assert kinds[-3:] == ["Spill", "Event", "Message"]
        (event,) = events(session, "spill")
        assert event == {
            "tool_use_id": "toolu_1",
            "tool": "Grep",
            "path": spill.path,
            "bytes": len(LINES),
            "sha256": spill.sha256,
            "decision": spill.uuid,
        }


@pytest.mark.spec("B1")
def test_a_spill_has_a_receipt_and_its_whole_is_read_back_and_checked() -> None:
    with Session("offline", tools=[READ]) as session:
        asked(session, use("toolu_1"))
        uuid = session.add_tool_result("toolu_1", LINES)
        (spill,) = spills(session)
        told = open_receipt(receipt_of(spill, uuid), [uuid])
        assert told[uuid] == Told("spilled", spill.path)
        assert open_spill(spill) == LINES


@pytest.mark.spec("R1")
@pytest.mark.parametrize(("tool", "most"), [("Bash", 30_000), ("Grep", 50_000), ("Read", 50_000), ("mcp__x__y", 50_000)])
def test_a_result_at_its_threshold_stays_and_one_character_more_does_not(tool: str, most: int) -> None:
    with Session("offline", tools=[READ]) as session:
        asked(session, use("a", tool), use("b", tool))
        session.add_tool_result("a", "€" * most)
        session.add_tool_result("b", "€" * (most + 1))
        shown = contents(session.before_call())
        assert shown["a"] == "€" * most
        assert "€" * 2_000 in shown["b"]
        assert len(shown["b"]) < 2_700


@pytest.mark.spec("R1", "R3")
def test_results_that_come_one_by_one_are_judged_together_before_they_leave() -> None:
    with Session("offline", tools=[READ]) as session:
        sizes = {"a": 49_000, "b": 45_000, "c": 48_000, "d": 47_000, "e": 20_000}
        asked(session, *(use(name) for name in sizes))
        for name, size in sizes.items():
            session.add_tool_result(name, name * size)
        first = session.before_call()
        shown = contents(first)
        assert [name for name, text in shown.items() if text.startswith("<persisted")] == ["a"]
        assert sum(map(len, shown.values())) <= 200_000
        assert (directory(session) / "a.txt").read_text() == "a" * 49_000
        assert session.status.cache_breaks == 0
        session.after_call(answer("m2", use("f")))
        session.add_tool_result("f", "f" * 49_000)
        second = session.before_call()
        assert extends(first, second)
        assert session.status.cache_breaks == 0


@pytest.mark.spec("R1")
def test_results_that_come_together_are_spilled_before_any_of_them_is_logged() -> None:
    with Session("offline", tools=[READ]) as session:
        names = [f"c{number}" for number in range(50)]
        asked(session, *(use(name) for name in names))
        add_results(session, [tool_result(name, f"{name} " * 10_000) for name in names])
        shown = contents(session.before_call())
        kept = [name for name, text in shown.items() if not text.startswith("<persisted")]
        assert len(kept) == 2
        assert len(spills(session)) == 48
        assert sum(map(len, shown.values())) <= 200_000
        assert sum(len(block["content"]) for block in logged(session)) <= 200_000
        for name in set(names) - set(kept):
            assert (directory(session) / f"{name}.txt").read_text() == f"{name} " * 10_000


@pytest.mark.spec("R3", "R4")
def test_what_was_decided_stays_for_ever_also_after_a_resume_under_other_numbers() -> None:
    with Session("offline", session_id="s", tools=[READ]) as session:
        asked(session, use("big"), use("small"))
        session.add_tool_result("big", LINES)
        session.add_tool_result("small", "s" * 40_000)
        first = session.before_call()
        session.after_call(answer("m2", "seen"))
    lower = Settings(results_default=100, results_per_message=1_000)
    with Session("offline", resume="s", settings=lower) as session:
        session.add_user("and now?")
        second = session.before_call()
        assert extends(first, second)
        assert contents(second) == contents(first)
        assert session.status.cache_breaks == 0
    with Session("offline", resume="s", settings=Settings(spill=False)) as session:
        session.add_user("and now?")
        assert contents(session.before_call()) == contents(first)


@pytest.mark.spec("R3")
def test_a_result_that_was_judged_and_kept_is_not_spilled_when_more_come_before_an_answer() -> None:
    with Session("offline", tools=[READ]) as session:
        asked(session, use("a"), use("b"), use("c"), use("d"), use("e"))
        for name in "abcd":
            session.add_tool_result(name, name * 49_000)
        first = contents(session.before_call())  # the fifth gets a made-up result; the call then fails
        assert not any(text.startswith("<persisted") for text in first.values())
        again = contents(session.before_call())
        assert again == first


@pytest.mark.spec("R6")
def test_nothing_becomes_a_marker_and_errors_and_images_stay_as_they_are() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    with Session("offline", tools=[READ]) as session:
        asked(session, use("empty", "Bash"), use("blank"), use("list"), use("error", "Bash"), use("image"), use("mixed"))
        session.add_tool_result("empty", "")
        session.add_tool_result("blank", " \n\n")
        session.add_tool_result("list", [{"type": "text", "text": ""}])
        session.add_tool_result("error", "e" * 60_000, is_error=True)
        session.add_tool_result("image", [image])
        session.add_tool_result("mixed", [{"type": "text", "text": "t" * 60_000}, image])
        request = session.before_call()
        shown = contents(request)
        assert shown["empty"] == "(Bash completed with no output)"
        assert shown["blank"] == shown["list"] == "(Grep completed with no output)"
        assert shown["error"] == "e" * 60_000
        assert shown["image"] == [image]
        assert shown["mixed"] == [{"type": "text", "text": "t" * 60_000}, image]
        assert spills(session) == []
        assert refused(request) == []


@pytest.mark.spec("R6")
def test_of_a_result_that_no_window_could_hold_the_text_goes_to_a_file_and_images_and_errors_stay_what_they_are() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    with Session("offline", session_id="s", tools=[READ]) as session:
        asked(session, use("error"), use("mixed"))
        add_results(
            session,
            [
                tool_result("error", "e" * 400_000, is_error=True),
                tool_result("mixed", [image, {"type": "text", "text": "t" * 300_000}, {"type": "text", "text": "u" * 10}]),
            ],
        )
        first = session.before_call()
        shown = contents(first)
        assert shown["error"].startswith("<persisted-output>")
        assert shown["mixed"][0] == image
        assert shown["mixed"][1]["text"].startswith("<persisted-output>")
        assert len(shown["mixed"]) == 2
        assert (directory(session) / "mixed.txt").read_text() == "t" * 300_000 + "\n" + "u" * 10
        assert [event["tool_use_id"] for event in events(session, "spill")] == ["error", "mixed"]
        errors = [block for block in logged(session) if block.get("is_error")]
        assert [block["tool_use_id"] for block in errors] == ["error"]
        session.after_call(answer("m2", "ok"))
    with Session("offline", resume="s") as session:
        session.add_user("go on")
        assert contents(session.before_call()) == shown


@pytest.mark.spec("R2")
def test_json_goes_to_a_json_file_and_text_parts_to_a_text_file() -> None:
    rows = [{"number": number, "name": "é" * 20} for number in range(2_000)]
    with Session("offline", tools=[READ]) as session:
        asked(session, use("value"), use("text"), use("parts"))
        session.add_tool_result("value", rows)
        session.add_tool_result("text", json.dumps(rows))
        session.add_tool_result("parts", [{"type": "text", "text": "a" * 40_000}, {"type": "text", "text": "b" * 40_000}])
        assert json.loads((directory(session) / "value.json").read_bytes()) == rows
        assert json.loads((directory(session) / "text.json").read_bytes()) == rows
        assert (directory(session) / "parts.txt").read_text() == "a" * 40_000 + "\n" + "b" * 40_000


@pytest.mark.spec("R6")
@pytest.mark.parametrize("data", [b"\xff\xfe\x00\x01" * 30_000, bytes(range(256)) * 1_000], ids=["no UTF-8", "all bytes"])
def test_of_binary_data_the_file_has_the_exact_bytes_and_the_preview_says_what_it_is(data: bytes) -> None:
    with Session("offline", tools=[READ]) as session:
        asked(session, use("a"), use("b"))
        hand_in(session, "a", data)
        hand_in(session, "b", io.BytesIO(data))
        shown = contents(session.before_call())
        for name in "ab":
            assert (directory(session) / f"{name}.txt").read_bytes() == data
            assert "It contains binary" in shown[name]
        (first, _) = spills(session)
        assert open_spill(first) == data


@pytest.mark.spec("R2")
def test_a_stream_is_read_once_and_in_pieces_and_stays_open(tmp_path: Path) -> None:
    (tmp_path / "out.json").write_bytes(b"[" + b"1," * 5_000_000 + b"1]")
    with Session("offline", tools=[READ]) as session, (tmp_path / "out.json").open("rb") as stream:
        asked(session, use("a"), use("b"), use("c"))
        hand_in(session, "a", stream)
        assert not stream.closed
        assert (directory(session) / "a.json").read_bytes() == (tmp_path / "out.json").read_bytes()
        hand_in(session, "b", io.BytesIO(b"short"))
        hand_in(session, "c", io.StringIO("€" * 60_000))
        shown = contents(session.before_call())
        assert shown["b"] == "short"
        assert (directory(session) / "c.txt").read_text() == "€" * 60_000
        assert [spill.tool_use_id for spill in spills(session)] == ["a", "c"]


@pytest.mark.spec("R5")
def test_a_read_of_a_spilled_file_is_paged_and_never_spilled_again() -> None:
    with Session("offline", tools=[READ]) as session:
        asked(session, use("a"))
        session.add_tool_result("a", LINES)
        session.before_call()
        path = str(directory(session) / "a.txt")
        session.after_call(answer("m2", use("r1", "Read", file_path=path), use("r2", "Read", file_path=path, offset=5_000)))
        numbered = "".join(f"{number}\tline {number - 1}\n" for number in range(1, 20_001))
        session.add_tool_result("r1", numbered)
        session.add_tool_result("r2", LINES)
        shown = contents(session.before_call())
        assert [spill.tool_use_id for spill in spills(session)] == ["a"]
        for name in ("r1", "r2"):
            assert 45_000 < len(shown[name]) <= 50_000
        last = int(shown["r1"].rpartition("\n[")[0].rpartition("\n")[2].split("\t")[0])
        assert shown["r1"].endswith(f"Continue with offset={last + 1}.]")
        lines = shown["r2"].rpartition("\n[")[0].count("\n") + 1
        assert shown["r2"].endswith(f"Continue with offset={5_000 + lines}.]")


@pytest.mark.spec("R5")
def test_a_read_of_a_spilled_file_handed_in_as_a_stream_is_paged_too() -> None:
    with Session("offline", tools=[READ]) as session:
        asked(session, use("a"))
        session.add_tool_result("a", LINES)
        session.before_call()
        session.after_call(answer("m2", use("r", "Read", file_path=str(directory(session) / "a.txt"))))
        hand_in(session, "r", io.BytesIO(LINES.encode()))
        assert contents(session.before_call())["r"].endswith(".]")
        assert len(spills(session)) == 1


@pytest.mark.parametrize("name", ["../../x", "a/b", "..", "é", "日本語", "x" * 300, "a b", ".", "con", "b0123abcd"])
def test_ids_of_every_kind_have_their_file_in_the_directory(name: str) -> None:
    with Session("offline", tools=[READ]) as session:
        asked(session, use(name))
        session.add_tool_result(name, LINES)
        (file,) = directory(session).iterdir()
        assert file.read_text() == LINES
        assert str(file) in contents(session.before_call())[name]


def test_a_second_result_of_one_id_changes_nothing_of_the_first() -> None:
    with Session("offline", tools=[READ]) as session:
        asked(session, use("a"))
        add_results(session, [tool_result("a", LINES), tool_result("a", "other " * 20_000)])
        first = session.before_call()
        assert (directory(session) / "a.txt").read_text() == LINES
        assert "line 0\n" in contents(first)["a"]
        session.after_call(answer("m2", "ok"))
        session.add_user("more")
        assert contents(session.before_call()) == contents(first)


@pytest.mark.spec("R4")
def test_a_compaction_keeps_what_was_frozen_of_what_it_keeps() -> None:
    from .play import compact

    with Session("offline", session_id="s", tools=[READ]) as session:
        asked(session, use("a"))
        uuid = session.add_tool_result("a", LINES)
        before = contents(session.before_call())
        call = next(record for record in records(session.path) if isinstance(record, Message) and record.role == "assistant")
        session.after_call(answer("m2", "ok"))
        compact(session, "what was said", kept=(call.uuid, uuid))
        session.add_user("more")
        assert contents(session.before_call()) == before
    with Session("offline", resume="s") as session:
        session.add_user("more")
        assert contents(session.before_call()) == before


def test_an_observer_is_told_of_every_spill() -> None:
    told: list[tuple[str, str]] = []
    with Session("offline", tools=[READ]) as session:
        lend(session, observer=lambda name, data: told.append((name, data["tool_use_id"])))
        asked(session, use("a"), use("b"))
        session.add_tool_result("a", LINES)
        hand_in(session, "b", LINES)
        assert told == [("spill", "a"), ("spill", "b")]


def test_what_a_command_printed_into_a_file_of_the_session_is_not_written_twice() -> None:
    from lamina.tools.capture import Capture

    with Session("offline", tools=[READ]) as session:
        asked(session, use("a", "Bash"), use("b", "Bash"))
        handed: list[results.HandedIn] = []
        for name, failed in (("a", False), ("b", True)):
            capture = Capture(directory(session))
            capture.take(LINES.encode())
            captured = capture.close()
            handed.append(results.HandedIn(tool_result(name, captured.text, is_error=failed), str(captured.file)))
        add_results(session, handed)
        shown = contents(session.before_call())
        file = directory(session) / "a.txt"
        assert file.read_text() == LINES
        assert str(file) in shown["a"]
        assert shown["a"].startswith("<persisted-output>")
        assert [spill.path for spill in spills(session)] == [str(file)]
        # A failed command's text has its beginning and its end; it is an error and stays what it is.
        assert "line 19999" in shown["b"]
        assert len(list(directory(session).iterdir())) == 2


def test_a_block_of_a_callers_own_list_is_known_again_as_what_the_log_holds() -> None:
    with Session("offline", session_id="s", tools=[READ]) as session:
        asked(session, use("a"), use("b"), use("c"))
        session.add_tool_result("a", LINES)
        session.add_tool_result("b", "")
        session.add_tool_result("c", "short")
        held = {block["tool_use_id"]: block for block in logged(session)}
        with working(session) as c:
            for name, said in (("a", LINES), ("b", ""), ("c", "short")):
                assert results.kept_as(c, tool_result(name, said)).wire == held[name]
            other = tool_result("a", LINES.replace("line 7", "LINE 7"))
            assert results.kept_as(c, other) is other


def test_a_result_that_comes_again_after_a_rewind_is_judged_anew() -> None:
    from lamina.conversation import revision

    for again in ("short", "other " * 20_000):
        with Session("offline", tools=[READ]) as session:
            asked(session, use("a"))
            call = conversation_of(session).log.tree.leaf
            session.add_tool_result("a", LINES)
            session.before_call()
            revision.rewind(conversation_of(session), call)
            session.add_tool_result("a", again)
            shown = contents(session.before_call())["a"]
            assert shown == "short" or "other other" in shown
            assert len(shown) < 3_000
            assert (directory(session) / "a.txt").read_text() == LINES
            name = session.id
        with Session("offline", resume=name) as session:
            session.before_call()
            assert contents({"messages": session.messages})["a"] == shown


def test_a_secret_in_a_spilled_result_stays_in_its_private_file_and_is_flagged() -> None:
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    with Session("offline", tools=[READ]) as session:
        asked(session, use("a"), use("b"))
        session.add_tool_result("a", f"token {secret}\n{LINES}")
        session.add_tool_result("b", LINES)
        assert secret in (directory(session) / "a.txt").read_text()
        flagged, plain = events(session, "spill")
        assert len(flagged["secrets"]) == 1
        assert secret not in str(flagged)
        assert "secrets" not in plain


OUTPUT = (
    "".join(f"test_{number} passed\n" for number in range(4_000)) + "FAILED test_of_the_sum\n1 failed, 3999 passed in 12.1s\n"
)


@pytest.mark.spec("R7", "R2")
@pytest.mark.parametrize("policy", ["balanced", "thrifty", "classic"])
@pytest.mark.parametrize("output", [OUTPUT, OUTPUT.replace("passed", "通过")], ids=["ascii", "wide"])
def test_a_preview_shows_the_beginning_and_the_end_and_classic_the_beginning_alone(policy: str, output: str) -> None:
    with Session("offline", tools=[READ], policy=policy) as session:
        asked(session, use("toolu_1"))
        session.add_tool_result("toolu_1", io.BytesIO(output.encode()))
        shown = contents(session.before_call())["toolu_1"]
        beginning, _, end = shown.partition("\nIt begins:\n")[2].removesuffix("\n</persisted-output>").partition("\n\nIt ends:\n")
        if policy == "classic":
            assert not end
            assert len(beginning) > 1_900
            return
        assert output.startswith(beginning + "\n")
        assert output.endswith("\n" + end + "\n")
        assert 1_300 < len(beginning) <= 1_400
        assert 500 < len(end) <= 600
        session.after_call(answer("m1", "I see."))
        assert session.expand("toolu_1").pages > 1
    with Session("offline", tools=[READ], policy="classic", resume=session.id) as again:
        again.add_user("What failed?")
        assert contents(again.before_call())["toolu_1"] == shown


@pytest.mark.spec("R7")
def test_a_list_whose_result_was_spilled_is_recognised_by_its_preview() -> None:
    with Session("offline", tools=[READ], policy="balanced") as session:
        asked(session, use("toolu_1"))
        session.add_tool_result("toolu_1", OUTPUT)
        request = session.before_call()
        block = tool_result("toolu_1", OUTPUT)
        preview = contents(request)["toolu_1"]
    assert as_kept(block, "Grep", preview, None).text == preview
    assert as_kept(tool_result("toolu_1", "x" + OUTPUT[1:]), "Grep", preview, None).text != preview
