"""How much may be pinned, and what becomes of pins that do not fit (B2).

A pin that would take more than its share of the window is refused when it is made. Pins that were there before, and are too large for
a smaller window, stay in the log; behind a compaction the largest of them are shown cut, with the id that opens them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.blocks import Block
from ..core.blocks import text as text_block
from ..core.errors import InputError
from ..core.records import Pin
from .state import Conversation
from .window.estimate import estimate
from .window.features import measure_all

# Of the threshold, for all pins together: the rest is for the summary, what is put back, and the work itself.
PERCENT = 20
KIND = "attachment:pin:"


def most(c: Conversation) -> int:
    return c.limits.autocompact * PERCENT // 100


def refuse_too_large(c: Conversation, pin: Pin) -> None:
    size = sizes(c, [pin])[pin.uuid]
    taken = sum(sizes(c, list(c.log.view.pins.values())).values())
    if taken + size > most(c):
        held = f", and those that are there take {taken:,}" if taken else ""
        room = most(c) - taken
        raise InputError(
            "pin",
            f"takes {size:,} tokens; all pins together may have {most(c):,} in this window{held}",
            f"pin a shorter text, of up to {room:,} tokens" if room > 0 else "take one back first, with undo and its id",
        )


def budgets(c: Conversation) -> dict[str, int]:
    """What each pin that does not fit may have, by its id; empty where all fit. Small ones are kept whole before large ones are cut."""
    cut: dict[str, int] = {}
    left = most(c)
    found = sorted(sizes(c, list(c.log.view.pins.values())).items(), key=lambda one: one[1])
    for number, (uuid, size) in enumerate(found):
        share = left // (len(found) - number)
        if size > share:
            cut[uuid] = share
        left -= min(size, share)
    return cut


def sizes(c: Conversation, pins: list[Pin]) -> dict[str, int]:
    """Tokens of what each keeps: its text, else the message it names, else the copy that a compaction made of that."""
    if not pins:
        return {}
    wanted = {name for pin in pins for name in (pin.target, f"{KIND}{pin.uuid}")}
    shown = {name: item.blocks for item in c.log.view.items for name in (item.uuid, item.kind) if name in wanted}

    def blocks(pin: Pin) -> Sequence[Block]:
        if pin.text is not None:
            return (text_block(pin.text),)
        return shown.get(pin.target or "") or shown.get(f"{KIND}{pin.uuid}", ())

    return {pin.uuid: estimate(measure_all(blocks(pin)), c.count.calibration) for pin in pins}


def tell_cut(c: Conversation, cut: Sequence[str]) -> None:
    """Once for each."""
    if new := [pin for pin in cut if pin not in c.cut_pins]:
        c.cut_pins.update(new)
        names = ", ".join(pin[:8] for pin in new)
        c.notify(
            f"What is pinned is too large for this window: {names} {'is' if len(new) == 1 else 'are'} shown cut from here on. "
            "All of it is in the transcript, and expanding the pin by its id opens it."
        )
