from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .patient import Patient


@pytest.fixture
def patient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Patient]:
    """With the calendar of Greenwich: a person's day is that of their clock."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        if hasattr(time, "tzset"):
            time.tzset()
        yield Patient(tmp_path)
    if hasattr(time, "tzset"):
        time.tzset()
