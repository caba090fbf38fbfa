"""The session tools of the server: search past sessions, read one, and show what fills its window.

A client sees the sessions of its own project only, without secrets, between fences.
"""

from __future__ import annotations

from ..sources.sessions import SourceSession, sessions
from ..tools.tool import Builtin
from .project import ServedProject


def listed_sessions(project: ServedProject) -> list[SourceSession]:
    return sessions(project.settings, project.cwd)


class SessionTools:
    def __init__(self, project: ServedProject) -> None:
        self._project = project

    def tools(self) -> tuple[Builtin, ...]:
        return ()

    def read(self, given: dict[str, str]) -> str:
        return ""
