"""Sessions of other agents appear in one list, with what they cost, and read as Lamina's own."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lamina
from lamina import Settings
from lamina.core.blocks import Text, ToolResult, ToolUse
from lamina.core.log import Log
from lamina.core.records import Message, Spill
from lamina.disk.paths.project import slug
from lamina.disk.regular_file import FileStamp, stamp
from lamina.history import codex
from lamina.history import sessions as sources
from lamina.history.catalogue import Catalogue, index_path, scan_any, with_catalogue
from lamina.history.places import SourceFile
from lamina.history.scan import Scan, ScannedTurn
from lamina.history.session_stats import session_stats
from lamina.history.sessions import fold_subagents
from lamina.history.turns import numbered

from ..cli.running import here
from .agents import (
    CLAUDE,
    CODEX,
    CODEX_CHILD,
    CODEX_WINDOW,
    PI,
    claude_answer,
    claude_user,
    codex_message,
    codex_row,
    codex_rows,
    pi_rows,
    write,
)
from .conftest import Agents


def texts(path: Path | str) -> list[str]:
    """The texts that the model would see now."""
    view = Log.load(lambda: sources.read(path)).view
    return [block.text for item in view.items for block in item.blocks if isinstance(block, Text)]


def run_sql(agents: Agents, query: str, *values: object) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(agents.database)) as database:
        rows = database.execute(query, values).fetchall()
        database.commit()
        return rows


@pytest.mark.spec("U3")
def test_every_agents_sessions_are_found_where_it_keeps_them(agents: Agents) -> None:
    found = {session.id: session for session in sources.sessions(Settings(), agents.project)}
    assert [(name, found[name].origin) for name in found if not found[name].parent] == [
        (PI, "pi"),
        (CODEX, "codex"),
        (CLAUDE, "claude-code"),
    ]
    assert {name: one.parent for name, one in found.items() if one.parent} == {"agent-c0": CLAUDE, CODEX_CHILD: CODEX}
    assert [found[name].title for name in (CLAUDE, CODEX, PI)] == [
        "Queue without redis",
        "Which table drives the parser?",
        "Which accent colour does the theme use?",
    ]
    assert {one.project for one in found.values()} == {str(agents.project)}
    assert [found[name].compactions for name in (CLAUDE, CODEX, PI)] == [1, 1, 1]
    assert [found[name].messages for name in (CLAUDE, CODEX, PI)] == [5, 4, 6]


def test_subagents_belong_to_the_session_of_their_own_agent(agents: Agents) -> None:
    write(
        agents.codex.with_name(f"rollout-{CLAUDE}.jsonl"),
        [*codex_rows(agents.project, CLAUDE)[:4], codex_message("user", "x", 5)],
    )
    found = fold_subagents(sources.sessions(Settings(), agents.project))
    assert {one.origin: len(one.subagents) for one in found if one.id == CLAUDE} == {"codex": 0, "claude-code": 1}


@pytest.mark.spec("U3")
def test_tokens_and_costs_are_counted_once(agents: Agents) -> None:
    found = {session.id: session for session in sources.sessions(Settings(), agents.project)}
    assert found[CLAUDE].tokens == 3 * 1_110  # two records of one answer repeat its usage
    assert found[CLAUDE].cost_usd == pytest.approx(3 * (100 * 3 + 1_000 * 0.3 + 10 * 15) / 1e6)
    assert found[CODEX].tokens == 1_020 + 1_230 + 505  # running totals are not added
    assert [found[name].window for name in (CLAUDE, CODEX, PI)] == [0, CODEX_WINDOW, 0]  # as the session states it
    assert found[CODEX].cost_usd == pytest.approx((1_300 * 1.25 + 1_400 * 0.125 + 55 * 10) / 1e6)
    assert (found[PI].tokens, found[PI].cost_usd) == (4 * 265, 1.0)  # pi records what each answer cost
    folded = {session.id: session for session in fold_subagents(list(found.values()))}
    assert set(folded) == {CLAUDE, CODEX, PI}
    assert folded[CLAUDE].tokens == 4 * 1_110
    assert folded[CODEX].tokens == found[CODEX].tokens + 101
    (agents.claude.parent.parent / "-copy").mkdir()
    (agents.claude.parent.parent / "-copy" / agents.claude.name).write_bytes(agents.claude.read_bytes())
    both = [session.tokens for session in fold_subagents(sources.sessions(Settings())) if session.id == CLAUDE]
    assert sorted(both) == [3 * 1_110, 4 * 1_110]


def test_answers_that_stand_in_a_file_twice_are_counted_once(tmp_path: Path) -> None:
    rows = [row for number in range(1, 41) for row in claude_answer(number, {"type": "text", "text": f"Answer {number}."})]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    scans = []
    for copies in (1, 2):
        scan = Scan()
        for line in (lines * copies).splitlines():
            scan_any("claude-code", line, scan, [])
        scans.append((scan.usage, scan.cost_usd, sum(paid.calls for by in scan.money().values() for paid in by.values())))
    assert scans[0] == scans[1]
    assert scans[0][2] == 40


@pytest.mark.spec("U3")
def test_a_codex_session_reads_as_its_last_history_and_what_follows(agents: Agents) -> None:
    assert texts(agents.codex) == [
        "Summary so far: the parser uses a table.",
        "And who generates it?",
        "A script called tablegen.",
    ]
    records = [record for record in sources.read(agents.codex) if isinstance(record, Message)]
    blocks = [block for record in records for block in record.blocks]
    assert sum(isinstance(block, Text) and "grammar.tbl" in block.text for block in blocks) == 1
    [call], [result] = ([one for one in blocks if isinstance(one, kind)] for kind in (ToolUse, ToolResult))
    assert isinstance(call, ToolUse)
    assert isinstance(result, ToolResult)
    assert (call.name, call.input, result.tool_use_id, result.text) == ("shell", {"command": ["ls"]}, call.id, "grammar.tbl")
    figures = session_stats(sources.read(agents.codex))
    assert (figures.turns, figures.calls) == (2, 3)
    assert (figures.total.input_tokens, figures.total.cache_read, figures.total.output_tokens) == (1_300, 1_400, 55)
    assert list(figures.usage) == ["gpt-5"]


def test_an_older_codex_session_has_running_totals_only(tmp_path: Path) -> None:
    usage = {"input_tokens": 900, "cached_input_tokens": 300, "output_tokens": 7}
    counted = codex_row("event_msg", {"type": "token_count", "info": {"total_token_usage": usage, "last_token_usage": usage}}, 30)
    rows = [row for row in codex_rows("/p") if row["type"] not in ("token_usage_record", "event_msg", "compacted")]
    path = write(tmp_path / "rollout-x.jsonl", [*rows[:8], counted, counted])
    scan, turns = Scan(), list[ScannedTurn]()
    for line in path.read_text().splitlines():
        codex.scan_row(scan, turns, json.loads(line))
    assert scan.usage.total == 907
    assert session_stats(sources.read(path)).total.total == 907


@pytest.mark.spec("U3")
def test_a_pi_session_reads_as_a_tree_with_its_compaction(agents: Agents) -> None:
    shown = texts(agents.pi)
    assert "Which accent colour does the theme use?" not in shown
    assert set(shown) == {
        "The theme's accent was changed.",
        "Make it green.",
        "Done, it is green now.",
        "Undo that.",
        "It is teal again.",
    }
    figures = session_stats(sources.read(agents.pi))
    assert (figures.turns, figures.calls, figures.total.cache_read) == (3, 4, 800)


def test_the_first_version_of_pis_format_is_a_plain_sequence(tmp_path: Path) -> None:
    rows = pi_rows("/p")
    for row in rows[1:]:
        del row["id"], row["parentId"]
    compaction = next(row for row in rows if row["type"] == "compaction")
    compaction["firstKeptEntryIndex"] = 5  # counted from the header
    del compaction["firstKeptEntryId"]
    shown = texts(write(tmp_path / "old.jsonl", rows))
    assert shown[-2:] == ["Undo that.", "It is teal again."]
    assert "Make it green." in shown
    assert "The accent is teal." not in shown


def test_context_and_words_in_one_codex_message_are_told_apart(tmp_path: Path) -> None:
    rows = codex_rows("/p", "t", source={"subagent": {"thread_spawn": {"parent_thread_id": "above"}}})[:4]
    parts = [{"type": "input_text", "text": text} for text in ("# AGENTS.md instructions for /p", "What is the plan?")]
    rows.append(codex_row("response_item", {"type": "message", "role": "user", "content": parts}, 5))
    rows.append(codex_row("token_usage_record", {"response": {"usage": {"input_tokens": 10, "output_tokens": 1}}}, 6))
    path = write(tmp_path / "rollout.jsonl", rows)
    scan, turns = Scan(), list[ScannedTurn]()
    for row in rows:
        codex.scan_row(scan, turns, row)
    assert [turn.text for turn in turns] == ["What is the plan?"]
    assert (scan.parent, scan.usage.total) == ("above", 11)
    messages = [record for record in sources.read(path) if isinstance(record, Message)]
    assert [block.text for record in messages for block in record.blocks if isinstance(block, Text)] == ["What is the plan?"]


def test_a_result_that_claude_code_stored_can_be_opened(agents: Agents) -> None:
    [spill] = [record for record in sources.read(agents.claude) if isinstance(record, Spill)]
    assert Path(spill.path).read_text().endswith("spilled part\n")
    assert spill.size == Path(spill.path).stat().st_size
    # A transcript may name any path; only files of its own session are opened.
    outside = agents.project / "secret.txt"
    outside.write_text("secret")
    preview = f"<persisted-output>\nOutput too large (1KB). Full output saved to: {outside}\n\nPreview:\nx\n</persisted-output>"
    result = [{"type": "tool_result", "tool_use_id": "toolu_9", "content": preview}]
    write(agents.claude, [claude_user(1, result)])
    assert not [record for record in sources.read(agents.claude) if isinstance(record, Spill)]


@pytest.mark.spec("U3")
def test_one_switch_turns_the_sources_off(agents: Agents) -> None:
    assert sources.sessions(Settings(sources=False)) == []
    assert sources.memories(Settings(sources=False)) == []


def test_memories_of_all_agents_are_listed(agents: Agents) -> None:
    found = {memory.name: memory for memory in sources.memories(Settings(), agents.project)}
    assert set(found) == {"queue", "Task Group: parser"}
    assert (found["queue"].origin, found["queue"].description) == ("claude-code", "The queue runs on Postgres")
    assert "tablegen" in found["Task Group: parser"].body
    assert {memory.name for memory in sources.memories(Settings(), agents.project.parent)} == {"Task Group: parser"}


@pytest.mark.spec("U3")
def test_only_sessions_of_the_project_are_its_own(agents: Agents, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    (other / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (other / "src").mkdir()
    write(tmp_path / "codex/sessions/2026/04/02/rollout-b.jsonl", codex_rows(other / "src", "other-thread"))
    assert [session.id for session in sources.sessions(Settings(), other)] == ["other-thread"]
    assert "other-thread" not in {session.id for session in sources.sessions(Settings(), agents.project)}
    assert len(sources.sessions(Settings())) == 6


def test_a_directory_that_two_projects_share_is_told_apart(agents: Agents, tmp_path: Path) -> None:
    one, other = tmp_path / "a-b", tmp_path / "a" / "b"
    for place in (one, other):
        place.mkdir(parents=True)
    home = agents.claude.parent.parent
    write(home / slug(one) / "one.jsonl", [claude_user(1, "One.", one)])
    write(home / slug(other) / "other.jsonl", [claude_user(1, "Other.", other)])
    write(home / slug(one) / "moved.jsonl", [claude_user(1, "Moved.", tmp_path / "elsewhere")])
    assert slug(one) == slug(other)
    assert {session.id for session in sources.sessions(Settings(), one)} == {"one", "moved"}
    assert {session.id for session in sources.sessions(Settings(), other)} == {"other", "moved"}


def test_a_project_that_was_moved_keeps_the_sessions_of_other_agents(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    lamina.Memory.open(agents.project).close()
    moved = agents.project.rename(agents.project.with_name("moved"))
    assert sources.sessions(Settings(), moved) == []
    assert here("migrate", "--from", str(agents.project), "--to", str(moved), "--yes").returncode == 0
    assert {session.id for session in sources.sessions(Settings(), moved)} >= {CLAUDE, CODEX, PI}
    assert {found.kind for found in lamina.search("queue on postgres", moved)} == {"memory", "turn"}
    agents.project.mkdir()  # another project in the old place has its sessions
    assert sources.sessions(Settings(), moved) == []


def test_turn_numbers_agree_between_the_index_and_the_records(agents: Agents) -> None:
    for session in sources.sessions(Settings()):
        query = "SELECT number, text FROM texts JOIN files ON files.id = file WHERE path = ? ORDER BY place"
        rows = run_sql(agents, query, os.fsencode(session.path))
        listed = [
            (number, block.text)
            for number, record in numbered(sources.read(session))
            for block in record.blocks
            if isinstance(block, Text) and not record.summary
        ]
        assert rows == listed


# The index


def test_the_index_is_private_and_follows_appended_bytes(agents: Agents) -> None:
    sources.sessions(Settings())
    assert stat.S_IMODE(agents.database.stat().st_mode) == 0o600
    with open(agents.codex, "a") as file:
        file.write(json.dumps(codex_message("user", "One more question.", 40)) + "\n" + '{"type": "response_item", "payl')
    [session] = [one for one in sources.sessions(Settings()) if one.id == CODEX]
    assert session.messages == 5
    with open(agents.codex, "a") as file:  # the line was still being written
        file.write('oad": {"type": "message", "role": "assistant", "content": "One more answer."}}\n')
    [session] = [one for one in sources.sessions(Settings()) if one.id == CODEX]
    assert (session.messages, session.skipped) == (6, 0)


def test_a_rewritten_file_is_read_anew_and_a_removed_one_is_gone(agents: Agents) -> None:
    sources.sessions(Settings())
    size = agents.codex.stat().st_size
    rows = [codex_rows(agents.project)[0], codex_message("user", "x" * size, 1)]
    write(agents.codex, rows)  # longer than before, in the same file
    agents.pi.unlink()
    found = {session.id: session for session in sources.sessions(Settings())}
    assert found[CODEX].messages == 1
    assert PI not in found
    assert run_sql(agents, "SELECT count(*) FROM words WHERE words MATCH 'teal OR tablegen'") == [(0,)]


@pytest.mark.parametrize(
    "damage", ["removed", "garbage", "empty", "older", "state", "pages", "numbers", "figures", "schema", "no table"]
)
def test_a_damaged_index_is_made_anew(agents: Agents, damage: str) -> None:
    before = sources.sessions(Settings())
    match damage:
        case "removed":
            agents.database.unlink()
        case "garbage":
            agents.database.write_bytes(b"not a database" * 1_000)
        case "empty":
            agents.database.write_bytes(b"")
        case "state":
            run_sql(agents, "UPDATE files SET state = '{\"number\": []}'")
        case "pages":
            data = bytearray(agents.database.read_bytes())
            data[4_096:] = bytes(len(data) - 4_096)
            agents.database.write_bytes(data)
        case "numbers":
            run_sql(agents, "UPDATE files SET mtime_ns = '17b73'")
        case "figures":
            run_sql(agents, "UPDATE files SET figures = x'7b227469746c65223a2282ff227d'")
        case "schema":
            whole = agents.database.read_bytes()
            agents.database.write_bytes(whole.replace(b"CREATE TABLE texts", b"CREATE TABL\xec texts"))
        case "older":
            run_sql(agents, "PRAGMA user_version=999")
        case _:
            run_sql(agents, "DROP TABLE texts")
    if damage == "no table":
        write(agents.pi, json.loads(f"[{','.join(agents.pi.read_text().splitlines())}]")[:4])
        assert PI in {session.id for session in sources.sessions(Settings())}
    else:
        assert sources.sessions(Settings()) == before


def test_an_index_removed_while_it_is_open_loses_nothing(agents: Agents) -> None:
    sources.sessions(Settings())
    catalogue = Catalogue(agents.database.parent.parent)
    agents.database.unlink()
    assert len(sources.sessions(Settings())) == 5
    with open(agents.pi, "a") as file:
        file.write("\n")
    seen = agents.pi.stat()
    with suppress(sqlite3.Error):  # it may notice, and then the caller opens another one
        catalogue.follow("session", [SourceFile("pi", str(agents.pi), stamp(seen))])
    catalogue.close()
    assert len(sources.sessions(Settings())) == 5


@pytest.mark.parametrize(("removals", "kept"), [(0, True), (1, True), (2, False)])
def test_what_was_read_in_an_index_that_was_removed_meanwhile_is_read_again(tmp_path: Path, removals: int, kept: bool) -> None:
    """Another process may make one in its place, and SQLite may take the journal of the one for the other's."""
    calls = list[bool]()

    def work(catalogue: Catalogue) -> int:
        calls.append(catalogue.on_disk)
        if len(calls) <= removals:
            index_path(tmp_path).unlink()
        return len(calls)

    assert with_catalogue(tmp_path, work) == removals + 1
    assert calls == [*[True] * removals, kept]
    assert index_path(tmp_path).exists() == kept


def test_without_a_writable_home_the_index_lives_in_memory(agents: Agents) -> None:
    agents.database.parent.parent.mkdir(parents=True)
    agents.database.parent.write_text("a file in place of the directory")
    assert len(sources.sessions(Settings())) == 5


LINES = [json.dumps(row).encode() + b"\n" for row in codex_rows("/p")]


@settings(max_examples=30)
@given(st.lists(st.integers(0, len(b"".join(LINES))), max_size=4))
def test_a_file_scanned_in_parts_gives_the_same(tmp_path_factory: pytest.TempPathFactory, cuts: list[int]) -> None:
    home, whole = tmp_path_factory.mktemp("home"), b"".join(LINES)
    path = home / "rollout.jsonl"
    catalogue = Catalogue(None)
    scan = Scan()
    for end in [*sorted(cuts), len(whole)]:
        path.write_bytes(whole[:end])
        seen = path.stat()
        # The time is the same in quick succession; the size tells that it grew.
        files = [SourceFile("codex", str(path), stamp(seen)._replace(size=end))] if end else []
        for row in catalogue.follow("session", files):
            scan = row.scan
    fresh = Catalogue(None)
    seen = path.stat()
    [row] = fresh.follow("session", [SourceFile("codex", str(path), stamp(seen))])
    assert scan == row.scan
    query = "SELECT place, number, speaker, text, head FROM texts ORDER BY place"
    found, expected = (one.database.execute(query).fetchall() for one in (catalogue, fresh))
    catalogue.close()
    fresh.close()
    assert found == expected


# Bad input


def test_a_codex_file_cut_in_the_middle_shows_what_it_has(agents: Agents) -> None:
    data = agents.codex.read_bytes()
    agents.codex.write_bytes(data[: len(data) // 2])
    [session] = [one for one in sources.sessions(Settings()) if one.id == CODEX]
    assert session.title == "Which table drives the parser?"
    assert "Which table drives the parser?" in texts(agents.codex)


def test_a_character_cut_in_half_costs_nothing_else(agents: Agents) -> None:
    torn = codex_rows(agents.project)[:4]
    data = write(agents.codex, [*torn, codex_message("user", "half a face \ud83d of a walrus", 5)]).read_bytes()
    message = codex_message("assistant", "It sleeps.", 6)
    agents.codex.write_bytes(data[:-1] + json.dumps(message).encode() + b"\n")  # a writer that died before the line's end
    pi = pi_rows(agents.project)
    pi[1]["message"]["content"][0]["text"] = "\ude00 a walrus too"
    write(agents.pi, pi)
    for exact in (False, True):
        found = lamina.search("walrus", agents.project, exact=exact)
        assert {one.text for one in found} >= {"half a face \ufffd of a walrus", "\ufffd a walrus too"}
    assert texts(agents.codex)[-2:] == ["half a face \ufffd of a walrus", "It sleeps."]
    assert all(session.skipped == 0 for session in sources.sessions(Settings()))


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege")
def test_links_are_never_followed(agents: Agents, tmp_path: Path) -> None:
    before = sources.sessions(Settings())
    day = agents.codex.parent
    (day / "loop").symlink_to(day.parent, target_is_directory=True)
    (day / "rollout-linked.jsonl").symlink_to(agents.pi)
    (agents.claude.parent / "elsewhere.jsonl").symlink_to(agents.pi)
    assert sources.sessions(Settings()) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_file_that_vanishes_or_becomes_a_pipe_is_left_out(agents: Agents) -> None:
    with closing(Catalogue(None)) as catalogue:
        seen = agents.pi.stat()
        gone = SourceFile("codex", str(agents.codex.with_name("gone.jsonl")), FileStamp(1, 10, 1))
        pipe = agents.pi.with_name("pipe.jsonl")
        os.mkfifo(pipe)
        files = [gone, SourceFile("pi", str(pipe), FileStamp(1, 10, 1))]
        files.append(SourceFile("pi", str(agents.pi), stamp(seen)))
        assert [row.path for row in catalogue.follow("session", files)] == [str(agents.pi)]
    assert len(sources.sessions(Settings())) == 5


def test_an_unreadable_directory_costs_a_sentence(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def scandir(path: str) -> object:
        if os.fspath(path).endswith(os.path.join("2026", "04")):
            raise PermissionError(13, "denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    unread: list[str] = []
    assert {session.origin for session in sources.sessions(Settings(), unread=unread)} == {"claude-code", "pi"}
    assert len(unread) == 1
    assert "could not be read: permission denied." in unread[0]


@pytest.fixture
def forbid(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Make a file or directory unreadable, also for root."""
    closed: list[str] = []

    def refusing(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any, *args: Any, **options: Any) -> Any:
            if any(str(path) == one or str(path).startswith(f"{one}/") for one in closed):
                raise PermissionError(13, "denied", path)
            return real(path, *args, **options)

        return call

    real_access = os.access
    monkeypatch.setattr(os, "open", refusing(os.open))
    monkeypatch.setattr(os, "scandir", refusing(os.scandir))
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) not in closed and real_access(path, mode))
    return lambda path: closed.append(str(path))


@pytest.mark.parametrize("exact", [False, True])
def test_files_that_cannot_be_read_are_named(agents: Agents, forbid: Callable[[Path], None], exact: bool) -> None:
    note = agents.claude.parent / "memory" / "queue.md"
    forbid(agents.codex)
    forbid(note)
    unread: list[str] = []
    assert CODEX not in {session.id for session in sources.sessions(Settings(), unread=unread)}
    assert unread == [f"{agents.codex} could not be read: permission denied."]
    told: list[str] = []
    assert lamina.search("parser redis", agents.project, exact=exact, notices=told) is not None
    assert sorted(told) == sorted(f"{path} could not be read: permission denied." for path in (agents.codex, note))


def test_an_unreadable_home_costs_one_sentence(agents: Agents, forbid: Callable[[Path], None]) -> None:
    home = agents.codex.parents[4]
    forbid(home)
    told: list[str] = []
    assert lamina.search("redis", agents.project, notices=told)
    assert told == [f"{home} could not be read: permission denied."]


def test_a_source_directory_that_vanishes_takes_only_its_own_sessions(agents: Agents) -> None:
    assert "codex" in {session.origin for session in sources.sessions(Settings())}
    shutil.rmtree(agents.codex.parents[3])
    unread: list[str] = []
    assert {session.origin for session in sources.sessions(Settings(), unread=unread)} == {"claude-code", "pi"}
    assert unread == []
    found = lamina.search("Which table drives the parser?", agents.project)
    assert all(one.origin != "codex" for one in found if one.kind == "turn")


def test_lines_of_any_shape_break_nothing(agents: Agents) -> None:
    strange = [
        "[1]",
        "null",
        '{"type":"user","message":"x"}',
        '{"payload":3,"type":"response_item"}',
        "{" * 10,
        "\x00\x00",
        '"\\ud800"',
    ]
    strange += ['{"type":"message","message":{"role":"user","content":{"a":1}}}', '{"type":"user","message":{"content":[1]}}']
    before = {session.id: session.messages for session in sources.sessions(Settings())}
    for path in (agents.claude, agents.codex, agents.pi):
        with open(path, "a", encoding="utf-8") as file:
            file.write("\n".join(strange) + "\n")
    after = {session.id: session for session in sources.sessions(Settings())}
    assert {name: one.messages for name, one in after.items()} == before
    assert all(after[name].skipped for name in (CLAUDE, CODEX, PI))
    for path in (agents.claude, agents.codex, agents.pi):
        assert list(sources.read(path))
