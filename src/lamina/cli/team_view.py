"""What `lamina team` shows: the state of a team's members, and their messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..disk.home.mailbox import MailboxAddress
from ..disk.home.team_files import MemberPlan, Team, read_unread, see_member
from ..language.wording import counted, shorten
from .agents import since_text
from .console import notice, print_result, print_table

# Number of read messages listed for each member.
MOST_READ = 50
MOST_SHOWN = 100


def show_team(home: Path, team: Team, as_json: bool) -> None:
    rows = [_row(home, team, one) for one in team.members]
    if as_json:
        print_result({"name": team.name, "cwd": team.cwd, "created": team.created, "members": rows}, (), as_json=True)
        return
    header = ("member", "state", "since", "turns", "unread", "doing")
    cells = [
        (row["name"], row["status"], since_text(row["since"]), str(row["turns"]), str(row["unread"]), row["why"] or row["doing"])
        for row in rows
    ]
    print_table(header, [tuple(shorten(str(cell), MOST_SHOWN) for cell in row) for row in cells], right=("turns", "unread"))


def _row(home: Path, team: Team, plan: MemberPlan) -> dict[str, Any]:
    address = MailboxAddress(plan.name, team.name)
    seen, unread = see_member(home, address), read_unread(home, address)
    state = seen.state
    if unread.invalid:
        notice(f"The mailbox of {plan.name}@{team.name} has {_unreadable(unread.invalid)}.")
    return {
        "name": plan.name,
        "type": plan.type or None,
        "status": state.status,
        "since": state.since,
        "pid": seen.owner or None,
        "turns": state.turns,
        "unread": len(unread.lines),
        "doing": state.doing,
        "why": state.why,
        "session_id": Path(state.transcript).stem or None,
        "transcript": state.transcript or None,
    }


def list_messages(home: Path, member: MailboxAddress) -> list[dict[str, Any]]:
    from ..layers.l7_agents.messages import read_message

    unread = read_unread(home, member)
    found = [message for line in unread.lines if (message := read_message(line)) is not None]
    if bad := unread.invalid + len(unread.lines) - len(found):
        notice(f"The mailbox of {member.name}@{member.team} has {_unreadable(bad)}.")
    rows = [{"to": member.name, "state": "unread", "from": one.sender, "id": one.id, "text": one.text} for one in found]
    return [*rows, *_read_messages(home, member)]


def _read_messages(home: Path, member: MailboxAddress) -> list[dict[str, Any]]:
    """Return the newest messages that the member has read, as its transcript records them."""
    from ..core.records import Event
    from ..disk.transcripts.store import read_transcript

    path = Path(see_member(home, member).state.transcript)
    if not path.is_file():
        return []
    events = [one for one in read_transcript(path) if isinstance(one, Event) and one.name == "mail"]
    told = [(event.time, row) for event in events for row in event.data.get("messages", ()) if isinstance(row, dict)]
    return [
        {"to": member.name, "state": "read", "from": str(row.get("from")), "id": str(row.get("id")), "text": None, "read": time}
        for time, row in told[-MOST_READ:]
    ]


def _unreadable(count: int) -> str:
    return f"{counted(count, 'unreadable line')}, which {'is' if count == 1 else 'are'} ignored"
