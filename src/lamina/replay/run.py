"""Replay recorded sessions, one after another, under every requested policy, and build one report.

Transcripts are read, never written. Each replay uses its own home in the system's temporary directory, which is removed
afterwards, also on Ctrl-C; a crash leaves that one directory behind. Memory holds one session at a time and the totals.
"""

from __future__ import annotations

import gc
import os
import re
import secrets
import string
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ..core.errors import DiskError, InputError, LaminaError, clause
from ..core.settings import Settings
from ..disk.dirfd import private_dir
from ..disk.trees.rewrite import remove_tree
from ..history.catalogue import scan_whole
from ..history.copies import contained_files
from ..history.scan import Scan
from ..history.sessions import format_of, name_of
from ..language.text import Text, system_reason
from ..session.provider import limits_for
from .options import ReplayOptions
from .play import Played, ReplayStage, play
from .recorded_provider import RecordedProvider
from .recorded_row import replay_recorded
from .report import ReplayReport
from .script import ReplayScript, probes_of, read_script
from .token_scale import TokenCounter, TokenScale, learn_scale
from .variants import RECORDED, Variant

# Session files that are not conversations, and directories that a memory keeps beside its topics.
NOT_SESSIONS = re.compile(r"(fork|damaged(-\d+)?)\.jsonl")
NO_PLACES = frozenset({".history", ".inbox", ".dreams"})
NAME_LETTERS = 16
# No system prompt with tools is this long: such a file continues another one and has only the end of the conversation.
MOST_OVERHEAD = 100_000


def transcripts(paths: Sequence[Path]) -> list[Path]:
    """Return the given files, and all transcripts in the given directories, in order and without duplicates."""
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
    files: Sequence[Path],
    wanted: ReplayOptions,
    *,
    on_session: Callable[[int, Path], None] = lambda at, path: None,
    report: ReplayReport | None = None,
) -> ReplayReport:
    """Replay the files. A given report grows with each session, so that it holds the finished ones when a callback raises."""
    report = report if report is not None else ReplayReport()
    settings = [(variant, wanted.settings(variant.arguments)) for variant in wanted.variants]
    copies = explain_copies(files)
    for at, path in enumerate(files):
        on_session(at, path)
        if path in copies:
            report.skipped.append(copies[path])
            continue
        try:
            script = read_script(path)
        except (InputError, DiskError, OSError) as error:
            report.skipped.append(_sentence(path, error))
            continue
        if script.damage is not None:
            report.damaged.append(Text.whole(script.damage))
        learnt = learn_scale(script)
        if learnt.overhead > MOST_OVERHEAD:
            report.skipped.append(
                Text(
                    "{path} skipped: {overhead:,} tokens of its first request are not in the file.",
                    path=path,
                    overhead=learnt.overhead,
                )
            )
            continue
        try:
            rows = _rows(script, learnt, wanted, settings)
        except LaminaError as error:
            report.skipped.append(_sentence(path, error))
            continue
        report.take(str(path), rows, len(script.answers), name_of(path).origin)
    return report


def explain_copies(files: Sequence[Path]) -> dict[Path, Text]:
    """Return the files of which another one holds all answers, with a sentence. The longest copy of a session is replayed."""
    scans: list[tuple[str, Scan]] = []
    for path in files if len(files) > 1 else ():
        with suppress(OSError):
            scans.append((str(path), scan_whole(format_of(path), str(path))))
    copies = contained_files(scans).items()
    return {
        Path(path): Text("{path} skipped: all of its answers are in {whole}.", path=path, whole=whole) for path, whole in copies
    }


def _rows(
    script: ReplayScript, learnt: TokenScale, wanted: ReplayOptions, settings: Sequence[tuple[Variant, Settings]]
) -> dict[str, Played]:
    """Return all rows of one session, so that it counts in all of them or in none."""
    probes, first = probes_of(script), settings[0][1]
    count, calls, asked = TokenCounter(learnt.scale), len(script.answers), wanted.window or _hinted(script, first)
    window = limits_for(RecordedProvider(script.model, count), first.policy, first, window=asked, options={}, notices=[]).window
    points = wanted.comparison_model.points(script) if wanted.comparison_model is not None else frozenset[int]()
    rows = {RECORDED: replay_recorded(script, probes, window, count)}
    for variant, held in settings:
        done = 0

        def called(name: str = variant.name) -> None:
            nonlocal done
            done += 1
            wanted.on_call(name, done, calls)

        with _home() as home:
            stage = ReplayStage(script, learnt, count, probes, home, asked, called, wanted.comparison_model, points)
            index = wanted.reminder(held) if variant.memory and held.memory else None
            rows[variant.name] = play(stage, held, index=index, endless=variant.endless, ttl=variant.ttl)
        wanted.on_row(rows, calls)
        gc.collect()  # a session has reference cycles that would otherwise keep megabytes alive
    return rows


def _hinted(script: ReplayScript, settings: Settings) -> int | None:
    """Guess the window of the recording; None leaves it to the settings and the model.

    A recording that was compacted automatically and never exceeded the default window was made in a window of that size, even
    if its model allows more.
    """
    usual = settings.policy.window.default_window
    peak = max((answer.usage.prompt for answer in script.answers.values() if answer.usage), default=0)
    return usual if settings.context_window is None and script.recorded.auto and 0 < peak <= usual else None


@contextmanager
def _home() -> Iterator[Path]:
    """Make a temporary home with an unguessable name of fixed length: it appears in previews, whose tokens are counted."""
    name = "".join(secrets.choice(string.ascii_lowercase) for _ in range(NAME_LETTERS))
    home = private_dir(Path(os.path.realpath(tempfile.gettempdir())) / f"lamina-replay-{name}")
    try:
        yield home
    finally:
        remove_tree(home)


def _sentence(path: Path, error: LaminaError | OSError) -> Text:
    problem = system_reason(error) if isinstance(error, OSError) else clause(error, str(path))
    return Text("{path} skipped: {problem}.", path=path, problem=problem)
