"""The colours of the style sheets have the contrast that WCAG 2.2 AA asks for, in light and in dark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lamina
from lamina.replay.html import FILE_STYLE, style

STATIC = Path(lamina.__file__).parent / "web" / "static"
# Texts stand on these grounds; a notice has its own.
GROUNDS = ("paper", "panel", "sunk")
TEXTS = ("ink", "soft", "link", "bad", "good", "warn")
# Colours that carry meaning without text: kinds in the chart, parts of a cost, the lines of a replay.
DRAWN = re.compile(r"(k|c)-\w+")
TEXT, GRAPHICS = 4.5, 3.0


def colours(sheet: str, theme: int) -> dict[str, str]:
    """Return the custom properties of a sheet in a theme: 0 is light, 1 is dark."""
    found = re.findall(r"(?:--|\.)([\w-]+)(?:[^{};]*\{ ?--k)?:\s*light-dark\((#\w{6}),\s*(#\w{6})\)", sheet)
    return {name: both[theme] for name, *both in found}


def contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.spec("V6")
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_texts_and_drawings_have_the_contrast_that_the_guidelines_ask_for(theme: int) -> None:
    assert round(contrast("#000000", "#ffffff"), 2) == 21
    of_page = colours((STATIC / "lamina.css").read_text("utf-8"), theme)
    assert sum(bool(DRAWN.fullmatch(name)) for name in of_page) == 15
    pairs = {(text, ground): TEXT for text in TEXTS for ground in GROUNDS}
    pairs |= {(name, f"{name}-bg"): TEXT for name in ("bad", "good", "warn")}
    pairs |= {("paper", "ink"): TEXT, ("ink", "warn-bg"): TEXT, ("soft", "warn-bg"): TEXT, ("link", "warn-bg"): TEXT}
    pairs |= {(name, "panel"): GRAPHICS for name in of_page if DRAWN.fullmatch(name)}
    pairs |= {(name, ground): GRAPHICS for name in ("field", "link") for ground in GROUNDS}
    found = {pair: contrast(of_page[pair[0]], of_page[pair[1]]) for pair in pairs}
    assert {pair: round(found[pair], 2) for pair, least in pairs.items() if found[pair] < least} == {}
    in_file = colours(FILE_STYLE, theme)
    lines = {int(at): both[theme] for at, *both in re.findall(r"\.p(\d)\{--p:\s*light-dark\((#\w{6}),\s*(#\w{6})\)", style())}
    assert len(lines) == 8
    for ground in (of_page["panel"], in_file["panel"], in_file["paper"]):
        assert {
            at: round(contrast(colour, ground), 2) for at, colour in lines.items() if contrast(colour, ground) < GRAPHICS
        } == {}
    for name in ("ink", "soft", "bad"):
        assert contrast(in_file[name], in_file["paper"]) >= TEXT
