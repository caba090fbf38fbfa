"""Usage and cost of side calls (forks). They never count towards the conversation's window."""

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
