"""What showing a tool result once saves: a session of calls, each with one long result, kept whole and shown once.

    python bench/show_once.py [--calls 30] [--characters 6000] [--json]

Both sessions run in one process, over real HTTP against a loopback server with a prompt cache (marks, a look-back of 20 blocks). They
make the same calls and get the same results. At the end each forks once, as a summary does.

units      price of all input: read from the cache 0.1, written 1.25, others 1
lost       tokens that a request left in the cache and the next one did not read; above 0 would be a fault (exit code 1)
breaks     announced cache breaks; above 0 would be a fault (exit code 1)
context    tokens of the last request
fork       tokens of the fork's request

The same sessions over Chat Completions, where the server caches by itself: read 0.1, others 1. The tokens are the server's own count.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

from msgspec.structs import replace

from lamina.conversation import forks
from lamina.core.effects import drive
from lamina.core.policy import CLASSIC, OncePolicy, Policy
from lamina.core.settings import Settings
from lamina.fork.fork import run_fork
from lamina.providers.anthropic import AnthropicProvider
from lamina.providers.openai import OpenAIProvider
from lamina.session.base import working
from lamina.session.session import Session
from lamina.testing import MessagesServer, Received
from lamina.testing.script import Answer

READ, WRITTEN = 0.1, 1.25
# A model that does not bind its thinking to everything before it: with one that does, nothing is shown once.
MODEL = "claude-sonnet-4-6"
CHAT_MODEL = "gpt-5"
TOOLS = [{"name": "Bash", "description": "Run a command.", "input_schema": {"type": "object"}}]
SYSTEM = "You are a coding agent. " * 60
POLICIES = {"kept": CLASSIC, "once": replace(CLASSIC, once=OncePolicy(from_chars=1_500, preview=500))}


class Row(NamedTuple):
    wire: str
    results: str
    units: int
    lost: int
    breaks: int
    context: int
    fork: int


def output(number: int, characters: int) -> str:
    return "".join(f"{number:03} line {line:05} of the output\n" for line in range(characters // 30 + 1))[:characters]


def calling(calls: int) -> Callable[[Received], Answer | str]:
    """The model's part: one call an answer, then a last word."""
    made = 0

    def answer(received: Received) -> Answer | str:
        nonlocal made
        if received.fork or made == calls:
            return "Done."
        made += 1
        use = {"type": "tool_use", "id": f"toolu_{made:03}", "name": "Bash", "input": {"command": f"make step-{made}"}}
        return Answer(blocks=(use,), stop_reason="tool_use")

    return answer


def run(session: Session, characters: int) -> None:
    session.add_user("Run all steps.")
    number = 0
    while calls := session.ask().tool_uses:
        for call in calls:
            number += 1
            session.add_tool_result(call.id, output(number, characters))


def measure(wire: str, results: str, policy: Policy, *, calls: int, characters: int) -> Row:
    with tempfile.TemporaryDirectory() as home, MessagesServer() as server:
        server.answer_with(calling(calls))
        make = AnthropicProvider if wire == "messages" else OpenAIProvider
        url = server.url if wire == "messages" else f"{server.url}/v1"
        provider = make(MODEL if wire == "messages" else CHAT_MODEL, base_url=url, api_key="any", max_retries=0)
        alone: dict[str, Any] = {
            "settings": Settings(session_notes=False, size_clearing=False),
            "instructions": False,
            "memory": False,
        }
        with Session(provider, home=home, cwd=home, policy=policy, system=SYSTEM, tools=TOOLS, **alone) as session:
            run(session, characters)
            with working(session) as c:
                drive(run_fork(forks.hand_over(c), "Summarise.", purpose="summary"), forks.side(c))
            breaks = session.status.cache_breaks
        provider.close()
        return row(wire, results, server.requests, breaks)


def row(wire: str, results: str, requests: list[Received], breaks: int) -> Row:
    main = [received for received in requests if not received.fork]
    uses = [received.use for received in main if received.use is not None]
    # An automatic cache holds whole requests; what it lost is what the session reports.
    lost = sum(max(0, before.read + before.write_5m + before.write_1h - after.read) for before, after in pairwise(uses))
    units = sum(READ * use.read + WRITTEN * use.write_5m + use.plain for use in uses)
    fork = next(received.use for received in requests if received.fork and received.use is not None)
    return Row(wire, results, round(units), lost, breaks, uses[-1].total, fork.total)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=30)
    parser.add_argument("--characters", type=int, default=6_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = [
        measure(wire, results, policy, calls=given.calls, characters=given.characters)
        for wire in ("messages", "chat")
        for results, policy in POLICIES.items()
    ]
    if given.json:
        print(json.dumps([row._asdict() for row in rows], indent=2))
    else:
        print(f"{given.calls} calls with one result of {given.characters:,} characters each")
        print(f"{'wire':10}{'results':10}{'units':>10}{'lost':>8}{'breaks':>8}{'context':>10}{'fork':>10}")
        for one in rows:
            print(f"{one.wire:10}{one.results:10}{one.units:>10,}{one.lost:>8,}{one.breaks:>8}{one.context:>10,}{one.fork:>10,}")
    return 1 if any(one.lost or one.breaks for one in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
