"""The memory a replay is given: the index as a session would be sent it now. Reads, and makes nothing."""

from __future__ import annotations

import os
from pathlib import Path

from ..core.settings import Settings
from ..disk.files import read
from ..disk.settings_files import user_home
from ..memory.store.index import INDEX, load_index
from ..memory.store.scopes import locate_memory
from ..prompt.reminder import IndexText, first_reminder

# An index is cut to 25,000 bytes before it is sent; what lies behind a megabyte was never meant to be read.
MOST_BYTES = 1 << 20


def place_of(settings: Settings, *, cwd: Path, home: Path | None) -> Path | None:
    """The directory of this project's memory, where it is there."""
    if home is None or not settings.memory or settings.memory_mode["private"] == "off":
        return None
    found = locate_memory(cwd=cwd, home=home, settings=settings, user_home=user_home(os.environ) or home).path
    return found if found.is_dir() else None


def index_reminder(path: Path, settings: Settings) -> str | None:
    """The first reminder with that index; None where none is sent."""
    data = read(path / INDEX, MOST_BYTES) if settings.index_in_prompt and not settings.assistant else None
    shown = load_index(data.decode("utf-8", "replace")) if data is not None else ""
    return first_reminder(memory_index=[IndexText(str(path / INDEX), shown)]) if shown else None
