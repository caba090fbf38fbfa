"""One prompt, one answer: `lamina -p`.

Nobody is there to be asked: a call that would need a yes is denied with a sentence for the model, and the turn goes on. Whatever ends
the turn, the transcript is whole and closed before the exit code is returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import Aborted, InputError, LaminaError, SettingError
from .output import JsonOutput, Output, Tally, TextOutput, ending_of
from .signals import Stop
from .start import OFFLINE, Wish, home_of, newest, nobody_chosen, notice, open_agent, provider_for, settings_for
from .stdout import Sink

if TYPE_CHECKING:
    from ..agent.agent import Agent, TurnResult

CUT_OFF = "the answer was cut off at its limit"


def answer(prompt: str, wish: Wish, *, form: str = "text", partial: bool = False) -> int:
    stop, tally = Stop(), Tally()
    sink = Sink(stop)
    with stop.listening():
        home = home_of()
        settings = settings_for(wish, home)
        for finding in settings.findings:
            notice(finding.text)
        again = newest(wish, home) if wish.go_on else wish.resume
        provider = provider_for(wish.model, settings, stop)
        if provider.name == "offline" and again is None and nobody_chosen(wish, settings):
            notice(OFFLINE)
        out: Output = TextOutput(sink)
        if form != "text":
            out = JsonOutput(sink, provider, tally, lines=form == "stream-json", partial=partial)

        def heard(event: dict[str, Any]) -> None:
            tally.heard(event)
            out.event(event)

        with open_agent(wish, settings, provider, home=home, resume=again, on_event=heard) as agent:
            told = _told(agent, 0)
            out.begin(agent)
            try:
                code = _turn(agent, prompt, out, stop)
            finally:
                _told(agent, told)
        if agent.session.status.write_error:
            notice(agent.session.status.write_error)
    if sink.trouble:
        notice(f"standard output: {sink.trouble}, so the answer is not there as a whole; the session has it")
        return 1
    return code


def _told(agent: Agent, already: int) -> int:
    """What the session has to tell a person beyond what it told already: so many notices there are now."""
    for text in agent.session.notices[already:]:
        notice(text)
    return len(agent.session.notices)


def _turn(agent: Agent, prompt: str, out: Output, stop: Stop) -> int:
    try:
        with stop.turn(agent.abort):
            done = agent.run(prompt)
    except Aborted as stopped:
        out.end("error_during_execution", str(stopped))
        if stop.code:
            notice("stopped")
        return stop.code
    except LaminaError as error:
        out.end("error_during_execution", str(error))
        notice(str(error))
        return 2 if isinstance(error, InputError | SettingError) else 1
    ending, words = ending_of(done)
    out.end(ending, words)
    for text in _remarks(done):
        notice(text)
    if ending != "success":
        notice(words)
    return 0 if ending == "success" else 1


def _remarks(done: TurnResult) -> list[str]:
    return [*done.notices, *([CUT_OFF] if done.ended == "cut off" else ())]
