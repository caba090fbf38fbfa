"""docs/json.md shows the shape of what every command prints with --json."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from lamina.cli.main import lamina_command


def with_json(command: click.Command, path: str, parent: click.Context | None = None) -> Iterator[str]:
    context = click.Context(command, info_name=path, parent=parent)
    if any("--json" in each.opts for each in command.params):
        yield path
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (inner := command.get_command(context, name)) is not None and not inner.hidden:
                yield from with_json(inner, f"{path} {name}", context)


def test_every_command_with_json_output_is_on_the_page(root: Path) -> None:
    text = (root / "docs" / "json.md").read_text("utf-8")
    assert sorted(re.findall(r"^## (.+)$", text, re.MULTILINE)) == sorted(with_json(lamina_command, "lamina"))


@pytest.mark.exhaustive
def test_the_page_shows_what_the_commands_print(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "scripts/generate_json.py", "--check"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "docs/json.md is current\n"), done.stderr
