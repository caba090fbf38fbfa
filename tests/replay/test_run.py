"""Recordings played through a session, under several settings."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.history.agents import write
from tests.history.copied import COPIES, FIRST

from lamina.core.settings import Settings
from lamina.core.usage import Usage
from lamina.replay.agreement import disagreement
from lamina.replay.figures import ReplayFigures, RequestPoint
from lamina.replay.options import ReplayOptions
from lamina.replay.play import Played
from lamina.replay.report import ReplayReport
from lamina.replay.run import replay, transcripts
from lamina.replay.table import headlines, odd_remarks, remarks
from lamina.replay.variants import ALWAYS, Variant, variants
from lamina.session.session import Session

from .recording import OVERHEAD, Recording, long_work, page, text, use

# Small enough that a short recording fills it.
WINDOW = 24_000


def settings(arguments: Mapping[str, Any]) -> Settings:
    return Settings(**arguments)


def played(*files: Path, window: int | None = WINDOW, rows: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> ReplayReport:
    return replay(files, ReplayOptions(variants(rows, without), settings, window))


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where homes are made and removed again."""
    place = tmp_path / "scratch"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return place


@pytest.fixture(scope="module")
def long_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return long_work(28).write(tmp_path_factory.mktemp("recorded") / "long.jsonl")


@pytest.fixture(scope="module")
def short_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return long_work(4).write(tmp_path_factory.mktemp("recorded") / "short.jsonl")


@pytest.mark.spec("B14")
def test_policies_and_what_was_recorded_stand_side_by_side(long_file: Path) -> None:
    report = played(long_file, rows=("lean",))
    rows = report.figures
    assert list(rows) == ["recorded", "append", "balanced", "lean"]
    assert {figures.calls for figures in rows.values()} == {30}
    assert rows["append"].input_units == pytest.approx(rows["recorded"].input_units, rel=0.03), "nobody took anything out"
    assert rows["append"].usage.prompt == pytest.approx(rows["recorded"].usage.prompt, rel=0.03)
    assert (rows["append"].compactions, rows["append"].breaks, rows["append"].regrets) == (0, 0, 0)
    assert rows["append"].repeated_reads == 1
    assert rows["append"].over_window > 0
    assert rows["append"].facts_in_context == rows["append"].facts > 0
    for name in ("balanced", "lean"):
        assert rows[name].compactions + rows[name].clearings > 0
        assert 0 < rows[name].breaks <= rows[name].compactions + rows[name].clearings
        assert rows[name].peak_tokens <= WINDOW < rows["append"].peak_tokens
        assert rows[name].regrets == 1, "the first file was read again at the end"
        assert rows[name].facts_in_context < rows[name].facts
        assert rows[name].files_in_context <= rows[name].files
        assert rows[name].layer_failures == 0


def test_the_same_recording_gives_the_same_figures(long_file: Path, scratch: Path) -> None:
    first, second = (played(long_file).to_json() for _ in range(2))
    assert first == second
    assert list(scratch.iterdir()) == [], "nothing is left behind"


@pytest.mark.exhaustive
@pytest.mark.spec("B14")
def test_each_layer_can_be_left_out(long_file: Path) -> None:
    report = played(long_file, without=("all",))
    rows = report.figures
    assert [name for name in rows if "without" in name] == [
        f"balanced without {layer}" for layer in ("results", "clearing", "notes", "compaction", "memory")
    ]
    assert rows["balanced"].side_calls > 0
    assert rows["balanced without clearing"].clearings == 0
    notes = rows["balanced without notes"]
    assert notes.side_calls <= notes.compactions + 1, "only summaries are asked for"
    assert rows["balanced without compaction"].compactions == 0


@pytest.mark.spec("P8")
def test_a_session_that_a_policy_cannot_finish_is_listed_and_not_summed(tmp_path: Path) -> None:
    made = Recording()
    for number in range(20):
        made.say(page(number, 6_000))
        made.answer(text("I see."))
    report = played(made.write(tmp_path / "s.jsonl"), without=("compaction",))
    row = "balanced without compaction"
    stopped = report.figures[row]
    assert (stopped.stopped_sessions, stopped.calls, stopped.usd) == (1, 0, 0), "it is in no sum"
    (session,) = report.unfinished(row)
    assert session.figures[row].calls + stopped.calls_not_played == 20 > stopped.calls_not_played > 0
    found = report.to_json()["policies"][row]
    assert found["unfinished"] == [str(tmp_path / "s.jsonl")]
    assert "saved_percent" not in found
    assert any(f"{row}: {session.name} ended early because the window was full" in remark for remark in remarks(report))
    assert report.unfinished("balanced") == []


def test_a_result_that_is_too_large_is_spilled_unless_that_is_off(tmp_path: Path) -> None:
    made = Recording()
    made.say("Read it.")
    made.read("/big.py", page(1, 60_000))
    made.answer(text("Done."))
    rows = played(made.write(tmp_path / "s.jsonl"), window=None, without=("results",)).figures
    assert (rows["balanced"].spills, rows["balanced without results"].spills) == (1, 0)
    assert rows["balanced"].peak_tokens < rows["balanced without results"].peak_tokens


def test_a_pause_longer_than_the_cache_lives_is_no_break(tmp_path: Path) -> None:
    made = Recording()
    made.say("Begin.")
    made.read("/a.py", page(1, 20_000))
    made.answer(text("Done."))
    made.wait(hours=2)
    made.say("Again.")
    made.answer(text("Done."))
    rows = played(made.write(tmp_path / "s.jsonl"), window=None).figures
    assert (rows["append"].expired, rows["append"].breaks) == (1, 0)


def paused(seconds: float) -> Recording:
    """A session whose user is silent for so many seconds behind an answer that took four minutes."""
    made = Recording()
    made.say("Begin.")
    made.read("/a.py", page(1, 20_000))
    made.wait(minutes=4)
    made.answer(text("Done."))
    made.wait(seconds=seconds)
    made.say("Again.")
    made.wait(minutes=4)
    made.answer(text("Done."))
    return made


@pytest.mark.spec("P8")
@pytest.mark.parametrize(("seconds", "expired"), [(290, 0), (310, 1)])
def test_a_cache_entry_lives_from_the_end_of_an_answer_to_the_next_input(tmp_path: Path, seconds: float, expired: int) -> None:
    rows = played(paused(seconds).write(tmp_path / "s.jsonl"), window=None).figures
    assert rows["append"].expired == expired


@pytest.mark.spec("P8")
def test_what_other_sessions_keep_in_the_cache_is_read_again_after_a_pause(tmp_path: Path) -> None:
    alone, shared = paused(1_000), paused(1_000)
    for made, read in ((alone, 0), (shared, 2_000)):
        usage = made.lines[-1]["message"]["usage"]
        usage["cache_creation_input_tokens"] += usage["cache_read_input_tokens"] - read
        usage["cache_read_input_tokens"] = read
    rows = [played(made.write(tmp_path / f"{at}.jsonl"), window=None).figures for at, made in enumerate((alone, shared))]
    assert rows[1]["append"].usage.cache_read - rows[0]["append"].usage.cache_read == pytest.approx(2_000, abs=20)
    assert [one["recorded"].expired for one in rows] == [1, 1]


@pytest.mark.spec("P8")
def test_a_call_is_billed_by_the_model_that_answered_it(tmp_path: Path) -> None:
    made = long_work(4)
    *_, last = (line for line in made.lines if line["type"] == "assistant")
    last["message"]["model"] = "claude-opus-4-1"
    rows = played(made.write(tmp_path / "s.jsonl"), window=None).figures
    sonnet = played(long_work(4).write(tmp_path / "t.jsonl"), window=None).figures
    assert rows["append"].usd > sonnet["append"].usd
    assert rows["append"].usage.cache_read < sonnet["append"].usage.cache_read, "another model has its own cache"


@pytest.mark.spec("P8")
def test_a_recorded_break_without_a_cause_is_shown_apart_and_in_no_row(tmp_path: Path) -> None:
    whole, broken = long_work(6), long_work(6)
    usage = broken.lines[-3]["message"]["usage"]
    lost = usage["cache_read_input_tokens"] - OVERHEAD
    usage["cache_read_input_tokens"] -= lost
    usage["cache_creation_input_tokens"] += lost
    rows = [played(made.write(tmp_path / f"{at}.jsonl"), window=None) for at, made in enumerate((whole, broken))]
    before, after = (one.figures["recorded"] for one in rows)
    assert (after.unexplained_breaks, before.unexplained_breaks) == (1, 0)
    assert after.usd == pytest.approx(before.usd)
    assert after.unexplained_usd == pytest.approx(lost * (3.75 - 0.3) / 1e6)
    assert any("1 cache break within five minutes without a cause" in remark for remark in remarks(rows[1]))


@pytest.mark.spec("P8")
def test_a_recording_whose_requests_are_not_those_of_its_transcript_is_named(short_file: Path, tmp_path: Path) -> None:
    assert not played(short_file, window=None).disagreements
    made = Recording()
    made.say("Look at these files.")
    for number in range(8):
        made.grow(-3_000 if number == 4 else 0)
        made.read(f"/work/module_{number}.py", page(number))
    report = played(made.write(tmp_path / "one.jsonl"), window=None)
    (found,) = report.to_json()["disagreements"]
    assert found["percent"] > 3
    assert found["why"] == "Before request 5, about 3,001 tokens left the prompt, which the transcript does not record."
    assert any(found["why"] in remark for remark in odd_remarks(report))


@pytest.mark.parametrize(
    ("recorded", "why"),
    [
        ([(0, 9_000), (2_000, 10_000)], "Request 2 read 7,000 tokens less from the cache than the one before had left there."),
        ([(0, 9_000), (9_000, 14_000)], "Request 2 has about 4,000 tokens that are not in the transcript."),
        ([(0, 9_000), (9_000, 10_000)], None),
    ],
)
def test_the_request_where_the_rows_part_is_named(recorded: list[tuple[int, int]], why: str | None) -> None:
    theirs, ours = _row(recorded), _row([(0, 9_000), (9_000, 10_000)])
    found = disagreement(theirs, ours)
    assert (found.why if found is not None else None) == why


def _row(requests: list[tuple[int, int]]) -> Played:
    """A row whose requests read the first number of tokens from the cache and have the second in all."""
    usages = [Usage(0, read, tokens - read) for read, tokens in requests]
    points = [RequestPoint(0.0, usage.prompt, step=step, usage=usage) for step, usage in enumerate(usages)]
    return Played(ReplayFigures(usage=sum(usages, Usage())), tuple(points))


@pytest.mark.spec("P8")
def test_text_that_an_edit_needs_and_that_left_is_fetched_again_and_paid(tmp_path: Path) -> None:
    made = Recording()
    made.say("Read them all, then mend the first.")
    for number in range(28):
        made.read(f"/work/src/app/module_{number}.py", page(number))
    line = page(0).splitlines()[0]
    made.answer(use("edit", "Edit", file_path="/work/src/app/module_0.py", old_string=line, new_string="pass"))
    made.result("edit", "Done.")
    made.answer(text("Mended."))
    rows = played(made.write(tmp_path / "s.jsonl"), rows=("lean",)).figures
    assert rows["append"].fetched == 0
    assert rows["append"].quotes == rows["lean"].quotes > 0
    assert (rows["lean"].fetched, rows["lean"].quotes_hidden) == (1, 1)
    assert rows["lean"].calls == rows["append"].calls, "the call that fetches is none of the recorded ones"
    assert rows["lean"].extra_output_tokens >= 100


@pytest.mark.spec("P8")
def test_the_report_says_what_would_have_been_saved(tmp_path: Path) -> None:
    report = played(long_work(28).write(tmp_path / "s.jsonl"), rows=("thrifty",))
    first, second = headlines(report)
    cost, paid = report.figures["thrifty"].usd, report.figures["recorded"].usd
    assert first.startswith("Lamina with balanced would have cost ")
    assert f"Lamina with thrifty would have cost {1 - cost / paid:.0%} less: ${cost:,.2f} instead of ${paid:,.2f}" in second
    found = report.to_json()["policies"]["thrifty"]
    assert found["saved_percent"] == pytest.approx(100 * (1 - cost / paid), abs=0.01)
    assert (found["compared_sessions"], found["dearer_sessions"]) == (1, 0)
    silent = played(long_work(2, usage=False).write(tmp_path / "t.jsonl"))
    assert headlines(silent) == ["The sessions report no usage, so there is no recorded cost to compare with."]


def test_answers_that_no_model_gave_are_no_calls(tmp_path: Path) -> None:
    made = long_work(2)
    for line in made.lines:
        if line["type"] == "assistant" and line["message"]["id"] == "msg_4":
            line["message"]["model"] = "<synthetic>"
    rows = played(made.write(tmp_path / "s.jsonl"), window=None).figures
    assert rows["recorded"].calls == rows["append"].calls == 3


def test_a_spilled_result_of_our_own_session_is_read_back(tmp_path: Path) -> None:
    words = "\n".join(f"line {number} of the long output" for number in range(3_000))
    with Session("offline", home=tmp_path / "home", cwd=tmp_path) as session:
        session.add_user("Run it.")
        session.before_call()
        call = {"type": "tool_use", "id": "run", "name": "Bash", "input": {"command": "make"}}
        session.after_call({"role": "assistant", "content": [call], "stop_reason": "tool_use"})
        session.add_tool_result("run", words)
        session.ask()
        session.end_turn()
    assert session.path is not None
    rows = played(session.path, window=None, without=("results",)).figures
    assert (rows["balanced"].spills, rows["balanced without results"].spills) == (1, 0)
    assert rows["balanced without results"].peak_tokens > rows["balanced"].peak_tokens + 10_000
    (file,) = (session.path.with_suffix("") / "tool-results").iterdir()
    file.write_text("something else")
    changed = played(session.path, window=None, without=("results",)).figures
    assert changed["balanced"].spills == 0, "what is not the original is not taken for it"


@pytest.mark.spec("P6")
def test_each_policy_can_be_played_with_another_lifetime_of_the_cache(tmp_path: Path) -> None:
    path = paused(1_000).write(tmp_path / "s.jsonl")
    rows = replay([path], ReplayOptions(variants((), (), ("5m", "1h")), settings)).figures
    short, long = rows["balanced with 5m cache"], rows["balanced with 1h cache"]
    assert (short.expired, long.expired) == (1, 0)
    assert short.usage.cache_write_1h == 0 < long.usage.cache_write_1h == long.usage.cache_write


@pytest.mark.spec("P6", "P8")
@pytest.mark.parametrize(("seconds", "sent", "expired"), [(200, 0, 0), (500, 1, 0), (800, 2, 0), (900, 2, 1)])
def test_keep_alive_requests_in_a_pause_are_sent_and_paid(tmp_path: Path, seconds: float, sent: int, expired: int) -> None:
    path = paused(seconds).write(tmp_path / "s.jsonl")
    rows = [Variant(f"{most}", {**ALWAYS, "cache_ttl": "5m", "cache_keep_alive": most}) for most in (0, 2)]
    without, alive = (replay([path], ReplayOptions(rows, settings)).figures[row.name] for row in rows)
    assert (without.side_calls, alive.side_calls) == (0, sent)
    assert (without.expired, alive.expired) == (int(seconds > 300), expired)
    assert alive.layer_failures == 0


def test_what_other_sessions_left_in_the_cache_is_read_at_once(tmp_path: Path) -> None:
    made = Recording()
    made.say("Wait for me.")
    made.wait(hours=1)
    made.say("Now.")
    made.answer(text("Yes."))
    cold = played(made.write(tmp_path / "cold.jsonl"), window=None).figures["append"].usage
    first = next(line for line in made.lines if line["type"] == "assistant")["message"]["usage"]
    first |= {"cache_read_input_tokens": 5_000, "cache_creation_input_tokens": first["cache_creation_input_tokens"] - 5_000}
    usage = played(made.write(tmp_path / "s.jsonl"), window=None).figures["append"].usage
    assert cold.cache_read == 0
    assert usage.cache_read == pytest.approx(5_000, rel=0.01)


def test_the_end_of_a_conversation_whose_beginning_lies_elsewhere_is_left_out(tmp_path: Path) -> None:
    made = long_work(1)
    for line in made.lines:
        if line["type"] == "assistant":
            line["message"]["usage"]["cache_read_input_tokens"] += 150_000
    report = played(made.write(tmp_path / "s.jsonl"))
    assert report.sessions == 0
    assert "tokens of its first request are not in the file" in report.skipped[0]


def test_a_recording_that_was_compacted_has_regrets_and_facts_of_its_own(tmp_path: Path) -> None:
    made = Recording()
    made.say("Look at both files, please.")
    made.read("/work/a.py", page(1))
    made.read("/work/b.py", page(2))
    made.compact("Both files were read.")
    made.read("/work/a.py", page(1))
    made.answer(text("Done."))
    rows = played(made.write(tmp_path / "s.jsonl"), window=None).figures
    assert (rows["recorded"].compactions, rows["recorded"].regrets, rows["recorded"].repeated_reads) == (1, 1, 1)
    assert (rows["append"].regrets, rows["append"].repeated_reads) == (0, 1)
    assert rows["recorded"].facts_in_context < rows["recorded"].facts == rows["append"].facts
    assert rows["recorded"].files_in_context < rows["recorded"].files


@pytest.mark.spec("B14")
def test_with_memory_the_index_and_what_recall_brings_are_counted(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    (memory / "MEMORY.md").write_text("- [Slow functions](slow.md) — where the slow function of src/app is\n")
    (memory / "slow.md").write_text(
        "---\nname: slow\ndescription: the slow function of src/app\ntype: project\n---\nThe slow function is in src/app/module_1.py.\n"
    )
    path = long_work(2).write(tmp_path / "s.jsonl")

    def remembering(arguments: Mapping[str, Any]) -> Settings:
        return Settings(memory_directory=str(memory), **arguments)

    before = {one.name: one.read_bytes() for one in memory.iterdir()}
    wanted = ReplayOptions(variants((), ("memory",)), remembering, None, lambda _: "Index: where the slow function of src/app is")
    rows = replay([path], wanted).figures
    index_alone = ReplayOptions(variants(), settings, None, lambda _: "Index: where the slow function of src/app is")
    assert rows["balanced"].memory_tokens > replay([path], index_alone).figures["balanced"].memory_tokens > 0
    assert rows["balanced without memory"].memory_tokens == rows["append"].memory_tokens == 0
    assert rows["balanced"].peak_tokens > rows["balanced without memory"].peak_tokens
    assert {one.name: one.read_bytes() for one in memory.iterdir()} == before, "it is only read"


def test_a_session_of_our_own_is_replayed_with_its_prompt(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path / "home", cwd=tmp_path, system="Be brief. " * 300) as session:
        for number in range(3):
            session.add_user(f"The port of service {number} is {8000 + number}.")
            session.ask()
        session.end_turn()
    assert session.path is not None
    rows = played(session.path).figures
    assert rows["append"].calls == rows["recorded"].calls == 3
    assert rows["append"].usage.prompt > 3 * 500, "the recorded system prompt is sent"
    assert rows["append"].cost_usd is None, "nobody knows what the offline stand-in would cost"


def test_no_transcript_is_changed_and_bad_ones_are_left_out_with_a_sentence(tmp_path: Path, short_file: Path) -> None:
    (tmp_path / "in").mkdir()
    bad, good = tmp_path / "in" / "bad.jsonl", tmp_path / "in" / "good.jsonl"
    bad.write_bytes(b"\x00\x00")
    good.write_bytes(short_file.read_bytes() + b'{"torn": ')
    before = good.read_bytes()
    found = transcripts([tmp_path / "in", good])
    assert found == [bad, good], "each once"
    report = played(*found, tmp_path / "missing.jsonl")
    assert report.sessions == 1
    assert [one.split(" skipped: ")[0] for one in report.skipped] == [str(bad), str(tmp_path / "missing.jsonl")]
    assert len(report.damaged) == 1
    assert good.read_bytes() == before


def test_of_a_home_only_conversations_are_taken_and_each_once(tmp_path: Path) -> None:
    project = tmp_path / "projects" / "-work"
    beside = ["s/fork.jsonl", "s/damaged.jsonl", "s/damaged-2.jsonl", "memory/.history/journal-000001.jsonl"]
    for name in ("s.jsonl", "s/subagents/a.jsonl", *beside):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    (project / "again.jsonl").symlink_to("s.jsonl")
    found = transcripts([tmp_path, project / ".." / "-work" / "s.jsonl"])
    assert [path.resolve().relative_to(project.resolve()).as_posix() for path in found] == ["s.jsonl", "s/subagents/a.jsonl"]


def test_rows_that_were_given_the_same_memory_are_named_once() -> None:
    given = {"append": 0, "balanced": 7, "lean": 9, "balanced without notes": 7}
    report = ReplayReport(figures={name: ReplayFigures(memory_tokens=tokens) for name, tokens in given.items()})
    assert [one for one in remarks(report) if "memory added" in one] == [
        "balanced and 1 other row: memory added 7 tokens (index and recall).",
        "lean: memory added 9 tokens (index and recall).",
    ]


def test_ctrl_c_leaves_nothing_behind(long_file: Path, scratch: Path) -> None:
    def stop(_: str, call: int, __: int) -> None:
        if call == 20:
            raise KeyboardInterrupt

    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        replay([long_file], ReplayOptions(variants()[1:], settings, WINDOW, on_call=stop))
    assert list(scratch.iterdir()) == []
    assert not [thread for thread in threading.enumerate() if thread not in before and thread.name.startswith("lamina-")]


def test_several_sessions_add_up(short_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(short_file.read_text().replace("msg_", "other_"))
    one, both = played(short_file).figures, played(short_file, other).figures
    for name, figures in one.items():
        assert both[name].usage == figures.usage + figures.usage
        assert both[name].peak_tokens == figures.peak_tokens
        assert both[name].cost_usd == pytest.approx((figures.cost_usd or 0) * 2)


@pytest.mark.spec("P8")
def test_a_recorded_summary_whose_call_is_not_in_the_transcript_is_estimated(tmp_path: Path) -> None:
    made = long_work(4)
    read = made.lines[-1]["message"]["usage"]
    made.compact("Summary: four files were read. " * 40)
    made.say("Go on.")
    made.answer(text("Done."))
    report = played(made.write(tmp_path / "s.jsonl"), window=None)
    recorded, before = report.figures["recorded"], sum(read[name] for name in read if name.startswith("cache_"))
    assert (recorded.unrecorded_calls, recorded.side_calls) == (1, 1)
    assert recorded.extra_output_tokens > 100
    estimate = (before * 0.3 + recorded.extra_output_tokens * 15) / 1e6
    assert recorded.unrecorded_usd == pytest.approx(estimate)
    assert any("the calls for 1 summary are not in the transcripts" in remark for remark in remarks(report))


def test_a_second_answer_to_the_same_request_is_paid_in_every_row(tmp_path: Path) -> None:
    made = long_work(2)
    made.answer(text("It is also in module_0."))
    rows = played(made.write(tmp_path / "s.jsonl"), window=None).figures
    assert {figures.calls for figures in rows.values()} == {5}
    assert rows["append"].usd == pytest.approx(rows["recorded"].usd, rel=0.05)


@pytest.mark.spec("B14")
@pytest.mark.parametrize("kind", COPIES)
def test_a_session_is_left_out_if_another_file_holds_all_of_it(tmp_path: Path, kind: str) -> None:
    origin, copy = COPIES[kind]
    first, second = write(tmp_path / "first.jsonl", FIRST[origin]), write(tmp_path / "second.jsonl", copy)
    third = write(tmp_path / "third.jsonl", copy)
    for files in ([first, second, third], [third, second, first]):
        report = played(*files)
        assert (report.sessions, report.calls) == (1, 21)
        assert (
            sorted(report.skipped)[0]
            == f"{first} skipped: all of its answers are in {files[1] if files[0] is first else files[0]}."
        )
        assert len(report.skipped) == 2


def test_the_beginning_of_a_copy_is_left_out_also_if_it_ends_before_the_usage(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.jsonl", FIRST["codex"])
    cut = write(tmp_path / "cut.jsonl", FIRST["codex"][:5])
    report = played(cut, whole)
    assert (report.sessions, report.calls) == (1, 20)
    assert report.skipped == [f"{cut} skipped: all of its answers are in {whole}."]


def test_of_copies_of_our_own_session_the_longest_is_played_and_a_fork_stays(tmp_path: Path) -> None:
    short, long = (long_work(count).write(tmp_path / f"{count}.jsonl") for count in (2, 4))
    assert played(short, long).calls == played(long).calls
    fork = tmp_path / "fork-of-it.jsonl"
    fork.write_text(short.read_text() + long.read_text().splitlines(keepends=True)[-1].replace("msg_", "other_"))
    assert played(fork, long).sessions == 2
