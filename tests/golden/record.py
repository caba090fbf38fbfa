"""Record what Lamina answers over a fixed home, through its command line, page, MCP server, hooks and public Python names.

    python -m tests.golden.record               compare with what is recorded, and print the differences
    python -m tests.golden.record --write       record the answers anew
    python -m tests.golden.record commands      one section of: commands, page, servers, sessions

The home in `home/` was written by an earlier version and is never written again: it also shows that old homes keep working. Nothing here
imports a private name, so the inside may change. A difference is a decision: the commit that records it says why.
"""

from __future__ import annotations

import contextlib
import datetime
import difflib
import fcntl
import io
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# One path for every run, because paths are part of requests, slugs and token counts.
ROOT = Path("/tmp/lamina-golden")
HOME, PROJECT = ROOT / "home", ROOT / "shop"
SECTIONS = ("commands", "page", "servers", "sessions")
PATIENCE = 300
MOST_LINES = 60

# The real day: files get their times from the system, whatever the clock says.
_TODAY = os.environ.get("GOLDEN_TODAY", "")
_MASKS = (
    (re.compile(rf"(?:{_TODAY or 'never'})[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)?"), "<now>"),
    (re.compile(r"^lamina: session \d+ of \d+: .*\n?", re.MULTILINE), ""),  # progress
    (re.compile(r"2030-01-1[5-9][T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00)?"), "<now>"),
    (re.compile(r'("(?:seconds|elapsed|duration_ms|duration_api_ms|took|pid|port|cpu_seconds)": )[\d.]+'), r'\1"<number>"'),
    (re.compile(r'("uuid": )"[0-9a-f-]{36}"'), r'\1"<id>"'),  # threads draw theirs in any order
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:<port>"),
)


def environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "VIRTUAL_ENV") if name in os.environ}
    tree = HERE.parent.parent
    return {
        **kept,
        "HOME": str(HOME),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "GOLDEN_TODAY": "|".join(str(datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days)) for days in (0, 1)),
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}",
    }


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Hold the place of the fixed home: two runs at once take turns."""
    with open(f"{ROOT}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def lay_out() -> None:
    """Copy the home and the project, and give every file a time of the days before the fixed clock."""
    shutil.rmtree(ROOT, ignore_errors=True)
    for name in ("home", "shop"):
        shutil.copytree(HERE / name, ROOT / name)
    for path in HOME.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)  # as they were written; git keeps no modes
    settle_times()


def settle_times() -> None:
    """Set the times of files by their order: git keeps none, and a file written by a step must not be younger than the fixed clock."""
    first = 1_894_000_000  # 2030-01-07
    files = sorted(path for path in ROOT.rglob("*") if path.is_file() and not path.is_symlink())
    for number, path in enumerate(files):
        os.utime(path, (first + 60 * number,) * 2)


def settled(text: str) -> str:
    for pattern, shown in _MASKS:
        text = pattern.sub(shown, text)
    return text


def document(text: str) -> Any:
    """Return the JSON that a text holds, or its lines."""
    text = settled(text)
    with contextlib.suppress(ValueError):
        return json.loads(text)
    lines = text.splitlines()
    return lines if len(lines) != 1 else lines[0]


def command(line: str) -> dict[str, Any]:
    """Run a command of Lamina in this process, as its console script does."""
    from . import frozen

    frozen.seed(line)
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv, code = ["lamina", *shlex.split(line)], 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            runpy.run_module("lamina", run_name="__main__", alter_sys=False)
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv = before
    settle_times()
    return {"exit": code, "printed": document(out.getvalue()), "noticed": document(err.getvalue())}


def commands() -> dict[str, Any]:
    lines = [line for line in (HERE / "commands.txt").read_text("utf-8").splitlines() if line and not line.startswith("#")]
    answers: dict[str, Any] = {}
    for line in lines:
        answers[line if line not in answers else f"{line} (again)"] = command(line)
    return answers


def page() -> dict[str, Any]:
    """Ask for the page's addresses as JSON, all of them until they answer the same twice: the first views may still be reading files."""
    import httpx2

    lines = [line for line in (HERE / "addresses.txt").read_text("utf-8").splitlines() if line and not line.startswith("#")]
    with process("ui", "--json", "--port", "17411") as served:
        assert served.stdout is not None
        link = json.loads(served.stdout.readline())["url"]
        base = link.partition("?")[0].rstrip("/")
        answers: dict[str, Any] = {}
        with httpx2.Client(base_url=base, timeout=PATIENCE) as client:
            client.get(link.removeprefix(base))
            for _ in range(30):
                before, answers = answers, {}
                for line in lines:
                    answer = client.get(line)
                    answers[line] = {"status": answer.status_code, "answer": document(answer.text)}
                if answers == before:
                    break
        return answers


@contextlib.contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command of Lamina beside this process, with the same fixed clock."""
    line = [sys.executable, "-m", "tests.golden.frozen", " ".join(arguments), "lamina", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, encoding="utf-8") as running:
        try:
            yield running
        finally:
            running.terminate()


def servers() -> dict[str, Any]:
    """Send the recorded messages to the MCP server, and the recorded inputs to the hooks."""
    answers: dict[str, Any] = {}
    for arguments in (["mcp"], ["mcp", "--hooks", "claude-code"]):
        with process(*arguments) as served:
            assert served.stdin is not None
            for line in (HERE / "messages.jsonl").read_text("utf-8").splitlines():
                message = json.loads(line)
                served.stdin.write(line + "\n")
                served.stdin.flush()
                if "id" in message:
                    answers[f"{' '.join(arguments)}: {line}"] = document(_reply(served, message["id"]))
    for line in (HERE / "hooks.jsonl").read_text("utf-8").splitlines():
        call = json.loads(line)
        with process("hook", call["input"]["hook_event_name"], "--agent", call["agent"]) as hook:
            answers[line] = document(hook.communicate(json.dumps(call["input"]), timeout=PATIENCE)[0])
    return answers


def _reply(served: subprocess.Popen[str], number: int) -> str:
    """Return the answer to a message. Notifications in between are not answers."""
    assert served.stdout is not None
    for _ in range(100):
        line = served.stdout.readline()
        if json.loads(line).get("id") == number:
            return line
    raise SystemExit(f"no answer to message {number}")


def main(arguments: list[str]) -> int:
    write = "--write" in arguments
    chosen = [name for name in arguments if name in SECTIONS] or list(SECTIONS)
    if "--inside" in arguments:
        return _inside(chosen[0])
    with alone():
        return sum([_compare(name, write) for name in chosen])


def _inside(section: str) -> int:
    """Print the answers of a section. It runs in a process of its own, with the fixed clock and the environment above."""
    from . import frozen
    from .sessions import sessions

    answers: dict[str, Callable[[], dict[str, Any]]] = {
        "commands": commands,
        "page": page,
        "servers": servers,
        "sessions": sessions,
    }
    lay_out()
    os.chdir(PROJECT)
    if section in ("commands", "sessions"):
        frozen.freeze()
    printed = answers[section]()
    json.dump(printed, sys.stdout, ensure_ascii=False, indent=1)
    return 0


def recorded_and_found(section: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden.record", "--inside", section],
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"golden {section}: {done.stderr.decode()}")
    file = HERE / "answers" / f"{section}.json"
    return (file.read_text("utf-8") if file.exists() else ""), done.stdout.decode()


def _compare(section: str, write: bool) -> int:
    recorded, found = recorded_and_found(section)
    if write:
        (HERE / "answers").mkdir(exist_ok=True)
        (HERE / "answers" / f"{section}.json").write_text(found, "utf-8")
    different = difflib.unified_diff(recorded.splitlines(), found.splitlines(), "recorded", "found", lineterm="", n=3)
    lines = [line[:300] for line in different]
    print("\n".join([f"golden {section}: {'the same' if not lines else f'{len(lines)} lines differ'}", *lines[:MOST_LINES]]))
    return 0 if write else bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
