"""The directories of places of memories: they follow the settings, and what is changed in them is mirrored to git."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.disk.git import run_git
from lamina.memory.store.contract import ChangeReason
from lamina.web import memory_places
from lamina.web.site import Site

from .serving import environ_of


def test_the_directories_of_a_place_follow_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_places, "PLACES_FRESH", -1.0)
    (tmp_path / ".lamina/projects/-work-shop/memory").mkdir(parents=True)
    site = Site(cwd=tmp_path, environ=environ_of(tmp_path))

    def teams() -> set[Path | None]:
        return {site.places.location(place).team for place in site.places.all() if place.own and place.agent is None}

    assert teams() == {None}
    assert site.home is not None
    (site.home / "settings.json").write_text('{"lamina": {"team": true}}', "utf-8")
    assert None not in teams()
    site.close()


def test_every_change_is_mirrored_to_git_when_the_page_has_stopped(tmp_path: Path) -> None:
    directory = tmp_path / ".lamina/projects/-work-shop/memory"
    directory.mkdir(parents=True)
    site = Site(cwd=tmp_path, environ=environ_of(tmp_path))
    place = next(one for one in site.places.all() if one.path == directory)
    names = [f"Port {number}" for number in range(3)]
    for name in names:
        with site.places.open(place) as memory:
            memory.save(
                name, type="project", description="A port.", body="It is a port.", why=ChangeReason("user", "on the page")
            )
    site.close()
    log = run_git("git", ("log", "--format=%s", "memory"), git_dir=directory / ".history/git", environ=os.environ, seconds=60)
    assert log is not None
    assert [line.split(":")[0] for line in reversed(log.decode().splitlines())] == [f"save {name}" for name in names]
