"""Sessions of Codex and pi that begin as copies of other ones, with words of our own."""

from __future__ import annotations

from typing import Any

from .agents import codex_message, codex_row, codex_usage


def codex_answers(count: int, second: int = 1) -> list[dict[str, Any]]:
    """Answers as Codex records them: encrypted reasoning, a text, and their usage."""
    return [
        row
        for number in range(count)
        for row in (
            codex_message("user", f"Question {number}?", second + number),
            codex_row("response_item", {"type": "reasoning", "encrypted_content": f"gAAA{second}-{number}"}, second + number),
            codex_message("assistant", "Yes.", second + number),
            codex_usage(1_000, 0, 20, second + number),
        )
    ]


def codex_session(*rows: dict[str, Any], **meta: Any) -> list[dict[str, Any]]:
    return [codex_row("session_meta", {"cwd": "/p", **meta}), codex_row("turn_context", {"model": "gpt-5"}), *rows]


def pi_answers(count: int, minute: int = 0) -> list[dict[str, Any]]:
    usage = {"input": 100, "output": 10, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0.25}}
    answer = {"role": "assistant", "content": [{"type": "text", "text": "Yes."}], "model": "nobody-knows-1", "usage": usage}
    return [
        row
        for number in range(count)
        for time in [f"2026-05-01T09:{minute:02}:{number:02}.000Z"]
        for row in (
            {"type": "message", "timestamp": time, "message": {"role": "user", "content": f"Question {number}?"}},
            {"type": "message", "timestamp": time, "message": {**answer, "timestamp": 1_777_000_000_000 + 60 * minute + number}},
        )
    ]


def pi_session(id: str, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "session", "id": id, "timestamp": "2026-05-01T10:00:00.000Z", "cwd": "/p"}, *rows]


def later(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines as a fork has them, which is written in one moment."""
    return [{**row, "timestamp": "2026-06-01T08:00:00.000Z", "ordinal": at} for at, row in enumerate(rows)]


FIRST = {"codex": codex_session(*codex_answers(20), id="first"), "pi": pi_session("first", *pi_answers(20))}
COPIES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "a copied rollout of Codex": ("codex", [*FIRST["codex"], *codex_answers(1, 40)]),
    "a fork in Codex": ("codex", codex_session(*later(codex_answers(20)), *codex_answers(1, 40), id="fork")),
    "a copied session of pi": ("pi", [*FIRST["pi"], *pi_answers(1, 40)]),
    "a branch in pi": ("pi", pi_session("branch", *pi_answers(20), *pi_answers(1, 40))),
}
