"""Ten sessions by a script, through public names alone: their requests and their transcripts.

Of each request and each record of a transcript the digest is kept, and of the last request all of it: a difference shows where it begins.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lamina

from . import frozen
from .record import PROJECT, settle_times, settled

MODEL = "anthropic:claude-sonnet-5-5"
LOOKUP = {"name": "lookup", "description": "Look a service up.", "input_schema": {"type": "object", "properties": {}}}
READ = {
    "name": "Read",
    "description": "Read a file.",
    "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]},
}
QUIET: dict[str, Any] = {"cwd": PROJECT, "extraction": False, "dreaming": False, "recall": False, "system": "You keep a list."}


class Model:
    """Answers by rules: it calls the tool for a question, and answers once it has the result."""

    def __init__(self, tool: dict[str, Any] | None = LOOKUP, *, openai: bool = False) -> None:
        self.requests: list[Any] = []
        self._tool, self._openai = tool, openai

    def __call__(self, request: Any) -> dict[str, Any]:
        self.requests.append(request)
        number, last = len(self.requests), request["messages"][-1]
        usage = len(json.dumps(request["messages"], ensure_ascii=False)) // 4
        if self._openai:
            return self._completion(number, last, usage)
        answered = self._tool is None or any(block["type"] == "tool_result" for block in last["content"])
        name = self._tool["name"] if self._tool else ""
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {"file_path": "src/tax.py"}}
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": [{"type": "text", "text": f"Answer {number}."} if answered else call],
            "stop_reason": "end_turn" if answered else "tool_use",
            "usage": {"input_tokens": usage, "output_tokens": 20},
        }

    def _completion(self, number: int, last: Any, usage: int) -> dict[str, Any]:
        answered = last["role"] == "tool"
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "lookup", "arguments": "{}"}}
        message = (
            {"role": "assistant", "content": f"Answer {number}."}
            if answered
            else {"role": "assistant", "content": None, "tool_calls": [call]}
        )
        choice = {"index": 0, "message": message, "finish_reason": "stop" if answered else "tool_calls"}
        counted = {"prompt_tokens": usage, "completion_tokens": 20, "total_tokens": usage + 20}
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt-5.5",
            "choices": [choice],
            "usage": counted,
        }


def turn(session: lamina.Session, model: Model, text: str, result: str = "all is well\n") -> None:
    session.add_user(text)
    while calls := session.after_call(model(session.before_call())).tool_uses:
        for call in calls:
            session.add_tool_result(call.id, result)
    session.end_turn()


def log_of(number: int, lines: int = 100) -> str:
    return f"service {number} listens on port {8000 + number}\n" + "checked, all is well\n" * lines


def plain(model: Model, **options: Any) -> Path | None:
    with lamina.Session(MODEL, tools=[LOOKUP], **QUIET, **options) as session:
        for number in range(4):
            turn(session, model, f"Is service {number} up?", log_of(number))
        return session.path


def with_memory(model: Model) -> Path | None:
    with lamina.Session(MODEL, tools=[LOOKUP], cwd=PROJECT, offer_tools=True, extraction=False, dreaming=False) as session:
        turn(session, model, "What do integration tests use as a database?")
        turn(session, model, "Please always write the changelog in English.")
        return session.path


def large_results(model: Model) -> Path | None:
    with lamina.Session(MODEL, tools=[LOOKUP], **QUIET) as session:
        turn(session, model, "Look at everything.", "".join(f"{number}: {log_of(number, 2)}" for number in range(1_500)))
        turn(session, model, "And again.", log_of(1, 1_200))
        turn(session, model, "Once more.", "")
        return session.path


def compaction(model: Model) -> Path | None:
    with lamina.Session(MODEL, tools=[LOOKUP], **QUIET) as session:
        for number in range(12):
            turn(session, model, f"Is service {number} up?", log_of(number))
        session.pin("Never restart service 7 by hand.")
        session.compact("Keep the ports.")
        turn(session, model, "Which port has service 3?")
        session.undo()
        turn(session, model, "And service 4?")
        return session.path


def partial(model: Model) -> Path | None:
    with lamina.Session(MODEL, tools=[LOOKUP], **QUIET) as session:
        for number in range(8):
            turn(session, model, f"Is service {number} up?", log_of(number))
        session.hide_messages(turns="2")
        turn(session, model, "What is hidden?")
        path = session.path
    with lamina.Session(MODEL, tools=[LOOKUP], resume=path, **QUIET) as session:
        turn(session, model, "And after a resume?")
        return session.path


def small_window(model: Model) -> Path | None:
    with lamina.Session(MODEL, tools=[READ], window=20_000, policy="classic", **QUIET) as session:
        for number in range(24):
            turn(session, model, f"Is service {number} up?", log_of(number, 150))
        return session.path


def own_list(model: Model) -> Path | None:
    messages: list[Any] = []
    with lamina.Session(MODEL, tools=[LOOKUP], **QUIET) as session:
        for number in range(3):
            messages.append({"role": "user", "content": f"Is service {number} up?"})
            for _ in range(2):
                session.sync(messages)
                reply = model(session.before_call())
                session.after_call(reply)
                messages.append({"role": "assistant", "content": reply["content"]})
                if reply["stop_reason"] == "tool_use":
                    result = {"type": "tool_result", "tool_use_id": reply["content"][0]["id"], "content": log_of(number)}
                    messages.append({"role": "user", "content": [result]})
            session.end_turn()
        session.sync([*messages[:4], {"role": "user", "content": "Another way."}])
        session.after_call(model(session.before_call()))
        return session.path


def in_async_code(model: Model) -> Path | None:
    async def run() -> Path | None:
        async with lamina.AsyncSession(MODEL, tools=[LOOKUP], **QUIET) as session:
            for number in range(3):
                session.add_user(f"Is service {number} up?")
                while calls := (await session.after_call(model(await session.before_call()))).tool_uses:
                    for call in calls:
                        session.add_tool_result(call.id, log_of(number))
                await session.end_turn()
            return session.path

    return asyncio.run(run())


def openai(model: Model) -> Path | None:
    with lamina.Session("openai:gpt-5.5", tools=[LOOKUP], **QUIET) as session:
        for number in range(4):
            turn(session, model, f"Is service {number} up?", log_of(number, 300))
        return session.path


SCRIPTS: dict[str, tuple[Callable[[Model], Path | None], Callable[[], Model]]] = {
    "a loop": (plain, Model),
    "a loop under thrifty": (lambda model: plain(model, policy="thrifty"), Model),
    "memory and our tools": (with_memory, Model),
    "large results": (large_results, Model),
    "a compaction and its undo": (compaction, Model),
    "hidden messages and a resume": (partial, Model),
    "a small window under classic": (small_window, lambda: Model(READ)),
    "a list of the caller's": (own_list, Model),
    "async": (in_async_code, Model),
    "openai": (openai, lambda: Model(openai=True)),
}


_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def numbered(lines: list[str]) -> list[str]:
    """Replace ids by the order in which they come up, and offsets: work in the background writes records of its own, at no fixed moment."""
    numbers: dict[str, int] = {}
    lines = [re.sub(r'("(?:start|previous)": ?)\d+', r'\1"<offset>"', settled(line)) for line in lines]
    return [_ID.sub(lambda id: f"<id {numbers.setdefault(id[0], len(numbers))}>", line) for line in lines]


def digest(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()[:16]


def record_of(line: str) -> str:
    row = json.loads(line)
    return f"{row.get('type')} {row.get('subtype', '')} {digest(line)}".replace("  ", " ")


def sessions() -> dict[str, Any]:
    answers = {}
    for name, (script, make) in SCRIPTS.items():
        frozen.seed(name)
        model = make()
        path = script(model)
        settle_times()
        assert path is not None
        # Events tell of work in the background.
        rows = [row for row in path.read_text("utf-8").splitlines() if '"kind":"event"' not in row.replace(" ", "")]
        requests = numbered([json.dumps(request, ensure_ascii=False) for request in model.requests])
        answers[name] = {
            "requests": [digest(request) for request in requests],
            "last": json.loads(requests[-1]),
            "transcript": [record_of(row) for row in numbered(rows)],
        }
    return answers
