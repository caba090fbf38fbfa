"""`lamina -p`: one prompt, one answer.

No permission can be asked for: such a call is denied with a message to the model, and the turn goes on. However the turn
ends, the transcript is complete and closed before the exit code is returned.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial as bind
from typing import TYPE_CHECKING, Any

from ..core.errors import Aborted, InputError, LaminaError, SettingError
from ..language.text import Shown, Text, Words, message
from .console import notice
from .options import find_home
from .output import JsonOutput, StdoutSink, TextOutput, TurnTally, describe_retry, ending_of
from .signals import StoppableProvider, StopRequest
from .start import OFFLINE, ChatOptions, find_newest, is_model_unset, load_chat_settings, open_agent, open_provider_again
from .terminal.language import detect_language, locale_language

if TYPE_CHECKING:
    from ..agent.agent import Agent

# How long background agents may take after the answer. Their cost is part of the result.
AGENT_SECONDS = 60.0
CUT_OFF = Text("The answer was cut off at the output limit.")


def answer(prompt: str, options: ChatOptions, *, form: str = "text", partial: bool = False) -> int:
    stop, tally, language = StopRequest(), TurnTally(), _language_of(prompt)
    tell = bind(_tell_in, language)
    sink = StdoutSink(stop)
    with stop.listening():
        home = find_home()
        settings = load_chat_settings(options)
        tell(*(finding.text for finding in settings.findings))
        again = find_newest(options, home) if options.go_on else options.resume
        provider = StoppableProvider(open_provider_again(options, settings, home, again), stop)
        if provider.name == "offline" and again is None and is_model_unset(options, settings):
            tell(OFFLINE)
        out: TextOutput | JsonOutput = TextOutput(sink)
        if form != "text":
            out = JsonOutput(sink, provider, tally, lines=form == "stream-json", partial=partial, billing=settings.billing)

        def heard(event: dict[str, Any]) -> None:
            tally.heard(event)
            out.event(event)
            if event["type"] == "retry":
                tell(describe_retry(event))

        with closing(provider), open_agent(options, settings, provider, home=home, resume=again, on_event=heard) as agent:
            told = len(agent.session.notices)
            tell(*agent.session.notices)
            out.begin(agent)
            try:
                code = _turn(agent, prompt, out, stop, tell)
            finally:
                tell(*agent.session.notices[told:])
        if agent.session.status.write_error:
            tell(agent.session.status.write_error)
    if sink.trouble:
        tell(
            Text("Standard output: {trouble}. The answer printed is incomplete; the session has all of it.", trouble=sink.trouble)
        )
        return 1
    return code


def _language_of(prompt: str) -> Shown:
    """Return the language of the notices: that of the prompt, where standard error can show it."""
    encoding = sys.stderr.encoding or "utf-8"  # a stream without an encoding takes every character
    return detect_language(prompt, locale_language(os.environ)) if encoding.lower().startswith("utf") else "en"


def _tell_in(language: Shown, *texts: str) -> None:
    notice(*map(Words(language), texts))


def _turn(agent: Agent, prompt: str, out: TextOutput | JsonOutput, stop: StopRequest, tell: Callable[..., None]) -> int:
    try:
        with stop.turn(agent.abort):
            done = agent.run(prompt)
            _end_agents(agent, AGENT_SECONDS)
    except Aborted as stopped:
        _end_agents(agent, 0.0)
        out.end("error_during_execution", str(stopped))
        if stop.code:
            tell("Stopped.")
        return stop.code
    except LaminaError as error:
        _end_agents(agent, 0.0)
        out.end("error_during_execution", str(error))
        tell(message(error))
        return 2 if isinstance(error, InputError | SettingError) else 1
    ending, words = ending_of(done)
    out.end(ending, words)
    tell(*done.notices, *([CUT_OFF] if done.ended == "cut off" else ()))
    if ending != "success":
        tell(words)
    if stop.requested:  # while agents were waited for
        return stop.code
    return 0 if ending == "success" else 1


def _end_agents(agent: Agent, seconds: float) -> None:
    """Wait for background agents, then stop them, so that the result has their cost."""
    if agent.agents is not None:
        agent.agents.close(seconds)
