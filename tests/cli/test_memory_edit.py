"""`lamina memory edit`: what the editor leaves is saved through the journal, and nothing that was typed is lost."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from lamina import Memory

from .running import here

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the editors are shell scripts")


class Editor:
    """A project with one memory, and an editor that is a shell script whose $1 is the file."""

    def __init__(self, cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cwd, self._script = cwd, cwd / "editor.sh"
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", f"sh '{self._script}'")
        monkeypatch.setattr(tempfile, "tempdir", str(cwd / "tmp"))
        with self.memory() as memory:
            memory.save("testing-db", type="feedback", description="Tests use a real database", body="Mocks hid a migration.")

    def memory(self) -> Memory:
        return Memory.open(self.cwd)

    def run(self, script: str, name: str = "testing-db", *more: str) -> CompletedProcess[str]:
        self._script.write_text(script)
        return here("memory", "edit", name, "--cwd", str(self.cwd), *more)

    def text(self, name: str = "testing-db") -> str:
        with self.memory() as memory:
            topic = memory.get(name)
            assert topic is not None, f"{name} is gone"
            return memory.where(topic.file).read_text("utf-8")

    def log(self) -> list[tuple[str, str]]:
        with self.memory() as memory:
            return [(version.action, version.why.why if version.why else "") for version in memory.log("testing-db")]

    def copies(self) -> list[str]:
        return [path.read_text("utf-8", "replace") for path in (self.cwd / "tmp").glob("*.md")]


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Editor:
    return Editor(tmp_path, monkeypatch)


def test_an_edit_is_saved_and_logged(editor: Editor) -> None:
    assert editor.run("true").stdout == "Nothing changed.\n"
    assert editor.run('sed -i.bak s/Mocks/Fakes/ "$1"').stdout.startswith("Updated ")
    assert editor.text().endswith("Fakes hid a migration.\n")
    assert editor.log() == [("save", "edited by hand"), ("save", "")]
    assert editor.copies() == [], "the copy is removed"


def test_another_name_renames_the_memory_and_its_log_goes_on(editor: Editor) -> None:
    done = editor.run('sed -i.bak "s/^name: .*/name: real-database/" "$1"')
    assert "real-database.md (it was 'testing-db')" in done.stdout
    assert "name: real-database\n" in editor.text("real-database")
    with editor.memory() as memory:
        assert memory.get("testing-db") is None
        assert [version.action for version in memory.log("real-database")] == ["rename", "save", "save"]
        assert "[real-database](real-database.md)" in memory.index()
        memory.restore("real-database")
        assert memory.get("testing-db") is not None, "a rename can be undone"


def test_a_name_that_another_memory_has_is_refused_and_the_text_kept(editor: Editor) -> None:
    with editor.memory() as memory:
        memory.save("other", description="Another one", body="It stays.")
    done = editor.run('sed -i.bak "s/^name: .*/name: other/" "$1"')
    assert done.returncode == 2
    assert "is already the name of the memory in other.md" in done.stderr
    assert "name: other" in editor.copies()[0]
    assert re.search(r"Your text is in \S+testing-db-[0-9a-f]{8}\.md\.\n", done.stderr)


def test_keys_that_lamina_does_not_know_can_be_added_and_taken_away(editor: Editor) -> None:
    assert editor.run('sed -i.bak "s/^type: .*/&\\ntags: [a, b]/" "$1"').stdout.startswith("Updated ")
    assert 'tags: ["a", "b"]\n' in editor.text()
    assert editor.run('sed -i.bak "/^tags:/d" "$1"').stdout.startswith("Updated ")
    assert "tags" not in editor.text()


def test_an_empty_text_changes_nothing_and_names_the_command_that_removes(editor: Editor) -> None:
    done = editor.run(': > "$1"')
    assert done.stdout == (
        "The text is empty, so nothing was changed. Run `lamina memory remove testing-db` to move the memory to the trash.\n"
    )
    assert editor.text().endswith("Mocks hid a migration.\n")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('sed -i.bak s/^name:/name/ "$1"', "front matter"),
        ('echo "only words" > "$1"', "no front matter"),
        ('sed -i.bak "s/^type: .*/type: banana/" "$1"', "unknown type 'banana'"),
        ("printf '\\351\\n' >> \"$1\"", "the text is not UTF-8; save it as UTF-8"),
    ],
)
def test_what_is_no_memory_is_refused_and_kept(editor: Editor, script: str, said: str) -> None:
    done = editor.run(script)
    assert done.returncode == 2
    assert done.stderr.startswith("lamina: Not saved: ")
    assert said in done.stderr
    assert len(editor.copies()) == 1
    assert len(editor.log()) == 1


def test_a_memory_that_was_changed_meanwhile_is_not_overwritten(editor: Editor) -> None:
    with editor.memory() as memory:
        file = memory.where("testing-db.md")
    done = editor.run(f'sed -i.bak s/Mocks/Fakes/ "$1"; sed -i.bak s/hid/lost/ "{file}"')
    assert done.returncode == 1
    assert "was changed by someone else in the meantime" in done.stderr
    assert editor.text().endswith("Mocks lost a migration.\n")
    assert editor.copies()[0].endswith("Fakes hid a migration.\n")


@pytest.mark.parametrize("program", ["/no/such/editor", "false"])
def test_an_editor_that_fails_is_named(editor: Editor, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", program)
    done = editor.run("")
    assert done.returncode == 1
    why = "was not found" if "/" in program else "failed"
    assert done.stderr == f"lamina: The editor {program!r} {why}. Set EDITOR to another editor.\n"
    assert editor.copies() == []


@pytest.mark.parametrize("variable", ["VISUAL", "EDITOR"])
def test_an_editor_that_is_no_command_is_reported(editor: Editor, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "vi '")
    done = editor.run("")
    assert done.returncode == 1
    assert done.stderr == f'lamina: {variable} is not a valid command: "vi \'". Set it to an editor.\n'
    assert editor.copies() == []


def test_an_editor_that_removes_the_file_is_reported_without_a_system_error(editor: Editor) -> None:
    done = editor.run('rm "$1"')
    assert done.returncode == 1
    assert done.stderr.startswith("lamina: The editor left no file, so nothing was changed.")
    assert "Errno" not in done.stderr
    assert editor.text().endswith("Mocks hid a migration.\n")


def test_what_was_typed_is_kept_when_the_editor_is_killed(editor: Editor) -> None:
    done = editor.run('sed -i.bak s/Mocks/Fakes/ "$1"; kill -9 $$')
    assert done.returncode == 1
    assert "failed. Set EDITOR to another editor. Your text is in " in done.stderr
    assert editor.copies()[0].endswith("Fakes hid a migration.\n")


def test_the_json_of_an_edit_says_whether_anything_changed(editor: Editor) -> None:
    import json

    row: dict[str, Any] = json.loads(editor.run('sed -i.bak s/Mocks/Fakes/ "$1"', "testing-db", "--json").stdout)
    assert row["changed"] is True
    assert row["name"] == "testing-db"


def test_a_name_and_a_description_that_say_what_the_text_no_longer_says_are_pointed_out(editor: Editor) -> None:
    with editor.memory() as memory:
        memory.save("pnpm", type="project", description="we use pnpm", body="We use pnpm for all packages.")
    done = editor.run('sed -i.bak "s/We use pnpm/We use yarn/" "$1"', "pnpm")
    assert "Its name is still 'pnpm' and its description is still 'we use pnpm'. Run `lamina memory edit pnpm`" in done.stderr
    done = editor.run('sed -i.bak -e "s/^description: .*/description: we use yarn/" -e "s/^name: .*/name: yarn/" "$1"', "pnpm")
    assert done.stderr == ""
    assert editor.run('sed -i.bak "s/for all packages/everywhere/" "$1"', "yarn").stderr == ""
