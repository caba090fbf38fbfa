"""Recorded sessions, one after another, through every policy that is asked for; what comes of it is one report.

Reads transcripts and never writes them. Each session is played in a home of its own below the system's temporary directory, which is
removed when it is done, also after Ctrl-C; a crash leaves that one directory behind. In memory are one session at a time and the sums.
"""

from __future__ import annotations

import gc
import os
import re
import secrets
import string
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..core.errors import DiskError, InputError, LaminaError
from ..core.settings import Settings
from ..disk.dirfd import private_dir
from ..disk.files import read
from ..disk.settings_files import user_home
from ..disk.trees.rewrite import remove_tree
from ..memory.store.index import INDEX, load_index
from ..memory.store.scopes import locate_memory
from ..prompt.reminder import IndexText, first_reminder
from ..session.provider import limits_for
from .comparison import ComparisonModel
from .figures import Curve, ReplayFigures
from .play import Played, ReplayStage, play, replay_recorded
from .recorded_provider import RecordedProvider
from .script import ReplayScript, probes_of, read_script
from .token_scale import TokenCounter, TokenScale, learn_scale
from .variants import RECORDED, Variant

# Files of a session's own that are no conversation, and what a memory keeps beside its topics.
NOT_SESSIONS = re.compile(r"(fork|damaged(-\d+)?)\.jsonl")
NO_PLACES = frozenset({".history", ".inbox", ".dreams"})
NAME_LETTERS = 16
# No system prompt with its tools is this long: such a file goes on from another, or is a side run of one, and holds the end only.
MOST_OVERHEAD = 100_000
# An index is cut to 25,000 bytes before it is sent; what lies behind a megabyte was never meant to be read.
MOST_INDEX_BYTES = 1 << 20


class ReplayOptions(NamedTuple):
    variants: Sequence[Variant]
    settings: Callable[[Mapping[str, Any]], Settings]  # those in force, under arguments
    window: int | None = None
    reminder: Callable[[Settings], str | None] = lambda _: None  # the first reminder of a session with memory
    comparison_model: ComparisonModel | None = None
    on_call: Callable[[str, int, int], None] = lambda policy, call, calls: None


class ReplayReport(msgspec.Struct):
    sessions: int = 0
    calls: int = 0
    figures: dict[str, ReplayFigures] = msgspec.field(default_factory=dict)
    curves: dict[str, Curve] = msgspec.field(default_factory=dict)
    skipped: list[str] = msgspec.field(default_factory=list)
    damaged: list[str] = msgspec.field(default_factory=list)  # files of which a part could not be read
    silent: int = 0  # sessions that report no usage

    def take(self, rows: Mapping[str, Played], calls: int) -> None:
        """What one session of so many calls came to."""
        self.sessions += 1
        self.calls += calls
        self.silent += not rows[RECORDED].sizes
        for name, played in rows.items():
            self.figures[name] = self.figures.get(name, ReplayFigures()) + played.figures
            self.curves.setdefault(name, Curve()).extend([*played.sizes, *[0] * (calls - len(played.sizes))])

    def to_json(self) -> dict[str, Any]:
        """What others rely on stands first; the rest is for who wants to know more."""
        policies = {name: figures.to_json() for name, figures in self.figures.items()}
        more = {"skipped": self.skipped, "damaged": self.damaged, "without_usage": self.silent}
        return {"sessions": self.sessions, "policies": policies, **more}


def transcripts(paths: Sequence[Path]) -> list[Path]:
    """Files as they are named; of a directory all that look like transcripts, in order. Each once, by whatever names."""
    found: dict[str, Path] = {}
    for path in paths:
        for one in sorted(_inside(path)) if path.is_dir() else [path]:
            found.setdefault(os.path.realpath(one), one)
    return list(found.values())


def _inside(directory: Path) -> Iterator[Path]:
    for path in directory.rglob("*.jsonl"):
        if NO_PLACES.isdisjoint(path.relative_to(directory).parts) and not NOT_SESSIONS.fullmatch(path.name) and path.is_file():
            yield path


def replay(
    files: Sequence[Path], wanted: ReplayOptions, *, on_session: Callable[[int, Path], None] = lambda at, path: None
) -> ReplayReport:
    report = ReplayReport()
    settings = [(variant, wanted.settings(variant.arguments)) for variant in wanted.variants]
    for at, path in enumerate(files):
        on_session(at, path)
        try:
            script = read_script(path)
        except (InputError, DiskError, OSError) as error:
            report.skipped.append(_sentence(path, error))
            continue
        if script.damage is not None:
            report.damaged.append(script.damage)
        learnt = learn_scale(script)
        if learnt.overhead > MOST_OVERHEAD:
            report.skipped.append(f"{path} is left out: {learnt.overhead:,} tokens of its first request are not in the file.")
            continue
        try:
            rows = _rows(script, learnt, wanted, settings)
        except LaminaError as error:
            report.skipped.append(_sentence(path, error))
            continue
        report.take(rows, len(script.answers))
    return report


def _rows(
    script: ReplayScript, learnt: TokenScale, wanted: ReplayOptions, settings: Sequence[tuple[Variant, Settings]]
) -> dict[str, Played]:
    """All rows of one session: it counts in all of them or in none."""
    probes, first = probes_of(script), settings[0][1]
    count, calls, asked = TokenCounter(learnt.scale), len(script.answers), wanted.window or _hinted(script, first)
    window = limits_for(RecordedProvider(script.model, count), first.policy, first, window=asked, options={}, notices=[]).window
    points = wanted.comparison_model.points(script) if wanted.comparison_model is not None else frozenset[int]()
    rows = {RECORDED: replay_recorded(script, probes, window)}
    for variant, held in settings:
        done = 0

        def called(name: str = variant.name) -> None:
            nonlocal done
            done += 1
            wanted.on_call(name, done, calls)

        with _home() as home:
            stage = ReplayStage(script, learnt, count, probes, home, asked, called, wanted.comparison_model, points)
            index = wanted.reminder(held) if variant.memory and held.memory else None
            rows[variant.name] = play(stage, held, index=index, endless=variant.endless)
        gc.collect()  # a session and its parts know each other: megabytes of it would wait for the collector's own time
    return rows


def _hinted(script: ReplayScript, settings: Settings) -> int | None:
    """A recording that was compacted by itself and never went over the usual window was made in one of that size, even if its model
    takes more; None: the settings and the model decide."""
    usual = settings.policy.window.default_window
    peak = max((answer.usage.prompt for answer in script.answers.values() if answer.usage), default=0)
    return usual if settings.context_window is None and script.recorded.auto and 0 < peak <= usual else None


@contextmanager
def _home() -> Iterator[Path]:
    """Nobody can guess its name, and it always weighs the same: it stands in previews, and they are counted."""
    name = "".join(secrets.choice(string.ascii_lowercase) for _ in range(NAME_LETTERS))
    home = private_dir(Path(os.path.realpath(tempfile.gettempdir())) / f"lamina-replay-{name}")
    try:
        yield home
    finally:
        remove_tree(home)


def _sentence(path: Path, error: LaminaError | OSError) -> str:
    said = str(error) if isinstance(error, LaminaError) else os.strerror(error.errno or 0).lower()
    return f"{path} is left out: {said.removeprefix(f'{path}: ')}"


# The memory a replay is given: the index as a session would be sent it now. Reads, and makes nothing.


def memory_directory(settings: Settings, *, cwd: Path, home: Path | None) -> Path | None:
    """The directory of this project's memory, where it is there."""
    if home is None or not settings.memory or settings.memory_mode["private"] == "off":
        return None
    found = locate_memory(cwd=cwd, home=home, settings=settings, user_home=user_home(os.environ) or home).path
    return found if found.is_dir() else None


def index_reminder(path: Path, settings: Settings) -> str | None:
    """The first reminder with that index; None where none is sent."""
    data = read(path / INDEX, MOST_INDEX_BYTES) if settings.index_in_prompt and not settings.assistant else None
    shown = load_index(data.decode("utf-8", "replace")) if data is not None else ""
    return first_reminder(memory_index=[IndexText(str(path / INDEX), shown)]) if shown else None
