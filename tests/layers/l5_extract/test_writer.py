"""The limits of what one review may write."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.layers.l5_extract.writer import MOST_BYTES, MOST_FILES, MOST_TRIES, TOO_OFTEN, ReviewWriter
from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.scopes import MemoryLocation
from lamina.memory.tool_writes import WriteOutcome
from lamina.tools.tool import FileChange

from .making import heard, topic


class Kept:
    """A store that accepts everything."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.whys: list[ChangeReason] = []

    def __call__(self, change: FileChange, why: ChangeReason) -> WriteOutcome:
        self.files[change.path.name] = change.data
        self.whys.append(why)
        return WriteOutcome("Saved.", data=change.data)


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def writer(tmp_path: Path, kept: Kept) -> ReviewWriter:
    return ReviewWriter(MemoryLocation(tmp_path, None, "default"), kept, "session", heard("Look at the facts."), [])


def change(path: Path, text: str, before: bytes | None = None) -> FileChange:
    return FileChange(path, text.encode(), before)


@pytest.mark.spec("X6")
def test_a_flood_of_files_is_cut(writer: ReviewWriter, kept: Kept, tmp_path: Path) -> None:
    for number in range(500):
        writer(change(tmp_path / f"{number}.md", topic(f"Fact{number} of subject{number} is thing{number}.", type="project")))
    assert len(kept.files) == MOST_FILES
    assert len(writer.outcome.saved) == MOST_FILES
    assert len(writer.outcome.refused) == 500 - MOST_FILES


@pytest.mark.spec("X6")
@pytest.mark.parametrize("size", [MOST_BYTES, 5 << 20])
def test_a_flood_of_bytes_is_cut(writer: ReviewWriter, kept: Kept, tmp_path: Path, size: int) -> None:
    done = writer(change(tmp_path / "huge.md", topic("x" * size, type="project")))
    assert done.is_error
    assert kept.files == {}
    for number in range(MOST_FILES):
        writer(
            change(tmp_path / f"{number}.md", topic(f"w{number} " * (MOST_BYTES // 12), type="project", description=f"d{number}"))
        )
    assert sum(map(len, kept.files.values())) <= MOST_BYTES


@pytest.mark.spec("X6")
@pytest.mark.parametrize(
    "name", ["MEMORY.md", "memory.md", "sub/../MEMORY.md", ".consolidate-lock", "x.json", "../x.md", "/etc/x.md"]
)
def test_nothing_but_memories_is_written_and_every_path_is_answered(
    writer: ReviewWriter, kept: Kept, tmp_path: Path, name: str
) -> None:
    done = writer(change(tmp_path / name, topic("A fact.", type="project")))
    assert done.is_error
    assert kept.files == {}
    assert len(writer.outcome.refused) == 1


def test_a_memory_is_not_removed(writer: ReviewWriter, kept: Kept, tmp_path: Path) -> None:
    assert writer(change(tmp_path / "a.md", " \n", before=b"text")).is_error
    assert kept.files == {}


@pytest.mark.spec("B7")
def test_the_reason_holds_no_secret(tmp_path: Path, kept: Kept) -> None:
    key = "sk-ant-api03-" + "aB3dE5fG7h" * 9
    writer = ReviewWriter(MemoryLocation(tmp_path, None, "default"), kept, "session", heard(f"The staging key is {key}."), [])
    writer(change(tmp_path / "a.md", topic("The staging key is secret.", said=f"The staging key is {key}")))
    [why] = kept.whys
    assert key not in why.why
    assert why.who == "extraction"


@pytest.mark.spec("X6", "Z7")
def test_what_is_refused_uses_up_what_is_looked_at(writer: ReviewWriter, kept: Kept, tmp_path: Path) -> None:
    text = topic("x" * (MOST_BYTES - 200), type="nothing", description="a thing")
    for number in range(MOST_TRIES + 2):
        writer(change(tmp_path / f"{number}.md", text))
    assert kept.files == {}
    assert writer.outcome.refused[0] != TOO_OFTEN
    assert writer.outcome.refused[-1] == TOO_OFTEN


@pytest.mark.spec("B7")
def test_what_it_tells_holds_no_secret(tmp_path: Path, kept: Kept) -> None:
    key = "sk-ant-api03-" + "aB3dE5fG7h" * 9
    writer = ReviewWriter(MemoryLocation(tmp_path, None, "default"), kept, "session", heard("The staging thing is used."), [])
    writer(change(tmp_path / "a.md", topic("A staging thing.", type="nothing", name=key)))
    writer(change(tmp_path / f"{key}.md", topic("A staging thing is used.", name=key)))
    assert len(writer.outcome.saved) == 1
    assert key not in repr(writer.outcome)
