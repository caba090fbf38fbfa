"""Offline, a session of any size can be continued and compacted: the summary by rules has a budget, in tokens and in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.clocks import FAR_TOO_LONG
from tests.session.plain import Session

from lamina.core.settings import Settings

from .compacting import told

LINE = "The service {} listens on port {} for the tenants of group {}, and <summary> number {} is closed by </summary> there.\n"
Play = Callable[[Session, int], None]


def text_of(number: int, lines: int = 50) -> str:
    return "".join(LINE.format(number, 8_000 + line, number * line, line) for line in range(lines))


def answered(session: Session, number: int, *blocks: dict[str, Any]) -> None:
    stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    session.after_call(
        {"id": f"m{number}", "type": "message", "role": "assistant", "model": "x", "content": [*blocks], "stop_reason": stop}
    )


def chat(session: Session, number: int) -> None:
    session.add_user(f"Question {number}: which port is it?")
    answered(session, number, {"type": "text", "text": text_of(number)})


def pastes(session: Session, number: int) -> None:
    session.add_user(text_of(number))
    answered(session, number, {"type": "text", "text": "Noted."})


def failures(session: Session, number: int) -> None:
    """One turn in which every command fails, and every to-do list is long."""
    if not number:
        session.add_user("Make it work.")
    todos = [{"content": text_of(number, 2), "status": "pending"} for _ in range(20)]
    call = {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": f"run {number}", "todos": todos}}
    answered(session, number, {**call, "name": "TodoWrite" if number % 2 else "Bash"})
    session.add_tool_result(f"c{number}", text_of(number), is_error=True)


def chinese(session: Session, number: int) -> None:
    session.add_user(f"第{number}个问题：端口是多少？")
    lines = (f"服务{number}在端口{8_000 + line}上监听第{number * line}组租户，并且每隔三十秒写一次日志。\n" for line in range(80))
    answered(session, number, {"type": "text", "text": "".join(lines)})


def played(home: Path, play: Play, size: int) -> str:
    """Record a session that has never been compacted, and return its id."""
    settings = Settings(session_notes=False, spill=False, size_clearing=False)
    with Session("offline", home=home, cwd=home, window=1_000_000_000, settings=settings) as session:
        path = Path(session.path or "")
        for number in range(1_000_000):
            play(session, number)
            if number % 50 == 0 and path.stat().st_size > size:
                break
        return session.id


def ways(home: Path, id: str, window: int) -> Iterator[Session]:
    """Compact it by hand, then continue it; then continue it without having compacted it."""
    for by_hand in (True, False):
        fork = f"{id[:-4]}{'aaaa' if by_hand else 'bbbb'}"
        [path] = home.rglob(f"{id}.jsonl")
        (path.parent / f"{fork}.jsonl").write_bytes(path.read_bytes().replace(id.encode(), fork.encode()))
        # Without clearing: shortened answers alone could make enough room.
        settings = Settings(size_clearing=False)
        with Session("offline", home=home, cwd=home, resume=fork, window=window, settings=settings) as session:
            if by_hand:
                done = session.compact()
                assert done.done, done.why
            session.add_user("What is next?")
            assert session.ask().text
            yield session


@pytest.mark.spec("O1", "C7", "B3")
@pytest.mark.parametrize("play", [chat, pastes, failures, chinese])
@pytest.mark.parametrize("window", [16_000, 200_000])
@pytest.mark.parametrize("size", [2_000_000, pytest.param(20_000_000, marks=pytest.mark.exhaustive)], ids=["2MB", "20MB"])
def test_a_large_session_is_compacted_and_continued_offline(tmp_path: Path, play: Play, window: int, size: int) -> None:
    id = played(tmp_path, play, size)
    began = time.monotonic()
    for session in ways(tmp_path, id, window):
        assert not session.window_state.above_autocompact
        done = told(session, "compaction")
        assert [event["by"] for event in done] in (["summary"], ["rules"], []), "none where shorter answers made the room"
        text = str(session.messages)
        assert not done or all(f"## {number}." in text for number in (1, 6)), "no section is cut off"
    assert time.monotonic() - began < FAR_TOO_LONG
