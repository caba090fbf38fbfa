"""The process that replays for the page; see process.py for what it is told and what it answers.

It yields to all other programs, and ends when it is asked to or when nobody reads its answers any more; both remove its temporary home.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import NoReturn

from ..core.errors import LaminaError
from .options import options_in
from .play import Played
from .process import ReplayNews, ReplayOrder, ReplayProgress, decoded, encoded
from .report import ReplayReport
from .run import explain_copies, replay

# Seconds between two steps of the progress: more would make the page draw all the time.
PROGRESS = 0.4
# By how much the priority is lowered.
YIELDING = 10


def main() -> None:
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the server too, and the server ends this process
    if hasattr(os, "nice"):
        os.nice(YIELDING)
    answers = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else is taken for an answer

    def tell(news: ReplayNews) -> None:
        left = memoryview(encoded(news))
        try:
            while left:
                left = left[os.write(answers, left) :]
        except OSError:  # nobody reads
            _end()

    try:
        _replay(sys.stdin.buffer.readline(), tell)
    except (LaminaError, OSError) as error:
        tell(ReplayNews(problem=str(error)))


def _replay(ordered: bytes, tell: Callable[[ReplayNews], None]) -> None:
    order = decoded(ordered, ReplayOrder)
    path, told = "", 0.0

    def on_call(policy: str, call: int, calls: int) -> None:
        nonlocal told
        if time.monotonic() - told > PROGRESS:
            told = time.monotonic()
            tell(ReplayNews(progress=ReplayProgress(policy, call, calls)))

    def on_row(rows: Mapping[str, Played], calls: int) -> None:
        if path == order.files[0]:
            first = ReplayReport()
            first.take(path, rows, calls)
            tell(ReplayNews(first=first))

    wanted = options_in(Path(order.cwd), Path(order.home) if order.home is not None else None, environ=order.environ)
    wanted = wanted._replace(variants=order.rows, on_call=on_call, on_row=on_row)
    copies = explain_copies([Path(file) for file in order.files])
    tell(ReplayNews(copies={str(file): sentence for file, sentence in copies.items()}))
    for line in sys.stdin.buffer:
        path = decoded(line, str)
        tell(ReplayNews(report=replay([Path(path)], wanted)))


def _end(number: int = 0, frame: FrameType | None = None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one would stop the removal of the home
    sys.exit()


if __name__ == "__main__":
    main()
