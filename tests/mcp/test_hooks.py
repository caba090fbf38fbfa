"""Hooks of Claude Code and Codex, with inputs of the shapes that these programs send."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import lamina
from lamina.layers.l5_extract.review import Reviewed
from lamina.mcp.hook_input import read_hook_input
from lamina.mcp.hook_review import review_turn
from lamina.mcp.hook_run import wants_review
from lamina.mcp.hook_tools import answer_hook
from lamina.mcp.project import ServedProject
from lamina.memory.store.contract import ChangeReason
from lamina.providers.models import small_model

SESSION = "0c1d2e3f-0000-4000-8000-000000000001"
# Far more than a hook takes on a busy machine.
PATIENCE = 60


@pytest.fixture
def project(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which Claude Code writes no memories."""
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("claims")))
    (Path.home() / ".claude").mkdir()
    (Path.home() / ".claude" / "settings.json").write_text('{"autoMemoryEnabled": false}')
    directory = tmp_path / "project"
    directory.mkdir()
    return directory


@pytest.fixture
def transcript(project: Path) -> Path:
    path = Path.home() / ".claude" / "projects" / "-project" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("")
    return path


def common(transcript: Path, project: Path, event: str, **fields: Any) -> dict[str, Any]:
    base = {"session_id": SESSION, "transcript_path": str(transcript), "cwd": str(project), "prompt_id": "p1"}
    return {**base, "permission_mode": "default", "effort": {"level": "high"}, "hook_event_name": event, **fields}


def serve(project: Path) -> ServedProject:
    return ServedProject(project, agent="claude-code")


def ask(project: Path, tool: str, given: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(answer_hook(serve(project), tool, given))
    specific: dict[str, Any] = answer.get("hookSpecificOutput", {})
    return specific


def hook(event: str, given: dict[str, Any] | bytes, *arguments: str, **environ: str) -> str:
    data = given if isinstance(given, bytes) else json.dumps(given).encode()
    command = [sys.executable, "-P", "-m", "lamina", "hook", event, *arguments]
    done = subprocess.run(command, input=data, capture_output=True, timeout=PATIENCE, env={**os.environ, **environ})
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def context(answer: str) -> str:
    text: str = json.loads(answer)["hookSpecificOutput"]["additionalContext"]
    return text


def remember(project: Path, name: str, description: str, body: str) -> None:
    with lamina.Memory.open(project) as memory:
        memory.save(name, type="project", description=description, body=body)


# UserPromptSubmit


@pytest.mark.spec("U5", "Q1")
def test_a_prompt_brings_the_memory_that_fits_once_until_a_compaction(project: Path, transcript: Path) -> None:
    remember(project, "redis", "Redis was dropped in favour of SQLite", "One file is enough for us.")
    given = common(transcript, project, "UserPromptSubmit", prompt="Why did we drop Redis?")
    first = ask(project, "hook_prompt", given)
    assert first["hookEventName"] == "UserPromptSubmit"
    text = first["additionalContext"]
    assert "One file is enough for us." in text
    assert "<system-reminder>" not in text
    shown = {"type": "attachment", "attachment": {"type": "hook_additional_context", "content": [text]}}
    transcript.write_text(json.dumps(shown, ensure_ascii=False) + "\n")
    assert ask(project, "hook_prompt", given) == {}
    with transcript.open("a") as file:
        file.write(json.dumps({"type": "system", "subtype": "compact_boundary"}, separators=(",", ":")) + "\n")
    assert "One file is enough" in ask(project, "hook_prompt", given)["additionalContext"]


@pytest.mark.spec("U5")
def test_recalled_memories_stay_below_the_limit_for_hooks(project: Path, transcript: Path) -> None:
    subjects = ("eviction", "backups", "failover", "passwords", "monitoring")
    for subject in subjects:
        remember(project, f"redis-{subject}", f"Redis cluster of the shop: {subject}", f"redis shop {subject} " * 300)
    given = common(transcript, project, "UserPromptSubmit", prompt=f"Redis cluster of the shop: {', '.join(subjects)}?")
    text = ask(project, "hook_prompt", given)["additionalContext"]
    assert 4_000 < len(text) < 10_000


@pytest.mark.spec("U5")
@pytest.mark.parametrize(
    "fields", [{"prompt": "redis"}, {"prompt": "Why did we drop Redis?", "agent_id": "a1"}, {}, {"prompt": 7}]
)
def test_one_word_a_subagent_and_no_prompt_bring_nothing(project: Path, transcript: Path, fields: dict[str, Any]) -> None:
    remember(project, "redis", "Redis was dropped in favour of SQLite", "One file is enough for us.")
    assert ask(project, "hook_prompt", common(transcript, project, "UserPromptSubmit", **fields)) == {}


@pytest.mark.spec("U5")
def test_the_command_brings_the_memory_only_if_the_server_was_not_asked(project: Path, transcript: Path) -> None:
    remember(project, "redis", "Redis was dropped in favour of SQLite", "One file is enough for us.")
    given = common(transcript, project, "UserPromptSubmit", prompt="Why did we drop Redis?")
    client = str(os.getppid())
    assert "One file is enough" in context(hook("UserPromptSubmit", given, LAMINA_HOOK_CLIENT=client))
    assert ask(project, "hook_prompt", given) == {}, "the command has answered it"
    assert "One file is enough" in ask(project, "hook_prompt", given)["additionalContext"]
    assert hook("UserPromptSubmit", given, LAMINA_HOOK_CLIENT=client) == ""
    assert "One file is enough" in context(hook("UserPromptSubmit", given)), "Codex has no server that answers hooks"


# PostToolUse

LINES = "".join(f"line {number}\n" for number in range(12_000))
OUTPUTS: list[tuple[str, Any]] = [
    ("Bash", {"stdout": LINES, "stderr": "warned", "interrupted": False, "isImage": False, "noOutputExpected": False}),
    ("Grep", {"mode": "content", "numFiles": 0, "filenames": [], "content": LINES, "numLines": 12_000, "totalLines": 12_000}),
    ("Glob", {"filenames": LINES.split(), "durationMs": 16, "numFiles": 24_000, "truncated": False}),
    ("mcp__jira__search", [{"type": "text", "text": LINES[:60_000]}, {"type": "text", "text": LINES[60_000:]}]),
    ("mcp__jira__text", LINES),
]


@pytest.mark.spec("U5", "R1", "R2")
@pytest.mark.parametrize(("tool", "response"), OUTPUTS, ids=[tool for tool, _ in OUTPUTS])
@pytest.mark.parametrize("filled_in", [True, False], ids=["as JSON", "as an object"])
def test_a_large_result_becomes_a_preview_in_the_tools_own_shape(
    project: Path, transcript: Path, tool: str, response: Any, filled_in: bool
) -> None:
    sent = json.dumps(response) if filled_in and not isinstance(response, str) else response
    given = common(transcript, project, "PostToolUse", tool_name=tool, tool_use_id="toolu_01A", tool_response=sent)
    new = ask(project, "hook_result", given)["updatedToolOutput"]
    stored = transcript.with_suffix("") / "tool-results" / "lamina-toolu_01A.txt"
    assert str(stored) in json.dumps(new)
    assert len(json.dumps(new)) < 4_000
    assert stored.stat().st_mode & 0o777 == 0o600
    whole = stored.read_text()
    match tool:
        case "Bash":
            assert new.keys() == {"stdout", "stderr", "interrupted", "isImage"}
            assert (new["stderr"], whole) == ("warned", LINES)
        case "Grep":
            assert (new["mode"], new["numLines"], whole) == ("content", new["content"].count("\n") + 1, LINES)
        case "Glob":
            assert (new["truncated"], whole.split("\n")) == (True, response["filenames"])
            assert all(isinstance(name, str) for name in new["filenames"])
        case "mcp__jira__search":
            assert [block["type"] for block in new] == ["text"]
            assert whole == LINES[:60_000] + "\n\n" + LINES[60_000:]
        case _:
            assert isinstance(new, str)
            assert whole == LINES


@pytest.mark.spec("U5", "R2")
def test_output_that_claude_code_has_stored_is_not_stored_again(project: Path, transcript: Path) -> None:
    results = transcript.with_suffix("") / "tool-results"
    results.mkdir(parents=True)
    (results / "b1.txt").write_text(LINES)
    response = {"stdout": LINES[:29_000], "stderr": "", "interrupted": False, "isImage": False}
    response |= {"persistedOutputPath": str(results / "b1.txt"), "persistedOutputSize": len(LINES)}
    given = common(transcript, project, "PostToolUse", tool_name="Bash", tool_use_id="toolu_01B", tool_response=response)
    new = ask(project, "hook_result", given)["updatedToolOutput"]
    assert f"{len(LINES):,} bytes" in new["stdout"]
    assert str(results / "b1.txt") in new["stdout"]
    assert "persistedOutputPath" not in new
    assert [path.name for path in results.iterdir()] == ["b1.txt"]


@pytest.mark.spec("U5", "R5")
def test_a_large_read_is_cut_to_a_page_that_names_the_next_line(project: Path, transcript: Path) -> None:
    file = {"filePath": "/p/a.txt", "content": LINES, "numLines": 12_001, "startLine": 101, "totalLines": 20_000}
    response = {"type": "text", "file": file}
    given = common(transcript, project, "PostToolUse", tool_name="Read", tool_use_id="toolu_01C", tool_response=response)
    new = ask(project, "hook_result", given)["updatedToolOutput"]
    shown = new["file"]["content"]
    assert new["file"]["filePath"] == "/p/a.txt"
    last = shown.split("\n")[-2]
    assert shown.endswith(f"Continue with offset={101 + int(last.removeprefix('line ')) + 1}.]")
    assert not transcript.with_suffix("").exists()


UNCHANGED: list[tuple[str, Any]] = [
    ("Bash", {"stdout": "few", "stderr": "", "interrupted": False, "isImage": False}),
    ("Bash", {"stdout": LINES, "stderr": "", "interrupted": False, "isImage": True}),
    ("Bash", {"stdout": 7}),
    ("Bash", "a text"),
    ("Grep", {"mode": "files_with_matches", "filenames": LINES.split(), "numFiles": 24_000}),
    ("Write", {"type": "create", "filePath": "/p/a", "content": LINES, "structuredPatch": []}),
    ("WebFetch", {"result": LINES}),
    ("mcp__plugin_lamina_mem__session_read", [{"type": "text", "text": LINES}]),
    ("mcp__x__y", [{"type": "text", "text": LINES}, {"type": "image", "source": {}}]),
    ("mcp__x__y", None),
    ("Agent", {"content": [{"type": "text", "text": LINES}]}),
]


@pytest.mark.spec("U5", "R6")
@pytest.mark.parametrize(("tool", "response"), UNCHANGED)
def test_small_results_and_shapes_that_cannot_be_replaced_stay(project: Path, transcript: Path, tool: str, response: Any) -> None:
    given = common(transcript, project, "PostToolUse", tool_name=tool, tool_use_id="toolu_01D", tool_response=response)
    assert ask(project, "hook_result", given) == {}
    assert not transcript.with_suffix("").exists()


@pytest.mark.spec("U5")
def test_nothing_is_written_outside_the_sessions_of_claude_code(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / f"{SESSION}.jsonl"
    given = common(elsewhere, project, "PostToolUse", tool_name="Bash", tool_use_id="t", tool_response=OUTPUTS[0][1])
    assert ask(project, "hook_result", given) == {}
    given = {**given, "transcript_path": str(Path.home() / ".claude/projects/../../x.jsonl")}
    assert ask(project, "hook_result", given) == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project"]


# Stop


def said(role: str, text: str, uuid: str, parent: str | None, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": [{"type": "text", "text": text}], **more}
    row = {"parentUuid": parent, "isSidechain": False, "type": role, "message": message, "uuid": uuid, "sessionId": SESSION}
    return {**row, "timestamp": "2026-11-16T18:32:30.009Z", "version": "2.1.325", "userType": "external", "cwd": "/p"}


def talked(transcript: Path, *texts: str) -> None:
    rows, parent = [], None
    for number, text in enumerate(texts):
        role = "user" if number % 2 == 0 else "assistant"
        rows.append(
            said(role, text, f"u{number}", parent, **({"id": f"m{number}", "stop_reason": "end_turn"} if number % 2 else {}))
        )
        parent = f"u{number}"
    transcript.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.spec("U5", "X1", "X3")
def test_a_statement_of_the_last_turn_becomes_a_memory_without_a_key(project: Path, transcript: Path) -> None:
    talked(
        transcript,
        "Please always use tabs in Go.",
        "Noted.",
        "I prefer short commit messages from now on.",
        "Fine.",
    )
    assert ask(project, "hook_stop", common(transcript, project, "Stop", stop_hook_active=False)) == {}
    with lamina.Memory.open(project) as memory:
        [topic] = memory.topics()
        [version] = memory.log()
    assert "short commit messages" in topic.body
    assert version.why is not None
    assert (version.why.who, version.why.session) == ("extraction", SESSION)
    ask(project, "hook_stop", common(transcript, project, "Stop", stop_hook_active=False))
    with lamina.Memory.open(project) as memory:
        assert len(memory.topics()) == 1


@pytest.mark.spec("U5", "X3")
@pytest.mark.parametrize(
    "prompt",
    ["why did we drop redis? Please always use tabs here.", "Please always use tabs here. What did we decide about Redis?"],
)
def test_a_prompt_that_asks_and_states_gets_a_memory_and_becomes_one(project: Path, transcript: Path, prompt: str) -> None:
    remember(project, "redis", "Redis was dropped in favour of SQLite", "One file is enough for us.")
    asked = ask(project, "hook_prompt", common(transcript, project, "UserPromptSubmit", prompt=prompt))
    assert "One file is enough" in asked["additionalContext"]
    talked(transcript, prompt, "One file was enough.")
    review_turn(serve(project), read_hook_input(common(transcript, project, "Stop")))
    with lamina.Memory.open(project) as memory:
        assert [topic.body.strip() for topic in memory.topics() if topic.file != "redis.md"] == ["Please always use tabs here."]


@pytest.mark.spec("U5", "X2")
@pytest.mark.parametrize("why", ["auto memory", "no user", "claude -p", "read-only", "off", "subagent", "wrote"])
def test_no_turn_is_reviewed_that_must_not_be(project: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    talked(transcript, "I prefer short commit messages from now on.", "Fine.")
    more = {}
    match why:
        case "auto memory":
            monkeypatch.setenv("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "0")
        case "no user":
            monkeypatch.setenv("CLAUDE_CODE_SESSION_ATTENDED", "0")
        case "claude -p":
            monkeypatch.setenv("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
        case "read-only":
            monkeypatch.setenv("LAMINA_MEMORY_MODE", "read-only")
        case "off":
            monkeypatch.setenv("LAMINA_DISABLE_MEMORY", "1")
        case "subagent":
            more = {"agent_id": "a1"}
        case "wrote":
            call = {"type": "tool_use", "id": "t1", "name": "mcp__plugin_lamina_mem__memory_save", "input": {}}
            row = said("assistant", "", "u9", "u1")
            row["message"]["content"] = [call]
            with transcript.open("a") as file:
                file.write(json.dumps(row) + "\n")
        case _:
            raise AssertionError(why)
    given = read_hook_input(common(transcript, project, "Stop", **more))
    assert not wants_review(serve(project), given) or review_turn(serve(project), given) is None
    assert not list((Path.home() / ".lamina").rglob("*.md"))


@pytest.mark.spec("U5", "X5")
def test_a_model_reviews_within_the_budget(
    project: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch, messages_server: Any
) -> None:
    talked(transcript, "I prefer short commit messages from now on.", "Fine.")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_server.url)
    memory = {
        "file": "commits.md",
        "type": "feedback",
        "description": "Short commit messages",
        "body": "Keep commit messages short.",
    }
    answer = f"<memories>{json.dumps([memory])}</memories>"
    messages_server.reply(text=answer, fork="extraction")
    given = read_hook_input(common(transcript, project, "Stop"))
    assert isinstance(review_turn(serve(project), given), Reviewed)
    with lamina.Memory.open(project) as opened:
        assert [topic.file for topic in opened.topics()] == ["commits.md"]
    [request] = messages_server.requests
    assert request.body["model"] == small_model("claude-opus-4-6")
    monkeypatch.setenv("LAMINA_BUDGET_CALLS", "1")
    assert review_turn(serve(project), given) is None
    assert len(messages_server.requests) == 1


@pytest.mark.spec("X5")
def test_a_server_without_the_small_model_is_asked_for_the_configured_one(
    project: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch, messages_server: Any
) -> None:
    talked(transcript, "I prefer short commit messages from now on.", "Fine.")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_server.url)
    monkeypatch.setenv("LAMINA_SMALL_MODEL", "nobody-has-1")
    messages_server.fail(404, kind="not_found_error", message="model: nobody-has-1", fork="extraction")
    messages_server.reply(text="<memories>[]</memories>", fork="extraction")
    assert isinstance(review_turn(serve(project), read_hook_input(common(transcript, project, "Stop"))), Reviewed)
    models = [request.body["model"] for request in messages_server.requests]
    assert models[0] == "nobody-has-1"
    assert models[-1].startswith("claude-")


# Commands


@pytest.mark.spec("U5", "I4")
def test_a_session_starts_with_the_index_and_the_inbox(project: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = common(transcript, project, "SessionStart", source="startup")
    assert hook("SessionStart", start) == ""
    remember(project, "redis", "Redis was dropped in favour of SQLite", "One file is enough for us.")
    monkeypatch.setenv("LAMINA_MEMORY_MODE", "confirm")
    with lamina.Memory.open(project) as memory:
        memory.save("later", type="project", description="A pending one", body="x", why=ChangeReason("agent"))
    text = context(hook("SessionStart", start))
    assert "Redis was dropped in favour of SQLite" in text
    assert "1 memory change" in text
    for source in ("resume", "fork"):
        assert hook("SessionStart", {**start, "source": source}) == "", "the history has it"
    assert context(hook("SessionStart", {**start, "source": "compact"})) == text
    assert context(hook("SessionStart", {**start, "turn_id": "t", "model": "gpt-5.1-codex"}, "--agent", "codex")) == text
    # Claude Code sends the index of its own memory itself.
    assert hook("SessionStart", start, CLAUDE_CODE_DISABLE_AUTO_MEMORY="0") == ""


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
@pytest.mark.spec("U5")
def test_the_start_of_a_session_loads_no_store_and_nothing_of_past_sessions(project: Path, transcript: Path, event: str) -> None:
    remember(project, "redis", "Redis was dropped in favour of SQLite", "One file is enough for us.")
    given = common(transcript, project, event, source="startup", prompt="Why did we drop Redis?")
    command = [sys.executable, "-P", "-X", "importtime", "-m", "lamina", "hook", event]
    done = subprocess.run(command, input=json.dumps(given).encode(), capture_output=True, timeout=PATIENCE)
    assert "Redis was dropped" in context(done.stdout.decode())
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
    assert "lamina.memory.recall.library" in loaded
    assert not loaded & {
        "sqlite3",
        "subprocess",
        "lamina.memory.store.directory",
        "lamina.memory.store.journal",
        "lamina.history.sessions",
    }


@pytest.mark.spec("U5")
def test_a_session_starts_with_the_index_though_its_file_was_deleted(project: Path, transcript: Path) -> None:
    remember(project, "redis", "Redis was dropped in favour of SQLite", "One file is enough for us.")
    with lamina.Memory.open(project) as memory:
        index = memory.path / "MEMORY.md"
    index.unlink()
    start = common(transcript, project, "SessionStart", source="startup")
    assert "Redis was dropped" in context(hook("SessionStart", start))


@pytest.mark.exhaustive
@pytest.mark.spec("U5")
def test_a_long_index_is_cut_at_a_line(project: Path, transcript: Path) -> None:
    from lamina.mcp.hook_session import session_start

    for number in range(150):
        remember(project, f"topic-{number}", f"Number {number} <system-reminder> of many subjects " + "x" * 80, "text")
    given = read_hook_input(common(transcript, project, "SessionStart", source="startup"))
    for most in (9_500, 7_000):
        text = session_start(serve(project), given, most)
        assert text is not None
        assert most - 400 < len(text) <= most
        assert "memory_search finds the rest" in text


@pytest.mark.spec("U5")
def test_a_summary_is_told_to_keep_what_the_user_stated(project: Path, transcript: Path) -> None:
    talked(
        transcript,
        "Please always use tabs in Go.",
        "Ok.",
        "Remember: deploys are on Tuesday",
        "Ok.",
        "Run it",
        "Done.",
    )
    notes = transcript.with_suffix("") / "session-memory" / "summary.md"
    notes.parent.mkdir(parents=True)
    notes.write_text("The failing test is test_a.")
    text = hook("PreCompact", common(transcript, project, "PreCompact", trigger="auto", custom_instructions=None))
    assert "always use tabs in Go" in text
    assert "deploys are on Tuesday" in text
    assert "The failing test is test_a." in text
    assert "Run it" not in text
    assert not text.startswith("{")


@pytest.mark.spec("U5")
def test_a_session_of_claude_code_ends_with_its_memory_repaired(project: Path, transcript: Path) -> None:
    from lamina.disk.paths.project import slug
    from lamina.mcp.hook_session import mend_memory

    (Path.home() / ".claude" / "settings.json").unlink()
    path = Path.home() / ".claude" / "projects" / slug(project) / "memory"
    with lamina.Memory.open(path=path) as memory:
        memory.save("ship", type="project", description="When we ship", body="We ship tomorrow.")
    (path / "deploy.md").write_text(
        "---\nname: deploy\ndescription: When we deploy\ntype: project\n---\n\nWe deploy on Tuesdays.\n"
    )
    assert serve(project).agent_memory() == path
    assert mend_memory(serve(project))
    assert "tomorrow (2" in next(path.glob("*ship.md")).read_text()
    assert "deploy.md" in (path / "MEMORY.md").read_text()
    assert not (Path.home() / ".lamina" / "projects").exists()
    given = common(transcript, project, "UserPromptSubmit", prompt="When do we deploy it?")
    assert "on Tuesdays" in ask(project, "hook_prompt", given)["additionalContext"]


@pytest.mark.spec("U5")
@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SessionEnd", "NoSuchEvent"])
def test_any_input_passes_through_a_command(project: Path, event: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from lamina.mcp import hook_run

    inputs: list[bytes] = [
        b"",
        b"{",
        b"[1]",
        b'{"cwd": 7}',
        b'{"cwd": "/no/such"}',
        b"\xff" * 100,
        b'{"cwd": "\xff"}',
        b'{"a":' * 10_000,
    ]
    inputs.append(b'{"prompt": "' + b"x" * (17 << 20) + b'"}')
    for data in inputs:
        assert hook_run._answer(event, "claude-code", data) is None
    assert hook(event, b"x" * (10 << 20)) == ""


@pytest.mark.spec("U5")
def test_a_hook_fails_open(project: Path, transcript: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = common(transcript, project, "SessionStart", source="startup")
    remember(project, "redis", "Redis was dropped in favour of SQLite", "One file is enough for us.")
    assert hook("SessionStart", start, LAMINA_DISABLE_HOOKS="1") == ""
    # A home that is a file: every look at memory fails.
    (project / "file").write_text("")
    assert hook("SessionStart", start, LAMINA_HOME=str(project / "file")) == ""
    monkeypatch.setenv("LAMINA_HOME", str(project / "file"))
    assert ask(project, "hook_prompt", common(transcript, project, "UserPromptSubmit", prompt="Why did we drop Redis?")) == {}
    assert ask(project, "hook_stop", {"transcript_path": "\0", "cwd": []}) == {}
    assert ask(project, "hook_result", {"tool_name": "Bash", "tool_response": "{broken"}) == {}


@pytest.mark.exhaustive
@pytest.mark.spec("U4", "U5")
def test_the_server_answers_hooks_by_tools_that_it_does_not_list(
    project: Path, transcript: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from tests.mcp.test_server import call, talk

    from mcp import Client

    remember(project, "redis", "Redis was dropped in favour of SQLite", "One file is enough for us.")
    given = common(transcript, project, "UserPromptSubmit", prompt="Why did we drop Redis?")

    async def hooks(client: Client) -> None:
        assert not [tool.name for tool in (await client.list_tools()).tools if tool.name.startswith("hook")]
        assert "One file is enough" in context(await call(client, "hook_prompt", **given))
        assert json.loads(await call(client, "hook_result", tool_name="Bash", tool_response="x")) == {}
        assert (await call(client, "hook_other")).startswith("error: ")

    async def without(client: Client) -> None:
        assert (await call(client, "hook_prompt", **given)).startswith("error: ")

    talk(project, hooks, "--hooks", "claude-code")
    talk(project, without)


@pytest.mark.spec("U5")
def test_a_child_process_reviews_a_turn_of_codex(project: Path) -> None:
    rollout = Path.home() / ".codex" / "sessions" / "2026" / "11" / "16" / "rollout-2026-11-16T18-32-30-abc.jsonl"
    rollout.parent.mkdir(parents=True)
    rows: list[dict[str, Any]] = [
        {"type": "session_meta", "payload": {"id": "abc", "cwd": str(project), "timestamp": "2026-11-16T18:32:30Z"}},
        {"type": "response_item", "payload": _codex("user", "input_text", "I prefer short commit messages from now on.")},
        {"type": "response_item", "payload": _codex("assistant", "output_text", "Fine.")},
    ]
    rollout.write_text("".join(json.dumps({"timestamp": "2026-11-16T18:32:30Z", **row}) + "\n" for row in rows))
    given = {"session_id": "abc", "turn_id": "t", "transcript_path": str(rollout), "cwd": str(project), "hook_event_name": "Stop"}
    assert hook("Stop", {**given, "model": "gpt-5.1-codex", "last_assistant_message": "Fine."}, "--agent", "codex") == ""
    until = time.monotonic() + PATIENCE
    while not list((Path.home() / ".lamina").rglob("memory/*commit*.md")):
        assert time.monotonic() < until
        time.sleep(0.05)


UNNAMED = "a turn whose trigger is null"


@pytest.mark.spec("X2")
@pytest.mark.parametrize(
    ("source", "triggers", "reviewed"),
    [
        ("exec", ["exec"], False),
        ("exec", [None], False),  # a version that does not tell who started a turn
        ("exec", ["exec", "user"], True),  # resumed by its user
        ("vscode", ["user", "exec"], False),  # `codex exec resume`
        ("vscode", ["user"], True),
        ({"subagent": {"other": "x"}}, [None], True),
        (None, [7, None], True),
        ("exec", ["exec", UNNAMED], True),  # resumed in an editor, which names no trigger
    ],
)
def test_a_turn_of_codex_exec_is_reviewed_only_if_the_setting_says_so(
    project: Path, monkeypatch: pytest.MonkeyPatch, source: object, triggers: list[object], reviewed: bool
) -> None:
    rollout = Path.home() / ".codex" / "sessions" / "2026" / "11" / "16" / "rollout-2026-11-16T18-32-30-abc.jsonl"
    rollout.parent.mkdir(parents=True)
    rows = [{"type": "session_meta", "payload": {"id": "abc", "cwd": str(project), "source": source}}]
    for trigger in triggers:
        named = None if trigger == UNNAMED else trigger
        turn = {"turn_attribution": {"turn_trigger": named}} if trigger is not None else {}
        rows.append({"type": "event_msg", "payload": {"type": "task_started", **turn}})
        rows.append(
            {"type": "response_item", "payload": _codex("user", "input_text", "I prefer short commit messages from now on.")}
        )
    rollout.write_text("".join(json.dumps({"timestamp": "2026-11-16T18:32:30Z", **row}) + "\n" for row in rows))
    given = read_hook_input({"session_id": "abc", "transcript_path": str(rollout), "cwd": str(project)})
    assert wants_review(ServedProject(project, agent="codex"), given) is reviewed
    monkeypatch.setenv("LAMINA_EXTRACTION_NON_INTERACTIVE", "1")
    assert wants_review(ServedProject(project, agent="codex"), given)


def _codex(role: str, kind: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
