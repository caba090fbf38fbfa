"""`--ask`: comparing a provider's answers with the recorded ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lamina.core.errors import Overloaded
from lamina.core.settings import Settings
from lamina.providers.offline import Local
from lamina.replay.comparison import BREAKER, ComparisonModel
from lamina.replay.options import ReplayOptions
from lamina.replay.report import ReplayReport
from lamina.replay.run import replay
from lamina.replay.script import read_script
from lamina.replay.table import remarks
from lamina.replay.variants import variants
from lamina.session.provider import offline

from .recording import Recording, long_work, page, text, use


def settings(arguments: Mapping[str, Any]) -> Settings:
    return Settings(**arguments)


def asked(path: Path, answer: Local, times: int = 2) -> tuple[ReplayReport, ComparisonModel]:
    """`answer` takes the model's part."""
    asking = ComparisonModel(offline({"chat": answer}), times)
    return replay([path], ReplayOptions(variants()[1:], settings, comparison_model=asking)), asking


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return long_work(4).write(tmp_path / "s.jsonl")


@pytest.mark.spec("B14")
@pytest.mark.parametrize(
    ("answer", "same", "again", "questions"),
    [
        (use("x", "Read", file_path="/work/src/app/module_3.py"), 1, 1, 0),
        (use("x", "Read", file_path="/work/src/app/module_0.py"), 0, 2, 0),
        (use("x", "Grep", pattern="compute"), 0, 0, 0),
        (text("Which file do you mean?"), 1, 0, 1),
        (text("It is module_1."), 1, 0, 0),
    ],
)
def test_answers_are_held_against_what_was_recorded(
    file: Path, answer: dict[str, Any], same: int, again: int, questions: int
) -> None:
    """Asked at the fourth read and at the last word."""
    report, _ = asked(file, lambda _: [answer])
    found = report.figures["balanced"].comparison
    assert (found.calls, found.failed) == (2, 0)
    assert (found.same, found.again, found.questions) == (same, again, questions)
    assert "asked" not in report.to_json()["policies"]["recorded"]
    assert report.to_json()["policies"]["balanced"]["asked"]["same_act"] == same
    assert any(remark.startswith("balanced: 2 answers from a model") for remark in remarks(report))


def test_what_is_sent_has_the_policys_messages_and_nothing_that_was_made_up(tmp_path: Path) -> None:
    made = Recording()
    made.say("Read it.")
    made.answer({"type": "thinking", "thinking": "hm", "signature": "c2ln"}, use("a", "Read", file_path="/a.py"))
    made.result("a", page(1))
    made.answer(text("Done."))
    sent: list[dict[str, Any]] = []

    def answer(request: dict[str, Any]) -> list[dict[str, Any]]:
        sent.append(request)
        return [text("Done.")]

    asked(made.write(tmp_path / "s.jsonl"), answer, 5)
    (request,) = sent
    kinds = [[block["type"] for block in message["content"]] for message in request["messages"]]
    assert kinds == [["text"], ["tool_use"], ["tool_result"]]
    assert "You are an agent" in request["system"][0]["text"]
    assert [tool["name"] for tool in request["tools"]] == ["Read"]


def test_the_first_answer_is_never_asked_for_and_points_are_spread(file: Path) -> None:
    script = read_script(file)
    assert ComparisonModel(offline(), 2).points(script) == {7, 11}
    assert len(ComparisonModel(offline(), 100).points(script)) == len(script.answers) - 1


def test_a_server_that_does_not_answer_is_left_alone(tmp_path: Path) -> None:
    tries = 0

    def fail(_: dict[str, Any]) -> list[dict[str, Any]]:
        nonlocal tries
        tries += 1
        raise Overloaded("The server is busy.")

    report, asking = asked(long_work(8).write(tmp_path / "s.jsonl"), fail, 8)
    assert tries == BREAKER
    assert report.figures["balanced"].comparison.failed == BREAKER
    assert report.figures["balanced"].calls == 10, "the replay itself goes on"
    assert asking.trouble == "The server is busy."
