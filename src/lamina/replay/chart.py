"""Draw sizes over time as an SVG picture, as text. Pure; it knows nothing of replays, so any page can use it.

The x-axis is time. A pause longer than LONGEST_PAUSE is drawn as short as that, shaded and labelled with its real length: a night
between two messages would otherwise leave no room for them. Without times, the axis counts the points.

Colours and fonts come from the classes in STYLE, which the page puts into its style sheet.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from typing import NamedTuple

WIDTH, HEIGHT = 960, 240
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 34
# Seconds. Work goes on in shorter pauses; longer ones are breaks, and a five-minute cache has expired.
LONGEST_PAUSE = 600.0
# A line with more points than pixels is thinned; points with a mark always stay.
MOST_POINTS = 600
TICKS = 6
# Pixels between two labels of the time axis.
LABEL_ROOM = 60
# Distinguishable on white and on black, and with most forms of colour blindness.
COLOURS = ("#888888", "#cc5500", "#0072b2", "#009e73", "#b0439c", "#a68a00", "#56a0d8", "#d05050")

STYLE = """
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--soft); font-size: 11px; }
.grid { stroke: var(--faint); } .pause { fill: var(--faint); opacity: .35; }
.line { fill: none; stroke-width: 1.6; vector-effect: non-scaling-stroke; }
.mark { stroke: var(--paper); stroke-width: 1; } .miss { fill: none; stroke-width: 2; }
"""


class ChartPoint(NamedTuple):
    time: float  # seconds; 0 if unknown
    size: float
    mark: str = ""  # a decision, drawn as a dot on the line
    miss: str = ""  # something that went wrong here, drawn as a cross below the line's point


class ChartLine(NamedTuple):
    name: str
    colour: str
    points: Sequence[ChartPoint]


class Pause(NamedTuple):
    start: float  # position on the axis
    seconds: float


class TimeAxis:
    """Maps times to positions from 0 to `length`, with long pauses shortened."""

    def __init__(self, times: Sequence[float]) -> None:
        self._times = sorted(set(times))
        self._places = [0.0]
        self.pauses: list[Pause] = []
        for before, after in pairwise(self._times):
            gap = after - before
            if gap > LONGEST_PAUSE:
                self.pauses.append(Pause(self._places[-1], gap))
            self._places.append(self._places[-1] + min(gap, LONGEST_PAUSE))
        self.length = self._places[-1] or 1.0

    def place(self, time: float) -> float:
        at = max(0, bisect_right(self._times, time) - 1)
        return self._places[at] if self._times else 0.0

    def ticks(self) -> list[tuple[float, str]]:
        """Return positions with the clock's time there; a new day is named."""
        found: list[tuple[float, str]] = []
        day = ""
        for wanted in range(TICKS + 1):
            at = max(0, bisect_right(self._places, self.length * wanted / TICKS) - 1)
            place = self._places[at]
            if not self._times or (found and (place - found[-1][0]) * (WIDTH - LEFT - RIGHT) / self.length < LABEL_ROOM):
                continue
            when = datetime.fromtimestamp(self._times[at], UTC)
            today = when.strftime("%d %b")
            found.append((place, when.strftime("%H:%M") if today == day else when.strftime("%d %b %H:%M")))
            day = today
        return found


def chart(lines: Sequence[ChartLine], *, label: str) -> str:
    """Return the picture. `label` describes it to readers who do not see it."""
    timed = all(point.time > 0 for line in lines for point in line.points)
    drawn = [line if timed else _counted(line) for line in lines]
    axis = TimeAxis([point.time for line in drawn for point in line.points])
    top = max((point.size for line in drawn for point in line.points), default=0) or 1
    parts = [_rule(share, top) for share in (0.0, 0.5, 1.0)]
    parts += [_pause(pause, axis) for pause in axis.pauses if timed]
    parts += [_tick(place, words, axis) for place, words in axis.ticks() if timed]
    parts += [_line(line, axis, top) for line in drawn]
    parts += [_marks(line, axis, top) for line in drawn]
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def _counted(line: ChartLine) -> ChartLine:
    return line._replace(points=[point._replace(time=float(at + 1)) for at, point in enumerate(line.points)])


def _x(place: float, axis: TimeAxis) -> float:
    return LEFT + place / axis.length * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)


def _rule(share: float, top: float) -> str:
    y = _y(share)
    label = f'<text x="{LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{share * top / 1_000:,.0f}k</text>'
    return f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>{label}'


def _pause(pause: Pause, axis: TimeAxis) -> str:
    x, end = _x(pause.start, axis), _x(pause.start + LONGEST_PAUSE, axis)
    band = f'<rect class="pause" x="{x:.1f}" y="{TOP}" width="{end - x:.1f}" height="{HEIGHT - TOP - BOTTOM}">'
    return f"{band}<title>pause of {duration(pause.seconds)}</title></rect>"


def _tick(place: float, words: str, axis: TimeAxis) -> str:
    x = _x(place, axis)
    anchor = "start" if x < LEFT + LABEL_ROOM / 2 else "end" if x > WIDTH - RIGHT - LABEL_ROOM / 2 else "middle"
    return f'<text x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{escape(words)}</text>'


def _line(line: ChartLine, axis: TimeAxis, top: float) -> str:
    shown = " ".join(f"{_x(axis.place(point.time), axis):.1f},{_y(point.size / top):.1f}" for point in _thinned(line.points))
    return f'<polyline class="line" stroke="{line.colour}" points="{shown}"><title>{escape(line.name)}</title></polyline>'


def _thinned(points: Sequence[ChartPoint]) -> list[ChartPoint]:
    """Keep the largest point of each group of neighbours, and all with a mark."""
    stride = -(-len(points) // MOST_POINTS)
    groups = (points[at : at + stride] for at in range(0, len(points), max(1, stride)))
    return [
        point for group in groups for point in group if point.mark or point.miss or point == max(group, key=lambda one: one.size)
    ]


def _marks(line: ChartLine, axis: TimeAxis, top: float) -> str:
    made: list[str] = []
    for point in line.points:
        x, y = _x(axis.place(point.time), axis), _y(point.size / top)
        if point.mark:
            title = f"<title>{escape(f'{line.name}: {point.mark}')}</title>"
            made.append(f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{line.colour}">{title}</circle>')
        if point.miss:
            title = f"<title>{escape(f'{line.name}: {point.miss}')}</title>"
            cross = f"M{x - 3:.1f} {y + 5:.1f}l6 6m0 -6l-6 6"
            made.append(f'<path class="miss" stroke="{line.colour}" d="{cross}">{title}</path>')
    return "".join(made)


def duration(seconds: float) -> str:
    """Return a length of time in its largest unit."""
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            number = round(seconds / size)
            return f"{number:,} {unit}{'s' if number != 1 else ''}"
    return f"{seconds:.0f} s"
