"""Memories that come to a message, under a loop and a list of your own, with the official Anthropic SDK.

    pip install ".[anthropic]" && python examples/recall_loop.py

You keep the messages; `sync` tells Lamina what you have, `before_call` gives the request. Where something that was remembered clearly
helps with a message, it stands beside it, once, as a record of its own: your list never holds it, and the next request begins as the
one before. The server runs on this machine and answers by a script, so no key is needed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import anthropic

import lamina
from lamina.testing import MessagesServer

PROMPTS = (
    "What do our integration tests run against?",
    "Rename the variable x to count.",
    "So which database do the integration tests need?",
    "Which day do we deploy the service?",
)


def remember(place: Path) -> None:
    """In another process, on another day."""
    with lamina.Memory.open(place, home=place / "home") as memory:
        memory.save(
            "testing-db",
            type="feedback",
            description="Integration tests run against a real database",
            body="Mocks once hid a broken migration.",
        )
        memory.save("deploy-day", type="project", description="We deploy on Thursdays", body="Never on a Friday.")


def brought(request: dict[str, Any]) -> list[str]:
    """The memories in a request: each stands in a reminder of its own."""
    blocks = [block for message in request["messages"] for block in message["content"] if isinstance(block, dict)]
    texts = [block["text"] for block in blocks if "<recalled-memory>" in block.get("text", "")]
    return [text.split(" (a memory")[0].rsplit("/", 1)[-1] for text in texts]


def main() -> None:
    with tempfile.TemporaryDirectory() as name, MessagesServer() as server:
        place = Path(name)
        remember(place)
        server.answer_with(lambda _: "Understood.")
        client = anthropic.Anthropic(api_key="any", base_url=server.url)
        mine: list[dict[str, Any]] = []
        system = "You help with a shop. " * 300
        given: dict[str, Any] = {"cwd": place, "home": place / "home", "client": client, "system": system}
        with lamina.Session("anthropic:claude-sonnet-5-5", **given) as session:
            for prompt in PROMPTS:
                mine.append({"role": "user", "content": prompt})
                session.sync(mine)
                request = session.before_call()
                response = client.messages.create(**request)
                session.after_call(response)
                session.end_turn()
                mine.append({"role": "assistant", "content": response.content})
                print(f"{prompt}\n  in the request: {', '.join(brought(request)) or 'nothing remembered'}")
            print(f"my list holds {len(mine)} messages and none of it: {'recalled-memory' not in str(mine)}")
            used = session.status.usage
            print(
                f"{used.cache_read / used.prompt:.0%} of all input was read from the cache, {session.status.cache_breaks} breaks"
            )


if __name__ == "__main__":
    main()
