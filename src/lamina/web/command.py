"""`lamina ui`: open the page in the browser.

It is here and not in cli/, because the surfaces do not import each other; the command line finds it by its name.
"""

from __future__ import annotations

import json
import sys
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import click

from ..core.errors import MissingExtra

DEFAULT_PORT = 7_412


@click.command("ui")
@click.option("--port", type=click.IntRange(1, 65_535), default=DEFAULT_PORT, show_default=True, help="Port on 127.0.0.1.")
@click.option("--read-only", is_flag=True, help="Refuse every change, and write no file: for looking at someone else's files.")
@click.option("--no-open", is_flag=True, help="Print the link and do not open a browser.")
@click.option("--json", "as_json", is_flag=True, help="Print the link as JSON and do not open a browser.")
def ui_command(port: int, read_only: bool, no_open: bool, as_json: bool) -> None:
    """Show memories, sessions, what filled the window and what it cost, in the browser."""
    for name in ("sse_starlette", "starlette", "uvicorn"):
        if find_spec(name) is None:
            raise MissingExtra(name, "web")
    from .server import serve

    def opened(link: str) -> None:
        taken = urlsplit(link).port
        if taken != port:
            click.echo(f"Port {port} is in use, so port {taken} was taken.", err=as_json)
        if as_json:
            click.echo(json.dumps({"url": link, "port": taken, "read_only": read_only}))
        else:
            click.echo(f"Lamina is at {link}\nThe link works once. Stop with Ctrl+C.")
        sys.stdout.flush()
        if not as_json and not no_open:
            webbrowser.open(link)

    serve(
        cwd=Path.cwd(),
        port=port,
        read_only=read_only,
        tell=lambda link: None if as_json else click.echo(f"Opened. Link for another browser: {link}", err=True),
        opened=opened,
    )
