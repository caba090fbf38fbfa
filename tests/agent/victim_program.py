"""A program to be killed: an agent that works until it reaches a point, says so, and waits for the end.

    python victim_program.py URL DIRECTORY POINT [SESSION TO RESUME]

POINT is an event of the agent ("tool_call", "message_stop"), a kind of delta ("text_delta"), "turn" for the end of the turn, or "never"
for one that the server or a command holds up.
"""

from __future__ import annotations

import sys
from typing import Any

from lamina.agent.agent import Agent
from lamina.providers.anthropic import AnthropicProvider


def main(url: str, directory: str, point: str, resume: str | None = None) -> None:
    def heard(event: dict[str, Any]) -> None:
        if point in (event["type"], event.get("delta", {}).get("type")):
            print("here", flush=True)
            sys.stdin.read()

    provider = AnthropicProvider("claude-sonnet-5-5", api_key="any", base_url=url)
    session_id = "killed" if resume is None else None
    with Agent.open(provider, cwd=directory, session_id=session_id, resume=resume, mode="all", on_event=heard) as agent:
        agent.run("Do the work.")
        heard({"type": "turn"})
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
