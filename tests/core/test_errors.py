"""What an error says inside another sentence."""

from __future__ import annotations

import errno

import pytest

from lamina.core.errors import DiskError, InputError, NothingToSend, SettingError, clause
from lamina.language.text import Text, render


@pytest.mark.parametrize(
    ("error", "about", "said"),
    [
        (InputError("a.md", "is empty"), "", "a.md: is empty"),
        (InputError("a.md", "is empty", "write a text"), "", "a.md: is empty; write a text"),
        (InputError("a.md", "is empty", "write a text"), "a.md", "is empty; write a text"),
        (DiskError("b.md", "is a directory"), "a.md", "b.md: is a directory"),
        (DiskError("a.md: b", "is no file..."), "a.md", "a.md: b: is no file..."),
        (SettingError("x", "the user's file", "is not a number"), "", "Setting x (the user's file): is not a number"),
        (OSError(errno.ENOENT, "", "a.md"), "", "a.md: no such file or directory"),
        (NothingToSend(), "", str(NothingToSend())[:-1]),
    ],
)
def test_an_error_inside_a_sentence_has_no_full_stop_and_no_subject_that_was_named(
    error: Exception, about: str, said: str
) -> None:
    assert clause(error, about) == said


def test_an_error_inside_a_sentence_is_translated_with_it() -> None:
    why = clause(DiskError("a.md", "is read-only", "check its permissions"))
    assert render(Text("Not saved: {why}.", why=why), "zh").startswith("Not saved: a.md：")
    assert "check its permissions" not in render(why, "zh")
