"""Searches the past for a session's model: memories and earlier conversations of its project."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..disk.settings_files import lamina_home

if TYPE_CHECKING:
    from .base import SessionBase


def search_past(session: SessionBase, query: str, count: int, exact: bool, stopped: Callable[[], bool]) -> str:
    """Return the results as text for the model, without the session itself. Raises Aborted once `stopped` returns True."""
    from ..history.for_model import search_for_model

    return search_for_model(
        query,
        cwd=session.cwd,
        count=count,
        exact=exact,
        settings=session.settings,
        environ=_environ(session.home),
        skip=(str(session.path),) if session.path is not None else (),
        stopped=stopped,
    )


def _environ(home: Path | None) -> Mapping[str, str]:
    """Return the variables that name the agents' directories.

    A session with another home may belong to another tenant, so it sees that home alone and not the user's agents.
    """
    if home is not None and lamina_home(os.environ) == home:
        return os.environ
    return {"LAMINA_HOME": str(home)} if home is not None else {}
