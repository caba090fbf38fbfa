"""`lamina replay` from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.running import here

from .recording import long_work, text

KEYS = [
    "input_units",
    "cost_usd",
    "input_tokens",
    "cached_tokens",
    "written_tokens",
    "output_tokens",
    "compactions",
    "breaks",
    "regrets",
    "peak_tokens",
]


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    # A slow machine must not add a word on how far it is.
    monkeypatch.setattr("lamina.cli.console.QUIET_SECONDS", 3_600.0)
    return place


@pytest.mark.spec("B14")
def test_one_document_with_the_names_others_rely_on(work: Path, tmp_path: Path) -> None:
    long_work(3).write(work / "recorded" / "one.jsonl")
    (work / "recorded" / "notes.jsonl").write_text("nothing\n")
    done = here("replay", "recorded", "--policy", "lean,classic", "--without", "notes", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["sessions"] == 1
    named = ["balanced", "lean", "classic"]
    rows = ["recorded", "append", *named, *(f"{name} without notes" for name in named)]
    assert list(found["policies"]) == [*rows, "lamina", "lamina without notes"], "the older names stay in this version"
    for older in ("lamina", "lamina without notes"):
        assert found["policies"][older] == found["policies"][older.replace("lamina", "balanced")]
    for figures in found["policies"].values():
        assert list(figures)[: len(KEYS)] == KEYS
        assert all(isinstance(figures[key], int | float) for key in KEYS)
    row = found["policies"]["append"]
    five_minutes = row["written_tokens"] - row["written_1h_tokens"]
    units = row["input_tokens"] + 0.1 * row["cached_tokens"] + 1.25 * five_minutes + 2 * row["written_1h_tokens"]
    assert row["input_units"] == pytest.approx(units, abs=0.1)
    assert len(found["skipped"]) == 1
    assert not (tmp_path / "home").exists(), "nothing of it is a session of ours"


def test_the_row_of_the_settings_in_force_is_named_after_its_policy(work: Path, tmp_path: Path) -> None:
    long_work(3).write(work / "one.jsonl")
    home = tmp_path / "home"
    home.mkdir()

    def rows(own: dict[str, object], *arguments: str) -> list[str]:
        (home / "settings.json").write_text(json.dumps({"lamina": own}))
        done = here("replay", "one.jsonl", *arguments, "--json")
        assert done.returncode == 0, done.stderr
        return [name for name in json.loads(done.stdout)["policies"] if "lamina" not in name][2:]

    assert rows({}, "--policy", "balanced,lean") == ["balanced", "lean"], "the same row is played once"
    assert rows({"policy": "lean"}) == ["lean"]
    assert rows({"billing": "subscription", "extraction": False}) == ["balanced"], "nothing of that is played"
    assert rows({"notes": {"firstAt": 9_000}}) == ["balanced, changed"]
    assert rows({"policy": "classic", "compaction": False}, "--without", "notes", "--policy", "classic") == [
        "classic, changed",
        "classic",
        "classic, changed without notes",
        "classic without notes",
    ]


def test_a_table_a_page_and_a_sentence_for_what_was_left_out(work: Path) -> None:
    long_work(3).write(work / "one.jsonl")
    (work / "bad.jsonl").write_text("nothing\n")
    done = here("replay", "one.jsonl", "bad.jsonl", "--html", "report.html")
    assert done.returncode == 0, done.stderr
    first, empty, *table = done.stdout.splitlines()[:6]
    assert first.startswith("Lamina with balanced would have cost ")
    assert (empty, [line.split()[0] for line in table]) == ("", ["policy", "recorded", "append", "balanced"])
    assert "1 sessions" not in done.stdout
    assert "1 session, 5 calls." in done.stdout
    assert "lamina: bad.jsonl skipped: the file has no model answer" in done.stderr
    first = (work / "report.html").read_text()
    assert first.startswith("<!doctype html>")
    assert here("replay", "one.jsonl", "bad.jsonl", "--html", "report.html").returncode == 0
    assert (work / "report.html").read_text() == first, "the same recording gives the same page"


@pytest.mark.spec("P8")
def test_a_session_request_by_request_adds_up_to_its_cost(work: Path) -> None:
    made = long_work(12)
    made.wait(minutes=10)
    made.say("Now look at the first files again.")
    made.answer(text("I know them:\ndef compute_total_1(order_book): return order_book.value_1  # 1 tests"))
    made.write(work / "one.jsonl")
    done = here("replay", "one.jsonl", "--policy", "classic", "--requests", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (session,) = found["requests"]
    lines = session["requests"]
    assert (session["session"], len(lines)) == ("one.jsonl", 15)
    for row, figures in found["policies"].items():
        costs = sum(line[row]["cost_usd"] + line[row]["other_calls_usd"] for line in lines)
        assert costs == pytest.approx(figures["cost_usd"], abs=1e-4), row
        read = sum(line[row]["cached_tokens"] for line in lines)
        assert read == figures["cached_tokens"] or figures["side_calls"]
    last = {row: lines[-1][row] for row in found["policies"]}
    assert (last["recorded"]["cache_miss"], last["append"]["cache_miss"], last["balanced"]["decision"]) == (
        "",
        "expired",
        "clearing",
    )
    assert last["balanced"]["context_tokens"] < last["classic"]["context_tokens"] == last["append"]["context_tokens"]
    assert last["balanced"]["quotes_hidden"] == 1
    assert "compute_total_1" in last["balanced"]["hidden"][0]

    done = here("replay", "one.jsonl", "--requests", "--html", "report.html")
    title, header, *rest = done.stdout.splitlines()
    assert title == "one.jsonl, balanced"
    assert header.split()[:6] == ["request", "time", "recorded", "read", "written", "cost"]
    shown = rest[14].split()
    assert (shown[:3], shown[-2:]) == (["15", "03-01", "09:10:29"], ["1", "clearing"])
    assert rest[15].startswith("Recorded: $")
    page = (work / "report.html").read_text()
    assert page.count("<td>clearing</td>") == 1
    assert rest[15] in page


def test_requests_of_a_model_with_unknown_prices_are_not_free(work: Path) -> None:
    long_work(1, model="nobody-knows-this").write(work / "one.jsonl")
    shown = here("replay", "one.jsonl", "--requests").stdout
    assert "Recorded: an unknown amount for these requests, in all an unknown amount." in shown
    (session,) = json.loads(here("replay", "one.jsonl", "--requests", "--json").stdout)["requests"]
    assert {line[row]["cost_usd"] for line in session["requests"] for row in ("recorded", "balanced")} == {None}


def test_the_memory_of_the_project_is_played_with_unless_another_is_named(work: Path) -> None:
    long_work(2).write(work / "one.jsonl")
    saved = here("memory", "save", "slow", "--type", "project", "--description", "the slow function of src/app is in module_1")
    assert saved.returncode == 0, saved.stderr
    rows = json.loads(here("replay", "one.jsonl", "--without", "memory", "--json").stdout)["policies"]
    assert rows["balanced"]["memory_tokens"] > 0
    assert rows["balanced without memory"]["memory_tokens"] == 0
    (work / "empty").mkdir()
    other = json.loads(here("replay", "one.jsonl", "--memory", "empty", "--json").stdout)["policies"]
    assert other["balanced"]["memory_tokens"] == 0


def test_where_nothing_is_taken_out_every_fact_is_kept_though_the_index_of_then_is_not_sent(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for words in ("Remember: integration tests run against a real database, because mocks once hid a broken migration", "Hello"):
        assert here("-p", words).returncode == 0
    row = json.loads(here("replay", str(home / "projects"), "--json").stdout)["policies"]["append"]
    assert row["facts_in_context"] == row["facts"] > 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "Missing argument"),
        (("missing.jsonl",), 2, "file or directory missing.jsonl not found"),
        (
            ("bad.jsonl",),
            2,
            "bad.jsonl skipped: the file has no model answer; pass transcripts of Lamina, Claude Code, Codex or pi.\n",
        ),
        (("empty",), 2, "no transcripts found in empty"),
        (("bad.jsonl", "--policy", "lean,cheapest"), 2, "'cheapest' is not one of"),
        (("bad.jsonl", "--ttl", "2h"), 2, "'2h' is not one of"),
        (("bad.jsonl", "--without", "dreams"), 2, "'dreams' is not one of"),
    ],
)
def test_misuse_is_one_line(work: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    (work / "bad.jsonl").write_text("nothing\n")
    (work / "empty").mkdir()
    done = here("replay", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_who_waits_longer_is_told_how_far_it_is(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long_work(1).write(work / "one.jsonl")
    assert here("replay", "one.jsonl").stderr == ""
    monkeypatch.setattr("lamina.cli.console.QUIET_SECONDS", 0.0)
    assert here("replay", "one.jsonl").stderr.startswith("lamina: session 1 of 1: one.jsonl\n")


def test_a_page_that_cannot_be_written_is_said(work: Path) -> None:
    long_work(1).write(work / "one.jsonl")
    (work / "there").mkdir()
    done = here("replay", "one.jsonl", "--html", "there")
    assert done.returncode == 2
    assert "is a directory" in done.stderr


def test_a_page_never_replaces_what_is_no_page(work: Path) -> None:
    for name in ("one.jsonl", "two.jsonl"):
        long_work(1).write(work / name)
    before = (work / "one.jsonl").read_bytes()
    done = here("replay", "--html", "one.jsonl", "two.jsonl")  # what a shell makes of `--html *.jsonl`
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "lamina: --html: one.jsonl exists and is not a replay report; choose another file.\n"
    assert (work / "one.jsonl").read_bytes() == before


def test_a_page_that_fails_does_not_cost_the_figures(work: Path) -> None:
    long_work(1).write(work / "one.jsonl")
    (work / "file").write_text("in the way")
    done = here("replay", "one.jsonl", "--html", "file/report.html", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["sessions"] == 1
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text there")
def test_a_page_names_files_whose_names_are_no_text(work: Path) -> None:
    long_work(1).write(work / "one.jsonl")
    (work / os.fsdecode(b"bad\xff.jsonl")).write_text("nothing\n")
    done = here("replay", ".", "--html", "report.html")
    assert done.returncode == 0, done.stderr
    assert "bad?.jsonl skipped" in (work / "report.html").read_text()


def test_to_ask_a_model_takes_a_provider(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    long_work(1).write(work / "one.jsonl")
    done = here("replay", "one.jsonl", "--ask", "1")
    assert done.returncode == 2
    assert "no provider is configured" in done.stderr


# Ends itself in the middle of the first session.
TERMINATED = """
import os, signal
from lamina.cli import console
from lamina.cli.main import main
console.ProgressLine.show = lambda _, text: ", call 5 " in text and os.kill(os.getpid(), signal.SIGTERM)
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_a_terminated_replay_leaves_no_temporary_files(work: Path, tmp_path: Path) -> None:
    long_work(8).write(work / "one.jsonl")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-c", TERMINATED, "replay", "one.jsonl"]
    done = subprocess.run(command, env={**os.environ, "TMPDIR": str(scratch)}, capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (143, b"")
    assert list(scratch.iterdir()) == []
