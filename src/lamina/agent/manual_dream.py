"""A dream by hand (D5): the same run without a conversation, for the command line and for programs.

    outcome = run_by_hand("offline", cwd=".", heard=lambda record: print(record.phase))

The gates of time and sessions do not count, nor does whether memory is put in order by itself; the lock, the bounds, the copy and the undo
are those of any dream. The thread that calls waits; `abort` ends it, and then memory is as it was.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

from ..conversation.prompt import Prompt
from ..core.effects import Ask
from ..core.errors import Aborted, PathRefused
from ..core.reply import Reply
from ..core.settings import Settings
from ..disk.paths import RootDir, slug
from ..disk.settings_files import lamina_home, user_home
from ..fork.handover import Handover
from ..fork.model_call import ask_until
from ..fork.tool_runner import Desk
from ..layers.l6_dream.gates import DreamStop, is_empty, places
from ..layers.l6_dream.run import DreamOrder, DreamOutcome, Heard, dream, unheard
from ..layers.l6_dream.step import NOTHING, at_desk, ours
from ..memory.instructions import instructions
from ..memory.store.modes import plan_write
from ..memory.store.scopes import Place, memory_place, project_root
from ..permissions.decision import PermissionContext, may_read, read_rules
from ..prompt.system import system_prompt, with_section
from ..providers import Provider
from ..session.offline_table import offline
from ..session.provider import provider_for
from ..tools.registry import builtin_tools
from ..tools.tool import Context, definition

# A long memory fits, and every known model can say as much.
MAX_TOKENS = 8_000


def run_by_hand(
    provider: str | Provider = "offline",
    *,
    cwd: str | Path = ".",
    home: str | Path | None = None,
    settings: Settings | None = None,
    environ: Mapping[str, str] | None = None,
    abort: Event | None = None,
    heard: Heard = unheard,
) -> DreamOutcome:
    """Put the memory of the project at `cwd` in order now. `heard` gets the record after every answer, from this thread."""
    where, chosen = Path(cwd).resolve(), settings if settings is not None else Settings()
    own = Path(home).expanduser().absolute() if home is not None else lamina_home(os.environ)
    if own is None:
        raise PathRefused("memory", "no home directory is known", "set LAMINA_HOME or give a home")
    place = memory_place(cwd=where, home=own, settings=chosen, user_home=user_home(os.environ) or own)
    if not chosen.memory or plan_write(chosen.memory_mode["private"], "dream") == "refuse":
        return DreamOutcome(None, DreamStop("mode", "private memory is not written to"))
    if not place.path.is_dir() or _is_empty(place):
        return DreamOutcome(None, DreamStop("nothing", NOTHING))
    answers = provider_for(provider, None)
    order = _order(answers, place, where, own, chosen)
    desk = _desk(order, environ if environ is not None else os.environ)
    side = offline() if answers.name == "offline" else answers

    def ask(asked: Ask, ended: Event) -> Reply:
        reply = ask_until(ended, side, asked, asked.on_event or _unheard)
        if reply is None:
            raise Aborted
        return reply

    return dream(order, at_desk(desk, ask, order), abort or Event(), heard)


def _is_empty(place: Place) -> bool:
    with RootDir.open(place.path, create=False) as root:
        return is_empty(root)


def _unheard(_: object) -> None:
    pass


def _order(provider: Provider, place: Place, cwd: Path, home: Path, settings: Settings) -> DreamOrder:
    with RootDir.open(place.path, create=False) as root:
        past = places(root, home / "projects" / slug(cwd)) if settings.past_search else ()
    return DreamOrder(
        handover=_handover(provider, place, cwd, settings),
        place=place,
        settings=settings,
        home=home,
        project=project_root(cwd),
        cwd=cwd,
        today=datetime.now(UTC).astimezone().date().isoformat(),
        by="hand",
        transcripts=tuple(each for each in past if ours(each, home)),
    )


def _handover(provider: Provider, place: Place, cwd: Path, settings: Settings) -> Handover:
    """The prompt an agent has here: system text, tools, and what it is told of memory."""
    tools = builtin_tools()
    names = [tool.name for tool in tools]
    section = instructions(
        place=place,
        mode=settings.memory_mode["private"],
        tools=names,
        index=False,
        past=settings.past_search,
        transcripts=None,
        extra=settings.extra_guidelines,
    )
    system = with_section(system_prompt(base=None, cwd=cwd, tools=names, platform=sys.platform), section)
    ttl = "5m" if provider.capabilities.wire == "messages" else None
    prompt = Prompt(provider.model, MAX_TOKENS, system, [definition(tool) for tool in tools], {}, ttl)
    return Handover(prompt.head, (), {}, prompt.base, 0, b"", ttl)


def _desk(order: DreamOrder, environ: Mapping[str, str]) -> Desk:
    """What it may do is a fork's (X6): nobody is asked."""
    tools, rules = builtin_tools(), read_rules(order.settings.permissions)
    names = {tool.name for tool in tools if tool.read_only}
    team = order.place.team
    permission = PermissionContext(
        cwd=order.cwd,
        roots=(team,) if team is not None else (),
        memory_dir=order.place.path,
        tool_is_read_only=lambda name: name in names,
        lamina_home=order.home,
        home=Path(environ["HOME"]) if environ.get("HOME") else None,
    )
    context = Context(
        cwd=order.cwd,
        roots=(order.cwd,),
        environ=environ,
        may_read=lambda path: may_read(path, rules=rules, context=permission),
    )
    return Desk(tools=tuple(tools), context=context, permission=permission, mode=lambda: "read-only", rules=lambda: rules)
