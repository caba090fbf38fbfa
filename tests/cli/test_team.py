"""`lamina team`: members in processes of their own, their mail, one that is killed, and what is left when the team is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lamina.agent.agent import Agent
from lamina.cli.team_member import member_options
from lamina.cli.team_process import stop_member
from lamina.core.errors import InputError
from lamina.disk.home.mailbox import Mailbox, MailboxAddress
from lamina.disk.home.team_files import MemberPlan, MemberState, Team, read_unread, see_member, write_member, write_team
from lamina.disk.locks.dream_lock_owner import process_lives, start_ticks
from lamina.layers.l7_agents.team import member_prompt
from lamina.memory.memory import Memory
from lamina.testing import MessagesServer, Received

from .running import PATIENCE, here, lamina, misused

pytestmark = pytest.mark.skipif(os.name != "posix", reason="members are ended by signals")

REVIEWER = "---\nname: reviewer\ndescription: Reads changes.\ntools: Read\nmodel: haiku\n---\nYou review changes.\n"
OFFLINE = ("--model", "offline")


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    agents = tmp_path / "work" / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "reviewer.md").write_text(REVIEWER)
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    yield tmp_path / "work"
    for team in json.loads(here("team", "--json").stdout or "[]"):
        here("team", "stop", team["name"])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def start(name: str, *members: str, model: tuple[str, ...] = OFFLINE) -> subprocess.CompletedProcess[str]:
    """Start a team from a process that ends, as a shell does."""
    return lamina("team", "start", name, *(word for member in members for word in ("--member", member)), *model)


def show(name: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads(here("team", "show", name, "--json").stdout)["members"]}


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "this never came"
        time.sleep(0.05)


def mail(name: str) -> list[tuple[str, str, str]]:
    return [(row["to"], row["state"], row["from"]) for row in json.loads(here("team", "mail", name, "--json").stdout)]


@pytest.mark.spec("A6")
def test_of_three_members_one_is_killed_and_the_others_go_on(home: Path, work: Path) -> None:
    begun = start("build", "research-agent=Remember: tests use Postgres.", "writer=Write it down.\udcff", "judge=reviewer")
    assert begun.returncode == 0, begun.stderr
    until(lambda: {name: (row["status"], row["turns"]) for name, row in show("build").items()} == STARTED)
    first = show("build")
    assert len({row["pid"] for row in first.values()}) == 3, "each in its own process"
    assert len({row["transcript"] for row in first.values()}) == 3, "each with its own transcript"
    assert json.loads(here("team", "--json").stdout)[0]["running"] == 3
    rows = json.loads(here("agents", "--running", "--json").stdout)
    assert {row["name"] for row in rows} == {"research-agent@build", "writer@build", "judge@build"}

    os.kill(first["writer"]["pid"], signal.SIGKILL)
    until(lambda: show("build")["writer"]["status"] == "dead")
    for name in ("writer", "judge"):
        assert here("team", "send", "build", name, f"Hello, {name}.").returncode == 0
    until(lambda: show("build")["judge"]["turns"] == 1)
    after = show("build")
    assert (after["writer"]["pid"], after["writer"]["unread"], after["writer"]["why"]) == (
        None,
        1,
        "its process ended without warning",
    )
    assert [after[name]["pid"] for name in ("research-agent", "judge")] == [
        first[name]["pid"] for name in ("research-agent", "judge")
    ]
    assert mail("build") == [("writer", "unread", "command-line"), ("judge", "read", "command-line")]
    assert "Hello, judge." in Path(after["judge"]["transcript"]).read_text("utf-8")
    table = here("team", "show", "build").stdout
    assert "dead" in table
    assert "its process ended without warning" in table

    again = lamina("team", "start", "build")
    assert again.returncode == 0, again.stderr
    until(lambda: show("build")["writer"]["turns"] == 1)
    revived = show("build")["writer"]
    assert (revived["transcript"], revived["unread"]) == (after["writer"]["transcript"], 0), "where it stopped, with its mail"
    assert "Hello, writer." in Path(revived["transcript"]).read_text("utf-8")
    assert misused(lamina("team", "start", "build"))
    newer = here("team", "start", "build", "--member", "other=x")
    assert newer.stderr.startswith("lamina: Team build is running (research-agent, writer, judge). Run `lamina team stop build`")

    pids = [row["pid"] for row in show("build").values()]
    stopped = json.loads(here("team", "stop", "build", "--json").stdout)
    assert set(stopped["members"].values()) == {"stopped"}
    assert [process_lives(pid) for pid in pids] == [False] * 3, "no process is left"
    assert {row["status"] for row in show("build").values()} == {"stopped"}
    assert json.loads(here("agents", "--running", "--all", "--json").stdout) == []
    assert here("team", "stop", "build").stdout.splitlines()[0] == "research-agent was not running."


STARTED = {"research-agent": ("waiting", 1), "writer": ("waiting", 1), "judge": ("waiting", 0)}


@pytest.mark.exhaustive
@pytest.mark.spec("A6")
@pytest.mark.prefix_free("two conversations begin with the same words")
def test_members_write_to_each_other_by_name(
    messages_server: MessagesServer, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_server.url)

    def of(member: str) -> Callable[[Received], bool]:
        return lambda received: f"You are {member}, a member of the team build." in json.dumps(received.messages)

    ask = ("SendMessage", {"to": "judge", "message": "Is 2 + 2 = 5?"}, "s1")
    answer = ("SendMessage", {"to": "asker", "message": "No, it is 4."}, "s2")
    messages_server.reply(tool_use=ask, when=of("asker"))
    messages_server.reply(text="I asked judge.", when=of("asker"))
    messages_server.reply(tool_use=answer, when=of("judge"))
    messages_server.reply(text="Answered.", when=of("judge"))
    messages_server.reply(text="So it is 4.", when=of("asker"))
    begun = start("build", "asker=Find out whether 2 + 2 = 5.", "judge=reviewer", model=())
    assert begun.returncode == 0, begun.stderr
    until(lambda: show("build")["asker"]["turns"] == 2)
    assert show("build")["asker"]["doing"] == "So it is 4."
    assert mail("build") == [("asker", "read", "judge"), ("judge", "read", "asker")]
    told = [received for received in messages_server.requests if of("judge")(received)]
    assert told[0].body["model"] == "claude-haiku-5-5", "its type's"
    assert told[0].body["system"][0]["text"] == "You review changes."
    assert "Is 2 + 2 = 5?" in json.dumps(told[0].messages)
    assert not [received.error for received in messages_server.requests if received.refused]


@pytest.mark.exhaustive
@pytest.mark.spec("A6")
def test_a_member_is_joined_and_goes_on_afterwards(home: Path) -> None:
    assert start("build", "research-agent=Remember: tests use Postgres.").returncode == 0
    until(lambda: show("build")["research-agent"]["turns"] == 1)
    before = show("build")["research-agent"]
    joined = lamina("team", "join", "build", "research-agent", "-p", "What do tests use?", "--output-format", "json")
    assert joined.returncode == 0, joined.stderr
    said = json.loads(joined.stdout)
    assert "Postgres" in said["result"]
    assert said["session_id"] == before["session_id"], "its own session"
    after = show("build")["research-agent"]
    assert after["status"] == "waiting"
    assert after["pid"] not in (None, before["pid"])
    assert after["transcript"] == before["transcript"]
    assert misused(here("team", "join", "build", "research-agent")), "no terminal"
    here("team", "stop", "build")
    assert lamina("team", "join", "build", "research-agent", "-p", "Still there?").returncode == 0
    assert show("build")["research-agent"]["status"] == "stopped", "one that did not run is not started"


@pytest.mark.exhaustive
@pytest.mark.spec("A6")
def test_a_chat_as_a_member_has_its_mailbox_and_leaves_it_to_the_process(work: Path) -> None:
    from .at_terminal import Terminal

    assert start("build", "research-agent=Remember: tests use Postgres.").returncode == 0
    until(lambda: show("build")["research-agent"]["turns"] == 1)
    with Terminal("team", "join", "build", "research-agent", cwd=work) as terminal:
        terminal.expect("(y/n)")  # about the project's agent file
        terminal.say("n")
        terminal.prompt()
        joined = show("build")["research-agent"]
        assert (joined["status"], joined["pid"]) == ("joined", terminal.process.pid)
        assert here("team", "stop", "build").stdout == "research-agent is in use by another session, which was left alone.\n"
        assert "is in use by another session" in here("team", "join", "build", "research-agent", "-p", "Hello.").stderr
        assert here("team", "send", "build", "research-agent", "Also MySQL.").returncode == 0
        terminal.say("What do tests use?")
        terminal.prompt()
        assert show("build")["research-agent"]["unread"] == 0, "the chat has read it"
        terminal.say("/exit")
        assert terminal.process.wait(PATIENCE) == 0
    until(lambda: show("build")["research-agent"]["status"] == "waiting")
    assert show("build")["research-agent"]["pid"] != joined["pid"]


@pytest.mark.exhaustive
@pytest.mark.spec("A6")
def test_a_member_that_ends_at_once_is_told_in_one_sentence_and_turns_are_bounded(home: Path) -> None:
    failed = start("build", "a=Hello.", model=("--model", "anthropic:claude-sonnet-5-5"))
    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1
    assert failed.stderr.startswith(
        "lamina: Member a ended at once: Setting provider ('anthropic:claude-sonnet-5-5'): no API key"
    )
    assert show("build")["a"]["status"] == "failed"
    assert start("short", "a=Hello.", "b=Hello.", model=(*OFFLINE, "--turns", "1")).returncode == 0
    until(lambda: {row["status"] for row in show("short").values()} == {"ended"})
    assert show("short")["a"]["why"] == "it has used up its 1 turn"
    until(lambda: not json.loads(here("agents", "--running", "--json").stdout))


@pytest.mark.spec("A6")
def test_another_process_with_a_recorded_id_is_never_signalled(home: Path) -> None:
    address = MailboxAddress("a", "build")
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        ticks = start_ticks(other.pid) or 0
        write_team(home, Team("build", str(home), "", ()))
        for state in (
            MemberState(pid=other.pid, start=ticks, status="waiting"),  # it does not hold the mailbox
            MemberState(pid=other.pid, start=ticks + 1, status="starting"),  # it began at another time
        ):
            write_member(home, address, state)
            assert see_member(home, address).state.status == "dead"
            assert stop_member(home, address) == "was not running"
        box = Mailbox.open(home, address)
        assert box is not None
        assert see_member(home, address).state.status == "joined", "a session of the user has the mailbox"
        assert stop_member(home, address) == "in use"
        write_member(home, address, MemberState(pid=os.getpid(), start=1, status="waiting"))
        assert stop_member(home, address) == "was not running", "the id is ours, but that process began at another time"
        box.close()
        assert other.poll() is None
    finally:
        other.communicate(b"\n", PATIENCE)


@pytest.mark.spec("A6")
def test_a_process_that_was_just_started_can_be_ended_and_keeps_its_own_record(home: Path) -> None:
    address = MailboxAddress("a", "build")
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        begun = MemberState(pid=other.pid, start=start_ticks(other.pid) or 0, status="starting")
        write_member(home, address, begun, first=True)
        write_member(home, address, replace(begun, turns=7))
        write_member(home, address, begun, first=True)  # its starter is late
        assert see_member(home, address).state.turns == 7
        if begun.start:
            assert stop_member(home, address) == "stopped"
            assert other.wait(PATIENCE) is not None
    finally:
        other.kill()
        other.communicate(timeout=PATIENCE)
    assert see_member(home, address).state.status == "dead"


@pytest.mark.exhaustive
@pytest.mark.spec("A6")
def test_a_member_that_does_not_react_is_killed_with_its_commands(
    home: Path, messages_server: MessagesServer, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "any")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", messages_server.url)
    messages_server.reply(tool_use=("Bash", {"command": "echo $$ > child; sleep 600; true"}, "b1"))
    begun = start("build", "a=Run it.", model=("--permission-mode", "all"))
    assert begun.returncode == 0, begun.stderr
    until(lambda: (work / "child").exists() and (work / "child").read_text().strip())
    child, member = int((work / "child").read_text()), show("build")["a"]
    assert (member["status"], member["doing"].startswith("Bash echo")) == ("working", True)
    os.kill(member["pid"], signal.SIGSTOP)
    assert stop_member(home, MailboxAddress("a", "build"), seconds=0.2) == "killed"
    assert process_lives(member["pid"]) is False
    until(lambda: process_lives(child) is False)
    assert show("build")["a"]["why"] == "it did not end when asked, and was killed"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("start", "a/b", "--member", "x=y"), "invalid team name 'a/b'"),
        (("start", "a", "--member", "x"), "--member 'x' is not NAME=PROMPT."),
        (("start", "a", "--member", "x= "), "is not NAME=PROMPT."),
        (("start", "a", "--member", "main=y"), "invalid mailbox name 'main@a'"),
        (("start", "a", "--member", "../x=y"), "invalid mailbox name '../x@a'"),
        (("start", "a", "--member", "x=y", "--member", "x=z"), "--member x is given twice."),
        (("start", "a", *(word for number in range(17) for word in ("--member", f"m{number}=y"))), "at most 16 members, not 17"),
        (("start", "a", "--member", f"x={'y' * 20_001}"), "The prompt of x has more than 20,000 characters."),
        (("start", "a\udcff", "--member", "x=y"), "invalid team name"),
        (("start", "a", "--member", "x\udcff=y"), "invalid mailbox name 'x?@a'"),
        (("start", "a"), "Team 'a' not found. Add --member"),
        (("start", "there", "--member", "x=y"), "Team there exists (x). Start it again without --member"),
        (("show", "nobody"), "'nobody' not found; the teams are there"),
        (("stop", "there", "y"), "'y' is not in team there; its members are x"),
        (("send", "there", "y", "Hello."), "'y' is not in team there"),
        (("send", "there", "x", " "), "TEXT must not be empty"),
        (("mail", "there", "y"), "'y' is not in team there"),
        (("join", "there", "y", "-p", "Hello."), "'y' is not in team there"),
        (("run", "there", "y"), "'y' is not in team there"),
    ],
)
def test_what_is_asked_wrongly_is_answered_in_one_sentence(home: Path, arguments: tuple[str, ...], words: str) -> None:
    write_team(home, Team("there", str(home), "2026-11-16T10:00:00+00:00", (MemberPlan("x", "y"),)))
    done = here("team", *arguments)
    assert misused(done), done
    assert words in done.stderr


def test_unreadable_files_of_a_team_are_reported_and_the_rest_is_shown(home: Path) -> None:
    assert here("team").stderr.startswith("There are no teams.")
    write_team(home, Team("there", str(home), "", (MemberPlan("x", "y"),)))
    box = Mailbox.open(home, MailboxAddress("x", "there"))
    assert box is not None
    box.close()
    assert here("team", "send", "there", "all", "Hello.").returncode == 0
    inbox = home / "teams" / "there" / "x" / "inbox.jsonl"
    inbox.write_bytes(b"\xff\xfe\n" + inbox.read_bytes() + b'{"id": 1}\n[]\n')
    (inbox.parent / "member.json").write_text("no json")
    assert len(read_unread(home, MailboxAddress("x", "there")).lines) == 2
    shown = here("team", "mail", "there", "--json")
    assert [row["text"] for row in json.loads(shown.stdout)] == ["Hello."]
    assert shown.stderr == "lamina: The mailbox of x@there has 3 unreadable lines, which are ignored.\n"
    assert show("there")["x"]["status"] == "new"
    for content, arguments in (
        ("{", ("show", "there")),
        ("{", ("start", "there", "--member", "a=b")),
        ('{"name": "there", "cwd": "/", "created": "", "members": [{"name": "../../x"}]}', ("stop", "there")),
    ):
        (home / "teams" / "there" / "team.json").write_text(content)
        wrong = here("team", *arguments)
        assert wrong.returncode == 1
        assert wrong.stderr.count("\n") == 1
        assert "is not a valid team file" in wrong.stderr
    assert json.loads(here("team", "--json").stdout) == []


def test_a_member_is_told_who_it_is() -> None:
    task, told = (block["text"] for block in member_prompt("a", "build", ["b", "c"], " Look. "))
    assert task == "Look."
    assert told.startswith("<system-reminder>\nYou are a, a member of the team build. The other members are b, c.")
    task, told = (block["text"] for block in member_prompt("a", "build", [], ""))
    assert task == "Your task arrives by message."
    assert "no other members" in told


def test_what_a_member_is_told_about_itself_is_no_memory_of_the_user(home: Path, work: Path) -> None:
    with Agent.open("offline", cwd=work, home=home, interactive=True) as agent:
        asked = member_prompt("bob", "alpha", ["amy"], "Remember: we use tabs")
        assert agent.run(asked).text == "I will remember that: we use tabs"
    with Memory.open(work, home=home) as memory:
        assert [topic.name for topic in memory.topics()] == ["tabs"]


def test_a_type_gives_a_member_its_tools_and_no_others(home: Path, work: Path) -> None:
    plan = MemberPlan("judge", "", "reviewer")
    team = Team("build", str(work), "", (plan,), mode="read-only")
    options, kind = member_options(home, team, plan)
    assert kind is not None
    assert kind.prompt == "You review changes."
    assert (options.mode, options.mailbox, options.resume) == ("read-only", "judge@build", None)
    assert {"Bash", "Write", "Edit", "Agent"} <= set(options.deny)
    assert not {"Read", "SendMessage"} & set(options.deny)
    assert member_options(home, team, MemberPlan("a", "Hello."))[0].deny == ()
    with pytest.raises(InputError, match="agent type 'gone' does not exist"):
        member_options(home, team, MemberPlan("a", "", "gone"))
    with pytest.raises(InputError, match="does not exist; create it"):
        member_options(home, replace(team, cwd=str(work / "gone")), plan)
