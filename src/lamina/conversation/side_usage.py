"""What the calls beside a conversation have used."""

from __future__ import annotations

from ..core.usage import Usage
from ..providers.models import Cost


class Beside:
    """What the calls beside a conversation have used; it never counts in its window (T10)."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.cost = Cost(0.0, 0.0)
        self.forks = 0
