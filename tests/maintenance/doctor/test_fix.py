"""`--fix`: what is fixed, what is left, how to undo it, and that a second run has nothing to do."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lamina.maintenance.doctor.finding import Finding
from lamina.maintenance.doctor.fixes import mend
from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.draft import Draft
from lamina.memory.store.index import read_entries

from .patient import DAY, NOW, Patient

BODY = "The service keeps its state in one table, and every change goes through the queue, because two writers lost an update."
ME = ChangeReason("user")


def fixable(findings: tuple[Finding, ...]) -> list[str]:
    return [found.kind for found in findings if found.fix is not None]


def sick(patient: Patient) -> None:
    patient.save("plan", "We ship tomorrow.\nEvery standup says what was done yesterday.\n", days_ago=3)
    patient.save("state", BODY)
    patient.topic("copy.md", BODY, description="What state is about, in so many words")
    patient.topic("lost.md", "a text of its own", age=2 * DAY)
    patient.write(".lamina-0011223344556677.tmp", "x", age=DAY)
    (patient.memory / "lost.md").chmod(0o644)
    index = (patient.memory / "MEMORY.md").read_text()
    patient.index(f"# What I know\n\n{index}- [gone](gone.md) — x\n- [plan](plan.md) — {'w' * 200}\n")


@pytest.mark.spec("S3", "S4", "Z9")
def test_what_is_safe_is_mended_and_a_second_run_has_nothing_to_do(patient: Patient) -> None:
    sick(patient)
    assert set(fixable(patient.look().findings)) == {
        "not-private",
        "leftover",
        "identical",
        "relative-date",
        "dead-pointer",
        "double-line",
        "orphan",
    }
    done, left = patient.fix()
    assert all(each.ok for each in done)
    assert fixable(left.findings) == []
    index = (patient.memory / "MEMORY.md").read_text()
    assert index.startswith("# What I know\n\n")
    assert {entry.file for entry in read_entries(index)} == {"plan.md", "state.md", "lost.md"}
    assert stat.S_IMODE((patient.memory / "lost.md").stat().st_mode) == 0o600
    assert not list(patient.memory.glob(".lamina-*"))
    again, _ = patient.fix()
    assert again == []


@pytest.mark.spec("B4")
def test_a_double_goes_to_the_trash_and_comes_back_byte_for_byte(patient: Patient) -> None:
    sick(patient)
    before = (patient.memory / "copy.md").read_bytes()
    done, _ = patient.fix()
    [moved] = [each for each in done if each.kind == "identical"]
    assert not (patient.memory / "copy.md").exists()
    assert moved.undo == "To undo, run `lamina memory restore copy.md`."
    with patient.store() as store:
        [version] = [version for version in store.log("copy.md") if version.action == "remove"]
        assert version.why == ChangeReason("user", "doctor")
        store.restore("copy.md", why=ME)
    assert (patient.memory / "copy.md").read_bytes() == before


@pytest.mark.spec("B4")
def test_dates_are_put_behind_the_words_and_can_be_taken_back(patient: Patient) -> None:
    patient.save("plan", "We ship tomorrow.\nEvery standup says what was done yesterday.\n", days_ago=3)
    before = (patient.memory / "plan.md").read_bytes()
    patient.fix()
    text = (patient.memory / "plan.md").read_text()
    assert "We ship tomorrow (2026-03-29).\nEvery standup says what was done yesterday.\n" in text
    with patient.store() as store:
        assert store.log("plan")[0].why == ChangeReason("user", "doctor")
        store.restore("plan", why=ME)
    assert (patient.memory / "plan.md").read_bytes() == before


def test_a_line_that_was_there_before_keeps_its_own_date(patient: Patient) -> None:
    patient.save("plan", "We ship tomorrow.\n", days_ago=9)
    patient.save("plan", "We ship tomorrow.\nThe tests ran today.\n", days_ago=3)
    patient.fix()
    assert "ship tomorrow (2026-03-23).\nThe tests ran today (2026-03-28)." in (patient.memory / "plan.md").read_text()


def test_a_date_that_nobody_can_be_sure_of_is_left(patient: Patient) -> None:
    patient.topic("hand.md", "We ship tomorrow.")
    patient.save("imported", "It broke yesterday.", why=ChangeReason("user", "imported from x.json"))
    patient.save("dreamt", "It broke today.", why=ChangeReason("dream"))
    patient.save("span", "It breaks next week.")
    patient.save("edited", "We shipped yesterday.")
    with open(patient.memory / "edited.md", "a") as file:
        file.write("By hand.\n")
    with patient.store() as store:
        store.save(Draft("rule", type="feedback", description="How to report a day", body="Say what was done today."), why=ME)
        store.save(
            Draft("back", type="project", description="What comes back", body="It ran yesterday."), why=ChangeReason("dream")
        )
        store.save(Draft("back", type="project", description="What comes back", body="Nothing."), why=ME)
        store.restore("back", store.log("back")[-1].id, why=ME)
    found = patient.found("relative-date")
    assert len(found) == 7
    assert [each.fix for each in found] == [None] * 7


def test_a_phrase_with_its_date_is_not_found_again(patient: Patient) -> None:
    patient.topic("a.md", "It broke yesterday (2026-03-30), and 昨天 (2026-03-30) too.")
    assert patient.found("relative-date") == []


@pytest.mark.spec("S4")
def test_lines_are_added_only_while_a_session_is_sent_them(patient: Patient) -> None:
    patient.index("")
    for number in range(230):
        patient.topic(f"t{number:03}.md", f"text {number}")
    patient.fix()
    index = (patient.memory / "MEMORY.md").read_text()
    assert len(read_entries(index)) == 200
    assert patient.found("orphan") == []
    [rest] = patient.found("unlisted")
    assert rest.severity == "info"
    assert "30 memories have no line" in rest.problem
    assert fixable(patient.look().findings) == []


def test_a_missing_index_is_made(patient: Patient) -> None:
    patient.topic("a.md", "text")
    patient.topic("b.md", "text of b")
    patient.fix()
    assert {entry.file for entry in read_entries((patient.memory / "MEMORY.md").read_text())} == {"a.md", "b.md"}


def test_a_long_line_is_shortened_and_the_old_index_is_kept(patient: Patient) -> None:
    patient.topic("a.md", "text")
    old = f"- [a](a.md) — {'word ' * 60}\n"
    patient.index(old)
    done, _ = patient.fix()
    [line] = (patient.memory / "MEMORY.md").read_text().splitlines()
    assert len(line) <= 150
    [kept] = (patient.memory / ".history").glob("index-*.md")
    assert kept.read_text() == old
    assert any(str(kept) in each.undo for each in done)


def test_what_the_person_wrote_in_the_index_keeps_its_bytes(patient: Patient) -> None:
    patient.topic("a.md", "text")
    mine = f"# Mine\r\n\r\n{'prose ' * 40}\r\n- [out](/etc/hosts.md)\r\n* [A](a.md) - of mine\r\n"
    (patient.memory / "MEMORY.md").write_bytes(f"{mine}- [gone](gone.md)\r\n".encode() + b"\xff\xfe\n")
    (patient.memory / "MEMORY.md").chmod(0o600)
    patient.fix()
    assert (patient.memory / "MEMORY.md").read_bytes() == mine.encode() + b"\xff\xfe\n"


@pytest.mark.spec("D6")
def test_a_line_that_cannot_be_repaired_is_named_and_the_others_are_repaired(patient: Patient) -> None:
    patient.topic("a.md", "text")
    prose = "prose " * 40
    patient.index(f"- [gone](gone.md) — none\n{prose}\n- [a](a.md) — one\n")
    done, after = patient.fix()
    assert (patient.memory / "MEMORY.md").read_text() == f"{prose}\n- [a](a.md) — one\n"
    assert any("1 line removed; 1 line left as before" in each.text for each in done)
    assert any(found.kind == "index-content" and found.line == 1 for found in after.findings)


def test_two_memories_of_one_name_are_left_to_the_person(patient: Patient) -> None:
    patient.save("plan", "We ship tomorrow.\n", days_ago=3)
    patient.topic("aaa.md", "another text", name="plan")
    done, _ = patient.fix()
    assert (patient.memory / "aaa.md").exists()
    assert "another text" in (patient.memory / "aaa.md").read_text()
    assert all("aaa.md" not in each.text for each in done)


def test_what_changed_since_the_look_is_left_alone(patient: Patient) -> None:
    from lamina.maintenance.doctor.fixes import mend

    sick(patient)
    findings = patient.look().findings
    (patient.memory / "copy.md").write_text("---\nname: copy\ndescription: Now it is another\n---\n\nnew\n")
    mend(findings, now=0)
    assert "new" in (patient.memory / "copy.md").read_text()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everything")
def test_what_cannot_be_mended_is_said_and_the_rest_is_mended(patient: Patient) -> None:
    patient.topic("lost.md", "text")
    patient.index("- [gone](gone.md)\n")
    (patient.home / "trust.json").write_text("{}")
    (patient.home / "trust.json").chmod(0o644)
    patient.memory.chmod(0o500)
    try:
        done, left = patient.fix()
    finally:
        patient.memory.chmod(0o700)
    assert {each.ok for each in done} == {True, False}
    assert "orphan" in fixable(left.findings)


def test_links_are_not_followed_by_a_fix(patient: Patient, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("mine")
    outside.chmod(0o644)
    (patient.memory / "a.md").symlink_to(outside)
    patient.index("- [a](a.md) — a link\n")
    patient.fix()
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644
    assert "a.md" in (patient.memory / "MEMORY.md").read_text()


def test_a_team_memory_is_mended_in_its_own_directory(patient: Patient) -> None:
    (patient.home / "settings.json").write_text('{"lamina": {"team": true}}')
    (patient.home / "settings.json").chmod(0o600)
    same = "---\nname: {}\ndescription: How the team reviews\ntype: feedback\n---\n\nTwo people look at each change.\n"
    patient.write("team/one.md", same.format("one"))
    patient.write("team/two.md", same.format("two"))
    done, left = patient.fix()
    assert [entry.file for entry in read_entries((patient.memory / "team" / "MEMORY.md").read_text())] == ["one.md"]
    assert any(each.undo == "To undo, run `lamina memory restore team/two.md`." for each in done)
    assert fixable(left.findings) == []


def test_two_cures_for_one_directory_are_both_done_in_one_pass(patient: Patient) -> None:
    patient.topic("lost.md", BODY)
    dream = patient.memory / ".dreams" / "20260331T1200-abcd"
    dream.mkdir(mode=0o700, parents=True)
    dream.parent.chmod(0o700)
    report = patient.look()
    assert set(fixable(report.findings)) == {"orphan", "dream-stopped"}
    mend(report.findings, now=NOW)
    assert "lost.md" in (patient.memory / "MEMORY.md").read_text()
    assert not dream.exists()
