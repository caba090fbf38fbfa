"""Which cases of a long table the default run takes; the exhaustive run (`pytest -m exhaustive`) takes the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(cases: Iterable[Any], few: int) -> list[Any]:
    """The first few cases as they are, the others marked `exhaustive`."""
    return [case if number < few else pytest.param(case, marks=pytest.mark.exhaustive) for number, case in enumerate(cases)]
