"""What starting costs: CPU milliseconds of fresh interpreters, beside bare Python in the same run.

    python bench/start_up.py [--runs N] [--json]

`bare` is the interpreter with nothing imported; every other row is also shown as what it adds to that and as a multiple of it. The cases
are run in turns, so that all see the same machine. Byte-code is there, as it is where a package is installed: it is written to a
directory of its own first, whatever PYTHONDONTWRITEBYTECODE says (without it every start compiles all it imports).
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import resource
import statistics
import subprocess
import sys
import tempfile

CASES = {
    "bare": "pass",
    "standard library set (asyncio, sqlite3, urllib)": "import asyncio, sqlite3, urllib.request",
    "import lamina": "import lamina",
    "lamina.Session": "import lamina; lamina.Session",
    "a session in memory, one request": (
        "import lamina\nwith lamina.Session('offline', in_memory=True) as s:\n    s.add_user('hello')\n    s.before_call()"
    ),
    "the same, without memory and instruction files": (
        "import lamina\nwith lamina.Session('offline', in_memory=True, memory=False, instructions=False) as s:\n"
        "    s.add_user('hello')\n    s.before_call()"
    ),
    "lamina --help": "import sys\nsys.argv = ['lamina', '--help']\nfrom lamina.cli.main import main\nmain()",
    "lamina, up to its first prompt": "import sys\nsys.argv = ['lamina']\nfrom lamina.cli.main import main\nmain()",
    "lamina memory list": "import sys\nsys.argv = ['lamina', 'memory', 'list']\nfrom lamina.cli.main import main\nmain()",
    "lamina -p hello, offline": (
        "import sys\nsys.argv = ['lamina', '-p', 'hello', '--model', 'offline']\nfrom lamina.cli.main import main\nmain()"
    ),
}

SAVE = "import lamina\nwith lamina.Memory.open('.') as memory:\n    memory.save('a', type='user', description='One line', body='Text.')"


def cpu_ms(code: str, environ: dict[str, str]) -> float:
    ours, theirs = pty.openpty()
    os.write(ours, b"/exit\n")  # for the chat: it reads this at its first prompt
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env=environ,
        cwd=environ["HOME"],
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    os.close(theirs)
    os.close(ours)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def installed(directory: str) -> dict[str, str]:
    """This environment, with a home and byte-code of its own. Paths are made whole: the children run elsewhere."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join(os.path.abspath(part) for part in environ.get("PYTHONPATH", "").split(os.pathsep) if part)
    byte_code = os.path.join(directory, "byte-code")
    return {
        **environ,
        "HOME": directory,
        "LAMINA_HOME": directory,
        "PYTHONPATH": path,
        "PYTHONPYCACHEPREFIX": byte_code,
        "TERM": "dumb",
    }


def in_turns(runs: int, environ: dict[str, str]) -> dict[str, list[float]]:
    for code in CASES.values():
        cpu_ms(code, environ)  # the first of each writes the byte-code
    taken: dict[str, list[float]] = {name: [] for name in CASES}
    cpu_ms(SAVE, environ)  # so that the list is a table
    for _ in range(runs):
        for name, code in CASES.items():
            taken[name].append(cpu_ms(code, environ))
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        taken = in_turns(options.runs, installed(made))
    best = {name: min(times) for name, times in taken.items()}
    if options.json:
        print(json.dumps(best))
        return
    print(f"{'':<50} {'ms CPU':>8} {'over bare':>10} {'× bare':>8} {'median':>8}   (best of {options.runs})")
    for name, value in best.items():
        middle = statistics.median(taken[name])
        print(f"{name:<50} {value:>8.1f} {value - best['bare']:>10.1f} {value / best['bare']:>8.2f} {middle:>8.1f}")


if __name__ == "__main__":
    main()
