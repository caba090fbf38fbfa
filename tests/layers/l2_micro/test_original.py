"""An original is saved as it was."""

from __future__ import annotations

import json

import pytest

from lamina.core.blocks import tool_result
from lamina.core.reach import Reach
from lamina.core.record_lines import UNRECORDED_MARKER
from lamina.layers.l2_micro.registry import is_marker, marker, original

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


@pytest.mark.parametrize(
    ("content", "ending", "data"),
    [
        ("words\n", ".txt", b"words\n"),
        ("", ".txt", b""),
        ("grüß 世界", ".txt", "grüß 世界".encode()),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], ".txt", b"a\nb"),
    ],
)
def test_text_is_saved_as_text(content: str | list[dict[str, str]], ending: str, data: bytes) -> None:
    assert original(tool_result("t1", content)) == (ending, data)


def test_what_holds_an_image_is_saved_with_it() -> None:
    suffix, data = original(tool_result("t1", [{"type": "text", "text": "a"}, IMAGE]))
    assert suffix == ".json"
    assert json.loads(data) == [{"type": "text", "text": "a"}, IMAGE]


@pytest.mark.spec("M2")
def test_a_marker_carries_the_path_and_is_the_same_every_time() -> None:
    path = "/home/x/tool-results/t1.txt"
    assert marker("t1", path, Reach(read=True)) == marker("t1", path, Reach(read=True))
    assert path in marker("t1", path, Reach(read=True))


@pytest.mark.spec("M2", "U2")
@pytest.mark.parametrize("reach", [Reach(), Reach(expand=True), Reach(read=True), Reach(search=True), Reach(True, True, True)])
def test_a_marker_names_what_the_model_can_open_and_nothing_else(reach: Reach) -> None:
    made = marker("t1", "/home/x/tool-results/t1.txt", reach)
    assert ("/home/x" in made) == reach.files
    assert ("Expand with node=t1" in made) == (reach.expand and not reach.files)
    assert made != marker("t2", "/home/x/tool-results/t2.txt", reach)
    assert is_marker(made)
    assert is_marker(UNRECORDED_MARKER)
    assert not is_marker("<persisted-output> the first lines")
