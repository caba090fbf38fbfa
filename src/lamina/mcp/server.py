"""The server itself: tools, resources and prompts of one project on the official SDK, over stdio or as an ASGI application.

Importing the SDK takes most of a second, and a client waits for the start, so nothing else is loaded before the first call: sessions
and the ranker come with their tools. Calls run in threads; each opens what it needs and closes it. Results are text without structured
content, because clients show a model only the structured half if there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import quote, unquote

import anyio
import mcp_types as types
from anyio import to_thread
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from .. import __version__
from ..core.errors import InputError, LaminaError
from ..core.prompt_files import prompt_sections
from ..tools.tool import Builtin, Context
from .project import HookAgent, ServedProject

MEMORY_URI = "lamina://memory/"
SESSION_URI = "lamina://session/"
# Resources listed of each kind; a search finds the rest.
MOST_LISTED = 100


class LaminaServer:
    """The tools and resources of one server."""

    def __init__(self, project: ServedProject) -> None:
        self._project = project

    def build(self) -> Server[Any]:
        return Server(
            "lamina",
            version=__version__,
            instructions=prompt_sections(__file__, "tools")["instructions"],
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    def tools(self, client: str = "") -> tuple[Builtin, ...]:
        """Return the tools of a client. Without memory, those that need it are left out."""
        from .memory_tools import MemoryTools
        from .session_tools import SessionTools

        return (*MemoryTools(self._project, client).tools(), *SessionTools(self._project).tools())

    async def _list_tools(self, ctx: ServerRequestContext[Any], _: object) -> types.ListToolsResult:
        if self._project.agent is not None:
            from .hook_tools import AT_START, load_ahead

            load_ahead(AT_START)
        return types.ListToolsResult(tools=[_defined(tool) for tool in self.tools()])

    async def _call_tool(self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        if self._project.agent is not None and params.name.startswith("hook_"):
            from .hook_tools import HOOK_TOOLS, answer_hook

            if params.name in HOOK_TOOLS:
                text = await to_thread.run_sync(answer_hook, self._project, params.name, params.arguments or {})
                return _result(text, is_error=False)
        tool = next((tool for tool in self.tools(_client(ctx)) if tool.name == params.name), None)
        if tool is None:
            return _result(f"Unknown tool {params.name[:100]!r}.", is_error=True)
        context = Context(cwd=self._project.cwd, abort=Event())
        output = await to_thread.run_sync(tool.run, params.arguments or {}, context)
        return _result(str(output.content), is_error=output.is_error)

    async def _list_resources(self, ctx: ServerRequestContext[Any], _: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=await _threaded(self._resources))

    def _resources(self) -> list[types.Resource]:
        from .session_tools import listed_sessions

        with self._project.open_memory() as memory:
            memories = [
                types.Resource(
                    uri=f"{MEMORY_URI}{quote(header.name, safe='')}",
                    name=header.name,
                    description=header.description,
                    mime_type="text/plain",
                )
                for header in memory.headers()[:MOST_LISTED]
            ]
        sessions = [
            types.Resource(
                uri=f"{SESSION_URI}{quote(session.id, safe='')}", name=session.title or session.id, mime_type="text/plain"
            )
            for session in listed_sessions(self._project)[:MOST_LISTED]
        ]
        return [*memories, *sessions]

    async def _list_templates(self, ctx: ServerRequestContext[Any], _: object) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(uri_template=MEMORY_URI + "{name}", name="A memory", mime_type="text/plain"),
                types.ResourceTemplate(uri_template=SESSION_URI + "{session_id}", name="A past session", mime_type="text/plain"),
            ]
        )

    async def _read_resource(
        self, ctx: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        text = await _threaded(self._resource, uri)
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)])

    def _resource(self, uri: str) -> str:
        from .memory_tools import MemoryTools
        from .session_tools import SessionTools

        if uri.startswith(MEMORY_URI):
            return MemoryTools(self._project, "").read({"name": unquote(uri.removeprefix(MEMORY_URI))})
        if uri.startswith(SESSION_URI):
            return SessionTools(self._project).read({"session_id": unquote(uri.removeprefix(SESSION_URI))})
        raise InputError("uri", f"unknown resource {uri[:200]!r}", f"use {MEMORY_URI}NAME or {SESSION_URI}ID")

    async def _list_prompts(self, ctx: ServerRequestContext[Any], _: object) -> types.ListPromptsResult:
        about = types.PromptArgument(name="subject", description="What to look for", required=True)
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(name="recall", description="What do you remember about …?", arguments=[about]),
                types.Prompt(name="wrap_up", description="Save what matters from this session."),
            ]
        )

    async def _get_prompt(self, ctx: ServerRequestContext[Any], params: types.GetPromptRequestParams) -> types.GetPromptResult:
        text = await _threaded(self._prompt, params.name, params.arguments or {})
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(messages=[message])

    def _prompt(self, name: str, given: dict[str, str]) -> str:
        from .memory_tools import MemoryTools

        texts = prompt_sections(__file__, "client_prompts")
        if name == "wrap_up":
            return texts["wrap_up"]
        if name != "recall":
            raise InputError("name", f"unknown prompt {name[:100]!r}", "use recall or wrap_up")
        subject = given.get("subject", "").strip()[:1_000]
        if not subject:
            raise InputError("subject", "is missing", "say what to look for")
        found = MemoryTools(self._project, "").search({"query": subject})
        return texts["recall"].format(subject=subject) + "\n\n" + found


def serve_stdio(cwd: Path, *, agent: HookAgent | None = None) -> None:
    """Serve the project of `cwd` on standard input and output until the client closes them. `agent` may call the tools of hooks."""

    async def run() -> None:
        server = LaminaServer(ServedProject(cwd, agent=agent)).build()
        async with stdio_server() as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())

    anyio.run(run)


def _client(ctx: ServerRequestContext[Any]) -> str:
    given = ctx.session.client_params
    return given.client_info.name if given is not None else ""


def _defined(tool: Builtin) -> types.Tool:
    hints = types.ToolAnnotations(read_only_hint=tool.read_only, destructive_hint=False, open_world_hint=False)
    return types.Tool(name=tool.name, description=tool.description, input_schema=tool.schema, annotations=hints)


def _result(text: str, *, is_error: bool) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)


async def _threaded(run: Callable[..., Any], *given: object) -> Any:
    """Run in a thread; an error of ours becomes the protocol's error with its sentence."""
    try:
        return await to_thread.run_sync(run, *given)
    except LaminaError as error:
        raise MCPError(types.INVALID_PARAMS, str(error)) from None
