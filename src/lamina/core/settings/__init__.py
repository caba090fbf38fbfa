"""Settings: one table as data, and one frozen value resolved from it.

decides  what each setting is, from arguments, files, environment and remote flags that are handed in as values
does     nothing: reading files is `disk/settings_files.py`
costs    a few microseconds for the defaults, time for what was set otherwise
spec     F1–F4, S2, T4, T6, R5, B5, B9
"""

from .kinds import Secret
from .levels import Document
from .row import Finding, Resolved, Setting, Source
from .rules import CompactionVerdict, MemoryVerdict, compaction_enabled, memory_enabled
from .shapes import Hooks, Mode, Permissions, Scope
from .table import SETTINGS, find
from .value import Settings, resolve

__all__ = [
    "SETTINGS",
    "CompactionVerdict",
    "Document",
    "Finding",
    "Hooks",
    "MemoryVerdict",
    "Mode",
    "Permissions",
    "Resolved",
    "Scope",
    "Secret",
    "Setting",
    "Settings",
    "Source",
    "compaction_enabled",
    "find",
    "memory_enabled",
    "resolve",
]
