"""From a call to its result: one for every call, whatever the model sent and whatever the tool did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.core.blocks import ToolUse, Wire, read_block
from lamina.providers import stream
from lamina.tools import registry as dispatch
from lamina.tools.registry import builtin_tools, run_call
from lamina.tools.tool import Builtin, Context, Tool, ToolOutput, definition

from .doing import context


def use(name: str, given: Any) -> ToolUse:
    block = read_block({"type": "tool_use", "id": "toolu_1", "name": name, "input": given})
    assert isinstance(block, ToolUse)
    return block


def fail(arguments: Wire, context: Context) -> ToolOutput:
    raise ZeroDivisionError("x" * 10_000)


BROKEN = Builtin(name="Broken", description="fails", schema={"type": "object", "properties": {}}, read_only=True, act=fail)


@pytest.fixture
def here(tmp_path: Path) -> Context:
    return context(tmp_path)


def test_the_tools_have_their_names_and_order() -> None:
    assert [tool.name for tool in builtin_tools()] == ["Read", "Write", "Edit", "Grep", "Glob", "Bash", "TodoWrite", "Expand"]
    assert [tool.name for tool in builtin_tools() if tool.read_only] == ["Read", "Grep", "Glob", "Expand"]


@pytest.mark.parametrize("tool", builtin_tools(), ids=lambda tool: tool.name)
def test_a_definition_is_what_the_api_takes(tool: Tool) -> None:
    defined = definition(tool)
    assert list(defined) == ["name", "description", "input_schema"]
    assert len(defined["description"]) > 100
    assert defined["input_schema"]["type"] == "object"
    assert set(defined["input_schema"]["required"]) <= set(defined["input_schema"]["properties"])


def test_the_arguments_are_those_people_know() -> None:
    assert {tool.name: " ".join(tool.schema["properties"]) for tool in builtin_tools()} == {
        "Read": "file_path offset limit",
        "Write": "file_path content",
        "Edit": "file_path old_string new_string replace_all",
        "Grep": "pattern path glob type output_mode -i -n -A -B -C head_limit multiline",
        "Glob": "pattern path",
        "Bash": "command timeout description",
        "TodoWrite": "todos",
        "Expand": "node page find",
    }


def test_a_call_gets_its_result(here: Context) -> None:
    (here.cwd / "f").write_text("x\n")
    result = run_call(builtin_tools(), use("Read", {"file_path": "f"}), here)
    assert (result.content, result.is_error) == ("1\tx", False)


def test_an_unknown_tool_is_answered_with_the_nearest_and_all_names(here: Context) -> None:
    result = run_call(builtin_tools(), use("read_file", {}), here)
    assert result.is_error
    assert result.content == (
        "Unknown tool 'read_file'. Did you mean Read? Available tools: Read, Write, Edit, Grep, Glob, Bash, TodoWrite, Expand."
    )
    assert "Did you mean" not in run_call(builtin_tools(), use("x" * 1_000, {}), here).content
    assert run_call((), use("Read", {}), here).content == "Unknown tool 'Read'. Available tools: none."


def test_input_that_could_not_be_parsed_asks_for_valid_json(here: Context) -> None:
    assert stream.UNPARSED == dispatch.UNPARSED
    result = run_call(builtin_tools(), use("Bash", stream.read_input('{"command": "ls')), here)
    assert result.is_error
    assert result.content == "Bash: the input was not valid JSON. Send the call again with one complete JSON object."


@pytest.mark.parametrize("given", ["ls", ["ls"], 7])
def test_input_that_is_no_object_is_refused(here: Context, given: Any) -> None:
    assert "the input must be a JSON object" in run_call(builtin_tools(), use("Bash", given), here).content


def test_a_missing_and_an_unknown_argument_are_named(here: Context) -> None:
    assert (
        run_call(builtin_tools(), use("Read", {"path": "f"}), here).content == "Read: file_path is missing. It must be a string."
    )
    (here.cwd / "f").write_text("x\n")
    text = run_call(builtin_tools(), use("Read", {"file_path": "f", "encoding": "utf-8"}), here).content
    assert text == "1\tx\n[Ignored: 'encoding'. This tool accepts file_path, offset, limit.]"


def test_a_note_joins_an_image_as_text(here: Context) -> None:
    (here.cwd / "f").write_bytes(b"GIF89a")
    output = run_call(builtin_tools(), use("Read", {"file_path": "f", "pages": 1}), here)
    assert isinstance(output.content, list)
    assert [part["type"] for part in output.content] == ["image", "text"]


def test_a_bug_in_a_tool_becomes_an_error_result(here: Context) -> None:
    result = run_call((BROKEN,), use("Broken", {}), here)
    assert result.is_error
    assert str(result.content).startswith("Broken failed: ZeroDivisionError: xxx")
    assert len(result.content) < 600


def test_a_stopped_conversation_runs_no_more_tools(here: Context) -> None:
    here.abort.set()
    assert run_call((BROKEN,), use("Broken", {}), here).content == "The call was stopped before it finished."


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)
# Bash and what starts a process would run what hypothesis makes up.
HARMLESS = [tool for tool in builtin_tools() if tool.name not in ("Bash", "Grep")]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_whatever_a_model_sends_there_is_one_result(tmp_path: Path, data: st.DataObject) -> None:
    tool = data.draw(st.sampled_from(HARMLESS))
    given = data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(tool.schema["properties"], JSON)) | JSON)
    (tmp_path / "root").mkdir(exist_ok=True)
    result = run_call(builtin_tools(), use(tool.name, given), context(tmp_path / "root"))
    assert " failed: " not in result.content
    assert len(result.content) <= 50_000


def test_the_package_loads_nothing_until_a_name_is_used() -> None:
    code = "import sys, lamina.tools; print('msgspec' in sys.modules, 'subprocess' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
