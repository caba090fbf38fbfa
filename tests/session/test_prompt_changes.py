"""A resumed session sends its recorded prompt, and a changed prompt is announced with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.session.plain import Session

from lamina.core.records import Break
from lamina.disk.transcripts.store import read_transcript

ANSWER = {
    "id": "msg_1",
    "model": "claude-sonnet-5-5",
    "content": [{"type": "text", "text": "ok"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 10, "output_tokens": 1},
}


def begun(home: Path) -> str:
    with Session("anthropic:claude-sonnet-5-5", system="Be brief.", max_tokens=1_234, home=home, cwd=home) as session:
        session.add_user("one")
        session.before_call()
        session.after_call(ANSWER)
        return session.id


def reasons(path: Path | None) -> list[str]:
    assert path is not None
    return [record.reason for record in read_transcript(path) if isinstance(record, Break)]


def test_what_is_not_given_again_is_sent_as_it_was(tmp_path: Path) -> None:
    with Session("anthropic:claude-sonnet-5-5", home=tmp_path, cwd=tmp_path, resume=begun(tmp_path)) as session:
        session.add_user("two")
        request = session.before_call()
        assert (request["max_tokens"], request["system"][0]["text"]) == (1_234, "Be brief.")
        assert reasons(session.path) == []


@pytest.mark.spec("K3")
def test_another_model_is_announced_as_such(tmp_path: Path) -> None:
    with Session("anthropic:claude-haiku-5-5", home=tmp_path, cwd=tmp_path, resume=begun(tmp_path)) as session:
        session.add_user("two")
        assert session.before_call()["model"] == "claude-haiku-5-5"
        assert reasons(session.path) == ["model"]


@pytest.mark.spec("K3")
def test_other_options_are_announced_as_such(tmp_path: Path) -> None:
    options = {"thinking": {"type": "adaptive"}}
    with Session("anthropic:claude-sonnet-5-5", home=tmp_path, cwd=tmp_path, resume=begun(tmp_path), options=options) as session:
        session.add_user("two")
        session.before_call()
        assert reasons(session.path) == ["options"]
