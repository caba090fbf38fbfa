"""What a fork reads from the prompt cache, by its kind and by the length of the conversation it begins in.

    python bench/forks.py [--sizes 10000,45000,100000,160000] [--json]

A session grows over real HTTP against a loopback server with a prompt cache (marks, a look-back of 20 blocks, two lifetimes). Then it
forks: for notes (the first update, and a later one that is shown what was noted), for a summary, with a directive of 300 tokens as an
extraction has, with forty results that came since the last request, and three times at once from an answer whose calls are still open.

parent's   of what the parent's last request left in the cache, how much the fork read; below 100% would be a fault (exit code 1)
read       of the fork's whole input, how much came from the cache
new        the rest, in tokens: `since` is what the conversation said after its last request (the answer, results, placeholders), which
           nobody has sent yet; `directive` is what the fork is asked; `notes` is the part of it that quotes the notes as they stand
price      of an input token on average: read 0.1, written 1.25, others 1

The tokens are the server's own count.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from growing import MODEL, RESULT, SYSTEM, TOOLS, answered, settle
from msgspec.structs import replace

from lamina.conversation import forks
from lamina.conversation.isolate import take_job_results
from lamina.core.cache import count_block
from lamina.core.effects import drive
from lamina.core.policy import CLASSIC
from lamina.core.settings import Settings
from lamina.fork.fork import run_fork
from lamina.providers.anthropic import AnthropicProvider
from lamina.session.base import working
from lamina.session.session import Session
from lamina.testing import MessagesServer, Received

READ, WRITTEN = 0.1, 1.25
# About 300 tokens, as an instruction to look for memories has.
EXTRACTION = "Look for what is worth remembering beyond this conversation, and say where it was said. " * 14
TOGETHER = 3
SINCE = 40


class Row(NamedTuple):
    kind: str
    input: int
    readable: int  # what the parent's last request left in the cache
    read: int
    since: int
    directive: int
    notes: int
    price: float


def row(kind: str, parent: Received, fork: Received) -> Row:
    assert parent.switch_model is not None
    assert fork.use is not None
    assert parent.prompt is not None
    assert fork.prompt is not None
    use, pieces = fork.use, fork.prompt.pieces
    shared = len(parent.prompt.pieces)
    said = fork.messages[-1]["content"][-1]["text"]
    quoted = said.partition("<system-reminder>")[2].partition("</system-reminder>")[0]
    paid = READ * use.read + WRITTEN * (use.write_5m + use.write_1h) + use.plain
    return Row(
        kind,
        use.total,
        parent.switch_model.total,
        use.read,
        sum(piece.tokens for piece in pieces[shared:-1]),
        pieces[-1].tokens,
        count_block({"type": "text", "text": quoted}) if quoted else 0,
        paid / use.total,
    )


@contextmanager
def opened(size: int, *, notes: bool = False) -> Iterator[tuple[Session, MessagesServer]]:
    """A conversation of `size` tokens whose last request was answered."""
    policy = replace(CLASSIC, notes=replace(CLASSIC.notes, first_at=size))
    chosen = Settings(session_notes=notes, size_clearing=False)
    with (
        tempfile.TemporaryDirectory() as home,
        MessagesServer() as server,
        closing(AnthropicProvider(MODEL, base_url=server.url, api_key="any", max_retries=0)) as provider,
    ):
        server.answer_with(lambda received: answered(received, 0.0))
        place = Path(home)
        with Session(
            provider,
            home=place,
            cwd=place,
            policy=policy,
            settings=chosen,
            system=SYSTEM,
            tools=TOOLS,
            instructions=False,
            memory=False,
        ) as session:
            grow(session, server, size)
            yield session, server


def grow(session: Session, server: MessagesServer, size: int) -> None:
    while session.window_state.tokens < size:
        number = len(server.requests)
        asked(session, server, [f"c{number}"])
        session.ask()
        settle(session)


def asked(session: Session, server: MessagesServer, calls: list[str], *, results: bool = True) -> None:
    server.reply(text="I look.", tool_use=[("Read", {"file_path": f"/w/src/{name}.py"}, name) for name in calls])
    session.add_user(f"Question {len(server.requests)}: what is in it?")
    session.ask()
    for name in calls if results else ():
        session.add_tool_result(name, RESULT.format(number=name) if len(calls) == 1 else "short")


def newest(server: MessagesServer) -> tuple[Received, list[Received]]:
    """The conversation's last request, and the forks behind it."""
    parent = next(received for received in reversed(server.requests) if not received.fork)
    return parent, [received for received in server.requests[parent.index + 1 :] if received.fork]


def forked(session: Session, directive: str, purpose: str = "extract") -> None:
    with working(session) as c:
        drive(run_fork(forks.hand_over(c), directive, purpose=purpose), forks.side(c))


def noted(size: int) -> list[Row]:
    with opened(size, notes=True) as (session, server):
        parent, found = newest(server)
        first = row("notes, the first", parent, found[0])
        before = len([one for one in server.requests if one.fork])
        while len([one for one in server.requests if one.fork]) == before:
            grow(session, server, session.window_state.tokens + 1)
        parent, found = newest(server)
        return [first, row("notes, a later one", parent, found[0])]


def summarised(size: int) -> list[Row]:
    with opened(size) as (session, server):
        assert session.compact("Keep the names.").how == "summary"
        parent, found = newest(server)
        return [row("summary", parent, found[0])]


def extracted(size: int) -> list[Row]:
    with opened(size) as (session, server):
        forked(session, EXTRACTION)
        parent, found = newest(server)
        return [row("directive of 300 tokens", parent, found[0])]


def behind(size: int) -> list[Row]:
    with opened(size) as (session, server):
        asked(session, server, [f"many{number}" for number in range(SINCE)])
        forked(session, "Say what matters.")
        parent, found = newest(server)
        return [row(f"behind {SINCE} results", parent, found[0])]


def together(size: int) -> list[Row]:
    """Three at once, from an answer whose calls nobody has carried out yet."""
    with opened(size) as (session, server):
        asked(session, server, ["open1", "open2"], results=False)
        with working(session) as c:
            handover, side = forks.hand_over(c), forks.side(c)
        jobs = [
            threading.Thread(target=lambda at=at: drive(run_fork(handover, f"{at}. {EXTRACTION}", purpose="extract"), side))
            for at in range(TOGETHER)
        ]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
        parent, found = newest(server)
        assert len(found) == TOGETHER
        with working(session) as c:
            take_job_results(c)
        return [row(f"{at + 1} of {TOGETHER} at once", parent, one) for at, one in enumerate(found)]


KINDS: tuple[Callable[[int], list[Row]], ...] = (noted, summarised, extracted, behind, together)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,45000,100000,160000")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = [one for size in map(int, given.sizes.split(",")) for kind in KINDS for one in kind(size)]
    if given.json:
        print(json.dumps([one._asdict() for one in rows]))
    else:
        show(rows)
    sys.exit(any(one.read < one.readable for one in rows))


def show(rows: list[Row]) -> None:
    print(f"{'fork':<26}{'input':>9}{'parent’s':>10}{'read':>8}{'new':>7}{'since':>7}{'directive':>11}{'notes':>7}{'price':>7}")
    for one in rows:
        share = f"{min(1.0, one.read / one.readable):>10.1%}{one.read / one.input:>8.1%}"
        rest: dict[str, Any] = {"new": one.input - one.read, **one._asdict()}
        tail = f"{rest['new']:>7,}{one.since:>7,}{one.directive:>11,}{one.notes:>7,}{one.price:>7.3f}"
        print(f"{one.kind:<26}{one.input:>9,}{share}{tail}")


if __name__ == "__main__":
    main()
