"""`lamina install` and `lamina uninstall`: the files of Claude Code and Codex before, between and after."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.running import LAMINA, here

from lamina.core.errors import InputError
from lamina.maintenance.install import claude_code, codex, mcp_agents
from lamina.maintenance.install.hook_entries import with_entries, without_entries
from lamina.maintenance.install.json_member import read_text, with_member, without_member
from lamina.maintenance.install.marked_section import MARKDOWN, TOML, with_section, without_section

AGENTS = ("claude-code", "codex")
MCP_AGENTS = tuple(mcp_agents.AGENTS)


def tree(top: Path) -> dict[str, bytes | None]:
    """Every file below with its bytes, and every directory."""
    return {str(path.relative_to(top)): path.read_bytes() if path.is_file() else None for path in sorted(top.rglob("*"))}


@pytest.fixture
def home() -> Path:
    """A home in which both agents have been used."""
    top = Path.home()
    files = {
        ".claude/settings.json": '{"model": "opus"}',
        ".claude/skills/mine/SKILL.md": "mine",
        ".codex/config.toml": '# my own\nmodel = "gpt-5.1-codex"\n\n[mcp_servers.other]\ncommand = "other" # why\n',
        ".codex/AGENTS.md": "Answer briefly.",
        ".codex/hooks.json": json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "beep"}]}]}}, indent=4)
        + "\n",
    }
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return top


@pytest.mark.spec("U5")
def test_an_installation_that_is_removed_leaves_the_home_as_it_was(home: Path) -> None:
    before = tree(home)
    for agent in AGENTS:
        assert here("install", agent, "--dry-run").returncode == 0
    assert tree(home) == before
    for agent in AGENTS:
        assert here("install", agent).returncode == 0
    between = tree(home)
    new = {name for name in between.keys() - before.keys() if between[name] is not None}
    plugin = ".claude/skills/lamina/"
    assert new == {plugin + name for name in (".claude-plugin/plugin.json", "hooks/hooks.json", ".mcp.json")}
    changed = {name for name in before if before[name] != between[name]}
    assert changed == {".codex/config.toml", ".codex/AGENTS.md", ".codex/hooks.json"}
    for agent in AGENTS:
        again = json.loads(here("install", agent, "--json").stdout)
        assert {change["action"] for change in again["changes"]} == {"unchanged"}
    assert tree(home) == between
    assert [row["state"] for row in json.loads(here("install", "--list", "--json").stdout)][:2] == ["installed", "installed"]
    (home / ".claude" / "plugins" / "data" / "lamina-skills-dir").mkdir(parents=True)
    for agent in AGENTS:
        assert here("uninstall", agent).returncode == 0
    assert tree(home) == before
    assert "not installed" in here("uninstall", "claude-code").stdout
    assert "not installed" in here("uninstall", "codex").stdout


@pytest.mark.spec("U5")
@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_the_temporary_files_of_a_killed_run_are_removed(home: Path, command: str) -> None:
    """A process that is killed between writing and renaming leaves one."""
    for agent in AGENTS:
        assert here("install", agent).returncode == 0
    left = [
        home / directory / ".lamina-0123456789abcdef.tmp"
        for directory in (".codex", ".claude/skills/lamina", ".claude/skills/lamina/hooks")
    ]
    for file in left:
        file.write_text("half")
    for agent in AGENTS:
        assert here(command, agent).returncode == 0
    assert not [file for file in left if file.exists()]


@pytest.mark.spec("U5")
def test_an_empty_home_is_empty_again(tmp_path: Path) -> None:
    for agent in AGENTS:
        here("install", agent)
        here("uninstall", agent)
    assert [path for path in tree(Path.home()) if not path.startswith(".lamina")] == []


@pytest.mark.spec("U5")
def test_what_is_written_is_what_the_agents_read(home: Path) -> None:
    for agent in AGENTS:
        here("install", agent)
    plugin = home / ".claude" / "skills" / "lamina"
    assert json.loads((plugin / ".claude-plugin/plugin.json").read_text())["name"] == "lamina"
    [server] = json.loads((plugin / ".mcp.json").read_text())["mcpServers"].values()
    assert [server["command"], *server["args"]][:4] == [sys.executable, "-P", "-m", "lamina"]
    assert server["timeout"] == 30_000
    hooks = json.loads((plugin / "hooks/hooks.json").read_text())["hooks"]
    assert hooks.keys() == {"SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "Stop", "SessionEnd"}
    every = [hook for groups in hooks.values() for group in groups for hook in group["hooks"]]
    assert {hook["timeout"] for hook in every} == {2, 3}
    assert {hook["server"] for hook in every if hook["type"] == "mcp_tool"} == {"plugin:lamina:mem"}
    assert hooks["UserPromptSubmit"][0]["hooks"][0]["input"]["prompt"] == "${prompt}"
    table = tomllib.loads((home / ".codex/config.toml").read_text())["mcp_servers"]["lamina"]
    assert table["default_tools_approval_mode"] == "approve"
    assert table["tool_timeout_sec"] == 30
    assert [table["command"], *table["args"]] == [sys.executable, "-P", "-m", "lamina", "mcp"]
    codex = json.loads((home / ".codex/hooks.json").read_text())["hooks"]
    assert codex["Stop"][0]["hooks"][0]["command"] == "beep"
    entry = codex["UserPromptSubmit"][0]["hooks"][0]
    assert entry["timeout"] == 3
    done = subprocess.run(["/bin/sh", "-c", entry["command"]], input=b"{}", capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
    assert "trusted_hash" not in (home / ".codex/config.toml").read_text()
    section = (home / ".codex/AGENTS.md").read_text()
    assert "memory_search" in section
    assert "tool_search" in section  # Codex lists tools of servers by name only


def commands(home: Path) -> list[str]:
    """The commands of all installed hooks."""
    files = (home / ".claude/skills/lamina/hooks/hooks.json", home / ".codex/hooks.json")
    groups = [group for file in files for event in json.loads(file.read_text())["hooks"].values() for group in event]
    return [hook["command"] for group in groups for hook in group["hooks"] if "lamina" in hook.get("command", "")]


@pytest.mark.skipif(os.name == "nt", reason="there is no /bin/sh")
@pytest.mark.spec("U5")
def test_hooks_are_silent_when_the_environment_is_gone_or_broken(home: Path, tmp_path: Path) -> None:
    for agent in AGENTS:
        here("install", agent)
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no module named lamina >&2\nexit 1\n")
    broken.chmod(0o755)
    assert len(commands(home)) == 7
    for command in commands(home):
        for program in (str(tmp_path / "gone/bin/python"), str(broken)):
            line = command.replace(shlex.quote(sys.executable), program)
            assert line != command
            done = subprocess.run(["/bin/sh", "-c", line], input=b"{}", capture_output=True, env={"TMPDIR": str(tmp_path)})
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.spec("U5")
def test_an_older_installation_is_brought_up_to_date(home: Path) -> None:
    before = tree(home)
    plugin = home / ".claude/skills/lamina"
    here("install", "claude-code")
    here("install", "codex")
    now = tree(home)
    words = [sys.executable, "-P", "-m", "lamina", "hook"]
    old = {"type": "command", "command": words[0], "args": [*words[1:], "SessionEnd"], "timeout": 5}
    call = {"type": "mcp_tool", "server": "plugin:lamina:mem", "tool": "hook_stop", "input": {}, "timeout": 10}
    hooks = {"SessionEnd": [{"hooks": [old]}], "Stop": [{"hooks": [call]}]}
    (plugin / "hooks/hooks.json").write_text(json.dumps({"hooks": hooks}))
    theirs = {"hooks": [{"type": "command", "command": "beep"}]}
    ours = {"hooks": [{"type": "command", "command": shlex.join([*words, "Stop", "--agent", "codex"]), "timeout": 10}]}
    (home / ".codex/hooks.json").write_text(json.dumps({"hooks": {"Stop": [theirs, ours]}}, indent=4))
    assert [row["state"] for row in json.loads(here("install", "--list", "--json").stdout)][:2] == ["out of date", "out of date"]
    for agent in AGENTS:
        here("install", agent)
    events = json.loads((plugin / "hooks/hooks.json").read_text())["hooks"]
    assert events.keys() == json.loads(now[".claude/skills/lamina/hooks/hooks.json"] or b"")["hooks"].keys()
    codex = json.loads((home / ".codex/hooks.json").read_text())["hooks"]
    assert codex == json.loads(now[".codex/hooks.json"] or b"")["hooks"]
    for agent in AGENTS:
        here("uninstall", agent)
    assert tree(home) == before


@pytest.mark.spec("U5")
def test_what_the_user_added_survives(home: Path) -> None:
    for agent in AGENTS:
        here("install", agent)
    plugin = home / ".claude" / "skills" / "lamina"
    (plugin / "notes.md").write_text("mine")
    hooks = json.loads((plugin / "hooks/hooks.json").read_text())
    hooks["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "beep"})
    (plugin / "hooks/hooks.json").write_text(json.dumps(hooks))
    config = home / ".codex" / "config.toml"
    config.write_text(config.read_text() + '\n[profiles.x]\nmodel = "y"\n')
    here("install", "claude-code")
    told = here("uninstall", "claude-code").stdout
    assert "notes.md" in told
    assert tree(plugin).keys() == {"hooks", "hooks/hooks.json", "notes.md"}
    left = json.loads((plugin / "hooks/hooks.json").read_text())
    assert left == {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "beep"}]}]}}
    here("uninstall", "codex")
    assert config.read_text().endswith('command = "other" # why\n\n[profiles.x]\nmodel = "y"\n')


@pytest.mark.spec("U5")
def test_the_folders_that_an_uninstallation_removes_are_listed(home: Path) -> None:
    here("install", "claude-code")
    data = home / ".claude" / "plugins" / "data" / "lamina-skills-dir"
    (data / "cache").mkdir(parents=True)
    between = tree(home)
    planned = json.loads(here("uninstall", "claude-code", "--dry-run", "--json").stdout)["changes"]
    assert tree(home) == between
    assert json.loads(here("uninstall", "claude-code", "--json").stdout)["changes"] == planned
    gone = {change["path"] for change in planned if change["action"] == "removed"}
    assert {str(data), str(home / ".claude/skills/lamina")} <= gone
    assert gone == {path for path in gone if not Path(path).exists()}
    assert not (home / ".claude" / "plugins").exists()


@pytest.mark.spec("U5")
def test_what_stays_after_an_uninstallation_is_listed_and_survives_the_next_installation(home: Path) -> None:
    before = tree(home)
    here("install", "claude-code")
    plugin, data = home / ".claude/skills/lamina", home / ".claude/plugins/data/lamina-skills-dir"
    (plugin / "notes.md").write_text("mine")
    (plugin / "empty").mkdir()
    (plugin / "elsewhere").symlink_to(home / ".codex")
    (plugin / ".mcp.json").write_text(
        '{"mcpServers": {"other": {"command": "x"}, "mem": {"args": ["-P", "-m", "lamina", "mcp"]}}}'
    )
    data.mkdir(parents=True)
    (data / "list.txt").write_text("mine too")
    told = json.loads(here("uninstall", "claude-code", "--json").stdout)["changes"]
    mine = {str(plugin / "notes.md"), str(plugin / "elsewhere"), str(data / "list.txt")}
    assert {change["path"] for change in told if change["action"] == "kept"} == mine
    left = tree(home)
    new = {str(home / name) for name in left.keys() - before.keys() if not (home / name).is_dir() or (home / name).is_symlink()}
    assert new == {*mine, str(plugin / ".mcp.json")}
    again = json.loads(here("uninstall", "claude-code", "--json").stdout)
    assert "The plugin is not installed." in again["notes"]
    assert {change["path"] for change in again["changes"]} == {*mine, str(plugin / ".mcp.json")}
    assert tree(home) == left
    assert here("install", "--list").stdout.startswith("claude-code  not installed")
    assert here("install", "claude-code").returncode == 0
    assert json.loads((plugin / ".mcp.json").read_text())["mcpServers"].keys() == {"other", "mem"}
    assert here("uninstall", "claude-code").returncode == 0
    assert tree(home) == left


@pytest.mark.spec("U5")
def test_a_data_folder_without_a_plugin_is_removed(home: Path) -> None:
    before = tree(home)
    (home / ".claude/plugins/data/lamina-skills-dir").mkdir(parents=True)
    assert "lamina-skills-dir" in here("uninstall", "claude-code").stdout
    assert tree(home) == before


@pytest.mark.spec("U5")
def test_a_server_of_the_user_with_our_name_is_refused_and_never_removed(home: Path) -> None:
    servers = home / ".claude/skills/lamina/.mcp.json"
    servers.parent.mkdir()
    servers.write_text('{"mcpServers": {"mem": {"command": "mine"}}}')
    before = tree(home)
    done = here("install", "claude-code")
    assert done.returncode == 2
    assert f"{servers}: has another server named mem" in done.stderr
    assert tree(home) == before
    servers.unlink()
    here("install", "claude-code")
    servers.write_text('{"mcpServers": {"mem": {"command": "mine"}}}')
    assert here("uninstall", "claude-code").returncode == 0
    assert tree(home) == before


@pytest.mark.spec("U5")
@pytest.mark.parametrize(
    ("file", "text", "agent"),
    [
        (".codex/config.toml", "model = \n", "codex"),
        (".codex/config.toml", '[mcp_servers.lamina]\ncommand = "mine"\n', "codex"),
        (".codex/config.toml", 'mcp_servers.lamina.command = "mine"\n', "codex"),
        (".codex/config.toml", 'mcp_servers = {other = {command = "x"}}\n', "codex"),
        (".codex/config.toml", b"\xff\xfe", "codex"),
        (".codex/hooks.json", '{"hooks": {} // mine\n}', "codex"),
        (".codex/hooks.json", '{"hooks": []}', "codex"),
        (".codex/hooks.json", "[]", "codex"),
        (".codex/AGENTS.md", "<!-- lamina: begin\nbroken", "codex"),
        (".claude/skills/lamina/SKILL.md", "somebody else's", "claude-code"),
        (".claude/skills/lamina/.claude-plugin/plugin.json", '{"name": "lamina"}', "claude-code"),
        (".claude/skills/lamina/.claude-plugin/plugin.json", "{", "claude-code"),
        (".claude/skills/lamina", "a file", "claude-code"),
        (".claude/skills/lamina/hooks/hooks.json", '{"hooks": []}', "claude-code"),
        (".claude/skills/lamina/.mcp.json", "[]", "claude-code"),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_refused_unchanged(home: Path, file: str, text: str | bytes, agent: str) -> None:
    (home / file).parent.mkdir(parents=True, exist_ok=True)
    (home / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    before = tree(home)
    done = here("install", agent)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert str(home / file).removesuffix("/SKILL.md").removesuffix("/.claude-plugin/plugin.json") in done.stderr
    assert tree(home) == before
    assert here("install", "--list").returncode == 0
    here("uninstall", agent)
    assert tree(home) == before


@pytest.mark.spec("U5")
def test_other_directories_are_used_where_they_are_set(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(home)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    for agent in AGENTS:
        assert here("install", agent).returncode == 0
    assert tree(home) == before
    assert (tmp_path / "claude/skills/lamina/.mcp.json").is_file()
    assert (tmp_path / "codex/config.toml").is_file()


@contextmanager
def as_nobody() -> Iterator[None]:
    """Run without the rights of root, who may write anywhere."""
    if os.geteuid():
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.name == "nt", reason="there are no modes")
@pytest.mark.spec("U5")
def test_a_read_only_directory_is_refused_by_its_name() -> None:
    locked = Path(tempfile.mkdtemp())  # outside the directory of this test, which only its owner may enter
    locked.chmod(0o555)
    places = {"CLAUDE_CONFIG_DIR": str(locked / "claude"), "CODEX_HOME": str(locked)}
    for install in (claude_code.install, codex.install):
        assert install(places, dry_run=True).changes
        with as_nobody(), pytest.raises(InputError) as refused:
            install(places)
        assert str(refused.value).startswith(f"{locked}")
        assert str(refused.value).endswith("is not writable; check its permissions.")
        assert ".tmp" not in str(refused.value)
    assert list(locked.iterdir()) == []
    locked.rmdir()


@pytest.mark.spec("U5")
def test_an_uninstallation_without_an_installation_changes_nothing() -> None:
    (Path.home() / ".codex").mkdir()
    before = tree(Path.home())
    for agent in AGENTS:
        assert here("uninstall", agent).returncode == 0
    assert tree(Path.home()) == before


@pytest.mark.spec("U5")
def test_a_linked_configuration_is_changed_where_it_is(home: Path) -> None:
    dotfiles = home / "dotfiles"
    dotfiles.mkdir()
    (home / ".codex/config.toml").rename(dotfiles / "config.toml")
    (home / ".codex/config.toml").symlink_to(dotfiles / "config.toml")
    here("install", "codex")
    assert (home / ".codex/config.toml").is_symlink()
    assert "lamina" in (dotfiles / "config.toml").read_text()
    here("uninstall", "codex")
    assert "lamina" not in (dotfiles / "config.toml").read_text()


@pytest.mark.exhaustive
@pytest.mark.spec("U5")
def test_installations_at_once_give_one_installation(home: Path) -> None:
    running = [subprocess.Popen([*LAMINA, "install", agent]) for agent in AGENTS for _ in range(4)]
    assert [process.wait(120) for process in running] == [0] * 8
    assert [row["state"] for row in json.loads(here("install", "--list", "--json").stdout)][:2] == ["installed", "installed"]
    assert (home / ".codex/config.toml").read_text().count("[mcp_servers.lamina]") == 1
    assert len(json.loads((home / ".codex/hooks.json").read_text())["hooks"]["Stop"]) == 2


@pytest.mark.spec("U5")
def test_spills_that_stay_are_listed(home: Path) -> None:
    here("install", "claude-code")
    results = home / ".claude/projects/-p/0c1d/tool-results"
    results.mkdir(parents=True)
    (results / "lamina-toolu_1.txt").write_bytes(b"x" * 2_000_000)
    (results / "b1.txt").write_bytes(b"x")
    told = here("uninstall", "claude-code").stdout
    assert "1 tool result (2.0 MB) stay in" in told
    assert (results / "lamina-toolu_1.txt").exists()


@pytest.mark.spec("U5")
@given(st.none() | st.text(alphabet="ab \n\r#", max_size=30), st.sampled_from([TOML, MARKDOWN]))
def test_taking_a_section_out_gives_back_the_text(old: str | None, style: Any) -> None:
    once = with_section(old, "body\nof two lines", style, "file")
    assert with_section(once, "body\nof two lines", style, "file") == once
    again = with_section(once, "another", style, "file")
    assert without_section(again, style, "file") == old


@pytest.mark.spec("U5")
def test_a_damaged_section_is_refused() -> None:
    text = with_section("mine\n", "body", TOML, "file")
    for broken in (text.replace("# lamina: end\n", ""), text + text):
        with pytest.raises(InputError, match="by hand"):
            without_section(broken, TOML, "file")


ENTRY = {"hooks": [{"type": "command", "command": "/usr/bin/python3 -P -m lamina hook Stop --agent codex"}]}
_HOOK = st.fixed_dictionaries({"command": st.sampled_from(["beep", "lamina stats"])})
THEIRS = st.fixed_dictionaries({"hooks": st.lists(_HOOK, max_size=2)})


@pytest.mark.spec("U5")
@given(st.dictionaries(st.sampled_from(["Stop", "SessionStart"]), st.lists(THEIRS, max_size=2)), st.booleans())
def test_only_our_entries_come_and_go(hooks: dict[str, Any], more: bool) -> None:
    document = {"hooks": hooks, **({"other": 1} if more else {})}
    old = json.dumps(document).encode()
    new = with_entries(old, {"Stop": [ENTRY]}, "file")
    assert with_entries(new, {"Stop": [ENTRY]}, "file") == new
    assert json.loads(new)["hooks"]["Stop"] == [*hooks.get("Stop", []), ENTRY]
    left = without_entries(new, "file")
    kept = {event: groups for event, groups in hooks.items() if groups or event != "Stop"}
    assert (json.loads(left) if left is not None else {"hooks": {}}) == {**document, "hooks": kept}


@pytest.mark.spec("U5")
def test_doctor_tells_who_writes_the_memories(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> list[str]:
        report = json.loads(here("doctor", "--json", cwd=tmp_path).stdout)
        return [found["problem"] for found in report["findings"] if found["kind"].startswith("plugin")]

    assert told() == []
    here("install", "claude-code")
    assert any("Claude Code writes the memories here: its auto memory is on (its default)" in one for one in told())
    (home / ".claude" / "settings.json").write_text('{"autoMemoryEnabled": false}')
    assert any("Lamina writes the memories here" in one and "settings.json" in one for one in told())
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "0")
    assert any("(CLAUDE_CODE_DISABLE_AUTO_MEMORY)" in one for one in told())
    plugin = home / ".claude/skills/lamina/.claude-plugin/plugin.json"
    plugin.write_text(plugin.read_text().replace('"version": "', '"version": "0.0.'))
    assert "Lamina in Claude Code is out of date." in told()


# The file of each agent with servers of the user's, in the forms that people and programs write.
FOUND = {
    "cursor": (".cursor/mcp.json", '{"mcpServers":{"other":{"command":"x"}}}'),
    "gemini": (".gemini/settings.json", '{\r\n    "mcpServers": {},\r\n    "theme": "a{b"\r\n}'),
    "opencode": (
        ".config/opencode/opencode.jsonc",
        '// mine\n{\n\t"$schema": "https://opencode.ai/config.json", // "mcp": {\n\t/* } */ "model": "a/b",\n}\n',
    ),
    "vscode": (".config/Code/User/mcp.json", '{\n  "servers": { // my servers\n    "other": {"command": "x",},\n  },\n}\n'),
}


@pytest.mark.spec("U5")
@pytest.mark.parametrize("agent", MCP_AGENTS)
def test_the_server_of_an_agent_comes_and_goes_and_the_rest_keeps_its_bytes(agent: str) -> None:
    home, (name, text) = Path.home(), FOUND[agent]
    file = home / name
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode())
    instructions = mcp_agents.AGENTS[agent].instructions
    if instructions:
        (file.parent / instructions).write_text("Answer briefly.")
    before = tree(home)
    assert "not installed" in here("uninstall", agent).stdout
    assert here("install", agent, "--dry-run").returncode == 0
    assert tree(home) == before
    told = here("install", agent).stdout
    between = tree(home)
    assert {name for name in between if between[name] != before.get(name)} == {
        str((file.parent / part).relative_to(home)) for part in (file.name, instructions) if part
    }
    shape = mcp_agents.AGENTS[agent]
    old, new = (read_text(data.decode(), name) for data in (text.encode(), file.read_bytes()))
    entry = new[shape.group].pop("lamina")
    command = entry["command"] if shape.shape == "local" else [entry["command"], *entry["args"]]
    assert command[:5] == [sys.executable, "-P", "-m", "lamina", "mcp"]
    assert {key: value for key, value in new.items() if value} == {key: value for key, value in old.items() if value}
    assert ("trust" in told) == (agent == "gemini")
    assert ("docs/other-agents.md" in told) == (not instructions)
    assert {change["action"] for change in json.loads(here("install", agent, "--json").stdout)["changes"]} == {"unchanged"}
    states = {row["agent"]: row["state"] for row in json.loads(here("install", "--list", "--json").stdout)}
    assert states[agent] == "installed"
    assert f"Lamina is installed in {shape.title}." in here("doctor").stdout
    assert here("uninstall", agent).returncode == 0
    assert tree(home) == before


@pytest.mark.spec("U5")
@pytest.mark.parametrize("agent", MCP_AGENTS)
def test_an_agent_without_files_has_none_again(agent: str) -> None:
    here("install", agent)
    assert json.loads(here("install", agent, "--json").stdout)["changes"][0]["action"] == "unchanged"
    here("uninstall", agent)
    assert [path for path in tree(Path.home()) if not path.startswith(".lamina")] == []


@pytest.mark.parametrize("agent", MCP_AGENTS)
@pytest.mark.parametrize(
    "text", ["{", "[]", '{"GROUP": []}', '{"GROUP": {"lamina": {"command": "mine"}}}', '{"a": 1 "b": 2}', b"\xff{}"]
)
def test_a_configuration_that_cannot_be_changed_safely_is_refused(agent: str, text: str | bytes) -> None:
    file = Path.home() / FOUND[agent][0]
    file.parent.mkdir(parents=True)
    file.write_bytes(text.replace("GROUP", mcp_agents.AGENTS[agent].group).encode() if isinstance(text, str) else text)
    before = tree(Path.home())
    done = here("install", agent)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "nothing was changed" in done.stderr
    here("uninstall", agent)
    assert tree(Path.home()) == before


def test_an_entry_of_another_installation_is_replaced_and_removed_wherever_it_stands() -> None:
    old = '{"mcpServers": {"a": {}, // first\n  "lamina": {"command": "/old/python", "args": ["-P", "-m", "lamina", "mcp"]}, "b": {}}}'
    file = Path.home() / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(old)
    assert here("install", "cursor").returncode == 0
    assert sys.executable in file.read_text()
    assert "/old/python" not in file.read_text()
    assert here("uninstall", "cursor").returncode == 0
    assert read_text(file.read_text(), "x") == {"mcpServers": {"a": {}, "b": {}}}


_SPACES = st.sampled_from(["", " ", "\n  ", "\r\n\t", ' // no, "x": {\n', "/* } */"])
_VALUES = st.recursive(
    st.sampled_from(["1", "true", '"a, \\" {b"', "[]", "{}", "[1, {}]"]),
    lambda inner: st.lists(
        st.tuples(st.sampled_from(["a", "b:c", "servers"]), inner), unique_by=lambda pair: pair[0], max_size=2
    ).map(lambda pairs: "{" + ",".join(f'"{key}": {value}' for key, value in pairs) + "}"),
    max_leaves=4,
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    def spaced(word: str) -> str:
        return draw(_SPACES) + word + draw(_SPACES)

    def made(pairs: list[tuple[str, str]]) -> str:
        comma = draw(st.sampled_from(["", ","])) if pairs else ""
        return "{" + ",".join(f"{spaced(json.dumps(key))}:{spaced(value)}" for key, value in pairs) + comma + draw(_SPACES) + "}"

    names = st.lists(st.sampled_from(["x", "y z", "}"]), unique=True, max_size=2)
    pairs = [(name, draw(_VALUES)) for name in draw(names)]
    if draw(st.booleans()):
        group = made([(name, draw(_VALUES)) for name in draw(names)])
        pairs.insert(draw(st.integers(0, len(pairs))), ("servers", group))
    return draw(_SPACES) + made(pairs) + draw(_SPACES)


@given(documents())
def test_taking_an_entry_out_gives_back_the_json_text(old: str) -> None:
    entry = {"command": "x", "args": ["{"]}
    new = with_member(old, "servers", "lamina", entry, "x")
    assert read_text(new, "x")["servers"]["lamina"] == entry
    assert with_member(new, "servers", "lamina", entry, "x") == new
    assert without_member(new, "servers", "lamina", "x") == old


@pytest.mark.spec("U5")
def test_doctor_reports_hooks_that_were_skipped_or_slow(home: Path, tmp_path: Path) -> None:
    def told() -> list[str]:
        report = json.loads(here("doctor", "--json", cwd=tmp_path).stdout)
        return [found["problem"] for found in report["findings"] if found["kind"] == "plugin-hooks"]

    def record(name: str, *hooks: dict[str, Any]) -> None:
        lines = [json.dumps({"type": "attachment", "attachment": hook}) for hook in hooks]
        (home / ".claude/projects/-p" / f"{name}.jsonl").write_text("\n".join(['{"broken', '{"hook_x": 1}', "[]", *lines]) + "\n")

    here("install", "claude-code")
    (home / ".claude/projects/-p").mkdir(parents=True)
    command = "/usr/bin/python3 -P -m lamina hook SessionStart"
    skipped = {"type": "hook_non_blocking_error", "stderr": "MCP server 'plugin:lamina:mem' not connected"}
    late = {"type": "hook_cancelled", "hookEvent": "Stop", "timedOut": True, "command": "plugin:lamina:mem/hook_stop"}
    quick = {"type": "hook_success", "command": command, "durationMs": 200}
    record(
        "good", quick, {"type": "hook_cancelled"}, {"type": "hook_non_blocking_error", "stderr": "MCP server 'x' not connected"}
    )
    record(
        "other", {"type": "hook_cancelled", "timedOut": True, "command": "beep"}, {**quick, "command": "x", "durationMs": 9_999}
    )
    assert told() == []
    record("bad", skipped, skipped, late)
    record("slow", {**quick, "durationMs": 2_500}, {**late, "command": ""})
    [problem] = told()
    assert problem == (
        "2 of the last 4 sessions of Claude Code had trouble with Lamina: 2 hooks skipped, 1 hook slow, 2 hooks timed out."
    )
