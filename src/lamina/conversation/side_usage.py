"""What the calls beside a conversation have used; it never counts in its window (T10)."""

from __future__ import annotations

from ..core.usage import Usage
from ..providers.models import Cost


class SideUsage:
    def __init__(self) -> None:
        self.usage = Usage()
        self.cost = Cost()
        self.forks = 0

    def add(self, usage: Usage, cost: Cost) -> None:
        self.usage += usage
        self.cost += cost
        self.forks += 1
