"""The desk a parent lends its fork: the same tools, since another list would be another prefix, and a permission function of its own.

What a fork can change is a clone: which files were read, the to-dos. Nobody is asked for it, so what would be a question is a denial;
its calls are shown to nobody. Its abort is the one Event that ends the whole run. A fork that works for its parent (A4) is judged as
its parent is, and a person may be asked for it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

from msgspec.structs import replace

from ..core.blocks import ToolUse
from ..permissions.decision import Allow, Deny
from .tool_runner import AskPerson, Desk


def lend_whole(desk: Desk, *, abort: Event, ask: AskPerson | None) -> Desk:
    """For a fork that does its parent's work: the same mode and rules. `ask` None: nobody can be asked."""
    context = replace(desk.context, reads=desk.context.reads.clone(), todos=list(desk.context.todos), abort=abort, on_output=None)
    return replace(desk, context=context, ask=ask, on_start=None, on_end=None, on_output=None)


def lend(
    desk: Desk,
    *,
    abort: Event,
    only_edit: Path | None = None,
    memory_dir: Path | None = None,
    decide: Callable[[ToolUse], Allow | Deny] | None = None,
) -> Desk:
    """`only_edit`: the one file it may Edit, and nothing else (N4). `decide`: a permission function of its own, within the deny
    rules. Neither: X6, what reads inside the project, read-only Bash, and Edit and Write inside `memory_dir`."""
    permission = replace(
        desk.permission,
        fork=decide is None,
        only_edit=only_edit,
        memory_dir=memory_dir if memory_dir is not None else desk.permission.memory_dir,
    )
    return replace(lend_whole(desk, abort=abort, ask=None), permission=permission, decide_fork=decide)
