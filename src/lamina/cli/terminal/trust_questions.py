"""What lies in a project and needs a person's yes: hooks and permissions of its settings, files outside that it includes (F2, I2).

Asked before a session starts, once for each answer: a yes is remembered for what was shown, a no to an included file too; a no to
the settings is asked again at the next start. Without a yes nothing of it counts.
"""

from __future__ import annotations

import os
from pathlib import Path

from ...core.errors import DiskError
from ...core.settings import Settings
from ...disk.home.approvals import record_approval
from ...disk.home.trust import trust, trusted, what_it_would_enable
from ...disk.settings_files import user_home
from ...prompt.instructions import load_instructions
from ..start import find_project, read_approvals
from .questions import Questions
from .screen import Screen

# As the settings' own room words it.
_WAITS = "waits until you trust this directory"


def settle_settings(screen: Screen, questions: Questions, home: Path | None, cwd: Path) -> None:
    lines = what_it_would_enable(cwd)
    if home is None or not lines or trusted(home, cwd):
        return
    screen.line(f"Files in {cwd} want to set:", "yellow")
    screen.line("\n".join(f"    {line}" for line in lines))
    if not questions.yes_or_no("Do you trust them? Hooks are commands that run on your machine."):
        return
    if what_it_would_enable(cwd) != lines:
        screen.note("They have changed since they were shown, so nothing of them counts; start again to see them.", "red")
        return
    try:
        trust(home, cwd)
    except DiskError as error:
        screen.note(f"That could not be noted, so they do not count: {error}", "red")


def settle_includes(screen: Screen, questions: Questions, home: Path | None, cwd: Path, settings: Settings) -> None:
    """Files outside the project that its instruction files include."""
    if home is None:
        return
    approvals, problem = read_approvals(cwd, home)
    found = load_instructions(
        cwd=cwd,
        home=home,
        person=user_home(os.environ),
        excludes=settings.instruction_excludes,
        approved=approvals.answer,
    )
    for waiting in found.pending if problem is None else ():
        named = f", included by {waiting.included_from}" if waiting.included_from is not None else ""
        screen.note(f"{waiting.real_path} lies outside the project{named}.", "yellow")
        allowed = questions.yes_or_no("May it be sent to the model as part of the instructions?")
        try:
            record_approval(home, find_project(cwd), waiting.real_path, allowed=allowed)
        except DiskError as error:
            screen.note(f"That could not be noted: {error}", "red")


def describe_findings(settings: Settings) -> list[str]:
    """What the settings' room found; everything that waits for trust in one line."""
    waiting = dict.fromkeys(found.key for found in settings.findings if _WAITS in found.text)
    others = [found.text for found in settings.findings if _WAITS not in found.text]
    return [*others, f"Not trusted, so ignored here: {', '.join(waiting)}."] if waiting else others
