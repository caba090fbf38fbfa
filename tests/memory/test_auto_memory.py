"""Whether Claude Code writes memories, decided as it decides itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.core.settings import Settings
from lamina.memory.auto_memory import auto_memory, own_memory

OFF, ON = '{"autoMemoryEnabled": false}', '{"autoMemoryEnabled": true}'


@pytest.mark.spec("U5")
@pytest.mark.parametrize(
    ("variable", "local", "project", "user", "on"),
    [
        (None, None, None, None, True),
        ("1", ON, ON, ON, False),
        ("0", OFF, OFF, OFF, True),
        ("", None, None, OFF, False),
        (None, ON, OFF, OFF, True),
        (None, None, OFF, ON, False),
        (None, None, None, '{"env": {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": "true"}}', False),
        (None, "// comment\n" + OFF, None, None, True),
        (None, '{"autoMemoryEnabled": "no"}', None, OFF, False),
        (None, "[]", "\0", None, True),
    ],
)
def test_the_variable_decides_then_the_nearest_settings(
    tmp_path: Path, variable: str | None, local: str | None, project: str | None, user: str | None, on: bool
) -> None:
    files = {tmp_path / ".claude/settings.local.json": local, tmp_path / ".claude/settings.json": project}
    files[Path.home() / ".claude/settings.json"] = user
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        if text is not None:
            path.write_text(text)
    environ = {**os.environ, **({"CLAUDE_CODE_DISABLE_AUTO_MEMORY": variable} if variable is not None else {})}
    found = auto_memory(tmp_path, environ)
    assert found.on is on
    assert found.path is not None
    assert found.path.is_relative_to(Path.home() / ".claude" / "projects")


@pytest.mark.spec("U5", "F3")
def test_switches_of_claude_code_leave_our_memory_on_and_our_own_turn_it_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1")
    monkeypatch.setenv("LAMINA_RECALL", "0")
    settings = Settings.load(tmp_path)
    ours = own_memory(settings)
    assert (settings.memory, ours.memory, ours.recall) == (False, True, False)
    monkeypatch.delenv("CLAUDE_CODE_DISABLE_AUTO_MEMORY")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(OFF)
    assert own_memory(settings.refreshed()).memory
    assert not Settings.load(tmp_path).memory
    assert own_memory(Settings.load(tmp_path)).memory
    monkeypatch.setenv("LAMINA_DISABLE_MEMORY", "1")
    assert not own_memory(Settings.load(tmp_path)).memory
    monkeypatch.delenv("LAMINA_DISABLE_MEMORY")
    (Path.home() / ".lamina").mkdir()
    (Path.home() / ".lamina" / "settings.json").write_text(OFF)
    assert not own_memory(Settings.load(tmp_path)).memory


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_place_of_a_projects_settings_is_skipped(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    os.mkfifo(tmp_path / ".claude/settings.json")
    assert auto_memory(tmp_path, {"HOME": str(tmp_path / "home")}).on
