"""Sessions of the layers alone: no instruction files and no memory, so that a request holds what a test put in. Their tools read local
files.

Their policy is `classic` unless a test names another one: its thresholds are those of the specification's sections T to C, and no
layer weighs prices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lamina.session.session as whole
from lamina.core.policy import CLASSIC, Policy
from lamina.core.reach import FILE_TOOLS
from lamina.core.settings import Settings
from lamina.core.settings.table import NUMBERS, policy_from
from lamina.fork.host import Host

if TYPE_CHECKING:
    from lamina.session.session import AsyncSession as AsyncSession
    from lamina.session.session import Session as Session
else:
    FILES = Host(file_tools=tuple(FILE_TOOLS))

    def _alone(given: dict[str, Any]) -> dict[str, Any]:
        return {"instructions": False, "memory": False, "policy": _classic(given.get("settings")), **given}

    def _classic(settings: Settings | None) -> Policy | None:
        """Return the classic policy with the numbers of the settings, or None if these name a policy."""
        if settings is None:
            return CLASSIC
        if settings.resolved("lamina.policy").source != "default":
            return None
        return policy_from(CLASSIC, {row.key: settings.resolved(row.key) for row in NUMBERS.values()})

    class Session(whole.Session):
        def __init__(self, *args: Any, **given: Any) -> None:
            super().__init__(*args, **{"host": FILES, **_alone(given)})

    class AsyncSession(whole.AsyncSession):
        def __init__(self, *args: Any, **given: Any) -> None:
            super().__init__(*args, **{"host": FILES, **_alone(given)})
