"""`lamina memory` and `lamina inbox`: list, save, trace and restore memories."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.utils import get_cwidth

from lamina.memory.memory import Memory
from lamina.memory.store.contract import ChangeReason, Proposed

from .running import here


def run(cwd: Path, *words: str) -> str:
    done = here("memory", *words, "--cwd", str(cwd))
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(cwd: Path, *words: str) -> Any:
    return json.loads(run(cwd, *words, "--json"))


def save(cwd: Path, body: str = "Mocks hid a migration.") -> str:
    return run(cwd, "save", "testing-db", "--type", "feedback", "--description", "Tests use a real database", body)


@pytest.mark.spec("S6")
def test_what_is_saved_is_listed_shown_and_indexed(tmp_path: Path) -> None:
    assert save(tmp_path).startswith("Saved ")
    [listed] = rows(tmp_path, "list")
    assert {key: listed[key] for key in ("name", "type", "description")} == {
        "name": "testing-db",
        "type": "feedback",
        "description": "Tests use a real database",
    }
    assert set(listed) == {"name", "type", "description", "path", "modified"}
    assert rows(tmp_path, "show", "testing-db")["body"].strip() == "Mocks hid a migration."
    assert "Mocks hid" in run(tmp_path, "show", "testing-db")
    assert run(tmp_path, "index").strip() == "- [testing-db](testing-db.md) — Tests use a real database"
    assert Path(rows(tmp_path, "path")["path"]) == Path(listed["path"]).parent


@pytest.mark.spec("B4")
def test_a_change_is_traced_shown_and_taken_back(tmp_path: Path) -> None:
    save(tmp_path)
    assert save(tmp_path, "Another reason.").startswith("Updated ")
    newest, oldest = rows(tmp_path, "log", "testing-db")
    assert (newest["action"], newest["who"]) == ("save", "user")
    assert "+Another reason." in run(tmp_path, "diff", "testing-db")
    run(tmp_path, "restore", "testing-db", "--version", oldest["id"])
    assert rows(tmp_path, "show", "testing-db")["body"].strip() == "Mocks hid a migration."
    run(tmp_path, "remove", "testing-db")
    assert rows(tmp_path, "list") == []
    run(tmp_path, "restore", "testing-db")
    assert len(rows(tmp_path, "list")) == 1


def test_a_list_is_a_table_that_fits_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path)
    words = "部署在星期二进行，因为那时有人值班" * 3
    run(tmp_path, "save", "deploys-happen-on-tuesdays-with-people-on-call", "--type", "project", "--description", words)
    header, *lines = run(tmp_path, "list").splitlines()
    assert header.split() == ["name", "type", "modified", "description"]
    assert {line.split()[0] for line in lines} == {"testing-db", "deploys-happen-on-tuesdays-with-people-on-call"}
    assert {line[header.index("type") :].split()[0] for line in lines} == {"feedback", "project"}
    assert lines[0].endswith(words) or lines[1].endswith(words), "a pipe gets everything"
    for width, names in ((12, "name"), (40, "name"), (50, "name type"), (80, "name type modified"), (120, "name type modified")):
        monkeypatch.setattr("lamina.cli.console.terminal_width", lambda width=width: width)
        header, *shown = run(tmp_path, "list").splitlines()
        assert len(shown) == 2
        assert all(get_cwidth(line) <= width for line in (header, *shown))
        assert header.split()[:-1] == names.split(), "a narrow terminal shows fewer columns, and those whole"
        assert width < 80 or all(re.search(r" \d{4}-\d\d-\d\d ", line) for line in shown), "a date is whole"


def test_remove_is_the_trash_under_its_old_name_too(tmp_path: Path) -> None:
    save(tmp_path)
    assert run(tmp_path, "rm", "testing-db").startswith("Removed 'testing-db'.")
    run(tmp_path, "restore", "testing-db")
    shown = here("memory", "--help").stdout
    assert "  remove " in shown
    assert "  rm " not in shown
    with Memory.open(tmp_path) as memory, pytest.warns(DeprecationWarning, match=r"Memory\.remove"):
        assert memory.forget("testing-db")


@pytest.mark.spec("B7")
def test_a_secret_is_left_out_and_said(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "a1B2" * 23 + "AA"
    done = here("memory", "save", "keys", f"The key of the staging server is {key}.", "--cwd", str(tmp_path))
    assert "secret was removed from the text" in done.stderr
    assert key not in run(tmp_path, "show", "keys")


@pytest.mark.parametrize("words", [("show", "nope"), ("remove", "nope"), ("diff",)])
def test_what_is_not_there_is_one_sentence_and_misuse(words: tuple[str, ...], tmp_path: Path) -> None:
    done = here("memory", *words, "--cwd", str(tmp_path))
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_proposal_is_answered_in_the_directory_named_before_the_command(tmp_path: Path) -> None:
    home = Path(os.environ["LAMINA_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    (home / "settings.json").write_text('{"lamina": {"memoryMode": {"private": "confirm"}}}', "utf-8")
    work = str(tmp_path)
    for fact in ("the editor is vi", "deploys go out on Tuesdays"):
        assert here("-p", f"Remember: {fact}", cwd=tmp_path).returncode == 0
    first, second = json.loads(here("inbox", "--cwd", work, "--json").stdout)
    assert first["session_id"] != second["session_id"], "each says which session it is part of"
    shown = here("inbox", "--cwd", work).stdout
    assert f"{first['id']}  Save {first['name']}\n  Proposed " in shown
    assert f"in session {first['session_id'][:8]}" in shown
    assert f"  Accept: lamina inbox accept {first['id']}\n  Reject: lamina inbox reject {first['id']}\n" in shown
    assert json.loads(here("inbox", "--cwd", work, "--json", "accept", first["id"]).stdout) == {"accepted": first["id"]}
    assert json.loads(here("inbox", "reject", second["id"], "--cwd", work, "--json").stdout) == {"rejected": second["id"]}
    assert [each["name"] for each in json.loads(here("memory", "list", "--cwd", work, "--json").stdout)] == [first["name"]]


def test_an_empty_inbox_says_so(tmp_path: Path) -> None:
    done = here("inbox", "--cwd", str(tmp_path), "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, [])
    assert here("inbox", "reject", "none", "--cwd", str(tmp_path)).returncode == 2


@pytest.mark.spec("B8")
def test_a_search_lists_what_fits_with_scores_and_reasons(tmp_path: Path) -> None:
    save(tmp_path)
    run(tmp_path, "save", "deploys", "--type", "project", "--description", "Deploys happen on Tuesdays", "With people on call.")
    [found] = rows(tmp_path, "search", "which database do tests use?")
    assert set(found) == {"name", "type", "description", "path", "modified", "score", "why"}
    assert (found["name"], found["why"]) == ("testing-db", "name: databas, test; description: databas, test")
    assert found["score"] > 0
    assert "testing-db" in run(tmp_path, "search", "database")
    assert "unverifiable: the memory lists no file as evidence" in run(tmp_path, "search", "database", "--explain")
    assert len(rows(tmp_path, "search", "database deploys", "-k", "1")) == 1
    assert rows(tmp_path, "search", "nothing of the kind") == []
    assert run(tmp_path, "search", "nothing of the kind") == ""


@pytest.mark.spec("B4")
def test_the_trash_is_listed_and_what_comes_back_leaves_it(tmp_path: Path) -> None:
    for name in ("C++", "kept"):
        run(tmp_path, "save", name, "--description", "d", name)
    assert run(tmp_path, "remove", "C++").startswith("Removed 'C++'. Run `lamina memory restore C++` ")
    run(tmp_path, "save", "C#", "--description", "d", "It has the file now.")
    [removed] = rows(tmp_path, "log", "--removed")
    assert (removed["name"], removed["action"], removed["who"]) == ("C++", "remove", "user")
    run(tmp_path, "restore", "C++")
    assert rows(tmp_path, "log", "--removed") == []
    assert {row["name"] for row in rows(tmp_path, "list")} == {"C++", "C#", "kept"}


@pytest.mark.spec("B4")
def test_each_line_has_its_change(tmp_path: Path) -> None:
    save(tmp_path)
    save(tmp_path, "Mocks hid a migration.\nTwice.")
    newest, oldest = rows(tmp_path, "log", "testing-db")
    lines = {row["line"]: row["change"]["id"] for row in rows(tmp_path, "blame", "testing-db")}
    assert (lines["Mocks hid a migration."], lines["Twice."]) == (oldest["id"], newest["id"])
    assert "Twice." in run(tmp_path, "blame", "testing-db")
    assert rows(tmp_path, "diff", "testing-db")["id"] == newest["id"]
    assert here("memory", "diff", "--version", "nothing", "--cwd", str(tmp_path)).returncode == 2
    assert rows(tmp_path, "index")[0]["text"].startswith("- [testing-db]")


@pytest.mark.spec("B8")
def test_evidence_is_recorded_with_a_digest_and_its_state_is_shown(tmp_path: Path) -> None:
    source = tmp_path / "db.py"
    source.write_text("class Pool:\n    def connect(self): ...\n")
    save = ("save", "pool", "--type", "project", "--description", "The pool connects lazily", "It connects at first use.")
    run(tmp_path, *save, "--evidence", "db.py#Pool.connect", "--evidence", "db.py")
    shown = rows(tmp_path, "show", "pool")
    assert shown["evidence"]["state"] == "fresh"
    assert [entry.partition("@")[0] for entry in shown["evidence"]["entries"]] == ["db.py#Pool.connect", "db.py"]
    assert all(len(entry.partition("@")[2]) == 16 for entry in shown["evidence"]["entries"])
    assert "Evidence: fresh (Pool.connect is unchanged in db.py; db.py is unchanged)" in run(tmp_path, "show", "pool")
    source.write_text("class Pool: ...\n")
    assert "Evidence: stale (Pool.connect is no longer in db.py; db.py has changed)" in run(tmp_path, "show", "pool")
    done = here("memory", *save, "--evidence", "nowhere.py", "--cwd", str(tmp_path))
    assert done.returncode == 0
    assert "The evidence nowhere.py is not a file of this project" in done.stderr
    assert rows(tmp_path, "show", "pool")["evidence"]["state"] == "stale"
    run(tmp_path, "save", "plain", "--type", "project", "--description", "No file", "Nothing.")
    assert rows(tmp_path, "show", "plain")["evidence"] is None


@pytest.mark.spec("B5", "B6")
def test_a_command_that_a_model_runs_is_the_models_and_not_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path)
    monkeypatch.setenv("LAMINA_RUN_BY_MODEL", "1")
    run(tmp_path, "save", "x", "--type", "feedback", "--description", "Force deploys", "Force.")
    run(tmp_path, "remove", "testing-db")
    assert [row["name"] for row in rows(tmp_path, "list")] == ["testing-db"]
    waiting = json.loads(here("inbox", "--json", "--cwd", str(tmp_path)).stdout)
    assert "origin: command" in waiting[0]["diff"]
    for words in (("inbox", "accept", waiting[0]["id"]), ("memory", "restore", "testing-db"), ("import", str(tmp_path))):
        done = here(*words, "--cwd", str(tmp_path))
        assert done.returncode == 2
        assert "Only you can run this command" in done.stderr
    monkeypatch.delenv("LAMINA_RUN_BY_MODEL")
    assert here("inbox", "accept", waiting[0]["id"], "--cwd", str(tmp_path)).returncode == 0
    assert {row["name"] for row in rows(tmp_path, "list")} == {"testing-db", "x"}


@pytest.mark.spec("B4")
def test_a_restore_names_what_was_saved_instead_in_the_same_turn(tmp_path: Path) -> None:
    why = ChangeReason("agent", "asked for", "s1", "m1")
    with Memory.open(tmp_path) as memory:
        memory.save("deploy-thursdays", description="we deploy on Thursdays", body="Thursdays.")
        memory.save("deploy-tuesdays", description="we deploy on Tuesdays", body="Tuesdays.", why=why)
        memory.save("billing", description="Anna owns billing", body="Anna.")
        memory.remove("deploy-thursdays", why=why)
    done = here("memory", "restore", "deploy-thursdays", "--cwd", str(tmp_path))
    assert "also saved 'deploy-tuesdays', which is still there" in done.stderr
    assert "lamina memory remove deploy-tuesdays" in done.stderr
    assert "billing" not in done.stderr
    run(tmp_path, "remove", "deploy-tuesdays")
    assert {row["name"] for row in rows(tmp_path, "list")} == {"deploy-thursdays", "billing"}


@pytest.mark.parametrize(
    ("body", "description"),
    [
        ("Deploys happen on Tuesdays. Ask Kim first.", "Deploys happen on Tuesdays."),
        ("# Deploys\n\nOn Tuesdays.", "Deploys"),
        ("每周二部署。先问小林。", "每周二部署。"),
        ("Version 3.13 is the oldest one that we support", "Version 3.13 is the oldest one that we support"),
        ("word " * 100, f"{'word ' * 29}word…"),
    ],
)
def test_without_a_description_the_first_sentence_is_one(tmp_path: Path, body: str, description: str) -> None:
    row = json.loads(run(tmp_path, "save", "deploys", body, "--json"))
    assert row["description"] == description
    assert json.loads(run(tmp_path, "save", "deploys", "Another text.", "--json"))["description"] == description, "it stays"


@pytest.mark.spec("U4")
def test_the_inbox_lists_recent_changes_of_clients_and_takes_them_back(tmp_path: Path) -> None:
    work = str(tmp_path)
    why = ChangeReason("agent", "saved by cursor over MCP", client="cursor")
    with Memory.open(tmp_path) as memory:
        memory.save("deploys", type="project", description="Deploys are on Tuesday", body="Deploys are on Tuesday.", why=why)
        memory.save("deploys", type="project", description="Deploys are on Friday", body="Deploys are on Friday.", why=why)
        memory.save("audit", type="project", description="The audit ends in March", body="The audit ends in March.")
        memory.save("audit", type="project", description="The audit ends in May", body="The audit ends in May.", why=why)
    waiting, recent = json.loads(here("inbox", "--cwd", work, "--json").stdout)
    assert (waiting["state"], waiting["client"], waiting["waits"]) == ("waiting", "cursor", "cursor did not write this memory")
    assert (recent["state"], recent["name"], recent["client"]) == ("recent", "deploys", "cursor")
    shown = here("inbox", "--cwd", work).stdout
    assert "  Waits: cursor did not write this memory\n" in shown
    assert f"{recent['id']}  New: deploys\n" in shown
    assert f"  Undo: lamina inbox undo {recent['id']}\n" in shown
    assert json.loads(here("inbox", "--cwd", work, "undo", recent["id"], "--json").stdout) == {"undone": recent["id"]}
    assert here("inbox", "--cwd", work, "undo", recent["id"]).returncode == 2
    assert here("inbox", "--cwd", work, "accept", waiting["id"]).returncode == 0
    assert json.loads(here("inbox", "--cwd", work, "--json").stdout) == []
    with Memory.open(tmp_path) as memory:
        assert [topic.name for topic in memory.topics()] == ["audit"]


@pytest.mark.spec("B4")
def test_an_import_and_an_approval_are_undone_and_redone_by_their_ids(tmp_path: Path) -> None:
    source = tmp_path / "from"
    source.mkdir()
    for name in ("one", "two"):
        (source / f"{name}.md").write_text(
            f"---\nname: {name}\ndescription: about {name}\ntype: project\n---\n\nText of {name}.\n"
        )
    assert here("import", str(source), "--format", "claude-code", "--trust", "--cwd", str(tmp_path)).returncode == 0
    with Memory.open(tmp_path) as memory:
        assert {header.name for header in memory.headers()} == {"one", "two"}
        [act] = {version.why.act for version in memory.log() if version.why is not None}
        proposed = memory.save("three", description="d", body="x", why=ChangeReason("extraction", origin="a page"))
        assert isinstance(proposed, Proposed)
    assert here("inbox", "accept", proposed.id, "--cwd", str(tmp_path)).returncode == 0
    undone = rows(tmp_path, "undo", act)
    assert sorted(undone["back"]) == ["one.md", "two.md"]
    run(tmp_path, "undo", undone["act"])
    assert "1 proposal waits again" in run(tmp_path, "undo", proposed.id)
    with Memory.open(tmp_path) as memory:
        assert {header.name for header in memory.headers()} == {"one", "two"}
        assert [proposal.id for proposal in memory.waiting()] == [proposed.id]
