"""Lamina under a loop of your own, with the official Anthropic SDK.

    pip install ".[anthropic]" && python examples/anthropic_loop.py

Talks to a server on this machine that answers by a script and bills by a model of the provider's prompt cache, so it needs no
key. Point `client` at the real API and the loop stays as it is.
"""

from __future__ import annotations

from typing import Any

import anthropic

import lamina
from lamina.testing import MessagesServer

TOOLS = [
    {
        "name": "Read",
        "description": "Read a file of the project.",
        "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]},
    }
]


def run_tool(name: str, arguments: Any) -> str:
    return f"{name} {arguments['file_path']}\n" + "def add(a, b):\n    return a - b\n" * 200


def turn(session: lamina.Session, client: anthropic.Anthropic, prompt: str) -> str:
    session.add_user(prompt)
    while True:
        reply = session.after_call(client.messages.create(**session.before_call()))
        usage = reply.usage or lamina.Usage()
        print(f"  {usage.prompt:>6,} tokens sent, {usage.cache_read:>6,} read from the cache, {usage.cache_write:>5,} written")
        if not reply.tool_uses:
            session.end_turn()
            return reply.text
        for call in reply.tool_uses:
            session.add_tool_result(call.id, run_tool(call.name, call.input))


def main() -> None:
    with MessagesServer() as server:
        server.reply(
            thinking="The test calls add.", tool_use=[("Read", {"file_path": "add.py"}), ("Read", {"file_path": "test.py"})]
        )
        server.reply(text="add() subtracts.")
        server.reply(tool_use=("Read", {"file_path": "setup.cfg"}))
        server.reply(text="Nothing there changes that.")
        client = anthropic.Anthropic(api_key="any", base_url=server.url)
        system = "You fix failing tests. " * 300
        with lamina.Session("anthropic:claude-sonnet-5-5", system=system, tools=TOOLS, in_memory=True, client=client) as session:
            for prompt in ("Why does the test fail?", "Is it the configuration?"):
                print(prompt)
                print(f"  → {turn(session, client, prompt)}")
            used = session.status.usage
            print(
                f"{used.cache_read / used.prompt:.0%} of all input was read from the cache, {session.status.cache_breaks} breaks"
            )


if __name__ == "__main__":
    main()
