"""Draw sizes over time as an SVG picture, as text. Pure; it knows nothing of replays, so any page can use it.

The x-axis is time. A pause longer than LONGEST_PAUSE is drawn as short as that, shaded and labelled with its real length: a night
between two messages would otherwise leave no room for them. Without times, the axis counts the points.

Each line is a staircase: a request has one size, and there is nothing between two requests. Colours and fonts come from the classes in
`report.css`. The picture is as wide as its place and always HEIGHT pixels high: positions are shares of the width, only the lines are
stretched, and texts and marks keep their size.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from typing import NamedTuple

from ..core.markup import Attribute, Html, join, tag

WIDTH, HEIGHT = 960, 240
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 34
# Seconds. Work goes on in shorter pauses; longer ones are breaks, and a five-minute cache has expired.
LONGEST_PAUSE = 600.0
# A line with more points than pixels is thinned; points with a mark always stay.
MOST_POINTS = 600
TICKS = 5
SIZE: dict[str, Attribute] = {"width": "100%", "height": HEIGHT}
# Below a point.
CROSS = "M-3 5l6 6m0-6l-6 6"
# Between two labels of the time axis, of WIDTH: enough for a day and a time in a narrow picture.
LABEL_ROOM = 165


class ChartPoint(NamedTuple):
    time: float  # seconds; 0 if unknown
    size: float
    mark: str = ""  # a decision, drawn as a dot on the line
    miss: str = ""  # something that went wrong here, drawn as a cross below the line's point


class ChartLine(NamedTuple):
    name: str
    colour: str  # a class of report.css
    points: Sequence[ChartPoint]


class Pause(NamedTuple):
    start: float  # position on the axis
    seconds: float


class ChartWords(NamedTuple):
    """The texts for days and pauses in a chart. Without a zone, times are local."""

    day: Callable[[datetime], str] = lambda at: at.strftime("%d %b")
    pause: Callable[[float], str] = lambda seconds: f"pause of {duration(seconds)}"
    zone: tzinfo | None = UTC


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

    def ticks(self, words: ChartWords) -> list[tuple[float, str]]:
        """Return positions with the clock's time there; a new day is named."""
        found: list[tuple[float, str]] = []
        day = ""
        for wanted in range(TICKS + 1):
            at = max(0, bisect_right(self._places, self.length * wanted / TICKS) - 1)
            place = self._places[at]
            if not self._times or (found and (place - found[-1][0]) * (WIDTH - LEFT - RIGHT) / self.length < LABEL_ROOM):
                continue
            when = datetime.fromtimestamp(self._times[at], words.zone)
            today = words.day(when)
            found.append((place, f"{when:%H:%M}" if today == day else f"{today} {when:%H:%M}"))
            day = today
        return found


def chart(lines: Sequence[ChartLine], *, label: str, words: ChartWords | None = None) -> Html:
    """Return the picture. `label` describes it to readers who do not see it."""
    words = words or ChartWords()
    timed = all(point.time > 0 for line in lines for point in line.points)
    drawn = [line if timed else _counted(line) for line in lines]
    axis = TimeAxis([point.time for line in drawn for point in line.points])
    top = max((point.size for line in drawn for point in line.points), default=0) or 1
    parts = [_rule(share, top) for share in (0.0, 0.5, 1.0)]
    parts += [_pause(pause, axis, words) for pause in axis.pauses if timed]
    parts += [_tick(place, text, axis) for place, text in axis.ticks(words) if timed]
    stretched: dict[str, Attribute] = {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "preserveAspectRatio": "none"}
    parts.append(tag("svg", SIZE | stretched, [_line(line, axis, top) for line in drawn]))
    parts += [_marks(line, axis, top) for line in drawn]
    return tag("svg", SIZE | {"role": "img", "aria-label": label}, parts)


def _counted(line: ChartLine) -> ChartLine:
    return line._replace(points=[point._replace(time=float(at + 1)) for at, point in enumerate(line.points)])


def _share(x: float) -> str:
    return f"{100 * x / WIDTH:.2f}%"


def _x(place: float, axis: TimeAxis) -> float:
    return LEFT + place / axis.length * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)


def _rule(share: float, top: float) -> Html:
    y = _y(share)
    label = tag("text", {"x": _share(LEFT), "dx": -6, "y": f"{y + 4:.0f}", "text-anchor": "end"}, f"{share * top / 1_000:,.0f}k")
    ends = {"x1": _share(LEFT), "x2": _share(WIDTH - RIGHT), "y1": f"{y:.1f}", "y2": f"{y:.1f}"}
    return join((tag("line", {"class": "grid", **ends}), label))


def _pause(pause: Pause, axis: TimeAxis, words: ChartWords) -> Html:
    x, end = _x(pause.start, axis), _x(pause.start + LONGEST_PAUSE, axis)
    place: dict[str, Attribute] = {"x": _share(x), "y": TOP, "width": _share(end - x), "height": HEIGHT - TOP - BOTTOM}
    return tag("rect", {"class": "pause"} | place, tag("title", None, words.pause(pause.seconds)))


def _tick(place: float, text: str, axis: TimeAxis) -> Html:
    x = _x(place, axis)
    anchor = "start" if x < LEFT + LABEL_ROOM / 3 else "end" if x > WIDTH - RIGHT - LABEL_ROOM / 3 else "middle"
    return tag("text", {"x": _share(x), "y": HEIGHT - 8, "text-anchor": anchor}, text)


def _line(line: ChartLine, axis: TimeAxis, top: float) -> Html:
    shown: list[str] = []
    level = ""
    for point in _thinned(line.points):
        x, y = f"{_x(axis.place(point.time), axis):.1f}", f"{_y(point.size / top):.1f}"
        shown += [f"{x},{level}"] if level and level != y else []
        shown.append(f"{x},{y}")
        level = y
    if len(shown) == 1:  # one call: a point alone would not be seen
        shown.append(f"{_x(axis.length, axis):.1f},{level}")
    return tag("polyline", {"class": f"line {line.colour}", "points": " ".join(shown)}, tag("title", None, line.name))


def _thinned(points: Sequence[ChartPoint]) -> list[ChartPoint]:
    """Keep the largest point of each group of neighbours, and all with a mark."""
    stride = -(-len(points) // MOST_POINTS)
    groups = (points[at : at + stride] for at in range(0, len(points), max(1, stride)))
    return [
        point for group in groups for point in group if point.mark or point.miss or point == max(group, key=lambda one: one.size)
    ]


def _marks(line: ChartLine, axis: TimeAxis, top: float) -> Html:
    made: list[Html] = []
    for point in line.points:
        x, y = _x(axis.place(point.time), axis), _y(point.size / top)
        if point.mark:
            place: dict[str, Attribute] = {"cx": _share(x), "cy": f"{y:.1f}", "r": 3.5}
            made.append(
                tag("circle", {"class": f"decided {line.colour}"} | place, tag("title", None, f"{line.name}: {point.mark}"))
            )
        if point.miss:
            cross = tag("path", {"class": f"miss {line.colour}", "d": CROSS}, tag("title", None, f"{line.name}: {point.miss}"))
            made.append(tag("svg", {"x": _share(x), "y": f"{y:.1f}", "overflow": "visible"}, cross))
    return join(made)


def duration(seconds: float) -> str:
    """Return a length of time in its largest unit."""
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            number = round(seconds / size)
            return f"{number:,} {unit}{'s' if number != 1 else ''}"
    return f"{seconds:.0f} s"
