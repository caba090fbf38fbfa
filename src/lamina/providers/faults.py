"""Turns the failure of a call into one of Lamina's errors.

The exception of an SDK is first read into a `Fault` (a plain value), then a pure function chooses the error. So the same rules apply
to both SDKs, both transports and error events in the middle of a stream. If the server tells whether to retry (`x-should-retry`),
that takes precedence over its status.
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
from ..language.text import Text

# An HTML error page must not fill the terminal.
MESSAGE_CHARS = 500

# Exceptions of these packages and of the operating system are failures of the call; any other is a bug and is not caught.
OUTSIDE = frozenset({"anthropic", "openai", "httpx", "httpx2", "httpcore", "httpcore2"})

# An error event has no status, because the stream started with 200.
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
# Limits that do not reset by waiting, so a retry is pointless.
HOPELESS_KINDS = frozenset({"insufficient_quota", "enforced_spend_limit_reached"})

# The messages of the servers, as quoted in bug reports. `actual` plus `more` is the requested size.
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
# Exception names of the transport and the SDKs for unreadable responses. One SDK reports a lost connection with this as its cause.
_UNREADABLE = re.compile(r"Decoding|ResponseValidation")


class Fault(NamedTuple):
    """One failed call, independent of its source."""

    message: str
    status: int | None = None
    kind: str = ""  # error type or code of the server
    body: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}
    request_id: str | None = None
    unreachable: bool = False  # no response at all: refused, reset, timed out
    garbled: bool = False  # the response cannot be parsed


class TooLong(NamedTuple):
    actual: int | None
    limit: int | None


def is_outside(error: BaseException) -> bool:
    if isinstance(error, OSError | json.JSONDecodeError | UnicodeDecodeError):
        return True
    return isinstance(error, Exception) and any(kind.__module__.split(".", 1)[0] in OUTSIDE for kind in type(error).__mro__)


def read_fault(error: BaseException) -> Fault:
    """Read the exception of an SDK, of the transport or of the operating system."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else {}
    inner = inner if isinstance(inner, Mapping) else {"message": str(inner)}
    kind = str(inner.get("type") or "")
    code = inner.get("code")
    if isinstance(code, str) and not code.isdigit() and code not in ("", "null"):
        kind = code  # OpenAI's code is more specific than its type
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
        message = f"{message} ({cause})"  # "Connection error." alone does not help
    garbled = any(isinstance(fault, ValueError) or _UNREADABLE.search(type(fault).__name__) for fault in (error, cause))
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
    """Return the token counts of a prompt that is too long, as far as the server reports them; None for any other fault."""
    if fault.status not in TOO_LONG_STATUSES or fault.unreachable:
        return None
    tokens, window = fault.body.get("n_prompt_tokens"), fault.body.get("n_ctx")
    if isinstance(tokens, int) and isinstance(window, int):
        return TooLong(tokens, window)
    for pattern in _NUMBERS:
        if match := pattern.search(fault.message.replace(",", "")):
            parts = match.groupdict()
            return TooLong(int(parts["actual"]) + int(parts.get("more") or 0), int(parts["limit"]))
    if fault.kind in TOO_LONG_KINDS or fault.status == 413 or _WORDS.search(fault.message):
        return TooLong(None, None)
    return None


def typed_error(fault: Fault, *, who: str, now: float) -> ProviderError:
    """Return the error for a fault. `now` (seconds since 1970) is used if retry-after is a date."""
    error = _pick(fault, who, retry_after(fault.headers, now))
    wish = fault.headers.get("x-should-retry")
    if wish in ("true", "false"):
        error.retryable = wish == "true"
    elif fault.kind in HOPELESS_KINDS:
        error.retryable = False
    elif fault.status == 409:  # a conflict that the server resolves by itself
        error.retryable = True
    return error


def _pick(fault: Fault, who: str, after: float | None) -> ProviderError:
    text, status, request_id = fault.message.rstrip(". "), fault.status, fault.request_id
    if fault.unreachable or status == 408:
        return ConnectionLost(
            Text("No response from {who}: {text}. Check the network and the base URL.", who=who, text=text),
            status=status,
            retry_after=after,
        )
    if fault.garbled:
        return StreamBroken(
            Text("The response from {who} is not readable: {text}. You can retry the request.", who=who, text=text),
            request_id=request_id,
        )
    if (counts := too_long(fault)) is not None:
        message = Text("The prompt is too long for {who}: {text}. Compact the conversation.", who=who, text=text)
        return PromptTooLong(message, actual=counts.actual, limit=counts.limit, status=status, request_id=request_id)
    if fault.kind in REFUSAL_KINDS:
        return Refused(
            Text("{who} declined the request: {text}. Rephrase it.", who=who, text=text), status=status, request_id=request_id
        )
    kind, sentence = _by_status(status)
    text = Text(sentence, who=who, status=status, text=text)
    return kind(text, status=status, request_id=request_id, retry_after=after)


def _by_status(status: int | None) -> tuple[type[ProviderError], Text]:
    match status:
        case 401 | 402 | 403:
            return AuthFailed, Text(
                "{who} rejected the API key or account ({status}): {text}. Check the key and its permissions."
            )
        case None:
            return ServerFault, Text("{who} failed: {text}. Try again later.")
        case 404:
            return BadRequest, Text("{who} returned not found (404): {text}. Check the model name and the base URL.")
        case 429:
            return RateLimited, Text("{who} rate-limited the request (429): {text}. Try again later.")
        case 503 | 529:
            return Overloaded, Text("{who} is overloaded ({status}): {text}. Try again later.")
        case _ if status >= 500:
            return ServerFault, Text("{who} failed ({status}): {text}. Try again later.")
        case _:
            return BadRequest, Text("{who} rejected the request ({status}): {text}.")


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the delay in seconds that the server asks for, given in milliseconds, seconds or as a date; never negative."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * scale)
        except (KeyError, ValueError):
            continue
    import email.utils  # slow to import, and only needed for servers that send a date

    moment = email.utils.parsedate_tz(headers.get("retry-after") or "")
    return max(0.0, email.utils.mktime_tz(moment) - now) if moment else None
