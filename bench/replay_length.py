"""Replaying long sessions: CPU time and memory of one row, as a session grows.

    python bench/replay_length.py [--requests 250 500 1000 2000 5000] [--rows append balanced] [--model MODEL] [--beside SRC]

Makes sessions as tests/web/made_home.py does, with compactions where the recorded window was full, and replays each in a process of its
own. A request costs what is new in it, so the time per request stays the same. `--beside` also replays with the package in another
`src` directory, for example of an older version, and prints the ratio.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
sys.path[:0] = [str(SOURCE.parent)]

from tests.web.made_home import MODEL, long_session  # noqa: E402

PROGRAM = """
import resource, sys, time
from pathlib import Path
from lamina.replay.options import options_in
from lamina.replay.run import replay
from lamina.replay.variants import variants
file, home, row = sys.argv[1:]
wanted = options_in(Path(home), Path(home), environ={})
rows = [one for one in variants(["balanced", "thrifty", "classic", "lean"]) if one.name == row]
began = time.process_time()
report = replay([Path(file)], wanted._replace(variants=rows))
assert report.sessions == 1, report.skipped
print(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def replayed(source: Path, file: Path, row: str) -> tuple[float, float]:
    """Return the CPU seconds and the peak memory in MB."""
    environ = {**os.environ, "PYTHONPATH": str(source)}
    arguments = [sys.executable, "-c", PROGRAM, str(file), str(file.parent), row]
    done = subprocess.run(arguments, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    seconds, size = done.stdout.split()
    return float(seconds), float(size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, nargs="+", default=[250, 500, 1_000, 2_000, 5_000])
    parser.add_argument("--rows", nargs="+", default=["append", "balanced"])
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--beside", type=Path)
    given = parser.parse_args()
    print(
        f"{'requests':>8}  {'row':<9}{'seconds':>8}{'ms each':>9}{'MB':>6}"
        + f"{'beside':>9}{'MB':>6}{'ratio':>7}" * bool(given.beside)
    )
    with tempfile.TemporaryDirectory() as name:
        for requests in given.requests:
            file = long_session(Path(name) / f"{requests}.jsonl", "/work/shop-api", requests).write()
            file.write_text(file.read_text("utf-8").replace(MODEL, given.model), "utf-8")
            for row in given.rows:
                seconds, size = replayed(SOURCE, file, row)
                line = f"{requests:>8,}  {row:<9}{seconds:>8.2f}{seconds / requests * 1_000:>9.2f}{size:>6.0f}"
                if given.beside:
                    other, more = replayed(given.beside, file, row)
                    line += f"{other:>9.2f}{more:>6.0f}{other / seconds:>7.1f}"
                print(line, flush=True)


if __name__ == "__main__":
    main()
