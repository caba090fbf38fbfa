"""Add what a session brings to a conversation: the memory section, the first reminder, its own tools, and access to memory for the
layers that write it.

All of it is added once, when the first message arrives, and before that message: so an agent loop on top can bring its own reminders
first, and a session that is opened and closed again leaves no record. Invariant: nothing is added twice. A resumed session finds its
prompt in the snapshot and its reminder in view.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from ..conversation.isolate import isolate
from ..conversation.state import Conversation
from ..core.blocks import ToolResult, ToolUse, Wire, text
from ..core.errors import DiskError
from ..core.inputs import Given, check_type
from ..core.reach import FILE_TOOLS, path_in, tool_names
from ..core.records import Message
from ..layers.l6_dream.trigger import recover_dreams
from ..tools.read_state import ReadRange, ReadState

if TYPE_CHECKING:
    from ..prompt.instruction_files import Approved
    from ..tools.hooks.answers import HookOutcome
    from ..tools.tool import Tool
    from .base import SessionBase
    from .memory_binding import MemoryBinding
    from .own_tools import Called
    from .reminders import Reminders


class SessionStart:
    """The parts of a session that memory and instruction files need."""

    id: str
    home: Path | None
    cwd: Path
    _c: Conversation
    _open: Callable[[], AbstractContextManager[None]]
    _opened: Callable[..., Any]
    _add_result: Callable[..., Message]

    _begun = False
    _memory: MemoryBinding | None = None
    _reminders: Reminders | None = None
    _own_tools: tuple[Tool, ...] = ()

    def _prepare(
        self,
        given: Given,
        *,
        resumed: bool,
        interactive: bool,
        offer_tools: bool,
        read_tool: str | None,
        selection: str | None,
    ) -> None:
        """Keep the arguments until the first message."""
        self._resumed = resumed
        self._interactive = interactive
        self._offers = offer_tools
        self._read_tool = read_tool
        self._selection = selection
        # What a resumed session was sent before stays as it was.
        new = self._c.log.view.snapshot is None
        self._new_system, self._new_tools = new or given.system is not None, new or given.tools is not None
        self._reads = ReadState()
        self._nested: list[Path] = []  # files that were read, and may bring instruction files in

    @property
    def _binding(self) -> MemoryBinding:
        if self._memory is None:
            from .memory_binding import MemoryBinding

            self._memory = MemoryBinding(cast("SessionBase", self))
        return self._memory

    def _bind(self, memory: MemoryBinding, reminders: Reminders) -> None:
        """Use the memory and the reminders of an agent loop."""
        self._memory, self._reminders = memory, reminders

    # The beginning

    def _begin_bare(self) -> None:
        """Add nothing: the caller plays a conversation that brings its own context."""
        self._begun = True

    def _begin(self, *, hook: Callable[..., HookOutcome] | None = None, approved: Approved | None = None) -> None:
        """Add the prompt's own parts and the first reminder, once. `hook` runs the user's hooks for an agent loop."""
        if self._begun:
            return
        self._begun = True
        self._complete_host()
        self._extend_prompt()
        if hook is None and not (self._c.settings.instructions or self._c.settings.memory or self._selection):
            return
        recover_dreams(self._c)
        if self._reminders is None:
            from .reminders import Reminders

            self._reminders = Reminders(cast("SessionBase", self), self._binding, os.environ, self._selection)
        if hook is None and approved is None:
            approved = isolate(self._c, "instructions", lambda _: self._approvals(), None)
        bring = partial(self._reminders.start, resumed=self._resumed, approved=approved, hook=hook)
        isolate(self._c, "instructions", lambda _: bring())

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
        return self._binding.section(names, interactive=self._interactive)

    def _with_own_tools(self, tools: list[Wire]) -> list[Wire]:
        from ..tools.tool import definition
        from .own_tools import own_tools

        self._own_tools = own_tools(cast("SessionBase", self), self._binding)
        ours = [definition(tool) for tool in self._own_tools]
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
            memory = isolate(self._c, "memory", lambda _: self._binding.access(interactive=self._interactive), None)
        self._c.lend(
            replace(
                host,
                memory=host.memory or memory,
                reads=host.reads or self._reads,
                reminder=host.reminder or self._first_reminder,
                read_tool=host.read_tool or self._read_tool or "",
            )
        )

    def _first_reminder(self) -> str | None:
        return self._reminders.first_reminder() if self._reminders is not None else None

    def _approvals(self) -> Approved | None:
        """Return the user's answers about included files outside the project, as the command line keeps them."""
        if self.home is None or not self._c.settings.instructions:
            return None
        from ..disk.home.approvals import load_approvals
        from ..disk.settings_files import user_home
        from ..prompt.instructions import project_of

        try:
            return load_approvals(self.home, project_of(Path(os.path.realpath(self.cwd)), user_home(os.environ))).answer
        except DiskError as error:
            self._c.notify(str(error))
            return None

    # Before each request

    def _bring_context(self) -> None:
        """Add what the model needs besides messages: a new date, and instruction files next to files that were read."""
        if not self._begun and self._c.log.view.items:  # without a message there is nothing to send
            self._begin()
        if (reminders := self._reminders) is not None:
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
        done: set[str] = set()
        answer = False  # its records were reached: one for each block
        for item in reversed(self._c.log.view.items):
            if item.role == "assistant":
                answer = True
                for call in (block for block in item.blocks if isinstance(block, ToolUse)):
                    path = path_in(call.input) if call.id in done and call.name == self._read_tool else None
                    if path is not None:
                        self._note(path, call.input)
            elif answer:
                return
            elif not item.synthetic:
                done |= {block.tool_use_id for block in item.blocks if isinstance(block, ToolResult) and not block.is_error}

    def note_read(self, path: str | Path) -> None:
        """Tell the session that the model has seen a file.

        The files seen last are shown again after a compaction, with their content at that time, and instruction files next to them are
        added to the conversation. If you name your read tool in `read_tool`, this happens by itself.

        Args:
            path: The file. A relative path starts at the session's working directory.
        """
        check_type("path", path, str, os.PathLike)
        with self._open():
            self._note(str(path), {})

    def _note(self, path: str, given: Any) -> None:
        full = self.cwd / os.path.expanduser(path)
        whole = {name: given.get(name) for name in ("offset", "limit") if isinstance(given.get(name), int)}
        self._reads.note(full, ReadRange(b"", max(0, whole.get("offset", 0)), whole.get("limit")))
        self._nested.append(full)

    # The session's own tools

    def answer_tool(self, call: Called) -> ToolResult | None:
        """Run a call of one of Lamina's own tools and record its result. Pass `offer_tools=True` to offer them to the model.

        If you keep your own message list, it need not hold the result.

        Args:
            call: A call from `reply.tool_uses`.

        Returns:
            The result as the model sees it. None if the tool is yours: run it yourself and call `add_tool_result`.
        """
        with self._open():
            from ..tools.tool import failure
            from .own_tools import Called, find_own, run_own

            check_type("call", call, Called, words="an item of reply.tool_uses")
            found = find_own(cast("SessionBase", self), call.name)
            if found is None:
                return None
            failed = failure(f"{found.name} failed. Continue without it.")
            output = isolate(self._c, found.name, lambda _: run_own(cast("SessionBase", self), found, call), failed)
            record = self._add_result(call.id, output.content, is_error=output.is_error, fenced=output.fenced, unlisted=True)
            return next(block for block in record.blocks if isinstance(block, ToolResult))
