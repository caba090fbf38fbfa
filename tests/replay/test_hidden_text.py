"""What an answer takes from earlier results, and what it could not see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lamina.core.blocks import Text, ToolUse, text, tool_result, tool_use
from lamina.replay.hidden_text import RequestText, ShownText

FILE = "  1→def first_function(argument):\n  2→    return argument.value_of_first\n  3→\n"
LINE = "    return argument.value_of_first"


def read(shown: ShownText, name: str, path: str, result: str) -> ToolUse:
    call = tool_use(f"call-{path}", name, {"file_path": path} if name == "Read" else {"pattern": path})
    shown.answered([call])
    shown.came([tool_result(call.id, result)])
    return call


def edit(old: str, new: str = "pass", path: str = "/a.py") -> ToolUse:
    return tool_use("edit", "Edit", {"file_path": path, "old_string": old, "new_string": new})


@pytest.mark.spec("P8")
def test_a_quoted_line_is_hidden_if_the_request_does_not_contain_it() -> None:
    shown = ShownText({})
    read(shown, "Read", "/a.py", FILE)
    quote = [text(f"It says:\n{LINE}\nand no more.")]
    assert shown.look(quote, FILE)[:3] == (1, 0, ())
    assert shown.look(quote, "nothing of it")[:3] == (1, 1, (f"Read /a.py: {LINE.strip()}",))
    assert shown.look(quote, None)[:2] == (1, 0), "a request that contains everything"
    assert shown.look([text("def first(): pass")], "")[:2] == (0, 0), "a short line is no quote"


@pytest.mark.spec("P8")
def test_what_the_recorded_agent_did_not_see_it_cannot_have_quoted() -> None:
    shown = ShownText({"call-/a.py": 7})
    read(shown, "Read", "/a.py", FILE)
    answer: list[Text | ToolUse] = [text(LINE), edit(LINE)]
    assert shown.look(answer, "", 6)[:2] == (1, 1)
    assert len(shown.look(answer, "", 6).fetches) == 1
    assert shown.look(answer, "", 7) == (0, 0, (), ())


@pytest.mark.spec("P8")
def test_one_result_counts_once_in_an_answer_however_many_of_its_lines_are_quoted() -> None:
    shown = ShownText({})
    read(shown, "Read", "/a.py", FILE)
    found = shown.look([text(LINE), edit("def first_function(argument):\n" + LINE)], "")
    assert found[:2] == (1, 1)
    assert [one.text for one in found.fetches] == [FILE]


@pytest.mark.spec("P8")
def test_an_edit_fetches_what_it_replaces_from_where_it_stood_last() -> None:
    shown = ShownText({})
    read(shown, "Read", "/a.py", FILE)
    assert shown.look([edit(LINE)], FILE).fetches == ()
    shown.answered([edit(LINE, new="    return argument.value_of_second")])
    (fetch,) = shown.look([edit("    return argument.value_of_second")], "").fetches
    assert (fetch.tool, fetch.input) == ("Read", {"file_path": "/a.py"}), "the file has what an edit wrote"
    assert shown.look([edit("what nobody has ever shown to anyone")], "").fetches == ()


@pytest.mark.spec("P8")
def test_a_read_fetches_the_result_that_named_its_path() -> None:
    shown = ShownText({})
    read(shown, "Grep", "first", "src/deep/inside.py:12\n")
    call = tool_use("again", "Read", {"file_path": "src/deep/inside.py"})
    (fetch,) = shown.look([call], "").fetches
    assert (fetch.tool, fetch.input) == ("Grep", {"pattern": "first"})
    assert shown.look([call], "see src/deep/inside.py").fetches == ()


def test_the_text_of_a_request_is_that_of_its_messages() -> None:
    def message(*content: dict[str, Any]) -> dict[str, Any]:
        return {"role": "user", "content": list(content)}

    request = {
        "messages": [
            message({"type": "text", "text": "said"}, {"type": "image", "source": {}}),
            message({"type": "tool_use", "id": "a", "name": "Edit", "input": {"edits": [{"old": 'a "b"\nc'}]}}),
            message(
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "came"}, {"type": "image"}]}
            ),
        ]
    }
    shown = RequestText().read(request)
    assert all(words in shown for words in ("said", 'a "b"', "c", "came"))
    assert not any(words in shown for words in ("Edit", "edits", "tool_use", "said\na"))


def test_the_text_of_a_request_is_read_from_the_first_message_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []

    def texts(block: dict[str, Any]) -> Iterator[str]:
        read.append(block)
        yield block["text"]

    monkeypatch.setattr("lamina.replay.hidden_text._texts", texts)
    messages = [{"role": "user", "content": [{"type": "text", "text": f"<{at}>"}]} for at in range(100)]
    shown = RequestText()
    for at in range(100):
        assert f"<{at}>" in shown.read({"messages": messages[: at + 1]})
    assert len(read) == 100
    assert [f"<{at}>" in shown.read({"messages": [*messages[:10], messages[50]]}) for at in (9, 10, 50, 99)] == [
        True,
        False,
        True,
        False,
    ]
    assert len(read) == 101
