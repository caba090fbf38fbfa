"""Layer 5 inside another agent: after a turn, facts that the user stated become memories.

Reads the agent's transcript and reviews its last turn as a session of Lamina does: the same rules, guard, modes and journal. Without a key
the rules alone answer, in milliseconds. With one the small model of the same maker does, within the day's budget of background work, in a
child process that outlives the turn. A turn is not reviewed if the agent writes memories itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from threading import Event

from ..conversation.forks import ForkDriver
from ..core.blocks import Text, ToolUse, Wire
from ..core.budget import limits_of
from ..core.effects import Flow, drive
from ..core.log import Log
from ..core.settings import Settings
from ..core.view import Item
from ..disk.settings_files import lamina_home
from ..fork.background import LOCAL, Background, Meter
from ..fork.fork import ForkOutcome
from ..fork.handover import of_request
from ..fork.model_call import ask_until
from ..history.sessions import read
from ..layers.l5_extract.review import ExtractionOrder, ReviewFailed, ReviewResult, run_review
from ..layers.l5_extract.trigger import EXTRACTION
from ..layers.l5_extract.writer import ReviewWriter
from ..memory.recall.plan import user_words
from ..memory.store.contract import ChangeReason
from ..memory.store.scopes import project_root
from ..memory.tool_writes import RequestedWrite, WriteOutcome, find_memory_file, write_memory_file
from ..providers import Provider
from ..providers.models import small_model
from ..session.provider import offline, open_chosen_provider
from ..tools.tool import FileChange
from .hook_input import HookInput
from .project import ServedProject

# How much of the conversation a model is shown: the last turn and what led to it.
MOST_SHOWN = 24_000
MOST_SECONDS = 120.0
# Tools of this server that write memory: a turn that used one needs no review.
_WROTE = ("memory_save", "memory_update")


def review_turn(project: ServedProject, given: HookInput) -> ReviewResult | None:
    """Review the last turn of a session. Returns None if no review was needed or the budget is used up."""
    settings, path = project.settings, given.transcript
    # What a subagent was told is not the user's.
    items = Log.load(lambda: (record for record in read(path or "") if not getattr(record, "sidechain", False))).view.items
    starts = [at for at, item in enumerate(items) if user_words(item)]
    if not starts or len(starts) % max(1, settings.extraction_every) or _wrote(items[starts[-1] :]):
        return None
    cursor = items[starts[-1] - 1].uuid if starts[-1] else None
    provider = side_provider(settings)
    result: ReviewResult | None = None
    try:
        for model in review_models(settings, provider.model):
            order = _order(project, given, items, model)
            result = None if order is None else _within_budget(project, provider, order, cursor)
            if not isinstance(result, ReviewFailed) or result.outcome is not None:
                break  # the model answered, or was not asked
        return result
    finally:
        if (close := getattr(provider, "close", None)) is not None:
            close()


def review_models(settings: Settings, model: str) -> list[str]:
    """Return the models to ask: the small one, and the configured one in case the server does not have it."""
    small = None if model == LOCAL else settings.small_model or small_model(model)
    return list(dict.fromkeys(filter(None, (small, model))))


def side_provider(settings: Settings) -> Provider:
    """Return the configured model, or the rules without one."""
    chosen = open_chosen_provider(None, settings)
    return offline() if chosen.name == "offline" else chosen


def _within_budget(project: ServedProject, provider: Provider, order: ExtractionOrder, cursor: str | None) -> ReviewResult | None:
    """Run the review as background work, so that its calls are counted."""
    meter = Meter(
        lambda ask, abort: ask_until(abort, provider, ask),
        home=project.home or lamina_home(os.environ),
        project=str(project.cwd),
        session=order.session,
    )
    free = provider.model == LOCAL
    background = Background(allowed=lambda _: free or meter.refused(limits_of(order.settings)) is None)
    if not background.start(EXTRACTION, lambda abort: run_review(order, cursor, _performer(meter, abort))):
        return None
    if not background.wait(EXTRACTION, MOST_SECONDS):
        background.abort(EXTRACTION)
        return None
    landed = background.drain()
    return landed[0].value if landed else None


def _performer(meter: Meter, abort: Event) -> Callable[[Flow[ForkOutcome], ReviewWriter], ForkOutcome]:
    return lambda flow, writer: drive(flow, ForkDriver(meter, abort))


def _order(project: ServedProject, given: HookInput, items: Sequence[Item], model: str) -> ExtractionOrder | None:
    settings = project.settings
    place = project.locate_memory(settings)
    if place is None:
        return None

    def store(change: FileChange, why: ChangeReason) -> WriteOutcome | None:
        found = find_memory_file(place, change.path)
        if found is None:
            return None
        wish = RequestedWrite(change.path, change.data.decode("utf-8", "replace"), change.before, change.unread)
        with project.open_memory() as memory:
            return write_memory_file(memory, found, wish, why=why)

    return ExtractionOrder(
        items=tuple(items),
        handover=of_request({"model": model, "max_tokens": 4_000, "messages": spoken(items)}, ()),
        place=place,
        settings=settings,
        project=project_root(project.cwd),
        cwd=Path(project.cwd),
        session=given.session_id,
        today=date.today().isoformat(),
        store=store,
        calls_tools=False,
    )


def spoken(items: Sequence[Item]) -> list[Wire]:
    """Return the end of a conversation as messages of text alone. Tool calls are left out: the model here has no tools."""
    messages: list[Wire] = []
    left = MOST_SHOWN
    for item in reversed(items):
        texts = [block.text for block in item.blocks if isinstance(block, Text) and block.text.strip()]
        said = user_words(item) if item.role == "user" else "\n\n".join(texts)
        if not said or item.kind != "said":
            continue
        left -= len(said)
        if left < 0 and messages:
            break
        block = {"type": "text", "text": said}
        if messages and messages[0]["role"] == item.role:
            messages[0]["content"].insert(0, block)
        else:
            messages.insert(0, {"role": item.role, "content": [block]})
    return messages[1:] if messages and messages[0]["role"] == "assistant" else messages


def _wrote(items: Sequence[Item]) -> bool:
    return any(isinstance(block, ToolUse) and block.name.endswith(_WROTE) for item in items for block in item.blocks)
