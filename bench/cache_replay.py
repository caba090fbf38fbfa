"""Recorded sessions replayed turn by turn: real requests, a real SDK, a server with a prompt cache.

    python bench/cache_replay.py DIRECTORY [--sdk] [--limit N] [--json]

DIRECTORY holds Claude Code transcripts (for example ~/.claude/projects). Each conversation is driven through `lamina.Session`: what the
person said and the tools returned goes in, every recorded answer is served by `lamina.testing`'s server (over loopback; with --sdk through
the official Anthropic SDK), and the server bills each request by its model of the provider's cache. Shown: requests refused (aim: 0),
tokens read from the cache beside what an ideal byte-prefix cache would have read (aim: at least 99% of it), and breaks without a decision
(aim: 0). Nothing of the transcripts is written anywhere.
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lamina.core.cache import PrefixCache
from lamina.core.log import Log
from lamina.core.records import Attachment, Boundary, Clear, Message, Record
from lamina.disk.transcripts.store import read_transcript
from lamina.session.session import Session
from lamina.testing import Answer, MessagesServer

# Everything fits: what is measured is the cache, not the window.
WINDOW = 100_000_000
MODEL = "claude-sonnet-5-5"
TOOLS = [{"name": "Read", "description": "Read a file. " * 100, "input_schema": {"type": "object"}}]
SYSTEM = "You are a coding agent. " * 300


def conversation(path: Path, *, summaries: bool = True) -> list[dict[str, Any]]:
    """The whole recorded conversation as the API's messages, compactions left out, and their summaries if asked."""

    def read() -> Iterator[Record]:
        for record in read_transcript(path):
            if not isinstance(record, Boundary | Clear) and (summaries or not (isinstance(record, Message) and record.summary)):
                yield record

    log = Log.load(read)
    if not any(isinstance(record, Message | Attachment) for record in read()):
        return []
    return log.view.messages()


def post(url: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def send(request: dict[str, Any]) -> dict[str, Any]:
        plain = {name: value for name, value in request.items() if name not in ("extra_headers", "extra_body")}
        body = json.dumps({**plain, **request.get("extra_body", {})}).encode()
        headers = {"content-type": "application/json", "x-api-key": "k", **request.get("extra_headers", {})}
        call = urllib.request.Request(f"{url}/v1/messages", body, headers)
        with urllib.request.urlopen(call) as response:
            answer: dict[str, Any] = json.load(response)
            return answer

    return send


def through_sdk(url: str) -> Callable[[dict[str, Any]], Any]:
    import anthropic

    client = anthropic.Anthropic(api_key="k", base_url=url, max_retries=0)
    return lambda request: client.messages.create(**request)


def replay(messages: list[dict[str, Any]], *, sdk: bool) -> dict[str, int]:
    figures = dict.fromkeys(("requests", "refused", "prompt", "read", "ideal", "breaks", "unexplained"), 0)
    with (
        MessagesServer() as server,
        Session(
            f"anthropic:{MODEL}", in_memory=True, system=SYSTEM, tools=TOOLS, window=WINDOW, instructions=False, memory=False
        ) as session,
    ):
        server.window = WINDOW
        send = through_sdk(server.url) if sdk else post(server.url)
        ideal = PrefixCache()
        for message in messages:
            if message["role"] == "user":
                hear(session, message["content"])
                continue
            server.answer_with(lambda _, message=message: scripted(message["content"]))
            request = session.before_call()
            figures["requests"] += 1
            figures["ideal"] += ideal.use(request).read
            try:
                session.after_call(send(request))
            except urllib.error.HTTPError as error:
                figures["refused"] += 1
                print(f"refused: {error.read()[:300]!r}", file=sys.stderr)
                break
        figures["prompt"], figures["read"] = session.status.usage.prompt, session.status.usage.cache_read
        figures["breaks"] = session.status.cache_breaks
        figures["unexplained"] = len(session.status.cache_misses)
    return figures


def scripted(content: list[dict[str, Any]]) -> Answer:
    """The recorded answer; the server signs thinking itself."""
    calls = any(block["type"] == "tool_use" for block in content)
    blocks = tuple({key: value for key, value in block.items() if key != "signature"} for block in content)
    return Answer(blocks=blocks, stop_reason="tool_use" if calls else "end_turn")


def hear(session: Session, content: list[dict[str, Any]]) -> None:
    for block in content:
        if block["type"] == "tool_result":
            session.add_tool_result(block["tool_use_id"], block["content"], is_error=bool(block.get("is_error")))
    said = [block for block in content if block["type"] != "tool_result"]
    if said:
        session.add_user(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--sdk", action="store_true", help="send through the official Anthropic SDK")
    parser.add_argument("--limit", type=int, default=1_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows: dict[str, dict[str, int]] = {}
    for path in sorted(options.directory.rglob("*.jsonl"))[: options.limit]:
        messages = conversation(path)
        if any(message["role"] == "assistant" for message in messages):
            rows[str(path.relative_to(options.directory))] = figures = replay(messages, sdk=options.sdk)
            if not options.json:
                show(path.stem[:30], figures)
    total = {name: sum(row[name] for row in rows.values()) for name in next(iter(rows.values()))}
    if options.json:
        print(json.dumps({"sessions": rows, "total": total}))
    else:
        show(f"all {len(rows)} sessions", total)
    sys.exit(bool(total["refused"] or total["unexplained"]))


def show(name: str, row: dict[str, int]) -> None:
    share = row["read"] / row["ideal"] if row["ideal"] else 1.0
    print(
        f"{name:<32} {row['requests']:>6} requests {row['refused']:>3} refused  "
        f"{row['read'] / max(1, row['prompt']):>6.1%} read from cache, {share:>7.2%} of ideal  "
        f"{row['breaks']:>3} breaks {row['unexplained']:>3} unexplained",
        flush=True,
    )


if __name__ == "__main__":
    main()
