"""Layer 1: tool results.

Decides: which results are too large to stay in the context: by tool, and all results of one message together.
Does: writes such a result to a file of the session and puts a preview in its place, before it enters the log.
Costs: a few microseconds per result; a result that is spilled costs one write of it and one hash.
Kill switch: `spill`. Numbers: `results.per_tool`, `results.default`, `results.per_message`, `results.preview`.
Spec: R1-R6, B1 (spills).

Without a disk the layer steps aside: a result stays whole while it fits, and what cannot fit is cut and says so.
"""

from .kept import as_kept, is_nothing, open_spill, receipt_of
from .plan import Arrived, Budget, Fate, alone, budget_for, empty_marker, plan, together, weigh
from .preview import Head, beginning_of, cut, cut_to_page, head_of, persisted
from .run import Room, Spilled, adopt, spill
from .source import Tape, encoded, is_json, read_small, tape_of

__all__ = [
    "Arrived",
    "Budget",
    "Fate",
    "Head",
    "Room",
    "Spilled",
    "Tape",
    "adopt",
    "alone",
    "as_kept",
    "beginning_of",
    "budget_for",
    "cut",
    "cut_to_page",
    "empty_marker",
    "encoded",
    "head_of",
    "is_json",
    "is_nothing",
    "open_spill",
    "persisted",
    "plan",
    "read_small",
    "receipt_of",
    "spill",
    "tape_of",
    "together",
    "weigh",
]
