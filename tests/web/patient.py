"""Requests and waits that do not fail because the machine is busy: their limit only guards against a hang."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import httpx2

T = TypeVar("T")

# Seconds.
PATIENCE = 90
PAUSE = 0.02

get = partial(httpx2.get, timeout=PATIENCE)
post = partial(httpx2.post, timeout=PATIENCE)


def wait_for(look: Callable[[], T]) -> T:
    """Return the first value of `look` that is true."""
    end = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < end, "this never came"
        time.sleep(PAUSE)
    return found
