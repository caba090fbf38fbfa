"""Imports and exports on real files: nothing lost, nothing overwritten unasked, nothing outside."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from lamina.core.errors import DiskError, InputError, LaminaError, PathRefused
from lamina.maintenance.transfer.formats import MOST_BYTES, MOST_FILE_BYTES, WRITTEN_FORMATS, WrittenFormat
from lamina.maintenance.transfer.import_export import MOST_PROBLEMS, export_from, import_into
from lamina.memory.store.contract import ChangeReason, Proposed, Saved
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.draft import Draft
from lamina.memory.store.in_memory import InMemoryStore
from lamina.memory.store.topic import Topic

WHY = ChangeReason(who="user", why="imported")
TARGETS: dict[WrittenFormat, str] = {
    "claude-code": "memory",
    "codex": "memories",
    "agents-md": "AGENTS.md",
    "mcp-memory": "memory.jsonl",
    "mem0": "mem0.json",
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DirectoryStore]:
    with DirectoryStore.open(tmp_path / "a" / "b" / "store", durability="process") as opened:
        opened.save(
            Draft("testing-db", type="feedback", description="Real database", body="Tests use a real database.\n"), why=WHY
        )
        opened.save(Draft("用户", type="user", description="谁", body="- 后端\n- 夜里工作\n"), why=WHY)
        opened.save(Draft("empty", body=""), why=WHY)
        yield opened


def tree(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


def get(store: DirectoryStore, name: str) -> Topic:
    topic = store.get(name)
    assert topic is not None
    return topic


def told(found: InMemoryStore | DirectoryStore) -> list[tuple[str, str, str | None, str]]:
    return sorted(
        (topic.name, topic.description, topic.type, topic.body.split("\n<!-- lamina")[0].strip()) for topic in found.topics()
    )


@pytest.mark.spec("B13")
@pytest.mark.parametrize("format", WRITTEN_FORMATS)
def test_an_export_comes_back_into_an_empty_store(store: DirectoryStore, tmp_path: Path, format: WrittenFormat) -> None:
    target = tmp_path / "out" / TARGETS[format]
    report = export_from(store, target, format)
    assert {item.outcome for item in report.items} == {"created"}
    other = InMemoryStore()
    back = import_into(other, target, why=WHY)
    assert back.format == format
    assert sorted(back.named("created")) == sorted(topic.name for topic in store.topics())
    assert told(other) == told(store)
    # Once more: nothing changes, on either side.
    assert {item.outcome for item in import_into(other, target, why=WHY).items} == {"unchanged"}
    before = tree(tmp_path / "out")
    assert {item.outcome for item in export_from(store, target, format).items} == {"unchanged"}
    assert tree(tmp_path / "out") == before


def test_both_ways_count_what_is_done(store: DirectoryStore, tmp_path: Path) -> None:
    out, back = list[tuple[int, int]](), list[tuple[int, int]]()
    export_from(store, tmp_path / "out", "claude-code", tell=lambda done, of: out.append((done, of)))
    import_into(InMemoryStore(), tmp_path / "out", why=WHY, tell=lambda done, of: back.append((done, of)))
    assert out == [(0, 4), (1, 4), (2, 4), (3, 4)]  # three memories and the index
    assert back == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.spec("B13")
@pytest.mark.parametrize("format", WRITTEN_FORMATS)
def test_what_was_imported_goes_out_as_it_came(tmp_path: Path, store: DirectoryStore, format: WrittenFormat) -> None:
    first, second = tmp_path / "1" / TARGETS[format], tmp_path / "2" / TARGETS[format]
    export_from(store, first, format)
    other = InMemoryStore()
    import_into(other, first, why=WHY)
    export_from(other, second, format)
    if format == "claude-code":
        assert tree(second).keys() == tree(first).keys()
    else:
        assert sorted(tree(second.parent).values()) == sorted(tree(first.parent).values())


@pytest.mark.spec("B13")
def test_dates_of_a_source_are_carried_through_the_store(tmp_path: Path) -> None:
    rows = [{"id": "1", "memory": "Uses Postgres", "updated_at": "2024-07-26T08:29:36Z", "user_id": "dev", "score": 0.5}]
    (tmp_path / "mem0.json").write_bytes(msgspec.json.encode({"results": rows}))
    store = InMemoryStore()
    import_into(store, tmp_path / "mem0.json", why=WHY)
    assert "2024-07-26T08:29:36.000Z" in store.topics()[0].body
    assert store.topics()[0].modified == 1_721_982_576.0, "it is as old as it says"
    export_from(store, tmp_path / "again.json", "mem0")
    assert msgspec.json.decode((tmp_path / "again.json").read_bytes()) == {"results": rows}


@pytest.mark.spec("B13")
def test_a_memory_that_says_something_else_is_kept_until_replacing_is_asked_for(store: DirectoryStore, tmp_path: Path) -> None:
    (tmp_path / "testing-db.md").write_text("---\nname: testing-db\ndescription: Mocks\n---\n\nUse mocks.\n")
    report = import_into(store, tmp_path / "testing-db.md", why=WHY)
    assert [(item.outcome, item.why) for item in report.items] == [("conflict", "description and body differ")]
    assert "real database" in get(store, "testing-db").body
    report = import_into(store, tmp_path / "testing-db.md", replace=True, why=WHY)
    assert report.named("replaced") == ["testing-db"]
    assert get(store, "testing-db").body.startswith("Use mocks.")
    assert get(store, "testing-db").type == "feedback"
    assert import_into(store, tmp_path / "testing-db.md", why=WHY).named("unchanged") == ["testing-db"]


def test_a_memory_is_not_overwritten_because_its_file_has_the_name(store: DirectoryStore, tmp_path: Path) -> None:
    (store.root.path / "database.md").write_text("---\nname: Which database\ndescription: d\n---\n\nPostgres.\n")
    (tmp_path / "x.md").write_text("---\nname: database\ndescription: d\n---\n\nMySQL.\n")
    report = import_into(store, tmp_path / "x.md", why=WHY)
    assert [item.outcome for item in report.items] == ["created"]
    assert get(store, "Which database").body == "Postgres.\n"
    assert get(store, "database").body.startswith("MySQL.\n")


@pytest.mark.spec("B13")
def test_a_dry_run_says_what_happens_and_changes_nothing(store: DirectoryStore, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.md").write_text("---\nname: a\ndescription: d\n---\n\nghp_" + "A1b2C3d4E5" * 4)
    (tmp_path / "in" / "testing-db.md").write_text("---\nname: testing-db\ndescription: d\n---\n\nother\n")
    before = tree(store.root.path)
    dry = import_into(store, tmp_path / "in", dry_run=True, why=WHY)
    assert tree(store.root.path) == before
    real = import_into(store, tmp_path / "in", why=WHY)
    assert real.items == dry.items
    assert (dry.dry_run, dry.items[0].redacted) == (True, ("GitHub token",))
    assert "ghp_" not in get(store, "a").body
    out = tmp_path / "out"
    assert export_from(store, out, "claude-code", dry_run=True).named("created")
    assert not out.exists()


class Confirming(InMemoryStore):
    """A store in mode confirm: a save waits."""

    def save(self, draft: Draft, *, why: ChangeReason) -> Proposed:  # type: ignore[override]  # what mode confirm answers
        return Proposed("p1")


def test_a_store_that_asks_first_is_reported_so(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nname: a\n---\n\nx\n")
    report = import_into(Confirming(), tmp_path / "a.md", why=WHY)
    assert [(item.outcome, item.why) for item in report.items] == [("proposed", "pending approval as p1")]


# Exports


@pytest.mark.parametrize("format", ["claude-code", "codex", "mcp-memory", "mem0"])
def test_a_file_that_is_there_with_other_content_is_kept_until_replacing_is_asked_for(
    store: DirectoryStore, tmp_path: Path, format: WrittenFormat
) -> None:
    target = tmp_path / "out" / TARGETS[format]
    export_from(store, target, format)
    victim = next(file for file in sorted((tmp_path / "out").rglob("*")) if file.is_file() and file.name != "MEMORY.md")
    victim.write_text("mine")
    assert len(export_from(store, target, format).named("conflict")) == 1
    assert victim.read_text() == "mine"
    assert len(export_from(store, target, format, replace=True).named("replaced")) == 1
    assert victim.read_text() != "mine"


def test_agents_md_keeps_what_it_says_and_a_changed_block_is_a_conflict(store: DirectoryStore, tmp_path: Path) -> None:
    target = tmp_path / "AGENTS.md"
    target.write_bytes(b"# Rules\r\n\xff\r\n")
    assert export_from(store, target, "agents-md").named("replaced") == ["AGENTS.md"]
    assert target.read_bytes().startswith(b"# Rules\r\n\xff\r\n")
    target.write_bytes(target.read_bytes().replace(b"real database", b"mock"))
    assert export_from(store, target, "agents-md").named("conflict") == ["AGENTS.md"]
    assert export_from(store, target, "agents-md", replace=True).named("replaced") == ["AGENTS.md"]
    assert b"mock" not in target.read_bytes()


def test_an_index_that_is_there_keeps_its_lines(store: DirectoryStore, tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("# Mine\n\n- [zoo](zoo.md) — animals\n")
    export_from(store, tmp_path, "claude-code")
    index = (tmp_path / "MEMORY.md").read_text()
    assert index.startswith("# Mine\n")
    assert "- [zoo](zoo.md) — animals\n" in index
    assert "(testing-db.md)" in index


@pytest.mark.spec("B13", "G1")
def test_an_export_does_not_leave_its_target_through_a_link(store: DirectoryStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f.md").write_text("old")
    (tmp_path / "codex").mkdir()
    (tmp_path / "codex" / "extensions").symlink_to(outside)
    with pytest.raises(PathRefused):
        export_from(store, tmp_path / "codex", "codex")
    (tmp_path / "cc").mkdir()
    (tmp_path / "cc" / "testing-db.md").symlink_to(outside / "f.md")
    with pytest.raises(PathRefused):
        export_from(store, tmp_path / "cc", "claude-code", replace=True)
    assert tree(outside) == {"f.md": b"old"}


@pytest.mark.parametrize(
    ("format", "made"), [("mem0", "directory"), ("codex", "file"), ("claude-code", "file"), ("agents-md", "directory")]
)
def test_a_target_of_the_wrong_kind_is_refused(store: DirectoryStore, tmp_path: Path, format: WrittenFormat, made: str) -> None:
    target = tmp_path / "target"
    target.mkdir() if made == "directory" else target.write_text("x")
    with pytest.raises(InputError, match=f"is a {made}"):
        export_from(store, target, format)


def test_a_target_that_is_no_path_is_refused(store: DirectoryStore) -> None:
    with pytest.raises(InputError):
        export_from(store, Path("a\0b"), "mem0")


def test_without_memories_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "mem0.json").write_text("mine")
    report = export_from(InMemoryStore(), tmp_path / "mem0.json", "mem0", replace=True)
    assert (report.items, report.problems) == ((), ("No memories to export.",))
    assert (tmp_path / "mem0.json").read_text() == "mine"


# Hostile sources


def refused(source: Path, format: WrittenFormat | None = None) -> str:
    store = InMemoryStore()
    with pytest.raises(LaminaError) as caught:
        import_into(store, source, format=format, why=WHY)
    assert store.topics() == []
    return str(caught.value).replace(str(source), "SOURCE")


@pytest.mark.spec("B13", "B3")
def test_a_source_of_a_gigabyte_is_refused_unread(tmp_path: Path) -> None:
    with open(tmp_path / "big.json", "wb") as file:
        file.truncate(1 << 30)
    assert refused(tmp_path / "big.json") == "SOURCE: is larger than 64 MB; import it in parts."
    assert MOST_BYTES == 64 << 20


@pytest.mark.parametrize(
    ("data", "format", "sentence"),
    [
        (b"\x00\x01\xff", None, "SOURCE: is not UTF-8 text; pass the file that contains the memories."),
        (b"a\x00b", None, "SOURCE: is not UTF-8 text; pass the file that contains the memories."),
        (b'[\n{"memory": 1},\n]', "mem0", "The mem0 file: is not valid JSON at line 3; correct it or export it again."),
        (
            b"nonsense\n",
            "mcp-memory",
            "SOURCE: contains no memories in the format mcp-memory: "
            "line 1 is not valid JSON and was skipped; choose another format with --format.",
        ),
    ],
)
def test_a_source_that_is_broken_is_refused_in_one_sentence(
    tmp_path: Path, data: bytes, format: WrittenFormat | None, sentence: str
) -> None:
    (tmp_path / "source").write_bytes(data)
    assert refused(tmp_path / "source", format) == sentence


def test_a_source_that_is_missing_a_pipe_or_no_path_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert refused(tmp_path / "gone") == "SOURCE: not found; pass a file or directory to import."
    assert "is a named pipe" in refused(tmp_path / "pipe")
    assert refused(tmp_path / "loop")
    assert refused(Path("a\0b"))


@pytest.mark.spec("B13", "G1")
def test_in_a_directory_links_and_what_is_no_text_are_left_out(tmp_path: Path) -> None:
    source = tmp_path / "in"
    (source / ".git").mkdir(parents=True)
    (source / ".git" / "x.md").write_text("no")
    (tmp_path / "secret.md").write_text("secret")
    (source / "link.md").symlink_to(tmp_path / "secret.md")
    (source / "up").symlink_to(tmp_path)
    (source / "binary.md").write_bytes(b"\xff\xfe")
    (source / "big.md").write_bytes(b"x" * (MOST_FILE_BYTES + 1))
    (source / "good.md").write_text("---\nname: good\ndescription: d\n---\n\nyes\n")
    os.mkfifo(source / "pipe.md")
    store = InMemoryStore()
    report = import_into(store, source, why=WHY)
    assert report.named("created") == ["good"]
    assert report.problems == (
        "'big.md' is larger than 1 MB and was skipped",
        "'binary.md' is not UTF-8 text and was skipped",
    )


@pytest.mark.spec("B13", "G1")
def test_names_that_climb_stay_inside_the_store(store: DirectoryStore, tmp_path: Path) -> None:
    names = [
        "../../escape",
        "/etc/passwd",
        "..",
        "a/../../b",
        "MEMORY.md",
        "team/x",
        "con",
        "\u202egnp.md",
        "x\x00y",
        " ",
        "~/.ssh/id",
    ]
    rows = [
        {"type": "entity", "name": name, "entityType": "x", "observations": [f"fact {number}"]}
        for number, name in enumerate(names)
    ]
    (tmp_path / "memory.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    outside = {name for name in tree(tmp_path) if not name.startswith("a/b/store")}
    report = import_into(store, tmp_path / "memory.jsonl", why=WHY)
    assert len(report.named("created")) == len(names)
    assert {name for name in tree(tmp_path) if not name.startswith("a/b/store")} == outside
    assert all(file.suffix == ".md" for file in store.root.path.iterdir() if not file.name.startswith("."))


@pytest.mark.exhaustive
@pytest.mark.spec("B13", "B3")
def test_ten_thousand_memories_are_read_and_more_are_refused(tmp_path: Path) -> None:
    rows = [{"id": str(number), "memory": f"Fact number {number}"} for number in range(10_001)]
    (tmp_path / "m.json").write_bytes(msgspec.json.encode(rows[:-1]))
    report = import_into(InMemoryStore(), tmp_path / "m.json", dry_run=True, why=WHY)
    assert len(report.named("created")) == 10_000
    (tmp_path / "m.json").write_bytes(msgspec.json.encode(rows))
    assert refused(tmp_path / "m.json") == "SOURCE: contains 10,001 memories, and the limit is 10,000; import it in parts."


@pytest.mark.exhaustive
def test_thousands_of_memories_of_one_name_get_a_number_each(tmp_path: Path) -> None:
    rows = [{"id": str(number), "memory": "Same words here\n" + str(number)} for number in range(3_000)]
    (tmp_path / "m.json").write_bytes(msgspec.json.encode(rows))
    report = import_into(InMemoryStore(), tmp_path / "m.json", dry_run=True, why=WHY)
    assert len(set(report.named("created"))) == 3_000


def test_a_disk_that_fails_stops_an_import_and_the_next_one_goes_on(store: DirectoryStore, tmp_path: Path) -> None:
    class Failing(InMemoryStore):
        left = 1

        def save(self, draft: Draft, *, why: ChangeReason) -> Saved:
            if not self.left:
                raise DiskError("x", "is broken")
            self.left -= 1
            return super().save(draft, why=why)

    export_from(store, tmp_path / "m.json", "mem0")
    failing = Failing()
    with pytest.raises(DiskError):
        import_into(failing, tmp_path / "m.json", why=WHY)
    failing.left = 9
    report = import_into(failing, tmp_path / "m.json", why=WHY)
    assert sorted(item.outcome for item in report.items) == ["created", "created", "unchanged"]


@pytest.mark.spec("B13")
def test_many_problems_are_counted_not_listed(tmp_path: Path, store: DirectoryStore) -> None:
    source = tmp_path / "memory.jsonl"
    entity = '{"type":"entity","name":"ann","entityType":"person","observations":["Leads the audit"]}'
    source.write_text(entity + "\n" + "odd\n" * (MOST_PROBLEMS + 7), "utf-8")
    problems = import_into(store, source, why=WHY).problems
    assert len(problems) == MOST_PROBLEMS + 1
    assert problems[-1] == "and 7 more problems"
