"""The account of automatic compaction: what reading older messages again has cost, and what a compaction would cost.

Each call reads the whole context. The part that a compaction would remove is its *excess*: the context without the base, the tail
that stays verbatim, and the summary. The excess of all calls since the last compaction is the debt. A compaction pays once the debt is
a multiple of its own price: another read of the context, the summary as output, and the cache write of what is left.

The debt is a function of the log, so a resumed session decides the same. Every answer counts with the prompt that its usage reported,
or with an estimate. A compaction, an undo and a failed compaction each start a new account. The base is measured on the first answer;
it and the size of the last summary are in the checkpoint. Prices are those of the model in use, so a switch of the model applies to
the whole account. Every update costs what is new in the view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ..core.view import Item, View
from ..language.text import Text
from .state import Conversation
from .triggers import FIRST_REMINDER, last_compaction
from .triggers import base as base_now
from .window.estimate import estimate, unreported_estimate
from .window.features import EMPTY, Features, measure_all

if TYPE_CHECKING:  # prices are loaded when a compaction could pay
    from ..providers.models import Ratios

NAME = "price"
# The share of a summary that the model writes; the rest is quoted from the log.
WRITTEN = 0.6
# Events after which the account starts again. Their `since` is the last item in view.
RESTARTS = ("undo", "compaction_failed")


class Balance(msgspec.Struct, frozen=True):
    """The account before a call, in prices of one input token."""

    debt: float
    price: float  # of one compaction
    coming: float  # what each further call of this size adds to the debt
    gain: int  # tokens that a compaction could summarise

    def is_due(self, factor: float, least_gain: int, *, calls: int = 0) -> bool:
        """Return whether a compaction pays now, or after this many further calls."""
        return self.gain >= least_gain and self.debt + calls * self.coming > factor * self.price

    def sentence(self) -> str:
        return Text(
            "by price: reading the older messages again cost {debt:,.0f} input tokens since the last compaction, "
            "and a compaction costs {price:,.0f}",
            debt=self.debt,
            price=self.price,
        )


def weigh(*, context: int, base: int, tail: int, summary: int, excess: int, ratios: Ratios) -> Balance:
    """Return the balance. `excess` is the sum over the calls so far, without the coming one."""
    coming = max(0, context - base - tail - summary)
    return Balance(
        debt=ratios.read * (excess + coming),
        price=ratios.read * context + WRITTEN * ratios.output * summary + ratios.write * (summary + tail),
        coming=ratios.read * coming,
        gain=context - base - tail,
    )


class Account:
    """The account of one conversation. Everything but `base` and `summary` can be computed again from the view."""

    def __init__(self) -> None:
        self.base: int | None = None  # tokens of the first request that no compaction can remove
        self.summary: int | None = None  # tokens of the last summary and of the context restored after it
        self.known = False  # whether the checkpoint was read
        self.excess = 0
        self._key: tuple[object, ...] = ()
        self._view: View | None = None
        self._upto = 0  # items read so far
        self._start = 0  # items before this index were paid for before the account began
        self._answer: str | None = None
        self._seen: Features = EMPTY
        self._reminder: Features = EMPTY

    def update(self, c: Conversation) -> None:
        """Count the calls that were answered since the last update."""
        view, events = c.log.view, c.log.events
        key = (view.voided, *(events[name].uuid if name in events else "" for name in RESTARTS))
        if view is not self._view or key != self._key:
            # Items that the last compaction kept, and those before the last restart, do not count.
            newest = last_compaction(c)
            paid = set(newest.kept) if newest is not None else set()
            paid |= {str(events[name].data.get("since")) for name in RESTARTS if name in events}
            start = next((index + 1 for index in range(len(view.items) - 1, -1, -1) if view.items[index].uuid in paid), 0)
            self._view, self._key, self._start = view, key, start
            self._upto, self.excess, self._answer, self._seen, self._reminder = 0, 0, None, EMPTY, EMPTY
        for index in range(self._upto, len(view.items)):
            self._add(c, index, view.items[index])
        self._upto = len(view.items)

    def _add(self, c: Conversation, index: int, item: Item) -> None:
        answer = (item.key or item.uuid) if item.role == "assistant" and item.from_model else None
        if answer is not None and answer != self._answer:
            # Only a view that begins with the first request shows what that request held.
            if self.base is None and item.usage is not None and not c.start and last_compaction(c) is None:
                self.base = max(0, item.usage.prompt - estimate(self._seen) + estimate(self._reminder))
            if index >= self._start:
                usage, calibration = item.usage, c.count.calibration
                prompt = usage.prompt if usage is not None else unreported_estimate(self._seen, calibration)
                self.excess += max(0, prompt - self.base_of(c) - _tail(c) - self.summary_of(c))
        self._answer = answer
        features = measure_all(item.blocks, c.memo)
        self._seen += features
        if item.kind == FIRST_REMINDER:
            self._reminder += features

    def base_of(self, c: Conversation) -> int:
        return base_now(c) if self.base is None else self.base

    def summary_of(self, c: Conversation) -> int:
        return c.limits.scaled(c.policy.price.summary_tokens) if self.summary is None else self.summary


def account_of(c: Conversation) -> Account:
    """Return the account. The first time, its numbers are read from the checkpoint."""
    account = c.layer_state(Account)
    if not account.known:
        account.known = True
        raw = c.resumed.get(NAME)
        values: list[Any] = [raw.get(name) for name in ("base", "summary")] if isinstance(raw, dict) else [None, None]
        # Without valid numbers they are measured again.
        account.base, account.summary = (number if isinstance(number, int) and number >= 0 else None for number in values)
        c.checkpoint_with(NAME, lambda: {"debt": 0, "base": account.base, "summary": account.summary})
    return account


def _tail(c: Conversation) -> int:
    return c.limits.scaled(c.policy.compact.tail_min)


def balance(c: Conversation) -> Balance:
    from ..providers.models import price_ratios

    account = account_of(c)
    account.update(c)
    context = c.count.judged
    return weigh(
        context=context,
        base=account.base_of(c),
        tail=_tail(c),
        summary=account.summary_of(c),
        excess=account.excess,
        ratios=price_ratios(c.prompt.model, prompt=context, ttl=c.prompt.ttl),
    )


def _could_pay(c: Conversation) -> bool:
    """Return whether the account is worth a look. The first calls of a session end here."""
    if not c.policy.price.factor or not c.autocompact or c.settings.collapse:
        return False
    return c.count.judged - _tail(c) >= c.limits.scaled(c.policy.price.least_gain)


def due(c: Conversation) -> Balance | None:
    """Return the balance if a compaction pays now."""
    current = balance(c) if _could_pay(c) else None
    return current if current is not None and _is_due(c, current) else None


def is_near(c: Conversation) -> bool:
    """Return whether a compaction pays now, or so soon that its summary should be written ahead."""
    return _could_pay(c) and _is_due(c, balance(c), calls=c.policy.price.ahead_calls)


def _is_due(c: Conversation, current: Balance, *, calls: int = 0) -> bool:
    return current.is_due(c.policy.price.factor, c.limits.scaled(c.policy.price.least_gain), calls=calls)


def remember_summary(c: Conversation, tokens: int) -> None:
    """Remember the tokens of a summary and the context restored after it, before its checkpoint is written."""
    if c.policy.price.factor:
        account_of(c).summary = tokens


def last_item(c: Conversation) -> str:
    """Return the id that an event carries as `since` to start a new account."""
    return c.log.view.items[-1].uuid if c.log.view.items else ""
