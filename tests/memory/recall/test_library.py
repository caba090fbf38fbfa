"""Searching memory: by a local ranker, with age and evidence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.core.settings import Settings
from lamina.memory.memory import Memory, Recalled
from lamina.memory.recall import library
from lamina.memory.recall.library import MemoryLibrary
from lamina.memory.store.contract import Saved
from lamina.memory.store.scopes import MemoryLocation
from lamina.memory.store.topic_files import INDEX_FILE


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    (tmp_path / "project").mkdir()
    settings = Settings(durability="process", team=True)
    with Memory.open(tmp_path / "project", path=tmp_path / "memory", settings=settings) as memory:
        memory.save("testing-db", type="feedback", description="Tests use a real database", body="Mocks hid a migration.")
        memory.save("deploys", type="project", description="Deploys on Tuesdays", body="People on call are there.")
        memory.save("数据库", type="project", description="集成测试使用真实数据库", body="模拟曾经掩盖错误。")
        memory.save("pipeline", type="reference", description="Bugs are in the tracker", body="Board INGEST.", scope="team")
        yield memory


def names(found: list[Recalled]) -> list[str]:
    return [each.topic.name for each in found]


@pytest.mark.spec("B15")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Which database do the tests use?", "testing-db"),
        ("migrations", "testing-db"),
        ("集成测试用什么数据库？", "数据库"),
        ("board of the tracker", "pipeline"),
    ],
)
def test_the_memory_that_fits_comes_first(memory: Memory, query: str, expected: str) -> None:
    assert names(memory.recall(query))[0] == expected


def test_a_recalled_memory_is_whole_and_says_why(memory: Memory) -> None:
    [found, *_] = memory.recall("tests database", k=1)
    assert found.topic.body == "Mocks hid a migration.\n"
    assert found.why == "name: test, databas; description: test, databas"
    assert found.age >= 0
    assert found.evidence.state == "unverifiable"
    assert len(memory.recall("tests", k=1)) == 1
    assert memory.recall("nothing like it") == []
    assert memory.recall("tests", k=0) == []


@pytest.mark.spec("W1")
def test_a_teams_memory_is_found_with_its_path(memory: Memory) -> None:
    [found] = memory.recall("INGEST")
    assert found.topic.file == "team/pipeline.md"
    assert memory.where(found.topic.file).read_text().endswith("Board INGEST.\n")


@pytest.mark.spec("B8")
def test_stale_evidence_moves_a_memory_back(memory: Memory, tmp_path: Path) -> None:
    memory.save("pool", type="project", description="Connections: how the pool hands them out", evidence=["src/pool.py"])
    memory.save("sockets", type="project", description="Connections and how long they last")
    assert names(memory.recall("how does the pool hand out connections"))[0] == "pool"
    assert memory.recall("pool connections")[0].evidence.state == "stale"
    both = {each.topic.name: each for each in memory.recall("connections")}
    assert both["sockets"].score > both["pool"].score
    (tmp_path / "project" / "src").mkdir()
    (tmp_path / "project" / "src" / "pool.py").write_text("class Pool: ...\n")
    assert memory.recall("pool connections")[0].evidence.state == "fresh"


def test_what_changed_since_the_last_question_is_seen(memory: Memory) -> None:
    assert names(memory.recall("kubernetes")) == []
    memory.save("cluster", type="project", description="d", body="It runs on kubernetes.")
    assert names(memory.recall("kubernetes")) == ["cluster"]
    (memory.path / "cluster.md").write_text("---\nname: cluster\ndescription: d\n---\n\nIt runs on nomad.\n")
    assert names(memory.recall("kubernetes")) == []
    assert names(memory.recall("nomad")) == ["cluster"]
    memory.remove("cluster")
    assert names(memory.recall("nomad")) == []


@pytest.mark.spec("B5")
def test_a_scope_that_is_off_is_not_searched(tmp_path: Path, memory: Memory) -> None:
    settings = Settings(durability="process", memory_mode={"private": "off"})
    with Memory.open(tmp_path, path=tmp_path / "memory", settings=settings) as off:
        assert off.recall("tests database") == []


# Names and dates


@pytest.mark.spec("S6")
def test_a_name_is_no_file_name(memory: Memory) -> None:
    memory.save("A: B", type="project", description="one", body="one")
    done = memory.save("a-b", type="project", description="two", body="two")
    assert isinstance(done, Saved)
    assert done.created
    assert {topic.body for topic in memory.topics() if topic.name in ("A: B", "a-b")} == {"one\n", "two\n"}
    again = memory.save("a-b.md", type="project", description="by its file", body="three")
    assert isinstance(again, Saved)
    assert not again.created
    assert again.topic.name == "A: B"


def test_a_memory_made_elsewhere_keeps_its_date_until_it_changes(memory: Memory) -> None:
    memory.save("old", type="project", description="d", body="b", modified=1_700_000_000.5)
    topic = memory.get("old")
    assert topic is not None
    assert topic.modified == 1_700_000_000.5
    [found] = [header for header in memory.headers() if header.name == "old"]
    assert found.modified == 1_700_000_000.5
    memory.save("old", type="project", description="d", body="changed")
    changed = memory.get("old")
    assert changed is not None
    assert changed.modified > 1_700_000_001


def test_a_library_that_was_prepared_finds_the_same_and_leaves_a_large_memory_alone(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, settings = MemoryLocation(tmp_path / "memory", tmp_path / "memory/team", "argument"), Settings(team=True)
    with MemoryLibrary.open(place, settings=settings, project=tmp_path) as plain:
        expected = [plain.search(query, 5) for query in ("real database", "tracker", "数据库")]
    with MemoryLibrary.open(place, settings=settings, project=tmp_path) as prepared:
        prepared.prepare()
        assert [prepared.search(query, 5) for query in ("real database", "tracker", "数据库")] == expected
    monkeypatch.setattr(library, "LARGE", 2)
    with MemoryLibrary.open(place, settings=settings, project=tmp_path) as large:
        large.prepare()
    assert not (tmp_path / "memory" / INDEX_FILE).exists()
