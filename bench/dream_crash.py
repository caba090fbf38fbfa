"""A dream, its undo, its redo and its recovery, stopped before each call that changes the disk: `python bench/dream_crash.py`.

Ended by SIGKILL, by SIGKILL in the middle of a write, by ENOSPC and by EIO, one call after the other; after each the next session puts
it right, and memory must be byte for byte as it was before the dream or as the dream left it. The suite tries a few of these calls
(tests/layers/l6_dream/test_crash.py); this tries all of them, in some minutes. Exit code 1 at the first that leaves anything between.
"""

from __future__ import annotations

import errno
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.disk.crash.harness import Fail, Kill  # noqa: E402  # the tree must be on the path first
from tests.layers.l6_dream import test_crash as tried  # noqa: E402

FAULTS = (Kill(), Kill(torn=True), Fail(errno.ENOSPC), Fail(errno.EIO))


def main() -> None:
    for fault in FAULTS:
        _run(f"dream, {fault}", partial(_dream, fault))
        _run(f"undo, {fault}", partial(_undo, fault))
        _run(f"redo, {fault}", partial(_redo, fault))
    _run("recovery, killed", lambda where: tried.test_a_recovery_that_is_stopped_is_finished_by_the_next(where, 1))


def _dream(fault: Kill | Fail, where: Path) -> None:
    tried.test_a_dream_that_is_stopped_anywhere_is_there_as_a_whole_or_not_at_all(where, fault, 1, 1)


def _undo(fault: Kill | Fail, where: Path) -> None:
    tried.test_an_undo_that_is_stopped_anywhere_is_finished_or_was_never_begun(where, fault, 1)


def _redo(fault: Kill | Fail, where: Path) -> None:
    tried.test_a_redo_that_is_stopped_anywhere_is_finished_by_the_same_call(where, fault, 1)


def _run(what: str, act: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory() as base:
        act(Path(base))
        print(f"{what}: {sum(1 for path in Path(base).iterdir() if '-' in path.name)} calls, whole after each", flush=True)


if __name__ == "__main__":
    main()
