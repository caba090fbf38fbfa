"""Draw the README's picture: how full the window is, request by request, with Lamina and without.

    python bench/picture.py [--out docs/images/window.svg]

Both lines come from real requests over HTTP to the loopback test server, which counts the tokens. The same scripted model makes the same
504 tool calls twice: once in a plain loop that appends every message, once in a `lamina.Session` with a window of 40,000 tokens."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import anthropic
from growing import MODEL
from long_session import NAME, OUTPUTS, TOOLS, TURNS, WINDOW, Model, chats, move, opened

from lamina.core.records import Boundary, Clear
from lamina.disk.transcripts.store import read_transcript
from lamina.testing import MessagesServer

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 880, 340, 64, 56, 44
# The plain loop is drawn up to this many windows; it only goes on like that.
SHOWN = 3
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #57606a }
  .title { font-size: 16px; font-weight: 600; fill: #24292f }
  .plain { stroke: #cf222e; fill: none; stroke-width: 2 } .plain-label { fill: #cf222e; font-weight: 600 }
  .ours { stroke: #0969da; fill: #0969da22; stroke-width: 2 } .ours-label { fill: #0969da; font-weight: 600 }
  .limit { stroke: #57606a; stroke-dasharray: 6 4 } .axis { stroke: #d0d7de }
  .clear { fill: #bf8700 } .compact { fill: #8250df }
  @media (prefers-color-scheme: dark) {
    text { fill: #9198a1 } .title { fill: #f0f6fc } .axis { stroke: #3d444d } .limit { stroke: #9198a1 }
    .plain { stroke: #f85149 } .plain-label { fill: #f85149 }
    .ours { stroke: #4493f8; fill: #4493f833 } .ours-label { fill: #4493f8 }
    .clear { fill: #d29922 } .compact { fill: #ab7df8 }
  }
"""


class Mark(NamedTuple):
    """A decision of a layer, at the request that it preceded."""

    request: int
    kind: str


def plain_loop() -> list[int]:
    """The tokens of each request of a loop that appends every message."""
    with MessagesServer() as server, closing(anthropic.Anthropic(base_url=server.url, api_key="any", max_retries=0)) as client:
        server.window = 10**9
        server.answer_with(Model())
        messages: list[dict[str, Any]] = []
        for turn in range(TURNS):
            messages.append({"role": "user", "content": f"Task {turn + 1}: look at what is there and say what it means."})
            while True:
                reply = client.messages.create(
                    model=MODEL, max_tokens=1_000, system="Be careful.", tools=TOOLS, messages=messages
                ).model_dump(exclude_none=True)
                messages.append({"role": "assistant", "content": reply["content"]})
                calls = [block for block in reply["content"] if block["type"] == "tool_use"]
                if not calls:
                    break
                messages.append({"role": "user", "content": [_result(call["id"]) for call in calls]})
        return [received.use.total for received in chats(server) if received.use]


def _result(call: str) -> dict[str, Any]:
    output = OUTPUTS[int(call[-4:]) % len(OUTPUTS)](int(call[-4:]))
    if isinstance(output, bytes):
        output = output.decode("latin-1")
    return {"type": "tool_result", "tool_use_id": call, "content": output if isinstance(output, list) else str(output)}


def lamina_loop(place: Path) -> tuple[list[int], list[Mark]]:
    """The tokens of each request of a session, and the decisions of its layers."""
    with MessagesServer() as server:
        server.window = WINDOW
        server.answer_with(Model())
        with opened(server.url, place, session_id=NAME) as session:
            while move(session, TURNS):
                pass
            assert session.path is not None
            written = list(read_transcript(session.path))
        marks, asked = [], 0
        for record in written:
            asked += getattr(record, "role", "") == "assistant" and record.blocks[0].wire["type"] == "text"
            if isinstance(record, Boundary | Clear):
                marks.append(Mark(asked, "compact" if isinstance(record, Boundary) else "clear"))
        return [received.use.total for received in chats(server) if received.use], marks


def drawn(plain: Sequence[int], ours: Sequence[int], marks: Sequence[Mark]) -> str:
    """The picture as SVG, readable on a light and on a dark page."""
    wide, high = WIDTH - LEFT - 24, HEIGHT - TOP - BOTTOM
    top = WINDOW * SHOWN

    def point(request: int, tokens: float) -> tuple[float, float]:
        return round(LEFT + wide * request / (len(ours) - 1), 1), round(TOP + high * (1 - min(tokens, top) / top), 1)

    def path(values: Sequence[int]) -> str:
        return " ".join(f"{x},{y}" for x, y in (point(at, value) for at, value in enumerate(values)))

    shown = list(plain[: next((at for at, value in enumerate(plain) if value > top), len(plain)) + 1])
    full = next(at for at, value in enumerate(plain) if value > WINDOW)
    base, limit = TOP + high, point(0, WINDOW)[1]
    over_x, over_y = point(len(shown) - 1, top)
    dots = "\n".join(
        f'<circle class="{mark.kind}" cx="{x}" cy="{y}" r="4"/>'
        for mark in marks
        for x, y in [point(mark.request, ours[min(mark.request, len(ours) - 1)])]
    )
    ticks = "\n".join(
        f'<text x="{LEFT - 8}" y="{point(0, tokens)[1] + 4}" text-anchor="end">{tokens // 1000}k</text>'
        f'<line class="axis" x1="{LEFT}" x2="{LEFT + wide}" y1="{point(0, tokens)[1]}" y2="{point(0, tokens)[1]}"/>'
        for tokens in range(0, top + 1, WINDOW)
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="title">
<title id="title">Tokens per request over {len(ours)} requests: a plain loop leaves its window of {WINDOW:,} tokens at request {full + 1}, \
with Lamina no request exceeds {max(ours):,} tokens</title>
<style>{STYLE}</style>
<text class="title" x="{LEFT}" y="24">{TURNS * 12} tool calls in a window of {WINDOW:,} tokens</text>
{ticks}
<line class="limit" x1="{LEFT}" x2="{LEFT + wide}" y1="{limit}" y2="{limit}"/>
<text x="{LEFT + wide}" y="{limit - 7}" text-anchor="end">the model's window</text>
<polygon class="ours" style="stroke:none" points="{point(0, 0)[0]},{base} {path(ours)} {LEFT + wide},{base}"/>
<polyline class="ours" style="fill:none" points="{path(ours)}"/>
<polyline class="plain" points="{path(shown)}"/>
<text class="plain-label" x="{over_x + 12}" y="{over_y + 16}">without Lamina: request {full + 1} is refused</text>
{dots}
<circle class="clear" cx="{LEFT + 6}" cy="{HEIGHT - 12}" r="4"/><text x="{LEFT + 16}" y="{HEIGHT - 8}">old results cleared</text>
<circle class="compact" cx="{LEFT + 166}" cy="{HEIGHT - 12}" r="4"/><text x="{LEFT + 176}" y="{HEIGHT - 8}">compacted</text>
<text class="ours-label" x="{LEFT + 290}" y="{HEIGHT - 8}">with Lamina: never above {max(ours):,} tokens</text>
<text x="{LEFT + wide}" y="{HEIGHT - 8}" text-anchor="end">{len(ours)} requests</text>
</svg>
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/images/window.svg"))
    given = parser.parse_args()
    plain = plain_loop()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        ours, marks = lamina_loop(Path(name) / "place")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(drawn(plain, ours, marks), encoding="utf-8")
    print(
        f"plain loop: {plain[-1]:,} tokens in the end; with Lamina at most {max(ours):,}; {len(marks)} decisions; wrote {given.out}"
    )


if __name__ == "__main__":
    main()
