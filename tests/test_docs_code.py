"""The Python blocks of the README and the docs run as they are printed, against a server on this machine."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anthropic
import pytest

import lamina
from lamina import testing
from lamina.testing import MessagesServer

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```python\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
WHOLE = (
    *("README.md", "README.zh-CN.md", "docs/agents.md", "docs/memory.md", "docs/multi-tenant.md", "docs/quickstart.md"),
    *("docs/session.md", "docs/settings.md"),
)
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SHELL = re.compile(r"^```sh\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: str) -> list[str]:
    return [found["body"] for found in BLOCK.finditer((ROOT / document).read_text("utf-8"))]


def run(code: str, name: str) -> None:
    """Run a program, and close its clients as its end would."""
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(code, name, "exec"), names)
    for value in names.values():
        if isinstance(value, anthropic.Anthropic):
            value.close()


@pytest.fixture
def served(messages_server: MessagesServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MessagesServer:
    """What the official SDK finds in its environment leads to the server."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_server.url)
    return messages_server


@pytest.mark.parametrize(
    ("document", "number"), [(document, number) for document in WHOLE for number in range(len(blocks(document)))]
)
def test_a_program_in_the_docs_runs_as_it_is_printed(document: str, number: int, served: MessagesServer) -> None:
    run(blocks(document)[number], f"{document}#{number}")
    assert all(got.status == 200 for got in served.requests)
    assert served.requests or "anthropic" not in blocks(document)[number]


def test_a_list_of_ones_own_reads_all_it_repeats_from_the_cache(served: MessagesServer) -> None:
    [listed] = [block for block in blocks("docs/session.md") if "session.sync" in block]
    run(listed.replace("max_tokens=8000", 'max_tokens=8000, system="You teach. " * 900'), "docs/session.md")
    first, second = [received for received in served.requests if not received.fork]
    assert first.use is not None
    assert second.use is not None
    assert second.use.read >= first.use.total, "a review after the first turn may have cached its answer too"


@pytest.mark.prefix_free("it compacts, which is what is shown")
def test_what_the_page_on_compaction_shows_can_be_called(tmp_path: Path) -> None:
    with lamina.Agent.open("offline", cwd=tmp_path, in_memory=True, window=20_000) as agent:
        session, last = agent.session, ""
        for number in range(12):
            last = session.add_user(f"The port of service {number} is {8000 + number}. " + "word " * 60)
            session.ask()
        given = {
            "agent": agent,
            "session": session,
            "message_id": last,
            "text_of_the_skill": "A skill.",
            "plan_text": lambda: "The plan.",
            "in_plan_mode": lambda: True,
            "listing": "one server",
        }
        for block in blocks("docs/compaction.md"):
            exec(compile(block, "docs/compaction.md", "exec"), given)


def private_names(code: str) -> Iterator[str]:
    """The names of Lamina that a program uses and that no `__all__` offers."""
    public = {"lamina": {*lamina.__all__, "testing"}, "lamina.testing": {*testing.__all__, "memory_conformance", "plugin"}}
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names if name.name.startswith("lamina.") and name.name not in public)
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] == "lamina":
                yield from (f"{module}.{name.name}" for name in names if name.name not in public.get(module, ()))
            case ast.Attribute(value=ast.Name(id="lamina"), attr=name) if name not in public["lamina"]:
                yield f"lamina.{name}"
            case _:
                pass


def test_no_page_uses_a_private_name() -> None:
    assert [(page, name) for page in PAGES for block in blocks(page) for name in private_names(block)] == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import lamina\nlamina.Session('offline')", []),
        ("from lamina import Pivot\nfrom lamina.testing import MessagesServer", []),
        ("from lamina.core.flags import openfeature_flags", ["lamina.core.flags.openfeature_flags"]),
        ("import lamina.turn", ["lamina.turn"]),
        ("import lamina\nlamina.turn", ["lamina.turn"]),
    ],
)
def test_a_private_name_is_found(code: str, found: list[str]) -> None:
    assert [*private_names(code)] == found


@pytest.mark.exhaustive
@pytest.mark.skipif(os.name == "nt", reason="the page is for a POSIX shell")
def test_the_quick_start_runs_as_it_is_printed(tmp_path: Path) -> None:
    printed = [found["body"] for found in SHELL.finditer((ROOT / "docs/quickstart.md").read_text("utf-8"))]
    script = "".join(body for body in printed if not body.startswith("pip "))
    assert script.count("lamina ") > 10
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("LAMINA_", "ANTHROPIC_", "OPENAI_"))}
    shell = f'set -eu\nlamina() {{ "{sys.executable}" -m lamina "$@"; }}\n{script}'
    environ = {**clean, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "(memory: integration-tests-real-database)" in done.stdout
    assert [*tmp_path.iterdir()] == []
