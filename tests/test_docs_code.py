"""The Python blocks of the README and the docs run as they are printed, against a server on this machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lamina
from lamina.testing import MessagesServer

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```python\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
WHOLE = ("README.md", "README.zh-CN.md", "docs/agents.md", "docs/memory.md", "docs/session.md")


def blocks(document: str) -> list[str]:
    return [found["body"] for found in BLOCK.finditer((ROOT / document).read_text("utf-8"))]


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
    code = compile(blocks(document)[number], f"{document}#{number}", "exec")
    exec(code, {"__name__": "__main__"})
    assert all(got.status == 200 for got in served.requests)
    assert served.requests or "anthropic" not in blocks(document)[number]


def test_a_list_of_ones_own_reads_all_it_repeats_from_the_cache(served: MessagesServer) -> None:
    [listed] = [block for block in blocks("docs/session.md") if "session.sync" in block]
    exec(compile(listed.replace("max_tokens=8000", 'max_tokens=8000, system="You teach. " * 900'), "sync", "exec"), {})
    first, second = served.requests
    assert first.use is not None
    assert second.use is not None
    assert second.use.read == first.use.total


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
