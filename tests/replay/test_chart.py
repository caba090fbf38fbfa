"""The chart: sizes over time."""

from __future__ import annotations

from datetime import timedelta, timezone
from xml.etree import ElementTree

from lamina.replay.chart import LONGEST_PAUSE, MOST_POINTS, ChartLine, ChartPoint, ChartWords, TimeAxis, chart, duration

# 1 March 2026, 09:00 UTC.
START = 1_772_355_600.0
NIGHT = 12 * 3_600.0


def drawn(*points: ChartPoint) -> ElementTree.Element:
    return ElementTree.fromstring(chart([ChartLine("<lean>", "p1", points)], label='a "picture"'))


def test_a_long_pause_is_shortened_and_named() -> None:
    axis = TimeAxis([START, START + 60, START + 60 + NIGHT, START + 120 + NIGHT])
    assert axis.length == 60 + LONGEST_PAUSE + 60
    assert [round(pause.seconds) for pause in axis.pauses] == [NIGHT]
    words = [words for _, words in axis.ticks(ChartWords())]
    assert words[0] == "01 Mar 09:00"
    assert words[-1].endswith("21:02")
    assert words[1:] == ["21:02"], "labels have room in a narrow picture"
    elsewhere = ChartWords(lambda at: f"{at.month}月{at.day}日", lambda seconds: "停顿", timezone(timedelta(hours=8)))
    assert axis.ticks(elsewhere)[0][1] == "3月1日 17:00"
    seen = drawn(*(ChartPoint(START + at, 10) for at in (0, 60, 60 + NIGHT)))
    assert [title.text for title in seen.iter("title")] == ["pause of 12 hours", "<lean>"]


def test_decisions_and_misses_are_marked() -> None:
    seen = drawn(
        ChartPoint(START, 10_000), ChartPoint(START + 1, 5_000, mark="compaction"), ChartPoint(START + 2, 6_000, miss="a & b")
    )
    assert [circle.findtext("title") for circle in seen.iter("circle")] == ["<lean>: compaction"]
    assert [path.findtext("title") for path in seen.iter("path")] == ["<lean>: a & b"]
    assert [one.text for one in seen.iter("text")][:3] == ["0k", "5k", "10k"]


def test_a_line_has_no_more_points_than_pixels_and_keeps_its_peaks_and_marks() -> None:
    sizes = [ChartPoint(START + at, at % 100, mark="clear" if at == 12_345 else "") for at in range(20_000)]
    (line,) = drawn(*sizes).iter("polyline")
    points = line.attrib["points"].split()
    assert MOST_POINTS // 2 < len(points) <= 2 * (MOST_POINTS + 1), "a step has two corners"
    assert min(float(point.split(",")[1]) for point in points) == 12.0, "the peak is at the top"


def test_without_times_the_calls_are_counted() -> None:
    (line,) = drawn(ChartPoint(0, 1), ChartPoint(0, 2), ChartPoint(0, 3)).iter("polyline")
    places = [float(point.split(",")[0]) for point in line.attrib["points"].split()]
    assert places == sorted(places)
    assert len(set(places)) == 3
    assert len([*drawn().iter("polyline")]) == 1


def test_only_the_lines_are_stretched_so_texts_and_marks_keep_their_size() -> None:
    seen = drawn(ChartPoint(START, 10), ChartPoint(START + 60, 20, mark="clear", miss="x"), ChartPoint(START + 60 + NIGHT, 5))
    assert (seen.get("viewBox"), seen.get("width")) == (None, "100%")
    (stretched,) = (one for one in seen.iter("svg") if one.get("viewBox"))
    assert (stretched.get("preserveAspectRatio"), {one.tag for one in stretched}) == ("none", {"polyline"})
    places = [one.get(name, "%") for one in seen.iter() for name in ("x", "cx", "x1", "x2")]
    assert all(place.endswith("%") for place in places)


def test_a_length_of_time_has_one_unit() -> None:
    assert [duration(seconds) for seconds in (5, 60, 5_400, 90_000)] == ["5 s", "1 minute", "2 hours", "1 day"]


def test_a_line_is_a_staircase() -> None:
    (line,) = drawn(ChartPoint(START, 0), ChartPoint(START + 60, 10)).iter("polyline")
    before, corner, after = (point.split(",") for point in line.attrib["points"].split())
    assert (corner[0], corner[1]) == (after[0], before[1]), "nothing lies between two requests"


def test_a_session_with_one_call_is_a_level_line() -> None:
    (line,) = drawn(ChartPoint(START, 10)).iter("polyline")
    left, right = (point.split(",") for point in line.attrib["points"].split())
    assert (left[1], left[0] != right[0]) == (right[1], True)
