"""`lamina doctor` from the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from lamina.maintenance.doctor.finding import KINDS

from .running import here, lamina, on_a_terminal


def doctor(cwd: Path, *words: str) -> Any:
    done = here("doctor", "--json", *words, "--cwd", str(cwd))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def memory_of(cwd: Path) -> Path:
    here(
        "memory", "save", "queue", "--description", "How the queue is drained", "It is drained by one writer.", "--cwd", str(cwd)
    )
    told = here("memory", "path", "--cwd", str(cwd))
    # No answer would be the path of the working directory, and a test below empties what it is given.
    assert told.returncode == 0, told.stderr
    assert Path(told.stdout.strip()).is_absolute()
    return Path(told.stdout.strip())


def test_a_healthy_project_gets_one_friendly_sentence(tmp_path: Path) -> None:
    memory_of(tmp_path)
    done = here("doctor", "--cwd", str(tmp_path))
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "No problems found (1 memory, instruction files, settings and sessions checked)."
    assert "warning" not in done.stdout


@pytest.mark.spec("Z12")
def test_findings_are_no_failure(tmp_path: Path) -> None:
    memory = memory_of(tmp_path)
    (memory / "lost.md").write_text("no front matter")
    (memory / "lost.md").chmod(0o644)
    done = here("doctor", "--cwd", str(tmp_path))
    assert done.returncode == 0
    assert "Memories that are not in the index" in done.stdout
    assert "Run `lamina doctor --fix` to fix " in done.stdout.splitlines()[-1]
    assert done.stderr == ""


def test_what_cannot_be_looked_at_is_a_failure(tmp_path: Path) -> None:
    memory = memory_of(tmp_path)
    for path in sorted(memory.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    memory.rmdir()
    memory.write_text("a file")
    done = here("doctor", "--json", "--cwd", str(tmp_path))
    assert done.returncode == 1
    assert json.loads(done.stdout)["complete"] is False


def test_a_document_has_every_finding_in_one_shape(tmp_path: Path) -> None:
    memory = memory_of(tmp_path)
    (memory / "lost.md").write_text("---\nname: lost\ndescription: notes\ntype: odd\n---\n\nDB_PASSWORD=Zk29!xQpL8vT\n")
    report = doctor(tmp_path)
    assert {key for found in report["findings"] for key in found} == {
        "area",
        "kind",
        "severity",
        "file",
        "line",
        "problem",
        "remedy",
        "fixable",
    }
    assert {found["kind"] for found in report["findings"]} <= set(KINDS)
    assert report["counts"]["fixable"] == sum(found["fixable"] for found in report["findings"]) > 0
    assert report["fixed"] == []
    assert report["topics"] == 2


def test_a_fix_says_what_was_done_and_what_is_left(tmp_path: Path) -> None:
    memory = memory_of(tmp_path)
    (memory / "lost.md").write_text("no front matter")
    (memory / "lost.md").chmod(0o644)
    done = here("doctor", "--fix", "--cwd", str(tmp_path))
    assert done.returncode == 0
    assert done.stdout.startswith("fixed  ")
    assert "Repaired MEMORY.md: 1 line added." in done.stdout
    assert done.stdout.splitlines()[-1].startswith("Remaining: ")
    again = doctor(tmp_path, "--fix")
    assert again["fixed"] == []
    assert again["counts"]["fixable"] == 0


def test_a_fix_is_undone_with_the_command_it_prints(tmp_path: Path) -> None:
    memory = memory_of(tmp_path)
    (memory / "copy.md").write_bytes((memory / "queue.md").read_bytes())
    report = doctor(tmp_path, "--fix")
    [moved] = [each for each in report["fixed"] if each["kind"] == "identical"]
    assert not (memory / "copy.md").exists()
    words = moved["undo"].removeprefix("To undo, run `lamina ").removesuffix("`.").split()
    assert here(*words, "--cwd", str(tmp_path)).returncode == 0
    assert (memory / "copy.md").read_bytes() == (memory / "queue.md").read_bytes()


def test_what_files_say_is_not_obeyed_by_the_terminal(tmp_path: Path) -> None:
    memory = memory_of(tmp_path)
    (memory / "evil\x1b[31m.md").write_text("---\ndescription: \x1b]0;title\x07 x\n---\n")
    for words in (("doctor",), ("doctor", "--json")):
        done = here(*words, "--cwd", str(tmp_path))
        assert "evil" in done.stdout
        assert "\x1b" not in done.stdout


def test_colours_can_be_turned_off(tmp_path: Path) -> None:
    memory_of(tmp_path)
    coloured, _ = on_a_terminal("doctor", "--cwd", str(tmp_path))
    plain, code = on_a_terminal("doctor", "--cwd", str(tmp_path), NO_COLOR="1")
    assert b"\x1b[" in coloured
    assert (b"\x1b[" in plain, code) == (False, 0)


def test_a_long_list_is_cut_for_a_person_and_whole_for_a_program(tmp_path: Path) -> None:
    memory = memory_of(tmp_path)
    for number in range(30):
        (memory / f"t{number}.md").write_text(f"text {number}")
        (memory / f"t{number}.md").chmod(0o600)
    assert "… and 20 more; --json lists all." in here("doctor", "--cwd", str(tmp_path)).stdout
    assert sum(found["kind"] == "orphan" for found in doctor(tmp_path)["findings"]) == 30


def test_misuse_is_one_line(tmp_path: Path) -> None:
    done = here("doctor", "--cwd", str(tmp_path / "nowhere"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_it_runs_as_a_program_of_its_own(tmp_path: Path) -> None:
    done = lamina("doctor", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_kind_of_finding_is_in_the_documentation(root: Path) -> None:
    text = (root / "docs" / "doctor.md").read_text("utf-8")
    assert [kind for kind in KINDS if f"`{kind}`" not in text] == []


@pytest.mark.spec("F2")
def test_config_shows_rules_that_cannot_be_read(tmp_path: Path) -> None:
    home = Path(os.environ["LAMINA_HOME"])
    home.mkdir(mode=0o700)
    (home / "settings.json").write_text('{"permissions": {"allow": ["Bash(ls"]}}')
    assert 'Rule "Bash(ls" in allow' in here("config", "--cwd", str(tmp_path)).stderr
    assert 'Rule "Bash(ls" in allow' in here("config", "permissions", "--cwd", str(tmp_path)).stderr
    assert "Rule" not in here("config", "lamina.spill", "--cwd", str(tmp_path)).stderr
    document = json.loads(here("config", "--json", "--cwd", str(tmp_path)).stdout)
    assert any("Bash(ls" in found["text"] for found in document["findings"])


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_on_a_narrow_terminal_sentences_are_broken_between_words(tmp_path: Path) -> None:
    memory_of(tmp_path)
    written, code = on_a_terminal("doctor", cwd=tmp_path, COLUMNS="40", NO_COLOR="1")
    assert code == 0
    lines = written.decode().splitlines()
    assert all(len(line) < 40 for line in lines if len(line.split()) > 1), lines
    assert "No problems found (1 memory, instruction files, settings and sessions checked)." in " ".join(" ".join(lines).split())
