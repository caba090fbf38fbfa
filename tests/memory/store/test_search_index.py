"""The search index of a large directory: the same answers, and nothing lost when it is."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lamina.core.settings import Settings
from lamina.memory.memory import Memory
from lamina.memory.recall import library
from lamina.memory.recall.rank import Corpus, SearchDocument, rank_indexed
from lamina.memory.store import topic_files
from lamina.memory.store.search_index import SearchIndex
from lamina.memory.store.topic_files import INDEX_FILE

FAST = Settings(durability="process")
LATIN = ["database", "deploy", "tuesday", "notes", "region", "backup", "tests", "flaky", "cache", "header"]
WORDS = [*LATIN, "数据库", "集成测试", "データ", "배포", "été"]
QUERIES = ["flaky tests", "数据库", "backup notes 配 region", "été", "据", "deploy 7", "🙂", "the of", "cache" * 99]


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """A memory of thirty, where thirty is large."""
    monkeypatch.setattr(library, "LARGE", 30)
    random = Random(7)
    with open_memory(tmp_path) as memory:
        for number in range(30):
            name, about, body = (" ".join(random.choices(WORDS, k=size)) for size in (2, 6, 20))
            memory.save(f"{name} {number}", type="project", description=about, body=body)
        yield memory


def open_memory(tmp_path: Path) -> Memory:
    return Memory.open(tmp_path, path=tmp_path / "memory", settings=FAST)


def found(memory: Memory, query: str) -> list[tuple[str, float]]:
    return [(each.topic.file, round(each.score, 9)) for each in memory.recall(query, k=40)]


def corpus_of(memory: Memory) -> tuple[list[str], Corpus]:
    topics = memory.topics()
    documents = [SearchDocument(each.file, each.name, each.description, each.body) for each in topics]
    return [topic.file for topic in topics], Corpus(documents)


@pytest.mark.spec("B15")
@pytest.mark.parametrize("query", QUERIES)
def test_the_index_finds_what_a_search_of_all_texts_finds(memory: Memory, query: str) -> None:
    by_index = found(memory, query)
    assert (memory.path / INDEX_FILE).exists()
    files, corpus = corpus_of(memory)
    assert dict(by_index).keys() == {files[each.at] for each in corpus.rank(query, 40)}
    if query.isascii():  # pairs of characters are counted a little differently
        by_text = [(files[each.at], each.score) for each in corpus.rank(query, 40)]
        assert dict(by_index) == pytest.approx(dict(by_text), rel=1e-2)


def test_saved_renamed_and_removed_memories_are_found_without_a_comparison(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.recall("tests")
    monkeypatch.setattr(SearchIndex, "is_current", lambda self, now, for_names=False: True)
    memory.save("quokka", description="A marsupial", body="On an island.")
    assert [each.topic.name for each in memory.recall("marsupial")] == ["quokka"]
    memory.save("quokka", description="A smiling animal", body="On an island.")
    assert memory.recall("marsupial") == []
    memory.save("Quokka.md", description="A smiling animal", body="On two islands.")
    assert [each.topic.body for each in memory.recall("smiling")] == ["On two islands.\n"]
    assert memory.remove("quokka")
    assert memory.recall("smiling") == []


def test_saves_do_not_compare_all_files_again_and_again(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.recall("tests")
    (memory.path / "hand.md").write_text("---\nname: hand\ndescription: written by hand\n---\nplatypus\n")
    compared, compare = list[object](), SearchIndex.compare

    def counted(*arguments: Any) -> Any:
        compared.append(arguments)
        return compare(*arguments)

    monkeypatch.setattr(SearchIndex, "compare", counted)
    for number in range(5):
        memory.save(f"quokka {number}", description="A marsupial")
    memory.remove("quokka 4")
    assert len(compared) == 1, "the file written by hand"
    assert len(memory.recall("marsupial", k=9)) == 4
    assert len(memory.recall("platypus")) == 1


def test_many_saves_without_a_search_make_an_index_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_files, "LARGE", 5)
    with open_memory(tmp_path) as memory:
        for number in range(8):
            memory.save(f"name {number}", description=f"about number {number}")
            assert (memory.path / INDEX_FILE).exists() == (number >= 5)
        monkeypatch.setattr(library, "LARGE", 5)
        assert len(memory.recall("about number", k=20)) == 8


def test_a_file_that_another_program_writes_is_found(memory: Memory) -> None:
    memory.recall("tests")
    (memory.path / "hand.md").write_text("---\nname: hand\ndescription: written by hand\n---\nplatypus\n")
    assert [each.topic.name for each in memory.recall("platypus")] == ["hand"]
    os.unlink(memory.path / "hand.md")
    assert memory.recall("platypus") == []


def test_a_file_changed_in_place_is_found_by_the_next_comparison(memory: Memory) -> None:
    memory.save("hand", description="written by hand", body="platypus")
    memory.recall("tests")
    with open(memory.path / "hand.md", "a") as file:
        file.write("echidna\n")
    files = memory.store().store.topic_files
    in_an_hour = files.clock_ns() + 3_600 * 10**9
    files.clock_ns = lambda: in_an_hour
    assert [each.topic.name for each in memory.recall("echidna")] == ["hand"]


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _scribble(path: Path) -> None:
    path.write_bytes(b"not a database" * 500)


def _age(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version=99")
    database.close()


def _empty(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("DROP TABLE topics")
    database.close()


def _misspell(path: Path) -> None:
    """Damage the text of the schema; SQLite quotes it in its message, which is no text then."""
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE topics", b"CREATE TABL\xec topics"))


def _mix_up(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE topics SET header = x'c1', about = 'x'")
        database.execute("UPDATE state SET directories = x'c1', compared = 'x'")
        database.execute("UPDATE state SET topics = 'x'")
    database.close()


@pytest.mark.parametrize("damage", [os.unlink, _truncate, _scribble, _age, _empty, _misspell, _mix_up])
def test_an_index_that_is_gone_or_damaged_is_made_anew(memory: Memory, tmp_path: Path, damage: object) -> None:
    before = found(memory, "flaky tests")
    assert before
    memory.close()
    damage(memory.path / INDEX_FILE)  # type: ignore[operator]
    with open_memory(tmp_path) as again:
        assert found(again, "flaky tests") == before
        again.save("quokka", description="A marsupial")
        assert [each.topic.name for each in again.recall("marsupial")] == ["quokka"]
        assert found(again, "flaky tests")
    with open_memory(tmp_path) as third:
        assert [each.topic.name for each in third.recall("marsupial")] == ["quokka"]


def test_an_index_damaged_while_it_is_open_costs_no_answer(memory: Memory) -> None:
    before = found(memory, "flaky tests")
    _scribble(memory.path / INDEX_FILE)
    assert found(memory, "flaky tests") == before
    memory.save("quokka", description="A marsupial")
    assert [each.topic.name for each in memory.recall("marsupial")] == ["quokka"]


@pytest.mark.parametrize("damage", [_scribble, _mix_up, _empty])
def test_a_damaged_index_stops_no_save(memory: Memory, tmp_path: Path, damage: object) -> None:
    memory.recall("tests")
    damage(memory.path / INDEX_FILE)  # type: ignore[operator]
    memory.save("quokka", description="A marsupial")
    memory.recall("tests")
    memory.close()
    damage(memory.path / INDEX_FILE)  # type: ignore[operator]
    with open_memory(tmp_path) as again:
        again.save("wombat", description="A marsupial")
        assert {each.topic.name for each in again.recall("marsupial")} == {"quokka", "wombat"}


WORK = """
import sys
from pathlib import Path
from lamina.core.settings import Settings
from lamina.memory.memory import Memory
from lamina.memory.recall import library
from lamina.memory.store.topic_files import INDEX_FILE

library.LARGE, base, who = 30, Path(sys.argv[1]), sys.argv[2]
with Memory.open(base, path=base / "memory", settings=Settings(durability="process")) as mine:
    for number in range(12):
        mine.save(f"{who} {number}", description=f"wombat {who}{number}")
        if number % 4 == 3:
            (mine.path / INDEX_FILE).unlink(missing_ok=True)
        assert any(each.topic.name == f"{who} {number}" for each in mine.recall(f"{who}{number}")), number
"""


def test_nothing_is_lost_when_the_index_is_deleted_while_two_processes_work(memory: Memory, tmp_path: Path) -> None:
    memory.recall("tests")
    workers = [subprocess.Popen([sys.executable, "-c", WORK, tmp_path, who]) for who in ("left", "right")]
    assert [worker.wait(60) for worker in workers] == [0, 0]
    assert len(memory.recall("wombat", k=40)) == 24
    assert {f"{who} {number}" for who in ("left", "right") for number in range(12)} <= {each.name for each in memory.headers()}


@pytest.mark.parametrize("where", ["", "new"])
def test_a_memory_that_comes_right_after_the_files_were_listed_is_found(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Another process that has no index yet does not enter what it saves."""
    memory.recall("tests")
    listed, second = topic_files.TopicFiles.headers, memory.path / where / "second.md"

    def write(path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"---\nname: {path.stem}\ndescription: A marsupial\n---\n", "utf-8")

    def late(files: topic_files.TopicFiles) -> list[topic_files.TopicHeader]:
        found = listed(files)
        write(second)
        return found

    write(second.with_name("first.md"))
    with monkeypatch.context() as racing:
        racing.setattr(topic_files.TopicFiles, "headers", late)
        memory.recall("tests")
    assert second.exists()
    assert {each.topic.name for each in memory.recall("marsupial")} == {"first", "second"}


def test_where_no_index_can_be_stored_the_texts_are_searched(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    before = found(memory, "flaky tests")
    (memory.path / INDEX_FILE).unlink()
    monkeypatch.setattr(SearchIndex, "open", classmethod(lambda cls, root: None))
    assert dict(found(memory, "flaky tests")) == pytest.approx(dict(before), rel=1e-6)


@pytest.mark.parametrize("large", [30, 1_000])
def test_a_memory_and_a_question_of_a_megabyte_are_bounded(memory: Memory, monkeypatch: pytest.MonkeyPatch, large: int) -> None:
    monkeypatch.setattr(library, "LARGE", large)
    (memory.path / "long.md").write_text("---\nname: long\ndescription: a platypus\n---\n" + "echidna wombat\n" * 70_000)
    began = time.process_time()
    for question in ("platypus", "echidna", "echidna " * 130_000, "x" * 1_000_000):
        found = [each.topic.name for each in memory.recall(question, k=40)]
        assert found == ([] if question.startswith("x") else ["long"])
    assert time.process_time() - began < 5
    assert (memory.path / INDEX_FILE).exists() == (large == 30)


def test_a_word_of_every_memory_only_orders_those_with_a_rarer_one(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.memory.store.search_index.MOST_POSTINGS", 1)
    memory.save("quokka", description="A marsupial in the database")
    index = memory.store().store.topic_files.index(create=True)
    assert index is not None
    assert [header.name for header, _ in rank_indexed(index, "marsupial database", 5)] == ["quokka"]


def test_a_name_that_differs_only_in_case_updates_the_memory(memory: Memory) -> None:
    memory.save("quokka", description="A marsupial")
    memory.recall("tests")
    memory.save("QUOKKA", description="Another marsupial")
    assert [each.topic.description for each in memory.recall("marsupial")] == ["Another marsupial"]
