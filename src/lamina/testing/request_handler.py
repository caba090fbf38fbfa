"""Handles one request: authentication, validation, cache lookup, and the answer from the script."""

from __future__ import annotations

from typing import Any

import msgspec

from ..core.blocks import Wire as Json
from ..core.cache import FORK_HEADER, CacheUse
from .api_json import Problem, chat_error, chat_usage, completion, message, messages_error
from .chat_rules import too_long as chat_too_long
from .prefix_rule import cache_miss_reason
from .received_request import Received, Wire, breaks_in, once_in, session_of
from .request_validation import Judged, judge_chat, judge_messages, too_long
from .script import Answer, Status
from .server_state import ServerState
from .step_output import fill_ids, make_out, plain
from .thinking_signatures import sign_blocks
from .transport import Incoming, Outgoing

_ROUTES: dict[tuple[str, str], Wire] = {
    ("POST", "/v1/messages"): "messages",
    ("POST", "/v1/messages/count_tokens"): "count",
    ("POST", "/v1/chat/completions"): "chat",
}


def respond(state: ServerState, incoming: Incoming) -> Outgoing:
    number = state.number()
    chat = incoming.path.endswith("/chat/completions")
    problem = _access_problem(state, incoming)
    if problem is None and (incoming.method, incoming.path) == ("GET", "/v1/models"):
        return plain(200, _models(state.limits.models), number)
    wire = _ROUTES.get((incoming.method, incoming.path))
    if problem is None and wire is None:
        problem = Problem(404, f"Not found: {incoming.method} {incoming.path}")
    body: Any = None
    if problem is None:
        try:
            body = msgspec.json.decode(incoming.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            problem = Problem(400, f"The request body is not valid JSON: {error}")
    if problem is not None or wire is None:
        return _error(problem or Problem(404, ""), number, chat)
    return _answer(state, incoming, body, number, wire)


def _access_problem(state: ServerState, incoming: Incoming) -> Problem | None:
    """Check the API key and the size of the request."""
    bearer = incoming.headers.get("authorization", "").removeprefix("Bearer ").strip()
    given = incoming.headers.get("x-api-key") or bearer
    if not given:
        return Problem(401, "Missing API key: send the header x-api-key or authorization")
    if state.key is not None and given != state.key:
        return Problem(401, "invalid x-api-key" if "x-api-key" in incoming.headers else "Incorrect API key provided")
    if incoming.too_large:
        return Problem(413, f"Request exceeds the maximum size of {state.body_limit} bytes")
    return None


def _answer(state: ServerState, incoming: Incoming, body: Any, number: int, wire: Wire) -> Outgoing:
    judged = _judge(state, incoming, body, wire)
    fields: Json = body if isinstance(body, dict) else {}
    session, fork = session_of(incoming.headers, fields, judged.sent), incoming.headers.get(FORK_HEADER, "")
    now = state.clock()
    use = state.look(judged, wire, now)
    received = Received(
        index=number,
        at=now,
        wire=wire,
        headers=incoming.headers,
        body=fields,
        session=session,
        fork=fork,
        breaks=() if wire == "count" else breaks_in(incoming.headers) + state.announcements.take(session, fork),
        once=once_in(incoming.headers),
        prompt=judged.sent,
        use=use,
    )
    problem = judged.problem or _full(state, fields, use, wire)
    if problem is not None:
        state.record(msgspec.structs.replace(received, status=problem.status, error=problem.message))
        return _error(problem, number, wire == "chat")
    if wire == "count":
        state.record(msgspec.structs.replace(received, status=200))
        return plain(200, _counted(judged), number)
    return _play(state, received, judged, number)


def _judge(state: ServerState, incoming: Incoming, body: Any, wire: Wire) -> Judged:
    if wire == "chat":
        return judge_chat(body, state.limits, state.chat_cache.reader)
    betas = frozenset(name.strip() for name in incoming.headers.get("anthropic-beta", "").split(","))
    asked = {"max_tokens": 1, **body} if wire == "count" and isinstance(body, dict) else body
    return judge_messages(asked, betas, state.limits, state.cache.reader)


def _full(state: ServerState, body: Json, use: CacheUse | None, wire: Wire) -> Problem | None:
    if use is None:
        return None
    if wire == "chat":
        return chat_too_long(use.total, state.limits.window) if use.total > state.limits.window else None
    return too_long(body, use.total, state.limits)


def _play(state: ServerState, received: Received, judged: Judged, number: int) -> Outgoing:
    """Choose and record the answer, wait if the script says so, and only then update the cache."""
    planned = state.script.take(received)
    step = planned.step
    answer = None if isinstance(step, Status) else step if isinstance(step, Answer) else step.answer
    whole = None if answer is None else _whole(state, received, judged, answer, number)
    out = make_out(step, whole, received, number)
    state.record(msgspec.structs.replace(received, status=out.status, answer=whole))
    state.wait(planned.delay)
    if out.begins:
        state.commit(judged, received)
    return out


def _whole(state: ServerState, received: Received, judged: Judged, answer: Answer, number: int) -> Json:
    blocks = fill_ids(answer.blocks, number, "call" if received.wire == "chat" else "toolu")
    tokens = answer.output_tokens if answer.output_tokens is not None else sum(state.count(block) for block in blocks)
    reason = answer.stop_reason
    if reason == "auto":
        reason = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    model = str(received.body["model"])
    assert received.use is not None
    assert judged.sent is not None
    if received.wire == "chat":
        return completion(
            name=f"chatcmpl-{number:08d}",
            model=model,
            created=int(received.at),
            blocks=blocks,
            stop_reason=reason,
            usage=chat_usage(received.use, tokens),
        )
    if received.body["max_tokens"] == 0:
        # max_tokens=0 is the documented way to warm the cache, and the answer is empty.
        blocks, tokens, reason = (), 0, "max_tokens"
    name = f"msg_{number:08d}"
    return message(
        name=name,
        model=model,
        blocks=sign_blocks(blocks, judged.sent),
        stop={"stop_reason": reason, "stop_sequence": answer.stop_sequence, "stop_details": answer.stop_details},
        usage={**received.use.usage(tokens).wire(), "service_tier": "standard"},
        extra=_extra(state, received, judged, name),
    )


def _extra(state: ServerState, received: Received, judged: Judged, name: str) -> dict[str, Any]:
    """Return the answer's additional fields: edits, diagnostics, confirmed deletions."""
    assert judged.sent is not None
    extra = dict(judged.extra or {})
    if "cache_edits" in received.body and received.use is not None:
        extra["cache_edits"] = {"deleted": list(received.use.deleted), "cleared_input_tokens": received.use.cleared}
    asked = received.body.get("diagnostics")
    if isinstance(asked, dict):
        before = asked.get("previous_message_id")
        reason = None if before is None else cache_miss_reason(state.prompt_of(before), judged.sent)
        state.keep_prompt(name, judged.sent)
        extra["diagnostics"] = None if reason is None else {"cache_miss_reason": reason}
    return extra


def _counted(judged: Judged) -> Json:
    assert judged.seen is not None
    assert judged.sent is not None
    counted: Json = {"input_tokens": judged.seen.tokens}
    if "context_management" in (judged.extra or {}):
        counted["context_management"] = {"original_input_tokens": judged.sent.tokens}
    return counted


def _models(names: frozenset[str] | None) -> Json:
    """Return a list of models that both SDKs can read."""
    known = sorted(names) if names is not None else ["claude-sonnet-5", "gpt-test"]
    rows = [
        {"id": name, "type": "model", "display_name": name, "created_at": "2026-01-01T00:00:00Z", "lifecycle": "active"}
        | {"object": "model", "created": 1_767_225_600, "owned_by": "lamina"}
        for name in known
    ]
    return {"object": "list", "data": rows, "has_more": False, "first_id": known[0], "last_id": known[-1]}


def _error(problem: Problem, number: int, chat: bool) -> Outgoing:
    value = chat_error(problem) if chat else messages_error(problem, f"req_{number:08d}")
    return plain(problem.status, value, number)
