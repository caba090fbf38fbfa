"""Every loop, retry, file and buffer is bounded (Z7), as far as a machine can see it in the source.

What looks endless is listed here with what ends it; what is not listed fails, and so does an entry that no longer has its place. What
an SDK holds before it hands us an event is the SDK's own.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lamina.core.errors import StreamBroken
from lamina.providers import stream
from lamina.providers.stream import StreamState

SOURCE = Path(__file__).parent.parent / "src" / "lamina"

# Loops without a condition, and what ends them.
LOOPS = {
    "core/effects.py:drive": "the flow's own end; each flow is in this list or has no such loop",
    "core/effects.py:drive_async": "the flow's own end",
    "cli/dream_actions.py:follow_dream": "the dream's own end, after 55 minutes at the latest; its process's; a person's Ctrl-C",
    "cli/terminal/input_line.py:_watch": "the prompt that started it cancels it when it ends",
    "cli/terminal/screen.py:_tick": "the progress line, whose end clears what it draws",
    "cli/terminal/questions.py:yes_or_no": "each pass waits for a person, whose Ctrl-D or y ends it",
    "cli/memory.py:edit_command": "each pass waits for the user in an editor, who answers whether to edit again",
    "disk/temp_files.py:_rename": "a deadline",
    "agent/driver.py:asked": "a person's answer; an abort",
    "fork/loop.py:run": "its number of rounds; a request is mended once",
    "layers/l3_notes/update.py:_one_try": "the fork's own end",
    "providers/retry.py:asking": "the policy's tries and seconds; a request is reworded a few times at most",
    "providers/stream.py:read_stream": "MAX_EVENTS and MAX_CHARACTERS; an abort",
    "providers/stream.py:read_stream_async": "MAX_EVENTS and MAX_CHARACTERS",
    "session/session.py:_stepwise": "the flow's own end",
    "layers/l4_compact/summary_call.py:summarise": "summary_retries and too_long_tries of the policy",
    "testing/transport.py:_read_chunks": "the client's last chunk, or its connection",
}
# Queues that take as much as is put into them, and why that is little.
QUEUES = {
    "agent/agent_tool.py:__init__": "one report for each agent that was started; at most MOST_AT_ONCE work at once",
    "agent/driver.py:__init__": "each agent waits for what it requests, and they are few",
    "fork/model_call.py:ask_until": "whoever puts an event waits until it is heard",
    "layers/l7_agents/messages.py:open": "MOST_WAITING: what is more is refused",
    "fork/background.py:_begin": "jobs and results together never exceed MOST",
}
# Caches that forget nothing: of functions without arguments, or of few possible ones.
CACHES = {
    "language/patterns.py:read_patterns": "the files of the package",
    "web/page.py:static_address": "the names of our own scripts and styles",
    "core/settings/table.py:defaults": "the names of the policies",
    "core/prompt_files.py:prompt_text": "the names of our own prompts",
    "core/prompt_files.py:prompt_sections": "the names of our own prompts",
}
# Files that only grow, and what shortens or removes them.
APPENDED = {
    "disk/home/ledger.py:add": "a file a day, and the budget; removed after LEDGER_DAYS",
    "disk/home/mailbox.py:deliver": "MOST_UNREAD; what is read is taken out",
    "disk/trees/rootdir.py:append": "the memory's journal: SEGMENTS of SEGMENT_BYTES",
    "disk/transcripts/store.py:open": "a conversation: for as long as its person keeps it (cleanupPeriodDays, lamina sessions clean)",
    "disk/transcripts/store.py:_copy": "the same, continued elsewhere",
    "maintenance/retention.py:remove_sessions": "MOST_JOURNAL, then its older half goes",
}
# Reads of a whole file or stream, whatever its size.
WHOLE = {
    "web/page.py:static_address": "scripts and styles of the package, 60 kB together",
    "providers/offline/judge/weights.py:read_weights": "files of the package, 165 kB together",
}


class Place(NamedTuple):
    """A node with the file and function it stands in."""

    name: str
    node: ast.AST


@pytest.fixture(scope="module")
def nodes() -> list[Place]:
    """Read when the first test asks and gone with the last: every process collects these tests, and one of them runs them."""
    found: list[Place] = []

    def walk(node: ast.AST, file: str, function: str) -> None:
        for child in ast.iter_child_nodes(node):
            inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
            found.append(Place(f"{file}:{inside}", child))
            walk(child, file, inside)

    for path in sorted(SOURCE.rglob("*.py")):
        walk(ast.parse(path.read_text("utf-8")), path.relative_to(SOURCE).as_posix(), "")
    return found


def called(node: ast.AST) -> str:
    """The name of what is called, with what stands before its last dot where that is a name: `deque`, `Appender.open`, `file.read`."""
    match node:
        case ast.Subscript():
            return called(node.value)
        case ast.Name():
            return node.id
        case ast.Attribute():
            return f"{called(node.value)}.{node.attr}"
        case _:
            return ""


def calls(nodes: list[Place], *names: str) -> list[tuple[str, ast.Call]]:
    """Calls by the last part of what is called."""
    return [
        (place.name, place.node)
        for place in nodes
        if isinstance(place.node, ast.Call) and called(place.node.func).rpartition(".")[2] in names
    ]


def is_listed(found: set[str], listed: dict[str, str]) -> None:
    assert found - set(listed) == set(), "say in the list what bounds these"
    assert set(listed) - found == set(), "these are gone: take them out of the list"


@pytest.mark.spec("Z7")
def test_every_loop_without_a_condition_has_an_end_that_is_named(nodes: list[Place]) -> None:
    endless = {
        place.name
        for place in nodes
        if isinstance(place.node, ast.While) and isinstance(place.node.test, ast.Constant) and place.node.test.value
    }
    is_listed(endless, LOOPS)
    assert not [
        name
        for place in nodes
        if isinstance(place.node, ast.ImportFrom) and place.node.module == "itertools"
        for name in place.node.names
        if name.name in ("count", "cycle", "repeat")
    ]


@pytest.mark.spec("Z7")
def test_every_queue_has_a_size_or_a_reason(nodes: list[Place]) -> None:
    made = {
        name
        for name, call in calls(nodes, "deque", "Queue", "SimpleQueue", "LifoQueue", "PriorityQueue")
        if not any(keyword.arg in ("maxlen", "maxsize") for keyword in call.keywords) and len(call.args) < 2
    }
    is_listed(made, QUEUES)


@pytest.mark.spec("Z7")
def test_every_cache_has_a_size_or_few_keys(nodes: list[Place]) -> None:
    endless, wrong = set[str](), list[str]()
    for place in nodes:
        if not isinstance(place.node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for decorator in map(ast.unparse, place.node.decorator_list):
            if decorator in ("cache", "functools.cache") and place.node.args.args:
                endless.add(place.name)
            if "lru_cache" in decorator and ("maxsize=" not in decorator or "None" in decorator):
                wrong.append(place.name)
    assert wrong == []
    is_listed(endless, CACHES)


@pytest.mark.spec("Z7")
def test_every_file_that_only_grows_is_shortened_or_removed_by_somebody(nodes: list[Place]) -> None:
    opened = {name for name, call in calls(nodes, "Appender", "open") if called(call.func) in ("Appender", "Appender.open")}
    is_listed(opened, APPENDED)


@pytest.mark.spec("Z7")
def test_nothing_is_read_whole_whatever_its_size(nodes: list[Place]) -> None:
    whole = set[str]()
    for name, call in calls(nodes, "read", "read_bytes", "read_text", "readlines", "communicate"):
        said = ast.unparse(call.func)
        ours = "__file__" in said or "_PROMPTS" in said or said.endswith((".store.read", ".line.read"))
        if isinstance(call.func, ast.Attribute) and not ours and (call.func.attr == "communicate" or not call.args):
            whole.add(name)
    is_listed(whole, WHOLE)


@pytest.mark.spec("Z7")
@pytest.mark.parametrize("kind", ["text", "ping", "block", "citation"])
def test_an_answer_that_never_ends_is_broken_off(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MAX_EVENTS", 1_000)
    monkeypatch.setattr(stream, "MAX_CHARACTERS", 10_000)
    state = StreamState()
    state.feed({"type": "message_start", "message": {"id": "m", "role": "assistant", "model": "x"}})
    state.feed({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    events: dict[str, dict[str, Any]] = {
        "text": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x" * 100}},
        "ping": {"type": "ping"},
        "block": {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "x" * 100}},
        "citation": {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "citations_delta", "citation": {"x": "y" * 100}},
        },
    }
    for _ in range(900 if kind == "ping" else 50):
        state.feed(events[kind])
    with pytest.raises(StreamBroken, match="does not end it"):  # noqa: PT012  # where exactly is not the point
        for _ in range(1_000):
            state.feed(events[kind])
