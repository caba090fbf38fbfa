"""A dream started by the user: without a conversation, and without a model."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest

from lamina.agent.agent import Agent
from lamina.agent.manual_dream import run_by_hand
from lamina.core.budget import spent_in
from lamina.core.settings import Settings
from lamina.disk.home.ledger import list_ledger_days, read_ledger_day
from lamina.disk.locks.dream_lock import DreamLock, NotWon
from lamina.disk.settings_files import lamina_home
from lamina.disk.trees.rootdir import RootDir
from lamina.layers.l6_dream.record import DreamRecord
from lamina.memory.memory import Memory
from lamina.providers.anthropic import AnthropicProvider
from lamina.testing import MessagesServer

from .agent_helpers import provider_at
from .dream_helpers import ALSO, DAY, HELD, MERGE, ORIENT, Dreamer, Script, dreamt, forks, kept, last, remembered, saved

Open = Callable[..., Agent]
CALM = Settings()


@pytest.fixture
def provider(messages_server: MessagesServer) -> Iterator[AnthropicProvider]:
    made = provider_at(messages_server)
    assert isinstance(made, AnthropicProvider)
    yield made
    made.close()


@pytest.mark.spec("D5", "D4")
def test_it_is_the_same_dream_with_a_provider(
    messages_server: MessagesServer, provider: AnthropicProvider, project: Path
) -> None:
    memory = remembered(project, hours=1, sessions=0)
    Script(messages_server, ORIENT, MERGE)
    heard: list[DreamRecord] = []
    outcome = run_by_hand(provider, cwd=project, settings=CALM, heard=heard.append)
    assert outcome.record is not None
    assert (outcome.record.status, outcome.record.by, outcome.record.merged) == ("completed", "hand", ("importer.md",))
    assert (heard[0].status, heard[0].phase, heard[0].turns) == ("running", "starting", ()), "before the first answer"
    assert [record.phase for record in heard if record.status == "running"][-1] == "updating"
    assert heard[-1].status == "completed"
    assert len(forks(messages_server)) == 3
    assert kept(memory) == [outcome.record]


@pytest.mark.spec("B9", "D5")
def test_its_calls_are_in_the_ledger_and_the_budget_does_not_stop_it(
    messages_server: MessagesServer, provider: AnthropicProvider, project: Path
) -> None:
    remembered(project, hours=1, sessions=0)
    Script(messages_server, ORIENT, MERGE)
    outcome = run_by_hand(provider, cwd=project, settings=Settings(budget_calls=1))
    assert outcome.record is not None
    assert (outcome.record.status, outcome.record.why) == ("completed", ""), "whoever starts one by hand has decided"
    home = lamina_home(os.environ)
    assert home is not None
    lines = [line for day in list_ledger_days(home) for line in read_ledger_day(home, day)]
    assert [(line.purpose, line.project) for line in lines] == [("dream", str(project))] * 3
    spent = spent_in(lines)
    assert spent.usage.total == outcome.record.tokens
    assert spent.usd == pytest.approx(outcome.record.cost)
    run_by_hand(cwd=project, settings=CALM)
    assert len([line for day in list_ledger_days(home) for line in read_ledger_day(home, day)]) == 3, "rules cost nothing"


@pytest.mark.spec("U6", "D4")
def test_hooks_guard_its_calls_and_their_faults_are_told(
    messages_server: MessagesServer, provider: AnthropicProvider, project: Path
) -> None:
    memory = remembered(project, hours=1, sessions=0)
    before = {path.name: path.read_bytes() for path in memory.glob("*.md")}
    Script(messages_server, ORIENT, MERGE)
    commands = [{"command": each} for each in ("cat >> seen; echo >> seen; exit 2", "exit 7")]
    settings = Settings(hooks={"PreToolUse": [{"matcher": "Edit|Write", "hooks": commands}]})
    outcome = run_by_hand(provider, cwd=project, settings=settings)
    told = [json.loads(line) for line in (project / "seen").read_text().splitlines()]
    assert told
    assert {(one["agent_type"], one["tool_name"]) for one in told} <= {("", "Edit"), ("", "Write")}
    assert {path.name: path.read_bytes() for path in memory.glob("*.md")} == before
    assert [notice for notice in outcome.notices if "exit code 7" in notice]


@pytest.mark.spec("O1", "D3")
def test_without_a_model_doubles_are_merged_dates_put_in_and_dead_lines_go(project: Path) -> None:
    memory = remembered(project, hours=1, sessions=0)
    with Memory.open(project, settings=CALM) as opened:
        saved(opened, "release", "The release branch was cut yesterday by Mara.")
        saved(opened, "rules", "Never deploy on a day when yesterday was a holiday.", type="feedback")
    when = time.time() - 30 * DAY
    os.utime(memory / "release.md", (when, when))
    index = memory / "MEMORY.md"
    long = f"- [printer](printer.md) — {'of which a person wrote a lot ' * 8}\n"
    lines = [line for line in index.read_text().splitlines(keepends=True) if "(printer.md)" not in line]
    index.write_text(f"{''.join(lines)}{long}- [Gone](gone.md) — nothing is there\n")
    outcome = run_by_hand(cwd=project, settings=CALM)
    assert outcome.record is not None
    assert outcome.record.status == "completed"
    assert sorted(path.name for path in memory.glob("*.md")) == [
        "MEMORY.md", "importer-rows.md", "printer.md", "release.md", "rules.md",
    ]  # fmt: skip
    merged = (memory / "importer-rows.md").read_text()
    assert HELD in merged
    assert ALSO in merged
    day = time.strftime("%Y-%m-%d", time.gmtime(when - DAY))
    assert f"was cut yesterday ({day}) by Mara." in (memory / "release.md").read_text()
    assert (memory / "rules.md").read_text().endswith("when yesterday was a holiday.\n")
    assert "gone.md" not in index.read_text()
    assert "a person wrote a lot" in index.read_text(), "it is shortened, and says what it said"
    assert max(map(len, index.read_text().splitlines())) <= 150
    assert "(importer.md)" not in index.read_text()
    again = run_by_hand(cwd=project, settings=CALM)
    assert again.record is not None
    assert (again.record.status, again.record.files) == ("completed", ()), "what is in order stays as it is"


@pytest.mark.spec("O1", "O2")
def test_a_session_without_a_provider_dreams_too(opened: Open, project: Path) -> None:
    memory = remembered(project)
    one = Dreamer(opened, provider="offline")
    one.run()
    one.settle()
    assert one.notices == ["Dream finished: merged 1. Undo with `lamina dream --undo`."]
    assert not (memory / "importer.md").exists()


@pytest.mark.spec("D5", "Z5")
def test_one_that_runs_keeps_others_out(project: Path) -> None:
    memory = remembered(project)
    with RootDir.open(memory) as root:
        hold = DreamLock(root).acquire(DreamLock(root).last_ns())
        assert not isinstance(hold, NotWon)
        with hold:
            outcome = run_by_hand(cwd=project, settings=CALM)
    assert outcome.record is None
    assert outcome.stop is not None
    assert outcome.stop.gate == "lock"
    assert kept(memory) == []


@pytest.mark.spec("D5", "D2")
def test_stopping_it_leaves_everything_as_it_was(project: Path) -> None:
    memory = remembered(project)
    before, stop = last(memory), Event()
    outcome = run_by_hand(cwd=project, settings=CALM, abort=stop, heard=lambda _: stop.set())
    assert outcome.record is not None
    assert (outcome.record.status, outcome.record.why) == ("killed", "stopped on request")
    assert last(memory) == before
    assert (memory / "importer.md").exists()


@pytest.mark.spec("B5", "D5")
@pytest.mark.parametrize(
    ("settings", "gate"),
    [
        (Settings(memory=False), "off"),
        (Settings(memory_mode={"private": "off", "team": "auto"}), "mode"),
        (Settings(memory_mode={"private": "read-only", "team": "auto"}), "mode"),
    ],
)
def test_memory_that_is_not_written_to_is_not_dreamt_of(project: Path, settings: Settings, gate: str) -> None:
    memory = remembered(project)
    outcome = run_by_hand(cwd=project, settings=settings)
    assert outcome.stop is not None
    assert outcome.stop.gate == gate
    assert kept(memory) == []


@pytest.mark.spec("D5")
def test_where_nothing_is_remembered_there_is_nothing_to_do(project: Path) -> None:
    outcome = run_by_hand(cwd=project, settings=CALM)
    assert outcome.stop is not None
    assert outcome.stop.gate == "nothing"


@pytest.mark.spec("D5", "F1")
def test_a_person_may_start_one_where_none_begins_by_itself(project: Path) -> None:
    memory = remembered(project, hours=0)
    dreamt(memory, 0)
    outcome = run_by_hand(cwd=project, settings=Settings(dream=False))
    assert outcome.record is not None
    assert outcome.record.status == "completed"
