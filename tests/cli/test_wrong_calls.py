"""A wrong call of the command line is one sentence that says what to do."""

from __future__ import annotations

import pytest

from .running import here

WRONG: list[tuple[tuple[str, ...], str]] = [
    (("context", "--turn", "0"), "Invalid value for '--turn': use a whole number of at least 1."),
    (("context", "--turn", "abc"), "Invalid value for '--turn': use a whole number of at least 1."),
    (("ui", "--port", "99999999"), "Invalid value for '--port': use a whole number from 1 to 65,535."),
    (("stats", "--days", "-1"), "Invalid value for '--days': use a number above 0."),
    (("stats", "--days", "abc"), "Invalid value for '--days': use a number above 0."),
    (("doctor", "--nope"), "No such option '--nope'. Run `lamina doctor --help` to list the options."),
    (("memory", "search", "x", "--explai"), "No such option '--explai'. Did you mean '--explain'?"),
    (("config", "set", "a", "b"), "Got unexpected extra arguments (a b). Run `lamina config --help` for usage."),
    (("memory", "search", "x", "-k"), "Option '-k' requires an argument. Add --help for usage."),
    (("sessions", "show"), "Missing argument 'SESSION'. Run `lamina sessions show --help` for usage."),
    (("export", "out"), "Missing option '--format'. Use one of claude-code, codex, agents-md, mcp-memory, mem0."),
    (
        ("install", "nope"),
        "Invalid value for 'AGENT': 'nope' is not one of 'claude-code', 'codex', 'cursor', 'gemini', 'opencode', 'vscode'.",
    ),
    (("memory", "search", " "), "QUERY is empty: pass a question or a few words."),
    (("memory", "log", "nope"), "No changes of a memory 'nope' are recorded. Run `lamina memory log` to list all changes."),
    (("memory", "diff", "nope"), "No changes of a memory 'nope' are recorded. Run `lamina memory log` to list all changes."),
    (("memory", "diff", "--version", "x"), "Change 'x' not found. Run `lamina memory log` to see the ids."),
]


@pytest.mark.parametrize(("arguments", "sentence"), WRONG)
def test_a_wrong_call_says_what_to_do(arguments: tuple[str, ...], sentence: str) -> None:
    done = here(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"lamina: {sentence}\n")


def test_a_call_that_does_not_exist_is_named() -> None:
    here("-p", "hello", "--model", "offline")
    for arguments in (("--turn", "9"), ("--turn", "1", "--against", "9")):
        assert here("context", *arguments).stderr == (
            "lamina: call 9: does not exist (the session has 1 answer); choose an earlier call.\n"
        )
