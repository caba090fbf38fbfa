"""The text that the user has selected in their editor, from the environment in which the editor started the chat."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ..core.errors import DiskError
from ..disk.user_files import read_whole

# Ours first, for editors that let you set a variable for a command. Zed sets the second for its tasks, TextMate the third for its commands.
VARIABLES = ("LAMINA_SELECTION", "ZED_SELECTED_TEXT", "TM_SELECTED_TEXT")
FILE_VARIABLE = "LAMINA_SELECTION_FILE"
# As much as of an instruction file: more is not a selection.
MOST_CHARACTERS = 40_000


class Selection(NamedTuple):
    text: str | None = None
    problem: str | None = None  # for the user


def read_selection(environ: Mapping[str, str]) -> Selection:
    """Return the selection, cut to a maximum length. A file that cannot be read is reported and ignored."""
    text = next((environ[name] for name in VARIABLES if environ.get(name, "").strip()), None)
    try:
        if text is None and (path := environ.get(FILE_VARIABLE)):
            found = read_whole(Path(path).expanduser(), 4 * MOST_CHARACTERS)
            text = found.data.decode("utf-8", "replace") if found is not None else None
            if found is None:
                return Selection(problem=f"{FILE_VARIABLE}: file {path} not found. The selection is not sent.")
    except DiskError as error:
        return Selection(problem=f"{error} The selection is not sent.")
    if text is None or not text.strip():
        return Selection()
    cut = f"\n[Cut here: {MOST_CHARACTERS:,} of {len(text):,} characters.]" if len(text) > MOST_CHARACTERS else ""
    return Selection(text[:MOST_CHARACTERS] + cut)
