"""Saves, dreams, undos and kills at once, on one memory: `python bench/dream_soak.py [SECONDS]` (40 unless told).

Two processes save and note what was acknowledged; two dream (a merge, and a word added to what the others save), undo now and then, and
are killed at random, with SIGKILL. At the end a recovery, and these must hold:

    facts   every fact there was at the beginning is said by some memory
    saves   every save that was acknowledged is in its memory, unless its saver said something later
    index   it names exactly the memories that are there
    open    no dream is left half way
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.layers.l6_dream.staged import Dream, memory, save, some  # noqa: E402  # the tree must be on the path first

from lamina.core.errors import LaminaError  # noqa: E402
from lamina.disk.locks.dream_lock import DreamLock, HeldDreamLock  # noqa: E402
from lamina.layers.l6_dream.record import DreamRecord, is_open, new_id, read_records  # noqa: E402
from lamina.layers.l6_dream.stage import stage_copy  # noqa: E402
from lamina.layers.l6_dream.undo import recover, undo  # noqa: E402
from lamina.memory.store.index import read_entries  # noqa: E402
from lamina.memory.store.modes import GatedStore  # noqa: E402

TOPICS = 30
NAMES = 7


def saver(base: Path, number: int, until: float) -> None:
    with memory(base / "memory") as gated:
        turn = 0
        while time.time() < until:
            turn += 1
            said = f"Saver {number} said round {turn} of this."
            save(gated, f"s{number}-{turn % NAMES}", said)
            (base / f"told-s{number}-{turn % NAMES}").write_text(said)


def dreamer(base: Path, until: float) -> None:
    chance = random.Random()
    with memory(base / "memory") as gated:
        while time.time() < until:
            lock = DreamLock(gated.store.root)
            recover(gated, lock, now=time.time())
            hold = lock.acquire(lock.last_ns())
            if isinstance(hold, HeldDreamLock):
                with hold:
                    recover(gated, lock, now=time.time(), hold=hold)
                    one_dream(gated, hold, chance)
            if chance.random() < 0.4:
                try:
                    undo(gated, now=time.time())
                except LaminaError:
                    continue  # there is none, or the other one was faster


def one_dream(gated: GatedStore, hold: HeldDreamLock, chance: random.Random) -> None:
    record = DreamRecord(new_id(time.time()), time.time(), os.getpid(), "hand")
    one = Dream(gated, stage_copy(gated, record), record, hold)
    merged = [file for file in one.stage.base if file.startswith("t")]
    if len(merged) > 2:
        kept, gone = chance.sample(merged, 2)
        body = (one.stage.path / gone).read_text().split("---\n\n", 1)[-1]
        one.write(kept, f"{(one.stage.path / kept).read_text()}\n{body}")
        one.remove(gone)
    for file in one.stage.base:
        if file.startswith("s") and chance.random() < 0.3:
            one.write(file, f"{(one.stage.path / file).read_text().rstrip()} Dreamt.\n")
    one.conclude()


def forked(act: object, *given: object) -> int:
    if pid := os.fork():
        return pid
    try:
        act(*given)  # type: ignore[operator]
    finally:
        os._exit(0)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 40.0
    with tempfile.TemporaryDirectory() as directory:
        base, until, kills = Path(directory), time.time() + seconds, 0
        with memory(base / "memory") as gated:
            some(gated, TOPICS)
        savers = [forked(saver, base, number, until) for number in range(2)]
        dreamers = [forked(dreamer, base, until) for _ in range(2)]
        while time.time() < until - 2:
            time.sleep(random.random() * 0.6)
            victim = random.randrange(2)
            os.kill(dreamers[victim], signal.SIGKILL)
            os.waitpid(dreamers[victim], 0)
            dreamers[victim] = forked(dreamer, base, until)
            kills += 1
        for pid in (*savers, *dreamers):
            os.waitpid(pid, 0)
        sys.exit(report(base, kills))


def report(base: Path, kills: int) -> int:
    with memory(base / "memory") as gated:
        recover(gated, DreamLock(gated.store.root), now=time.time())
        bodies = "\n".join(topic.body for topic in gated.topics())
        lost = [number for number in range(TOPICS) if f"Fact number {number} about" not in bodies]
        told = {path.name.removeprefix("told-"): path.read_text() for path in base.glob("told-*")}
        missing = [name for name, said in told.items() if said not in getattr(gated.get(name), "body", "")]
        index = sorted({entry.file for entry in read_entries(gated.index())} ^ {topic.file for topic in gated.topics()})
        unfinished = [record.id for record in read_records(gated.store.root) if is_open(record)]
        print(f"{kills} kills, {len(gated.log())} changes; facts lost {lost}, saves lost {missing}", end=", ")
        print(f"wrong in the index {index}, open {unfinished}")
        return int(bool(lost or missing or unfinished or index))


if __name__ == "__main__":
    main()
