"""Layer 2, microcompaction: old tool results are cleared, so that a summary is needed later or not at all.

Decides    which results are cleared before a call: after a pause, in the provider's cache, or by size, in this order
Does       nothing itself: `steps/micro.py` saves the originals and enters the decision as one record with its receipt
Costs      no model call; a clearing breaks the prompt cache from the first result on, which is announced (cache edits do not)
Switches   sizeClearing, idleClearing, cacheEdits, apiClearing; off takes no new decisions, those taken stay
Spec       M1-M7, K3, B1
"""

from .api import api_options, clears_by_itself, read_applied
from .edits import Edits, plan_edits
from .idle import plan_idle
from .marker import is_marker, marker
from .pays import pays
from .registry import Clearable, Registry, Surfaced
from .size import plan_size

__all__ = [
    "Clearable",
    "Edits",
    "Registry",
    "Surfaced",
    "api_options",
    "clears_by_itself",
    "is_marker",
    "marker",
    "pays",
    "plan_edits",
    "plan_idle",
    "plan_size",
    "read_applied",
]
