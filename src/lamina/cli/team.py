"""`lamina team`: agents that work together, each in its own process with its own session, transcript and mailbox.

The processes go on when this command ends. It reads the members' states from their files, and asks the kernel whether their processes
are alive (disk/home/team_files.py).
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import click

from ..core.errors import DiskError, InputError
from ..disk.home.mailbox import Mailbox, MailboxAddress, deliver, read_address
from ..disk.home.team_files import (
    MOST_MEMBERS,
    MemberPlan,
    Team,
    find_team,
    last_output,
    list_teams,
    read_team,
    see_member,
    write_team,
)
from ..language.wording import shorten
from ..layers.l7_agents.messages import MOST_TEXT
from . import options
from .agents import SENDER, load_types, since_text
from .chat import FORMATS, MODES
from .console import notice, print_result, print_table, printable, waiting
from .options import CommandGroup, need_home
from .team_process import Ending, start_member, stop_member, wait_for_start
from .team_view import MOST_SHOWN, list_messages, show_team

# Turns of one member: far more than a task takes, and an end for members that write to each other forever.
TURNS = 100
EVERYONE = "all"
SENTENCES: dict[Ending, str] = {
    "stopped": "{name} stopped.",
    "killed": "{name} did not end when asked, and was killed.",
    "was not running": "{name} was not running.",
    "in use": "{name} is in use by another session, which was left alone.",
    "still running": "{name} could not be ended.",
}


@click.group("team", cls=CommandGroup, invoke_without_command=True)
@options.as_json
@click.pass_context
def team_command(ctx: click.Context, as_json: bool) -> None:
    """Run agents that work together, each in its own process, and list the teams."""
    if ctx.invoked_subcommand is not None:
        ctx.default_map = {name: {"as_json": as_json} for name in team_command.commands}
        return
    _list(as_json)


@team_command.command("list")
@options.as_json
def list_command(as_json: bool) -> None:
    """List the teams and how many of their members run."""
    _list(as_json)


def _list(as_json: bool) -> None:
    home, rows = need_home(), []
    for name in list_teams(home):
        try:
            team = read_team(home, name)
        except DiskError as error:
            notice(str(error))
            continue
        running = sum(see_member(home, MailboxAddress(one.name, name)).owner != 0 for one in team.members)
        rows.append({"name": name, "members": len(team.members), "running": running, "cwd": team.cwd, "created": team.created})
    if as_json or not rows:
        none = 'There are no teams. Start one: lamina team start NAME --member research-agent="Find out why the build is slow"'
        print_result(rows, (), as_json=as_json, none=none)
        return
    header = ("team", "running", "since", "directory")
    print_table(
        header, [(str(r["name"]), f"{r['running']} of {r['members']}", since_text(r["created"]), str(r["cwd"])) for r in rows]
    )


@team_command.command("start")
@click.argument("name")
@click.option(
    "--member",
    "members",
    metavar="NAME=PROMPT",
    multiple=True,
    help="A member and its task: a prompt, the name of an agent type, or TYPE: PROMPT. May be repeated.",
)
@click.option("--replace", is_flag=True, help="Replace the members of a team that was stopped.")
@click.option("--model", metavar="M", help="Model of all members: anthropic:MODEL, openai:MODEL or offline.")
@click.option(
    "--permission-mode", "mode", type=click.Choice(MODES), help="Permission mode: which tool calls run. The others are denied."
)
@click.option(
    "--turns", type=click.IntRange(min=1), default=TURNS, show_default=True, help="Maximum number of turns of each member."
)
@options.cwd("Working directory of the members.")
@options.as_json
def start_command(
    name: str, members: tuple[str, ...], replace: bool, model: str | None, mode: str | None, turns: int, cwd: Path, as_json: bool
) -> int:
    """Start the members of a team, each in its own process.

    Without --member, those of an earlier team that do not run are started again where they stopped.
    """
    home = need_home()
    team = find_team(home, name)
    if members:
        _refuse_existing(home, team, replace=replace)
        if not is_encodable(str(cwd)):
            raise click.UsageError("The name of the working directory is not valid UTF-8. Use --cwd with another one.")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        team = Team(name, str(cwd), now, _read_members(members, name, cwd, home), model or "", mode or "", turns)
        write_team(home, team)
    elif team is None:
        raise click.UsageError(f"Team {printable(name)!r} not found. Add --member NAME=PROMPT for each member to start it.")
    resting = [one for one in team.members if not see_member(home, MailboxAddress(one.name, name)).owner]
    if not resting:
        raise click.UsageError(f"Team {name} is already running ({team.names}). Run `lamina team show {name}` to see it.")
    failed = _start(home, team, resting)
    show_team(home, team, as_json)
    notice(*failed)
    return 1 if failed else 0


def is_encodable(text: str) -> bool:
    return text == text.encode("utf-8", "replace").decode()


def _refuse_existing(home: Path, team: Team | None, *, replace: bool) -> None:
    if team is None:
        return
    running = [one.name for one in team.members if see_member(home, MailboxAddress(one.name, team.name)).owner]
    if running:
        raise click.UsageError(f"Team {team.name} is running ({', '.join(running)}). Run `lamina team stop {team.name}` first.")
    if not replace:
        raise click.UsageError(
            f"Team {team.name} exists ({team.names}). Start it again without --member, or add --replace for new members."
        )


def _read_members(given: tuple[str, ...], team: str, cwd: Path, home: Path) -> tuple[MemberPlan, ...]:
    if len(given) > MOST_MEMBERS:
        raise click.UsageError(f"A team has at most {MOST_MEMBERS} members, not {len(given)}.")
    catalog = load_types(cwd, home)
    found: list[MemberPlan] = []
    for text in given:
        name, equals, task = text.encode("utf-8", "replace").decode().partition("=")  # a shell may pass half a character
        if len(task) > MOST_TEXT:
            raise click.UsageError(f"The prompt of {printable(name)} has more than {MOST_TEXT:,} characters. Put it into a file.")
        if not equals or not task.strip():
            raise click.UsageError(f"--member {printable(shorten(text, 80))!r} is not NAME=PROMPT.")
        address = read_address(f"{name}@{team}")
        if address.name in [one.name for one in found]:
            raise click.UsageError(f"--member {address.name} is given twice. Each member needs its own name.")
        head, colon, rest = task.partition(":")
        if catalog.find(task.strip()) is not None:
            found.append(MemberPlan(address.name, "", task.strip()))
        elif colon and catalog.find(head.strip()) is not None:
            found.append(MemberPlan(address.name, rest.strip(), head.strip()))
        else:
            found.append(MemberPlan(address.name, task.strip()))
    return tuple(found)


def _start(home: Path, team: Team, members: list[MemberPlan]) -> list[str]:
    """Start the processes, wait until each has opened its session, and return a sentence for each that ended at once."""
    started = []
    for member in members:
        address = MailboxAddress(member.name, team.name)
        if (box := Mailbox.open(home, address)) is not None:
            box.close()  # it exists now, so the others can write to it at once
        started.append((address, start_member(home, address, team.cwd if Path(team.cwd).is_dir() else str(home))))
    failed = []
    with waiting("Starting the team"):
        ended = [(address, process) for address, process in started if wait_for_start(home, address, process) is None]
    for address, process in ended:
        state = see_member(home, address).state
        why = (state.why if state.pid == process.pid else "") or last_output(home, address) or "it gave no reason"
        failed.append(f"Member {address.name} ended at once: {why.removeprefix('lamina: ')}")
    return failed


@team_command.command("show")
@click.argument("name")
@options.as_json
def show_command(name: str, as_json: bool) -> None:
    """Show the members of a team: state, unread messages and what each is doing."""
    home = need_home()
    show_team(home, read_team(home, name), as_json)


@team_command.command("mail")
@click.argument("name")
@click.argument("member", required=False)
@options.as_json
def mail_command(name: str, member: str | None, as_json: bool) -> None:
    """Show the messages of a team's members: the unread ones with their text, then those already read."""
    home = need_home()
    team = read_team(home, name)
    members = [team.find(member)] if member is not None else team.members
    rows = [row for one in members for row in list_messages(home, MailboxAddress(one.name, name))]
    if as_json or not rows:
        print_result(rows, (), as_json=as_json, none="No messages.")
        return
    cells = [(row["to"], row["state"], row["from"], row["id"], shorten(row["text"] or "", MOST_SHOWN)) for row in rows]
    print_table(("to", "state", "from", "message", "text"), cells)


@team_command.command("send")
@click.argument("name")
@click.argument("member")
@click.argument("text")
@options.reports
def send_command(name: str, member: str, text: str) -> options.Reported:
    """Send TEXT to MEMBER of a team, or to all of them. One that does not run reads it when it is started again."""
    from ..layers.l7_agents.messages import AgentMessage, encode_message

    home = need_home()
    team = read_team(home, name)
    if not text.strip() or len(text) > MOST_TEXT:
        raise click.UsageError(f"TEXT must not be empty and may have at most {MOST_TEXT:,} characters.")
    to = [one.name for one in team.members] if member == EVERYONE else [team.find(member).name]
    sent = {}
    for each in to:
        letter = AgentMessage.new(SENDER, text.strip())
        deliver(home, MailboxAddress(each, name), encode_message(letter))
        sent[each] = letter.id
    return {"team": name, "messages": sent}, [f"Sent to {each}@{name} ({sent[each]})." for each in to]


@team_command.command("stop")
@click.argument("name")
@click.argument("member", required=False)
@options.as_json
def stop_command(name: str, member: str | None, as_json: bool) -> int:
    """Stop the members of a team, or one MEMBER. Transcripts and unread messages are kept."""
    home = need_home()
    team = read_team(home, name)
    members = [team.find(member)] if member is not None else team.members
    with waiting("Stopping the team"), ThreadPoolExecutor(MOST_MEMBERS) as pool:  # all are asked at once
        how = pool.map(lambda one: stop_member(home, MailboxAddress(one.name, name)), members)
        ended = {one.name: each for one, each in zip(members, how, strict=True)}
    lines = [SENTENCES[result].format(name=each) for each, result in ended.items()]
    print_result({"team": name, "members": ended}, lines, as_json=as_json)
    return 1 if "still running" in ended.values() else 0


@team_command.command("join")
@click.argument("name")
@click.argument("member")
@click.option("-p", "--print", "prompt", metavar="PROMPT", help="Answer PROMPT and exit.")
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True, help="Output format of -p.")
def join_command(name: str, member: str, prompt: str | None, output_format: str) -> int:
    """Chat as MEMBER: with its session and its mailbox. Its process pauses meanwhile and continues afterwards."""
    from .team_member import member_options

    home = need_home()
    team = read_team(home, name)
    plan = team.find(member)
    if prompt is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("A chat needs a terminal. Add -p PROMPT to get one answer.")
    ended = stop_member(home, MailboxAddress(member, name))
    if ended in ("in use", "still running"):
        raise InputError("member", SENTENCES[ended].format(name=member).rstrip("."), f"run `lamina team show {name}`")
    try:
        chosen, _ = member_options(home, team, plan)
        if prompt is not None:
            from .print_mode import answer

            return answer(prompt, chosen, form=output_format)
        from .terminal.loop import chat

        return chat(chosen)
    finally:
        if ended != "was not running":
            notice(*_start(home, team, [plan]))


@team_command.command("run", hidden=True)
@click.argument("name")
@click.argument("member")
def run_command(name: str, member: str) -> int:
    """Run a member in this process. `lamina team start` calls this."""
    from .team_member import run_member

    home = need_home()
    team = read_team(home, name)
    return run_member(home, team, team.find(member))
