"""The directories of places of memories: they follow the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

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
