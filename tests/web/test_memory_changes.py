"""What a change of a memory leaves behind: its author after an undo, removed secrets, conflicts, and files that are only read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from lamina.memory.store.contract import ChangeReason, MemoryVersion
from lamina.web.memory_history import find_writers

from .made_memories import MadeOnce, make_memories, make_proposals, open_memory
from .serving import Served, serving
from .test_memories import STAGING, address, data, get, place, post, raw, undo


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    return MadeOnce(tmp_path_factory.mktemp("home"), make_memories, make_proposals)


@pytest.fixture
def home(made: MadeOnce) -> Path:
    return made.put_back()


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with serving(home) as page:
        yield page


def form(served: Served, home: Path, file: str = STAGING) -> dict[str, str]:
    """The fields of the editor of a memory, as the page shows it now."""
    one = data(served, address(home, file))
    fields = {"place": place(home), "file": file, "digest": one["digest"], "type": one["type"] or ""}
    return fields | {"description": one["description"], "body": one["body"]}


def author(served: Served, file: str = STAGING) -> str:
    found: str = next(one["author"] for one in data(served, "/memories")["memories"] if one["file"] == file)
    return found


def test_an_undone_change_leaves_the_author_of_the_memory_as_it_was(served: Served, home: Path) -> None:
    edited = post(served, "/changes/memories/edit", **form(served, home) | {"body": "Mine."})
    assert author(served) == "user"
    undo(served, edited)
    assert author(served) == "extraction"
    shown = get(served, address(home)).text
    assert "edited on the page" not in shown.partition("<h3>History</h3>")[0]
    proposal = next(one for one in data(served, "/memories")["waiting"] if one["name"] == "Deploys to staging")
    fields = {"ids": proposal["token"], "type": "project", "description": "d", "body": "Accepted with changes."}
    accepted = post(served, "/changes/inbox/edit", **fields)
    assert author(served) == "user"
    undo(served, accepted)
    assert author(served) == "extraction"
    assert data(served, "/memories?by=extraction")["count"] == 2
    undo(served, post(served, "/changes/memories/remove", **form(served, home)))
    assert author(served) == "extraction"


def version(action: str, digest: str, who: str = "", file: str = "a.md") -> MemoryVersion:
    why = ChangeReason(who) if who else None  # type: ignore[arg-type]
    return MemoryVersion(f"{action}-{digest}", 0, "A", action, why, digest, file, memory="m")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("log", "written"),
    [
        ([("save", "1", "extraction"), ("save", "2", "user")], "save-2"),
        ([("save", "1", "extraction"), ("save", "2", "user"), ("restore", "1", "user")], "save-1"),
        ([("save", "1", "extraction"), ("save", "2", "dream"), ("undone", "1")], "save-1"),
        ([("save", "1", "extraction"), ("rename", "1", "user")], "save-1"),
        ([("save", "1", "extraction"), ("outside", "2"), ("save", "3", "user"), ("restore", "2", "user")], "outside-2"),
        ([("save", "1", "extraction"), ("outside", "2"), ("outside", "1")], "save-1"),
        ([("save", "1", "extraction"), ("remove", "", "user"), ("restore", "1", "user"), ("keep", "1")], "save-1"),
        ([("save", "2", "user"), ("restore", "1", "user"), ("keep", "1")], "restore-1"),
    ],
)
def test_the_author_of_a_memory_is_the_change_that_wrote_its_present_content(log: list[tuple[str, ...]], written: str) -> None:
    assert find_writers([version(*one) for one in reversed(log)])["a.md"].id == written


def directory(home: Path) -> Path:
    return home / ".lamina" / "projects" / place(home) / "memory"


def test_a_memory_removed_meanwhile_is_a_conflict_beside_a_file_that_cannot_be_read(served: Served, home: Path) -> None:
    (directory(home) / "binary.md").write_bytes(b"---\nname: Binary\n---\n\xff\xfe\x00")
    fields = form(served, home) | {"body": "My text."}
    with open_memory(home) as memory:
        memory.remove(STAGING)
    told = post(served, "/changes/memories/edit", **fields)
    assert (told.status_code, told.json()["message"]) == (409, "This memory was removed meanwhile, by the command line just now.")
    assert "My text." in told.json()["html"]


KEY = "AKIA" + "QZ3TESTKEY7WMN2B"
TOLD = "A secret was removed from the text (AWS access key)."


def test_each_way_to_save_a_memory_tells_which_secret_was_removed(served: Served, home: Path) -> None:
    secret = {"body": f"The key is {KEY} and it is in the vault."}
    edited = post(served, "/changes/memories/edit", **form(served, home) | secret)
    assert edited.json()["message"] == f"Saved “Deploys to staging”. {TOLD}"
    new = {"place": place(home), "name": "New one", "type": "project", "description": "d"}
    made = post(served, "/changes/memories/new", **new | secret)
    assert made.json()["message"] == f"Saved “New one”. {TOLD}"
    proposal = next(one for one in data(served, "/memories")["waiting"] if one["name"] == "Prefers table-driven tests")
    fields = {"ids": proposal["token"], "type": "feedback", "description": "d"}
    accepted = post(served, "/changes/inbox/edit", **fields | secret)
    assert accepted.json()["message"] == f"Accepted “Prefers table-driven tests”. {TOLD}"
    path = directory(home) / "new-one.md"
    path.write_text(path.read_text("utf-8").replace("[secret removed: AWS access key]", KEY), "utf-8")
    sides = {"left": "uses-pnpm-not-npm.md", "right": "new-one.md"}
    digests = " ".join(data(served, address(home, file))["digest"] for file in sides.values())
    merged = post(served, "/changes/memories/merge", place=place(home), **sides, digests=digests)
    assert merged.json()["message"] == f"Merged into “Uses pnpm, not npm”. {TOLD}"
    assert KEY not in raw(home) + raw(home, "new-one.md") + raw(home, "uses-pnpm-not-npm.md")
    chinese = post(served, "/changes/memories/edit?lang=zh", **form(served, home) | secret)
    assert "已从正文中去掉密钥（AWS" in chinese.json()["message"]


@pytest.mark.spec("V6")
def test_a_conflict_tells_who_changed_the_memory_and_how_long_ago(served: Served, home: Path) -> None:
    fields = form(served, home) | {"body": "My text."}

    def told() -> str:
        answer = post(served, "/changes/memories/edit", **fields)
        assert answer.status_code == 409
        assert answer.json()["message"] in answer.json()["html"]
        assert "My text." in answer.json()["html"]
        message: str = answer.json()["message"]
        return message

    with open_memory(home) as memory:
        memory.save("Deploys to staging", description="d", body="Theirs.")
    assert told() == "Changed by the command line just now. Nothing was lost."
    now = served.site.clock()
    served.site.clock = lambda: now + 130
    assert told() == "Changed by the command line 2 minutes ago. Nothing was lost."
    with open_memory(home) as memory:
        memory.save("Deploys to staging", description="d", body="By a dream.", why=ChangeReason("dream"))
    assert told().startswith("Changed by a dream ")
    post(served, "/changes/memories/edit", **form(served, home) | {"body": "In another tab."})
    assert told().startswith("Changed by you on the page ")
    path = directory(home) / STAGING
    path.write_text(raw(home).replace("another tab", "vim"), "utf-8")
    os.utime(path, (now - 3_600, now - 3_600))
    assert told() == "Changed by an editor 1 hour ago. Nothing was lost."


@pytest.mark.spec("V6")
def test_an_undo_that_comes_too_late_leads_to_the_history_of_the_memory(served: Served, home: Path) -> None:
    edited = post(served, "/changes/memories/edit", **form(served, home) | {"body": "Mine."})
    new = {"place": place(home), "name": "New one", "type": "project", "description": "d", "body": "b"}
    made = post(served, "/changes/memories/new", **new)
    proposal = next(one for one in data(served, "/memories")["waiting"] if one["name"] == "Prefers table-driven tests")
    accepted = post(served, "/changes/inbox/accept", ids=proposal["token"])
    for done, name in ((edited, "Deploys to staging"), (made, "New one"), (accepted, "Prefers table-driven tests")):
        with open_memory(home) as memory:
            memory.save(name, description="d", body="Theirs.")
            file = memory.get(name)
        assert file is not None
        told = undo(served, done)
        assert told.status_code == 409, told.text
        lost = f"Changed by the command line just now. Nothing was lost. The history of “{name}” has every version."
        assert (told.json()["message"], told.json()["location"]) == (lost, address(home, file.file))
        with open_memory(home) as memory:
            memory.remove(name)
        told = undo(served, done)
        if done is accepted:  # the memory is as before the approval
            assert (told.status_code, told.json()["message"]) == (200, "The proposal waits again.")
            continue
        assert "removed meanwhile, by the command line" in told.json()["message"]
        assert told.json()["location"] == f"/memories/trash?project={place(home)}"


@pytest.mark.spec("V6")
def test_my_version_of_a_memory_removed_meanwhile_keeps_what_the_form_does_not_show(served: Served, home: Path) -> None:
    path = directory(home) / STAGING
    path.write_text(raw(home).replace("type: project", "type: project\nteam_owner: ops", 1), "utf-8")
    before, fields = raw(home), form(served, home) | {"body": "My text.", "description": ""}
    with open_memory(home) as memory:
        memory.remove(STAGING)
    told = post(served, "/changes/memories/edit", **fields)
    kept = told.json()["html"].partition('action="/changes/memories/keep"')[2]
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', kept))
    done = post(served, "/changes/memories/keep", **fields | hidden)
    assert done.json()["message"] == "Saved “Deploys to staging”."
    for line in ("My text.", "team_owner: ops", *(line for line in before.splitlines() if "Makefile" in line)):
        assert line in raw(home), line
    assert post(served, "/changes/memories/keep", **fields | hidden).status_code == 409
    undo(served, done)
    assert not raw(home)


@pytest.mark.exhaustive
def test_a_file_that_is_only_read_says_why_and_offers_no_change_that_would_fail(served: Served, home: Path) -> None:
    head = "---\nname: Huge\ndescription: d\ntype: project\n---\n"
    (directory(home) / "huge.md").write_text(head + "A line of text.\n" * 340_000, "utf-8")
    (directory(home) / "binary.md").write_bytes(head.replace("Huge", "Binary").encode() + b"\xff\xfe")
    for file, why in (
        ("huge.md", "This file has 5.4 MB, so Lamina reads only its first 1.0 MB and does not change it."),
        ("binary.md", "This file is not UTF-8 text, so Lamina does not change it."),
    ):
        for view in ("", "?edit=1", "?whole=1"):
            shown = get(served, address(home, file) + view).text
            assert why in shown, (file, view)
            assert 'data-hotkey="e"' not in shown
            assert 'action="/changes/memories/' not in shown
        for change in ("edit", "remove"):
            fields = form(served, home, file)
            assert post(served, f"/changes/memories/{change}", **fields).status_code == 400
    assert "Show 1.0 MB of the other 5.4 MB" in get(served, address(home, "huge.md")).text
    (directory(home) / "larger.md").write_text(head + "A line of text.\n" * 66_000, "utf-8")
    assert ">Show the other 1.0 MB<" in get(served, address(home, "larger.md")).text
    assert "Show" not in get(served, address(home, "huge.md") + "?whole=1").text.partition('class="text"')[2].partition("<dl")[0]


def test_a_file_with_an_odd_name_is_changed_removed_and_restored(served: Served, home: Path) -> None:
    file = "odd # name?.md"
    (directory(home) / file).write_text("---\nname: Odd\ndescription: d\n---\nOdd.\n", "utf-8")
    before, url = raw(home, file), quote(file)
    fields = form(served, home, url) | {"file": file}
    edited = post(served, "/changes/memories/edit", **fields | {"body": "Changed."})
    assert undo(served, edited).json()["message"] == "Restored “Odd”."
    assert raw(home, file) == before
    removed = post(served, "/changes/memories/remove", **form(served, home, url) | {"file": file})
    assert not raw(home, file)
    assert undo(served, removed).json()["message"] == "Restored “Odd”."
    assert raw(home, file) == before
