"""Forgetting covers agent memories in every scope, with their journals and pending changes (A5, B11)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.core.settings import Settings
from lamina.maintenance.forget.forget import forget
from lamina.maintenance.forget.subject import Subject
from lamina.maintenance.kept_files import kept_files
from lamina.memory.memory import open_agent_memory
from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.scopes import AgentScope, locate_agent_memory


@pytest.mark.spec("B11", "A5")
@pytest.mark.parametrize("where", ["user", "project", "local", "stand-in"])
def test_a_name_leaves_an_agents_memory_and_its_journal(tmp_path: Path, where: str) -> None:
    home, tree = tmp_path / "home" / ".lamina", tmp_path / "tree"
    home.mkdir(parents=True)
    tree.mkdir()
    remote = {"remote": True, "remote_memory_directory": str(tmp_path / "kept")} if where == "stand-in" else {}
    settings = Settings(**remote)
    kind: AgentScope = "local" if where == "stand-in" else where  # type: ignore[assignment]
    place = locate_agent_memory("tester", kind, cwd=tree, home=home, settings=settings, user_home=home.parent)
    with open_agent_memory(place, settings=settings, cwd=tree) as memory:
        memory.save("people", body="Anna Lee wants short tests.\n\nBob does not.", type="feedback", why=ChangeReason("agent"))
        memory.save(
            "people", body="Anna Lee wants very short tests.\n\nBob does not.", type="feedback", why=ChangeReason("agent")
        )
    forget(kept_files(home, tree, settings, person=home.parent, everywhere=False), Subject("Anna Lee"), do=True)
    left = "".join(path.read_text(errors="replace") for path in place.path.rglob("*") if path.is_file())
    assert "Anna" not in left
    assert "Bob does not." in left
