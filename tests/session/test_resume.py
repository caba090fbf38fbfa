"""Going on where a session stopped: the next request is the one that would have been sent, whatever wrote the file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.session.plain import Session

from lamina.conversation import revision
from lamina.core.blocks import read_content
from lamina.core.errors import InputError, NewerVersion, NoSuchSession, NothingToSend
from lamina.core.log import Log
from lamina.core.record_lines import FORMAT
from lamina.core.records import Boundary, Forked, Message
from lamina.disk.transcripts.jsonl import BOM, raw_lines_back
from lamina.disk.transcripts.resume import find_resume_point
from lamina.disk.transcripts.store import read_transcript
from lamina.session.base import conversation_of

from .foreign import SESSION, TEXTS, foreign_rows, foreign_transcript
from .play import Play, compact, turns
from .words import READ, Wire, answer, call, files_under, marks, objects, records, refused, said, user

PROMPT: dict[str, Any] = {"system": "be brief", "tools": [READ]}
# A session of all kinds of steps; "branch" and "compact" go through what a list and a layer would do.
KINDS = st.sampled_from(["user", "answer", "cut", "result", "late", "ask", "branch", "compact", "undo"])
LIVES = st.lists(st.tuples(KINDS, st.integers(0, 7)), min_size=3, max_size=16)


class Life(Play):
    """A play whose every request is compared with that of a session resumed from the file at that moment."""

    def __init__(self, session: Session, elsewhere: Path) -> None:
        super().__init__(session)
        self.elsewhere = elsewhere
        self.boundaries: list[str] = []

    def step(self, kind: str, number: int) -> None:
        match kind:
            case "branch":
                self.session.sync(user_words(self.session.messages)[: number % 3])
            case "compact" if self.session.messages:
                items = conversation_of(self.session).log.view.items
                kept = tuple(item.uuid for item in items[len(items) - number % 3 :] if item.kind == "said")
                self.boundaries.append(compact(self.session, f"summary {len(self.boundaries)}", kept))
            case "undo" if self.boundaries and not self.session.status.open_calls:
                boundary = self.boundaries.pop()
                if boundary in conversation_of(self.session).log.decisions:
                    revision.undo(conversation_of(self.session), boundary)
            case "ask":
                expected = self.resumed_request()
                before = len(self.sent)
                super().step(kind, number)
                # A play may hand in answers to requests that never left; what is announced of those is another matter.
                assert unannounced(expected) == unannounced(self.copies[-1] if len(self.sent) > before else None)
            case _:
                super().step(kind, number)

    def resumed_request(self) -> Wire | None:
        assert self.session.path is not None
        copied = shutil.copy(self.session.path, self.elsewhere / f"copy-{len(self.sent)}.jsonl")
        with Session("offline", home=self.elsewhere, resume=Path(copied)) as other:
            try:
                return other.before_call()
            except NothingToSend:
                return None


def unannounced(request: Wire | None) -> Wire | None:
    return {name: value for name, value in request.items() if name != "extra_headers"} if request is not None else None


@pytest.mark.spec("K3")
@pytest.mark.parametrize("decision", ["compaction", "branch", "undo"])
def test_a_resumed_session_announces_the_break_that_was_decided_before_it_stopped(tmp_path: Path, decision: str) -> None:
    with Session("offline", home=tmp_path, **PROMPT) as session:
        turns(session, "a", "b", "c")
        if decision == "branch":
            session.sync(session.messages[:2])
        elif decision == "compaction":
            compact(session, "what was said")
        else:
            boundary = compact(session, "what was said")
            turns(session, "d")
            revision.undo(conversation_of(session), boundary)
    with Session("offline", home=tmp_path, resume=session.id) as resumed:
        resumed.add_user("go on")
        assert resumed.before_call()["extra_headers"] == {"x-lamina-break": decision}
        resumed.after_call(answer("m9", "on"))
        resumed.add_user("and on")
        assert "extra_headers" not in resumed.before_call()


def user_words(messages: list[Wire]) -> list[Wire]:
    return [user(words) for words in said([message for message in messages if message["role"] == "user"])]


@settings(max_examples=25)
@given(life=LIVES)
def test_a_resumed_session_sends_what_the_uninterrupted_one_sends(
    life: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Session("offline", home=tmp_path_factory.mktemp("home"), system="be brief", tools=[READ]) as session:
        turns(session, "hello")
        played = Life(session, tmp_path_factory.mktemp("elsewhere"))
        for kind, number in [*life, ("user", 0), ("ask", 0)]:
            played.step(kind, number)


def a_long_session(home: Path) -> Path:
    """Calls, results, an answer cut off, a branch and a change of the prompt."""
    with Session("offline", home=home, system="be brief", tools=[READ]) as session:
        turns(session, "a")
        session.add_user("b")
        session.before_call()
        session.after_call(answer("m1", "look", call("c1"), call("c2")))
        session.add_tool_result("c2", "r2")
        session.add_tool_result("c1", "r1")
        session.before_call()
        session.after_call(answer("m2", call("c3")) | {"stop_reason": None})
        session.sync([user("a"), user("other")])
        turns(session, "c")
    with Session("offline", home=home, resume=session.id, system="be long") as session:
        turns(session, "d")
    assert session.path is not None
    return session.path


@pytest.mark.spec("Z4", "Z6")
@pytest.mark.parametrize("torn", [False, True], ids=["between lines", "in a line"])
def test_a_session_cut_at_any_record_goes_on_with_a_valid_request(tmp_path: Path, torn: bool) -> None:
    lines = a_long_session(tmp_path / "home").read_bytes().splitlines(keepends=True)
    assert len(lines) > 15
    for count in range(len(lines)):
        path = tmp_path / f"cut-{count}.jsonl"
        stub = lines[count][: len(lines[count]) // 2] if torn else b""
        path.write_bytes(b"".join(lines[:count]) + stub)
        with Session("offline", home=tmp_path / "home", resume=path) as session:
            session.add_user("and now?")
            assert refused(session.before_call()) == []
            assert len(session.notices) == torn, session.notices
        assert path.read_bytes().startswith(b"".join(lines[:count]) + stub)
        assert len(records(path)) >= count + 1


def test_a_session_is_found_by_its_id_its_beginning_and_its_file(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, cwd=tmp_path, **PROMPT) as session:
        turns(session, "a")
        path = session.path
    assert path is not None
    for name in (session.id, session.id[:8], path, str(path)):
        with Session("offline", home=tmp_path, cwd=tmp_path, resume=name) as again:
            assert (again.id, again.path, again.notices) == (session.id, path, [])
            again.add_user("b")
            request = again.before_call()
            assert request["system"][0]["text"] == "be brief"
            assert marks(request) == ["tools.0", "system.0", "messages.0.0", "messages.2.0"]
            again.sync([user("a"), *again.messages[1:2]])
    (tmp_path / "other").mkdir()
    with Session("offline", home=tmp_path, cwd=tmp_path / "other", resume=session.id[:8]) as again:
        assert again.path == path


def test_a_beginning_that_fits_several_sessions_is_no_name(tmp_path: Path) -> None:
    ids = ["abcd0000-0000-4000-8000-00000000000" + digit for digit in "12"]
    for name in ids:
        Session("offline", home=tmp_path, session_id=name).close()
    with pytest.raises(InputError, match="abcd0000"):
        Session("offline", home=tmp_path, resume="abcd0000")
    with Session("offline", home=tmp_path, resume=ids[0]) as session:
        assert session.id == ids[0]


def test_an_id_somebody_chose_is_never_taken_for_a_longer_one(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with Session("offline", home=tmp_path, session_id="user-12", cwd=tmp_path) as session:
        session.add_user("a secret")
    with pytest.raises(NoSuchSession, match="Session 'user-1' not found in"):
        Session("offline", home=tmp_path, resume="user-1", cwd=tmp_path)
    Session("offline", home=tmp_path, session_id="user-1", cwd=tmp_path / "other").close()
    with Session("offline", home=tmp_path, resume="user-1", cwd=tmp_path) as again:
        assert again.id == "user-1"
        assert again.messages == []


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b.jsonl", "no-such-one", "*", "a\0b", "x" * 300, "\ud800"])
def test_a_name_that_is_no_session_is_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises((InputError, NoSuchSession)) as told:
        Session("offline", home=tmp_path, resume=name)
    assert "\n" not in str(told.value)
    assert list(files_under(tmp_path)) == []


def test_an_id_is_used_once(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, session_id="mine") as session:
        session.add_user("a")
        with pytest.raises(InputError, match="already exists; open it with resume="):
            Session("offline", home=tmp_path, session_id="mine")
    with pytest.raises(InputError, match="already exists"):
        Session("offline", home=tmp_path, session_id="mine")


def test_a_session_that_cannot_be_opened_leaves_nothing_and_holds_nothing(tmp_path: Path) -> None:
    wrongs: list[dict[str, Any]] = [{"window": 3}, {"system": 5}, {"tools": ["x"]}, {"options": 5}, {"policy": "none such"}]
    for wrong in wrongs:
        with pytest.raises(InputError):
            Session("offline", home=tmp_path, **wrong)
    assert [path for path in files_under(tmp_path) if path.suffix == ".jsonl"] == []
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
    with pytest.raises(InputError):
        Session("offline", home=tmp_path, resume=session.id, window=3)
    with Session("offline", home=tmp_path, resume=session.id) as again:
        assert again.notices == []


def test_a_transcript_of_another_program_is_continued_in_a_file_of_ours(tmp_path: Path) -> None:
    source = foreign_transcript(tmp_path / "theirs")
    before = source.read_bytes()
    with Session("offline", home=tmp_path / "home", resume=source) as session:
        assert session.notices == [
            f"Session {SESSION} continues as {session.id}, because it was last written by another program."
        ]
        assert [words for words in said(session.messages) if words in TEXTS] == TEXTS
        calls = [block["id"] for block in session.messages[1]["content"] if block["type"] == "tool_use"]
        assert calls == ["toolu_1", "toolu_2"]
        assert session.status.open_calls == ()
        request = session.before_call()
        assert refused(request) == []
        session.after_call(answer("m9", "5432"))
        copied = session.path.read_bytes() if session.path else b""
        assert copied.startswith(before), "lines of the other program keep their bytes"
        forked = [record for record in records(session.path) if isinstance(record, Forked)]
        assert [(record.from_session, record.from_path) for record in forked] == [(SESSION, str(source))]
        messages = session.messages
    assert source.read_bytes() == before
    assert sorted(path.name for path in (tmp_path / "theirs").iterdir()) == [source.name]
    with Session("offline", home=tmp_path / "home", resume=session.id) as again:
        assert again.notices == []
        assert again.messages == messages


def damaged_foreign() -> tuple[bytes, int]:
    """A foreign file with one of each kind of damage that leaves all records whole, and how many lines it has too many."""
    rows = [json.dumps(row, separators=(",", ":")).encode() for row in foreign_rows()]
    surrogate = (
        json.dumps({**foreign_rows()[14], "uuid": "u-30", "parentUuid": "u-22"}).replace(TEXTS[3], TEXTS[3] + "\\ud83d").encode()
    )
    torn = rows[3][: len(rows[3]) // 2]
    parts = [BOM, rows[0], b"\r\n", rows[1], rows[2], b"\n", torn, rows[3], b"\n", b"\0" * 4096, rows[4], b"\n"]
    parts += [row + b"\n" for row in rows[5:-1]] + [b"not json\n", surrogate]
    return b"".join(parts), 2


@pytest.mark.spec("Z4")
def test_the_good_records_of_a_damaged_foreign_file_all_come_along(tmp_path: Path) -> None:
    source = tmp_path / f"{SESSION}.jsonl"
    data, skipped = damaged_foreign()
    source.write_bytes(data)
    expected = Log.load(lambda: read_transcript(source)).view.messages()
    assert [words for words in said(expected) if words in TEXTS] == TEXTS
    assert said(expected)[-1] == TEXTS[3] + "\ufffd"
    with Session("offline", home=tmp_path / "home", resume=source) as session:
        assert session.messages == expected
        assert f"{skipped} lines could not be read" in " ".join(session.notices)
    assert source.read_bytes() == data
    with Session("offline", in_memory=True, resume=source) as memory:
        assert memory.messages == expected
        assert f"{skipped} lines could not be read" in " ".join(memory.notices)


DAMAGE: dict[str, tuple[bytes, int]] = {
    "a torn line": (b'{"parentUuid":null,"type":"user","uu\n', 1),
    "a stub before the next record": (b'{"parentUuid":null,"type":"user","uu', 1),
    "a block of NUL": (b"\0" * 4_096 + b"\n", 1),
    "a block of NUL before the next record": (b"\0" * 4_096, 0),
    "a byte-order mark": (BOM, 0),
    "blank lines and CRLF": (b"\r\n\r\n", 0),
    "bytes that are no UTF-8": (b"\xff\xfe\n", 1),
    "not JSON": (b"hello\n", 1),
    "not an object": (b"[1, 2]\n", 1),
    "an object that is no record": (b"{}\n", 0),
    "a record without an id": (b'{"type":"user","message":{"content":"who?"}}\n', 0),
    "a message that is no message": (b'{"type":"user","uuid":"x","message":5}\n', 0),
}


@pytest.mark.spec("Z4")
@pytest.mark.parametrize(("junk", "skipped"), DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_in_a_transcript_of_ours_hides_nothing_and_is_counted(tmp_path: Path, junk: bytes, skipped: int) -> None:
    path = a_long_session(tmp_path)
    with Session("offline", in_memory=True, resume=path) as session:
        expected = session.messages
    lines = path.read_bytes().splitlines(keepends=True)
    # A whole object at the end would be another program's last word, and the file then theirs.
    for place in (0, len(lines) // 2, *(() if junk.endswith(b"}\n") else (len(lines),))):
        damaged = b"".join([*lines[:place], junk, *lines[place:]])
        path.write_bytes(damaged)
        with Session("offline", home=tmp_path, resume=path.stem) as session:
            assert session.messages == expected
            lost = skipped or (junk.startswith(b"\0") and place == len(lines))
            assert len(session.notices) == bool(lost)
            assert not lost or session.notices[0].startswith(f"{path}: 1 line could not be read and was skipped")
        assert path.read_bytes() == damaged


def test_a_session_in_memory_may_go_on_from_a_file_and_leaves_it_alone(tmp_path: Path) -> None:
    path = a_long_session(tmp_path)
    before, files = path.read_bytes(), list(files_under(tmp_path))
    with Session("offline", home=tmp_path, resume=path.stem) as session:
        expected = session.messages
    with Session("offline", in_memory=True, resume=path) as memory:
        assert memory.messages == expected
        memory.add_user("more")
        assert refused(memory.before_call()) == []
    assert path.read_bytes() == before
    assert list(files_under(tmp_path)) == files
    with pytest.raises(InputError, match="pass the transcript file"):
        Session("offline", in_memory=True, resume=path.stem)


def test_a_transcript_of_a_newer_lamina_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = a_long_session(tmp_path)
    newer = objects(path)[-1] | {"uuid": "n-1", "lamina": {"v": FORMAT + 1, "kind": "unheard-of"}}
    path.write_bytes(path.read_bytes() + json.dumps(newer).encode() + b"\n")
    before = {file: file.read_bytes() for file in files_under(tmp_path)}
    with pytest.raises(NewerVersion, match=f"written in format {FORMAT + 1} by a newer version of Lamina"):
        Session("offline", home=tmp_path, resume=path.stem)
    assert {file: file.read_bytes() for file in files_under(tmp_path)} == before


def test_records_of_unknown_kinds_keep_their_bytes_and_their_place(tmp_path: Path) -> None:
    path = a_long_session(tmp_path)
    last = [record for record in records(path) if isinstance(record, Message)][-1].uuid
    odd = (
        b'{"type" : "hologram",  "uuid":"h-1","parentUuid":"%s", "sessionId":"s", "lamina": {"v":1}, "x":[1.50, "\\u00e9"]}\n'
        % last.encode()
    )
    ours = b'{"type":"system","subtype":"lamina","uuid":"h-2","parentUuid":"h-1","lamina":{"v":1,"kind":"tomorrow","data":{}}}\n'
    before = path.read_bytes() + odd + ours
    path.write_bytes(before)
    with Session("offline", home=tmp_path, resume=path.stem) as session:
        assert session.notices == []
        turns(session, "e")
        assert said(session.messages)[-2:] == ["e", "about e"]
    assert path.read_bytes().startswith(before)


def test_after_a_compaction_only_what_is_kept_is_read(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, **PROMPT) as session:
        turns(session, *"abcdef")
        kept = tuple(item.uuid for item in conversation_of(session).log.view.items[-2:])
        compact(session, "all of it", kept)
        session.add_user("g")
        request = session.before_call()
        assert said(request["messages"]) == ["all of it", "f", "about f", "g"]
        path = session.path
    assert path is not None
    start, checkpoint = find_resume_point(raw_lines_back(path))
    assert checkpoint is not None
    assert path.read_bytes()[start:].split(b"\n")[0].find(kept[0].encode()) > 0
    everything = Log.load(lambda: read_transcript(path))
    with Session("offline", home=tmp_path, resume=session.id) as again:
        assert conversation_of(again).start == start
        assert again.messages == everything.view.messages()
        assert again.before_call() == request


def test_a_compacted_session_that_is_open_elsewhere_is_forked_whole(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, **PROMPT) as session:
        turns(session, *"abcdef")
        compact(session, "all of it", tuple(item.uuid for item in conversation_of(session).log.view.items[-2:]))
        turns(session, "g")
        with Session("offline", home=tmp_path, resume=session.id) as fork:
            assert fork.notices == [f"Session {session.id} continues as {fork.id}, because it is open in another process."]
            session.add_user("h")
            fork.add_user("h")
            assert fork.before_call() == session.before_call()
    with Session("offline", home=tmp_path, resume=fork.id) as again:
        assert again.messages == fork.messages


@pytest.mark.parametrize("more", [False, True], ids=["at the end", "with messages behind it"])
def test_a_boundary_without_its_summary_has_no_effect(tmp_path: Path, more: bool) -> None:
    with Session("offline", home=tmp_path, **PROMPT) as session:
        turns(session, "a", "b")
        uuid, leaf, time = conversation_of(session).head()
        conversation_of(session).store.append([Boundary(uuid, leaf, time, "auto")])
    with Session("offline", home=tmp_path, resume=session.id) as again:
        if more:
            turns(again, "c")
        expected = ["a", "about a", "b", "about b", *(["c", "about c"] if more else [])]
        assert said(again.messages) == expected
    with Session("offline", home=tmp_path, resume=session.id) as again:
        assert said(again.messages) == expected
        again.add_user("d")
        assert again.before_call()["system"][0]["text"] == "be brief"


def test_a_compaction_that_died_before_its_checkpoint_keeps_the_prompt(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, **PROMPT) as session:
        turns(session, "a", "b")
        uuid, leaf, time = conversation_of(session).head()
        summary = Message("s-1", uuid, time, "user", read_content("a and b"), summary=True)
        conversation_of(session).store.append([Boundary(uuid, leaf, time, "auto"), summary])
    with Session("offline", home=tmp_path, resume=session.id) as again:
        again.add_user("c")
        request = again.before_call()
        assert said(request["messages"]) == ["a and b", "c"]
        assert request["system"][0]["text"] == "be brief"
        assert [tool["name"] for tool in request["tools"]] == ["Read"]


def test_a_checkpoint_that_points_into_nowhere_is_not_believed(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, **PROMPT) as session:
        turns(session, "a", "b")
        compact(session, "a and b", tuple(item.uuid for item in conversation_of(session).log.view.items[-2:]))
        turns(session, "c")
        expected = session.messages
        path = session.path
    assert path is not None
    lines = path.read_bytes().splitlines(keepends=True)
    # Somebody removed a line: every offset behind it is wrong now.
    path.write_bytes(b"".join(lines[1:]))
    with Session("offline", home=tmp_path, resume=session.id) as again:
        assert again.messages == expected
    for start in (10**9, 17):
        changed = [line.replace(b'"start":', b'"start":%d,"was":' % start) for line in lines]
        path.write_bytes(b"".join(changed))
        with Session("offline", home=tmp_path, resume=session.id) as again:
            assert again.messages == expected


def test_an_empty_file_is_a_session_that_has_not_begun(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.touch()
    with Session("offline", home=tmp_path / "home", resume=path) as session:
        assert session.notices == []
        turns(session, "a")
    with Session("offline", home=tmp_path / "home", resume=path) as again:
        assert said(again.messages) == ["a", "about a"]


def rows_in(path: Path, *rows: Wire) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def spoken(uuid: str, parent: str | None, words: str, role: str = "user") -> Wire:
    message: Wire = {"role": role, "content": [{"type": "text", "text": words}]}
    return {"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message, "lamina": {"v": 1}}


STRANGE_TREES: dict[str, tuple[list[Wire], list[str]]] = {
    "a missing parent": ([spoken("1", None, "a"), spoken("3", "2", "c")], ["a", "c"]),
    "a record that is its own parent": ([spoken("1", "1", "a"), spoken("2", "1", "b")], ["a", "b"]),
    "two that are each other's parents": ([spoken("1", "2", "a"), spoken("2", "1", "b"), spoken("3", "2", "c")], ["a", "b", "c"]),
    "a record twice": ([spoken("1", None, "a"), spoken("2", "1", "b"), spoken("1", None, "A")], ["A", "b"]),
    "two roots": ([spoken("1", None, "a"), spoken("2", None, "b"), spoken("3", "2", "c")], ["b", "c"]),
}


@pytest.mark.parametrize(("rows", "expected"), STRANGE_TREES.values(), ids=STRANGE_TREES.keys())
def test_a_tree_that_cannot_be_is_read_all_the_same(tmp_path: Path, rows: list[Wire], expected: list[str]) -> None:
    path = rows_in(tmp_path / "strange.jsonl", *rows)
    before = path.read_bytes()
    with Session("offline", home=tmp_path / "home", resume=path) as session:
        assert said(session.messages) == expected
        turns(session, "next")
        assert said(session.messages) == [*expected, "next", "about next"]
    assert path.read_bytes().startswith(before)
    with Session("offline", home=tmp_path / "home", resume=path) as again:
        assert said(again.messages) == [*expected, "next", "about next"]
