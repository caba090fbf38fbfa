"""The Python blocks of the README and the docs run as they are printed, against a server on this machine."""

from __future__ import annotations

import ast
import json
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
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("bench/*.md"), *ROOT.glob("examples/*.md")]
)
# Pages whose blocks are no programs, and what runs them.
OTHERWISE = {
    "docs/compaction.md": "lines for an open session: test_what_the_page_on_compaction_shows_can_be_called",
    "docs/hooks.md": "a hook, which reads a call: test_the_hook_of_the_page_on_hooks_stops_a_push",
    "docs/testing.md": "a test file (tests/testing/test_docs.py), and lines for its server: test_the_lines_for_a_test_server_run",
}
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


PROGRAMS = [(page, number) for page in PAGES if page not in OTHERWISE for number in range(len(blocks(page)))]


@pytest.mark.parametrize(("document", "number"), PROGRAMS)
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
        session = agent.session
        given: dict[str, object] = {
            "agent": agent,
            "session": session,
            "text_of_the_skill": "A skill.",
            "plan_text": lambda: "The plan.",
            "in_plan_mode": lambda: True,
            "listing": "one server",
        }
        for statement in (node for block in blocks("docs/compaction.md") for node in ast.parse(block).body):
            if "session.compact(" in ast.unparse(statement):  # after a compaction, there is nothing to summarise
                for number in range(12):
                    message = session.add_user(f"The port of service {number} is {8000 + number}. " + "word " * 200)
                    given["message_id"] = message if number == 2 else given.get("message_id")
                    session.ask()
            exec(compile(ast.Module([statement], []), "docs/compaction.md", "exec"), given)


def test_the_hook_of_the_page_on_hooks_stops_a_push() -> None:
    [hook] = blocks("docs/hooks.md")
    for command, status in (("git push origin main", 2), ("git status", 0)):
        call = json.dumps({"tool_input": {"command": command}})
        done = subprocess.run([sys.executable, "-c", hook], input=call, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr


@pytest.mark.prefix_free("announces a break that is not made")
def test_the_lines_for_a_test_server_run(served: MessagesServer) -> None:
    _, *lines = blocks("docs/testing.md")
    assert len(lines) == 2
    with anthropic.Anthropic(max_retries=0) as client, lamina.Session("anthropic:claude-sonnet-5-5", client=client) as session:
        for block in lines:
            exec(compile(block, "docs/testing.md", "exec"), {"messages_server": served, "session": session})
        for words in ("How long is notes.md?", "And now?"):
            session.add_user(words)
            session.after_call(client.messages.create(**session.before_call()))
    assert [received.status for received in served.requests if not received.fork] == [200, 200]


def test_python_on_a_page_is_in_a_block_that_runs() -> None:
    other = re.compile(
        r"^```(?:py|python3|pycon)\b|^    (?:session|agent|memory|server|messages_server|lamina)\.\w+\(", re.MULTILINE
    )
    outside = [BLOCK.sub("", (ROOT / page).read_text("utf-8")) for page in PAGES]
    assert [found for text in outside for found in other.findall(text)] == []


# Objects that pages call by these names.
OBJECTS: dict[str, object] = {
    "lamina": lamina,
    "session": lamina.Session,
    "agent": lamina.Agent,
    "memory": lamina.Memory,
    "messages_server": MessagesServer,
    "reply": lamina.Reply,
}
SPAN = re.compile(rf"`((?:{'|'.join(OBJECTS)})\.\w+\([^`]*)`")


def missing_names(code: str) -> list[str]:
    """Return the names in a line of code that its object does not have."""
    uses = [node for node in ast.walk(ast.parse(code.replace("…", "..."))) if isinstance(node, ast.Attribute)]
    named = [(use.value.id, use.attr) for use in uses if isinstance(use.value, ast.Name) and use.value.id in OBJECTS]
    return [f"{name}.{attribute}" for name, attribute in named if not hasattr(OBJECTS[name], attribute)]


def test_calls_in_the_text_of_a_page_name_what_exists() -> None:
    # The specification also names what is not built yet.
    calls = [call for page in PAGES if page != "docs/spec.md" for call in SPAN.findall((ROOT / page).read_text("utf-8"))]
    assert len(calls) > 10
    assert [missing for call in calls for missing in missing_names(call)] == []


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
