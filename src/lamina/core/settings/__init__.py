"""Settings: one table as data, and one frozen value resolved from it.

decides  the value of each setting, from arguments, files, environment variables and remote flags passed in as values
does     no I/O: `disk/settings_files.py` reads the files
costs    a few microseconds for the defaults, otherwise time in proportion to the settings that are set
spec     F1–F4, S2, T4, T6, R5, B5, B9
"""

from .collection_kinds import Hooks, Mode, Permissions, Scope
from .kinds import Secret
from .levels import NOT_IN_TREE, WAITS_FOR_TRUST, Document, Finding
from .resolution import Settings, resolve
from .table import BILLINGS, SETTINGS, Billing, Resolved, Setting, Source, find

__all__ = [
    "BILLINGS",
    "NOT_IN_TREE",
    "WAITS_FOR_TRUST",
    "SETTINGS",
    "Billing",
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
