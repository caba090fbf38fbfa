"""The golden set: every surface answers as it is recorded. `python -m tests.golden.record --write` records a decision anew."""

from __future__ import annotations

import pytest

from . import record

# Work in the background has no fixed moment: what differs is asked again. A change differs every time.
TRIES = 3


@pytest.mark.parametrize("section", record.SECTIONS)
def test_the_surfaces_answer_as_recorded(section: str) -> None:
    recorded, found = "", "?"
    with record.alone():
        for _ in range(TRIES):
            if found != recorded:
                recorded, found = record.recorded_and_found(section)
    assert found.splitlines() == recorded.splitlines(), "python -m tests.golden.record shows the differences"
