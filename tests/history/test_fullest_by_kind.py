"""The fullest request by kind and the marks that a list of sessions shows, against the window over time of the same session."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from lamina import Settings
from lamina.history.catalogue import scan_any
from lamina.history.places import Origin
from lamina.history.scan import Scan
from lamina.history.sessions import read
from lamina.history.window_kinds import KINDS, parts_of_fullest
from lamina.history.window_series import window_series

from ..web.made_home import ClaudeSession
from .agents import codex_message, codex_row, codex_usage, pi_rows, said, write

START = datetime(2026, 3, 1, 9, tzinfo=UTC)
WORDS = "one two three four five six seven "


def scanned(origin: Origin, path: Path) -> Scan:
    scan = Scan()
    for line in path.read_bytes().splitlines(keepends=True):
        scan_any(origin, line, scan, [])
    return scan


def claude(path: Path) -> Path:
    made = ClaudeSession(path, "/p", start=START)
    made.user("Look at everything. " * 400)
    for number in range(6):
        made.call("Read", {"file_path": f"{number}.py"}, 4_000)
        made.call("Bash", {"command": "make"}, 2_000)
    made.clear(2)
    made.call("Grep", {"pattern": "x"}, 500)
    made.pause(90)
    made.cached = 0  # the cache has expired
    made.answer(said("Done. " * 900))
    made.compact()
    made.user("Go on.")
    made.call("Read", {"file_path": "z.py"}, 300)
    made.answer(said("Done."))
    return made.write()


def codex(path: Path) -> Path:
    call = {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c"}
    rows = [
        codex_row("session_meta", {"id": "t", "cwd": "/p"}),
        codex_row("turn_context", {"model": "gpt-5"}, 1),
        codex_message("user", WORDS * 300, 2),
        codex_row("response_item", call, 3),
        codex_usage(12_000, 0, 20, 4),
        codex_row("response_item", {"type": "function_call_output", "call_id": "c", "output": WORDS * 1_000}, 5),
        codex_message("assistant", "Read.", 6),
        codex_usage(20_000, 12_000, 30, 7),
    ]
    return write(path, rows)


def pi(path: Path) -> Path:
    rows = pi_rows("/p")
    rows[3]["message"]["content"] = [said(WORDS * 1_000)]
    for row, tokens in ((rows[2], 8_000), (rows[4], 16_000)):
        row["message"]["usage"] |= {"input": tokens, "cacheRead": 0, "cacheWrite": 0}
    rows[6]["message"]["content"] = [said(WORDS * 100)]  # more than its reported output
    return write(path, rows)


@pytest.mark.spec("V2")
@pytest.mark.parametrize(("origin", "make"), [("claude-code", claude), ("codex", codex), ("pi", pi)])
def test_a_list_divides_the_fullest_request_as_the_sessions_view_does(origin: Origin, make: object, tmp_path: Path) -> None:
    path = make(tmp_path / "s.jsonl")  # type: ignore[operator]
    figures = scanned(origin, path).figures()
    series = window_series(read(path), Settings(), origin=origin)
    fullest = max(series.requests, key=lambda point: point.tokens)
    parts = parts_of_fullest(figures.full, figures.head, figures.fullest)
    assert sum(parts) == figures.fullest == fullest.tokens
    off = {kind: (mine, theirs) for kind, mine, theirs in zip(KINDS, parts, fullest.kinds, strict=True) if mine or theirs}
    assert all(abs(mine - theirs) <= 0.12 * fullest.tokens for mine, theirs in off.values()), off
    kinds = [one.kind for one in series.decisions]
    assert (figures.compactions, figures.clearings) == (kinds.count("compact"), kinds.count("clear"))
    assert figures.breaks == kinds.count("break")
    assert figures.short_outputs == series.short_outputs == (origin == "pi"), "both say that the cost is at least so much"


def test_a_scan_in_two_parts_gives_the_same_fullest_request(tmp_path: Path) -> None:
    lines = claude(tmp_path / "s.jsonl").read_bytes().splitlines(keepends=True)
    whole = scanned("claude-code", tmp_path / "s.jsonl").figures()
    (tmp_path / "s.jsonl").write_bytes(b"".join(lines[:9]))
    half = msgspec.json.decode(msgspec.json.encode(scanned("claude-code", tmp_path / "s.jsonl")), type=Scan)
    for line in lines[9:]:
        scan_any("claude-code", line, half, [])
    assert half.figures() == whole
