"""What calls of tools are run with in a directory: the same for an agent and for a dream by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..fork.tool_runner import ToolRunner
from ..permissions.decision import may_read
from ..permissions.request import Mode, PermissionContext
from ..permissions.rules import PermissionRules
from ..tools.tool import Context, Tool


def tool_runner_for(
    tools: Sequence[Tool],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    home: Path | None,
    memory_dir: Path | None,
    mode: Callable[[], Mode],
    rules: Callable[[], PermissionRules],
    roots: Sequence[Path] = (),
    readable: Sequence[Path] = (),
    scratch: Path | None = None,
) -> ToolRunner:
    """`roots`: directories besides `cwd` that tools work in; `readable`: directories they may only read. `scratch`: where output too
    large to show is kept."""
    names = {tool.name for tool in tools if tool.read_only}
    permission = PermissionContext(
        cwd=cwd,
        roots=(*roots, *((scratch,) if scratch is not None else ()), *readable),
        memory_dir=memory_dir,
        tool_is_read_only=lambda name: name in names,
        lamina_home=home,
        home=Path(environ["HOME"]) if environ.get("HOME") else None,
    )
    context = Context(
        cwd=cwd,
        roots=(cwd, *roots),
        environ=environ,
        scratch=scratch,
        # A search shows nothing that a Read of the file would not.
        may_read=lambda path: may_read(path, rules=rules(), context=permission),
    )
    return ToolRunner(tools=tuple(tools), context=context, permission=permission, mode=mode, rules=rules)
