"""`lamina config`: the list, one setting, the JSON document, findings, and what is never printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lamina.cli.config import config_command as command
from lamina.core.settings import SETTINGS

from .running import here, misused

REGION = ("<!-- begin: lamina config --reference -->\n", "<!-- end -->\n")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("LAMINA_HOME", str(place))
    return place


@pytest.fixture
def tree(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "tree"
    (place / ".claude").mkdir(parents=True)
    monkeypatch.chdir(place)
    return place


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


def document(*arguments: str) -> Any:
    result = run("--json", *arguments)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return json.loads(result.stdout)


def test_every_setting_is_listed_with_its_value_and_where_it_came_from(tree: Path, home: Path) -> None:
    (home / "settings.json").write_text('{"lamina": {"recall": false}}', "utf-8")
    result = run("--all")
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = [line.strip() for line in result.stdout.splitlines() if line.startswith("  ")]
    assert sorted(line.split()[0] for line in lines) == sorted(row.key for row in SETTINGS)
    line = next(line for line in lines if line.startswith("lamina.recall "))
    assert line.split()[1:3] == ["false", "user"]
    assert str(home / "settings.json") in line


def test_without_all_only_what_was_changed_is_listed_by_kind(tree: Path, home: Path) -> None:
    untouched = run()
    assert untouched.stdout.startswith(f"No setting is changed: {len(SETTINGS)} settings")
    (home / "settings.json").write_text('{"model": "offline", "lamina": {"recall": false}}', "utf-8")
    *lines, rest = run().stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["Switches:", "lamina.recall", "Values:", "model"]
    assert rest.startswith(f"Not listed: {len(SETTINGS) - 2} settings")


def test_the_same_as_one_json_document(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_SPILL", "0")
    found = document()
    assert [entry["key"] for entry in found["settings"]] == [row.key for row in SETTINGS]
    spill = next(entry for entry in found["settings"] if entry["key"] == "lamina.spill")
    assert spill == {"key": "lamina.spill", "value": False, "source": "environment", "detail": "LAMINA_SPILL"}
    assert found["findings"] == []
    assert found["files"]["project"] == str(tree / ".claude" / "settings.json")


@pytest.mark.parametrize("name", ["lamina.recall", "recall", "LAMINA_RECALL"])
def test_one_setting_is_found_by_any_of_its_names(tree: Path, name: str) -> None:
    result = run(name)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "lamina.recall: true"
    assert "from: default" in result.stdout
    assert [entry["key"] for entry in document(name)["settings"]] == ["lamina.recall"]


@pytest.mark.parametrize("arguments", [("recal",), ("--json", "recal"), ("\x1b[2J",)])
def test_a_setting_that_does_not_exist_is_one_line_and_exit_code_2(tree: Path, arguments: tuple[str, ...]) -> None:
    result = here("config", *arguments)
    assert misused(result), result
    assert "\x1b" not in result.stderr


@pytest.mark.spec("F2")
def test_what_was_ignored_stands_at_the_end_and_is_no_failure(tree: Path) -> None:
    (tree / ".claude" / "settings.json").write_text('{"autoMemoryDirectory": "/srv/x/m", "hooks": {}}', "utf-8")
    result = run()
    assert result.exit_code == 0
    assert len(result.stderr.splitlines()) == 2
    assert "may not be set by files in the working tree" in result.stderr
    assert [found["key"] for found in document()["findings"]] == ["autoMemoryDirectory", "hooks"]


def test_one_setting_shows_what_was_ignored_about_it_and_about_whole_files(tree: Path, home: Path) -> None:
    (tree / ".claude" / "settings.json").write_text('{"autoMemoryDirectory": "/srv/x/m", "hooks": {}}', "utf-8")
    (home / "settings.json").write_text("{", "utf-8")
    assert [found["key"] for found in document("hooks")["findings"]] == ["user", "hooks"]
    assert len(run("hooks").stderr.splitlines()) == 2


@pytest.mark.spec("F2")
def test_it_shows_what_trust_would_change(tree: Path) -> None:
    (tree / ".claude" / "settings.json").write_text('{"lamina": {"spill": false}}', "utf-8")
    assert document("spill")["settings"][0]["value"] is True
    assert document("spill", "--trusted")["settings"][0]["value"] is False


def test_another_directory_can_be_named(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / ".claude"
    other.mkdir(parents=True)
    (other / "settings.json").write_text('{"autoMemoryEnabled": false}', "utf-8")
    assert document("memory", "--cwd", str(other.parent))["settings"][0]["value"] is False
    assert run("--cwd", str(tmp_path / "nowhere")).exit_code == 2


@pytest.mark.parametrize("arguments", [(), ("--json",), ("anthropicApiKey",), ("env",), ("hooks",), ("baseUrl",)])
def test_keys_passwords_and_tokens_are_never_printed(
    tree: Path, home: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret1")
    hook = {"type": "command", "command": "notify --token secret3"}
    settings = {
        "env": {"DB_PASSWORD": "secret2", "OPENAI_API_KEY": "secret5"},
        "hooks": {"Stop": [{"hooks": [hook]}]},
        "lamina": {"baseUrl": "https://me:secret4@host.example/v1?key=secret6"},
    }
    (home / "settings.json").write_text(json.dumps(settings), "utf-8")
    result = run(*arguments)
    assert result.exit_code == 0
    assert "secret" not in result.stdout + result.stderr
    if not arguments:
        assert "set (hidden)" in result.stdout
        assert "https://host.example/v1" in result.stdout
        assert "notify …" in result.stdout


def test_a_text_with_control_characters_does_not_reach_the_terminal(tree: Path, home: Path) -> None:
    (home / "settings.json").write_text(json.dumps({"lamina": {"extraGuidelines": "a\x1b[2J\nb\u202e"}}), "utf-8")
    result = run()
    assert "\x1b" not in result.stdout
    assert len(result.stdout.splitlines()) == 3, "a title, the setting and the rest"


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("no_color", "colored"), [(None, True), ("1", False)])
def test_colour_is_for_terminals_and_can_be_refused(tree: Path, no_color: str | None, colored: bool) -> None:
    leader, follower = os.openpty()
    environ = {name: text for name, text in os.environ.items() if name != "NO_COLOR"} | (
        {"NO_COLOR": no_color} if no_color else {}
    )
    code = "from lamina.cli.config import config_command; config_command(['--all'])"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=follower, stderr=subprocess.DEVNULL, env=environ)
    os.close(follower)
    seen = b""
    while True:
        try:
            part = os.read(leader, 65_536)
        except OSError:  # the other end was closed: Linux says so with EIO
            break
        if not part:
            break
        seen += part
    os.close(leader)
    assert child.wait() == 0
    assert b"lamina.spill" in seen
    assert (b"\x1b[" in seen) is colored


def test_a_pipe_gets_no_colour(tree: Path) -> None:
    code = "from lamina.cli.config import config_command; config_command([])"
    assert b"\x1b[" not in subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout


def test_the_command_loads_nothing_heavy(tree: Path) -> None:
    heavy = ("rich", "yaml", "asyncio", "sqlite3", "anthropic")
    code = f"import sys, lamina.cli.config; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_reference_in_the_docs_is_the_one_the_command_prints(root: Path) -> None:
    text = (root / "docs" / "settings.md").read_text("utf-8")
    begin, end = REGION
    written = text.partition(begin)[2].partition(end)[0]
    assert written == run("--reference").stdout, (
        "put the output of `lamina config --reference` between the marks in docs/settings.md"
    )


@pytest.mark.parametrize(
    "words",
    [("memory", "list"), ("stats",), ("stats", "--ledger"), ("sessions", "clean"), ("inbox",), ("dream", "--status")],
    ids=" ".join,
)
def test_a_command_that_uses_settings_reports_a_file_that_is_no_json(words: tuple[str, ...], tmp_path: Path) -> None:
    home = Path(os.environ["LAMINA_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    (home / "settings.json").write_text("{not json")
    done = here(*words, "--cwd", str(tmp_path))
    assert done.stderr.count("settings.json: is not valid JSON at line 1, column 2") == 1


def test_a_wrong_way_of_billing_is_reported_where_it_would_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_BILLING", "flat")
    for words in (("stats",), ("stats", "--ledger")):
        assert "LAMINA_BILLING): must be one of list, subscription" in here(*words, "--cwd", str(tmp_path)).stderr


def test_a_list_of_settings_fits_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_POLICY", "thrifty")
    short = here("config", "--cwd", str(tmp_path)).stdout.splitlines()
    assert "  lamina.policy  thrifty  environment (LAMINA_POLICY)" in short, "a column is no wider than its values"
    for columns in (40, 80):
        monkeypatch.setattr("lamina.cli.config.terminal_width", lambda columns=columns: columns)
        *rows, last = here("config", "--all", "--cwd", str(tmp_path)).stdout.splitlines()
        assert last.startswith("  "), "with --all nothing is left out"
        assert max(map(len, rows)) <= columns
