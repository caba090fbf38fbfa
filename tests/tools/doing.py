"""Calling tools in tests: a context for a directory, one call, and what came back as text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lamina.tools.registry import builtin_tools
from lamina.tools.tool import Context, ToolOutput

# What a shell and its commands need; the keys of the person who runs the tests are not among it.
ENVIRON = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TMPDIR", "LANG") if name in os.environ}


def context(cwd: Path, **fields: Any) -> Context:
    return Context(**{"cwd": cwd, "roots": (cwd,), "environ": ENVIRON, "scratch": cwd.parent / f"{cwd.name}-scratch", **fields})


def call(name: str, where: Context, **arguments: Any) -> ToolOutput:
    tool = next(tool for tool in builtin_tools() if tool.name == name)
    return tool.run(arguments, where)


def done(name: str, where: Context, **arguments: Any) -> str:
    """The text of a call that works."""
    output = call(name, where, **arguments)
    assert isinstance(output.content, str)
    assert not output.is_error, output.content
    return output.content


def refused(name: str, where: Context, **arguments: Any) -> str:
    """The sentence of a call that does not."""
    output = call(name, where, **arguments)
    assert isinstance(output.content, str)
    assert output.is_error, output.content
    return output.content
