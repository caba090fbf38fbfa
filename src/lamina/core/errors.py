"""The error tree: every exception that Lamina raises on purpose.

    LaminaError
    ├── UsageError               the call is not possible in the session's current state
    │   ├── SessionClosed        a call after close() or abort()
    │   ├── NothingToSend        before_call() without a new message
    │   ├── NotCompacted         a compaction by hand changed nothing
    │   └── UndoOrder            a later decision must be undone first
    ├── InputError               an argument or an external value has the wrong shape
    ├── SettingError             a setting cannot be used (the message names its file and key)
    ├── WindowFull               the conversation has reached the blocking limit
    ├── DiskError                a file could not be read or written; its old content is intact
    │   ├── DiskFull
    │   ├── ReadOnly
    │   ├── PathRefused          the path may not be used
    │   ├── LockHeld             another live process holds the lock
    │   ├── LockUnsupported      the file system has no usable file locks
    │   └── Fenced               a dream lost its lock and may no longer write
    ├── TranscriptError          the transcript cannot be continued
    │   ├── NoSuchSession
    │   └── NewerVersion         a newer version of Lamina wrote the transcript
    ├── ProviderError            a model call failed (status, request id, retry-after)
    │   ├── AuthFailed           401, 403: never retried
    │   ├── PromptTooLong        400 or 413, with both token counts if the server reports them
    │   ├── BadRequest           any other 400
    │   ├── RateLimited          429
    │   ├── Overloaded           529, 503
    │   ├── ServerFault          other 5xx
    │   ├── ConnectionLost       refused, reset, timed out
    │   ├── StreamBroken         the response stopped midway; carries the partial blocks
    │   └── Refused              the model declined to answer
    ├── Aborted                  the user stopped the turn
    ├── EncoderUnavailable       memories cannot be compared by meaning, only by words
    └── MissingExtra             an optional package is not installed

Each message tells the user what is affected (the file, field or setting), what is wrong, and what to do. The same parts are
available as attributes, so programs never have to parse the message. Expected outcomes are return values, not errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..language.text import CLAUSES, Text, joined, message


def error_message(subject: str, problem: str, remedy: str = "") -> Text:
    """Return the message of an error or finding: what is affected, what is wrong, and what to do."""
    form = Text("{subject}: {problem}; {remedy}." if remedy else "{subject}: {problem}.")
    return Text(form, subject=subject, problem=Text.whole(problem), remedy=Text.whole(remedy))


def clause(error: Exception, about: str = "") -> Text:
    """Return what an error says for use inside another sentence: without its full stop, and without its subject if that is `about`."""
    text = message(error)
    if not {"subject", "problem", "remedy"} <= text.values.keys():
        return Text.whole(str(text).rstrip("."))
    subject, problem, remedy = (text.values[part] for part in ("subject", "problem", "remedy"))
    what = joined((problem, remedy), CLAUSES) if remedy else problem
    return what if subject == about else Text("{subject}: {problem}", subject=subject, problem=what)


def setting_message(key: str, place: str, problem: str, remedy: str) -> Text:
    return error_message(Text("Setting {key} ({place})", key=key, place=Text.whole(place)), problem, remedy)


class LaminaError(Exception):
    """Base class of all errors that Lamina raises on purpose. Its first argument is the message, a `Text`."""


class Aborted(LaminaError):
    """The user stopped the turn; the conversation so far is kept."""

    def __init__(self) -> None:
        super().__init__(Text("Stopped. The conversation so far is kept, and the next message continues from there."))


class UsageError(LaminaError):
    """The call is not possible in the session's current state."""


class SessionClosed(UsageError):
    """A method was called after `close` or `abort`."""

    def __init__(self, session_id: str, *, in_memory: bool = False) -> None:
        advice = Text("It was kept in memory only; open a new one.")
        if not in_memory:
            advice = Text("Reopen it with resume={session_id!r}.", session_id=session_id)
        super().__init__(Text("Session {session_id} is closed. {advice}", session_id=session_id, advice=advice))
        self.session_id = session_id


class NothingToSend(UsageError):
    """`before_call` was called without a new message."""

    def __init__(self) -> None:
        super().__init__("There is no new message to send. Call add_user() or add_tool_result() before before_call().")


class NotCompacted(UsageError):
    """A compaction on request changed nothing: it is turned off, a hook refused it, or there was nothing to gain."""

    def __init__(self, why: str) -> None:
        super().__init__(Text("Nothing was compacted: {why}.", why=Text.whole(why.rstrip("."))))
        self.why = why


class UndoOrder(UsageError):
    """A later decision must be undone first."""

    def __init__(self, asked: str, first: str) -> None:
        super().__init__(
            Text("Cannot undo {asked} yet. Undo {first} first: it is newer and depends on {asked}.", asked=asked, first=first)
        )
        self.asked = asked
        self.first = first


class InputError(LaminaError):
    """An argument or an external value has the wrong form."""

    def __init__(self, where: str, problem: str, remedy: str = "") -> None:
        super().__init__(error_message(Text.whole(where), problem, remedy))
        self.where = where
        self.problem = problem
        self.remedy = remedy


class SettingError(LaminaError):
    """A setting cannot be used. The message names its file and key."""

    def __init__(self, key: str, source: str, problem: str, remedy: str = "") -> None:
        super().__init__(setting_message(key, source, problem, remedy))
        self.key = key
        self.source = source
        self.problem = problem
        self.remedy = remedy


class WindowFull(LaminaError):
    """The conversation has reached the blocking limit: compact or undo before the next message."""

    def __init__(self, count: int, limit: int) -> None:
        super().__init__(
            Text(
                "The conversation has about {count:,} tokens and the limit is {limit:,}. Compact it (/compact), "
                "undo, or start a new session (/clear) before sending the next message.",
                count=count,
                limit=limit,
            )
        )
        self.count = count
        self.limit = limit


class DiskError(LaminaError):
    """A file could not be read or written. Its old content is intact."""

    def __init__(self, path: str, problem: str, remedy: str = "") -> None:
        super().__init__(error_message(path, problem, remedy))
        self.path = path
        self.problem = problem
        self.remedy = remedy


class DiskFull(DiskError):
    """The disk is full or the quota is used up."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "the disk is full or the quota is used up", "free some space (no existing data was lost)")


class ReadOnly(DiskError):
    """A file or directory cannot be written."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "is not writable", "check its permissions or set LAMINA_HOME to a writable directory")


class PathRefused(DiskError):
    """The path may not be used."""


class ProtectedFile(PathRefused):
    """A file that its owner made read-only."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "is read-only", "check its permissions")


class LockHeld(DiskError):
    """Another live process holds the lock."""

    def __init__(self, path: str, holder: str = "another process") -> None:
        super().__init__(path, Text("is in use by {holder}", holder=Text.whole(holder)), "close it there first")
        self.holder = holder


class LockUnsupported(DiskError):
    """The file system has no usable file locks."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "the file system does not support file locks", "move LAMINA_HOME to a local disk")


class Fenced(DiskError):
    """A dream lost its lock and may no longer write."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "this dream lost its lock and may not write", "no action is needed, the next dream starts over")


class TranscriptError(LaminaError):
    """The transcript cannot be continued."""


class NoSuchSession(TranscriptError):
    """No session has this id."""

    def __init__(self, session_id: str, where: str) -> None:
        super().__init__(
            Text(
                "Session {session_id!r} not found in {where}. Run `lamina sessions list --all` to see the ids.",
                session_id=session_id,
                where=where,
            )
        )
        self.session_id = session_id
        self.where = where


class NewerVersion(TranscriptError):
    """A newer version of Lamina wrote the transcript."""

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            Text(
                "{path}: written in format {found} by a newer version of Lamina; this version writes format {known}. "
                "Upgrade to continue the session; reading it still works.",
                path=path,
                found=found,
                known=known,
            )
        )
        self.path = path
        self.found = found
        self.known = known


class ProviderError(LaminaError):
    """`retryable` tells whether the same request may succeed later; `retry_after` is the delay in seconds the server asks for."""

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
    """The server rejected the API key or the account (401, 403). Never retried."""


class PromptTooLong(ProviderError):
    """`actual` and `limit` are None if the server does not report them."""

    def __init__(self, message: str, *, actual: int | None = None, limit: int | None = None, **facts: Any) -> None:
        super().__init__(message, **facts)
        self.actual = actual
        self.limit = limit

    @property
    def gap(self) -> int | None:
        """Number of tokens over the limit, or None if the server did not report it."""
        return None if self.actual is None or self.limit is None else max(0, self.actual - self.limit)


class BadRequest(ProviderError):
    """The server rejected the request as invalid (any other 400)."""


class RateLimited(ProviderError):
    """The server received too many requests (429)."""

    retryable = True


class Overloaded(ProviderError):
    """The server is overloaded (503, 529)."""

    retryable = True


class ServerFault(ProviderError):
    """The server failed (any other 5xx)."""

    retryable = True


class ConnectionLost(ProviderError):
    """The connection was refused, reset or timed out."""

    retryable = True


class StreamBroken(ProviderError):
    """Do not execute anything in `partial`: a tool call without its stop reason may be truncated anywhere."""

    retryable = True

    def __init__(self, message: str, *, partial: Sequence[dict[str, Any]] = (), **facts: Any) -> None:
        super().__init__(message, **facts)
        self.partial = tuple(partial)


class Refused(ProviderError):
    """The model declined to answer."""


class EncoderUnavailable(LaminaError):
    """Recall cannot compare by meaning. It goes on with words."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(Text("Memories are compared by words only: {why}. {hint}", why=why, hint=hint))
        self.why = why
        self.hint = hint


def install_command(extra: str) -> str:
    """Return the command that installs an extra, to be run in Lamina's source directory."""
    return f'pip install ".[{extra}]"'


class MissingExtra(LaminaError):
    """An optional package is not installed. The message names the extra."""

    def __init__(self, package: str, extra: str) -> None:
        run = install_command(extra)
        super().__init__(
            Text(
                "The package {package} is not installed. Run {run} in Lamina's source directory to install it.",
                package=package,
                run=run,
            )
        )
        self.package = package
        self.extra = extra
