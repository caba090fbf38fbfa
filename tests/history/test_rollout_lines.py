"""Forks of Codex: a file with new lines only, which names the session that it continues and where."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lamina import Settings
from lamina.core.blocks import Text
from lamina.core.log import Log
from lamina.disk.transcripts.jsonl import Health
from lamina.history import sessions as sources
from lamina.history.positions import START, read_placed
from lamina.history.query import search
from lamina.history.rollout_lines import MOST_BASES, find_bases
from lamina.history.session_stats import session_stats
from lamina.history.turns import is_users, numbered

from .agents import asked, codex_message, codex_row, rollout

BASE, FORK, SECOND, REVERTED = (f"019b0000-{name}-7000-8000-000000000001" for name in ("aaaa", "bbbb", "cccc", "dddd"))


def questions(path: Path, health: Health | None = None) -> list[str]:
    """What the user asked, as the view shows it."""
    items = Log.load(lambda: sources.read(path, health=health)).view.items
    return [block.text for item in items if item.role == "user" for block in item.blocks if isinstance(block, Text)]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    return tmp_path / "codex"


@pytest.fixture
def base(home: Path) -> Path:
    return rollout(home, BASE, *asked("one", "two"))


@pytest.fixture
def fork(home: Path, base: Path) -> Path:
    made = rollout(home, FORK, *asked("three"), base=base)
    with open(base, "a") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in asked("later"))
    return made


def test_a_fork_begins_with_its_base_up_to_where_it_left_it(fork: Path) -> None:
    health = Health()
    assert questions(fork, health) == ["one", "two", "three"]
    assert health.sentence(str(fork)) is None


def test_a_chain_of_forks_is_read_to_its_beginning_also_from_the_archive(home: Path, base: Path, fork: Path) -> None:
    second = rollout(home, SECOND, *asked("four"), base=fork)
    (home / "archived_sessions").mkdir()
    shutil.move(base, home / "archived_sessions" / base.name)
    assert questions(second) == ["one", "two", "three", "four"]


def test_a_reverted_session_goes_on_in_a_file_of_its_own(home: Path, base: Path) -> None:
    lines = base.read_bytes().splitlines(keepends=True)
    reverted = rollout(home, f"{BASE}_{REVERTED}", *asked("two again"), base=base, until=sum(map(len, lines[:5])))
    assert questions(reverted) == ["one", "two again"]
    fork = rollout(home, FORK, *asked("three"), base=reverted)
    assert questions(fork) == ["one", "two again", "three"]


def test_the_usage_of_a_base_counts_in_the_base_alone(base: Path, fork: Path) -> None:
    listed = {session.id: session for session in sources.sessions(Settings())}
    assert {id: session.usage.total for id, session in listed.items()} == {BASE: 3 * 1_010, FORK: 1_010}
    figures = session_stats(sources.read(fork))
    assert (figures.calls, figures.total.total, figures.side) == (1, 1_010, {})
    assert session_stats(sources.read(fork, with_base=False)).turns == 1


def test_running_totals_of_a_fork_include_the_base_and_are_not_counted(home: Path, base: Path) -> None:
    """A turn that failed has a running total and no record of its own."""
    totals = {"input_tokens": 2_000, "output_tokens": 20}
    counted = codex_row("event_msg", {"type": "token_count", "info": {"total_token_usage": totals, "last_token_usage": totals}})
    fork = rollout(home, FORK, counted, codex_message("user", "three", 3), counted, base=base)
    figures = session_stats(sources.read(fork))
    assert figures.total.total == figures.side_total().usage.total == 0
    assert {session.id: session.usage.total for session in sources.sessions(Settings())}[FORK] == 0


def test_turns_of_a_fork_have_the_same_numbers_in_a_search_and_in_the_session(fork: Path) -> None:
    turns = {record.blocks[0].wire["text"]: number for number, record in numbered(sources.read(fork)) if is_users(record)}
    assert turns == {"one": 1, "two": 2, "three": 3}
    for exact in (False, True):
        found = search("three", everywhere=True, exact=exact, settings=Settings())
        assert {one.turn for one in found if one.session_id == FORK} == {3}


def test_a_fork_is_read_from_any_place_as_from_its_beginning(fork: Path) -> None:
    placed = list(read_placed(fork))
    assert [one.record for one in placed] == list(sources.read(fork))
    assert placed[0].place.offset < 0 <= placed[-1].place.offset
    for at, one in enumerate(placed):
        # A reader that begins within an answer misses its usage; places are those of turns.
        if at == 0 or (getattr(one.record, "role", "") == "user"):
            start = one.place if at else START
            assert [each.record for each in read_placed(fork, start)] == [each.record for each in placed[at:]]


def test_a_missing_base_costs_one_sentence(home: Path, base: Path, fork: Path) -> None:
    second = rollout(home, SECOND, *asked("four"), base=fork)
    base.unlink()
    health = Health()
    assert questions(second, health) == ["three", "four"]
    told = f"x: this session continues {BASE}, which is missing or cut short. The rest is shown."
    assert health.sentence("x") == told


def test_a_base_that_was_cut_shows_what_is_left(base: Path, fork: Path) -> None:
    data = base.read_bytes().splitlines(keepends=True)
    base.write_bytes(b"".join(data[:5]))
    health = Health()
    assert questions(fork, health) == ["one", "three"]
    assert "is missing or cut short" in str(health.sentence("x"))


def test_bases_that_name_each_other_end(home: Path) -> None:
    first = rollout(home, BASE, *asked("one"))
    second = rollout(home, FORK, *asked("two"), base=first)
    first = rollout(home, BASE, *asked("one"), base=second)
    assert questions(second) == ["one", "two"]
    assert questions(first) == ["two", "one"]
    alone = rollout(home, SECOND, *asked("three"), base=second)
    alone.write_text(alone.read_text().replace(FORK, SECOND))
    assert questions(alone) == ["three"]


def test_a_chain_is_bounded(home: Path) -> None:
    file = rollout(home, f"{0:08}-aaaa-7000-8000-000000000001", *asked("0"))
    for number in range(1, MOST_BASES + 3):
        file = rollout(home, f"{number:08}-aaaa-7000-8000-000000000001", *asked(str(number)), base=file)
    found = find_bases(file)
    assert (len(found.parts), found.missing) == (MOST_BASES, f"{1:08}-aaaa-7000-8000-000000000001")


@pytest.mark.parametrize(
    "base",
    [None, 7, "x", {}, {"thread_id": 7, "end_byte_offset": 1}, {"thread_id": "../..", "end_byte_offset": 1}]
    + [{"thread_id": BASE, "end_byte_offset": offset} for offset in (-5, 0, 3, 1 << 70, 2.5, None)],
)
def test_whatever_a_file_names_as_its_base_its_own_lines_are_shown(home: Path, base: Any) -> None:
    rollout(home, BASE, *asked("one"))
    fork = rollout(home, FORK, *asked("two"), history_base=base)
    assert questions(fork)[-1] == "two"
    assert {session.id for session in sources.sessions(Settings())} == {BASE, FORK}


def test_a_link_is_no_base(home: Path, base: Path, tmp_path: Path) -> None:
    fork = rollout(home, FORK, *asked("three"), base=base)
    elsewhere = tmp_path / "elsewhere.jsonl"
    base.rename(elsewhere)
    base.symlink_to(elsewhere)
    assert questions(fork) == ["three"]
