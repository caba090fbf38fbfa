"""The options of a replay: the settings in force, and the index of the memory as a session would receive it. Reads only."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.settings import Settings
from ..disk.files import read
from ..disk.settings_files import settings_in_force, user_home
from ..memory.store.index import INDEX, load_index
from ..memory.store.scopes import locate_memory
from ..prompt.reminder import IndexText, first_reminder
from .variants import Variant

if TYPE_CHECKING:  # the page asks for the settings of a replay without loading what plays it
    from .comparison import ComparisonModel
    from .play import Played

# An index is cut to 25,000 bytes before it is sent, so a megabyte is more than enough.
MOST_INDEX_BYTES = 1 << 20


class ReplayOptions(NamedTuple):
    variants: Sequence[Variant]
    settings: Callable[[Mapping[str, Any]], Settings]  # the settings in force, with these arguments on top
    window: int | None = None
    reminder: Callable[[Settings], str | None] = lambda _: None  # the first reminder of a session with memory
    comparison_model: ComparisonModel | None = None
    on_call: Callable[[str, int, int], None] = lambda policy, call, calls: None
    on_row: Callable[[Mapping[str, Played], int], None] = lambda rows, calls: None  # the rows of a session so far


def options_in(
    cwd: Path,
    home: Path | None,
    *,
    environ: Mapping[str, str] | None = None,
    memory: Path | None = None,
    window: int | None = None,
) -> ReplayOptions:
    """Return options without variants: the settings in force in `cwd`, with this project's memory or the one that is named."""
    in_force = settings_in_force(cwd, environ=environ)
    place = memory.resolve() if memory is not None else memory_directory(in_force, cwd=cwd, home=home, environ=environ)
    given = {"memory_directory": str(place)} if place is not None else {}

    def settings(arguments: Mapping[str, Any]) -> Settings:
        return settings_in_force(cwd, environ=environ, arguments={**given, **arguments})

    def index(held: Settings) -> str | None:
        return index_reminder(place, held) if place is not None else None

    return ReplayOptions((), settings, window, index)


def memory_directory(
    settings: Settings, *, cwd: Path, home: Path | None, environ: Mapping[str, str] | None = None
) -> Path | None:
    """Return the directory of this project's memory, if it exists."""
    if home is None or not settings.memory or settings.memory_mode["private"] == "off":
        return None
    found = locate_memory(
        cwd=cwd, home=home, settings=settings, user_home=user_home(os.environ if environ is None else environ) or home
    ).path
    return found if found.is_dir() else None


def index_reminder(path: Path, settings: Settings) -> str | None:
    """Return the first reminder with that index; None if no index is sent."""
    data = read(path / INDEX, MOST_INDEX_BYTES) if settings.index_in_prompt and not settings.assistant else None
    shown = load_index(data.decode("utf-8", "replace")) if data is not None else ""
    return first_reminder(memory_index=[IndexText(str(path / INDEX), shown)]) if shown else None
