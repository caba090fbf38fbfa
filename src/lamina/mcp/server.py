"""The server itself: a JSON-RPC message of the Model Context Protocol in, its reply out. stdio.py and http.py carry the messages.

A client waits for the first answers, so nothing of memory is loaded before the first call. Any message gets a reply or none, never an
exception: an error of ours becomes the protocol's error with its sentence. Results are text without structured content, because clients
show a model only the structured half if there is one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import Event, Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from .. import __version__
from ..core.errors import InputError, LaminaError
from ..core.prompt_files import prompt_sections
from .tool_table import TOOLS

if TYPE_CHECKING:
    from .project import ServedProject

# Newest last. A client that asks for another version is offered the newest of these, as the protocol demands.
VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
# Methods that open memory or sessions: a transport runs them beside the others.
SLOW = frozenset({"tools/call", "resources/list", "resources/read", "prompts/get"})

MEMORY_URI = "lamina://memory/"
SESSION_URI = "lamina://session/"
# Resources listed of each kind; a search finds the rest.
MOST_LISTED = 100
# The cursor of the second page of resources. Clients list resources at their start, and sessions take longer to list than memories.
# Claude Code asks for every page then, so its plugin has the first alone.
SESSIONS_PAGE = "sessions"
# Characters of a wrong name that an error shows.
_SHOWN = 100

Wire = dict[str, Any]


class RejectedMessage(Exception):
    """A request that is answered with an error of the protocol."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class ConnectedClient:
    """A client of the server. `name` is what it calls itself, and is written to the journal with its changes."""

    def __init__(self, name: str = "") -> None:
        self.name = name


class LaminaServer:
    """The tools, resources and prompts of one project. `open_project` is called once, at the first request that needs the project."""

    def __init__(self, open_project: Callable[[], ServedProject], *, answers_hooks: bool = False) -> None:
        self._open_project = open_project
        self._answers_hooks = answers_hooks
        self._opened: ServedProject | None = None
        self._lock = Lock()

    @property
    def project(self) -> ServedProject:
        with self._lock:
            if self._opened is None:
                self._opened = self._open_project()
            return self._opened

    def answer(self, message: object, client: ConnectedClient, abort: Event | None = None) -> Wire | None:
        """Return the reply to a message. Notifications and replies get None. `abort` is set if the client cancels the request."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return error_reply(None, INVALID_REQUEST, "A message must be one JSON-RPC 2.0 object.")
        method, request = message.get("method"), message.get("id")
        if "id" not in message or (method is None and ("result" in message or "error" in message)):
            return None
        if isinstance(request, bool) or not isinstance(request, str | int) or not isinstance(method, str):
            return error_reply(None, INVALID_REQUEST, "A request needs a method, and an id that is a string or an integer.")
        try:
            result = self._result(method, message.get("params"), client, abort or Event())
        except RejectedMessage as refusal:
            return error_reply(request, refusal.code, str(refusal))
        except LaminaError as error:
            return error_reply(request, INVALID_PARAMS, str(error))
        except Exception as error:  # noqa: BLE001  # the server goes on, whatever a request does to it
            return error_reply(request, INTERNAL_ERROR, f"{method[:_SHOWN]} failed: {type(error).__name__}: {str(error)[:500]}")
        return {"jsonrpc": "2.0", "id": request, "result": result}

    def _result(self, method: str, params: object, client: ConnectedClient, abort: Event) -> Wire:
        given = {} if params is None else params
        if not isinstance(given, dict):
            raise RejectedMessage(INVALID_PARAMS, "params must be an object.")
        match method:
            case "initialize":
                return self._initialize(given, client)
            case "ping":
                return {}
            case "tools/list":
                return self._list_tools(given)
            case "tools/call":
                return self._call_tool(given, client, abort)
            case "resources/list":
                return self._list_resources(given)
            case "resources/templates/list":
                return _only_page(given, resourceTemplates=_templates())
            case "resources/read":
                uri = _text(given, "uri")
                return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": self._resource(uri)}]}
            case "prompts/list":
                return _only_page(given, prompts=_prompts())
            case "prompts/get":
                text = self._prompt(_text(given, "name"), given.get("arguments") or {})
                return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
            case _:
                raise RejectedMessage(UNKNOWN_METHOD, f"Unknown method {method[:_SHOWN]!r}.")

    def _initialize(self, given: Wire, client: ConnectedClient) -> Wire:
        told = given.get("clientInfo")
        client.name = str(told.get("name", "")) if isinstance(told, dict) else ""
        asked = given.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[-1],
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "lamina", "version": __version__},
            "instructions": prompt_sections(__file__, "tools")["instructions"],
        }

    # Tools

    def _list_tools(self, given: Wire) -> Wire:
        if self._answers_hooks:
            from .hook_tools import AT_START, load_ahead

            load_ahead(AT_START)
        tools = [
            {
                "name": entry.name,
                "description": entry.description,
                "inputSchema": entry.schema,
                "annotations": {"readOnlyHint": entry.read_only, "destructiveHint": False, "openWorldHint": False},
            }
            for entry in TOOLS.values()
        ]
        return _only_page(given, tools=tools)

    def _call_tool(self, given: Wire, client: ConnectedClient, abort: Event) -> Wire:
        name, arguments = _text(given, "name"), given.get("arguments")
        arguments = {} if arguments is None else arguments
        if not isinstance(arguments, dict):
            raise RejectedMessage(INVALID_PARAMS, "arguments must be an object.")
        if self._answers_hooks and name.startswith("hook_"):
            from .hook_tools import HOOK_TOOLS, answer_hook

            if name in HOOK_TOOLS:
                return _tool_result(answer_hook(self.project, name, arguments), is_error=False)
        if name not in TOOLS:
            return _tool_result(f"Unknown tool {name[:_SHOWN]!r}.", is_error=True)
        return self._run_tool(name, arguments, client, abort)

    def _run_tool(self, name: str, arguments: Wire, client: ConnectedClient, abort: Event) -> Wire:
        from ..tools.tool import Builtin, Context, ToolOutput, failure

        entry = TOOLS[name]

        def act(checked: Wire, _: Context) -> ToolOutput:
            try:
                return ToolOutput(self._functions(name, client)[name](checked))
            except LaminaError as error:
                return failure(f"{name}: {error}")

        tool = Builtin(name=name, description=entry.description, schema=entry.schema, read_only=entry.read_only, act=act)
        output = tool.run(arguments, Context(cwd=self.project.cwd, abort=abort))
        return _tool_result(str(output.content), is_error=output.is_error)

    def _functions(self, name: str, client: ConnectedClient) -> dict[str, Callable[[Wire], str]]:
        if name.startswith("memory_"):
            from .memory_tools import MemoryTools

            return MemoryTools(self.project, client.name).functions()
        from .session_tools import SessionTools

        return SessionTools(self.project).functions()

    # Resources

    def _list_resources(self, given: Wire) -> Wire:
        cursor = given.get("cursor")
        if cursor == SESSIONS_PAGE:
            sessions = self.project.list_sessions()[:MOST_LISTED]
            return {"resources": [_resource(SESSION_URI, session.id, session.title or session.id) for session in sessions]}
        if cursor is not None:
            raise _unknown_cursor(cursor)
        headers = self.project.list_memories()[:MOST_LISTED]
        memories = [_resource(MEMORY_URI, header.name, header.name, description=header.description) for header in headers]
        return {"resources": memories} if self._answers_hooks else {"resources": memories, "nextCursor": SESSIONS_PAGE}

    def _resource(self, uri: str) -> str:
        from .memory_tools import MemoryTools
        from .session_tools import SessionTools

        if uri.startswith(MEMORY_URI):
            return MemoryTools(self.project, "").read({"name": unquote(uri.removeprefix(MEMORY_URI))})
        if uri.startswith(SESSION_URI):
            return SessionTools(self.project).read({"session_id": unquote(uri.removeprefix(SESSION_URI))})
        raise InputError("uri", f"unknown resource {uri[:200]!r}", f"use {MEMORY_URI}NAME or {SESSION_URI}ID")

    # Prompts

    def _prompt(self, name: str, arguments: object) -> str:
        from .memory_tools import MemoryTools

        texts = prompt_sections(__file__, "client_prompts")
        if name == "wrap_up":
            return texts["wrap_up"]
        if name != "recall":
            raise InputError("name", f"unknown prompt {name[:_SHOWN]!r}", "use recall or wrap_up")
        subject = arguments.get("subject") if isinstance(arguments, dict) else None
        if not isinstance(subject, str) or not subject.strip():
            raise InputError("subject", "is missing", "say what to look for")
        subject = subject.strip()[:1_000]
        found = MemoryTools(self.project, "").search({"query": subject})
        return texts["recall"].format(subject=subject) + "\n\n" + found


def encode(reply: Wire) -> bytes:
    """Return a reply as one line of JSON. It is ASCII, so that half of a surrogate pair in a text breaks nothing."""
    return json.dumps(reply, separators=(",", ":")).encode()


def error_reply(request: str | int | None, code: int, sentence: str) -> Wire:
    return {"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": sentence}}


def _text(given: Wire, name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise RejectedMessage(INVALID_PARAMS, f"{name} must be a string.")
    return value


def _only_page(given: Wire, **listed: list[Wire]) -> Wire:
    """Return a list that fits on one page."""
    if given.get("cursor") is not None:
        raise _unknown_cursor(given["cursor"])
    return dict(listed)


def _unknown_cursor(cursor: object) -> RejectedMessage:
    return RejectedMessage(INVALID_PARAMS, f"Unknown cursor {str(cursor)[:_SHOWN]!r}. Start again without one.")


def _tool_result(text: str, *, is_error: bool) -> Wire:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _resource(top: str, name: str, shown: str, **more: str) -> Wire:
    return {"uri": f"{top}{quote(name, safe='')}", "name": shown, **more, "mimeType": "text/plain"}


def _templates() -> list[Wire]:
    return [
        {"uriTemplate": MEMORY_URI + "{name}", "name": "A memory", "mimeType": "text/plain"},
        {"uriTemplate": SESSION_URI + "{session_id}", "name": "A past session", "mimeType": "text/plain"},
    ]


def _prompts() -> list[Wire]:
    about = {"name": "subject", "description": "What to look for", "required": True}
    return [
        {"name": "recall", "description": "What do you remember about …?", "arguments": [about]},
        {"name": "wrap_up", "description": "Save what matters from this session."},
    ]
