"""Text of the chat: wrapping, descriptions of calls, the status line, completion of names. All pure."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.utils import get_cwidth

from lamina.cli.console import fit, sentence, wrap_text
from lamina.cli.context_report import format_context
from lamina.cli.output import StdoutSink
from lamina.cli.signals import StopRequest
from lamina.cli.terminal.banner import said_words
from lamina.cli.terminal.calls import LONGEST, MOST_CHANGED, MOST_COMMAND, describe_call, describe_result, preview_call
from lamina.cli.terminal.commands import COMMANDS, find
from lamina.cli.terminal.input_line import ChatCompleter, parse
from lamina.cli.terminal.screen import Screen, Style, clean, fold_text
from lamina.cli.terminal.turn_display import TextStream, describe_status, fit_parts
from lamina.conversation.window.breakdown import Breakdown
from lamina.conversation.window.thresholds import WindowState, state_of, thresholds
from lamina.core.blocks import text
from lamina.core.errors import NotCompacted
from lamina.core.policy import WindowPolicy
from lamina.core.usage import Usage
from lamina.core.view import Item
from lamina.history.window_report import WindowReport

CWD = Path("/work/app")


def plain(text: str, _: Style) -> str:
    return text


def tagged(text: str, style: Style) -> str:
    return text if style == "plain" else f"<{style}>{text}</{style}>"


def flowed(pieces: list[str], width: int) -> str:
    flow = TextStream(plain)
    return "".join(flow.feed(piece, width) for piece in pieces) + flow.end(width)


def test_names_of_wide_characters_keep_the_column(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(StdoutSink(StopRequest()))
    for name in ("chat", "对话", "提取记忆"):
        screen.listed(name, "plain", "1 call", 18)
    lines = capsys.readouterr().out.splitlines()
    assert [get_cwidth(line.removesuffix("1 call")) for line in lines] == [18, 18, 18]


# Words of an answer


@given(st.text(st.sampled_from("ab `*#\n中 "), max_size=120), st.integers(10, 40), st.data())
def test_an_answer_loses_no_word_however_it_is_cut(text: str, width: int, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    shown = flowed([text[:at], text[at:]], width)
    assert shown.split() == text.split() or "中" in text
    assert "".join(shown.split()) == "".join(text.split())
    assert shown == flowed([text], width), "pieces make no difference"


@given(st.lists(st.text(st.sampled_from("abc"), min_size=1, max_size=9), max_size=40), st.integers(10, 40))
def test_no_line_is_wider_than_the_terminal(words: list[str], width: int) -> None:
    shown = flowed([" ".join(words)], width)
    assert all(get_cwidth(line) <= width for line in shown.split("\n"))
    assert all(line for line in shown.rstrip("\n").split("\n")) or not words


def test_lines_of_code_are_left_as_they_are() -> None:
    code = "```\n" + "x = 1  # " + "long " * 30 + "\n```\n"
    assert flowed([f"Look:\n{code}and so on"], 40) == f"Look:\n{code}and so on\n"


def test_headings_code_and_bold_words_are_coloured_and_their_marks_stay() -> None:
    flow = TextStream(tagged)
    shown = flow.feed("# Top\nuse `a b` **now** ok\n", 80) + flow.end(80)
    assert shown == (
        "<bold>#</bold> <bold>Top</bold>\n"
        "use <cyan>`</cyan><cyan>a</cyan> <cyan>b</cyan><cyan>`</cyan> <bold>**</bold><bold>now</bold><bold>**</bold> ok\n"
    )


def test_a_mark_that_is_never_closed_ends_with_its_line() -> None:
    flow = TextStream(tagged)
    assert flow.feed("a ` b\nplain ", 80).endswith("\nplain ")


@given(st.text(max_size=60), st.integers(1, 30))
def test_what_is_cut_to_fit_fits_and_holds_no_control_character(text: str, width: int) -> None:
    shown = fit(" ".join(clean(text).split()), width)
    assert get_cwidth(shown) <= width
    assert shown.isprintable()


def test_carriage_returns_are_dropped_and_tabs_become_blanks() -> None:
    assert clean("a\r\n\tb\x1b[31m\x9b\u202e") == "a\n    b\ufffd[31m\ufffd\ufffd"


@pytest.mark.parametrize("text", ["中文　空格", "10\u00a0000\u202f€", "👩\u200d👩\u200d👧", "می\u200cخواهم", "e\u0301"])
def test_the_blanks_and_joiners_of_every_script_are_shown_as_they_are(text: str) -> None:
    assert clean(text) == text
    assert sentence(text) == " ".join(text.split())


@given(st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" ")), st.integers(9, 40))
def test_a_command_is_folded_without_losing_a_character(text: str, width: int) -> None:
    lines = fold_text(text, width, "    ", "  ")
    first, *rest = lines
    assert (first.removeprefix("    ") + "".join(line.removeprefix("      ") for line in rest)).rstrip() == text.rstrip()
    assert all(get_cwidth(line.rstrip()) <= width for line in lines)


def test_a_sentence_is_broken_between_words() -> None:
    assert wrap_text("one two three", 8, "  ") == ["  one", "  two", "  three"]
    assert wrap_text("unbreakable", 4) == ["unbreakable"]


# Calls


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ("Read", {"file_path": "/work/app/src/a.py"}, "Read src/a.py"),
        ("Read", {"file_path": "/etc/hosts", "offset": 10, "limit": 5}, "Read /etc/hosts:10-14"),
        ("Read", {"file_path": "a.py", "offset": 10}, "Read a.py:10-"),
        ("Bash", {"command": "make\n  test"}, "Bash make test"),
        ("Grep", {"pattern": "a b", "path": "/work/app/src"}, "Grep 'a b' in src"),
        ("Glob", {"pattern": "**/*.py"}, "Glob **/*.py"),
        ("TodoWrite", {"todos": [{}, {}]}, "TodoWrite 2 to-dos"),
        ("mcp__x__y", {"a": 1}, 'mcp__x__y {"a": 1}'),
        ("Read", {"file_path": 7}, "Read 7"),
        ("Edit", "no object", "Edit"),
        ("Bash", None, "Bash"),
    ],
)
def test_a_call_is_told_in_one_line(name: str, arguments: Any, shown: str) -> None:
    assert describe_call(name, arguments, CWD) == shown


@pytest.mark.parametrize(
    ("name", "content", "facts", "is_error", "shown"),
    [
        ("Read", "…", {"lines": 1}, False, "1 line"),
        ("Read", "…", {"lines": 2000, "more": True, "total": 9000}, False, "2,000 lines of 9,000"),
        ("Write", "…", {"lines": 3, "created": True}, False, "new, 3 lines"),
        ("Write", "Saved the memory 'a' in /m/a.md.", {"memory": "saved"}, False, "saved"),
        ("Edit", "Updated the memory 'a' in /m/a.md.", {"memory": "updated"}, False, "updated"),
        ("Write", "/m/a.md already has this content.", {"memory": "unchanged"}, False, "unchanged"),
        ("Write", "Added 2 bullets at the end of /m/logs/2026/11/2026-11-17.md.", {"bullets": 2}, False, "added 2 bullets"),
        ("Write", "/m/a.md is not changed yet.", {"memory": "waiting"}, False, "waits for your approval"),
        ("Write", "Saved the memory as a file.", {}, False, "Saved the memory as a file."),
        ("Grep", "…", {"lines": 3, "files": 1}, False, "3 lines in 1 file"),
        ("Glob", "…", {"files": 0}, False, "0 files"),
        ("Bash", "collected 3\n\n3 passed\n", {"exit_code": 0}, False, "3 passed"),
        ("Bash", "1 failed\n[exit code 1]", {"exit_code": 1}, False, "exit code 1: 1 failed"),
        ("Bash", "tick", {"exit_code": -15, "why": "abort"}, True, "stopped: tick"),
        ("Bash", "", {"exit_code": -9, "why": "timeout"}, True, "timed out"),
        (
            "Bash",
            "xxx\n[The whole output is in /s/1; …]",
            {"exit_code": -15, "why": "full"},
            True,
            "stopped: too much output",
        ),
        ("Bash", "2 failed\n[The whole output is in /s/1; …]", {"exit_code": 1}, True, "exit code 1: 2 failed"),
        (
            "Edit",
            "Not allowed: Denied by the user.",
            {"denied": True, "reason": "Denied by the user."},
            True,
            "Denied by the user.",
        ),
        ("Read", "a.py is not there.\nmore", {}, True, "a.py is not there."),
        ("Read", [{"type": "image"}], {"bytes": 3}, False, ""),
        ("mcp__x__y", "\nfine\nmore", {}, False, "fine"),
    ],
)
def test_a_result_is_told_in_half_a_line(name: str, content: Any, facts: dict[str, Any], is_error: bool, shown: str) -> None:
    assert describe_result(name, {}, content, facts, is_error=is_error) == shown


def test_a_file_of_the_memory_is_told_by_its_short_path() -> None:
    home = Path("/home/me/.lamina")
    given = {"file_path": "/home/me/.lamina/projects/-work-app/memory/testing-db.md"}
    assert describe_call("Write", given, CWD, home) == "Write memory/testing-db.md"
    assert describe_call("Write", given, CWD) == f"Write {given['file_path']}", "the question shows all of it"
    assert describe_call("Write", {"file_path": "/etc/projects/x/memory/a.md"}, CWD, home) == "Write /etc/projects/x/memory/a.md"


def test_a_change_is_told_by_its_lines() -> None:
    arguments = {"old_string": "a\nb", "new_string": "a\nb\nc\n"}
    assert describe_result("Edit", arguments, "", {"line": 7, "replacements": 1}, is_error=False) == "-2 +3 at line 7"
    assert (
        describe_result("Edit", arguments, "", {"line": 7, "replacements": 4}, is_error=False) == "-2 +3 in 4 places from line 7"
    )


def test_a_command_is_shown_whole_before_it_is_asked_about() -> None:
    command = "\n".join(f"echo {number}" for number in range(MOST_COMMAND))
    assert [line.text for line in preview_call("Bash", {"command": command})] == command.split("\n")


def test_what_is_not_shown_of_a_call_is_counted() -> None:
    long = preview_call("Bash", {"command": "x\n" * (MOST_COMMAND + 7)})
    assert long[-1].text == "… and 7 more lines not shown here"
    assert preview_call("Bash", {"command": "x" * (LONGEST + 5)})[0].text.endswith("… (+5)")
    written = preview_call("Write", {"content": "x\n" * (MOST_CHANGED + 2)})
    assert written[-1].text == "… and 2 more lines not shown here"
    assert (
        preview_call("Edit", {"old_string": "a", "new_string": "b", "replace_all": True})[0].text == "all occurrences in the file"
    )
    assert preview_call("Read", {"file_path": "x"}) == []


# Status

LIMITS = thresholds(200_000, 64_000, WindowPolicy())
FRESH = state_of(0, LIMITS)


@pytest.mark.spec("T7")
def test_the_status_line_says_what_is_left_what_was_cached_and_what_it_cost() -> None:
    status = describe_status(FRESH, Usage(input_tokens=25, cache_read=75), 0.0123, Usage(), "ask")
    assert status == ["context 100% left", "cache 75%", "$0.0123", "mode ask", "background: none"]
    unknown = describe_status(FRESH, None, None, Usage(input_tokens=1200, output_tokens=34), "all", work="1 dream")
    assert unknown == ["context 100% left", "1,234 tokens", "mode all", "background: 1 dream"]
    used = Usage(input_tokens=7, cache_read=1_250_000, cache_write=31_000, output_tokens=950)
    assert (
        describe_status(FRESH, None, 0.5, used, "ask", billing="subscription")[1]
        == "1.2M read, 31k written, 7 uncached, 950 output"
    )


@pytest.mark.spec("T7")
def test_a_window_that_fills_up_is_said_so() -> None:
    numbers = {"margin": 0, "window": 120, "limit": 100, "warning": 90, "error": 95, "compacts_at": 97, "blocking": 99}
    warned, full = WindowState(91, **numbers), WindowState(100, **numbers)
    assert describe_status(warned, None, 0.0, Usage(), "ask")[0] == "context 9% left (filling up)"
    assert "full: /compact, /clear or /undo" in describe_status(full, None, 0.0, Usage(), "ask")[0]


@given(st.integers(1, 120))
def test_the_status_line_fits_every_terminal(width: int) -> None:
    found = describe_status(FRESH, Usage(input_tokens=1), 0.5, Usage(), "accept-edits")
    line = fit_parts(found, width)
    assert len(line) <= width
    assert line.startswith("context"[:width])


# Commands and names


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("/help", ("help", "")),
        (" /pin  keep this \nand that ", ("pin", "keep this \nand that")),
        ("/Undo", ("undo", "")),
        ("/etc/hosts is wrong", None),
        ("/ what", None),
        ("//", None),
        ("what is /help", None),
    ],
)
def test_only_a_slash_and_a_name_is_a_command(text: str, called: tuple[str, str] | None) -> None:
    assert parse(text) == called


def test_a_beginning_that_is_no_other_commands_is_enough() -> None:
    assert find("perm") is COMMANDS["permissions"]
    assert find("he") is COMMANDS["help"]
    assert find("un") is COMMANDS["undo"]
    assert find("re") is None, "several begin like this"
    assert find("nothing") is None


def test_a_command_that_deletes_needs_its_whole_name() -> None:
    assert find("forget") is COMMANDS["forget"]
    assert find("remove") is COMMANDS["remove"]
    for begun in ("f", "forge", "remov", "removes", "forgett"):
        assert find(begun) is None, begun
    assert find("rem") is None, "a beginning of /remove and /remember stays ambiguous"


def offered(completer: ChatCompleter, text: str) -> list[str]:
    return [each.text for each in completer.get_completions(Document(text, len(text)), CompleteEvent())]


def test_commands_arguments_and_files_are_completed(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").touch()
    for name in ("setup.py", ".hidden", "two words.txt", "evil\x1b.txt"):
        (tmp_path / name).touch()
    completer = ChatCompleter(tmp_path, {"help": "this", "undo": "that"}, {"undo": lambda: [("one", ""), ("two", "")]})
    assert offered(completer, "/") == ["/help", "/undo"]
    assert offered(completer, "/undo t") == ["two"]
    assert offered(completer, "look at @s") == ["setup.py", "src/"]
    assert offered(completer, "@src/a") == ["src/app.py"]
    assert offered(completer, "@.h") == [".hidden"]
    assert offered(completer, f"@{tmp_path}/src/") == [f"{tmp_path}/src/app.py"]
    assert offered(completer, "@evil") == offered(completer, "@two") == []
    assert offered(completer, "@no/such/place/") == offered(completer, "mail me@s") == offered(completer, "plain") == []


# What fills the window


def filled(tokens: int, *, human: int, assistant: int = 0) -> WindowReport:
    state = state_of(tokens, LIMITS)
    return WindowReport("a-model", tokens, LIMITS, state, 0, Breakdown(human=human, assistant=assistant), source="default")


@pytest.mark.spec("T8")
def test_no_kind_takes_more_than_all_of_them_and_no_line_is_too_wide() -> None:
    for width in (200, 80, 40):
        shown = format_context(filled(9_000, human=8_000, assistant=2_000), width)
        assert [int(share) for text, _ in shown for share in re.findall(r"(\d+)%(?! left)", text)] == [80, 20]
        assert all(get_cwidth(text) <= width for text, _ in shown)


@pytest.mark.spec("T8")
@pytest.mark.parametrize(("tokens", "style"), [(1_000, "green"), (165_000, "yellow"), (179_000, "red")])
def test_the_bar_has_the_colour_of_how_full_it_is(tokens: int, style: str) -> None:
    [(drawn, colour)] = [(text, style) for text, style in format_context(filled(tokens, human=tokens), 80) if style]
    assert (colour, drawn[0], drawn[-1], len(drawn)) == (style, "[", "]", 60)
    assert not any(style for _, style in format_context(filled(tokens, human=tokens), 80, picture=False))


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("the answer has no <summary>", "Nothing was compacted: the answer has no <summary>."),
        ("there is nothing to summarise yet.", "Nothing was compacted: there is nothing to summarise yet."),
    ],
)
def test_why_nothing_was_compacted_is_a_whole_sentence(why: str, said: str) -> None:
    assert str(NotCompacted(why)) == said


def test_a_recap_leaves_out_what_programs_inserted() -> None:
    blocks = (text("Look at it."), text("<system-reminder>\nYou are a.\n</system-reminder>"))
    assert said_words(Item("u", "user", blocks, "said")) == "Look at it."
