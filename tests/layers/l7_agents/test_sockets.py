"""Messages over Unix sockets: which callers are accepted, which are disconnected, and what a caller learns."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.disk.processes import needs_fork, together

from lamina.core.errors import DiskError
from lamina.disk.home import sockets
from lamina.layers.l7_agents import sockets as uds
from lamina.layers.l7_agents.messages import AgentMessage, encode_message
from lamina.layers.l7_agents.sockets import MOST_CALLERS, MOST_LINE, Listener, call_session

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs Unix sockets")

PATIENCE = 120
SESSION = "00000000-0000-4000-8000-0123456789ab"


class Box:
    def __init__(self) -> None:
        self.came: list[AgentMessage] = []
        self.full = False

    def take(self, letter: AgentMessage) -> str | None:
        if self.full:
            return "The session has too many unread messages."
        self.came.append(letter)
        return None


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.fixture
def home() -> Iterator[Path]:
    """A short path, since a socket's path is limited and pytest's directories are long."""
    made = Path(tempfile.mkdtemp(prefix="lamina-uds-")).resolve()
    yield made
    shutil.rmtree(made)


@pytest.fixture
def listener(home: Path, box: Box) -> Iterator[Listener]:
    made = Listener(home, SESSION, box.take, seconds=PATIENCE)
    yield made
    made.close()


def connected(path: Path) -> socket.socket:
    calling = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    calling.settimeout(PATIENCE)
    calling.connect(str(path))
    return calling


def rest(calling: socket.socket) -> bytes:
    """Return everything that arrives until the other side disconnects."""
    heard = b""
    with suppress(ConnectionResetError):
        while part := calling.recv(65_536):
            heard += part
    return heard


@needs_fork
@pytest.mark.spec("A6")
def test_another_process_sends_and_is_told_that_it_arrived(listener: Listener, box: Box) -> None:
    def work(number: int) -> None:
        for count in range(3):
            assert call_session(str(listener.path), AgentMessage.new(f"p{number}", f"message {count}"), seconds=PATIENCE) is None

    together(2, work)
    assert len(box.came) == 6
    for sender in ("p0", "p1"):
        assert [letter.text for letter in box.came if letter.sender == sender] == ["message 0", "message 1", "message 2"]


@pytest.mark.spec("A6")
def test_the_socket_is_private_and_goes_with_its_session(home: Path, box: Box) -> None:
    made = Listener(home, SESSION, box.take)
    assert made.path.stat().st_mode & 0o777 == 0o600
    assert made.path.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(DiskError, match="already exists"):
        Listener(home, SESSION, box.take)
    made.close()
    assert not made.path.exists()
    assert call_session(str(made.path), AgentMessage.new("a", "b")) == f"No session listens at {made.path}."


def test_a_directory_others_can_enter_is_refused(home: Path, box: Box) -> None:
    (home / sockets.DIRECTORY).mkdir()
    (home / sockets.DIRECTORY).chmod(0o755)
    with pytest.raises(DiskError, match="is accessible to other users"):
        Listener(home, SESSION, box.take)


def test_a_session_that_crashed_listens_again_and_old_sockets_are_swept(home: Path, box: Box) -> None:
    for name in (SESSION[-uds.OF_NAME :], "old", "young"):
        left, path = sockets.bind(home, name)
        left.close()  # without `remove`: a crash
        if name == "old":
            os.utime(path, (1.0, 1.0))
    made = Listener(home, SESSION, box.take, seconds=PATIENCE)
    assert sorted(path.name for path in made.path.parent.iterdir()) == sorted([made.path.name, "young.sock"])
    assert call_session(str(made.path), AgentMessage.new("a", "b"), seconds=PATIENCE) is None
    made.close()


@pytest.mark.spec("A6")
@pytest.mark.parametrize(
    "said",
    [
        b"\n",
        b"GET / HTTP/1.1\r\n",
        b"{}\n",
        b"\xff\xfe\n",
        b'{"id":"x","sender":"a","text":"b"}\n',
        b'{"x":' + b"[" * 5_000 + b"\n",
    ],
    ids=lambda said: repr(said[:16]),
)
def test_garbage_is_answered_and_nothing_is_taken(listener: Listener, box: Box, said: bytes) -> None:
    with connected(listener.path) as calling:
        calling.sendall(said)
        assert b"This is not a valid message." in rest(calling)
    assert box.came == []


def test_who_says_too_much_or_nothing_is_hung_up_on(home: Path, box: Box) -> None:
    made = Listener(home, SESSION, box.take, seconds=0.3)
    with connected(made.path) as silent, connected(made.path) as endless:
        with suppress(OSError):  # it was hung up on in the middle
            endless.sendall(b"x" * (2 * MOST_LINE))
        assert b'"ok"' not in rest(endless)
        assert rest(silent) == made._greeting, "greeted, waited for, and left"
    with connected(made.path) as again:
        assert again.recv(4_096) == made._greeting, "the next is heard"
    assert box.came == []
    made.close()


def test_more_callers_than_are_heard_at_once_are_hung_up_on_unheard(listener: Listener, box: Box) -> None:
    waiting = [connected(listener.path) for _ in range(MOST_CALLERS)]
    for each in waiting:
        assert each.recv(4_096).startswith(b'{"lamina":1')
    with connected(listener.path) as late:
        assert rest(late) == b""
    for number, each in enumerate(waiting):
        each.sendall(encode_message(AgentMessage.new("a", str(number))) + b"\n")
        assert b'{"ok":true}' in rest(each)
        each.close()
    assert sorted(letter.text for letter in box.came) == [str(number) for number in range(MOST_CALLERS)]


@pytest.mark.spec("A6")
def test_after_its_end_nothing_is_taken_and_nobody_is_left_waiting(home: Path, box: Box) -> None:
    made = Listener(home, SESSION, box.take, seconds=PATIENCE)
    with connected(made.path) as early:
        assert early.recv(4_096) == made._greeting
        early.sendall(b'{"id":"0123')
        made.close()
        assert made._accept(AgentMessage.new("a", "b")) == uds.ENDING, "by a caller who was in the middle of it"
        assert rest(early) == b""
    assert box.came == []
    assert not made.path.exists()


@needs_fork
def test_a_forked_childs_end_leaves_the_socket_to_its_parent(listener: Listener, box: Box) -> None:
    together(1, lambda _: listener.close())
    assert call_session(str(listener.path), AgentMessage.new("a", "b"), seconds=PATIENCE) is None
    assert [letter.text for letter in box.came] == ["b"]


def test_another_persons_process_is_not_heard(listener: Listener, box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with connected(listener.path) as calling:
        assert rest(calling) == b""
    assert "belongs to another user" in str(call_session(str(listener.path), AgentMessage.new("a", "b")))
    assert box.came == []


@pytest.mark.spec("A6")
def test_nothing_is_written_to_a_socket_that_is_no_sessions(home: Path) -> None:
    listening, path = sockets.bind(home, "docker")
    heard: list[bytes] = []

    def serve() -> None:
        caller, _ = listening.accept()
        with caller:
            caller.sendall(b"220 mail ready\n")
            heard.append(rest(caller))

    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    assert "is not a Lamina session, so nothing was sent" in str(
        call_session(str(path), AgentMessage.new("a", "b"), seconds=PATIENCE)
    )
    serving.join(PATIENCE)
    assert heard == [b""]
    (stopped := threading.Event()).set()  # one that never says anything is left
    assert "nothing was sent" in str(call_session(str(path), AgentMessage.new("a", "b"), seconds=PATIENCE, abort=stopped))
    listening.close()


def test_a_full_session_says_so_and_a_path_that_is_none_is_a_sentence(listener: Listener, box: Box, home: Path) -> None:
    box.full = True
    assert (
        call_session(str(listener.path), AgentMessage.new("a", "b"), seconds=PATIENCE)
        == "The session has too many unread messages."
    )
    for path in ("relative.sock", "/x\0y", "/" + "x" * 200):
        assert "is not an absolute socket path" in str(call_session(path, AgentMessage.new("a", "b")))
    os.symlink(listener.path, home / "link.sock")
    for path in (str(home / "link.sock"), f"{listener.path.parent}/../sockets/{listener.path.name}"):
        assert f"own path: {listener.path}" in str(call_session(path, AgentMessage.new("a", "b")))
    assert call_session(str(home / "none.sock"), AgentMessage.new("a", "b")) == f"No session listens at {home / 'none.sock'}."


@pytest.mark.spec("A6")
def test_without_unix_sockets_it_is_one_sentence(home: Path, box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    assert call_session("/x.sock", AgentMessage.new("a", "b")) == uds.NO_SOCKETS
    with pytest.raises(DiskError, match="has no Unix sockets"):
        Listener(home, SESSION, box.take)
