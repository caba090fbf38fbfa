"""The comparison of memories behind the view of duplicates: it lets views pass, and a view waits for a short one."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lamina.web import duplicates_data, views_made
from lamina.web.duplicates_data import PairSearch
from lamina.web.site import Site

from .patient import PATIENCE, wait_for
from .serving import environ_of

BODY = "The API listens on port 8080 in all of our environments, also on the machines of developers.\n"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    directory = tmp_path / ".lamina/projects/-work-shop/memory"
    directory.mkdir(parents=True)
    for name in ("port", "service", "address"):
        text = f"---\nname: {name}\ndescription: Where the API listens\ntype: project\n---\n{BODY}"
        (directory / f"{name}.md").write_text(text, "utf-8")
    return Site(cwd=tmp_path, environ=environ_of(tmp_path))


def test_a_view_waits_for_the_comparison_of_a_few_memories_which_does_not_wait_for_the_view(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views_made, "HOLD", 2 * PATIENCE)
    monkeypatch.setattr(duplicates_data, "PATIENCE", PATIENCE)
    site.views.change(1)
    looked = PairSearch(site.memories).look(site.places.all())
    assert (looked.found, looked.comparing) == (3, 0)


def test_a_long_comparison_lets_views_pass_before_each_memory(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates_data, "FEW", 2)
    held, waits = threading.Event(), list[str]()

    def pause() -> None:
        waits.append(threading.current_thread().name)
        if len(waits) > 3:
            held.wait(PATIENCE)

    site.memories.pause = pause
    search = PairSearch(site.memories)
    assert search.look(site.places.all()).comparing == 3
    held.set()
    wait_for(search.state)
    assert search.look(site.places.all()).found == 3
    assert waits.count("lamina-duplicates") > 3 * 3
