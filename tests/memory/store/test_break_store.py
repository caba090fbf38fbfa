"""Tries to break a memory directory: other readers and writers, links, secrets in names, a place that may not be used."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from lamina.agent.agent import Agent
from lamina.core.errors import InputError
from lamina.maintenance.transfer.import_export import export_from
from lamina.memory.memory import Memory
from lamina.memory.store.contract import MOST_READ, ChangeReason
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.draft import Draft
from lamina.memory.store.secrets import extract_secrets, redact, repeats_secret
from lamina.providers.offline import OfflineProvider

ME = ChangeReason("user", "a test")
ODD = [
    *("plain", "with: colon", "yes", "null", "1.5", "2026-01-01", "# hash", "- dash", "'quote", '"double', "a\\b", "{brace}"),
    *("[x]", "&anchor", "*alias", "!tag", "|", "> fold", "%dir", "@at", "`tick", "---", "...", "a: b: c", "日本語 メモ", "🎉"),
    *("trailing: ", "x #c", "~", "0x1F", "1_000", "<b>x</b>", "](evil.md) — x", "</memory-index>", "a" * 300),
]


class Read:
    """An independent reader: no code of Lamina, only the documented format."""

    def __init__(self, directory: Path) -> None:
        self.index = (directory / "MEMORY.md").read_text()
        self.topics: dict[str, tuple[dict[str, str], str]] = {}
        for line in self.index.splitlines():
            found = re.fullmatch(r"- \[(?P<title>[^\[\]]+)\]\((?:<(?P<wide>.+)>|(?P<file>\S+))\)(?: — .*)?", line)
            assert found, line
            assert len(line) <= 150
            file = found["wide"] or found["file"]
            parts = re.fullmatch(r"---\n(?P<head>.*?)\n---\n\n?(?P<body>.*)", (directory / file).read_text(), re.DOTALL)
            assert parts, file
            self.topics[file] = (yaml.safe_load(parts["head"]), parts["body"])


@pytest.mark.spec("S3", "S5")
def test_a_second_reader_reads_what_was_written_here(tmp_path: Path) -> None:
    with DirectoryStore.open(tmp_path / "memory", durability="process") as store:
        for number, text in enumerate(ODD):
            body = f"---\nname: evil\n---\n{text}\n---\n"
            store.save(Draft(f"n{number} {text}", type="project", description=text, body=body), why=ME)
        ours = {topic.file: topic for topic in store.topics()}
    read = Read(tmp_path / "memory")
    assert read.topics.keys() == ours.keys()
    assert len(ours) == len(ODD)
    for file, (fields, body) in read.topics.items():
        topic = ours[file]
        assert fields == {"name": topic.name, "description": topic.description, "type": "project"}
        assert body == topic.body


@pytest.mark.spec("S1", "S5")
def test_what_another_program_wrote_is_read_and_keeps_its_bytes(tmp_path: Path) -> None:
    directory = tmp_path / "memory"
    directory.mkdir(mode=0o700)
    lines = []
    for number, text in enumerate(ODD):
        for style in (None, '"', "'", "|", ">"):
            name = f"n{number}-{ord(style or ' ')}"
            metadata = {"type": "project", "node_type": "memory", "originSessionId": "abc"}
            fields = {"name": name, "description": text, "metadata": metadata}
            head = yaml.safe_dump(fields, allow_unicode=True, default_style=style, sort_keys=False, width=60)
            (directory / f"{name}.md").write_text(f"---\n{head}---\n\nbody {text}\n")
            lines.append(f"- [{name}]({name}.md) — hook")
    (directory / "MEMORY.md").write_text("\n".join(lines) + "\n")
    before = {path.name: path.read_bytes() for path in directory.glob("*.md")}
    with DirectoryStore.open(directory, durability="process") as store:
        topics = {topic.file: topic for topic in store.topics()}
        assert len(topics) == 5 * len(ODD)
        for file, topic in topics.items():
            number = int(file[1:].split("-")[0])
            assert topic.type == "project", file
            assert topic.description.split() == ODD[number].split(), file
            assert topic.body == f"body {ODD[number]}\n", file
        store.save(Draft("n1-32", description="new words", body="new body"), why=ME)
    after = {path.name: path.read_bytes() for path in directory.glob("*.md")}
    assert {file for file in before if before[file] != after[file]} == {"n1-32.md", "MEMORY.md"}
    assert b"originSessionId: abc" in after["n1-32.md"]


@pytest.mark.skipif(not hasattr(os, "link"), reason="no hard links here")
def test_a_link_to_the_newest_memory_keeps_no_other_from_being_saved(tmp_path: Path) -> None:
    with DirectoryStore.open(tmp_path / "memory", durability="process") as store:
        store.save(Draft("one", type="project", description="d", body="b"), why=ME)
    # As a backup that links what did not change.
    os.link(tmp_path / "memory" / "one.md", tmp_path / "kept")
    with DirectoryStore.open(tmp_path / "memory", durability="process") as store:
        assert store.notices == ()
        assert store.save(Draft("two", type="project", description="d", body="b"), why=ME).created
        assert [topic.name for topic in store.topics()] == ["two"]
    assert (tmp_path / "kept").read_text().endswith("b\n")


# Secrets


KEY = "sk-ant-" + "api03-" + "Abcdefgh1234567890Zy"


@pytest.mark.spec("B7", "Z11")
@pytest.mark.parametrize(
    ("name", "body", "trace"),
    [
        (f"key-{KEY.lower()}"[:40], f"The key of the staging server is {KEY}.", "abcdefgh"),
        ("staging-password-x9kq2vvb", "For the staging server: password = 'x9!kQ2vvB'", "x9kq2vvb"),
        ("db-hunter22x", "In staging the password is hunter22x", "hunter22x"),
    ],
)
def test_a_secret_does_not_live_on_in_the_name_or_the_file(tmp_path: Path, name: str, body: str, trace: str) -> None:
    with DirectoryStore.open(tmp_path / "memory", durability="process") as store:
        with suppress(InputError):
            store.save(Draft(name, type="project", description="d", body=body), why=ME)
        text = f"---\nname: fine\ndescription: d\ntype: project\n---\n\n{body}\n"
        with pytest.raises(InputError, match="contains a secret"):
            store.put(f"{name}.md", text, expected=None, why=ME)
        with pytest.raises(InputError, match="contains a secret"):
            store.put("fine.md", text.replace("name: fine", f"name: about {trace}"), expected=None, why=ME)
        assert store.put("fine.md", text, expected=None, why=ME).redacted
    for path in (tmp_path / "memory").rglob("*"):
        assert trace not in path.name
        assert not path.is_file() or trace.encode() not in path.read_bytes().lower()


@pytest.mark.spec("B7")
@pytest.mark.parametrize(
    "text",
    [
        'the staging password is "hunter2"',
        "pwd=abc123",
        "密码是hunter22",
        "db password: swordfish9",
        "Das Passwort ist geheim123",
        "Kennwort: Sommer2024",
        "パスワードはhunter22です",
    ],
)
def test_a_password_that_a_person_made_up_is_taken_out(text: str) -> None:
    assert redact(text).kinds == ("assigned secret",)
    assert redact(redact(text).text).kinds == ()
    [secret] = extract_secrets(text)
    assert secret not in redact(text).text
    assert repeats_secret(f"about {secret.upper()}", [secret])


@pytest.mark.parametrize(
    "text", ["password: sha256", "passwords are kept with argon2", "the password is required", "token: abc123"]
)
def test_how_a_password_is_kept_is_no_password(text: str) -> None:
    assert redact(text) == (text, ())
    assert extract_secrets(text) == ()


# Places


@pytest.mark.spec("S2", "Z12")
@pytest.mark.parametrize("named", ["../memory", "~", "/usr/local", "$HOME/memory", "file:///home/u/memory"])
def test_a_place_that_may_not_be_used_is_said_by_whoever_opens_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("LAMINA_MEMORY_DIR", named)
    with Memory.open(tmp_path) as memory:
        assert memory.place.said_by == "default"
        [notice] = memory.notices
        assert "LAMINA_MEMORY_DIR" in notice


def test_an_export_leaves_out_what_was_read_in_part_and_says_so(tmp_path: Path) -> None:
    with DirectoryStore.open(tmp_path / "memory", durability="process") as store:
        (tmp_path / "memory" / "huge.md").write_bytes(b"---\nname: huge\ndescription: d\n---\n" + b"x" * MOST_READ)
        report = export_from(store, tmp_path / "out", "claude-code")
        assert report.problems == ("huge.md is too long and was skipped",)
        store.save(Draft("one", type="project", description="d", body="b"), why=ME)
        assert [item.name for item in export_from(store, tmp_path / "out", "claude-code").items] == ["one.md", "MEMORY.md"]
    assert not (tmp_path / "out" / "huge.md").exists()


# In the turn


@pytest.mark.spec("S6", "S7", "O1")
def test_a_list_is_remembered_corrected_and_answered_from_by_new_sessions(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()

    def say(words: str) -> str:
        agent = Agent.open(OfflineProvider(), cwd=project, mode="ask")
        try:
            return agent.run(words).text
        finally:
            agent.close()

    say("Remember these:\n- we deploy on Tuesdays\n- Anna owns billing, because she wrote it\n- 数据库叫蓝鲸")
    with Memory.open(project) as memory:
        assert {topic.name for topic in memory.topics()} == {"deploy-tuesdays", "anna-owns-billing", "数据库叫蓝鲸"}
    assert say("Remember: Bob owns billing") == "I will remember that: Bob owns billing (instead of: Anna owns billing)"
    assert say("Who owns billing?") == "Bob owns billing.\n(memory: bob-owns-billing)"
    assert "蓝鲸" in say("数据库叫什么？")
    assert say("Forget everything").startswith("I removed nothing")
    with Memory.open(project) as memory:
        assert len(memory.topics()) == 3
        assert [version.action for version in memory.log("anna-owns-billing.md")] == ["rename", "save", "save"]
        assert memory.restore("anna-owns-billing.md").name == "anna-owns-billing"
