"""A session that grows is followed by what was appended, and a turn is read without the rest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core.histories import histories, written
from tests.history import agents

from lamina.core.records import Message, Record
from lamina.core.settings import Settings
from lamina.history.followed_session import FollowedSession, KeptWindow
from lamina.history.places import Origin
from lamina.history.positions import read_placed
from lamina.history.sessions import read
from lamina.history.window_series import window_series
from lamina.language.text import pack, unpack

HOMES = {"claude-code": agents.claude_home, "codex": agents.codex_home, "pi": agents.pi_home}


def turns_of(records: list[Record], starts: list[str]) -> list[list[str | None]]:
    """The ids of the records of each turn."""
    found: list[list[str | None]] = [[]]
    for record in records:
        if record.uuid in starts[1:]:
            found.append([])
        found[-1].append(record.uuid)
    return found


@pytest.mark.parametrize("origin", list(HOMES))
def test_any_turn_is_read_from_its_place(origin: Origin, tmp_path: Path) -> None:
    path = HOMES[origin](tmp_path, Path("/p"))
    followed = FollowedSession(path, Settings(), origin=origin)
    assert followed.update()
    assert not followed.update()
    records = list(read(path))
    series = followed.series()
    assert series == window_series(records, Settings(), origin=origin)
    expected = turns_of(records, [turn.record for turn in series.turns])
    assert [[record.uuid for record in followed.turn(turn.number)] for turn in series.turns] == expected
    assert followed.turn(0) == followed.turn(99) == []
    whole = {found.record.uuid: found.record for found in read_placed(path)}
    again = [record for turn in series.turns for record in followed.turn(turn.number)]
    assert all(whole[record.uuid] == record for record in again if isinstance(record, Message))


def test_the_turns_of_a_forks_base_are_read_from_their_places(tmp_path: Path) -> None:
    base = agents.rollout(tmp_path, agents.CODEX, *agents.asked("Which walrus?", "Which table?"))
    fork = agents.rollout(tmp_path, agents.CODEX_CHILD, *agents.asked("Which parser?"), base=base)
    with open(base, "a") as file:
        file.write("not of the fork\n")
    followed = FollowedSession(fork, Settings(), origin="codex")
    assert followed.update()
    series = followed.series()
    assert [turn.words for turn in series.turns] == ["Which walrus?", "Which table?", "Which parser?"]
    assert [point.tokens for point in series.requests if point.reported] == [1_000]
    records = list(read(fork))
    expected = turns_of(records, [turn.record for turn in series.turns])
    assert [[record.uuid for record in followed.turn(turn.number)] for turn in series.turns] == expected
    assert [list(followed.turns_with([word])) for word in (b"walrus", b"table", b"parser")] == [[1], [2], [3]]
    base.unlink()
    later = FollowedSession(fork, Settings(), origin="codex", kept=followed.keep(series))
    later.update()
    assert [record.uuid for record in later.turn(3)] == expected[2]
    anew = FollowedSession(fork, Settings(), origin="codex")
    anew.update()
    assert ([turn.words for turn in anew.series().turns], anew.series().missing_base) == (["Which parser?"], agents.CODEX)


@pytest.mark.parametrize("origin", list(HOMES))
def test_any_record_is_found_with_its_turn(origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = HOMES[origin](tmp_path, Path("/p"))
    followed = FollowedSession(path, Settings(), origin=origin)
    followed.update()
    turns = {turn.number: followed.turn(turn.number) for turn in followed.series().turns}
    expected = {record.uuid: (number, record) for number, records in turns.items() for record in records if record.uuid}
    assert expected
    found = {uuid: followed.find(uuid) for uuid in expected}
    assert {uuid: one and one[0] for uuid, one in found.items()} == {uuid: one[0] for uuid, one in expected.items()}
    assert all(one is not None and one[1].uuid == uuid for uuid, one in found.items())
    assert followed.find("nobody") is None
    if origin == "claude-code":
        number = len(turns)
        wanted = next(record.uuid for record in turns[number] if isinstance(record, Message))
        read, each = list[int](), followed.each

        def counted(number: int) -> Iterator[Record]:
            read.append(number)
            return each(number)

        monkeypatch.setattr(followed, "each", counted)
        assert (one := followed.find(wanted)) is not None
        assert (one[0], read) == (number, [number]), "the others are not decoded"


@pytest.mark.parametrize("origin", list(HOMES))
def test_turns_that_may_contain_words_are_found_without_decoding_them(origin: Origin, tmp_path: Path) -> None:
    path = HOMES[origin](tmp_path, Path("/p"))
    followed = FollowedSession(path, Settings(), origin=origin)
    followed.update()
    turns = followed.series().turns
    for turn in turns:
        words = [word.encode() for word in turn.words.lower().split() if word.isascii() and word.isalnum()]
        assert turn.number in followed.turns_with(words)
    assert [*followed.turns_with([])] == [turn.number for turn in turns]
    assert [*followed.turns_with([b"nobodysaidthis"])] == []
    path.write_bytes(path.read_bytes() + b'{"type": "x", "text": "\\u0041"}\n')
    followed.update()
    assert [*followed.turns_with([b"nobodysaidthis"])] == [turns[-1].number], "a letter by its number may be any word"


@pytest.mark.parametrize("origin", list(HOMES))
def test_a_growing_file_gives_what_a_whole_one_gives(origin: Origin, tmp_path: Path) -> None:
    path = HOMES[origin](tmp_path, Path("/p"))
    data = path.read_bytes()
    path.write_bytes(b"")
    followed = FollowedSession(path, Settings(), origin=origin)
    for at in range(0, len(data) + 300, 300):  # in the middle of lines
        with path.open("ab") as file:
            file.write(data[at : at + 300])
        followed.update()
    assert followed.series() == window_series(list(read(path)), Settings(), origin=origin)


@given(histories(), st.integers(1, 9))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_branches_and_undos_are_followed_too(tmp_path: Path, records: list[Record], step: int) -> None:
    lines = [written(record) + b"\n" for record in records if type(record).__name__ not in ("Foreign", "Newer")]
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"")
    followed = FollowedSession(path, Settings())
    for at in range(0, len(lines), step):
        with path.open("ab") as file:
            file.writelines(lines[at : at + step])
        followed.update()
    assert followed.series() == window_series(list(read(path)), Settings())
    path.unlink()


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    path = agents.claude_home(tmp_path, Path("/p"))
    followed = FollowedSession(path, Settings())
    followed.update()
    count = len(followed.series().requests)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))
    assert followed.update()
    assert len(followed.series().requests) < count
    new = path.with_name("new")
    new.write_bytes(b"".join(lines))
    os.replace(new, path)
    assert followed.update()
    assert len(followed.series().requests) == count
    path.unlink()
    with pytest.raises(OSError, match=path.name):
        followed.update()


@pytest.mark.parametrize("origin", list(HOMES))
def test_a_damaged_line_is_counted_and_hides_no_other(origin: Origin, tmp_path: Path) -> None:
    path = HOMES[origin](tmp_path, Path("/p"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b'{"torn": \n', *lines[3:]]))
    followed = FollowedSession(path, Settings(), origin=origin)
    followed.update()
    series = followed.series()
    assert (series.skipped_lines, series.damaged, series.lines) == (1, (4,), len(lines) + 1)
    assert len(series.requests) == (4 if origin == "pi" else 3)
    with path.open("ab") as file:
        file.write(b'\n{"torn again": \n{"type": "being wri')
    followed.update()
    with path.open("ab") as file:
        file.write(b'tten"}\n[]\n')
    followed.update()
    series = followed.series()
    assert (series.damaged, series.lines) == ((4, len(lines) + 3, len(lines) + 5), len(lines) + 5)


@pytest.mark.parametrize("origin", list(HOMES))
def test_a_kept_window_is_that_of_the_file_until_the_file_changes(origin: Origin, tmp_path: Path) -> None:
    path = HOMES[origin](tmp_path, Path("/p"))
    first = FollowedSession(path, Settings(), origin=origin)
    assert first.keep(first.series()) is None
    first.update()
    kept = msgspec.msgpack.decode(
        msgspec.msgpack.encode(first.keep(first.series()), enc_hook=pack), type=KeptWindow, dec_hook=unpack
    )
    smaller = Settings(context_window=50_000)
    again = FollowedSession(path, smaller, origin=origin, kept=kept)
    assert not again.update(), "nothing is read"
    assert again.series() == window_series(read(path), smaller, origin=origin), "with the settings of now"
    numbers = [turn.number for turn in again.series().turns]
    assert [again.turn(number) for number in numbers] == [first.turn(number) for number in numbers]
    data = path.read_bytes()
    with path.open("ab") as file:
        file.write(data.splitlines(keepends=True)[-1].replace(b"0000", b"1111"))
    assert again.update()
    assert again.series() == window_series(read(path), smaller, origin=origin)
    path.write_bytes(data[: data.index(b"\n") + 1])
    shrunk = FollowedSession(path, smaller, origin=origin, kept=kept)
    assert shrunk.update()
    assert shrunk.series() == window_series(read(path), smaller, origin=origin)
