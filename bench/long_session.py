"""A session of 504 tool calls through layers 1 to 4, with its receipts; then the same one killed after every step; then all of it undone.

    python bench/long_session.py [--turns N] [--once] [--json]

Over real HTTP against a loopback server, in a window of 40,000 tokens: small and large results, errors, images, bytes, JSON, Chinese text.
Three parts, each with a sentence at its end; the exit code is 1 if one of them does not hold.

1. Played through. Every decision is printed: what made it, and what its receipt says became of the records in view, each of which has
   exactly one fate. Every request is checked: its size, and that it starts with the one before or says why not.
2. Killed after every step (--once leaves it out). Each step (a result handed in, a question, a call of the model) is done by a process of
   its own that resumes the session, does it, and is killed (SIGKILL) without closing anything. Every request must be the one of part 1,
   but for ids that are made anew.
3. Undone, last first. In the end the request is what was said, byte for byte, as the transcript's lines have it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from growing import MODEL, settle

from lamina.conversation.isolate import take_job_results
from lamina.core.errors import UsageError
from lamina.core.log import Log
from lamina.core.receipts import open_receipt, read_receipt
from lamina.core.records import Boundary, Clear, Record, Span, Spill
from lamina.disk.transcripts.store import read_transcript
from lamina.layers.l3_notes import offline as notes
from lamina.providers.anthropic import AnthropicProvider
from lamina.session.base import working
from lamina.session.session import Session
from lamina.testing import Answer, MessagesServer, Received, check_prefixes

NAME = "long"
WINDOW = 40_000
TURNS, ROUNDS, TOGETHER = 42, 2, 6
TOOLS: list[dict[str, Any]] = [
    {"name": name, "description": f"{name} does its work.", "input_schema": {"type": "object"}}
    for name in ("Read", "Bash", "Grep")
]
SUMMARY = "<analysis>as asked</analysis>\n<summary>\n## 1. Primary request and intent\nTo look at every file.\n</summary>"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
# An id, or the beginning of one as a fold names itself.
UUID = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?\b")
# Imported once by the process that the others are forked from; the SDK alone takes longer than a step.
PRELOADED = [
    "anthropic",
    "lamina.session",
    "lamina.turn",
    "lamina.layers.l4_compact.step",
    "lamina.testing",
    "lamina.providers.anthropic",
]
# A step that takes longer is stuck.
PATIENCE = 120.0

Decision = Boundary | Clear | Span


def lines(number: int, size: int) -> str:
    line = f"{number}: a line that says what result {number} is about\n"
    return line * (size // len(line) + 1)


OUTPUTS: tuple[Callable[[int], Any], ...] = (
    lambda number: "",
    lambda number: lines(number, 1_500),
    lambda number: lines(number, 2_500),
    lambda number: lines(number, 60_000),
    lambda number: [{"type": "text", "text": f"picture {number}"}, IMAGE],
    lambda number: {"number": number, "rows": [[number, "cell"] for _ in range(60)]},
    lambda number: f"第{number}号结果：这里没有什么特别的内容。" * 60,
    lambda number: bytes(range(256)) * 200 + b"%d" % number,
    lambda number: lines(number, 3_500),
    lambda number: f"{number}: no such file\n" * 20,
)


class Model:
    """Calls six tools twice, then answers; keeps notes and writes summaries when a fork asks. What comes next is a matter of counting."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, received: Received) -> Answer | str:
        if received.fork:
            return SUMMARY if received.fork.startswith("summary") else Answer(blocks=tuple(notes.answer(received.body)))
        turns, step = divmod(self.asked, ROUNDS + 1)
        self.asked += 1
        if step == ROUNDS:
            return f"Done with task {turns + 1}."
        first = (turns * ROUNDS + step) * TOGETHER
        calls = [
            {
                "type": "tool_use",
                "id": f"toolu_{number:04}",
                "name": TOOLS[number % len(TOOLS)]["name"],
                "input": {"file_path": f"/w/src/file{number}.py"},
            }
            for number in range(first, first + TOGETHER)
        ]
        return Answer(blocks=({"type": "text", "text": f"I look at {TOGETHER} more."}, *calls), stop_reason="tool_use")


@contextmanager
def opened(url: str, place: Path, **given: Any) -> Iterator[Session]:
    place.mkdir(exist_ok=True)  # a session needs a working directory that exists
    with closing(AnthropicProvider(MODEL, base_url=url, api_key="any", max_retries=0)) as provider:
        session = Session(
            provider,
            home=place,
            cwd=place,
            tools=TOOLS,
            system="Be careful.",
            max_tokens=1_000,
            window=WINDOW,
            instructions=False,
            memory=False,
            **given,
        )
        with session:
            yield session


def move(session: Session, turns: int) -> bool:
    """The next step, read off the session alone; False when all is done."""
    if session.status.open_calls:
        call = session.status.open_calls[0]
        number = int(call[-4:])
        session.add_tool_result(call, OUTPUTS[number % len(OUTPUTS)](number), is_error=number % len(OUTPUTS) == len(OUTPUTS) - 1)
    elif not session.messages or session.messages[-1]["role"] == "assistant":
        number = int(session.messages[-1]["content"][-1]["text"].split()[-1].rstrip(".")) if session.messages else 0
        if number >= turns:
            return False
        if number == turns // 2 and not summarised(session):
            session.compact("Keep the names of the files.")
            return True
        session.add_user(f"Task {number + 1}: look at what is there and say what it means.")
    else:
        session.ask()
        settle(session)
        with working(session) as c:
            take_job_results(c)
    return True


def summarised(session: Session) -> bool:
    """Notes make a summary's call needless most of the time, so one is asked for by hand, half-way."""
    assert session.path is not None
    return any(isinstance(one, Boundary) and one.receipt["by"] == "summary" for one in read_transcript(session.path))


def plain(received: Received) -> str:
    """A request without what differs between two runs: the ids that are made anew."""
    return UUID.sub("ID", json.dumps({name: received.body.get(name) for name in ("model", "system", "tools", "messages")}))


def chats(server: MessagesServer) -> list[Received]:
    return [received for received in server.requests if not received.fork]


# Part 1


def played(place: Path, turns: int) -> tuple[list[str], dict[str, Any]]:
    with MessagesServer() as server:
        server.window = WINDOW
        server.answer_with(Model())
        with opened(server.url, place, session_id=NAME) as session:
            while move(session, turns):
                pass
            assert session.path is not None
            written = list(read_transcript(session.path))
            breaks = session.status.cache_breaks
        told = shown(written)
        found = check_prefixes(server.requests, decisions=sum(told.values()))
        sizes = [received.use.total for received in server.requests if received.use is not None]
        figures = {
            "requests": len(chats(server)),
            "decisions": dict(told),
            "spills": sum(isinstance(record, Spill) for record in written),
            "breaks": breaks,
            "unannounced": len(found),
            "refused": sum(received.refused for received in server.requests),
            "largest": max(sizes),
        }
        return [plain(received) for received in chats(server)], figures


def shown(written: list[Record]) -> Counter[str]:
    """Every decision with its receipt, checked against what was in view."""
    made: Counter[str] = Counter()
    log = Log()
    for record in written:
        before = [item.uuid for item in log.view.items]
        log.add(record)
        if not isinstance(record, Decision):
            continue
        told = open_receipt(read_receipt(record.uuid, record.receipt), before)
        fates = Counter(one.fate for one in told.values())
        how = (
            "clearing" if isinstance(record, Clear) else record.receipt.get("by", record.kind if isinstance(record, Span) else "")
        )
        made[how] += 1
        said = ", ".join(f"{count} {fate}" for fate, count in fates.most_common())
        print(f"  {record.uuid[:8]}  {how:<9}{len(before):>5} records in view: {said}")
    return made


# Part 2


def step(url: str, place: Path, turns: int, first: bool, line: Connection) -> None:
    """In a process of its own: one step, then it waits to be killed."""
    with opened(url, place, **({"session_id": NAME} if first else {"resume": NAME})) as session:
        line.send(move(session, turns))
        line.poll(PATIENCE)


def killed(place: Path, turns: int) -> tuple[list[str], int]:
    start = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(start)
    if start == "forkserver":
        context.set_forkserver_preload(PRELOADED)
    kills, going = 0, True
    with MessagesServer() as server:
        server.window = WINDOW
        server.answer_with(Model())
        while going:
            mine, theirs = context.Pipe()
            process = context.Process(target=step, args=(server.url, place, turns, kills == 0, theirs))
            process.start()
            theirs.close()
            going = mine.poll(PATIENCE) and mine.recv()
            process.kill()
            process.join()
            kills += 1
        return [plain(received) for received in chats(server)], kills


# Part 3


def said(path: Path) -> list[dict[str, Any]]:
    """What was said, as the lines of the transcript have it: neither our decisions nor what they put in."""
    previews: dict[str, str] = {}
    messages: list[dict[str, Any]] = []
    for record in read_transcript(path):
        if isinstance(record, Spill):
            previews[record.tool_use_id] = record.preview
        if not hasattr(record, "blocks") or getattr(record, "by", None):
            continue
        role = getattr(record, "role", "user")
        if not messages or messages[-1]["role"] != role:
            messages.append({"role": role, "content": []})
        for block in record.blocks:
            call = block.wire.get("tool_use_id")
            messages[-1]["content"].append({**block.wire, "content": previews[call]} if call in previews else block.wire)
    return messages


def undone(place: Path) -> tuple[int, bool]:
    with MessagesServer() as server, opened(server.url, place, resume=NAME) as session:
        assert session.path is not None
        count = 0
        while True:
            try:
                session.undo()
            except UsageError:
                break
            count += 1
        return count, json.dumps(session.messages) == json.dumps(said(session.path))


def differing(wanted: Iterable[str], found: Iterable[str]) -> list[int]:
    wanted, found = list(wanted), list(found)
    return [at for at in range(max(len(wanted), len(found))) if wanted[at : at + 1] != found[at : at + 1]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--once", action="store_true", help="leave part 2 out")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        place = Path(name) / "place"
        requests, figures = played(place, given.turns)
        calls = given.turns * ROUNDS * TOGETHER
        good = not figures["unannounced"] and not figures["refused"] and figures["largest"] <= WINDOW
        print(
            f"{calls} tool calls, {len(requests)} requests: {figures['spills']} spills, {sum(figures['decisions'].values())} decisions, "
            f"{figures['breaks']} breaks, {figures['unannounced']} of them not announced; the largest request had "
            f"{figures['largest']:,} of {WINDOW:,} tokens."
        )
        if not given.once:
            place.rename(Path(name) / "played")
            again, kills = killed(place, given.turns)
            other = differing(requests, again)
            good = good and not other
            figures |= {"kills": kills, "differing": len(other)}
            print(
                f"Killed and resumed {kills} times: {len(again)} requests, {'identical' if not other else f'other: {other[:10]}'}."
            )
        count, same = undone(place)
        good = good and same
        figures |= {"undone": count, "same": same}
        print(f"{count} decisions undone: what is sent is {'what was said, byte for byte' if same else 'NOT what was said'}.")
    if given.json:
        print(json.dumps(figures))
    sys.exit(not good)


if __name__ == "__main__":
    main()
