"""The program of the soak: a session that works turn after turn until it has done all of them, or is killed.

    python soak_program.py PLAN

PLAN is a `Life` as JSON. Each line of output is a JSON list: ["said", task], ["given", call id], ["fault", kind], ["notice", text],
["undone", id], ["point", name] right before the program kills itself, and ["done"]. A line is printed after the session took what it
names, so what was printed must survive. Errors of the provider are met by asking again; any other error of Lamina's ends the program
with a traceback, and the soak fails.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from random import Random
from typing import NamedTuple

from lamina.core.errors import NotCompacted, NothingToSend, ProviderError, StreamBroken, UndoOrder, UsageError
from lamina.core.settings import Settings
from lamina.disk import crash_points
from lamina.providers.anthropic import AnthropicProvider
from lamina.session.session import Session

SESSION = "soak"
MODEL = "claude-sonnet-5-5"
TOOLS = [
    {"name": name, "description": f"{name} does its work.", "input_schema": {"type": "object"}}
    for name in ("Read", "Bash", "Grep", "TodoWrite")
]
# So many times in a row the model may fail before a turn is given up; one in four of its answers is a failure.
MOST_TRIES = 40
MOST_ROUNDS = 3
# A session that fills its window after about so many turns is compacted often, and has room for what a turn brings.
TURNS_A_WINDOW = 12
CHARACTERS_A_TOKEN = 4
# Larger results are spilled, which is another test.
MOST_RESULT = 40_000


# Background work goes on all day.
WITHOUT_LIMIT = {"budget_calls": 10**9, "budget_tokens": 10**12, "budget_dollars": 10.0**9}


class Life(NamedTuple):
    """One process of the soak: what it does, and when it kills itself."""

    url: str
    home: str
    window: int
    seed: int
    number: int  # of this life, from 0
    first: int  # the number of its first turn
    turns: int  # the number of the last turn
    dies_at: int  # the crash point at which it dies; 0: at none
    torn: bool  # whether the write at that point goes through by half


def filler(seed: str, size: int) -> str:
    """Lines of text of about this size, different for each seed."""
    random = Random(seed)
    lines, length = [], 0
    while length < size:
        lines.append(
            f"{random.randrange(10**6)}: the handler {random.randrange(10**4)} returns {random.random():.3f} in this case."
        )
        length += len(lines[-1]) + 1
    return "\n".join(lines)


def task(number: int, window: int, seed: int) -> str:
    """The text of a turn's message. It differs from all others, and some are long pastes."""
    random = Random(f"task-{seed}-{number}")
    size = int(window * CHARACTERS_A_TOKEN / TURNS_A_WINDOW * random.choice((0.05, 0.2, 0.5, 1.5)))
    return f"Task {number}: say what this means.\n{filler(f'{seed}-{number}', size)}\nEnd of task {number}."


def result(call: str, window: int) -> str:
    """The result of a call, by its id."""
    random = Random(call)
    size = min(MOST_RESULT, int(window * CHARACTERS_A_TOKEN / TURNS_A_WINDOW * random.choice((0.0, 0.1, 0.3, 0.6))))
    return f"Result of {call}.\n{filler(call, size)}"


class Soak:
    def __init__(self, session: Session, life: Life) -> None:
        self._session = session
        self._life = life
        self._random = Random(f"{life.seed}-{life.number}")
        self._noticed = 0

    def run(self) -> None:
        for number in range(self._life.first, self._life.turns + 1):
            self._turn(number)
            self._sometimes()
            for notice in self._session.notices[self._noticed :]:
                say("notice", notice)
            self._noticed = len(self._session.notices)

    def _turn(self, number: int) -> None:
        words = task(number, self._life.window, self._life.seed)
        self._answer_calls()
        self._session.add_user(words)
        say("said", number)
        for _ in range(MOST_ROUNDS):
            if not self._ask():
                break
            self._answer_calls()
        self._session.end_turn()

    def _answer_calls(self) -> None:
        for call in self._session.status.open_calls:
            self._session.add_tool_result(call, result(call, self._life.window))
            say("given", call)

    def _ask(self) -> bool:
        """Ask until the model answers. Return whether it wants results."""
        for _ in range(MOST_TRIES):
            try:
                return bool(self._session.ask().tool_uses)
            except StreamBroken:
                say("fault", "StreamBroken")
                return False
            except NothingToSend:
                return False
            except ProviderError as error:
                say("fault", type(error).__name__)
        raise AssertionError(f"the model failed {MOST_TRIES} times in a row")

    def _sometimes(self) -> None:
        if self._random.random() < 0.03:
            with suppress(UsageError, UndoOrder):
                say("undone", str(self._session.undo()))
        elif self._random.random() < 0.02:
            with suppress(NotCompacted):
                say("compacted", self._session.compact().boundary)


def say(*words: object) -> None:
    os.write(1, (json.dumps(words) + "\n").encode())


def die_at(point: int, *, torn: bool) -> crash_points.Watcher:
    passed = 0

    def watch(name: str, size: int) -> int | None:
        nonlocal passed
        passed += 1
        if passed == point:
            say("point", name)
            if torn and size:
                return size // 2
        if passed >= point:
            os.kill(os.getpid(), signal.SIGKILL)
        return None

    return watch


def live(life: Life) -> None:
    provider = AnthropicProvider(MODEL, base_url=life.url, api_key="any", max_retries=0)
    which = {"session_id": SESSION} if life.number == 0 else {"resume": SESSION}
    options = {"metadata": {"user_id": SESSION}}  # one conversation for the server, whatever its first message is
    with Session(
        provider,
        home=life.home,
        cwd=life.home,
        tools=TOOLS,
        instructions=False,
        memory=False,
        system="Be careful.",
        max_tokens=500,
        window=life.window,
        settings=Settings(session_notes=life.number % 2 == 0, **WITHOUT_LIMIT),  # without notes, a compaction needs a summary
        options=options,
        **which,  # type: ignore[arg-type]
    ) as session:
        if session.id != SESSION:
            raise AssertionError(f"the session continues as {session.id}: {session.notices}")
        Soak(session, life).run()
    provider.close()


def main() -> None:
    life = Life(*json.loads(sys.argv[1]))
    if not life.dies_at:
        live(life)
    else:
        with crash_points.watched(die_at(life.dies_at, torn=life.torn)):
            live(life)
    say("done")


if __name__ == "__main__":
    main()
