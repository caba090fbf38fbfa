"""Limits for pins: all pins together may take a fixed share of the window.

A new pin that exceeds the limit is refused. Existing pins that no longer fit, because the window became smaller, stay in the log;
after a compaction the largest of them are shown shortened, with the id that expands them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.blocks import Block
from ..core.blocks import text as text_block
from ..core.errors import InputError
from ..core.records import Pin
from ..language.text import Text
from ..language.wording import counted
from .state import Conversation
from .window.estimate import estimate
from .window.features import measure_all

# Share of the autocompact threshold for all pins together. The rest is for the summary, restored context and new messages.
PERCENT = 20
KIND = "attachment:pin:"


def most(c: Conversation) -> int:
    return c.limits.autocompact * PERCENT // 100


def refuse_too_large(c: Conversation, pin: Pin) -> None:
    size = sizes(c, [pin])[pin.uuid]
    used = sum(sizes(c, list(c.log.view.pins.values())).values())
    if used + size > most(c):
        detail = f", of which existing pins use {used:,}" if used else ""
        room = most(c) - used
        raise InputError(
            "pin",
            f"the pin takes {counted(size, 'token')}, but all pins together may take {most(c):,} in this window{detail}",
            f"pin at most {counted(room, 'token')}" if room > 0 else "remove a pin first, using undo and its id",
        )


def budgets(c: Conversation) -> dict[str, int]:
    """Return the token budget of each pin that must be shortened, by id. Large pins are shortened before small ones."""
    cut: dict[str, int] = {}
    room = most(c)
    by_size = sorted(sizes(c, list(c.log.view.pins.values())).items(), key=lambda pin_size: pin_size[1])
    for number, (uuid, size) in enumerate(by_size):
        share = room // (len(by_size) - number)
        if size > share:
            cut[uuid] = share
        room -= min(size, share)
    return cut


def sizes(c: Conversation, pins: list[Pin]) -> dict[str, int]:
    """Return the tokens of each pin: of its text, of the message it names, or of the copy a compaction made of that message."""
    if not pins:
        return {}
    wanted = {name for pin in pins for name in (pin.target, f"{KIND}{pin.uuid}")}
    blocks_by_name = {name: item.blocks for item in c.log.view.items for name in (item.uuid, item.kind) if name in wanted}

    def blocks(pin: Pin) -> Sequence[Block]:
        if pin.text is not None:
            return (text_block(pin.text),)
        return blocks_by_name.get(pin.target or "") or blocks_by_name.get(f"{KIND}{pin.uuid}", ())

    return {pin.uuid: estimate(measure_all(blocks(pin)), c.count.calibration) for pin in pins}


def tell_cut(c: Conversation, cut: Sequence[str]) -> None:
    """Notify the user of shortened pins, once for each."""
    if new := [pin for pin in cut if pin not in c.cut_pins]:
        c.cut_pins.update(new)
        names = ", ".join(pin[:8] for pin in new)
        c.notify(
            Text(
                "The pins are too large for this window, so {names} is shortened from now on. The transcript has the "
                "full text: expand a pin by its id to see it.|The pins are too large for this window, so {names} are "
                "shortened from now on. The transcript has the full text: expand a pin by its id to see it.",
                names=names,
                n=len(new),
            )
        )
