"""Sessions of the layers alone: no instruction files and no memory, so that a request holds what a test put in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lamina.session.session as whole

if TYPE_CHECKING:
    from lamina.session.session import AsyncSession as AsyncSession
    from lamina.session.session import Session as Session
else:

    def _alone(given: dict[str, Any]) -> dict[str, Any]:
        return {"instructions": False, "memory": False, **given}

    class Session(whole.Session):
        def __init__(self, *args: Any, **given: Any) -> None:
            super().__init__(*args, **_alone(given))

    class AsyncSession(whole.AsyncSession):
        def __init__(self, *args: Any, **given: Any) -> None:
            super().__init__(*args, **_alone(given))
