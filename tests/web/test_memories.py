"""Memories on the page: what is listed, each change with its undo, conflicts, and what a read-only page refuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from playwright.sync_api import expect

from lamina.core.reach import RUN_BY_MODEL
from lamina.disk.paths.project import slug
from lamina.memory.store.contract import ChangeReason
from lamina.web import memory_index, session_index
from lamina.web.memory_places import Place, told_apart

from . import patient
from .conftest import Watched
from .made_memories import MadeOnce, make_memories, open_memory, project_of
from .serving import Served, environ_of, serving

STAGING = "deploys-to-staging.md"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    return MadeOnce(tmp_path_factory.mktemp("home"), make_memories)


@pytest.fixture
def home(made: MadeOnce) -> Path:
    return made.put_back()


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with serving(home) as page:
        yield page


def get(served: Served, path: str) -> httpx2.Response:
    return patient.get(served.base + path, cookies=served.cookies())


def data(served: Served, path: str) -> Any:
    return get(served, f"{path}{'&' if '?' in path else '?'}format=json").json()


def post(served: Served, path: str, **fields: str) -> httpx2.Response:
    headers = {"X-Lamina-Secret": served.keys.secret}
    return patient.post(served.base + path, json=fields, headers=headers, cookies=served.cookies())


def undo(served: Served, answer: httpx2.Response) -> httpx2.Response:
    assert answer.status_code == 200, answer.text
    asked = answer.json()["undo"]
    return post(served, asked["url"], **asked["fields"])


def place(home: Path, name: str = "shop-api") -> str:
    return slug(project_of(home, name))


def address(home: Path, file: str = STAGING) -> str:
    return f"/memories/{quote(place(home), safe='')}/{file}"


def raw(home: Path, file: str = STAGING) -> str:
    path = home / ".lamina" / "projects" / place(home) / "memory" / file
    return path.read_text("utf-8") if path.exists() else ""


@pytest.mark.spec("V3")
def test_all_scopes_stand_in_one_list_with_author_evidence_and_why_a_search_found_them(served: Served, home: Path) -> None:
    listed = data(served, "/memories")
    assert listed["count"] == 8
    assert {one["origin"] for one in listed["memories"]} == {"lamina", "claude-code"}
    page = get(served, "/memories").text
    for words in ("Terraform state", "stale", "no evidence named", "Claude Code", "never recalled"):
        assert words in page, words
    assert data(served, f"/memories?project={place(home)}&type=feedback")["count"] == 1
    assert data(served, "/memories?by=extraction")["count"] == 2
    states = {state: data(served, f"/memories?evidence={state}")["count"] for state in ("fresh", "stale", "unverifiable", "none")}
    assert states == {"fresh": 1, "stale": 1, "unverifiable": 0, "none": 6}
    assert "<bdi>stale</bdi><span>1</span>" in page
    assert '<code class="mono">make deploy-staging</code>' in page, "code in a description is shown as code"
    found = data(served, "/memories?q=where+does+staging+run")
    assert found["memories"][0]["name"] == "Deploys to staging"
    shown = get(served, "/memories?q=where+does+staging+run").text
    assert "<mark>Staging</mark>" in shown
    assert "<bdi>staging</bdi></b> in the title" in shown
    assert "Lowered, because its evidence is stale." in shown
    assert "No memory matches" in get(served, "/memories?q=zzzz").text


def test_stale_evidence_shows_what_changed_since_the_version_that_the_memory_relied_on(served: Served, home: Path) -> None:
    url, shop = f"{address(home)}/changed-evidence", project_of(home)
    shown = get(served, url).text
    assert "No commit holds the version" in shown
    assert "eu-west-1" in shown
    new = (shop / "Makefile").read_text("utf-8")
    git = ["git", "-C", str(shop), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for text in (new.replace(" --region eu-west-1", ""), new):
        (shop / "Makefile").write_text(text, "utf-8")
        for words in (["init", "-q"], ["add", "Makefile"], ["commit", "-qm", "x"]):
            subprocess.run([*git, *words], check=True, capture_output=True)
    shown = get(served, url).text
    assert "since commit" in shown
    assert '<div class="d"><bdi>\t./deploy staging</bdi></div>' in shown
    assert "<mark> --region eu-west-1</mark>" in shown
    (shop / "Makefile").unlink()
    assert '<div class="d">' in get(served, url).text
    assert "Show what changed" in get(served, address(home)).text
    assert get(served, f"{address(home, 'none.md')}/changed-evidence").status_code == 404


def test_a_memory_tells_how_often_sessions_recalled_it_and_when_last(home: Path) -> None:
    path = home / ".lamina" / "projects" / place(home) / "memory" / STAGING
    row = {"type": "attachment", "uuid": "t1", "parentUuid": None, "sessionId": "s", "timestamp": "2026-11-09T10:00:00.000Z"}
    row["attachment"] = {"type": "relevant_memories", "memories": [{"path": str(path), "content": "x"}]}  # type: ignore[assignment]
    words = {"type": "user", "uuid": "u", "timestamp": "2026-11-09T10:00:00.000Z", "message": {"role": "user", "content": "hi"}}
    session = home / ".claude" / "projects" / place(home) / "s.jsonl"
    session.write_text("".join(json.dumps(one) + "\n" for one in (words, row, row)), "utf-8")
    with serving(home) as served:
        assert patient.wait_for(lambda: data(served, address(home))["recalled"]) == 2
        assert "recalled 2 times, last <time" in get(served, address(home)).text
        assert all(one["file"] != STAGING for one in data(served, "/memories?use=never")["memories"])


def test_a_memory_written_in_place_is_listed_a_moment_after_a_view(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_index, "LOOK_AGAIN", 0.0)
    monkeypatch.setattr(memory_index, "LOOK_AFTER", 0.0)
    directory = home / ".lamina/projects" / slug(project_of(home)) / "memory"
    for path in (*directory.glob("*.md"), directory):
        os.utime(path, (1_794_000_000, 1_794_000_000))  # settled: nothing was written just now
    with serving(home) as served:
        files = [data(served, "/memories") for _ in range(2)][-1]["memories"]
        before = served.site.look("memories:")
        assert not any("in place" in one["description"] for one in files)
        path = directory / STAGING
        path.write_text(path.read_text("utf-8").replace("description: ", "description: in place, "), "utf-8")
        os.utime(directory, (1_794_000_000, 1_794_000_000))

        def is_listed() -> bool:
            return any("in place" in one["description"] for one in data(served, "/memories")["memories"])

        patient.wait_for(is_listed)
        assert served.site.look("memories:") != before, "the page is told, and shows itself again"
        (directory / "new.md").write_text("---\nname: New\ndescription: made just now\n---\nNew.\n", "utf-8")
        assert any(one["name"] == "New" for one in data(served, "/memories")["memories"]), "a new file is listed at once"


@pytest.mark.spec("V3", "V6")
def test_an_edit_is_journalled_and_its_undo_restores_the_file_byte_for_byte(served: Served, home: Path) -> None:
    before, one = raw(home), data(served, address(home))
    fields = {"place": place(home), "file": STAGING, "digest": one["digest"], "type": "project"}
    done = post(served, "/changes/memories/edit", **fields, description="Staging is in eu-west-1", body="Staging moved.\r\n")
    assert done.json()["message"] == "Saved “Deploys to staging”."
    assert "Staging moved.\n" in raw(home)
    history = data(served, address(home))["history"]
    assert (history[0]["who"], history[0]["why"]) == ("user", "edited on the page")
    assert "evidence" in raw(home), "what the form does not show stays"
    assert undo(served, done).json()["message"] == "Restored “Deploys to staging”."
    assert raw(home) == before


@pytest.mark.spec("V3", "V6")
def test_a_removal_goes_to_the_trash_and_a_new_memory_away_again(served: Served, home: Path) -> None:
    before, one = raw(home), data(served, address(home))
    gone = post(served, "/changes/memories/remove", place=place(home), file=STAGING, digest=one["digest"])
    assert not raw(home)
    assert "Restore it from the trash" in get(served, address(home)).text
    assert [row["name"] for row in data(served, "/memories/trash")["trash"]] == ["Deploys to staging"]
    undo(served, gone)
    assert raw(home) == before
    made = post(served, "/changes/memories/new", place=place(home), name="New one", type="user", description="d", body="b")
    assert raw(home, "new-one.md")
    twice = post(served, "/changes/memories/new", place=place(home), name="New one", type="user", description="d", body="other")
    assert (twice.status_code, "is already a memory" in twice.json()["message"]) == (400, True)
    undo(served, made)
    assert not raw(home, "new-one.md")


def test_stale_evidence_is_checked_by_the_user_and_an_older_version_comes_back(served: Served, home: Path) -> None:
    one = data(served, address(home))
    assert one["evidence"]["state"] == "stale"
    done = post(served, "/changes/memories/check", place=place(home), file=STAGING, digest=one["digest"])
    now = data(served, address(home))
    assert now["evidence"]["state"] == "fresh"
    undo(served, done)
    assert data(served, address(home))["evidence"]["state"] == "stale"
    fields = {"place": place(home), "file": STAGING, "version": now["history"][0]["id"]}
    wrong = post(served, "/changes/memories/restore", **fields, digest="0" * 64)
    assert wrong.status_code == 409
    again = post(served, "/changes/memories/restore", **fields, digest=data(served, address(home))["digest"])
    assert data(served, address(home))["evidence"]["state"] == "fresh"
    undo(served, again)
    assert data(served, address(home))["evidence"]["state"] == "stale"


def test_a_home_that_vanishes_is_not_made_anew_by_a_change(served: Served, home: Path) -> None:
    fields = {"place": place(home), "file": STAGING, "digest": data(served, address(home))["digest"], "type": "project"}
    (home / ".lamina").rename(home / "elsewhere")
    told = post(served, "/changes/memories/edit", **fields, description="d", body="My text.")
    assert (told.status_code, "no longer exists, so nothing was changed" in told.json()["message"]) == (400, True)
    assert get(served, address(home)).status_code == 404
    assert get(served, "/memories").status_code == 200
    assert not (home / ".lamina" / "projects").exists()
    shutil.copytree(home / "elsewhere", home / ".lamina", dirs_exist_ok=True)  # a list of sessions may be there again
    assert post(served, "/changes/memories/edit", **fields, description="d", body="My text.").status_code == 200


@pytest.mark.spec("V6")
def test_the_second_of_two_tabs_is_told_and_both_versions_are_shown(served: Served, home: Path) -> None:
    fields = {"place": place(home), "file": STAGING, "digest": data(served, address(home))["digest"], "type": "project"}
    post(served, "/changes/memories/edit", **fields, description="first", body="The first tab.")
    second = post(served, "/changes/memories/edit", **fields, description="second", body="The second tab.")
    assert second.status_code == 409
    for version in ("The first tab.", "The second tab."):
        assert version in second.json()["html"]
    assert "The first tab." in raw(home)
    for change in ("remove", "check"):
        assert post(served, f"/changes/memories/{change}", **fields).status_code == 409
    assert "The first tab." in raw(home)


@pytest.mark.spec("V6")
def test_a_memory_renamed_or_removed_meanwhile_is_followed_and_no_text_is_lost(served: Served, home: Path) -> None:
    fields = {"place": place(home), "file": STAGING, "digest": data(served, address(home))["digest"], "type": "project"}
    with open_memory(home) as memory:
        store = memory.store("private")
        text = raw(home).replace("name: Deploys to staging", "name: Staging deploys")
        store.put(STAGING, text, expected=raw(home).encode(), why=ChangeReason("user"))
    told = post(served, "/changes/memories/edit", **fields, description="d", body="My text.")
    assert told.status_code == 409
    assert "renamed to “Staging deploys”" in told.json()["message"]
    assert "My text." in told.json()["html"]
    moved = get(served, address(home))
    assert (moved.status_code, moved.headers["location"].partition("?")[0]) == (303, address(home, "staging-deploys.md"))
    with open_memory(home) as memory:
        memory.remove("staging-deploys.md")
    fields["file"] = "staging-deploys.md"
    told = post(served, "/changes/memories/edit", **fields, description="d", body="My text.")
    assert (told.status_code, "removed meanwhile" in told.json()["message"]) == (409, True)
    assert "My text." in told.json()["html"]
    assert 'value="Staging deploys"' in told.json()["html"]


@pytest.mark.exhaustive
@pytest.mark.spec("V5")
def test_a_memory_removed_and_restored_on_the_command_line_is_followed(served: Served, home: Path, watched: Watched) -> None:
    page = watched.page()
    page.goto(served.link.replace("/?", f"{address(home)}?"))
    expect(page.locator("#memory-title")).to_have_text("Deploys to staging")
    with open_memory(home) as memory:
        memory.remove(STAGING)
    expect(page.locator("h1")).to_have_text("In the trash")
    with open_memory(home) as memory:
        memory.restore(STAGING)
    expect(page.locator("#memory-title")).to_have_text("Deploys to staging")
    watched.expect("404")


@pytest.mark.spec("V5")
def test_a_view_of_a_memory_or_dream_that_is_gone_follows_changes(served: Served, home: Path) -> None:
    for path, watch in ((address(home, "none.md"), "memories:"), (f"/dreams/{place(home)}/none", "dreams: memories:")):
        gone = get(served, path)
        assert (gone.status_code, f'data-watch="{watch}"' in gone.text) == (404, True), path


@pytest.mark.spec("V6")
@pytest.mark.parametrize("now", ["moved.md", f"old/{STAGING}"])
def test_a_memory_whose_file_was_moved_by_hand_is_found_by_its_content(served: Served, home: Path, now: str) -> None:
    one = data(served, address(home))
    moved = Path(one["path"]).parent / now
    moved.parent.mkdir(exist_ok=True)
    Path(one["path"]).rename(moved)
    shown = get(served, f"{address(home)}?whole=1")
    assert (shown.status_code, shown.headers.get("location")) == (303, f"{address(home, now)}?whole=1")
    fields = {"place": place(home), "file": STAGING, "digest": one["digest"], "type": "project", "description": "d"}
    told = post(served, "/changes/memories/edit", **fields, body="My text.")
    assert told.status_code == 409
    assert told.json()["message"] == f"The file of this memory was moved to “{now}” meanwhile."
    assert address(home, now) in told.json()["html"]
    assert "My text." in told.json()["html"]
    moved.write_text(f"{moved.read_text('utf-8')}Another line.\n", "utf-8")
    assert get(served, address(home)).status_code == 404, "another content may be another memory"


@pytest.mark.exhaustive
@pytest.mark.spec("V6")
def test_memories_of_other_agents_and_a_read_only_page_change_nothing(home: Path) -> None:
    foreign = f"claude-code.{place(home)}"
    with serving(home) as page:
        one = data(page, f"/memories/{foreign}/testing.md")
        assert one["body"].strip() == "Run make test."
        assert "Lamina only reads it" in get(page, f"/memories/{foreign}/testing.md").text
        for change in ("edit", "remove", "restore", "new", "check"):
            told = post(page, f"/changes/memories/{change}", place=foreign, file="testing.md", digest=one["digest"], name="x")
            assert (told.status_code, "another agent keeps" in told.json()["message"]) == (400, True), change
    before = sorted((path, path.stat().st_mtime_ns) for path in home.rglob("*"))
    with serving(home, read_only=True) as page:
        digest = data(page, address(home))["digest"]
        for path in ("/memories", "/memories?q=staging", "/memories/trash", "/memories/new", address(home)):
            assert get(page, path).status_code == 200
            assert "data-change" not in get(page, path).text
        assert post(page, "/changes/memories/remove", place=place(home), file=STAGING, digest=digest).status_code == 403
    assert sorted((path, path.stat().st_mtime_ns) for path in home.rglob("*")) == before


@pytest.mark.spec("V6")
def test_a_page_that_a_model_started_changes_nothing(home: Path) -> None:
    with serving(home, environ={**environ_of(home), RUN_BY_MODEL: "1"}) as page:
        told = post(page, "/changes/memories/remove", place=place(home), file=STAGING, digest=data(page, address(home))["digest"])
    assert (told.status_code, "a model started this page" in told.json()["message"]) == (403, True)
    assert raw(home)


@pytest.mark.spec("V6")
def test_a_hostile_memory_is_shown_as_text(served: Served, home: Path) -> None:
    directory = home / ".lamina" / "projects" / place(home) / "memory"
    nasty = "<script>alert(1)</script> \u202e reversed"
    (directory / "nasty.md").write_text(
        f"---\nname: {nasty}\ndescription: {nasty}\ntype: project\n---\n\n**{nasty}** `{nasty}`\n"
    )
    (directory / "long.md").write_text("---\nname: Long\ndescription: one line\ntype: project\n---\n\n" + "x" * 10_000_000)
    page = get(served, "/memories/" + place(home) + "/nasty.md").text
    assert "<script>alert" not in page
    assert "<bdi><b>&lt;script&gt;" in page
    long = get(served, "/memories/" + place(home) + "/long.md")
    assert len(long.text) < 100_000
    assert "Show 1.0 MB of the other 10.0 MB" in long.text


def test_the_keyboard_alone_searches_opens_edits_and_undoes(served: Served, home: Path, watched: Watched) -> None:
    page = watched.page()
    page.goto(served.link.replace("/?", "/memories?"))
    page.keyboard.press("j")
    expect(page.locator(".card").first).to_be_focused()
    page.focus("#memory-search input[type=search]")
    page.keyboard.type("staging run")
    page.wait_for_url("**q=staging+run*")
    expect(page.locator(".card")).to_have_count(2)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("#memory-title")
    page.keyboard.press("e")
    expect(page.locator("form.editor input[name=description]")).to_be_focused()
    expect(page.locator("form.editor input[name=description]")).to_be_in_viewport()
    page.fill("textarea[name=body]", "Staging moved to eu-west-1.")
    page.focus("form.editor button")
    page.keyboard.press("Enter")
    page.wait_for_selector("#undo")
    assert "Staging moved to eu-west-1." in raw(home)
    page.wait_for_selector(".hist .diff")
    page.keyboard.press("u")
    expect(page.locator("#status")).to_contain_text("Restored")
    assert "us-east-1" in raw(home)
    page.wait_for_selector("#remove")
    page.focus("#remove")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("Moved")
    assert not raw(home)
    page.keyboard.press("u")
    page.wait_for_selector("#memory-title")
    assert "us-east-1" in raw(home)


@pytest.mark.exhaustive
def test_the_page_of_a_second_tab_shows_both_versions_and_keeps_mine(served: Served, home: Path, watched: Watched) -> None:
    page = watched.page()
    page.goto(served.link.replace("/?", f"{address(home)}?edit=1&"))
    page.fill("textarea[name=body]", "My version.")
    with open_memory(home) as memory:
        memory.save("Deploys to staging", type="project", description="theirs", body="Their version.")
    page.click("form.editor button")
    page.wait_for_selector(".both .version")
    assert "Their version." in (page.text_content(".both .version") or "")
    watched.expect("409")
    page.click(".both form button")
    page.wait_for_selector("#undo")
    assert "My version." in raw(home)
    page.wait_for_selector("#remove")
    with open_memory(home) as memory:
        memory.save("Deploys to staging", type="project", description="theirs", body="Their second version.")
    expect(page.locator(".text")).to_contain_text("Their second version.")


def test_projects_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    projects = [Path("/work/a/api"), Path("/work/b/api"), Path("/old/b/api"), Path("/work/web")]
    places = [Place(str(at), path.name, tmp_path, project=path) for at, path in enumerate(projects)]
    others = [Place("c", "api", tmp_path, "claude-code", projects[0]), Place("x", "-gone", tmp_path)]
    assert [one.name for one in told_apart([*places, *others])] == [
        "work/a/api",
        "work/b/api",
        "old/b/api",
        "web",
        "api",
        "-gone",
    ]
    assert [one.name for one in told_apart([*places[:2], places[0]])] == ["a/api", "b/api", "a/api"]


def test_an_empty_list_of_memories_leads_to_the_first_one(tmp_path: Path) -> None:
    for read_only in (False, True):
        with serving(tmp_path, read_only=read_only) as page:
            shown = get(page, "/memories").text
            assert "Nothing remembered yet." in shown
            assert ('href="/memories/new">' in shown.partition("Nothing remembered yet.")[2]) is not read_only


@pytest.mark.spec("V3")
@pytest.mark.parametrize("asked", ["q=staging", "q=staging&type=project", "q=staging&project={project}", "q=zzz"])
def test_a_search_while_somebody_types_finds_what_the_whole_page_finds(
    served: Served, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_index, "FRESH", 1e9)  # the sessions that match too are counted in both
    served.site.index.current(wait=patient.PATIENCE)
    place = next(one.id for one in served.site.places.all() if one.own)
    address = f"{served.base}/memories?{asked.format(project=place)}"
    whole = patient.get(address, cookies=served.cookies()).text
    part = patient.get(address, cookies=served.cookies(), headers={"X-Lamina-Part": "1"}).text
    assert 'class="side"' in whole
    assert 'class="side"' not in part
    begin = '<div id="memory-found">'
    found = part[part.index(begin) : part.rindex("</div>")]
    assert found in whole
