"""What starting costs: CPU milliseconds of fresh interpreters, beside bare Python in the same run.

    python bench/start_up.py [--runs N] [--json]

`bare` is the interpreter with nothing imported; every other row is also shown as what it adds to that and as a multiple of it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys

CASES = {
    "bare": "pass",
    "standard library set (asyncio, sqlite3, urllib)": "import asyncio, sqlite3, urllib.request",
    "import lamina": "import lamina",
    "lamina.Session": "import lamina; lamina.Session",
    "a session in memory, one request": (
        "import lamina\nwith lamina.Session(in_memory=True) as s:\n    s.add_user('hello')\n    s.before_call()"
    ),
    "lamina --help": "import sys\nsys.argv = ['lamina', '--help']\nfrom lamina.cli.main import main\nmain()",
}


def cpu_ms(code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env=dict(os.environ))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for code in CASES.values():
        cpu_ms(code)  # byte-code is written once
    best = {name: min(cpu_ms(code) for _ in range(options.runs)) for name, code in CASES.items()}
    if options.json:
        print(json.dumps(best))
        return
    print(f"{'':<50} {'ms CPU':>8} {'over bare':>10} {'× bare':>8}   (best of {options.runs})")
    for name, value in best.items():
        print(f"{name:<50} {value:>8.1f} {value - best['bare']:>10.1f} {value / best['bare']:>8.2f}")


if __name__ == "__main__":
    main()
