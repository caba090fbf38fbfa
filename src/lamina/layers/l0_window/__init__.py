"""Layer 0: tokens, windows, thresholds.

Decides: how full the window is, which window it is, and where warning, compaction and blocking stand.
Does: nothing; every function is pure, no clock, no files.
Costs: a few microseconds per new block; a turn pays for what is new in it.
Kill switch: none; the other layers judge by this one. `LAMINA_CONTEXT_WINDOW` and `LAMINA_AUTOCOMPACT_PCT` move its marks.
Spec: T1-T10, B15.
"""

from .breakdown import Breakdown, Repeat, break_down
from .count import Count, answered, appended, replaced
from .estimate import START, Calibration, estimate, observe, plain_estimate
from .features import EMPTY, Features, Memo, measure, measure_all
from .recount import recount
from .thresholds import MIN_WINDOW, State, Thresholds, state_of, thresholds
from .window import ModelFacts, Window, window_for

__all__ = [
    "EMPTY",
    "MIN_WINDOW",
    "START",
    "Breakdown",
    "Calibration",
    "Count",
    "Features",
    "Memo",
    "ModelFacts",
    "Repeat",
    "State",
    "Thresholds",
    "Window",
    "answered",
    "appended",
    "break_down",
    "estimate",
    "measure",
    "measure_all",
    "observe",
    "plain_estimate",
    "recount",
    "replaced",
    "state_of",
    "thresholds",
    "window_for",
]
