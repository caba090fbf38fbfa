"""All seven layers under a loop of your own, with the official Anthropic SDK.

    pip install ".[anthropic]" && python examples/whole_session.py

Talks to a server on this machine that answers by a script, so it needs no key. The loop in `turn` is the one of the README. The script
makes every layer work: a large result is spilled and opened again, old results are cleared, notes are kept, the conversation is
compacted, what the user said is saved, recalled in a second session, and consolidated by a dream. The last line counts the layers.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic

import lamina
from lamina.testing import MessagesServer, Received
from lamina.testing.script import Step, make_answer

MODEL = "anthropic:claude-sonnet-5-5"
TOOLS = [
    {
        "name": "search_code",
        "description": "Search the files of the project.",
        "input_schema": {"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]},
    }
]
PASTED = "Here is a list that I copied from the tracker, line by line. " * 100
WISH = "From now on, always run the integration tests against a real database."


def turn(session: lamina.Session, client: anthropic.Anthropic, prompt: str) -> str:
    """The loop of the README."""
    session.add_user(prompt)
    while True:
        reply = session.after_call(client.messages.create(**session.before_call()))
        for call in reply.tool_uses:
            if not session.answer_tool(call):  # not one of Lamina's own tools
                session.add_tool_result(call.id, search_code(call.input))
        if not reply.tool_uses:
            session.end_turn()
            return reply.text


def search_code(arguments: Any) -> str:
    lines = 9_000 if arguments["pattern"] == "everything" else 200
    return "".join(f"src/file_{number}.py:{number}: {arguments['pattern']} is used here\n" for number in range(lines))


# The script


def answers() -> Callable[[Received], Step | None]:
    """A model that searches, opens what left its context, writes notes and a summary, and lists what the user asked for."""
    asked = 0

    def answer(received: Received) -> Step | None:
        nonlocal asked
        purpose = received.fork.rpartition("-")[0]
        if purpose:
            return make_answer(text=beside(purpose, json.dumps(received.messages[-1])))
        last = received.messages[-1]["content"]
        shown = json.dumps(last)
        if "Expand with node=" in shown:
            node = shown.partition("Expand with node=")[2].partition(" ")[0]
            return make_answer(tool_use=("Expand", {"node": node, "find": "file_8999.py"}))
        if any(block["type"] == "tool_result" for block in last):
            return make_answer(text="Found. " * 900)
        asked += 1
        if "remember" in shown:
            return make_answer(tool_use=("MemorySearch", {"query": "integration tests database"}))
        return make_answer(tool_use=("search_code", {"pattern": "everything" if asked == 1 else f"name_{asked}"}))

    return answer


def beside(purpose: str, directive: str) -> str:
    """What forks answer: notes, a summary, the memory that the user's first message asks for."""
    memory = {
        "file": "testing-db.md",
        "type": "feedback",
        "description": "Integration tests run against a real database",
        "body": "Run the integration tests against a real database.",
    }
    memories = [memory] if "From now on" in directive else []
    return {
        "notes": "<notes>\n# Current State\nSearching the project for names.\n</notes>",
        "extraction": f"<memories>{json.dumps(memories)}</memories>",
        "dream": "Memory is in order.",
    }.get(purpose, "<summary>\n## 1. Request\nThe user looks for names in the project.\n</summary>")


def main() -> None:
    fired: dict[str, int] = {}

    def count(name: str, data: Any) -> None:
        done = {"extraction": "files", "dream": "id", "recall": "files", "notes": "tokens"}.get(name)
        fired[name] = fired.get(name, 0) + (done is None or bool(data.get(done)))

    with tempfile.TemporaryDirectory() as directory, MessagesServer() as server:
        server.answer_with(answers())
        client = anthropic.Anthropic(api_key="any", base_url=server.url)
        place: dict[str, Any] = {"home": Path(directory, "home"), "cwd": Path(directory, "work"), "client": client}
        place["cwd"].mkdir()
        settings = lamina.Settings(
            # The default policy keeps notes only where calls are free. Instead, it makes a summary ahead of time.
            policy_name="classic",
            dream_sessions=1,
        )
        options: dict[str, Any] = {
            "system": "You search.",
            "tools": TOOLS,
            "offer_tools": True,
            "window": 40_000,
            "host": lamina.Host(observer=count),
        }
        for prompts in (
            [WISH, *(f"Where is name_{number} used? {PASTED}" for number in range(2, 27))],
            ["What do you remember about the integration tests?"],
        ):
            with lamina.Session(MODEL, settings=settings, **options, **place) as session:
                for prompt in prompts:
                    turn(session, client, prompt)
                    wait(session)
                print(
                    f"{session.id[:8]}: {session.status.usage.prompt:,} tokens sent, {session.status.cache_breaks} announced breaks"
                )
        opened = [received for received in server.requests if "file_8999.py:8999" in json.dumps(received.messages[-1])]
        fired["expand"] = len(opened)
        for name in ("spill", "expand", "clearing", "notes", "compaction", "extraction", "recall", "dream"):
            print(f"{name:<12} {fired.get(name, 0)}")
        print(f"refused requests: {sum(received.refused for received in server.requests)}")


def wait(session: lamina.Session) -> None:
    """Wait for background work, so that every run of this program does the same."""
    until = time.monotonic() + 60
    while session.status.background_jobs and time.monotonic() < until:
        time.sleep(0.01)


if __name__ == "__main__":
    os.environ.pop("LAMINA_HOME", None)
    main()
