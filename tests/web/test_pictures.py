"""Pictures in a transcript appear on a click, and only those of safe types are sent."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from lamina.core.blocks import read_block
from lamina.web import pictures
from lamina.web.pictures import pictures_of

from . import patient
from .made_home import ClaudeSession
from .serving import serving

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def image(data: bytes, type: str) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": type, "data": base64.b64encode(data).decode()}}


@pytest.mark.parametrize(
    ("data", "claimed", "type"),
    [
        (PNG, "image/png", "image/png"),
        (PNG, "text/html", "image/png"),
        (b"\xff\xd8\xff\xe0" + b"0" * 20, "image/jpeg", "image/jpeg"),
        (b"GIF89a" + b"0" * 20, "image/gif", "image/gif"),
        (b"RIFF0000WEBPVP8 " + b"0" * 20, "image/webp", "image/webp"),
        (b"RIFF0000WAVEfmt " + b"0" * 20, "image/webp", None),
        (SVG, "image/svg+xml", None),
        (SVG, "image/png", None),
        (b"<html><script>alert(1)</script>", "image/png", None),
        (b"", "image/png", None),
    ],
)
def test_the_bytes_of_a_picture_tell_its_type(data: bytes, claimed: str, type: str | None) -> None:
    (found,) = pictures_of(read_block(image(data, claimed)))
    assert (found.type, found.bytes()) == (type, data if type else None)


def test_a_picture_that_is_too_large_or_not_base64_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    (broken,) = pictures_of(
        read_block({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "é" * 40}})
    )
    (named,) = pictures_of(read_block({"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}}))
    (large,) = pictures_of(read_block(image(PNG, "image/png")))
    monkeypatch.setattr(pictures, "MOST_BYTES", len(PNG) - 1)
    assert [one.bytes() for one in (broken, named, large)] == [None, None, None]


@pytest.mark.spec("V6")
def test_a_picture_waits_for_a_click_and_comes_from_our_own_origin(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "projects" / "-p" / "00000000-0000-4000-8000-00000000000c.jsonl"
    made = ClaudeSession(path, "/p")
    made.user("Look")
    made.rows[-1]["message"]["content"] = [{"type": "text", "text": "Look"}, image(PNG, "image/png"), image(SVG, "image/svg+xml")]
    asked = made.rows[-1]["uuid"]
    made.call("Read", {"file_path": "/p/a.png"}, 300)
    made.rows[-1]["message"]["content"][0]["content"] = [image(SVG, "image/svg+xml"), image(PNG, "image/png")]
    read = made.rows[-1]["uuid"]
    made.answer({"type": "text", "text": "Seen."})
    made.write()
    base = f"/sessions/claude-code/{path.stem}"
    with serving(tmp_path) as served:

        def get(address: str, **more: Any) -> Any:
            return patient.get(served.base + address, cookies=served.cookies(), **more)

        turn = get(f"{base}/turns/1").text
        assert "<img" not in turn
        assert turn.count(">Show the picture (image/png, 70 B)</a>") == 2
        assert turn.count(f"A picture that the page does not show <bdi>(image/svg+xml, {len(SVG)} B)</bdi>") == 2
        assert f">{len(PNG) + len(SVG)} B</span>" in turn, "the size of a result without a text is that of its pictures"
        assert '<pre dir="auto"></pre>' not in turn
        for address in (f"{base}/pictures/{asked}/1/0", f"{base}/pictures/{read}/0/1"):
            assert f'data-load="{address}"' in turn
            shown = get(address, headers={"x-lamina-part": "1"}).text
            assert shown == f'<p><img src="{address}?bytes=1" alt="image/png, 70 B"></p>'
            sent = get(f"{address}?bytes=1")
            assert (sent.content, sent.headers["content-type"]) == (PNG, "image/png")
            assert sent.headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in sent.headers["content-security-policy"]
        for missing in (f"{asked}/2/0", f"{read}/0/0", f"{asked}/0/0", f"{asked}/1/1", f"{asked}/9/0", "nothing/0/0"):
            assert get(f"{base}/pictures/{missing}?bytes=1").status_code == 404
