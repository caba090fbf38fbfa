"""The directories of places of memories: they follow the settings, and a new one does not hold up the newest memories."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from lamina.web import memory_index, memory_places
from lamina.web.site import Site

from . import patient
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


def test_the_newest_memories_do_not_wait_for_a_project_that_has_just_appeared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_places, "PLACES_FRESH", -1.0)
    monkeypatch.setattr(memory_index, "LOOK_AFTER", 0.0)

    def write(project: str) -> None:
        directory = tmp_path / f".lamina/projects/-work-{project}/memory"
        directory.mkdir(parents=True)
        (directory / "port.md").write_text(f"---\nname: Port of {project}\ntype: project\n---\nIt is a port.\n", "utf-8")

    def newest() -> set[str] | None:
        found = site.memories.newest(5)
        return {card.header.name for card in found} if found is not None else None

    write("shop")
    site = Site(cwd=tmp_path, environ=environ_of(tmp_path))
    looked = threading.Event()
    site.memories.after_looks.append(looked.set)
    assert newest() is None, "nothing was looked at yet"
    assert site.memories.is_read(patient.PATIENCE)
    assert looked.wait(patient.PATIENCE), "what follows the first look would find the new project too"
    write("infra")
    assert newest() == {"Port of shop"}
    assert patient.wait_for(lambda: newest() == {"Port of shop", "Port of infra"})
    site.close()


def test_a_view_looks_again_at_new_files_but_not_for_a_new_directory_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_index, "LOOK_AFTER", patient.PATIENCE)
    directory = tmp_path / ".lamina/projects/-work-shop/memory"
    directory.mkdir(parents=True)
    file = directory / "port.md"
    text = "---\nname: Port\ndescription: It is {}.\ntype: project\n---\nIt is a port.\n"
    site = Site(cwd=tmp_path, environ=environ_of(tmp_path))
    place = next(one for one in site.places.all() if one.path == directory)

    def described() -> str:
        (header,) = site.memories.headers(place)
        return header.description

    file.write_text(text.format("80"), "utf-8")
    assert described() == "It is 80."
    file.write_text(text.format("81"), "utf-8")
    assert described() == "It is 81.", "a new file is looked at by every view"
    os.utime(file, (1_790_000_000, 1_790_000_000))
    assert described() == "It is 81."
    file.write_text(text.format("82"), "utf-8")
    assert described() == "It is 81.", "that is found in the background"
    site.count_again()
    assert described() == "It is 82.", "but a change on the page is shown at once"
    site.close()
