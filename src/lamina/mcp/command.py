"""`lamina mcp`: serve memory and past sessions to other agents over the Model Context Protocol.

It is here and not in cli/, because the surfaces do not import each other; the command line finds it by its name. Agents that start it
without options reach stdio.py without a parser.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import click

from ..core.errors import MissingExtra


@click.command("mcp")
@click.option("--http", is_flag=True, help="Serve over HTTP on 127.0.0.1 instead of standard input and output.")
@click.option("--port", type=click.IntRange(1, 65_535), default=7_411, show_default=True, help="With --http: the port.")
@click.option(
    "--token", envvar="LAMINA_MCP_TOKEN", help="With --http: the token clients must send. Default: a new one, which is printed."
)
@click.option(
    "--cwd",
    type=click.Path(file_okay=False, exists=True, path_type=Path, resolve_path=True),
    default=lambda: os.environ.get("CLAUDE_PROJECT_DIR") or ".",
    show_default="the client's project, or the current directory",
    help="Serve the project of this directory.",
)
@click.option(
    "--hooks", "agent", type=click.Choice(("claude-code",)), help="Also answer the hooks of this agent; its plugin sets this."
)
def mcp_command(http: bool, port: int, token: str | None, cwd: Path, agent: Literal["claude-code"] | None) -> None:
    """Serve memory and past sessions to other agents over the Model Context Protocol."""
    if http:
        for name in ("starlette", "uvicorn"):
            if find_spec(name) is None:
                raise MissingExtra(name, "mcp")
        from .http import serve_http

        serve_http(cwd, port=port, token=token, tell=lambda line: click.echo(line, err=True))
    else:
        from .stdio import serve_stdio

        serve_stdio(str(cwd), agent=agent)
