"""A turn that ends while a review is running."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from lamina.core.settings.resolution import Settings
from lamina.fork.handover import Handover
from lamina.layers.l5_extract.review import ExtractionOrder, ReviewSlot
from lamina.memory.store.scopes import MemoryLocation

from .making import said


def order(last: str) -> ExtractionOrder:
    here = Path("/nowhere")
    return ExtractionOrder(
        items=(said(last, "words"),),
        handover=Handover(head={}, messages=(), options={}, base=(), links=0, last=b"", ttl=None),
        place=MemoryLocation(here, None, "default"),
        settings=Settings(),
        project=here,
        cwd=here,
        session="s",
        today="2026-05-04",
        store=lambda change, why: None,
    )


@pytest.mark.spec("X4")
def test_the_latest_wins_and_is_taken_once() -> None:
    slot = ReviewSlot()
    slot.open("1")
    assert slot.put(order("2"))
    assert slot.put(order("3"))
    taken = slot.take("1")
    assert taken is not None
    assert taken.last == "3"
    assert slot.take("3") is None
    assert slot.reached == "3"


@pytest.mark.spec("X4")
def test_a_slot_that_nobody_will_look_into_takes_nothing() -> None:
    slot = ReviewSlot()
    assert not slot.put(order("1"))
    slot.open(None)
    assert slot.take("1") is None
    assert not slot.put(order("2")), "the job is about to end"
    slot.open("1")
    slot.close()
    assert not slot.put(order("3"))


@pytest.mark.spec("X4")
def test_a_job_that_was_told_to_end_takes_nothing_more() -> None:
    slot, abort = ReviewSlot(), Event()
    slot.open("1")
    slot.watch(abort)
    assert slot.put(order("2"))
    abort.set()
    assert not slot.put(order("3")), "another one has to be started"
    assert slot.take("1") is None
    slot.open("1")
    assert slot.put(order("3")), "the next job is not told to end"
