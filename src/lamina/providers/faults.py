"""What went wrong with a call, as one of our errors.

An SDK's exception is first read into a `Fault` (a plain value), then a pure function picks the error: the same rules serve both
SDKs, both transports and an error event in the middle of a stream. Whether the server wants the request again
(`x-should-retry`) overrules what its status says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.errors import (
    AuthFailed,
    BadRequest,
    ConnectionLost,
    Overloaded,
    PromptTooLong,
    ProviderError,
    RateLimited,
    Refused,
    ServerFault,
    StreamBroken,
)

# An HTML error page must not fill the terminal.
MESSAGE_CHARS = 500

# Exceptions of these packages, and of the system, are faults of the call; any other is a mistake in a program and goes through.
OUTSIDE = frozenset({"anthropic", "openai", "httpx", "httpx2", "httpcore", "httpcore2"})

# An error event carries no status of its own: the stream began with 200.
STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    "exceed_context_size_error": 400,
    "context_length_exceeded": 400,
}

TOO_LONG_KINDS = frozenset({"context_length_exceeded", "exceed_context_size_error", "request_too_large"})
TOO_LONG_STATUSES = frozenset({None, 400, 413, 422, 500})
REFUSAL_KINDS = frozenset({"content_filter", "content_policy_violation", "responsibleaipolicyviolation"})
# A limit that time does not lift: trying again only costs time.
HOPELESS_KINDS = frozenset({"insufficient_quota", "enforced_spend_limit_reached"})

# The servers' own wordings, as people quote them in bug reports. `actual` and `more` together are what was asked for.
_NUMBERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"too long: (?P<actual>\d+) tokens > (?P<limit>\d+)",  # Anthropic
        r"exceed context limit: (?P<actual>\d+) \+ (?P<more>\d+) > (?P<limit>\d+)",  # Anthropic, with max_tokens
        r"is too large: (?P<more>\d+)\D+context length is (?P<limit>\d+) tokens and your request has (?P<actual>\d+)",  # vLLM
        r"(?:maximum )?context length is (?:only )?(?P<limit>\d+) tokens\D+?(?P<actual>\d+) (?:input )?tokens",  # OpenAI, vLLM
        r"passed (?P<actual>\d+) input tokens and requested (?P<more>\d+) output tokens\D+(?P<limit>\d+) tokens",  # vLLM
        r"limit of (?P<limit>\d+) tokens\D+?(?P<actual>\d+) tokens",  # OpenAI
        r"\(length (?P<actual>\d+)\) is longer than the maximum model length of (?P<limit>\d+)",  # vLLM
        r"\((?P<actual>\d+) tokens\) exceeds the available context size \((?P<limit>\d+)",  # llama.cpp
        r"tokens \((?P<actual>\d+)\) exceed context window of (?P<limit>\d+)",  # llama-cpp-python
        r"token count \((?P<actual>\d+)\) exceeds the maximum number of tokens allowed \((?P<limit>\d+)\)",  # Gemini
        r"contains (?P<actual>\d+) tokens.+?(?P<limit>\d+) maximum context",  # Mistral
    )
)
_WORDS = re.compile(
    r"prompt is too long|prompt too long|input is too long|too many input tokens|maximum context length"
    r"|exceeds? (?:the )?(?:available |maximum |model'?s? )?context|context (?:length|window) exceeded"
    r"|longer than the maximum model|request_too_large|request exceeds the maximum size",
    re.IGNORECASE,
)
# What the transport and the SDKs call an answer they can't read; one SDK reports it as a lost connection, with this as its cause.
_UNREADABLE = re.compile(r"Decoding|ResponseValidation")


class Fault(NamedTuple):
    """One failed call, whatever reported it."""

    message: str
    status: int | None = None
    kind: str = ""  # the server's own type or code
    body: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}
    request_id: str | None = None
    unreachable: bool = False  # no answer at all: refused, reset, timed out
    garbled: bool = False  # an answer nobody can read


class TooLong(NamedTuple):
    actual: int | None
    limit: int | None


def is_outside(error: BaseException) -> bool:
    if isinstance(error, OSError | json.JSONDecodeError | UnicodeDecodeError):
        return True
    return isinstance(error, Exception) and any(kind.__module__.split(".", 1)[0] in OUTSIDE for kind in type(error).__mro__)


def read_fault(error: BaseException) -> Fault:
    """The exception of an SDK, of the transport or of the system."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else {}
    inner = inner if isinstance(inner, Mapping) else {"message": str(inner)}
    kind = str(inner.get("type") or "")
    code = inner.get("code")
    if isinstance(code, str) and not code.isdigit() and code not in ("", "null"):
        kind = code  # OpenAI's code says more than its type
    details = inner.get("details")
    if isinstance(details, Mapping) and isinstance(details.get("error_code"), str):
        kind = details["error_code"]
    status = getattr(error, "status_code", None)
    if status is None or status < 400:
        status = (
            code if isinstance(code, int) and code >= 400 else STATUS_OF.get(str(inner.get("type") or ""), STATUS_OF.get(kind))
        )
    response = getattr(error, "response", None)
    message = inner.get("message") or getattr(error, "message", None) or str(error) or type(error).__name__
    cause = error.__cause__ if status is None and not inner else None
    if cause is not None and str(cause):
        message = f"{message} ({cause})"  # "Connection error." alone helps nobody
    garbled = any(isinstance(one, ValueError) or _UNREADABLE.search(type(one).__name__) for one in (error, cause))
    return Fault(
        message=" ".join(str(message).split())[:MESSAGE_CHARS],
        status=status,
        kind=kind.lower(),
        body=inner,
        headers=getattr(response, "headers", None) or {},
        request_id=getattr(error, "request_id", None),
        unreachable=status is None and not inner and not garbled and "Credentials" not in type(error).__name__,
        garbled=garbled,
    )


def too_long(fault: Fault) -> TooLong | None:
    """The two counts where the server names them; None when this is another fault."""
    if fault.status not in TOO_LONG_STATUSES or fault.unreachable:
        return None
    asked, window = fault.body.get("n_prompt_tokens"), fault.body.get("n_ctx")
    if isinstance(asked, int) and isinstance(window, int):
        return TooLong(asked, window)
    for pattern in _NUMBERS:
        if found := pattern.search(fault.message.replace(",", "")):
            parts = found.groupdict()
            return TooLong(int(parts["actual"]) + int(parts.get("more") or 0), int(parts["limit"]))
    if fault.kind in TOO_LONG_KINDS or fault.status == 413 or _WORDS.search(fault.message):
        return TooLong(None, None)
    return None


def typed_error(fault: Fault, *, who: str, now: float) -> ProviderError:
    """The error a caller can act on; `now` (seconds since 1970) is for a retry-after given as a date."""
    error = _pick(fault, who, retry_after(fault.headers, now))
    wish = fault.headers.get("x-should-retry")
    if wish in ("true", "false"):
        error.retryable = wish == "true"
    elif fault.kind in HOPELESS_KINDS:
        error.retryable = False
    elif fault.status == 409:  # a conflict the server resolves by itself
        error.retryable = True
    return error


def _pick(fault: Fault, who: str, after: float | None) -> ProviderError:
    text, status, request_id = fault.message.rstrip(". "), fault.status, fault.request_id
    if fault.unreachable or status == 408:
        return ConnectionLost(
            f"No answer from {who}: {text}; check the network and the base URL.", status=status, retry_after=after
        )
    if fault.garbled:
        return StreamBroken(f"The answer from {who} can't be read: {text}; the request can be sent again.", request_id=request_id)
    if (counts := too_long(fault)) is not None:
        message = f"The prompt is too long for {who}: {text}; compact the conversation."
        return PromptTooLong(message, actual=counts.actual, limit=counts.limit, status=status, request_id=request_id)
    if fault.kind in REFUSAL_KINDS:
        return Refused(f"{who} declined the request: {text}; word it differently.", status=status, request_id=request_id)
    kind, sentence = _by_status(status)
    return kind(f"{who} {sentence.format(text)}", status=status, request_id=request_id, retry_after=after)


def _by_status(status: int | None) -> tuple[type[ProviderError], str]:
    match status:
        case 401 | 402 | 403:
            return AuthFailed, f"refused the key or the account ({status}): {{}}; check the key and what it may use."
        case None:
            return ServerFault, "failed: {}; try again later."
        case 404:
            return BadRequest, "does not know this (404): {}; check the model's name and the base URL."
        case 429:
            return RateLimited, "limits the rate (429): {}; try again later."
        case 503 | 529:
            return Overloaded, f"is overloaded ({status}): {{}}; try again later."
        case _ if status >= 500:
            return ServerFault, f"failed ({status}): {{}}; try again later."
        case _:
            return BadRequest, f"rejected the request ({status}): {{}}."


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds the server asks us to wait: milliseconds, seconds or a date; never negative."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * scale)
        except (KeyError, ValueError):
            continue
    import email.utils  # dear to load, and only for servers that name a time of day

    moment = email.utils.parsedate_tz(headers.get("retry-after") or "")
    return max(0.0, email.utils.mktime_tz(moment) - now) if moment else None
