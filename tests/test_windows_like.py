"""A system without fcntl, directory descriptors, O_NOFOLLOW and Unix sockets: everything imports, and whole turns reach the disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.session.plain import Session

PATIENCE = 120

# What other packages need of this platform is loaded first: only Lamina must do without.
HIDE = """
import asyncio, importlib, json, os, pkgutil, socket, sqlite3, subprocess, sys, tempfile, threading
import click, h11, msgspec, prompt_toolkit.shortcuts, rich.console, rich.table, uvicorn, yaml
sys.modules["fcntl"] = None
sys.modules["pwd"] = sys.modules["grp"] = sys.modules["termios"] = sys.modules["resource"] = None
for name in ("O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "geteuid", "getuid", "fchmod", "uname", "pread"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("register_at_fork", "fork", "mkfifo", "chown", "lchown", "getpgid", "killpg", "setsid", "sysconf", "getloadavg"):
    if hasattr(os, name):
        delattr(os, name)
os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks = set(), set(), {os.stat}
if hasattr(socket, "AF_UNIX"):
    del socket.AF_UNIX
"""

IMPORT = (
    "import uvicorn\n"
    + HIDE
    + """
import lamina
names = [found.name for found in pkgutil.walk_packages(lamina.__path__, "lamina.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(len(names))
"""
)

# An event loop of this platform needs the sockets that are hidden then.
TURN = (
    "import asyncio; loop = asyncio.new_event_loop()"
    + HIDE
    + """
from tests.session.plain import AsyncSession, Session
home = sys.argv[1]

def answer(name, words):
    return {"id": name, "role": "assistant", "content": [{"type": "text", "text": words}], "stop_reason": "end_turn"}

with Session("offline", home=home, system="s", session_id="first") as session:
    session.add_user("a")
    session.before_call()
    session.after_call(answer("m1", "b"))
    session.end_turn()
    with Session("offline", home=home, resume="first") as second:
        told = second.notices
        second.add_user("in the fork")
    session.sync([{"role": "user", "content": "a"}, {"role": "assistant", "content": "other"}])
    assert session.status.write_error is None, session.status.write_error
with Session("offline", home=home, resume="first") as again:
    again.add_user("c")
    sent = again.before_call()
    assert again.id == "first"

async def talk():
    async with AsyncSession("offline", home=home) as other:
        other.add_user("Tests use Postgres.")
        return (await other.ask()).text

print(json.dumps({"told": told, "sent": sent, "heard": loop.run_until_complete(talk()), "fork": second.id}))
loop.close()
"""
)

COMMAND = (
    HIDE
    + """
from lamina.cli.main import main
main(sys.argv[1:])
"""
)


def run(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.exhaustive
def test_every_module_imports(root: Path) -> None:
    modules = [path for path in (root / "src" / "lamina").rglob("*.py") if path.name != "__init__.py"]
    assert int(run(IMPORT)) >= len(modules)


def test_whole_turns_reach_the_disk_and_come_back(tmp_path: Path) -> None:
    told = json.loads(run(TURN, str(tmp_path)))
    assert told["told"] == [f"Session first continues as {told['fork']}, because it is open in another process."]
    assert [message["content"][0]["text"] for message in told["sent"]["messages"]] == ["a", "other", "c"]
    assert told["heard"]
    with Session("offline", home=tmp_path, resume="first") as session:
        assert session.notices == []
        assert [message["content"][0]["text"] for message in session.messages] == ["a", "other", "c"]
    with Session("offline", home=tmp_path, resume=told["fork"]) as session:
        assert [message["content"][0]["text"] for message in session.messages] == ["a", "b", "in the fork"]


@pytest.mark.exhaustive
def test_the_command_line_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path))
    run(COMMAND, "-p", "Remember: our tests run against Postgres.")
    assert "Postgres" in run(COMMAND, "--continue", "-p", "What do our tests run against?")
    listed = json.loads(run(COMMAND, "sessions", "list", "--json"))
    assert [row["title"] for row in listed] == ["Remember: our tests run against Postgres."]


def test_the_hiding_hides() -> None:
    """Otherwise these tests would show nothing."""
    code = (
        HIDE
        + "print([hasattr(os, 'O_NOFOLLOW'), hasattr(os, 'fchmod'), hasattr(socket, 'AF_UNIX'), os.supports_dir_fd])\nimport fcntl\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False, env=dict(os.environ)
    )
    assert done.stdout == "[False, False, False, set()]\n"
    assert "ModuleNotFoundError" in done.stderr
