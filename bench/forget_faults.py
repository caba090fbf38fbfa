"""`lamina forget`, stopped or failing at each call that changes the disk: does it tell the truth, and does a second run finish it?

The home has something of every kind in it: memories with a history in git, team and agents' memory, a session with a spilled result
and notes, daily logs, proposals, the chat's history. Faults: SIGKILL before the call and in the middle of a write, a full disk and an
input/output error (once, and for good), and a short write. A violation: it says that all is done while something is left, it does not
name a full disk as the reason, or a second run leaves the subject, git's copy, a temporary file or the job.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.maintenance.forget.test_job import FAULTS, stopped_everywhere  # noqa: E402  # the tree must be on the path first


def main() -> None:
    tries = violations = 0
    for fault in FAULTS:
        ends, wrong = Counter[str](), list[str]()
        with tempfile.TemporaryDirectory() as base:
            for met, found in stopped_everywhere(Path(base).resolve(), fault):
                if met.point:
                    ends["killed" if met.ended == "killed" else met.said[0] if met.said else "refused"] += 1
                    wrong += [f"{met.point} ({met.number}): {what}" for what in found]
        print(f"{fault!s:<40} {ends.total():>4} faults, {len(wrong)} violations; ended {dict(ends)}", flush=True)
        print(*wrong, sep="\n", end="\n" if wrong else "")
        tries, violations = tries + ends.total(), violations + len(wrong)
    print(f"{tries} faults, {violations} violations")


if __name__ == "__main__":
    main()
