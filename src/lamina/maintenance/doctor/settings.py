"""What is wrong with settings: what is ignored and why, rules that cannot be read, what a project tried to set (F2, Z10)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from ...core.errors import DiskError
from ...core.settings import Finding as SettingFinding
from ...core.settings import Settings
from ...disk.files import read
from ...disk.home.trust import FILE_NAME as TRUST
from ...permissions.rules import read_rules
from .finding import Finding

# As the settings' own room words it.
_WAITS = "waits until you trust this directory"
_NEVER = "may not be set by files in the working tree"
_FILE = re.compile(r"\((?:managed|local|project|your) settings, (?P<file>[^)]+?)(?: env\.\w+)?\)|^Settings file (?P<whole>.+?): ")
_MOST_BYTES = 4 << 20


def check_settings(settings: Settings, home: Path | None) -> Iterator[Finding]:
    for found in settings.findings:
        yield _told(found)
    for rule in read_rules(settings.permissions).findings:
        yield Finding("settings", "permission-rule", rule.text, "Mend the rule: Tool or Tool(specifier).")
    if home is not None:
        yield from _trust(home / TRUST)


def _told(found: SettingFinding) -> Finding:
    place = _FILE.search(found.text)
    file = (place["file"] or place["whole"]) if place else ""
    if _WAITS in found.text:
        return Finding(
            "settings", "waits-for-trust", found.text, "Start lamina in a terminal there: it shows them and asks.", file
        )
    if _NEVER in found.text:
        return Finding("settings", "setting-of-tree", found.text, "Set it in your own settings, if you want it.", file)
    return Finding("settings", "setting", found.text, "Mend or remove it; lamina config lists what there is.", file)


def _trust(path: Path) -> Iterator[Finding]:
    """A file that cannot be read trusts nothing, so a person is asked again: said here, because nobody else says why."""
    problem = ""
    try:
        data = json.loads(read(path, _MOST_BYTES) or b"{}")
        problem = "" if isinstance(data, dict) and isinstance(data.get("projects", {}), dict) else "is no list of projects"
    except DiskError as error:
        problem = error.problem
    except (ValueError, RecursionError):
        problem = "is no JSON"
    if problem:
        text = f"What you trust cannot be read ({problem}), so nothing is trusted."
        yield Finding("settings", "answers-damage", text, "Remove the file; you are asked again.", str(path))
