"""Make the pictures of docs/ui.md in docs/images/ui: each view in light and dark, 1,400 and 360 pixels wide, and two with tokens
instead of dollars.

    python scripts/generate_ui_pictures.py [VIEW ...]

Needs the extras `test` and `web`, a browser (chromium, or LAMINA_TEST_BROWSER) and a font with Chinese characters (fonts-noto-cjk). The
sessions and memories are those of the tests, with words of our own. Colours are reduced to a palette, so that a picture has some ten
kilobytes.
"""

from __future__ import annotations

import os
import struct
import sys
import tempfile
import time
import zlib
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from generated_page import ROOT

sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "src"))

from playwright.sync_api import Browser, Page, sync_playwright
from tests.web.conftest import ARGUMENTS, find_browser
from tests.web.made_home import ASKED, MODEL, WINDOW_SESSION, make_home, small_session, window_session
from tests.web.made_memories import make_dream, make_memories, make_proposals, project_of
from tests.web.serving import Served, serving

OUT = ROOT / "docs" / "images" / "ui"
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SIZES = {1_400: 900, 360: 760}
# Colours of a picture, and the pixels that make a colour an area of its own rather than the edge of a letter.
COLOURS = 56
GROUNDS = 10
LEAST_AREA = 16
SESSION = f"/sessions/claude-code/{WINDOW_SESSION}"
# Lines, models and titles of sessions on the days before today, so that the overview has more than one.
EARLIER = (
    (120, "claude-opus-4-5", "Move staging to another region"),
    (220, MODEL, "Split the order service"),
    (90, "claude-haiku-4-5", "Rename the rounding helper"),
    (160, "claude-opus-4-5", "Plan the migration of the tax table"),
    (200, MODEL, "Find the slow query on the orders page"),
)
VIEWS = {
    "overview": "/",
    "sessions": "/sessions",
    "session": f"{SESSION}?r=53",
    "request": f"{SESSION}/requests/53?against=52",
    "memories": "/memories",
    "dreams": "/dreams",
    "search": "/search?q=staging",
    "replay": "/replay",
    "settings": "/settings",
}
# Views that look different for a user who pays a subscription.
TOKENS = {"overview-tokens": "/", "session-tokens": f"{SESSION}?r=53"}


def main(wanted: list[str]) -> None:
    path = find_browser()
    if path is None:
        sys.exit("No browser found. Install chromium, or set LAMINA_TEST_BROWSER to one.")
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="lamina-") as directory:
        root = Path(directory) / "home"
        _fill(root)
        with serving(root) as served, sync_playwright() as playwright:
            replayed = _replayed(served)
            browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
            for theme in THEMES:
                for width, height in SIZES.items():
                    _take(browser, served, {**VIEWS, "replay": replayed}, wanted, theme, width, height)
            (root / ".lamina" / "settings.json").write_text('{"lamina": {"billing": "subscription"}}', "utf-8")
            _take(browser, served, TOKENS, wanted, "light", 1_400, SIZES[1_400])
            browser.close()


def _fill(root: Path) -> None:
    now = datetime.now(UTC)
    make_home(root, now=now - timedelta(hours=1))
    make_memories(root)
    make_dream(root)
    make_proposals(root)
    for days, (lines, model, title) in enumerate(EARLIER, 1):
        path = root / ".claude" / "projects" / "-work-earlier" / f"{days:08x}-0000-4000-8000-00000000000c.jsonl"
        made = window_session(path, str(project_of(root, "infra")), start=now - timedelta(days=days, hours=5))
        del made.rows[lines:]
        made.rows[0] |= {"aiTitle": title}
        path.write_text(made.write().read_text("utf-8").replace(MODEL, model), "utf-8")
        os.utime(path, (at := (now - timedelta(days=days)).timestamp(), at))
    running = root / ".claude" / "projects" / "-run" / "00000000-0000-4000-8000-00000000000b.jsonl"
    small_session(running, str(project_of(root)), ASKED[6], now, 3).write(now + timedelta(minutes=10))


def _replayed(served: Served) -> str:
    """Play some sessions, so that the views have something to show, and return the address of the replay."""
    while served.site.sessions().of or not served.site.sessions().top:
        time.sleep(0.1)
    files = [one.path for one in sorted(served.site.sessions().top, key=lambda one: -(one.cost_usd or 0))]
    job = served.site.replays.start(files[:3], ["classic", "thrifty", "lean"])
    saving = served.site.replays.start_saving(files, days=7)
    while job.running or saving.running:
        time.sleep(0.1)
    return f"/replay/{job.id}"


def _take(
    browser: Browser,
    served: Served,
    views: dict[str, str],
    wanted: list[str],
    theme: Literal["light", "dark"],
    width: int,
    height: int,
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=theme, locale="en-GB", timezone_id="UTC"
    )
    page = context.new_page()
    page.goto(served.link)
    for name, address in views.items():
        if wanted and name not in wanted:
            continue
        page.goto(served.base + address)
        if name == "dreams" and (found := page.locator("main a[href^='/dreams/']")).count():
            found.first.click()
        _settle(page)
        target = OUT / f"{name}-{width}-{theme}.png"
        target.write_bytes(smaller(page.screenshot()))
        print(f"{target.relative_to(ROOT)}: {target.stat().st_size:,} bytes")
    context.close()


def _settle(page: Page) -> None:
    page.wait_for_load_state("load")
    page.locator("#causes [role=status]").wait_for(state="detached")  # the overview reads the causes in the background
    page.wait_for_timeout(900)


def smaller(png: bytes) -> bytes:
    """Return a picture of the browser with the colours of a small palette; every other colour becomes the nearest of them."""
    width, height, pixels = _decoded(png)
    whole = [pixels[at : at + 3] for at in range(0, len(pixels), 3)]
    counted = Counter(whole)
    kept = _palette(counted)
    colours = {colour: at for at, colour in enumerate(kept)}
    for colour in counted.keys() - colours.keys():
        red, green, blue = colour
        near = min(kept, key=lambda one: (one[0] - red) ** 2 + (one[1] - green) ** 2 + (one[2] - blue) ** 2)
        colours[colour] = colours[near]
    indices = bytes(colours[colour] for colour in whole)
    rows = b"".join(b"\0" + indices[at : at + width] for at in range(0, len(indices), width))
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    packer = zlib.compressobj(9, zlib.DEFLATED, 15, 9)
    packed = packer.compress(rows) + packer.flush()
    parts = ((b"IHDR", head), (b"PLTE", b"".join(kept)), (b"IDAT", packed), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in parts)


def _palette(counted: Counter[bytes]) -> list[bytes]:
    """Return the grounds, then the most frequent colour of each hue, so that a small area keeps its own, then the most frequent."""
    kept: dict[bytes, None] = dict.fromkeys(colour for colour, _ in counted.most_common(GROUNDS))
    seen: set[tuple[int, ...]] = set()
    for colour, count in counted.most_common():
        hue = tuple(part >> 5 for part in colour)
        if count >= LEAST_AREA and hue not in seen:
            seen.add(hue)
            kept[colour] = None
    for colour, _ in counted.most_common(COLOURS):
        kept[colour] = None
    return list(kept)[:COLOURS]


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _decoded(png: bytes) -> tuple[int, int, bytes]:
    """Return width, height and the RGB pixels of a PNG with eight bits a channel, as the browser writes it."""
    at, data, width, height, channels = 8, b"", 0, 0, 3
    while at < len(png):
        (length,), name = struct.unpack_from(">I", png, at), png[at + 4 : at + 8]
        if name == b"IHDR":
            width, height, _, kind = struct.unpack_from(">IIBB", png, at + 8)
            channels = 4 if kind == 6 else 3
        elif name == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += length + 12
    raw, stride, made = zlib.decompress(data), width * channels, bytearray()
    before = bytearray(stride)
    for row in range(height):
        start = row * (stride + 1)
        before = _unfiltered(raw[start], bytearray(raw[start + 1 : start + 1 + stride]), before, channels)
        if channels == 4:
            for channel_row in range(0, stride, 4):
                made += before[channel_row : channel_row + 3]
        else:
            made += before
    return width, height, bytes(made)


def _unfiltered(kind: int, line: bytearray, above: bytearray, step: int) -> bytearray:
    for at in range(len(line) if kind else 0):
        left, up, corner = (line[at - step], above[at], above[at - step]) if at >= step else (0, above[at], 0)
        match kind:
            case 1:
                guess = left
            case 2:
                guess = up
            case 3:
                guess = (left + up) // 2
            case _:
                near = left + up - corner
                guess = min((abs(near - left), 0, left), (abs(near - up), 1, up), (abs(near - corner), 2, corner))[2]
        line[at] = (line[at] + guess) & 255
    return line


if __name__ == "__main__":
    main(sys.argv[1:])
