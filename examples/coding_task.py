"""A coding task from start to end, with Lamina's own agent: read, run the test, mend the bug, run it again.

    pip install ".[anthropic]" && python examples/coding_task.py

The repository is a real one, made in a temporary directory; the tools really read, edit and run. The model is a server on this
machine that answers by a script and bills by a model of the provider's prompt cache, so it needs no key. Leave `base_url` out and a
real model does the work.

After two rounds the session is closed and continued from its transcript; at the end the same bug is mended offline, by commands
and without any model.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import lamina
from lamina.providers import open_provider
from lamina.testing import MessagesServer

FILES = {
    "stats.py": (
        '"""Small statistics."""\n\n\ndef mean(values):\n    return sum(values) / len(values)\n\n\n'
        "def median(values):\n    ordered = sorted(values)\n    return ordered[len(ordered) // 2]\n"
    ),
    "test_stats.py": (
        "import unittest\n\nfrom stats import mean, median\n\n\nclass Stats(unittest.TestCase):\n"
        "    def test_mean(self):\n        self.assertEqual(mean([1, 2, 3]), 2)\n\n"
        "    def test_median_of_an_even_number_of_values(self):\n        self.assertEqual(median([1, 2, 3, 4]), 2.5)\n"
    ),
    "CLAUDE.md": "Tests run with `python -m unittest -q`. Don't change tests to make them pass.\n",
}
OLD = "    return ordered[len(ordered) // 2]\n"
NEW = (
    "    middle = len(ordered) // 2\n    if len(ordered) % 2:\n        return ordered[middle]\n"
    "    return (ordered[middle - 1] + ordered[middle]) / 2\n"
)
TASK = "A test fails. Find out why and mend it."
TEST = f"{sys.executable} -B -m unittest -q"


def make_repository(directory: Path) -> Path:
    directory.mkdir()
    for name, text in FILES.items():
        (directory / name).write_text(text)
    if shutil.which("git"):
        git = ["git", "-c", "user.name=A Person", "-c", "user.email=person@example.com", "-c", "init.defaultBranch=main"]
        for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Statistics and their tests"]):
            subprocess.run([*git, *command], cwd=directory, check=True)
    return directory


def script(server: MessagesServer, repository: Path) -> None:
    """What a good model would do."""
    stats = str(repository / "stats.py")
    server.reply(
        text="I look at the code and its test.",
        tool_use=[("Read", {"file_path": stats}), ("Read", {"file_path": str(repository / "test_stats.py")})],
    )
    server.reply(text="Now I run the test.", tool_use=("Bash", {"command": TEST, "description": "Run the tests"}))
    server.reply(text="An even number of values has two in the middle.", tool_use=("Read", {"file_path": stats}))
    server.reply(tool_use=("Edit", {"file_path": stats, "old_string": OLD, "new_string": NEW}))
    server.reply(tool_use=("Bash", {"command": TEST, "description": "Run the tests again"}))
    server.reply(text="median() took the upper of the two middle values; now it takes their mean. All tests pass.")


def show(event: dict[str, Any]) -> None:
    """A line for each call."""
    if event["type"] == "tool_call":
        given = event["input"]
        print(f"  {event['name']} {Path(given.get('file_path') or given['command']).name}")
    elif event["type"] == "tool_result" and event["is_error"]:
        print("    (it failed)")


class Spent(NamedTuple):
    usage: lamina.Usage
    breaks: int


def with_a_model(home: Path, repository: Path, server: MessagesServer) -> Spent:
    script(server, repository)
    provider = open_provider("anthropic:claude-sonnet-5-5", base_url=server.url, environ={})
    print(TASK)
    with lamina.Agent.open(provider, cwd=repository, home=home, session_id="task", mode="all", on_event=show) as agent:
        agent.rounds = 2
        print(f"  → stopped after {agent.run(TASK).rounds} rounds; the session is closed and opened again")
        before = agent.session
    with lamina.Agent.open(provider, cwd=repository, home=home, resume="task", mode="all", on_event=show) as agent:
        print(f"  → {agent.go_on().text}")
        first, second = before.status, agent.session.status
        return Spent(first.usage + second.usage, first.cache_breaks + second.cache_breaks)


def offline(home: Path, repository: Path) -> None:
    mend = 'replace "ordered[len(ordered) // 2]" with "sum(ordered[1:-1]) / len(ordered[1:-1])" in stats.py'
    with lamina.Agent.open("offline", cwd=repository, home=home, mode="all", on_event=show) as agent:
        for prompt in (f"run {TEST}", mend, f"run {TEST}"):
            agent.run(prompt)


def tests_pass(repository: Path) -> bool:
    return subprocess.run(TEST.split(), cwd=repository, capture_output=True, check=False).returncode == 0


def main() -> None:
    with tempfile.TemporaryDirectory() as place, MessagesServer() as server:
        home, repository = Path(place, "home"), make_repository(Path(place, "repository").resolve())
        used, breaks = with_a_model(home, repository, server)
        print(f"The tests {'pass' if tests_pass(repository) else 'fail'} now.")
        print("The same offline, by commands")
        other = make_repository(Path(place, "offline").resolve())
        offline(home, other)
        print(f"The tests {'pass' if tests_pass(other) else 'fail'} now.")
        refused = sum(request.refused for request in server.requests)
        print(f"{len(server.requests)} requests, {refused} refused; {used.prompt:,} tokens sent, {used.output_tokens:,} received")
        print(f"{used.cache_read / used.prompt:.0%} of all input was read from the cache, {breaks} breaks")


if __name__ == "__main__":
    main()
