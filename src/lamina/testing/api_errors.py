"""Why a request is refused: a value, in the JSON shape of either API."""

from __future__ import annotations

from typing import NamedTuple

from ..core.blocks import Wire

_MESSAGES_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_CHAT_KINDS = {400: "invalid_request_error", 401: "invalid_request_error", 404: "invalid_request_error", 429: "requests"}
_CHAT_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
_SENTENCES = {
    401: "The API key is not valid.",
    403: "This API key may not do that.",
    404: "There is nothing here.",
    413: "The request exceeds the largest size this server takes.",
    429: "Too many requests: wait and try again.",
    500: "Internal server error",
    503: "The server is overloaded: try again later.",
    529: "Overloaded",
}


class Problem(NamedTuple):
    status: int
    message: str
    kind: str = ""  # the error's type, where it is not the usual one for the status
    code: str | None = None  # Chat Completions only
    param: str | None = None  # Chat Completions only


def bad(message: str) -> Problem:
    return Problem(400, message)


def messages_error(problem: Problem, request_id: str) -> Wire:
    kind = problem.kind or _MESSAGES_KINDS.get(problem.status, "api_error" if problem.status >= 500 else "invalid_request_error")
    message = problem.message or _SENTENCES.get(problem.status, f"Status {problem.status}")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}


def chat_error(problem: Problem) -> Wire:
    kind = problem.kind or _CHAT_KINDS.get(problem.status, "server_error" if problem.status >= 500 else "invalid_request_error")
    message = problem.message or _SENTENCES.get(problem.status, f"Status {problem.status}")
    code = problem.code or _CHAT_CODES.get(problem.status)
    return {"error": {"message": message, "type": kind, "param": problem.param, "code": code}}
