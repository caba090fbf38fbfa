"""Bad input from a careless or hostile caller, model or directory is refused with a message, or made into something valid."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.session.plain import Session

import lamina
from lamina.core.errors import InputError, LaminaError

from .play import turns
from .words import READ, Wire, answer, call, files_under, objects, refused, result, said, text, thinking, user

CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)

WRONG_WAYS_TO_OPEN: list[tuple[dict[str, Any], str]] = [
    ({"window": 3}, "window: a window of 3 tokens is too small"),
    ({"policy": "none such"}, "policy: unknown policy 'none such'"),
    ({"system": 5}, "system: must be a list of objects"),
    ({"system": ["be brief"]}, "system: must be a list of objects"),
    ({"tools": [READ, "Grep"]}, "tools: must be a list of objects"),
    ({"tools": READ}, "tools: must be a list of objects"),
    ({"tools": [{"name": object()}]}, "tools: is not plain JSON"),
    ({"tools": [{"name": CIRCLE}]}, "tools: is not plain JSON"),
    ({"options": 5}, "options: must be an object"),
    ({"options": {"timeout": object()}}, "options: is not plain JSON"),
    ({"options": {"messages": []}}, "options: messages is not allowed here"),
    ({"options": {"system": "x", "model": "y"}}, "options: model, system are not allowed here"),
    ({"max_tokens": 0}, "max_tokens: invalid value 0"),
    ({"max_tokens": "many"}, "max_tokens: invalid value 'many'"),
    ({"cache_ttl": "1 hour"}, "cache_ttl: invalid value '1 hour'; use one of 5m, 1h, auto or None."),
    ({"session_id": "../../etc/x"}, "invalid session id"),
    ({"session_id": ""}, "invalid session id"),
    ({"session_id": "Memory"}, "invalid session id"),
    ({"session_id": "a" * 200}, "invalid session id"),
    ({"provider": "nobody:model"}, "provider"),
    (
        {"provider": "anthropic"},
        "provider: 'anthropic' names no model; use anthropic:MODEL, such as anthropic:claude-sonnet-5-5.",
    ),
    ({"provider": "anthropic:"}, "provider: 'anthropic:' names no model"),
    ({"provider": "openai"}, "provider: 'openai' names no model"),
    ({"provider": "openai: "}, "provider: 'openai: ' names no model"),
    ({"cwd": "/no/such/place"}, "cwd: the directory /no/such/place does not exist; create it or pass another one."),
    ({"cwd": __file__}, "does not exist"),
    ({"provider": 5}, "provider: must be a string such as 'anthropic:MODEL', not int"),
    ({"selection": 5}, "selection: must be a string, not int"),
    ({"read_tool": ["Read"]}, "read_tool: must be a string, not list"),
]


@pytest.mark.parametrize(
    ("model", "meant"),
    [
        ("anthropic:claude-sonet-9", "claude-sonnet-"),
        ("anthropic:claude-opsu-5-5", "claude-opus-5-5"),
        ("openai:gtp-5", "gpt-5"),
        ("openai:some-model-nobody-knows", None),
    ],
)
def test_a_model_that_is_not_known_is_a_notice_with_the_nearest_name(tmp_path: Path, model: str, meant: str | None) -> None:
    with Session(model, home=tmp_path) as session:
        [notice] = session.notices
        assert f"Unknown model {model.partition(':')[2]}" in notice
        assert (f"did you mean {meant}" in notice) if meant else ("did you mean" not in notice)
        session.add_user("a")
        assert len(session.before_call()["messages"]) == 1


def test_a_setting_that_is_ignored_is_in_the_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_RECALL", "perhaps")
    monkeypatch.setenv("LAMINA_RECAL", "1")
    with lamina.Session("offline", cwd=tmp_path) as session:
        assert [notice for notice in session.notices if "LAMINA_RECALL" in notice]
        assert [notice for notice in session.notices if "LAMINA_RECAL " in notice]
    with lamina.Session("offline", cwd=tmp_path, settings=lamina.Settings.load(tmp_path)) as session:
        assert not session.notices, "the caller has the findings of settings that it loaded itself"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"budget_dolars": 1},
            "Setting budget_dolars (argument): there is no such setting (did you mean budget_dollars?); "
            "run `lamina config` to see all settings.",
        ),
        (
            {"nothing_like_it": 1},
            "Setting nothing_like_it (argument): there is no such setting; run `lamina config` to see all settings.",
        ),
    ],
)
def test_a_misspelt_setting_in_code_is_an_error_with_the_nearest_name(given: dict[str, Any], sentence: str) -> None:
    uses: list[Callable[..., object]] = [lamina.Settings, lamina.Settings.load, lamina.Settings().with_arguments]
    for use in uses:
        with pytest.raises(LaminaError) as told:
            use(**given)
        assert str(told.value) == sentence


@pytest.mark.parametrize(("wrong", "sentence"), WRONG_WAYS_TO_OPEN)
def test_a_session_that_cannot_be_is_one_sentence_and_leaves_no_file(
    tmp_path: Path, wrong: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(LaminaError) as told:
        Session(**{"provider": "offline", "home": tmp_path, **wrong})
    assert sentence in str(told.value)
    assert "\n" not in str(told.value)
    assert list(files_under(tmp_path)) == []


@pytest.mark.spec("U1")
@pytest.mark.parametrize("opened", [lamina.Session, lamina.AsyncSession, lamina.Agent.open, lamina.Memory.open])
def test_settings_of_another_type_are_one_sentence(tmp_path: Path, opened: Callable[..., Any]) -> None:
    given = () if opened == lamina.Memory.open else ("offline",)
    with pytest.raises(InputError, match=r"^settings: must be a lamina\.Settings, not dict; use lamina\.Settings\(…\)\.$"):
        opened(*given, cwd=tmp_path, home=tmp_path, settings={"recall": False})
    assert list(files_under(tmp_path)) == []


@pytest.mark.parametrize("content", ["", "  \n", None, [], 5, {"type": "text", "text": "a"}, [text(" ")], ["a"], [{"text": "a"}]])
def test_what_is_no_message_is_refused(tmp_path: Path, content: Any) -> None:
    with Session("offline", home=tmp_path) as session:
        with pytest.raises(InputError, match=r"^add_user"):
            session.add_user(content)
        assert session.messages == []
        assert objects(session.path) == []


@pytest.mark.parametrize("block", [call("c1"), result("c1"), thinking("hm"), {"type": "redacted_thinking", "data": "x"}])
def test_what_only_a_model_or_a_tool_says_is_refused_from_the_user(tmp_path: Path, block: Wire) -> None:
    with Session("offline", home=tmp_path) as session, pytest.raises(InputError, match="cannot contain"):
        session.add_user([text("a"), block])


class Odd:
    def __repr__(self) -> str:
        return "something odd \udcff"


OUTPUTS: list[Any] = [
    None,
    "",
    " ",
    b"\xff\x00bytes",
    5,
    1.5,
    float("nan"),
    True,
    {},
    {"a": [1]},
    [],
    [1, "b"],
    (1, 2),
    {1, 2},
    Odd(),
]
OUTPUTS += [
    date(2026, 1, 2),
    Path("x"),
    CIRCLE,
    {"a": Odd()},
    [text("a"), text("")],
    [{"type": "text"}],
    [{"type": "image", "source": {}}],
]
OUTPUTS += ["\ud83d", {"\udcff": "\ud800"}, "x" * 1_000_000, 10**400]


@pytest.mark.spec("Z6")
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: type(output).__name__)
def test_any_output_of_a_tool_can_be_sent(tmp_path: Path, output: Any) -> None:
    with Session("offline", home=tmp_path, window=1_000_000) as session:
        session.add_user("a")
        session.before_call()
        session.after_call(answer("m1", call("c1")))
        session.add_tool_result("c1", output)
        request = session.before_call()
        assert refused(request) == []
        json.dumps(request, allow_nan=False).encode("utf-8", "strict")
    with Session("offline", home=tmp_path, resume=session.id, window=1_000_000) as again:
        assert again.before_call() == request


ANSWERS: list[Any] = [
    None,
    5,
    "text",
    [],
    {},
    {"type": "error", "error": {"type": "overloaded_error"}},
    {"id": "m", "content": 5},
    {"id": "m", "content": [5]},
    {"id": "m", "content": [{"type": "text"}]},
    {"id": "m", "content": [{"type": "tool_use", "id": 5, "name": "x"}]},
    {"id": "m", "content": [{"type": "tool_use", "name": "x", "input": {}}]},
]


@pytest.mark.parametrize("response", ANSWERS)
def test_what_is_no_answer_is_refused_and_changes_nothing(tmp_path: Path, response: Any) -> None:
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
        request = session.before_call()
        size = len(objects(session.path))
        with pytest.raises(InputError):
            session.after_call(response)
        assert len(objects(session.path)) == size
        assert session.before_call() == request


STRANGE: list[Wire] = [
    {"content": "plain text", "stop_reason": "end_turn"},
    {"content": None, "stop_reason": "end_turn"},
    {"id": None, "model": None, "content": [], "stop_reason": None, "usage": None},
    {"id": 7, "content": [text("b")], "stop_reason": 7, "usage": {"input_tokens": "many"}},
    {"id": "m", "content": [text("b")], "stop_reason": "end_turn", "usage": {"input_tokens": -5, "output_tokens": True}},
    {"id": "m", "content": [{"type": "hologram", "data": [None, {"deep": 1}]}], "stop_reason": "end_turn"},
    {"id": "m", "content": [{**call("c1"), "input": "not an object"}], "stop_reason": "tool_use"},
    {"id": "m", "content": [{**call("c1"), "input": None}], "stop_reason": "tool_use"},
    {"id": "m", "content": [call("c1"), call("c1")], "stop_reason": "tool_use"},
    {"id": "m", "content": [result("c1")], "stop_reason": "end_turn"},
    {"id": "m", "content": [thinking("only", "")], "stop_reason": "end_turn"},
    {
        "id": "m",
        "content": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}],
        "stop_reason": "end_turn",
    },
    {"id": "m\ud800", "model": "\udfff", "content": [text("\ud83d")], "stop_reason": "end\udcff"},
]


@pytest.mark.spec("Z6")
@pytest.mark.parametrize("response", STRANGE)
def test_a_strange_answer_is_kept_and_the_next_request_is_valid(tmp_path: Path, response: Wire) -> None:
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
        session.before_call()
        session.after_call(response)
        session.add_user("b")
        request = session.before_call()
        assert refused(request) == []
        json.dumps(request).encode("utf-8", "strict")
    with Session("offline", home=tmp_path, resume=session.id) as again:
        assert again.before_call() == request
        assert again.notices == []


SURROGATES = st.text(st.characters(categories=["Cs", "Lu", "Lo"]), min_size=1, max_size=4)


@given(words=SURROGATES)
def test_half_a_character_never_reaches_the_request_or_the_file(words: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("home")
    tool = READ | {"description": words}
    with Session("offline", home=home, system=words + ".", tools=[tool], options={"metadata": {words: words}}) as session:
        session.add_user(words + ".")
        session.before_call()
        session.after_call(answer("m" + words, text(words), call("c" + words, **{words: words})))
        session.add_tool_result(session.status.open_calls[0], {words: words})
        request = session.before_call()
        json.dumps(request, ensure_ascii=False).encode("utf-8", "strict")
        assert refused(request) == []
    assert session.path is not None
    session.path.read_bytes().decode("utf-8", "strict")
    with Session("offline", home=home, resume=session.id) as again:
        assert again.before_call() == request


@pytest.mark.skipif(os.name == "nt", reason="file names are text there")
def test_a_directory_whose_name_is_no_text_can_be_worked_in(tmp_path: Path) -> None:
    cwd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    cwd.mkdir()
    with Session("offline", home=tmp_path / "home", cwd=cwd) as session:
        turns(session, "a")
        assert session.status.write_error is None
    with Session("offline", home=tmp_path / "home", cwd=cwd, resume=session.id) as again:
        assert said(again.messages) == ["a", "about a"]
        assert again.notices == []
    assert {row["cwd"] for row in objects(again.path)} == {f"{tmp_path}/caf\ufffd"}


GITS: dict[str, tuple[bytes, bytes | None, str]] = {
    "a branch": (b"ref: refs/heads/topic/x\n", None, "topic/x"),
    "no branch": (b"0123456789abcdef\n", None, "HEAD"),
    "a link with a NUL": (b"", b"gitdir: a\0b", ""),
    "a link to nowhere": (b"", b"gitdir: /no/such/place", ""),
    "a link that is too long": (b"", b"gitdir: " + b"x/" * 50_000, ""),
    "a head of megabytes": (b"ref: refs/heads/" + b"x" * 3_000_000, None, "x" * 200),
    "a head with control characters": (b"ref: refs/heads/a\x1b]0;b\x07\nsecond line", None, "a\ufffd]0;b\ufffd"),
    "a head that is no text": (b"\xff\xfe", None, "HEAD"),
    "an empty head": (b"", None, ""),
}


@pytest.mark.parametrize(("head", "link", "branch"), GITS.values(), ids=GITS.keys())
def test_whatever_stands_in_the_repository_a_session_opens(tmp_path: Path, head: bytes, link: bytes | None, branch: str) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    if link is not None:
        (repository / ".git").write_bytes(link)
    else:
        (repository / ".git").mkdir()
        (repository / ".git" / "HEAD").write_bytes(head)
    with Session("offline", home=tmp_path / "home", cwd=repository) as session:
        session.add_user("a")
    assert {row["gitBranch"] for row in objects(session.path)} == {branch}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_pipe_in_the_place_of_a_file_blocks_nobody(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    os.mkfifo(repository / ".git" / "HEAD")
    os.mkfifo(tmp_path / "pipe.jsonl")
    with Session("offline", home=tmp_path / "home", cwd=repository) as session:
        session.add_user("a")
    with pytest.raises(InputError, match="is not a file"):
        Session("offline", home=tmp_path / "home", resume=tmp_path / "pipe.jsonl")
    assert session.path is not None
    planted = session.path.with_name("planted.jsonl")
    os.mkfifo(planted)
    with Session("offline", home=tmp_path / "home", cwd=repository, session_id="planted") as other:
        assert "kept in memory only" in " ".join(other.notices)


@pytest.mark.skipif(not hasattr(os, "symlink") or os.name == "nt", reason="needs links")
def test_a_planted_link_is_never_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    with Session("offline", home=tmp_path / "home") as session:
        session.add_user("a")
    assert session.path is not None
    session.path.with_name("planted.jsonl").symlink_to(victim)
    with Session("offline", home=tmp_path / "home", session_id="planted") as other:
        other.add_user("b")
        assert "kept in memory only" in " ".join(other.notices)
    with Session("offline", home=tmp_path / "home", resume=session.path.with_name("planted.jsonl")) as other:
        other.add_user("c")
    assert victim.read_bytes() == b"precious"


def test_a_transcript_whose_user_calls_tools_gives_valid_requests(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    rows = [user(call("c1"), "a", thinking("hm")), {"role": "assistant", "content": [result("c1"), text("b")]}, user("c")]
    with path.open("w") as file:
        for number, message in enumerate(rows):
            parent = str(number - 1) if number else None
            print(json.dumps({"type": message["role"], "uuid": str(number), "parentUuid": parent, "message": message}), file=file)
    with Session("offline", home=tmp_path / "home", resume=path) as session:
        request = session.before_call()
        assert refused(request) == []
        assert said(request["messages"]) == ["a", "b", "c"]
