"""Mailboxes: each message once and in order per sender, from any number of processes, and whatever is killed in between."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from lamina.core.errors import DiskError, InputError, PathRefused
from lamina.disk.crash_points import point
from lamina.disk.home import mailbox as module
from lamina.disk.home.mailbox import (
    CLAIM,
    INBOX,
    MOST_TAKEN,
    MOST_TAKEN_BYTES,
    Mailbox,
    MailboxAddress,
    MailboxFull,
    deliver,
    members,
    read_address,
)

from ..crash.harness import Kill, Say, every
from ..processes import needs_fork, together

ALICE = MailboxAddress("alice", "build")
PATIENCE = 120


def line(name: str, **more: object) -> bytes:
    return json.dumps({"id": name, **more}).encode()


def opened(home: Path, address: MailboxAddress = ALICE) -> Mailbox:
    box = Mailbox.open(home, address, durability="process")
    assert box is not None
    return box


def send(home: Path, *names: str) -> None:
    for name in names:
        deliver(home, ALICE, line(name), durability="process")


def read_all(box: Mailbox, transcript: Path) -> list[str]:
    """As a session does it: claimed, in the transcript, out of the mailbox."""
    found: list[str] = []
    while (taken := box.take(transcript)).lines:
        with transcript.open("ab") as file:
            file.write(b"".join(row + b"\n" for _, row in taken.lines))
        box.done(taken)
        found += taken.ids
    return found


@pytest.mark.spec("A6")
def test_what_was_sent_is_read_once_and_in_order(tmp_path: Path) -> None:
    box = opened(tmp_path)
    assert not box.waits()
    names = [f"{number:016x}" for number in range(2 * MOST_TAKEN + 3)]
    send(tmp_path, *names)
    assert box.waits()
    assert read_all(box, tmp_path / "t.jsonl") == names
    assert not box.waits()
    assert not (box.path / CLAIM).exists()
    send(tmp_path, "last")
    assert read_all(box, tmp_path / "t.jsonl") == ["last"]
    assert (box.path / INBOX).stat().st_mode & 0o777 == 0o600
    assert box.path.stat().st_mode & 0o777 == 0o700
    box.close()


@needs_fork
@pytest.mark.spec("A6", "Z4")
def test_many_processes_send_while_one_reads(tmp_path: Path) -> None:
    writers, each = 3, 12
    opened(tmp_path).close()

    def work(number: int) -> None:
        if number < writers:
            send(tmp_path, *(f"{number}-{count:04d}" for count in range(each)))
            return
        box, found, until = opened(tmp_path), list[str](), time.monotonic() + PATIENCE
        while len(found) < writers * each and time.monotonic() < until:
            found += read_all(box, tmp_path / "t.jsonl")
        (tmp_path / "found.json").write_text(json.dumps(found))

    together(writers + 1, work)
    found = json.loads((tmp_path / "found.json").read_text())
    assert len(found) == len(set(found)) == writers * each
    for number in range(writers):
        assert [name for name in found if name.startswith(f"{number}-")] == [f"{number}-{count:04d}" for count in range(each)]


@needs_fork
@pytest.mark.spec("A6", "Z4")
@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.usefixtures("crash_points")
def test_a_sender_killed_anywhere_has_sent_its_message_or_not(tmp_path: Path, torn: bool) -> None:
    def prepare(directory: Path) -> None:
        opened(directory).close()
        send(directory, "before")

    def act(directory: Path, say: Say) -> None:
        deliver(directory, ALICE, line("mine", text="x" * 500))
        say("sent")

    for run in every(tmp_path, prepare, act, Kill(torn=torn)):
        send(run.directory, "after")
        box = opened(run.directory)
        found = read_all(box, run.directory / "t.jsonl")
        box.close()
        assert found in (["before", "mine", "after"], ["before", "after"]), run.point
        assert "mine" in found or not run.said, run.point


@needs_fork
@pytest.mark.spec("A6", "Z4")
@pytest.mark.usefixtures("crash_points")
def test_a_reader_killed_anywhere_leaves_each_message_to_be_read_once(tmp_path: Path) -> None:
    names = ["m1", "m2", "m3"]

    def prepare(directory: Path) -> None:
        opened(directory).close()
        send(directory, *names)

    def act(directory: Path, say: Say) -> None:
        box = opened(directory)
        taken = box.take(directory / "first.jsonl")
        with (directory / "first.jsonl").open("ab") as file:
            point("test.transcript")
            file.write(b"".join(row + b"\n" for _, row in taken.lines))
        box.done(taken)
        say("read")

    for run in every(tmp_path, prepare, act, Kill()):
        send(run.directory, "m4")
        box = opened(run.directory)  # another session, with another transcript
        later = read_all(box, run.directory / "second.jsonl")
        box.close()
        first = run.directory / "first.jsonl"
        seen = [json.loads(row)["id"] for row in first.read_text().splitlines()] if first.exists() else []
        assert [*seen, *later] == [*names, "m4"], run.point


def test_half_a_line_in_the_transcript_counts_for_nothing(tmp_path: Path) -> None:
    box = opened(tmp_path)
    send(tmp_path, "m1", "m2")
    box.take(tmp_path / "t.jsonl")
    (tmp_path / "t.jsonl").write_bytes(line("m1") + b"\n" + line("m2"))  # the second was never acknowledged
    assert read_all(box, tmp_path / "other.jsonl") == ["m2"]
    box.close()


def test_an_id_the_transcript_only_speaks_of_is_no_message_in_it(tmp_path: Path) -> None:
    box = opened(tmp_path)
    send(tmp_path, "m1")
    (tmp_path / "t.jsonl").write_bytes(b'{"result":"Sent to alice (m1)."}\n')  # by a command in the reader's own session
    box.take(tmp_path / "t.jsonl")  # and here it is killed
    assert read_all(box, tmp_path / "t.jsonl") == ["m1"]
    box.close()


def test_what_is_taken_at_once_is_bounded_and_never_nothing(tmp_path: Path) -> None:
    box = opened(tmp_path)
    sizes = {"m1": MOST_TAKEN_BYTES + 1, "m2": MOST_TAKEN_BYTES // 2, "m3": MOST_TAKEN_BYTES // 3, "m4": MOST_TAKEN_BYTES // 4}
    for name, size in sizes.items():
        deliver(tmp_path, ALICE, line(name, text="x" * size), durability="process")
    for names in (("m1",), ("m2", "m3"), ("m4",)):
        taken = box.take(tmp_path / "t.jsonl")
        assert taken.ids == names
        box.done(taken)
    box.close()


def test_a_mailbox_that_is_swapped_for_a_link_is_not_followed(tmp_path: Path) -> None:
    box = opened(tmp_path)
    send(tmp_path, "m1")
    box.path.rename(tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", box.path)
    with pytest.raises(PathRefused):
        box.take(tmp_path / "t.jsonl")
    assert not (tmp_path / "elsewhere" / CLAIM).exists()
    box.close()


def test_a_mailbox_is_bounded_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_UNREAD", 200)
    box = opened(tmp_path)
    with pytest.raises(MailboxFull, match="full of unread messages"):
        send(tmp_path, *(f"m{number}" for number in range(100)))
    assert (box.path / INBOX).stat().st_size <= 200
    read_all(box, tmp_path / "t.jsonl")
    send(tmp_path, "again")
    box.close()


def test_what_is_no_message_is_passed_over_and_removed(tmp_path: Path) -> None:
    box = opened(tmp_path)
    deep = b'{"id":"deep","x":' + b"[" * 100_000 + b"\n"
    (box.path / INBOX).write_bytes(b'\xff\n{"x":1}\n\n[]\n' + deep + line("good") + b"\n" + line("good") + b'\n{"id":"ha')
    (box.path / CLAIM).write_bytes(b"not json")
    send(tmp_path, "next")
    assert box.take(tmp_path / "t.jsonl").invalid == 5
    assert read_all(box, tmp_path / "t.jsonl") == ["good", "next"]
    (box.path / INBOX).write_bytes(b"junk\n")
    assert read_all(box, tmp_path / "t.jsonl") == []
    assert not box.waits()
    box.close()


def test_one_session_at_a_time_has_a_mailbox(tmp_path: Path) -> None:
    box = opened(tmp_path)
    assert Mailbox.open(tmp_path, ALICE) is None
    box.close()
    opened(tmp_path).close()
    opened(tmp_path, MailboxAddress("bob", "build")).close()
    opened(tmp_path, MailboxAddress("carl", "other")).close()
    assert members(tmp_path, "build") == ["alice", "bob"]
    assert members(tmp_path, "nobody") == []


def test_there_is_no_sending_to_a_mailbox_that_is_not_there_or_leads_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(DiskError):
        send(tmp_path, "m")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    opened(tmp_path, MailboxAddress("bob", "build")).close()
    os.symlink(elsewhere, tmp_path / "teams" / "build" / "alice")
    with pytest.raises(PathRefused):
        send(tmp_path, "m")
    assert list(elsewhere.iterdir()) == []
    assert members(tmp_path, "build") == ["bob"]


@pytest.mark.parametrize(("text", "name", "team"), [("alice", "alice", "default"), (" bob@ci ", "bob", "ci")])
def test_an_address_is_a_name_and_perhaps_a_team(text: str, name: str, team: str) -> None:
    assert read_address(text) == MailboxAddress(name, team)


@pytest.mark.parametrize("text", ["", "main", "a/b", "..", "a@", "@b", "a@b@c", "a b", "x" * 41, "ä", "a@../b"])
def test_what_could_lead_elsewhere_or_means_somebody_else_is_no_address(text: str) -> None:
    with pytest.raises(InputError, match="invalid mailbox name"):
        read_address(text)
