"""The files that the search over everything looks in: listed ahead, and again when one has changed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lamina.web import memory_index, memory_places, session_index
from lamina.web.search_view import SearchedFiles
from lamina.web.site import Site

from . import patient
from .made_home import make_home, window_session
from .made_memories import make_memories
from .patient import PATIENCE
from .serving import Served, environ_of, serving


def write_memory(root: Path, project: str, name: str) -> None:
    directory = root / ".lamina/projects" / project / "memory"
    directory.mkdir(parents=True, exist_ok=True)
    head = f"---\nname: {name}\ndescription: The {name} is blue.\ntype: project\n---\n"
    (directory / f"{name}.md").write_text(f"{head}The {name} is blue.\n", "utf-8")


def names(site: Site, files: SearchedFiles) -> set[str]:
    listed = site.index.use(lambda catalogue: files.listed(catalogue, site.settings, []))
    return {Path(one.path).stem for one in listed.values()}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    write_memory(tmp_path, "-work-shop", "lamp")
    return Site(cwd=tmp_path, environ=environ_of(tmp_path))


def test_a_memory_or_a_session_that_was_written_since_is_listed(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_index, "FRESH", -1.0)
    monkeypatch.setattr(memory_places, "PLACES_FRESH", -1.0)
    files = SearchedFiles(site)
    site.index.current(wait=PATIENCE)
    files.prepare()
    assert names(site, files) == {"lamp"}
    write_memory(tmp_path, "-work-shop", "door")
    assert names(site, files) == {"lamp", "door"}
    write_memory(tmp_path, "-work-other", "roof")
    project = tmp_path / ".claude/projects/-work-shop"
    window_session(project / "one.jsonl", "/work/shop").write()
    site.index.current(wait=PATIENCE)
    assert names(site, files) == {"lamp", "door", "roof", "one"}
    site.close()


def test_a_look_in_the_background_prepares_what_comes_next_although_one_part_fails(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError("the disk is gone")

    done = threading.Event()
    monkeypatch.setattr(memory_index, "LOOK_AFTER", 0.0)
    site.memories.after_looks += [fail, done.set]
    site.memories.look_later()
    assert done.wait(PATIENCE)
    found, total = site.memories.search("blue lamp", site.places.all(), 10)
    assert ([one.card.header.name for one in found], total) == (["lamp"], 1)
    site.close()


def test_a_search_of_memories_without_a_match_tells_how_many_sessions_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_index, "FRESH", 1e9)  # while they are listed again, they are not counted
    make_home(tmp_path, others=3)
    make_memories(tmp_path)

    def told(served: Served, words: str) -> str:
        shown = patient.get(f"{served.base}/memories?q={words}", cookies=served.cookies()).text
        return shown.partition('class="empty"><p>')[2].partition("</p>")[0]

    with serving(tmp_path) as served:
        patient.wait_for(lambda: "do." in told(served, "rounded"))
        assert told(served, "rounded+zzz").endswith('<a href="/search?q=rounded+zzz">4 sessions do.</a>')
        assert told(served, "zzz") == "No memory matches “zzz”. "
        assert told(served, "*").startswith("No memory matches")
    with serving(tmp_path, read_only=True) as served:
        assert "Search the sessions, too." in told(served, "rounded")
