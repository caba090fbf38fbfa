"""Starts a dream by hand: the same run without a conversation, for the command line and for programs.

    outcome = run_by_hand("offline", cwd=".", heard=lambda record: print(record.phase))

The gates for time and sessions do not apply, nor does the switch for automatic dreams. The lock, the bounds, the copy and the undo are
those of any dream. The calling thread waits; `abort` stops the dream and leaves memory unchanged.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from msgspec.structs import replace

from ..core.effects import Ask
from ..core.errors import PathRefused
from ..core.reply import Reply
from ..core.settings.resolution import Settings
from ..disk.paths.project import slug
from ..disk.settings_files import lamina_home, user_home
from ..fork.background import LOCAL, Meter
from ..fork.handover import Handover
from ..fork.model_call import ask_until
from ..layers.l6_dream.gates import check_empty, find_off, find_stop, searchable_places
from ..layers.l6_dream.run import DreamOrder, DreamOutcome, Heard, run_dream
from ..layers.l6_dream.step import dream_tool_runner, own_handover, own_tool_runner
from ..memory.store.scopes import MemoryLocation, locate_memory, project_root
from ..prompt.system import system_prompt
from ..providers import Provider
from ..session.provider import offline, provider_for
from ..tools.hooks.run import HookRunner
from ..tools.registry import builtin_tools


def run_by_hand(
    provider: str | Provider = "offline",
    *,
    cwd: str | Path = ".",
    home: str | Path | None = None,
    settings: Settings | None = None,
    environ: Mapping[str, str] | None = None,
    abort: Event | None = None,
    heard: Heard = lambda _: None,
) -> DreamOutcome:
    """Tidy up the memory of the project at `cwd` now. `heard` gets the record at the start and after every answer, in this thread."""
    where, chosen = Path(cwd).resolve(), settings if settings is not None else Settings()
    own = Path(home).expanduser().absolute() if home is not None else lamina_home(os.environ)
    if own is None:
        raise PathRefused("memory", "no home directory found", "set LAMINA_HOME or pass home=")
    place = locate_memory(cwd=where, home=own, settings=chosen, user_home=user_home(os.environ) or own)
    mode = chosen.memory_mode["private"]
    stop = find_off(chosen) or find_stop(on=True, remote=False, lent=True, mode=mode) or check_empty(place.path)
    if stop is not None:
        return DreamOutcome(None, stop)
    answers = provider_for(provider, None)
    side = offline() if answers.name == "offline" else answers
    notices: list[str] = []
    given = environ if environ is not None else os.environ
    runner = own_tool_runner(builtin_tools(), cwd=where, environ=given, home=own, place=place, settings=chosen)
    tool_runner = replace(runner, hooks=_hooks(chosen, where, given, notices))

    def ask(asked: Ask, ended: Event) -> Reply:
        return ask_until(ended, side, asked)

    # Its calls are in the ledger and use up the day's budget. The budget does not stop it: the user asked for it.
    counted = ask if side.model == LOCAL else Meter(ask, home=own, project=str(where), session="").counted
    order = DreamOrder(
        handover=_handover(answers, place, where, chosen),
        place=place,
        settings=chosen,
        home=own,
        project=project_root(where),
        cwd=where,
        today=datetime.now(UTC).astimezone().date().isoformat(),
        by="hand",
        transcripts=searchable_places(place.path, own / "projects" / slug(where), own) if chosen.past_search else (),
    )
    outcome = run_dream(order, dream_tool_runner(tool_runner, counted, where), abort or Event(), heard)
    return outcome._replace(notices=tuple(dict.fromkeys(notices)))


def _hooks(settings: Settings, cwd: Path, environ: Mapping[str, str], notices: list[str]) -> HookRunner:
    """Return the hooks for the calls of the dream, which belong to no session."""
    return HookRunner(
        hooks=lambda: settings.hooks,
        about=lambda: {"session_id": "", "transcript_path": "", "permission_mode": "plan"},
        cwd=cwd,
        environ={**environ, **settings.env, "CLAUDE_PROJECT_DIR": str(cwd)},
        notify=lambda said: notices.extend((*said.messages, *said.faults)),
    )


def _handover(provider: Provider, place: MemoryLocation, cwd: Path, settings: Settings) -> Handover:
    """Return the prompt that an agent has here: system text, tools and the memory section."""
    tools = builtin_tools()
    system = system_prompt(base=None, cwd=cwd, tools=[tool.name for tool in tools], platform=sys.platform)
    ttl = "5m" if provider.capabilities.wire == "messages" else None
    return replace(own_handover(provider.model, ttl, tools, place, settings, system), broken=None)
