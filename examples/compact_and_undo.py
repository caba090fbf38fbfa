"""A loop of your own with a window that fills up: what is compacted can be looked at, opened again and taken back.

    pip install . && python examples/compact_and_undo.py

The loop is the one of the README: `before_call`, a model, `after_call`, results in between. A function takes the model's part here, so it
needs no key and no network; put `client.messages.create(**request)` in its place and nothing else changes. The summary is made by
the local functions that stand in where no model can be asked.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

import lamina
from lamina import blocks

LOOKUP = {"name": "Lookup", "description": "Looks a service up.", "input_schema": {"type": "object", "properties": {}}}
SERVICES = 24


def model(request: dict[str, Any]) -> dict[str, Any]:
    """Looks things up first, and answers with what was found."""
    last = request["messages"][-1]["content"][-1]
    found = last["type"] == "tool_result"
    look = {"type": "tool_use", "id": f"toolu_{len(request['messages'])}", "name": "Lookup", "input": {}}
    return {
        "id": f"msg_{len(request['messages'])}",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [{"type": "text", "text": "It is up."} if found else look],
        "stop_reason": "end_turn" if found else "tool_use",
        "usage": {"input_tokens": len(str(request["messages"])) // 4, "output_tokens": 20},
    }


def turn(session: lamina.Session, text: str, result: str) -> None:
    """The model is called until it asks for no tool any more."""
    session.add_user(text)
    while calls := calls_of(session.after_call(model(session.before_call()))):
        for call in calls:
            session.add_tool_result(call.id, result)
    session.end_turn()


def calls_of(answer: lamina.Reply) -> list[blocks.ToolUse]:
    return [block for block in answer.blocks if isinstance(block, blocks.ToolUse)]


def main() -> None:
    os.environ.pop("ANTHROPIC_API_KEY", None)
    with (
        tempfile.TemporaryDirectory() as place,
        lamina.Session(
            "anthropic:claude-sonnet-5-5", system="You keep a list.", tools=[LOOKUP], home=place, cwd=place
        ) as session,
    ):
        for number in range(SERVICES):
            log = f"service {number} listens on port {8000 + number}\n" + "checked, all is well\n" * 100
            turn(session, f"Is service {number} up?", log)
        session.pin("Never restart service 7 by hand.")
        session.add_user("Which port has service 3?")
        whole = str(session.before_call()["messages"])
        print(f"{SERVICES} turns: about {session.window_state.tokens:,} tokens")

        seen = session.preview_compaction()
        print(f"a compaction would put a summary in place of {len(seen.summarised)} records and keep {len(seen.kept)}")
        done = session.compact("Keep the ports.")
        print(f"compacted: {done.tokens_before:,} → {done.tokens_after:,} tokens")
        small = str(session.before_call()["messages"])
        print(f"the pin is in it: {'Never restart service 7 by hand.' in small}")
        print(f"the question is in it: {'Which port has service 3?' in small}")
        opened = session.expand(done.boundary)
        print(f"opened again, page 1 of {opened.pages}: {'service 3 listens on port 8003' in opened.text}")

        session.undo()
        print(f"taken back, byte for byte: {str(session.before_call()['messages']) == whole}")


if __name__ == "__main__":
    main()
