"""The index file: what is in it when there are more memories than a session receives lines, and in which order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.core.settings import Settings
from lamina.memory.memory import Memory
from lamina.memory.store import uses
from lamina.memory.store.index import MOST_INDEX, MOST_LINES, SPARE_LINES, load_index, read_entries
from lamina.memory.store.scopes import MemoryLocation
from lamina.memory.store.uses import note_uses, read_uses


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(path=tmp_path / "memory", settings=Settings(durability="process")) as memory:
        yield memory


def use(memory: Memory, *files: str) -> None:
    note_uses(memory.place, [str(memory.path / file) for file in files])


def listed(memory: Memory) -> list[str]:
    return [entry.file for entry in read_entries(memory.index())]


def fill(memory: Memory, number: int, *, body: str = "Text.") -> None:
    """Memories and their lines as a full directory has them, written without a save each."""
    rows = []
    for each in range(number):
        (memory.path / f"m{each:04}.md").write_text(f"---\nname: m{each:04}\ndescription: d\n---\n\n{body}\n")
        os.utime(memory.path / f"m{each:04}.md", (1_000_000 + each, 1_000_000 + each))
        rows.append(f"- [m{each:04}](m{each:04}.md) — d\n")
    (memory.path / "MEMORY.md").write_text("".join(rows))


@pytest.mark.spec("S3", "S4")
@pytest.mark.parametrize("name", ["部署时间", "zzz", "a-first"])
def test_a_new_line_is_sent_and_the_memory_that_left_is_found(memory: Memory, name: str) -> None:
    fill(memory, MOST_LINES + 50)
    use(memory, "m0000.md")
    memory.save(name, description="Wann wir ausliefern", body="Am Donnerstag.")
    sent = memory.indexes()[0].text
    assert f"]({name}.md)" in sent
    assert "Warning" not in sent
    assert f"{51 + SPARE_LINES} more memories have no line here." in sent
    assert len(listed(memory)) == MOST_LINES - SPARE_LINES
    assert "m0000.md" in listed(memory), "it is used"
    assert "m0001.md" not in listed(memory), "it is the oldest"
    assert [found.topic.file for found in memory.recall("m0001", 1)] == ["m0001.md"]
    assert memory.get("m0001") is not None
    memory.save("m0001", description="changed", body="It comes back with its next change.")
    assert "m0001.md" in listed(memory)


@pytest.mark.spec("S3")
def test_a_new_memory_stays_in_the_index_although_all_others_are_used(memory: Memory) -> None:
    fill(memory, MOST_LINES)
    use(memory, *(f"m{each:04}.md" for each in range(MOST_LINES)))
    use(memory, "m0000.md")
    for name in ("new-a", "new-b", "new-c"):
        memory.save(name, description="d", body="Text.")
    assert {"new-a.md", "new-b.md", "new-c.md", "m0000.md"} <= set(listed(memory))
    assert {"m0001.md", "m0002.md", "m0003.md"}.isdisjoint(listed(memory))


@pytest.mark.spec("S4")
def test_the_limit_counts_bytes_too(memory: Memory) -> None:
    for number in range(80):
        memory.save(f"部署-{number:02}", description="每周四下午部署到生产环境，" * 12, body="周四。")
    assert "Warning" not in (sent := memory.indexes()[0].text)
    assert "(部署-79.md)" in sent
    assert len(listed(memory)) < 80


@pytest.mark.spec("S3")
def test_what_is_used_most_stands_first_within_its_topic_once_a_line_is_added(memory: Memory) -> None:
    for name in ("deploy-a", "deploy-b", "deploy-c", "api-x", "zoo"):
        memory.save(name, description="d", body="Text.")
    use(memory, "deploy-c.md", "zoo.md")
    use(memory, "deploy-c.md", "deploy-b.md")
    before = listed(memory)
    memory.save("deploy-a", description="changed", body="Text.")
    assert listed(memory) == before, "an update changes no order"
    memory.save("deploy-d", description="d", body="Text.")
    assert listed(memory) == ["api-x.md", "deploy-c.md", "deploy-b.md", "deploy-a.md", "deploy-d.md", "zoo.md"]
    (memory.path / "MEMORY.md").unlink()
    memory.save("deploy-e", description="d", body="Text.")
    assert listed(memory)[:2] == ["api-x.md", "deploy-c.md"], "a rebuilt index has the same order"


@pytest.mark.spec("S3")
def test_lines_that_the_user_worded_stay_and_the_new_one_is_sent_before_them(memory: Memory) -> None:
    fill(memory, 20)
    own = "".join(f"- [My words {each}](m{each:04}.md) — as I put it\n" for each in range(20)) + "prose\n" * 300
    (memory.path / "MEMORY.md").write_text(f"# Mine\n\n{own}")
    memory.save("zzz", description="d", body="Text.")
    assert memory.index() == f"# Mine\n\n- [zzz](zzz.md) — d\n{own}"
    assert "(zzz.md)" in load_index(memory.index())


@pytest.mark.spec("S3", "Z7")
def test_an_index_that_an_older_version_let_grow_is_shortened_by_the_next_save(memory: Memory) -> None:
    rows = "".join(f"- [memory-{each:06}](memory-{each:06}.md) — {'d' * 3_000}\n" for each in range(1_500))
    assert len(rows) > 4 << 20
    fill(memory, 3)
    (memory.path / "MEMORY.md").write_text(rows + (memory.path / "MEMORY.md").read_text())
    assert memory.save("new", description="d", body="Text.")
    assert {"m0000.md", "m0001.md", "m0002.md", "new.md"} <= set(listed(memory)), "lines of missing files leave first"
    assert len(listed(memory)) < 20
    assert "Warning" not in load_index(memory.index())


@pytest.mark.spec("Z7")
def test_with_a_file_in_its_place_that_is_no_index_memories_are_saved_and_removed(memory: Memory) -> None:
    (memory.path / "MEMORY.md").write_bytes(b"x" * MOST_INDEX)
    for name in ("one", "two", "one"):
        done = memory.save(name, description="d", body=f"Text of {name}.")
        assert "larger than" in getattr(done, "unfinished", "")
    assert memory.remove("two")
    assert [header.name for header in memory.headers()] == ["one"]
    assert (memory.path / "MEMORY.md").stat().st_size == MOST_INDEX


def test_uses_are_bounded_and_fade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses, "MOST_BYTES", 400)
    place = MemoryLocation(tmp_path / "memory", None, "argument")
    note_uses(place, [str(place.path / "a.md")])
    assert not place.path.exists(), "nothing is created for it"
    with Memory.open(path=place.path, settings=Settings(durability="process")) as memory:
        for _ in range(60):
            use(memory, "A.md", "b.md")
        use(memory, "b.md")
        found = read_uses(memory.store().store.root)
        assert 0 < found["a.md"] < 60
        assert found["b.md"] >= found["a.md"]
        size = (memory.path / uses.USES).stat().st_size
        assert size < 1_200
        (memory.path / uses.USES).write_text('torn{\n["c.md"]\n')
        assert read_uses(memory.store().store.root) == {"c.md": 1}
