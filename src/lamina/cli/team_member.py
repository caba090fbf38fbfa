"""`lamina team run`: a member of a team, in its own process.

It has its own session, transcript and mailbox. It works on its task, then runs a turn whenever messages arrive, until it is
asked to end (SIGTERM) or has used up its turns. No permission can be asked for. Invariants: what it does is in `member.json` for
other processes; however it ends, its transcript is complete and its unread messages stay in the mailbox; what fails in one turn is
recorded, and the next message is answered all the same.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..core.blocks import Wire
from ..core.errors import Aborted, InputError, LaminaError, SettingError
from ..disk.home.mailbox import MailboxAddress
from ..disk.home.team_files import MemberPlan, MemberState, MemberStatus, Team, see_member, write_member
from ..language.wording import counted, shorten
from ..layers.l7_agents.team import member_prompt
from ..layers.l7_agents.types import AGENT, SEND, AgentType
from ..providers import read_spec
from ..tools.permissions.request import read_mode
from .agents import load_types
from .console import sentence
from .signals import StoppableProvider, StopRequest
from .start import ChatOptions, load_chat_settings, open_agent, open_provider_again
from .team_process import process_state
from .terminal.calls import describe_call

if TYPE_CHECKING:
    from ..agent.agent import Agent
    from ..providers import Provider

# Nobody notices half a second before a message is read, and a stat of one file twice a second costs nothing.
POLL = 0.5
# Background work gets this long when the member is stopped; the transcript has everything else.
CLOSE_SECONDS = 5.0
MOST_SHOWN = 200
# Events of the member's own turns; those of its agents and layers have other names.
_OF_A_TURN = ("message_start", "content_block_delta", "answer")


def member_options(home: Path, team: Team, member: MemberPlan) -> tuple[ChatOptions, AgentType | None]:
    """Return the options of the member's session, and its agent type. Tools that the type does not have are denied."""
    cwd = Path(team.cwd)
    if not cwd.is_dir():
        raise InputError("team", f"its directory {team.cwd} does not exist", "create it, or start the team elsewhere")
    kind = load_types(cwd, home).find(member.type) if member.type else None
    if member.type and kind is None:
        raise InputError("member", f"agent type {member.type!r} does not exist", "run `lamina agents` to list the types")
    last = see_member(home, MailboxAddress(member.name, team.name)).state.transcript
    options = ChatOptions(
        cwd,
        model=team.model or None,
        resume=last if last and Path(last).is_file() else None,
        mode=read_mode(team.mode),
        deny=_denied(kind),
        mailbox=f"{member.name}@{team.name}",
    )
    return options, kind


def _denied(kind: AgentType | None) -> tuple[str, ...]:
    if kind is None or kind.tools is None:
        return ()
    from ..tools.registry import builtin_tools

    return tuple(name for name in (*(tool.name for tool in builtin_tools()), AGENT) if name not in (*kind.tools, SEND))


class Member:
    def __init__(self, home: Path, team: Team, plan: MemberPlan, stop: StopRequest) -> None:
        self._home = home
        self._team = team
        self._plan = plan
        self._stop = stop
        self._address = MailboxAddress(plan.name, team.name)
        before = see_member(home, self._address).state
        self._state: MemberState = process_state(os.getpid(), before)
        self._cwd = Path(team.cwd)

    def run(self) -> int:
        write_member(self._home, self._address, self._state)
        status: MemberStatus = "stopped"
        why = ""
        try:
            status, why = self._serve()
        except LaminaError as error:
            status, why = "failed", str(error)
            raise
        except Exception as error:
            status, why = "failed", f"{type(error).__name__}: {error}"
            raise
        finally:
            self._say(status, why=why)
        return self._stop.code

    def _serve(self) -> tuple[MemberStatus, str]:
        options, kind = member_options(self._home, self._team, self._plan)
        settings = load_chat_settings(options)
        again = options.resume
        provider = self._provider(open_provider_again(options, settings, self._home, again), kind, fixed=bool(again))
        system = {"system": kind.prompt} if kind is not None else {}
        agent = open_agent(options, settings, provider, home=self._home, resume=again, on_event=self._heard, **system)
        try:
            if agent.mail is None or not agent.mail.has_mailbox:
                raise InputError("mailbox", f"{options.mailbox} is used by another session", "close that session first")
            self._state = replace(self._state, transcript=str(agent.session.path or ""))
            return self._work(agent, begun=again is not None)
        finally:
            agent.close(CLOSE_SECONDS)

    def _provider(self, provider: Provider, kind: AgentType | None, *, fixed: bool) -> StoppableProvider:
        """Return the provider, with the model of the member's type if that is one of this provider and nothing else was chosen."""
        change = getattr(provider, "with_model", None)
        if kind is not None and kind.model is not None and change is not None and not (fixed or self._team.model):
            with suppress(SettingError):
                named = read_spec(kind.model)
                provider = change(named.model) if named.provider == provider.name else provider
        return StoppableProvider(provider, self._stop)

    def _work(self, agent: Agent, *, begun: bool) -> tuple[MemberStatus, str]:
        """Run turns until the member is stopped or has used them up."""
        self._say("waiting")
        while not self._stop.leaving:
            if self._state.turns >= self._team.turns:
                return "ended", f"it has used up its {counted(self._team.turns, 'turn')}"
            first = not begun and (self._plan.prompt or (agent.mail is not None and agent.mail.waits()))
            begun = begun or bool(first)
            try:
                with self._stop.turn(agent.abort):
                    done = agent.run(self._first_message()) if first else agent.answer_news() if begun else None
                if done is not None:
                    self._say("waiting", turns=self._state.turns + 1, doing=shorten(sentence(done.text), MOST_SHOWN))
            except Aborted:
                continue
            except LaminaError as error:
                self._say("waiting", turns=self._state.turns + 1, why=sentence(str(error)))
            time.sleep(POLL)
        return "stopped", ""

    def _first_message(self) -> list[Wire]:
        others = [one.name for one in self._team.members if one.name != self._plan.name]
        return member_prompt(self._plan.name, self._team.name, others, self._plan.prompt)

    def _heard(self, event: dict[str, Any]) -> None:
        if event["type"] == "tool_call":
            self._say("working", doing=describe_call(event["name"], event["input"], self._cwd, self._home))
        elif event["type"] in _OF_A_TURN and self._state.status != "working":
            self._say("working")

    def _say(self, status: MemberStatus, *, doing: str | None = None, why: str = "", turns: int | None = None) -> None:
        """Record the state. `since` is the time of the last change between working and waiting."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        old = self._state
        self._state = replace(
            old,
            status=status,
            since=old.since if status == old.status else now,
            doing=old.doing if doing is None else doing,
            why=why,
            turns=old.turns if turns is None else turns,
        )
        if self._state != old:
            write_member(self._home, self._address, self._state)


def run_member(home: Path, team: Team, plan: MemberPlan) -> int:
    stop = StopRequest()
    with stop.listening():
        return Member(home, team, plan, stop).run()
