"""The rows of a report and the settings each is played with. Policy numbers are defined elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.policy import POLICIES
from ..core.settings.table import DEFAULT_POLICY, NUMBERS, defaults, find
from ..language.text import Text

if TYPE_CHECKING:
    from ..core.settings import Settings

RECORDED, APPEND = "recorded", "append"
# In JSON also the name of the row of the settings in force.
LAMINA = "lamina"
CHANGED = ", changed"

# Each layer and the settings that turn it off. Extraction, dreams and agents do not affect the conversation's requests.
LAYERS: Mapping[str, Mapping[str, bool]] = {
    "results": {"spill": False},
    "clearing": {
        "size_clearing": False,
        "idle_clearing": False,
        "cache_edits": False,
        "api_clearing": False,
        "cold_clear": False,
        "cold_repeated": False,
    },
    "notes": {"session_notes": False, "notes_compaction": False},
    "compaction": {"compaction": False, "auto_compact": False, "collapse": False},
    "memory": {"memory": False},
}
ALL = "all"
# Lifetimes of cache entries that a row can be replayed with.
TTLS = ("5m", "1h")

# Settings of every replay: no memories or counts of their use are written, no disk syncs, and no daily budget, since days pass in
# seconds.
ALWAYS: Mapping[str, Any] = {
    "memory_mode": {"private": "read-only", "team": "read-only"},
    "extraction": False,
    "dream": False,
    "durability": "process",
    "budget_calls": 1_000_000_000,
    "budget_tokens": 1_000_000_000_000,
    "budget_dollars": 1_000_000_000.0,
}


class Variant(NamedTuple):
    name: str
    arguments: Mapping[str, Any]  # settings that override all others
    endless: bool = False  # the window never fills
    ttl: str | None = None  # lifetime of its cache entries; None leaves it to the policy

    @property
    def memory(self) -> bool:
        return self.arguments.get("memory", True) is not False


@cache
def _titles() -> dict[str, Text]:
    policies = {name: Text.whole(name) for name in (RECORDED, APPEND, *POLICIES)}
    rows = policies | {f"{name}{CHANGED}": Text("{policy}, changed", policy=policy) for name, policy in policies.items()}
    less = {
        _without(name, layer): Text("{row} without {layer}", row=row, layer=Text.whole(layer))
        for name, row in rows.items()
        for layer in LAYERS
    }
    return rows | less


def row_title(name: str) -> Text:
    """Return the name of a row as a text: what it is played with, in the language of a surface."""
    return _titles().get(name) or Text.whole(name)


def _without(name: str, layer: str) -> str:
    return f"{name} without {layer}"


def name_in_force(settings: Settings) -> str:
    """Return the name of the row of the settings in force: their policy, and whether its numbers or a layer were changed."""
    played = {row.key for row in NUMBERS.values()} | {
        row.key for layer in LAYERS.values() for name in layer if (row := find(name))
    }
    usual = defaults(settings.policy_name)
    changed = any(held.value != usual[row.key].value for row, held in settings if row.key in played)
    return f"{settings.policy_name}{CHANGED}" if changed else settings.policy_name


def variants(
    policies: Sequence[str] = (), without: Sequence[str] = (), ttls: Sequence[str] = (), *, in_force: str = DEFAULT_POLICY
) -> list[Variant]:
    """Return the rows: `append` removes nothing, `in_force` names the one of the settings in force, and each policy has its own
    numbers.

    The last two are repeated once without each of the layers in `without`, and once with each cache lifetime in `ttls`.
    """
    nothing = {name: value for layer in LAYERS.values() for name, value in layer.items()}
    rows = [Variant(APPEND, {**ALWAYS, **nothing}, endless=True), Variant(in_force, ALWAYS)]
    rows += [Variant(name, {**ALWAYS, "policy_name": name}) for name in dict.fromkeys(policies) if name != in_force]
    layers = list(LAYERS) if ALL in without else list(dict.fromkeys(without))
    less = [Variant(_without(row.name, layer), {**row.arguments, **LAYERS[layer]}) for row in rows[1:] for layer in layers]
    kept = [row._replace(name=f"{row.name} with {ttl} cache", ttl=ttl) for row in rows[1:] for ttl in dict.fromkeys(ttls)]
    return [*rows, *less, *kept]
