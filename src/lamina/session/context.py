"""What a session brings to its conversation: memory section, first reminder, own tools, and access to memory for the layers.

All of it is added once, when the first message arrives, and before that message: so an agent loop on top can bring its own reminders
first, and a session that is opened and closed again leaves no record. Invariant: nothing is added twice. A resumed session finds its
prompt in the snapshot and its reminder in view.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from msgspec.structs import replace

from ..conversation.isolate import isolate
from ..conversation.state import Conversation
from ..core.blocks import ToolResult, ToolUse, Wire, text
from ..core.errors import DiskError
from ..core.inputs import Given
from ..core.reach import FILE_TOOLS, path_in, tool_names
from ..disk.settings_files import lamina_home
from ..language.text import message
from ..layers.l6_dream.trigger import recover_dreams
from ..tools.read_state import ReadRange, ReadState

if TYPE_CHECKING:
    from ..fork.host import Host
    from ..prompt.instruction_files import Approved
    from ..tools.hooks.protocol import HookOutcome
    from ..tools.tool import ExpandedPage, ExpandNode, SearchPast, Tool
    from .base import SessionBase
    from .memory_binding import MemoryBinding
    from .reminders import Reminders


class SessionContext:
    """The context of one session, and the arguments that it depends on. `begin` adds it; `bring` adds what is new before a request."""

    begun = False
    reminders: Reminders | None = None
    own_tools: tuple[Tool, ...] = ()

    def __init__(
        self,
        session: SessionBase,
        given: Given,
        *,
        resumed: bool,
        interactive: bool,
        offer_tools: bool,
        read_tool: str | None,
        selection: str | None,
    ) -> None:
        self._session = session
        self._c = session._c
        self._resumed = resumed
        self._interactive = interactive
        self._offers = offer_tools
        self._read_tool = read_tool or ""
        self.selection = selection
        # What a resumed session was sent before stays as it was.
        new = self._c.log.view.snapshot is None
        self._new_system, self._new_tools = new or given.system is not None, new or given.tools is not None
        self._reads = ReadState()
        self._nested: list[Path] = []  # files that were read, and may bring instruction files in

    @cached_property
    def memory(self) -> MemoryBinding:
        from .memory_binding import MemoryBinding

        return MemoryBinding(self._session)

    def use(self, memory: MemoryBinding, reminders: Reminders) -> None:
        """Use the memory and the reminders of an agent loop."""
        self.memory, self.reminders = memory, reminders

    def lend(self, host: Host) -> None:
        """Give the layers what a loop on top offers. Before the first message, `begin` fills in what it lacks."""
        self._c.lend(host)
        if self.begun:
            self._complete_host()

    # The beginning

    def begin(self, *, hook: Callable[..., HookOutcome] | None = None, approved: Approved | None = None) -> None:
        """Add the prompt's own parts and the first reminder, once. `hook` runs the user's hooks for an agent loop."""
        if self.begun:
            return
        self.begun = True
        c, settings = self._c, self._c.settings
        self._complete_host()
        self._extend_prompt()
        if hook is None and not (settings.instructions or settings.memory or self.selection):
            return
        recover_dreams(c)
        if self.reminders is None:
            from .reminders import Reminders

            self.reminders = Reminders(self._session, self.memory, os.environ, self.selection)
        if hook is None and approved is None:
            approved = isolate(c, "instructions", lambda _: self._approvals(), None)
        reminders = self.reminders
        isolate(c, "instructions", lambda _: reminders.start(resumed=self._resumed, approved=approved, hook=hook))

    def _extend_prompt(self) -> None:
        """Add the memory section and the session's own tools to a prompt that was not sent yet."""
        prompt = self._c.prompt
        tools, section = prompt.tools, ""
        if self._offers:
            tools = isolate(self._c, "memory", lambda _: self._with_own_tools(prompt.tools), prompt.tools)
        if self._new_system and self._c.settings.memory:
            section = isolate(self._c, "memory", lambda _: self._memory_section(tools), "")
        if section.strip() or tools is not prompt.tools:
            system = [*prompt.system, text(section).wire] if section.strip() else prompt.system
            self._c.replace_prompt(system, tools)

    def _memory_section(self, tools: list[Wire]) -> str:
        guessed = FILE_TOOLS - self._c.prompt.local  # a tool of the host's may have such a name and read no local file
        names = [name for name in tool_names(tools) if name not in guessed]
        return self.memory.section(names, interactive=self._interactive)

    def _with_own_tools(self, tools: list[Wire]) -> list[Wire]:
        from ..tools.tool import definition
        from .own_tools import own_tools

        self.own_tools = own_tools(self.memory)
        ours = [definition(tool) for tool in self.own_tools]
        if not self._new_tools or all(row in tools for row in ours):
            return tools
        return [*tools, *ours]

    def _complete_host(self) -> None:
        """Fill in what the loop did not lend. A subagent's conversation has no memory but its own."""
        host = self._c.host
        if host.subagent:
            return
        memory = None
        if self._c.settings.memory:
            memory = isolate(self._c, "memory", lambda _: self.memory.access(interactive=self._interactive), None)
        self._c.lend(
            replace(
                host,
                memory=host.memory or memory,
                reads=host.reads or self._reads,
                reminder=host.reminder or (lambda: self.reminders.first_reminder() if self.reminders is not None else None),
                read_tool=host.read_tool or self._read_tool,
            )
        )

    def _approvals(self) -> Approved | None:
        """Return the user's answers about included files outside the project, as the command line keeps them."""
        c = self._c
        if c.home is None or not c.settings.instructions:
            return None
        from ..disk.home.approvals import load_approvals
        from ..disk.settings_files import user_home
        from ..prompt.instructions import project_of

        try:
            return load_approvals(c.home, project_of(Path(os.path.realpath(c.cwd)), user_home(os.environ))).answer
        except DiskError as error:
            c.notify(message(error))
            return None

    # Before each request

    def bring(self) -> None:
        """Add what the model needs besides messages: a new date, and instruction files next to files that were read."""
        if not self.begun and self._c.log.view.items:  # without a message there is nothing to send
            self.begin()
        if (reminders := self.reminders) is not None:
            isolate(self._c, "instructions", lambda _: self._bring_later_context(reminders))

    def _bring_later_context(self, reminders: Reminders) -> None:
        if self._read_tool:
            self._note_results()
        if self._nested:
            nested, self._nested = self._nested, []
            reminders.add_nested(nested)
        reminders.new_day()

    def _note_results(self) -> None:
        """Note the files that the host's read tool showed since the last answer."""
        answered_calls: set[str] = set()
        answered = False  # its records were reached: one for each block
        for item in reversed(self._c.log.view.items):
            if item.role == "assistant":
                answered = True
                for call in (block for block in item.blocks if isinstance(block, ToolUse)):
                    path = path_in(call.input) if call.id in answered_calls and call.name == self._read_tool else None
                    if path is not None:
                        self.note_read(path, call.input)
            elif answered:
                return
            elif not item.synthetic:
                answered_calls |= {
                    block.tool_use_id for block in item.blocks if isinstance(block, ToolResult) and not block.is_error
                }

    def note_read(self, path: str, arguments: Any) -> None:
        """Note a file that the model has seen, or the part of it that the arguments of a call name."""
        full = self._c.cwd / os.path.expanduser(path)
        part = {name: arguments.get(name) for name in ("offset", "limit") if isinstance(arguments.get(name), int)}
        self._reads.note(full, ReadRange(b"", max(0, part.get("offset", 0)), part.get("limit")))
        self._nested.append(full)


class Services(TypedDict):
    expand: ExpandNode
    compact: Callable[[str], str]
    past: SearchPast


def services(c: Conversation) -> Services:
    """Return the functions of a conversation that tools may call. The turn of a tool holds the session, so none takes its lock."""

    def expand(node: str, number: int | None) -> ExpandedPage:
        from .expand import open_page

        return open_page(c, node, number)

    def compact(instructions: str) -> str:
        from ..layers.l4_compact.step import answer_request

        return answer_request(c, instructions)

    def past(query: str, count: int, exact: bool, stopped: Callable[[], bool]) -> str:
        from ..history.for_model import search_for_model

        # A session with another home may belong to another tenant, so it sees that home alone and not the user's agents.
        own = {"LAMINA_HOME": str(c.home)} if c.home is not None else {}
        environ = os.environ if c.home is not None and lamina_home(os.environ) == c.home else own
        skip = (str(c.store.path),) if c.store.path is not None else ()
        return search_for_model(
            query, cwd=c.cwd, count=count, exact=exact, settings=c.settings, environ=environ, skip=skip, stopped=stopped
        )

    return {"expand": expand, "compact": compact, "past": past}
