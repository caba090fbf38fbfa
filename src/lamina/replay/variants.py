"""The rows of a report: which settings each is played with. No number of a policy stands here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

RECORDED, APPEND, LAMINA = "recorded", "append", "lamina"

# A layer by its name, and the switches that turn it off. Extraction, dreams and agents leave no mark on the conversation's requests.
LAYERS: Mapping[str, Mapping[str, bool]] = {
    "results": {"spill": False},
    "clearing": {"size_clearing": False, "idle_clearing": False, "cache_edits": False, "api_clearing": False},
    "notes": {"session_notes": False, "notes_compaction": False},
    "compaction": {"compaction": False, "auto_compact": False, "collapse": False},
    "memory": {"memory": False},
}
ALL = "all"

# What a replay never does, whatever the settings say: it writes no memories, waits for no
# disk, and no day's budget ends it, since days pass in seconds.
ALWAYS: Mapping[str, Any] = {
    "extraction": False,
    "dream": False,
    "durability": "process",
    "budget_calls": 1_000_000_000,
    "budget_tokens": 1_000_000_000_000,
    "budget_dollars": 1_000_000_000.0,
}


class Variant(NamedTuple):
    name: str
    arguments: Mapping[str, Any]  # settings that stand above all others
    endless: bool = False  # the window never fills

    @property
    def memory(self) -> bool:
        return self.arguments.get("memory", True) is not False


def variants(policies: Sequence[str] = (), without: Sequence[str] = ()) -> list[Variant]:
    """`append` takes nothing out, `lamina` has the settings in force, each policy its own numbers; each of the latter once more without
    each layer that is named."""
    nothing = {name: value for layer in LAYERS.values() for name, value in layer.items()}
    rows = [Variant(APPEND, {**ALWAYS, **nothing}, endless=True), Variant(LAMINA, ALWAYS)]
    rows += [Variant(name, {**ALWAYS, "policy_name": name}) for name in dict.fromkeys(policies)]
    layers = list(LAYERS) if ALL in without else list(dict.fromkeys(without))
    less = [Variant(f"{row.name} without {layer}", {**row.arguments, **LAYERS[layer]}) for row in rows[1:] for layer in layers]
    return [*rows, *less]
