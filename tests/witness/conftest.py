"""Tests against servers nobody here wrote; they are skipped where those are not installed."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "witness: needs a foreign server that is not among the dependencies")
