"""The protocol itself, spoken by hand: bad lines, versions, cancellation, the end, and the claims on a first prompt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from lamina.disk.prompt_claim import claim_for_command, claim_for_server, claim_path, release
from lamina.mcp.memory_tools import MemoryTools
from lamina.mcp.project import ServedProject
from lamina.mcp.server import VERSIONS, ConnectedClient, LaminaServer
from lamina.mcp.session_tools import SessionTools
from lamina.mcp.stdio import StdioConnection
from lamina.mcp.tool_table import MOST_BODY, TOOLS
from lamina.memory.store.draft import MOST_BYTES

# Far more than the server takes on a busy machine.
PATIENCE = 60
Wire = dict[str, Any]


def message(method: str, request: object = None, **params: Any) -> bytes:
    given: Wire = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if request is None else {"id": request})
    return json.dumps(given).encode() + b"\n"


BEGIN = message("initialize", 0, protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"})


def serve(project: Path, data: bytes, *arguments: str, python: tuple[str, ...] = ()) -> tuple[list[Wire], str]:
    """Send everything to a server at once and return its replies, and what it wrote to standard error."""
    command = [sys.executable, *python, "-m", "lamina", "mcp", *arguments]
    done = subprocess.run(command, input=data, cwd=project, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()


BAD = {
    b"{": -32700,
    b"\xff\xfe": -32700,
    b'{"a":' * 50_000: -32700,
    b"[]": -32600,
    b"7": -32600,
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]': -32600,
    b'{"id":1,"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":[1],"method":"ping"}': -32600,
    b'{"jsonrpc":"2.0","id":1,"method":7}': -32600,
    b'{"jsonrpc":"2.0","id":1}': -32600,
    message("no/such", 1).strip(): -32601,
    message("server/discover", "probe").strip(): -32601,
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[1]}': -32602,
    message("tools/list", 1, cursor="x").strip(): -32602,
    message("resources/list", 1, cursor=["x"]).strip(): -32602,
    message("tools/call", 1, name=7).strip(): -32602,
    message("tools/call", 1, name="memory_list", arguments=[]).strip(): -32602,
    message("resources/read", 1).strip(): -32602,
    message("prompts/get", 1, name="recall", arguments=[]).strip(): -32602,
}


@pytest.mark.spec("U4")
def test_each_bad_message_gets_one_error_and_the_server_goes_on(tmp_path: Path) -> None:
    lines = b"".join(line + b"\n\n" for line in BAD)
    ignored = message("notifications/unknown") + b'{"jsonrpc":"2.0","id":9,"result":{}}\n' + message("tools/call", name="x")
    replies, told = serve(tmp_path, BEGIN + lines + ignored + message("ping", "last"))
    assert replies[0]["result"]["serverInfo"]["name"] == "lamina"
    codes = sorted(reply["error"]["code"] for reply in replies if "error" in reply)
    assert codes == sorted(BAD.values())
    assert {"jsonrpc": "2.0", "id": "last", "result": {}} in replies
    assert len(replies) == len(BAD) + 2
    assert told == ""


@pytest.mark.spec("U4")
@pytest.mark.parametrize("asked", [*VERSIONS, "2026-07-28", "1999-01-01", None, 7])
def test_the_version_of_the_client_is_taken_if_it_is_known(asked: object) -> None:
    server = LaminaServer(lambda: pytest.fail("no project is needed"))
    reply = server.answer(json.loads(message("initialize", 1, protocolVersion=asked)), ConnectedClient())
    assert reply is not None
    assert reply["result"]["protocolVersion"] == (asked if asked in VERSIONS else "2025-11-25")


@pytest.mark.spec("U4")
def test_calls_that_run_when_the_input_ends_are_finished(tmp_path: Path) -> None:
    said = {"type": "project", "description": "Deploys are on Tuesday", "body": "After the audit.\ud800"}
    calls = [message("tools/call", name, name="memory_save", arguments={"name": name, **said}) for name in ("a", "b", "c")]
    replies, _ = serve(tmp_path, BEGIN + b"".join(calls))
    assert len(replies) == 4
    whole, _ = serve(tmp_path, message("tools/call", 1, name="memory_list"))
    saved = {reply["id"] for reply in replies[1:] if not reply["result"]["isError"]}
    assert all(name in whole[0]["result"]["content"][0]["text"] for name in saved)


@pytest.mark.spec("U4")
def test_the_first_answers_load_no_library_and_nothing_of_memory(tmp_path: Path) -> None:
    lists = message("notifications/initialized") + message("tools/list", 1) + message("prompts/list", 2)
    replies, told = serve(tmp_path, BEGIN + lists, python=("-X", "importtime"))
    assert [reply["id"] for reply in replies] == [0, 1, 2]
    loaded = {line.rpartition("|")[2].strip() for line in told.splitlines()}
    heavy = {"anyio", "asyncio", "click", "mcp_types", "msgspec", "rich", "sqlite3", "starlette", "subprocess", "yaml"}
    assert not loaded & heavy
    assert not [
        name for name in loaded if name.startswith(("lamina.memory", "lamina.history", "lamina.tools", "lamina.cli.main"))
    ]


@pytest.mark.spec("U4", "U5")
def test_the_start_of_claude_code_reads_no_past_sessions(tmp_path: Path) -> None:
    lists = message("tools/list", 1) + message("prompts/list", 2) + message("resources/list", 3)
    replies, told = serve(tmp_path, BEGIN + lists, "--hooks", "claude-code", python=("-X", "importtime"))
    [resources] = [reply["result"] for reply in replies if reply["id"] == 3]
    assert resources == {"resources": []}, "Claude Code asks for each page that a cursor names"
    assert "lamina.history.sessions" not in {line.rpartition("|")[2].strip() for line in told.splitlines()}


@pytest.mark.spec("U4")
def test_the_table_describes_the_functions(tmp_path: Path) -> None:
    project = ServedProject(tmp_path)
    assert TOOLS.keys() == MemoryTools(project, "").functions().keys() | SessionTools(project).functions().keys()
    assert MOST_BODY == MOST_BYTES
    assert all(entry.description for entry in TOOLS.values())


@pytest.mark.skipif(os.name == "nt", reason="there are no signals")
@pytest.mark.spec("U4")
def test_an_interrupt_ends_the_server_quietly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lamina", "mcp"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=-1, stdout=-1, stderr=-1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(BEGIN)
        process.stdin.flush()
        assert b"lamina" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert (process.wait(PATIENCE), process.stdout.read(), process.stderr.read()) == (0, b"", b"")


class Peer:
    """A client in this process, at the other ends of two pipes."""

    def __init__(self, server: LaminaServer, **limits: int) -> None:
        there, here = os.pipe()
        replies, back = os.pipe()
        self.reader: BinaryIO = os.fdopen(replies, "rb")
        self.writer: BinaryIO = os.fdopen(here, "wb", buffering=0)
        self.ends: list[BinaryIO] = [os.fdopen(there, "rb"), os.fdopen(back, "wb", buffering=0)]
        connection = StdioConnection(server, self.ends[0], self.ends[1].write, **limits)
        self.thread = threading.Thread(target=connection.serve)
        self.thread.start()

    def reply(self) -> Wire:
        answer: Wire = json.loads(self.reader.readline())
        return answer

    def close(self) -> None:
        self.writer.close()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        for file in (self.reader, *self.ends):
            file.close()


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    opened = threading.Event()
    yield opened
    opened.set()


@pytest.mark.spec("U4")
def test_a_cancelled_request_gets_no_reply_and_others_do_not_wait(tmp_path: Path, gate: threading.Event) -> None:
    def slow_project() -> ServedProject:
        gate.wait(PATIENCE)
        return ServedProject(tmp_path)

    peer = Peer(LaminaServer(slow_project))
    save = {"name": "a", "type": "project", "description": "d", "body": "b"}
    peer.writer.write(message("tools/call", "wait", name="memory_save", arguments=save) + message("ping", 2))
    assert peer.reply()["id"] == 2
    peer.writer.write(message("notifications/cancelled", requestId="wait") + message("notifications/cancelled", requestId=None))
    peer.writer.write(message("notifications/cancelled") + message("tools/call", 3, name="memory_list") + message("ping", 4))
    assert peer.reply()["id"] == 4
    gate.set()
    reply = peer.reply()
    assert (reply["id"], reply["result"]["content"][0]["text"]) == (3, "No memories yet.")
    peer.close()


@pytest.mark.spec("U4")
def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path) -> None:
    peer = Peer(LaminaServer(lambda: ServedProject(tmp_path)), most_line=1_000)
    peer.writer.write(b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"' + b"x" * 3_000_000 + b'"}\n' + message("ping", 2))
    assert peer.reply()["error"]["code"] == -32700
    assert peer.reply() == {"jsonrpc": "2.0", "id": 2, "result": {}}
    peer.close()


# The first prompt

CLIENT = 4_242


@pytest.mark.spec("U5")
def test_the_first_prompt_is_answered_once_and_later_ones_by_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert claim_for_server(CLIENT, "why?")
    assert not claim_for_command(CLIENT, "why?")
    assert claim_for_server(CLIENT, "why?")
    release(CLIENT)
    assert os.listdir(tmp_path) == []
    assert claim_for_command(CLIENT, "why?")
    assert not claim_for_server(CLIENT, "why?")
    assert claim_for_server(CLIENT, "why?"), "the same words, asked again"
    assert not claim_for_command(CLIENT, "and now?")
    assert claim_for_command(CLIENT + 1, "why?"), "another session"


@pytest.mark.spec("U5")
def test_of_two_that_claim_a_prompt_at_once_one_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for client in range(200):
        start, won = threading.Barrier(2), list[str]()

        def claim(name: str, client: int = client, start: threading.Barrier = start, won: list[str] = won) -> None:
            start.wait(PATIENCE)
            if (claim_for_server if name == "server" else claim_for_command)(client, "why?"):
                won.append(name)

        threads = [threading.Thread(target=claim, args=(name,)) for name in ("server", "command")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1


@pytest.mark.spec("U5")
def test_without_a_place_for_the_claim_the_server_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    assert claim_for_server(CLIENT, "why?")
    assert not claim_for_command(CLIENT, "why?")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    Path(claim_path(CLIENT)).write_text("a file")
    assert claim_for_server(CLIENT, "why?")
    assert not claim_for_command(CLIENT, "why?")
