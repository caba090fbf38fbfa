"""The figures of a session in lists and in the overview are those of its own view, for sessions of all agents."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lamina import Settings
from lamina.core.record_lines import Envelope, write_record
from lamina.core.records import Break, Clear, Event, Record, Revoke, Rewind, Span
from lamina.history.catalogue import scan_any
from lamina.history.places import Origin
from lamina.history.scan import Scan, SessionFigures
from lamina.history.sessions import read
from lamina.history.window_series import Series, window_series
from lamina.web.session_figures import fullest_of

from ..web.made_home import ClaudeSession, window_session
from .agents import codex_message, codex_row, codex_rows, codex_usage, pi_rows, said, write
from .test_fullest_by_kind import claude as cleared_and_compacted
from .test_window_series import MODEL, Session

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
OTHER = "claude-haiku-4-5"
WORDS = "one two three four five six seven "


def listed(figures: SessionFigures) -> dict[str, Any]:
    """The figures of a session that lists show."""
    paid = [one for by in figures.costs.values() for one in by.values()]
    return {
        "compactions": figures.compactions,
        "clearings": figures.clearings,
        "breaks": figures.breaks,
        "broken": sum(one.breaks for one in paid),
        "written again": sum(one.again for one in paid),
        "calls": sum(one.calls for one in paid),
        "fullest": figures.fullest,
        "last": figures.newest[0],
        "tokens": figures.usage,
        "usd": figures.cost_usd if figures.cost_usd is None else round(figures.cost_usd, 9),
        "short outputs": figures.short_outputs,
    }


def shown(series: Series) -> dict[str, Any]:
    """The same figures as the session's own view has them."""
    kinds = Counter(one.kind for one in series.decisions)
    reported = [point for point in series.requests if point.reported]
    usage = sum((point.usage for point in reported), series.beside_usage + series.side.usage)
    costs = [series.beside_usd, series.side.usd, *(point.usd for point in series.requests)]
    return {
        "compactions": kinds["compact"],
        "clearings": kinds["clear"],
        "breaks": kinds["break"],
        "broken": sum(one.written_again > 0 for one in series.decisions),
        "written again": sum(one.written_again for one in series.decisions),
        "calls": len(reported) + series.beside + series.side.calls,
        "fullest": fullest_of(series).tokens if reported else 0,
        "last": reported[-1].tokens if reported else 0,
        "tokens": usage,
        "usd": None if None in costs else round(sum(one or 0.0 for one in costs), 9),
        "short outputs": series.short_outputs,
    }


def scanned(origin: Origin, path: Path, *, parent: str = "") -> SessionFigures:
    """Scan a file in parts, as an index follows one that grows."""
    scan = Scan(parent=parent)
    for line in path.read_bytes().splitlines(keepends=True):
        scan_any(origin, line, scan, [])
        scan = msgspec.json.decode(msgspec.json.encode(scan), type=Scan)
    return scan.figures()


# Claude Code


def silent_rewrite(made: ClaudeSession) -> None:
    """The agent drops most of the window without a record, and sends much that is new."""
    made.call("Read", {"file_path": "a.py"}, 60_000)
    made.call("Read", {"file_path": "b.py"}, 40_000)
    made.window, made.cached = made.window - 60_000, 21_400


def model_changes(made: ClaudeSession) -> None:
    """Another model that finds most of the window in the cache."""
    made.call("Read", {"file_path": "a.py"}, 2_000)
    made.answer(said("Done."))
    made.user("Go on. " * 300)
    made.window, made.cached = made.cached + 100, made.cached - 2_200
    made.answer(said("Go on."))
    for row in made.rows[-1:]:
        row["message"]["model"] = OTHER


def answer_of_the_agent(made: ClaudeSession) -> None:
    """An answer that the agent wrote itself lies between a compaction and the request that pays for it."""
    made.call("Read", {"file_path": "a.py"}, 40_000)
    made.answer(said("Done."))
    made.compact()
    synthetic = {"id": "s", "role": "assistant", "model": "<synthetic>", "content": [said("No response requested.")]}
    made.row("assistant", message={**synthetic, "usage": {"input_tokens": 0, "output_tokens": 0}})
    made.user("Go on.")
    made.answer(said("Done."))


def several_clearings(made: ClaudeSession) -> None:
    """Two clearings before one request, whose rest is small beside what was in the window before."""
    for number in range(5):
        made.call("Read", {"file_path": f"{number}.py"}, 30_000)
    made.answer(said("Done."))
    made.clear(3)
    made.clear(2)
    made.user("Go on. " * 2_000)
    made.answer(said("Done."))
    made.clear(0)
    made.compact()
    made.compact()


def uncounted_answer(made: ClaudeSession) -> None:
    made.call("Read", {"file_path": "a.py"}, 20_000)
    made.answer(said("Done."))
    del made.rows[-1]["message"]["usage"]
    made.user("Go on.")
    made.cached = 0
    made.answer(said("Done."))


def fullest_is_uncounted(made: ClaudeSession) -> None:
    made.call("Read", {"file_path": "a.py"}, 20_000)
    made.answer(said("Done."))
    del made.rows[-1]["message"]["usage"]
    made.window, made.cached = made.window - 15_000, 21_400


def answers_twice(made: ClaudeSession) -> None:
    """The file repeats an answer after the next one."""
    made.call("Read", {"file_path": "a.py"}, 20_000)
    repeated = dict(made.rows[-2])
    made.answer(said("Done."))
    made.rows.append(repeated)
    made.pause(90)
    made.cached = 0
    made.user("Go on.")
    made.answer(said("Done."))


def subagents_beside(made: ClaudeSession) -> None:
    """A subagent in the same file has its own window and its own compaction."""
    made.call("Task", {"prompt": "Count."}, 20_000)
    before = made.window, made.cached, made.parent
    made.window, made.cached, at = 9_000, 0, len(made.rows)
    made.user("Count.")
    made.answer(said("12."))
    made.compact()
    made.answer(said("12."))
    for row in made.rows[at:]:
        row["isSidechain"] = True
    made.window, made.cached, made.parent = before
    made.answer(said("Done."))


def went_back(made: ClaudeSession) -> None:
    """The user goes back to an earlier message after the cache expired."""
    made.call("Read", {"file_path": "a.py"}, 20_000)
    made.answer(said("Done."))
    earlier, window = made.parent, made.window
    made.user("Another way. " * 3_000)
    made.call("Read", {"file_path": "b.py"}, 20_000)
    made.answer(said("Done."))
    made.parent, made.window, made.cached = earlier, window, 0
    made.pause(90)
    made.user("This way.")
    made.answer(said("Done."))


def long_arguments(made: ClaudeSession) -> None:
    """Arguments of calls that are longer in the file than in the request."""
    for size in range(200, 900, 50):
        made.answer({"type": "tool_use", "id": f"t{size}", "name": "Write", "input": {"text": "é\n" * (size // 2)}}, output=30)


CLAUDE: list[Callable[[ClaudeSession], None]] = [
    silent_rewrite,
    model_changes,
    answer_of_the_agent,
    several_clearings,
    uncounted_answer,
    fullest_is_uncounted,
    answers_twice,
    subagents_beside,
    went_back,
    long_arguments,
]


@pytest.mark.spec("V2")
@pytest.mark.parametrize("make", CLAUDE)
def test_lists_have_the_figures_of_a_session_of_claude_code(make: Callable[[ClaudeSession], None], tmp_path: Path) -> None:
    made = ClaudeSession(tmp_path / "s.jsonl", "/p", start=START)
    made.user("Look at everything.")
    make(made)
    made.user("Thanks.")
    made.answer(said("Done."))
    path = made.write()
    series = window_series(read(path), Settings(), origin="claude-code")
    assert listed(scanned("claude-code", path)) == shown(series)
    assert series.decisions or make is long_arguments or make is subagents_beside


def test_lists_have_the_figures_of_a_subagents_file(tmp_path: Path) -> None:
    made = ClaudeSession(tmp_path / "agent-1.jsonl", "/p", start=START)
    made.user("Look at everything.")
    made.call("Read", {"file_path": "a.py"}, 40_000)
    made.compact()
    made.answer(said("Done."))
    for row in made.rows:
        row["isSidechain"] = True
    path = made.write()
    series = window_series(read(path), Settings(), origin="claude-code")
    assert listed(scanned("claude-code", path, parent="s")) == shown(series)
    assert [one.kind for one in series.decisions] == ["compact"]


def test_lists_have_the_figures_of_sessions_with_everything(tmp_path: Path) -> None:
    for path in (cleared_and_compacted(tmp_path / "a.jsonl"), window_session(tmp_path / "b.jsonl", "/p").write()):
        assert listed(scanned("claude-code", path)) == shown(window_series(read(path), Settings(), origin="claude-code"))


# Lamina


def mark_clear(b: Session) -> Record:
    return Clear("clear", b.last, b.time, {f"c{number}": "gone" for number in range(1, 3)})


MARKS: dict[str, Callable[[Session], Record]] = {
    "clear": mark_clear,
    "collapse": lambda b: Span("fold", b.last, b.time, "collapse", ("r1",), "folded"),
    "undo": lambda b: Revoke("undone", b.last, b.time, "nobody"),
    "rewind": lambda b: Rewind("back", b.last, b.time, b.last),
    "announced": lambda b: Break("broken", b.last, b.time, "tools", 3),
    "decided": lambda b: Break("broken", b.last, b.time, "compaction", 3),
    "side call": lambda b: Event(
        "fork", b.last, b.time, "fork", {"purpose": "notes", "input": 90, "output": 5, "cache_read": 100, "usd": 0.25}
    ),
}


@pytest.mark.spec("V2")
@pytest.mark.parametrize("lost", [0, 20_000])
@pytest.mark.parametrize("mark", MARKS)
def test_lists_have_the_figures_of_a_session_of_lamina(mark: str, lost: int, tmp_path: Path) -> None:
    b = Session()
    b.said("go")
    for number, size in enumerate((28_000, 30_000, 32_000), 1):
        b.call(prompt=size, read=size - 2_000 if number > 1 else 0)
        b.results(f"c{number}")
    b.put(MARKS[mark](b), moves=False)
    b.call(prompt=33_000, read=32_000 - lost)
    b.results("c4")
    b.put(MARKS[mark](b), moves=False)
    envelope = Envelope("s", "/p", "1")
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(write_record(record, envelope) + b"\n" for record in b.records))
    series = window_series(read(path), Settings())
    assert listed(scanned("lamina", path)) == shown(series)
    assert sum(one.written_again for one in series.decisions) == lost


# Codex


def counted(kind: str, total: list[int], given: int, cached: int, output: int, second: int) -> list[dict[str, Any]]:
    """The usage of an answer as one version of Codex records it: in a record, as a running total, or as a total alone."""
    if kind == "record":
        return [codex_usage(given, cached, output, second)]
    total[:] = [one + more for one, more in zip(total, (given, cached, output), strict=True)]
    names = ("input_tokens", "cached_input_tokens", "output_tokens")
    sums = {"total_token_usage": dict(zip(names, total, strict=True))}
    last = {"last_token_usage": dict(zip(names, (given, cached, output), strict=True))} if kind == "last" else {}
    row = codex_row("event_msg", {"type": "token_count", "info": {**sums, **last}}, second)
    return [row, row]


@pytest.mark.spec("V2")
@pytest.mark.parametrize("kind", ["record", "last", "total"])
def test_lists_have_the_figures_of_a_session_of_codex(kind: str, tmp_path: Path) -> None:
    total = [0, 0, 0]
    call = {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c"}
    result = {"type": "function_call_output", "call_id": "c", "output": WORDS * 1_000}
    rows = [
        codex_row("session_meta", {"id": "t", "cwd": "/p"}),
        codex_row("turn_context", {"model": "gpt-5"}, 1),
        codex_message("user", WORDS * 300, 2),
        codex_message("assistant", "I look.", 3),
        codex_row("response_item", call, 3),
        *counted(kind, total, 12_000, 11_000, 20, 4),
        codex_row("response_item", result, 5),
        codex_row("response_item", {"type": "reasoning", "encrypted_content": "gAAA"}, 6),
        codex_message("assistant", WORDS * 200, 6),
        *counted(kind, total, 20_000, 4_000, 3, 7),
        codex_row("turn_context", {"model": "gpt-5-mini"}, 8),
        codex_message("user", "Go on.", 8),
        codex_row("response_item", {**call, "call_id": "d"}, 9),
        codex_row("response_item", {**result, "call_id": "d"}, 9),
        *counted(kind, total, 21_000, 0, 20, 10),
        *counted(kind, total, 22_000, 20_000, 400, 11),  # the call that summarises; only a record tells it from the answer before
        codex_row("compacted", {"message": "So far."}, 12),
        codex_message("user", "And now?", 13),
        codex_message("assistant", "Done.", 14),
        *counted(kind, total, 9_000, 2_000, 5, 15),
        codex_message("user", "And now?", 16),
        codex_message("assistant", "Stopped.", 17),
    ]
    path = write(tmp_path / "rollout-s.jsonl", rows)
    series = window_series(read(path), Settings(), origin="codex")
    assert listed(scanned("codex", path)) == shown(series)
    broken = {"record": ["break", "model"], "last": ["break", "compact"], "total": []}
    assert [one.kind for one in series.decisions if one.written_again] == broken[kind]


def test_lists_have_the_figures_of_the_sessions_of_the_other_tests(tmp_path: Path) -> None:
    path = write(tmp_path / "rollout-s.jsonl", codex_rows("/p"))
    assert listed(scanned("codex", path)) == shown(window_series(read(path), Settings(), origin="codex"))


# pi


@pytest.mark.spec("V2")
@pytest.mark.parametrize("change", ["none", "no usage", "no words", "recorded cost", "no cost", "back"])
def test_lists_have_the_figures_of_a_session_of_pi(change: str, tmp_path: Path) -> None:
    rows = pi_rows("/p")
    answers = [row["message"] for row in rows if row.get("message", {}).get("role") == "assistant"]
    for answer, (tokens, cached) in zip(answers, ((9_000, 0), (12_000, 0), (14_000, 12_000), (5_000, 0)), strict=True):
        answer["usage"] |= {"input": tokens - cached, "cacheRead": cached, "cacheWrite": 0}
        answer["model"] = "nobody-knows-1" if change == "recorded cost" else MODEL
    for answer in answers:
        answer["usage"]["cacheRead"] += 4_000
    match change:
        case "no usage":
            del answers[1]["usage"]
        case "no words":
            answers[1]["content"] = []
        case "no cost":
            del answers[1]["usage"]["cost"]
        case "back":
            rows[5]["parentId"] = "e1"
        case _:
            pass
    path = write(tmp_path / "s.jsonl", rows)
    series = window_series(read(path), Settings(), origin="pi")
    assert listed(scanned("pi", path)) == shown(series)
    assert json.dumps(shown(series)["usd"]) != "null"
