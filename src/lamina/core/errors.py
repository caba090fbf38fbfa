"""The error tree: everything Lamina raises on purpose.

    LaminaError
    ├── UsageError               the caller asked for something the session cannot do now
    │   ├── SessionClosed        a call after close() or abort()
    │   ├── NothingToSend        before_call() with no new message
    │   └── UndoOrder            span decisions are undone last first
    ├── InputError               a value handed in from outside has the wrong shape
    ├── SettingError             a setting that cannot be used (its file and key are named)
    ├── WindowFull               the blocking limit is reached (T7)
    ├── DiskError                a file could not be read or written; the old content stands
    │   ├── DiskFull
    │   ├── ReadOnly
    │   ├── PathRefused          a path that may not be used (G1)
    │   ├── LockHeld             another live process has it
    │   ├── LockUnsupported      this file system has no usable locks
    │   └── Fenced               a dream that lost its lock may write no more (D2)
    ├── TranscriptError          a transcript that cannot be continued
    │   ├── NoSuchSession
    │   └── NewerVersion         written by a newer Lamina than this one
    ├── ProviderError            a model call that did not work (status, request id, retry-after)
    │   ├── AuthFailed           401, 403: never retried
    │   ├── PromptTooLong        400 or 413, with the two token counts where the server names them
    │   ├── BadRequest           any other 400
    │   ├── RateLimited          429
    │   ├── Overloaded           529, 503
    │   ├── ServerFault          other 5xx
    │   ├── ConnectionLost       refused, reset, timed out
    │   ├── StreamBroken         the answer stopped half way; the partial blocks are carried
    │   └── Refused              the model declined to answer
    ├── Aborted                  the person stopped the turn
    └── MissingExtra             an optional package is not installed

Each message is one sentence for a person: what (the file, field or setting), what is wrong, what to do. The parts are kept as
attributes, so that a program never has to parse the sentence. Expected outcomes are values, not errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class LaminaError(Exception):
    """Base of all errors raised on purpose."""


class Aborted(LaminaError):
    """The person stopped the turn; what was said so far is kept."""

    def __init__(self) -> None:
        super().__init__("Stopped; what was said so far is kept, and the next message goes on from there.")


class UsageError(LaminaError):
    pass


class SessionClosed(UsageError):
    def __init__(self, session_id: str) -> None:
        super().__init__(f"Session {session_id} is closed; open it again with resume={session_id!r}.")
        self.session_id = session_id


class NothingToSend(UsageError):
    def __init__(self) -> None:
        super().__init__("There is nothing new to send: call add_user() or add_tool_result() before before_call().")


class UndoOrder(UsageError):
    def __init__(self, asked: str, first: str) -> None:
        super().__init__(f"{asked} can't be undone yet: undo {first} first, it was decided later and rests on it.")
        self.asked = asked
        self.first = first


class InputError(LaminaError):
    def __init__(self, where: str, problem: str, remedy: str = "") -> None:
        super().__init__(f"{where}: {problem}" + (f"; {remedy}." if remedy else "."))
        self.where = where
        self.problem = problem
        self.remedy = remedy


class SettingError(LaminaError):
    def __init__(self, key: str, source: str, problem: str, remedy: str = "") -> None:
        super().__init__(f"Setting {key} ({source}): {problem}" + (f"; {remedy}." if remedy else "."))
        self.key = key
        self.source = source
        self.problem = problem
        self.remedy = remedy


class WindowFull(LaminaError):
    def __init__(self, count: int, limit: int) -> None:
        super().__init__(
            f"The conversation holds about {count:,} tokens and the limit is {limit:,}: "
            "compact it (/compact), undo or start a new session (/clear) before the next message."
        )
        self.count = count
        self.limit = limit


class DiskError(LaminaError):
    def __init__(self, path: str, problem: str, remedy: str = "") -> None:
        super().__init__(f"{path}: {problem}" + (f"; {remedy}." if remedy else "."))
        self.path = path
        self.problem = problem
        self.remedy = remedy


class DiskFull(DiskError):
    def __init__(self, path: str) -> None:
        super().__init__(path, "the disk is full or the quota is used up", "free some space, nothing old was lost")


class ReadOnly(DiskError):
    def __init__(self, path: str) -> None:
        super().__init__(path, "may not be written here", "check its permissions or set LAMINA_HOME to a directory of yours")


class PathRefused(DiskError):
    pass


class LockHeld(DiskError):
    def __init__(self, path: str, holder: str = "another process") -> None:
        super().__init__(path, f"is in use by {holder}", "close it there first")
        self.holder = holder


class LockUnsupported(DiskError):
    def __init__(self, path: str) -> None:
        super().__init__(path, "this file system has no usable file locks", "move LAMINA_HOME to a local disk")


class Fenced(DiskError):
    def __init__(self, path: str) -> None:
        super().__init__(path, "this dream no longer holds the lock, so it may not write", "leave it, the next dream starts anew")


class TranscriptError(LaminaError):
    pass


class NoSuchSession(TranscriptError):
    def __init__(self, session_id: str, where: str) -> None:
        super().__init__(f"No session {session_id!r} under {where}; `lamina sessions list` shows those there are.")
        self.session_id = session_id
        self.where = where


class NewerVersion(TranscriptError):
    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            f"{path}: written in format {found} by a newer Lamina, this one writes format {known}; "
            "upgrade to continue it, reading still works."
        )
        self.path = path
        self.found = found
        self.known = known


class ProviderError(LaminaError):
    """`retryable` says whether the same request may succeed later; `retry_after` is the server's own wish in seconds."""

    retryable = False

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after


class AuthFailed(ProviderError):
    pass


class PromptTooLong(ProviderError):
    """`actual` and `limit` are None where the server does not name them."""

    def __init__(self, message: str, *, actual: int | None = None, limit: int | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.actual = actual
        self.limit = limit

    @property
    def gap(self) -> int | None:
        """Tokens over the limit, where the server said so."""
        return None if self.actual is None or self.limit is None else max(0, self.actual - self.limit)


class BadRequest(ProviderError):
    pass


class RateLimited(ProviderError):
    retryable = True


class Overloaded(ProviderError):
    retryable = True


class ServerFault(ProviderError):
    retryable = True


class ConnectionLost(ProviderError):
    retryable = True


class StreamBroken(ProviderError):
    """Nothing in `partial` may be executed: a tool call without its stop reason can be cut anywhere."""

    retryable = True

    def __init__(self, message: str, *, partial: Sequence[dict[str, Any]] = (), **facts: Any) -> None:
        super().__init__(message, **facts)
        self.partial = tuple(partial)


class Refused(ProviderError):
    pass


class MissingExtra(LaminaError):
    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f'The package {package} is not installed; pip install "lamina[{extra}]" brings it.')
        self.package = package
        self.extra = extra
