"""Forgetting a subject on the page: it lists first, wants the word typed, and leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.draft import Draft

from .conftest import Watched
from .made_memories import make_memories, open_memory
from .serving import serving
from .test_memories import data, get, place, post, raw

# Each drives a browser; the frame, a session, memories and the inbox are in the README's run.
pytestmark = pytest.mark.exhaustive

MANAGER = "package-manager.md"


@pytest.mark.spec("V3", "V6")
def test_forgetting_lists_the_files_and_wants_the_word_typed_again(tmp_path: Path, watched: Watched) -> None:
    make_memories(tmp_path)
    with open_memory(tmp_path) as memory:
        draft = Draft("Lock", "project", "About the lockfile", "Keep the lockfile.\n")
        memory.store("private").inbox.propose_save(draft, why=ChangeReason("agent"))
    with serving(tmp_path) as served:
        refused = post(served, "/changes/inbox/refuse", ids=data(served, "/memories")["waiting"][0]["token"])
        assert refused.status_code == 200, "a decided proposal is kept, and forgotten like the rest"
        here = f"/memories/forget?project={place(tmp_path)}&subject=lockfile"
        assert any(MANAGER in one["path"] for one in data(served, here)["removed"])
        assert "Nothing names this subject." in get(served, "/memories/forget?subject=zzqqxx").text
        assert "must have 2 to 200 letters" in get(served, "/memories/forget?subject=x").text
        assert get(served, "/memories/forget?subject=lockfile&project=none").status_code == 200
        fields = {"subject": "lockfile", "project": place(tmp_path), "typed": "lockfile"}
        assert post(served, "/changes/memories/forget", **{**fields, "typed": "lock"}, digest="x").status_code == 400
        assert post(served, "/changes/memories/forget", **fields, digest="x").status_code == 400
        assert "lockfile" in raw(tmp_path, MANAGER)
        page = watched.page()
        page.goto(served.link.replace("/?", f"{here}&"))
        page.focus("#typed")
        page.keyboard.type("lockfile")
        page.keyboard.press("Enter")
        expect(page.locator("#status")).to_contain_text("Forgotten")
        expect(page.locator("#undo")).to_have_count(0)
        assert "Nothing names this subject." in get(served, here).text
    own = (tmp_path / ".lamina").rglob("*")
    assert [path for path in own if path.is_file() and b"lockfile" in path.read_bytes()] == []
    with serving(tmp_path, read_only=True) as served:
        assert get(served, "/memories/forget").status_code == 403
        assert post(served, "/changes/memories/forget", **fields).status_code == 403
