"""The scan: heads only, what is left out, and a cache that is only a cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lamina.disk import crash_points as crash
from lamina.disk.trees.rootdir import RootDir
from lamina.disk.trees.scan import ScannedFile
from lamina.memory.store.topic import Topic, read_topic, write_topic
from lamina.memory.store.topic_files import CACHE, MOST_IN_MANIFEST, TopicFiles, TopicHeader, choose_manifest, read_header

OLD = 1_700_000_000


@pytest.fixture
def root(tmp_path: Path) -> Iterator[RootDir]:
    with RootDir.open(tmp_path / "memory") as opened:
        yield opened


def put(root: RootDir, file: str, description: str = "d", *, age: int = 0) -> None:
    path = root.path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(write_topic(Topic(file, path.stem, description, "project", "body\n" * 5)))
    os.utime(path, (OLD - age, OLD - age))


def opened_by(scanner: TopicFiles) -> tuple[list[TopicHeader], int]:
    """The headers, and how many files were opened for them."""
    count = 0

    def watch(point: str, _: int) -> None:
        nonlocal count
        count += point == "file.open"

    with crash.watched(watch):
        return scanner.headers(), count


@pytest.mark.spec("S11")
def test_topics_are_found_in_all_directories_newest_first(root: RootDir) -> None:
    put(root, "a.md", age=2)
    put(root, "deep/er/b.md", age=1)
    put(root, "c.md", age=3)
    for left_out in ("MEMORY.md", "logs/2026/01/2026-01-01.md", "team/t.md", ".history/h.md", ".hidden.md", "note.txt"):
        put(root, left_out)
    assert [header.file for header in TopicFiles(root).headers()] == ["deep/er/b.md", "a.md", "c.md"]


@pytest.mark.spec("S11")
def test_what_cannot_be_read_is_left_out_and_nothing_blocks(root: RootDir, tmp_path: Path) -> None:
    put(root, "a.md")
    os.mkfifo(root.path / "fifo.md")
    (root.path / "link.md").symlink_to(root.path / "a.md")
    (root.path / "dir.md").mkdir()
    (root.path / "bytes.md").write_bytes(b"\xff\xfe\x00")
    assert sorted(header.file for header in TopicFiles(root).headers()) == ["a.md", "bytes.md"]


@pytest.mark.spec("S11")
def test_only_the_head_of_a_file_is_read(root: RootDir) -> None:
    put(root, "a.md")
    with open(root.path / "a.md", "r+b") as file:
        file.truncate(1 << 30)
    late = "---\nname: x\n" + "".join(f"k{number}: v\n" for number in range(40)) + "description: late\n---\n"
    (root.path / "late.md").write_text(late)
    headers = {header.file: header for header in TopicFiles(root).headers()}
    assert headers["a.md"].description == "d"
    assert (headers["late.md"].name, headers["late.md"].description) == ("late", "")


@pytest.mark.spec("S11")
def test_a_manifest_holds_the_newest_or_the_best_and_the_newest(root: RootDir) -> None:
    headers = [TopicHeader(f"{number}.md", "n", "d", None, 0.0, number, 1, 1) for number in range(500)]
    assert [header.mtime_ns for header in choose_manifest(headers)] == list(range(499, 299, -1))
    chosen = choose_manifest(headers, lambda rest, count: sorted(rest, key=lambda header: header.mtime_ns)[:count])
    assert len(chosen) == MOST_IN_MANIFEST
    assert [header.mtime_ns for header in chosen[:50]] == list(range(499, 449, -1))
    assert [header.mtime_ns for header in chosen[50:]] == list(range(150))
    assert choose_manifest(headers[:200], lambda rest, count: []) == headers[199::-1]


def test_a_second_look_opens_only_what_changed(root: RootDir) -> None:
    for number in range(60):
        put(root, f"t{number}.md")
    scanner = TopicFiles(root)
    assert opened_by(scanner)[1] >= 60
    assert opened_by(scanner)[1] == 0
    put(root, "t7.md", "changed", age=1)
    headers, count = opened_by(scanner)
    assert count == 1
    assert {header.description for header in headers if header.file == "t7.md"} == {"changed"}
    (root.path / "t8.md").unlink()
    assert len(scanner.headers()) == 59


def test_the_cache_serves_the_next_process_and_a_broken_one_is_empty(root: RootDir) -> None:
    for number in range(60):
        put(root, f"t{number}.md")
    first = TopicFiles(root).headers()
    headers, count = opened_by(TopicFiles(root))
    assert (headers, count) == (first, 1)
    whole = (root.path / CACHE).read_bytes()
    for broken in (b"\x93broken", whole.replace(b"t7.md", b"t\xff.md"), whole.replace(b"t7.md", b"t8.md"), whole[:99], b""):
        (root.path / CACHE).write_bytes(broken)
        assert TopicFiles(root).headers() == first


def test_the_newest_comes_first_whoever_read_the_heads(root: RootDir) -> None:
    for number in range(60):
        put(root, f"t{number}.md", age=number * 7 % 60)
    scanner = TopicFiles(root)
    first = scanner.headers()
    assert [header.mtime_ns for header in first] == sorted((header.mtime_ns for header in first), reverse=True)
    assert scanner.headers() == TopicFiles(root).headers() == first
    put(root, "t5.md", "changed", age=-1)
    assert scanner.headers()[0].file == TopicFiles(root).headers()[0].file == "t5.md"
    (root.path / "t6.md").unlink()
    assert [header.file for header in scanner.headers()] == [
        "t5.md",
        *(h.file for h in first if h.file not in ("t5.md", "t6.md")),
    ]


def test_what_a_caller_does_with_the_heads_changes_nothing_here(root: RootDir) -> None:
    put(root, "a.md")
    scanner = TopicFiles(root)
    scanner.headers()
    scanner.headers().clear()
    assert [header.file for header in scanner.headers()] == ["a.md"]


def test_a_file_younger_than_the_clock_can_tell_is_read_again(root: RootDir) -> None:
    put(root, "a.md")
    scanner = TopicFiles(root, clock_ns=lambda: OLD * 1_000_000_000 + 1_000)
    scanner.headers()
    assert opened_by(scanner)[1] == 1


heads = st.lists(
    st.sampled_from(["name", "description", "type", "other"]).flatmap(lambda key: st.tuples(st.just(key), st.text())), max_size=4
)


@given(heads, st.text())
def test_the_quick_reader_says_what_the_strict_one_says(fields: list[tuple[str, str]], body: str) -> None:
    text = "---\n" + "".join(f"{key}: {value}\n" for key, value in fields) + f"---\n{body}"
    data = text.encode("utf-8", "replace")
    header = read_header(ScannedFile("f.md", 5, 1, 1), data)
    strict = read_topic("f.md", "".join(data.decode().splitlines(keepends=True)[:30]), 5e-9)
    assert (header.name, header.description, header.type) == (strict.name, strict.description, strict.type)


@pytest.mark.parametrize(
    "head",
    [
        "name: a b\ndescription: x, y (z) - it's\ntype: user\n",
        "name: yes\ntype: foo\n",
        "name: a  \n",
        "name: a - b\nname: c\n",
        "name: a:b\n",
    ],
)
def test_the_quick_reader_agrees_on_common_heads(head: str) -> None:
    text = f"---\n{head}---\nbody"
    header, strict = read_header(ScannedFile("f.md", 5, 1, 1), text.encode()), read_topic("f.md", text, 5e-9)
    assert (header.name, header.description, header.type) == (strict.name, strict.description, strict.type)


LETTERS = st.text(alphabet="aZ é集成テ통Ж,;()/+=.'’—–，。、；：（）！？「」《》-_9", min_size=1, max_size=20)


@pytest.mark.spec("S11", "B15")
@given(description=LETTERS, name=LETTERS)
@example(description="true", name="null")
@example(description="集成测试（必须）：用真实数据库。", name="测试")
@example(description="no", name="on")
def test_heads_that_need_no_yaml_reader_say_what_it_would_say(description: str, name: str) -> None:
    text = f"---\nname: {name}\ndescription: {description}\ntype: user\n---\nbody\n"
    found, topic = read_header(ScannedFile("a.md", 0, 1, 1), text.encode()), read_topic("a.md", text, 0.0)
    assert (found.name, found.description, found.type) == (topic.name, topic.description, topic.type)


def test_a_second_look_reads_only_what_changed(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    path.mkdir(mode=0o700)
    for name in ("a", "b"):
        (path / f"{name}.md").write_text(f"---\nname: {name}\ndescription: about {name}\n---\nbody of {name}\n")
        os.utime(path / f"{name}.md", (1_700_000_000, 1_700_000_000))
    with RootDir.open(path, create=False) as root:
        first = TopicFiles(root)
        before = first.bodies(first.headers())
    (path / "b.md").write_text("---\nname: b\ndescription: another\n---\nnew body\n")
    os.utime(path / "b.md", (1_700_000_100, 1_700_000_100))
    with RootDir.open(path, create=False) as root:
        again = TopicFiles(root, after=first)
        after = again.bodies(again.headers())
    assert after["a.md"] is before["a.md"]
    assert "new body" in after["b.md"]
