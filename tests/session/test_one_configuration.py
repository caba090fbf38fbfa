"""The library reads the settings that the command line reads, in the same way, and follows them while a session runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import lamina
from lamina.disk.home.trust import trust
from lamina.session.base import conversation_of

VARIABLES = {
    "LAMINA_POLICY": "lean",
    "LAMINA_CONTEXT_WINDOW": "64000",
    "LAMINA_DISABLE_COMPACT": "1",
    "LAMINA_SPILL": "0",
    "LAMINA_DISABLE_MEMORY": "1",
    "LAMINA_RECALL": "0",
    "LAMINA_BARE": "1",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "home-of-lamina"
    directory.mkdir()
    monkeypatch.setenv("LAMINA_HOME", str(directory))
    return directory


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    (directory / ".claude").mkdir(parents=True)
    return directory


def write(path: Path, **content: object) -> None:
    path.write_text(json.dumps(content))


@pytest.mark.spec("U1", "F1")
def test_environment_variables_reach_a_session(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    with lamina.Session("offline", cwd=project) as session:
        settings = session.settings
        assert (settings.compaction, settings.spill, settings.memory, settings.recall, settings.bare) == (False,) * 4 + (True,)
        assert conversation_of(session).limits.window == 64_000
        assert conversation_of(session).policy == lamina.named_policy("lean")


@pytest.mark.spec("U1")
def test_environment_variables_reach_an_agent(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    with lamina.Agent.open("offline", cwd=project) as agent:
        assert agent.session.settings.bare
        assert conversation_of(agent.session).limits.window == 64_000
        assert agent.memory.place is None


@pytest.mark.spec("U1", "F2")
def test_the_settings_files_reach_a_session(home: Path, project: Path) -> None:
    write(home / "settings.json", lamina={"spill": False})
    write(project / ".claude" / "settings.json", autoCompactEnabled=False)
    with lamina.Session("offline", cwd=project) as session:
        assert not session.settings.spill
        assert not session.settings.auto_compact


@pytest.mark.spec("U1")
def test_explicit_arguments_win_over_what_is_loaded(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_POLICY", "lean")
    monkeypatch.setenv("LAMINA_CONTEXT_WINDOW", "64000")
    with lamina.Session("offline", cwd=project, policy="classic", window=100_000) as session:
        assert (conversation_of(session).policy, conversation_of(session).limits.window) == (
            lamina.named_policy("classic"),
            100_000,
        )
    with lamina.Session("offline", cwd=project, settings=lamina.Settings()) as session:
        assert conversation_of(session).limits.window == 200_000


@pytest.mark.spec("U1", "S2")
def test_memory_and_agent_use_one_directory(home: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_MEMORY_DIR", str(tmp_path / "elsewhere" / "memory"))
    with lamina.Memory.open(cwd=project) as memory, lamina.Agent.open("offline", cwd=project) as agent:
        assert agent.memory.directory == memory.path


@pytest.mark.spec("U1", "F2")
def test_a_repository_sets_no_hooks_for_a_session_until_it_is_trusted(home: Path, project: Path) -> None:
    hook = {"matcher": "", "hooks": [{"type": "command", "command": "echo hello"}]}
    write(project / ".claude" / "settings.json", hooks={"Stop": [hook]}, autoMemoryDirectory="/tmp/elsewhere/of/theirs")
    assert not lamina.Settings.load(project).hooks
    trust(home, project)
    trusted = lamina.Settings.load(project)
    assert trusted.hooks
    assert trusted.memory_directory is None


@pytest.mark.spec("U1", "F1")
def test_a_switch_turned_off_holds_from_the_next_decision_of_a_running_session(home: Path, project: Path) -> None:
    with lamina.Session("offline", cwd=project) as session:
        session.add_user("hello")
        session.before_call()
        seen = [session.settings.spill]
        write(home / "flags.json", **{"lamina.spill": False})
        session.before_call()
        seen.append(conversation_of(session).settings.spill)
        (home / "flags.json").unlink()
        session.before_call()
        assert [*seen, session.settings.spill] == [True, False, True]


@pytest.mark.spec("R5", "F1")
@pytest.mark.parametrize("policy", ["classic", lamina.named_policy("thrifty")])
def test_remote_flags_count_under_a_policy_given_in_code(home: Path, project: Path, policy: lamina.Policy | str) -> None:
    flags = {"lamina.results.perTool": {"grep": 700}, "lamina.results.default": 900, "lamina.cold.clear": False}
    write(home / "flags.json", **flags)
    with lamina.Session("offline", cwd=project, policy=policy) as session:
        numbers = conversation_of(session).policy
        assert (dict(numbers.results.per_tool), numbers.results.default) == ({"Bash": 30_000, "grep": 700}, 900)
        assert not numbers.cold.clear
        assert numbers.once == (lamina.named_policy(policy) if isinstance(policy, str) else policy).once
        session.add_user("hello")
        (home / "flags.json").unlink()
        session.before_call()
        assert conversation_of(session).policy == (lamina.named_policy(policy) if isinstance(policy, str) else policy)


@pytest.mark.spec("U1")
def test_a_number_that_changes_while_a_session_runs_counts(home: Path, project: Path) -> None:
    with lamina.Session("offline", cwd=project) as session:
        write(home / "settings.json", lamina={"contextWindow": 64_000})
        session.add_user("hello")
        session.before_call()
        assert conversation_of(session).limits.window == 64_000


@pytest.mark.spec("U1", "F2")
def test_hooks_that_a_trusted_repository_changes_meanwhile_are_not_trusted(home: Path, project: Path) -> None:
    def hooks(command: str) -> dict[str, object]:
        return {"Stop": [{"matcher": "", "hooks": [{"type": "command", "command": command}]}]}

    write(project / ".claude" / "settings.json", hooks=hooks("echo hello"))
    trust(home, project)
    with lamina.Session("offline", cwd=project) as session:
        assert session.settings.hooks
        write(project / ".claude" / "settings.json", hooks=hooks("echo something else"))
        session.add_user("hello")
        session.before_call()
        assert not session.settings.hooks


def test_a_settings_file_that_breaks_meanwhile_is_one_sentence_and_the_session_goes_on(home: Path, project: Path) -> None:
    with lamina.Session("offline", cwd=project) as session:
        (home / "settings.json").write_text("{ not json")
        session.add_user("hello")
        session.before_call()
        session.before_call()
        assert [one for one in session.notices if "settings.json" in one] == [
            one for one in dict.fromkeys(session.notices) if "settings.json" in one
        ]
        assert any("settings.json" in one for one in session.notices)


def test_settings_given_as_arguments_stay_when_files_change(home: Path, project: Path) -> None:
    settings = lamina.Settings.load(project, spill=False)
    with lamina.Session("offline", cwd=project, settings=settings) as session:
        write(home / "settings.json", lamina={"spill": True, "recall": False})
        session.add_user("hello")
        session.before_call()
        assert (session.settings.spill, session.settings.recall) == (False, False)


def test_settings_made_in_code_read_no_file(home: Path, project: Path) -> None:
    write(home / "settings.json", lamina={"spill": False})
    with lamina.Session("offline", cwd=project, settings=lamina.Settings()) as session:
        session.add_user("hello")
        session.before_call()
        assert session.settings.spill


def test_many_tenants_each_have_their_own_settings(tmp_path: Path, project: Path, home: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    write(tmp_path / "one" / "settings.json", lamina={"recall": False})
    with (
        lamina.Session("offline", cwd=project, home=tmp_path / "one") as one,
        lamina.Session("offline", cwd=project, home=tmp_path / "two") as two,
    ):
        assert (one.settings.recall, two.settings.recall) == (False, True)
    assert os.environ["LAMINA_HOME"] == str(home)


@pytest.mark.spec("U1", "F1")
def test_memory_turned_off_in_a_running_agent_takes_no_further_write(home: Path, project: Path) -> None:
    with lamina.Agent.open("offline", cwd=project) as agent:
        assert "remember" in agent.run("Remember: we deploy on Tuesdays").text.lower()
        write(home / "settings.json", autoMemoryEnabled=False)
        agent.run("Remember: the build runs on Fridays")
    names = [path.name for path in (home / "projects").rglob("memory/*.md")]
    assert [name for name in names if "deploy" in name]
    assert not [name for name in names if "build" in name]


@pytest.mark.spec("U1")
def test_a_permission_that_is_denied_meanwhile_is_denied(home: Path, project: Path) -> None:
    with lamina.Agent.open("offline", cwd=project) as agent:
        agent.allow("Bash(ls:*)")
        write(home / "settings.json", permissions={"deny": ["Bash"]})
        agent.run("hello")
        assert [len(agent.rules.deny), len(agent.rules.allow)] == [1, 1]


@pytest.mark.spec("F3", "F4")
def test_the_names_that_claude_code_gives_them_are_read(home: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES", "Write in French.")
    assert lamina.Settings.load(project).extra_guidelines == "Write in French."
    monkeypatch.setenv("CLAUDE_CODE_SIMPLE", "1")
    assert lamina.Settings.load(project).bare
