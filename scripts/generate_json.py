"""Write docs/json.md: the shape of what every command prints with --json.

    python scripts/generate_json.py            run the commands and write the page
    python scripts/generate_json.py --check    fail if the page is out of date

Every command runs in a new home and project, and the shape is read from what it printed. A command with --json that is not in CALLS is an
error.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
from generate_commands import walk
from generated_page import ROOT, write_or_check

from lamina.cli.main import lamina_command

INTRO = """\
# JSON output

Every command below prints one JSON document on one line with `--json`; notices and errors go to standard error. This page shows the shape
of each document: the fields with the types of their values. `text or null` means that the field is sometimes null, and `[…]` is a list
of such values. Fields may be added: skip unknown ones. The output of `lamina -p` is on [its own page](events.md).

<!-- Generated from the commands' own output: python scripts/generate_json.py -->
"""

# Writes the setting under which memories wait in the inbox.
CONFIRM = "confirm memories"
# Saves a memory as an MCP client does.
CLIENT = "a client saves"
SAVE = """
from lamina import Memory
from lamina.memory.store.contract import ChangeReason

with Memory.open() as memory:
    why = ChangeReason("agent", "saved by cursor over MCP", client="cursor")
    memory.save("audit", type="project", description="The audit ends in May", body="The audit ends in May.", why=why)
"""
# Waits until the team's member has read its message: before, the message has a text, afterwards the time at which it was read.
READ = "wait until the mail is read"
# Each command as it is called, in order. A line that starts with a dash prepares the next ones. {session}, {proposal}, {change}, {node}
# and {act} are the ids of the first session, the first pending change, the last change by a client, the last snip and the newest version
# of a memory.
CALLS = (
    "- -p 'Remember: integration tests use a real database'",
    "- --continue -p 'run echo hello' --permission-mode all",
    "- --continue -p 'What do integration tests use?'",
    "memory save testing-style --type feedback --description 'How tests are written' 'Mocks only at the borders.'",
    "memory list",
    "memory show testing-style",
    "memory search database",
    "memory edit testing-style",
    "memory log",
    "memory diff testing-style",
    "memory blame testing-style",
    "memory undo {act}",
    "memory index",
    "memory path",
    "memory daily",
    "memory remove testing-style",
    "memory restore testing-style",
    f"- {CLIENT}",
    f"- {CONFIRM}",
    "- -p 'Remember: the editor is vi'",
    "- -p 'Remember: deploys go out on Tuesdays'",
    "inbox",
    "inbox accept {proposal}",
    "inbox reject {proposal}",
    "inbox undo {change}",
    "search database",
    "sessions list",
    "sessions show {session}",
    "sessions search hello",
    "sessions pin {session} 'Keep this.'",
    "sessions snip {session} 1",
    "sessions expand {session} {node}",
    "sessions undo {session}",
    "sessions clean --older-than 1d --dry-run",
    "context",
    "stats",
    "replay {session} --requests",
    "dream --status",
    "config",
    "doctor",
    "export ../memories.json --format mcp-memory",
    "import ../memories.json --dry-run",
    "migrate --list",
    "agents",
    "team start pair --member reviewer='read-only: hello' --model offline",
    "agents send reviewer@pair 'Look at the tests.'",
    f"- {READ}",
    "team list",
    "team",
    "team show pair",
    "team stop pair",
    "team send pair reviewer 'Look at the tests.'",
    "team mail pair",
    "install --list",
    "uninstall codex --dry-run",
    "forget database --dry-run",
    "ui --port {port}",
)
SHOWN = {"act": "ID", "session": "SESSION", "proposal": "PROPOSAL", "change": "CHANGE", "node": "NODE", "port": "PORT"}
MAIN = "from lamina.cli.main import main; main()"
PATIENCE = 120
TYPES = {str: "text", bool: "true or false", int: "number", float: "number", type(None): "null"}
_KEY = re.compile(r"[0-9a-f-]{8,}|.*[/.:].*")


def shape(values: list[Any]) -> Any:
    """Return the common shape of values: fields, the shape of a list's items in a list, or the names of types."""
    dicts = [value for value in values if isinstance(value, dict)]
    lists = [value for value in values if isinstance(value, list)]
    names = sorted(
        {TYPES[type(value)] for value in values if not isinstance(value, dict | list)}, key=lambda name: (name == "null", name)
    )
    if dicts:
        keys = list(dict.fromkeys(key for value in dicts for key in value))
        if keys and all(_KEY.fullmatch(key) for key in keys):
            return {"<id>": shape([each for value in dicts for each in value.values()])}
        return {key: shape([value[key] for value in dicts if key in value]) for key in keys}
    if lists:
        items = [item for value in lists for item in value]
        return [shape(items)] if items else []
    return " or ".join(names)


def shown(found: Any, indent: str = "") -> str:
    inner = indent + "  "
    match found:
        case dict() if found:
            fields = ",\n".join(f"{inner}{json.dumps(key)}: {shown(value, inner)}" for key, value in found.items())
            return f"{{\n{fields}\n{indent}}}"
        case dict():
            return "{}"
        case [item]:
            return f"[{shown(item, indent)}]"
        case []:
            return "[]"
        case _:
            return str(found)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Project:
    """A home and a project in which the commands run."""

    def __init__(self, directory: str) -> None:
        self.home, self.cwd = Path(directory, "home"), Path(directory, "home", "shop")
        self.cwd.mkdir(parents=True)
        self.names = {"port": str(free_port())}

    def call(self, line: str) -> Any:
        """Run a line of CALLS and return the document it printed."""
        line = line.format_map(self.names)
        if line == f"- {CONFIRM}":
            (self.home / ".lamina" / "settings.json").write_text('{"lamina": {"memoryMode": {"private": "confirm"}}}', "utf-8")
            return None
        if line == f"- {CLIENT}":
            subprocess.run([sys.executable, "-c", SAVE], cwd=self.cwd, env=self.environ, timeout=PATIENCE, check=True)
            return None
        if line == f"- {READ}":
            self.wait_for_mail()
            return None
        words = shlex.split(line.removeprefix("- "))
        hidden = line.startswith("- ")
        run = self.serve if words[0] == "ui" else self.run
        printed = run(*words, *(() if hidden else ("--json",)))
        value = None if hidden else json.loads(printed)
        self._name(words, value)
        return value

    def _name(self, words: list[str], value: Any) -> None:
        """Keep the ids that later calls need."""
        match words[:2], value:
            case ["inbox", *_], [{"id": first}, *_, {"id": recent}]:
                self.names |= {"proposal": first, "change": recent}
            case ["inbox", "accept"], _:
                self.names["proposal"] = json.loads(self.run("inbox", "--json"))[0]["id"]
            case ["memory", "log"], [{"id": newest}, *_]:
                self.names["act"] = newest
            case ["sessions", "list"], [*_, {"session_id": oldest}]:
                self.names["session"] = oldest
            case ["sessions", "snip"], {"snipped": node}:
                self.names["node"] = node
            case _:
                pass

    def wait_for_mail(self) -> None:
        until = time.monotonic() + PATIENCE
        while not any(row["state"] == "read" for row in json.loads(self.run("team", "mail", "pair", "--json"))):
            if time.monotonic() > until:
                raise SystemExit(f"the member of the team has read nothing in {PATIENCE} s")

    @property
    def environ(self) -> dict[str, str]:
        home = {"PATH": os.environ["PATH"], "HOME": str(self.home), "EDITOR": "sed -i s/Mocks/Fakes/"}
        return home | {"PYTHONUTF8": "1", "PYTHONPATH": str(ROOT / "src")}

    def serve(self, *arguments: str) -> str:
        """Return the first line of a command that runs until it is stopped."""
        command = [sys.executable, "-c", MAIN, *arguments]
        with subprocess.Popen(
            command, cwd=self.cwd, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as serving:
            assert serving.stdout is not None
            line = serving.stdout.readline().decode()
            serving.terminate()
        return line

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *arguments],
            cwd=self.cwd,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        if not done.stdout:
            raise SystemExit(f"{arguments} printed nothing: {done.stderr.decode()}")
        return done.stdout.decode()


def page() -> str:
    known = {path.removeprefix("lamina ") for path, context in walk(lamina_command, "lamina") if _has_json(context.command)}
    parts = [INTRO]
    with tempfile.TemporaryDirectory() as directory:
        project = Project(directory)
        for line in CALLS:
            value = project.call(line)
            if line.startswith("- "):
                continue
            name = _name_of(line, known)
            known.discard(name)
            parts.append(f"\n## lamina {name}\n\n`lamina {line.format_map(SHOWN)} --json`\n\n```\n{shown(shape([value]))}\n```\n")
    if known:
        raise SystemExit(f"not in CALLS: {', '.join(sorted(known))}")
    return "".join(parts)


def _has_json(command: click.Command) -> bool:
    return any("--json" in each.opts for each in command.params)


def _name_of(line: str, known: set[str]) -> str:
    return max((name for name in known if f"{line} ".startswith(f"{name} ")), key=len)


if __name__ == "__main__":
    sys.exit(write_or_check("docs/json.md", page(), "scripts/generate_json.py", sys.argv[1:]))
