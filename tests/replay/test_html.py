"""The report as a page."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from lamina.core.settings import Settings
from lamina.replay.figures import ReplayFigures
from lamina.replay.html import ReportWords, page, recorded_bill
from lamina.replay.options import ReplayOptions
from lamina.replay.report import ReplayReport
from lamina.replay.run import replay
from lamina.replay.variants import variants

from .recording import long_work

VOID = {"meta", "line"}


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> ReplayReport:
    path: Path = long_work(3).write(tmp_path_factory.mktemp("recorded") / "s.jsonl")
    odd = path.with_name("<script>alert(1)</script>.jsonl".replace("/", "-"))
    odd.write_text("nothing")
    return replay([path, odd], ReplayOptions(variants(("lean",)), lambda arguments: Settings(**arguments)))


def test_the_recorded_bill_says_how_it_differs_from_the_transcripts() -> None:
    figures = ReplayFigures(usd=5.78, unrecorded_usd=0.2, unrecorded_calls=1, unexplained_usd=0.1, unexplained_breaks=2)
    assert recorded_bill(ReplayReport(figures={"recorded": figures})) == (
        "Recorded bill: $5.68 in the transcripts + $0.20 estimated for calls that wrote a summary and are in no transcript (1)"
        " − $0.10 for cache breaks that nothing explains (2) = $5.78"
    )
    assert recorded_bill(ReplayReport(figures={"recorded": ReplayFigures(usd=5.78)})) == ""
    used = ReportWords("en", "subscription")
    assert recorded_bill(ReplayReport(figures={"recorded": figures}), used) == (
        "Recorded use: with estimated calls that wrote a summary and are in no transcript (1); "
        "without cache breaks that nothing explains (2)."
    )


@pytest.mark.spec("B14")
def test_the_page_is_whole_and_needs_nothing_from_elsewhere(report: ReplayReport) -> None:
    made = page(report, "Replay <b>")
    seen = Seen()
    seen.feed(made)
    assert seen.open == []
    assert seen.tags.count("polyline") == 3, "the recording, the settings in force and lean"
    assert seen.tags.count("table") == 2
    assert "<p>Lamina with balanced would have cost " in made
    assert seen.tags.index("dl") < seen.tags.index("table"), "the difference comes first"
    assert "01 Mar 09:00" in made, "the time of the first request"
    assert not {"script", "link", "img", "iframe", "b"} & set(seen.tags)
    assert not {"src", "href"} & seen.names
    assert "http" not in made
    assert "url(" not in made
    assert "color-scheme: light dark" in made
    assert "&lt;script&gt;alert" in made
    assert "Replay &lt;b&gt;" in made


def test_a_report_of_nothing_is_a_page_too() -> None:
    seen = Seen()
    seen.feed(page(ReplayReport(), "Replay"))
    assert seen.open == []
