"""Let the user edit a text in their editor.

Owns a copy of the text in the directory for temporary files. It is removed once the text is saved or unchanged, and stays there if the text
could not be saved: nothing that the user typed is lost.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from ..disk.files import remove, replace
from ..memory.store.draft import MOST_BYTES


def read_memory(path: Path) -> bytes:
    """Return the bytes of a memory or a copy of one. One byte more than the limit is enough to be refused."""
    with path.open("rb") as file:
        return file.read(MOST_BYTES + 1)


class EditedCopy:
    """A copy of a text for the editor."""

    def __init__(self, data: bytes, name: str) -> None:
        self.path = Path(tempfile.gettempdir()) / f"{Path(name).stem}-{os.urandom(4).hex()}.md"
        self._data = data
        replace(self.path, data, durability="process")

    def edit(self) -> bytes:
        """Open the editor (VISUAL or EDITOR) and return the bytes it leaves."""
        try:
            click.edit(filename=str(self.path))
            return read_memory(self.path)
        except (click.ClickException, OSError) as error:
            problem = error.format_message() if isinstance(error, click.ClickException) else str(error)
            raise click.ClickException(f"{problem.rstrip('.')}. Set EDITOR to another editor.{self.kept()}") from None

    def kept(self) -> str:
        """Return where the user's text is, for an error message; without changes the copy is removed."""
        if self.path.exists() and read_memory(self.path) != self._data:
            return f" Your text is in {self.path}."
        self.remove()
        return ""

    def remove(self) -> None:
        remove(self.path, durability="process")
