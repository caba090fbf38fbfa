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
        variable = "VISUAL" if os.environ.get("VISUAL") else "EDITOR"
        try:
            click.edit(filename=str(self.path))
            return read_memory(self.path)
        except ValueError:  # an open quotation
            self.remove()
            given = os.environ.get(variable, "")
            raise click.ClickException(f"{variable} is not a valid command: {given!r}. Set it to an editor.") from None
        except click.ClickException as error:
            raise click.ClickException(f"{_failure(error)}. Set {variable} to another editor.{self.kept()}") from None
        except FileNotFoundError:
            raise click.ClickException("The editor left no file, so nothing was changed.") from None
        except OSError as error:
            raise click.ClickException(f"{self.path} could not be read: {error.strerror}.{self.kept()}") from None

    def kept(self) -> str:
        """Return where the user's text is, for an error message; without changes the copy is removed."""
        if self.path.exists() and read_memory(self.path) != self._data:
            return f" Your text is in {self.path}."
        self.remove()
        return ""

    def remove(self) -> None:
        remove(self.path, durability="process")


def _failure(error: click.ClickException) -> str:
    """Return what happened to the editor, which click names at the beginning of its message."""
    editor, why = error.format_message().partition(": Editing failed")[0], error.__cause__
    if isinstance(why, FileNotFoundError):
        return f"The editor {editor!r} was not found"
    return (
        f"The editor {editor!r} could not be started: {why.strerror}"
        if isinstance(why, OSError)
        else f"The editor {editor!r} failed"
    )
