"""The soak: thousands of turns with a model that fails at random, in windows of all sizes, killed and resumed in between.

The session never ends, no message is lost, every request is valid and every break of the cache is announced. Each case is seeded, so
the model fails in the same places again. The counts are printed (`pytest -s`).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from lamina.core.blocks import Text
from lamina.core.log import Log
from lamina.core.receipts import open_receipt, read_receipt
from lamina.core.records import Message, Record, Revoke
from lamina.disk.transcripts.store import TranscriptReader, read_transcript
from lamina.layers.l4_compact.expand import stands_for
from lamina.testing import Cut, MessagesServer, Received, Status, Step, check_prefixes
from lamina.testing.script import make_answer

from .compacting import SECTIONS, SUMMARY
from .long import Decision, Output, how, prove_given
from .noting import by_rules
from .soak_program import SESSION, Life, result, task
from .words import refused

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that ends a process at once")
PROGRAM = Path(__file__).with_name("soak_program.py")
# A life that lasts longer hangs.
PATIENCE = 600
# Shares of answers that are failures: of the conversation, and of the forks that write notes and summaries.
CHAT_FAILS, FORK_FAILS = 0.2, 0.5
# A stretch in which every summary and every note fails: longer than all retries and the breaker together.
STREAK = 25
# Requests that the server keeps; each may hold a whole window.
KEEP = 30
MOST_LIVES = 400
# System calls that change the disk, about.
POINTS_A_REQUEST = 6
# What differs between two notices of one kind, and how much of one is printed.
NAMES = re.compile(r"/\S+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d[\d,]*")
SHOWN = 90
TASK = re.compile(r"Task (\d+): say what")


class Case(NamedTuple):
    window: int
    turns: int
    longest: int = 150  # requests of one life
    seed: int = 1


SAMPLE = Case(16_000, 25, longest=30)
CASES = [Case(16_000, 800), Case(64_000, 700), Case(200_000, 400), Case(1_000_000, 100, longest=50)]


def too_long(window: int) -> Status:
    return Status(status=400, message=f"prompt is too long: {window + 4_000} tokens > {window} maximum")


# How a model fails, in the conversation and in a fork alike.
ANY_FAULT: dict[str, Callable[[int], Step]] = {
    "empty": lambda _: make_answer(text=""),
    "refusal": lambda _: make_answer(text="No.", stop_reason="refusal"),
    "cut off": lambda _: make_answer(text="<summary>\nIt is about", stop_reason="max_tokens"),
    "no stop reason": lambda _: make_answer(text="It is about", stop_reason=None),
    "torn stream": lambda _: Cut(answer=make_answer(text="It is about everything."), after=3),
    "connection": lambda _: Cut(answer=make_answer(text="It is about everything."), after=0),
    "529": lambda _: Status(status=529, retry_after=0.01),
    "500": lambda _: Status(status=500, retry_after=0.01),
    "too long": too_long,
}
FORK_FAULT: dict[str, Callable[[int], Step]] = {
    **ANY_FAULT,
    "no tag": lambda _: make_answer(text=SECTIONS),
    "wrong tag": lambda _: make_answer(text=f"<resume>\n{SECTIONS}\n</resume>"),
    "open tag": lambda _: make_answer(text=f"<summary>\n{SECTIONS}"),
    "quoted tag": lambda _: make_answer(text=f"<summary>\n{SECTIONS}\nIt says <summary>x</summary> there.\n</summary>"),
    "a call": lambda _: make_answer(tool_use=("Read", {"file_path": "/w/x.py"})),
    "garbage": lambda _: make_answer(text="<<< }{ ÿ \x00 </summary>"),
    "huge": lambda window: make_answer(text=f"<summary>\n{SECTIONS}\n{'Very much was done here. ' * (window // 6)}\n</summary>"),
    "another language": lambda _: make_answer(
        text="<summary>\n## 1. 主要请求\n用户想要一切。\n\n## 8. 当前工作\n都做完了。\n</summary>"
    ),
}


class Model:
    """Answers the server's requests by chance, checks each of them, and kills the program at the request it is told to."""

    def __init__(self, server: MessagesServer, case: Case) -> None:
        self._server = server
        self._case = case
        self._lock = threading.Lock()
        self._asked: Counter[str] = Counter()
        self._checked = -1
        self.program: subprocess.Popen[bytes] | None = None
        self.kill_in = 0  # so many requests from now; 0: not at all
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.newest = 0  # the last task that a request showed

    def __call__(self, received: Received) -> Step:
        with self._lock:
            purpose = received.fork.rpartition("-")[0] or "chat"
            self._asked[purpose] += 1
            number = self._asked[purpose]
            self._check(received, purpose)
            self._maybe_kill()
        random = Random(f"{self._case.seed}-{purpose}-{number}")
        kind, step = self._chat(random, number) if purpose == "chat" else self._fork(random, number, received, purpose)
        self.counts[f"{purpose}: {kind}"] += 1
        return step

    def _chat(self, random: Random, number: int) -> tuple[str, Step]:
        if random.random() < CHAT_FAILS:
            kind = random.choice(list(ANY_FAULT))
            return kind, ANY_FAULT[kind](self._case.window)
        if random.random() < 0.6:
            calls = [
                ("Read", {"file_path": f"/w/f{number}-{at}.py"}, f"toolu_{number:05}_{at}") for at in range(random.choice((1, 2)))
            ]
            return "calls", make_answer(text=f"I look at {number}.", tool_use=calls)
        return "answer", make_answer(text=f"Answer {number}. " * random.choice((1, 20)))

    def _fork(self, random: Random, number: int, received: Received, purpose: str) -> tuple[str, Step]:
        if random.random() < FORK_FAILS or number % (4 * STREAK) > 3 * STREAK:
            kind = random.choice(list(FORK_FAULT))
            return kind, FORK_FAULT[kind](self._case.window)
        return "good", by_rules(received) if purpose == "notes" else make_answer(text=SUMMARY)

    def _check(self, received: Received, purpose: str) -> None:
        if purpose == "chat":
            self.wrong += [f"request {received.index}: {problem}" for problem in refused(received.body)]
            shown = [int(found) for found in TASK.findall(json.dumps(received.body["messages"]))]
            if not shown or max(shown) < self.newest:
                self.wrong.append(f"request {received.index} does not show task {self.newest}")
            elif min(shown) != 1:
                self.wrong.append(f"request {received.index} does not show the first task")
            self.newest = max([*shown, self.newest])
            self.counts["breaks"] += len(received.breaks)
            self.wrong += [f"request {received.index}: unexplained" for one in received.breaks if one.reason == "unexplained"]
        if len(self._server.requests) > 2 * KEEP:
            self.check_prefixes()
            del self._server.requests[:-KEEP]

    def check_prefixes(self) -> None:
        """Check what came since the last time. The requests that are kept are the parents of coming forks."""
        kept = list(self._server.requests)
        self.wrong += [one.sentence for one in check_prefixes(kept) if one.request > self._checked]
        for one in kept:
            if one.index > self._checked and one.error:
                self.counts[f"{'fork' if one.fork else 'chat'} refused: {one.error.partition(':')[0]}"] += 1
                if "too long" not in one.error:
                    self.wrong.append(f"request {one.index}: {one.error}")
        self._checked = kept[-1].index if kept else self._checked

    def _maybe_kill(self) -> None:
        if self.kill_in and self.program is not None:
            self.kill_in -= 1
            if not self.kill_in:
                self.program.send_signal(signal.SIGKILL)


class Told:
    """What the program printed, over all its lives."""

    def __init__(self) -> None:
        self.said: list[int] = []
        self.given: list[str] = []
        self.undone: list[str] = []
        self.notices: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()

    def hear(self, line: bytes) -> None:
        if not line.endswith(b"\n"):
            return  # killed while it printed
        kind, *words = json.loads(line)
        match kind:
            case "said":
                self.said.append(words[0])
            case "given":
                self.given.append(words[0])
            case "notice":
                self.notices[NAMES.sub("…", words[0])[:SHOWN]] += 1
            case "fault":
                self.counts[f"asked again: {words[0]}"] += 1
            case _:
                self.counts[kind] += 1


def soak(server: MessagesServer, home: Path, case: Case) -> tuple[Model, Told]:
    server.window = case.window
    model, told = Model(server, case), Told()
    server.answer_with(model)
    random = Random(f"lives-{case.seed}")
    for number in range(MOST_LIVES):
        first = (told.said[-1] if told.said else 0) + 1
        if first > case.turns:
            return model, told
        by_request = random.random() < 0.5
        dies_at = 0 if by_request else random.randrange(20, POINTS_A_REQUEST * case.longest)
        model.kill_in = random.randrange(3, case.longest) if by_request else 0
        life = Life(server.url, str(home), case.window, case.seed, number, first, case.turns, dies_at, random.random() < 0.5)
        one_life(model, told, life)
    raise AssertionError(f"not done after {MOST_LIVES} lives")


def one_life(model: Model, told: Told, life: Life) -> None:
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), json.dumps(life)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)
    ) as program:
        model.program = program
        guard = threading.Timer(PATIENCE, program.kill)
        guard.daemon = True
        guard.start()
        assert program.stdout is not None
        assert program.stderr is not None
        for line in program.stdout:
            told.hear(line)
        errors = program.stderr.read().decode()
        code = program.wait()
        guard.cancel()
    model.program = None
    told.counts["killed" if code == -signal.SIGKILL else "ended"] += 1
    assert code in (0, -signal.SIGKILL), f"life {life.number}, turn {told.said[-1:]}:\n{errors[-3000:]}"


class Held(NamedTuple):
    given: dict[str, Output]


def check_log(home: Path, case: Case, told: Told) -> Counter[str]:
    """Every message and result that the session took is in the transcript, once; every record has a fate at each decision."""
    (path,) = home.glob(f"projects/*/{SESSION}.jsonl")
    written = list(read_transcript(path))
    texts = [words for record in written if (words := user_words(record))]
    tasks = {number: task(number, case.window, case.seed) for number in sorted(set(told.said))}
    assert tasks
    lost = [number for number, words in tasks.items() if words not in texts]
    assert lost == [], "messages are lost"
    twice = [number for number, words in tasks.items() if texts.count(words) > 1]
    assert len(twice) <= told.counts["killed"], "a message can stand there twice only if it was written, but not acknowledged"
    held: Any = Held({call: Output(result(call, case.window)) for call in told.given})
    prove_given(written, path.with_suffix(""), held)
    newest = {how(record): record for record in written if isinstance(record, Decision)}
    for record in newest.values():
        assert stands_for(TranscriptReader(path), record.uuid), f"{record.uuid} cannot be opened again"
    return fates(written)


def fates(written: Sequence[Record]) -> Counter[str]:
    """Follow the view record by record. Only decisions and undos remove something, and each decision tells what became of it."""
    log, made = Log(), Counter[str]()
    for index, record in enumerate(written):
        before = [item.uuid for item in log.view.items]
        if not log.add(record):
            assert isinstance(record, Revoke), record
            log.refold(partial(list, written[: index + 1]))
        elif isinstance(record, Decision):
            told = open_receipt(read_receipt(record.uuid, record.receipt), before)
            assert any(one.fate != "kept" for one in told.values()), record
            made[how(record)] += 1
        elif not getattr(record, "by", None):
            assert [item.uuid for item in log.view.items[: len(before)]] == before, record
    return made


def user_words(record: Record) -> str:
    if not isinstance(record, Message) or record.role != "user" or record.summary:
        return ""
    return "".join(block.text for block in record.blocks if isinstance(block, Text))


def check(server: MessagesServer, tmp_path: Path, case: Case) -> None:
    model, told = soak(server, tmp_path, case)
    model.check_prefixes()
    print(f"\n{case.window:,} tokens, {case.turns:,} turns, seed {case.seed}")
    for name, counts in (("program", told.counts), ("model", model.counts), ("notices", told.notices)):
        print(f"  {name}: " + ", ".join(f"{count:,} × {what}" for what, count in sorted(counts.items())))
    assert not model.wrong, f"{len(model.wrong)} are wrong, the first: {model.wrong[:5]}"
    assert told.said == sorted(told.said)
    made = check_log(tmp_path, case, told)
    print("  decisions: " + ", ".join(f"{count:,} × {what}" for what, count in sorted(made.items())))
    assert {"clearing", "summary"} & set(made) or "rules" in made, "nothing was ever decided"


@pytest.mark.spec("B1", "C8", "Z6")
@pytest.mark.prefix_free("checked on the way, because the server keeps only the last requests")
@pytest.mark.exhaustive
def test_a_session_with_a_failing_model_goes_on(messages_server: MessagesServer, tmp_path: Path) -> None:
    check(messages_server, tmp_path, SAMPLE)


@pytest.mark.exhaustive
@pytest.mark.spec("B1", "C8", "Z6")
@pytest.mark.prefix_free("checked on the way, because the server keeps only the last requests")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.window}")
def test_thousands_of_turns_with_a_failing_model(messages_server: MessagesServer, tmp_path: Path, case: Case) -> None:
    check(messages_server, tmp_path, case)
