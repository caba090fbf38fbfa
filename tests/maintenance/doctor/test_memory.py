"""Findings in a memory directory; checking changes nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.disk.trees.rootdir import RootDir
from lamina.maintenance.doctor.finding import KINDS
from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.daily_logs import append_bullets
from lamina.memory.store.distinct import note_distinct
from lamina.memory.store.draft import Draft
from lamina.memory.store.evidence import short_file_digest

from .patient import DAY, Patient

LONG = (
    "The service keeps its state in one table, and every change goes through the queue, because two writers once lost an update."
)


def snapshot(top: Path) -> dict[str, tuple[int, int, bytes]]:
    found = {}
    for path in sorted(top.rglob("*")):
        info = path.lstat()
        found[str(path)] = (info.st_mode, info.st_mtime_ns, path.read_bytes() if path.is_file() else b"")
    return found


def test_a_memory_in_order_has_no_findings(patient: Patient) -> None:
    patient.save("queue", LONG)
    assert patient.kinds() == set()


def test_a_project_without_memory_has_no_findings(patient: Patient) -> None:
    patient.memory.rmdir()
    assert patient.kinds() == set()
    assert patient.look().seen_all


def test_looking_changes_nothing(patient: Patient) -> None:
    patient.save("queue", LONG)
    for number in range(60):
        patient.topic(f"t{number}.md", f"text {number}")
    patient.write(".lamina-0011223344556677.tmp", "x", age=DAY)
    (patient.memory / "MEMORY.md").unlink()
    before = snapshot(patient.base)
    patient.look()
    assert snapshot(patient.base) == before


TOPICS = [
    ("unknown-type", "---\nname: a\ndescription: When the queue is drained\ntype: odd\n---\n\ntext\n"),
    ("front-matter", "no front matter at all\n"),
    ("front-matter", "---\nname: [\n---\n\ntext\n"),
    ("no-description", "---\nname: a\ntype: user\n---\n\ntext\n"),
    ("vague-description", "---\nname: a\ndescription: some notes about the project\ntype: user\n---\n\ntext\n"),
    ("vague-description", "---\nname: a\ndescription: 重要的项目笔记\ntype: user\n---\n\ntext\n"),
    ("empty-body", "---\nname: a\ndescription: When the queue is drained\ntype: user\n---\n\n"),
    ("oversize", "---\nname: a\ndescription: When the queue is drained\ntype: user\n---\n\n" + "word " * 6_000),
    ("secret", "---\nname: a\ndescription: When the queue is drained\ntype: user\n---\n\nDB_PASSWORD=Zk29!xQpL8vT\n"),
    ("relative-date", "---\nname: a\ndescription: When the queue is drained\ntype: user\n---\n\nIt broke yesterday.\n"),
    ("relative-date", "---\nname: a\ndescription: Drained next week\ntype: user\n---\n\ntext\n"),
    ("relative-date", "---\nname: a\ndescription: When the queue is drained\ntype: user\n---\n\n下周发布。\n"),
]


@pytest.mark.spec("S5")
@pytest.mark.parametrize(("kind", "text"), TOPICS)
def test_what_is_wrong_with_a_topic_is_found_with_its_file(patient: Patient, kind: str, text: str) -> None:
    path = patient.write("a.md", text)
    [found] = patient.found(kind)
    assert found.file == str(path)
    assert found.problem.endswith(".")
    assert found.remedy


@pytest.mark.spec("S5")
def test_descriptions_that_say_something_pass(patient: Patient) -> None:
    for number, said in enumerate(["Integration tests use a real database", "发布前要先跑迁移", "Notes on the billing queue"]):
        patient.topic(f"t{number}.md", f"text {number}", description=said)
    assert patient.kinds() & {"vague-description", "no-description", "same-description"} == set()


@pytest.mark.spec("B7", "Z11")
def test_a_secret_is_named_by_its_line_and_never_shown(patient: Patient) -> None:
    patient.topic("a.md", "first\nDB_PASSWORD=Zk29!xQpL8vT")
    [found] = patient.found("secret")
    assert found.line == 8
    assert "Zk29" not in str(found)


@pytest.mark.spec("S5")
def test_doubles_are_found_once_under_the_gravest_name(patient: Patient) -> None:
    patient.topic("a.md", LONG, description="How state is kept")
    patient.topic("b.md", LONG, description="How state is kept")
    patient.topic("c.md", LONG, description="Where the table is")
    patient.topic("d.md", LONG.replace("one table", "a table"), description="Why there is a queue")
    patient.topic("e.md", "something else", description="Where the table is")
    patient.topic("f.md", "another thing", description="Some words of its own", name="e")
    kinds = {found.kind: found.problem for found in patient.look().findings}
    assert kinds["identical"].startswith("b.md and a.md")
    assert kinds["same-body"].startswith("c.md and a.md")
    assert kinds["near-duplicate"].startswith("d.md and ")
    assert kinds["same-description"].startswith("e.md and c.md")
    assert kinds["same-name"].startswith("f.md and e.md")
    assert len(patient.found("identical") + patient.found("same-body") + patient.found("near-duplicate")) == 3


@pytest.mark.spec("S5")
def test_memories_that_the_user_called_distinct_are_no_doubles(patient: Patient) -> None:
    patient.save("a", LONG)
    patient.save("b", LONG.replace("one table", "a table"))
    assert len(patient.found("near-duplicate")) == 1
    with patient.store() as store:
        note_distinct(store, "b", "a")
    assert patient.found("near-duplicate") == []


@pytest.mark.spec("S5")
def test_memories_that_contradict_each_other_are_shown_with_both_sentences(patient: Patient) -> None:
    patient.save("a", "The standup is at nine. Jon hosts it.")
    patient.save("b", "The standup is at ten.")
    [found] = patient.found("contradiction")
    assert '"The standup is at nine."' in found.problem
    assert '"The standup is at ten."' in found.problem
    with patient.store() as store:
        note_distinct(store, "b", "a")
    assert patient.found("contradiction") == []


@pytest.mark.spec("B8")
def test_evidence_that_changed_or_cannot_be_checked_is_said(patient: Patient) -> None:
    source = patient.cwd / "db.py"
    source.write_text("def connect(): ...\n")
    texts = [f"db.py@{short_file_digest((patient.cwd / 'db.py').read_bytes())}"]
    with patient.store() as store:
        store.save(
            Draft("fresh", type="project", description="How to connect", body="x", evidence=tuple(texts)),
            why=ChangeReason("user"),
        )
        store.save(
            Draft("odd", type="project", description="Where it runs", body="y", evidence=("../outside.py",)),
            why=ChangeReason("user"),
        )
    assert patient.found("stale-evidence") == []
    assert len(patient.found("unverifiable-evidence")) == 1
    source.write_text("def other(): ...\n")
    [found] = patient.found("stale-evidence")
    assert "db.py has changed" in found.problem


@pytest.mark.spec("S3", "S4")
def test_what_is_wrong_with_an_index_is_found_by_its_line(patient: Patient) -> None:
    patient.topic("a.md", "text a")
    patient.topic("lost.md", "text b")
    long = "w" * 160
    patient.index(
        f"- [a](a.md) — {long}\n- [gone](gone.md) — x\n- [a](a.md)\n- [out](../../etc/x.md) — y\n- [up](/etc/x.md)\n{'prose ' * 40}\n"
    )
    lines = {(found.kind, found.line) for found in patient.look().findings if found.file.endswith("MEMORY.md")}
    assert lines == {
        ("long-line", 1),
        ("dead-pointer", 2),
        ("double-line", 3),
        ("leads-out", 4),
        ("leads-out", 5),
        ("index-content", 6),
    }
    assert [Path(found.file).name for found in patient.found("orphan")] == ["lost.md"]


@pytest.mark.spec("S4")
@pytest.mark.parametrize("text", ["- one line\n" * 201, f"{'w' * 120}\n" * 210])
def test_an_index_beyond_its_limits_is_said(patient: Patient, text: str) -> None:
    patient.index(text)
    [found] = patient.found("index-full")
    assert "the limit is" in found.problem


@pytest.mark.spec("Z9")
def test_files_and_directories_that_others_may_read_are_found(patient: Patient) -> None:
    patient.save("queue", LONG)
    (patient.memory / "queue.md").chmod(0o644)
    (patient.memory / "sub").mkdir(mode=0o755)
    [found] = [found for found in patient.found("not-private") if found.area == "memory"]
    assert "2 entries" in found.problem
    assert found.severity == "error"


@pytest.mark.spec("Z12")
def test_what_a_scan_passes_over_is_said(patient: Patient) -> None:
    patient.save("queue", LONG)
    os.mkfifo(patient.memory / "pipe.md")
    (patient.memory / "link.md").symlink_to("/etc/passwd")
    (patient.memory / "loop").symlink_to(patient.memory)
    os.link(patient.memory / "queue.md", patient.base / "second-name")
    (patient.memory / "directory.md").mkdir(mode=0o700)
    names = {Path(found.file).name for found in patient.found("not-plain")}
    assert names == {"pipe.md", "link.md", "loop", "queue.md", "directory.md"}


@pytest.mark.spec("Z12")
def test_damage_of_the_journal_the_inbox_and_the_cache_is_said(patient: Patient) -> None:
    patient.save("queue", LONG)
    with open(patient.memory / ".history" / "journal-000001.jsonl", "ab") as file:
        file.write(b'{"v":1,"torn\nnonsense\n')
    patient.write(".inbox/0123456789ab.json", "{")
    patient.write(".inbox/other.json", "{}")
    patient.write(".history/heads.msgpack", "\ufffd")
    [journal] = patient.found("journal-damage")
    assert (journal.line, "2 lines" in journal.problem) == (2, True)
    assert len(patient.found("inbox-damage")) == 2
    assert len(patient.found("cache-damage")) == 1


@pytest.mark.spec("B4")
def test_what_was_changed_or_removed_outside_is_shown(patient: Patient) -> None:
    for name in ("kept", "changed", "gone"):
        patient.save(name, f"{LONG} {name}")
    patient.write("hand.md", "---\nname: hand\ndescription: Written by hand, in an editor\n---\n\nby hand\n")
    (patient.memory / "changed.md").write_text("---\nname: changed\ndescription: Now it is another\n---\n\nother\n")
    (patient.memory / "gone.md").unlink()
    texts = " ".join(found.problem for found in patient.found("changed-outside"))
    assert "1 memory was added outside Lamina: hand.md" in texts
    assert "1 memory was changed outside Lamina: changed.md" in texts
    [gone] = patient.found("gone-outside")
    assert gone.remedy.startswith("Run `lamina memory restore gone.md`")


@pytest.mark.spec("B5")
def test_a_proposal_that_waits_for_weeks_is_said(patient: Patient) -> None:
    from lamina.memory.store.modes import Inbox

    with patient.store(days_ago=15) as store:
        Inbox(store).propose_save(Draft("old", description="An old idea", body="x"), why=ChangeReason("agent"))
    with patient.store(days_ago=1) as store:
        Inbox(store).propose_save(Draft("new", description="A new idea", body="y"), why=ChangeReason("agent"))
    [found] = patient.found("waiting-long")
    assert "A change to old" in found.problem


@pytest.mark.spec("Z12")
def test_what_a_killed_writer_left_is_said_and_a_living_one_is_not(patient: Patient) -> None:
    patient.write(".lamina-0011223344556677.tmp", "x", age=DAY)
    patient.write("sub/.lamina-8899aabbccddeeff.tmp", "x", age=1)
    [found] = patient.found("leftover")
    assert found.file == str(patient.memory)


def test_a_team_directory_is_looked_at_without_its_modes(patient: Patient) -> None:
    (patient.home / "settings.json").write_text('{"lamina": {"team": true}}')
    (patient.home / "settings.json").chmod(0o600)
    patient.write("team/shared.md", "---\nname: shared\n---\n\ntext\n", mode=0o644)
    (patient.memory / "team").chmod(0o755)
    found = [found for found in patient.look().findings if "shared.md" in found.file]
    assert {each.kind for each in found} == {"no-description", "orphan", "changed-outside"}
    assert not any(each.area == "memory" for each in patient.found("not-private"))


def test_memory_that_may_not_be_changed_offers_no_fix(patient: Patient) -> None:
    patient.topic("lost.md", "text")
    patient.index("- [gone](gone.md)\n")
    assert patient.found("orphan")[0].fix is not None
    patient.environ["LAMINA_MEMORY_MODE"] = "read-only"
    assert [found.fix for found in (*patient.found("orphan"), *patient.found("dead-pointer"))] == [None, None]


def test_every_kind_has_a_title_and_every_finding_is_a_sentence(patient: Patient) -> None:
    patient.topic("a.md", "It broke yesterday.", description="notes", age=3 * DAY)
    patient.index("- [gone](gone.md)\n")
    assert all(kind.title and kind.title[0].isupper() for kind in KINDS.values())
    for found in patient.look().findings:
        assert found.problem.endswith("."), found


@pytest.mark.spec("W2", "B7")
def test_daily_logs_are_known_and_what_is_wrong_among_them_is_found(patient: Patient) -> None:
    with RootDir.open(patient.memory) as root:
        append_bullets(root, "logs/2026/03/2026-03-31.md", ["- 09:00 all is well"])
    assert patient.kinds() == set()
    patient.write("logs/2026/03/2026-03-30.md", f"- 09:00 the key is sk-ant-{'a1B2c3D4e5F6g7H8i9J0'}\n")
    patient.write("logs/notes.md", "not a log\n")
    [stray], [secret] = patient.found("stray-log"), patient.found("secret")
    assert (stray.file, secret.file) == (
        str(patient.memory / "logs/notes.md"),
        str(patient.memory / "logs/2026/03/2026-03-30.md"),
    )
