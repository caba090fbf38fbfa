"""Settings: one table as data, and one frozen value resolved from it.

decides  what each setting is, from arguments, files, environment and remote flags that are handed in as values
does     nothing: reading files is `disk/settings_files.py`
costs    a few microseconds for the defaults, time for what was set otherwise
spec     F1–F4, S2, T4, T6, R5, B5, B9
"""

from .collection_kinds import Hooks, Mode, Permissions, Scope
from .kinds import Secret
from .levels import Document, Finding
from .resolution import Settings, resolve
from .table import SETTINGS, Resolved, Setting, Source, find

__all__ = [
    "SETTINGS",
    "Document",
    "Finding",
    "Hooks",
    "Mode",
    "Permissions",
    "Resolved",
    "Scope",
    "Secret",
    "Setting",
    "Settings",
    "Source",
    "find",
    "resolve",
]
