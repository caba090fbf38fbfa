"""Lamina under a loop of your own, with the official OpenAI SDK; any server that speaks Chat Completions will do.

    pip install ".[openai]" && python examples/openai_loop.py

Talks to a server on this machine that answers by a script and caches prefixes as OpenAI documents it, so it needs no key.
"""

from __future__ import annotations

import openai

import lamina
from lamina.testing import MessagesServer

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "Read",
            "description": "Read a file of the project.",
            "parameters": {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]},
        },
    }
]


def turn(session: lamina.Session, client: openai.OpenAI, prompt: str) -> str:
    session.add_user(prompt)
    while True:
        reply = session.after_call(client.chat.completions.create(**session.before_call()))
        usage = reply.usage or lamina.Usage()
        print(f"  {usage.prompt:>6,} tokens sent, {usage.cache_read:>6,} read from the cache")
        if not reply.tool_uses:
            session.end_turn()
            return reply.text
        for call in reply.tool_uses:
            session.add_tool_result(call.id, "def add(a, b):\n    return a - b\n" * 200)


def main() -> None:
    with MessagesServer() as server:
        server.reply(tool_use=[("Read", {"file_path": "add.py"}), ("Read", {"file_path": "test.py"})])
        server.reply(text="add() subtracts.")
        server.reply(text="No.")
        client = openai.OpenAI(api_key="any", base_url=server.openai_url)
        system = "You fix failing tests. " * 300
        with lamina.Session("openai:gpt-5.5", system=system, tools=TOOLS, in_memory=True, client=client) as session:
            for prompt in ("Why does the test fail?", "Is it the configuration?"):
                print(prompt)
                print(f"  → {turn(session, client, prompt)}")
            used = session.status.usage
            print(
                f"{used.cache_read / used.prompt:.0%} of all input was read from the cache, {session.status.cache_breaks} breaks"
            )


if __name__ == "__main__":
    main()
