"""Sessions at work: whole turns, compactions as a layer would enter them, and rows of random steps."""

from __future__ import annotations

import copy

from tests.session.plain import Session

from lamina.conversation.compaction.commit import CompactionRequest, Replacement, commit
from lamina.conversation.compaction.restoration import Restoration
from lamina.core.errors import InputError, NothingToSend
from lamina.session.base import conversation_of

from .words import Wire, answer, call, cut_off, text, thinking


def turns(session: Session, *words: str) -> list[Wire]:
    """A question and an answer for each of these; the requests."""
    sent = []
    for number, said_now in enumerate(words):
        session.add_user(said_now)
        sent.append(session.before_call())
        session.after_call(answer(f"{said_now}{number}", f"about {said_now}"))
    return sent


def compact(session: Session, summary: str, kept: tuple[str, ...] = ()) -> str:
    """A compaction as a layer would commit it; the id of its boundary."""
    c = conversation_of(session)
    uuid, _, time = c.head()
    items = tuple(c.log.view.items)
    gone = tuple(item.uuid for item in items if item.uuid not in kept)
    new = Replacement(uuid, f"summary-of-{uuid}", summary, "summary", gone, Restoration((), {}, (), (), ()))
    return commit(c, items, new, CompactionRequest("manual", time, c.count.tokens)).boundary


class Play:
    """Carries out steps and keeps every request, as it was and as it is."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.sent: list[Wire] = []
        self.copies: list[Wire] = []
        self.announced: list[int] = []
        self.calls: list[str] = []
        self.last: Wire | None = None

    def step(self, kind: str, number: int) -> None:
        name = f"{len(self.calls)}-{number}"
        match kind:
            case "user":
                self.session.add_user(f"words {number}")
            case "answer" | "cut":
                blocks = [thinking("hm"), text(f"answer {name}"), call(f"c{name}a"), call(f"c{name}b"), thinking("?", "")][
                    number % 5 :
                ]
                self.last = (cut_off if kind == "cut" else answer)(f"m{name}", *blocks)
                self.calls += [block["id"] for block in blocks if block["type"] == "tool_use"] or [""]
                self.session.after_call(self.last)
            case "again" if self.last is not None:
                self.session.after_call(self.last)
            case "result" if self.session.status.open_calls:
                calls = self.session.status.open_calls
                self.session.add_tool_result(calls[number % len(calls)], f"result {number}")
            case "late" if self.calls:
                self._late(self.calls[number % len(self.calls)])
            case "ask":
                self._ask()
            case _:
                pass

    def _late(self, tool_use_id: str) -> None:
        try:
            self.session.add_tool_result(tool_use_id, "late")
        except InputError:
            assert tool_use_id not in self.session.status.open_calls

    def _ask(self) -> None:
        try:
            request = self.session.before_call()
        except NothingToSend:
            return
        self.sent.append(request)
        self.copies.append(copy.deepcopy(request))
        self.announced.append(self.session.status.cache_breaks)
