"""Evidence: anchors in words people can read, and a judgement that never leaves the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.memory.store.evidence import (
    MOST_ANCHORS,
    MOST_BYTES,
    Anchor,
    Evidence,
    Found,
    Freshness,
    Hidden,
    Seen,
    anchor_text,
    anchors,
    check,
    digest_of,
    holds,
    judge,
    look,
    read_anchor,
    read_evidence,
    taken_together,
)

SOURCE = b"class Pool:\n    def connect(self): ...\n"
DIGEST = digest_of(SOURCE)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "db.py").write_bytes(SOURCE)
    return root


def state(project: Path, *texts: str) -> Freshness:
    return check(read_evidence(list(texts)), project)


@pytest.mark.parametrize(
    ("text", "anchor"),
    [
        ("src/db.py", Anchor("src/db.py")),
        ("src/db.py#connect", Anchor("src/db.py", "connect")),
        (f"src/db.py#Pool.connect@{DIGEST}", Anchor("src/db.py", "Pool.connect", DIGEST)),
        (f"src/db.py@{DIGEST}", Anchor("src/db.py", "", DIGEST)),
        ("node_modules/@types/x.d.ts", Anchor("node_modules/@types/x.d.ts")),
        ("notes%23 1.md", Anchor("notes# 1.md")),
        ("文档/说明.md#连接", Anchor("文档/说明.md", "连接")),
        ("/etc/passwd", None),
        ("../secrets.txt", None),
        ("a/../../b", None),
        (".git/config", None),
        ("C:/Windows/win.ini", None),
        ("a\\b", None),
        ("a\x00b", None),
        ("", None),
        ("x" * 2_000, None),
    ],
)
def test_an_anchor_is_read_from_its_text(text: str, anchor: Anchor | None) -> None:
    assert read_anchor(text) == anchor


names = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp", "Cf", "Co", "Cn"), exclude_characters="/\\:"), min_size=1
)
paths = st.lists(names.filter(lambda name: name not in (".", "..", ".git")), min_size=1, max_size=4).map("/".join)
symbols = st.one_of(st.just(""), names.filter(lambda name: "@" not in name))
digests = st.one_of(st.just(""), st.binary(max_size=8).map(digest_of))


@pytest.mark.spec("B8")
@given(st.builds(Anchor, paths, symbols, digests))
def test_an_anchor_comes_back_from_its_text(anchor: Anchor) -> None:
    assert read_anchor(anchor_text(anchor)) == anchor


@given(
    st.one_of(
        st.none(),
        st.integers(),
        st.text(),
        st.lists(st.one_of(st.text(), st.none(), st.integers())),
        st.dictionaries(st.text(), st.text()),
    )
)
def test_any_value_of_the_field_is_read_and_its_texts_are_kept(value: object) -> None:
    evidence = read_evidence(value)
    kept = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
    assert sorted(text for text in evidence.texts if text in kept) == sorted(kept)
    assert len(evidence.anchors) <= MOST_ANCHORS


@pytest.mark.spec("B8")
@pytest.mark.parametrize(
    ("anchor", "seen", "expected"),
    [
        (Anchor("a.py"), Found(b""), Freshness("fresh", "a.py is as it was")),
        (Anchor("a.py"), Found(None), Freshness("stale", "a.py is gone")),
        (Anchor("a.py", "", DIGEST), Found(SOURCE), Freshness("fresh", "a.py is as it was")),
        (Anchor("a.py", "", DIGEST), Found(SOURCE + b"\n"), Freshness("stale", "a.py has changed")),
        (Anchor("a.py", "connect"), Found(SOURCE), Freshness("fresh", "connect is in a.py")),
        (Anchor("a.py", "connect", DIGEST), Found(b"connect = 1"), Freshness("fresh", "connect is in a.py, which has changed")),
        (Anchor("a.py", "connect", DIGEST), Found(b"reconnect = 1"), Freshness("stale", "connect is no longer in a.py")),
        (Anchor("a.py", "x"), Hidden("is a directory"), Freshness("unverifiable", "a.py is a directory")),
    ],
)
def test_the_judgement_follows_from_what_is_there(anchor: Anchor, seen: Seen, expected: Freshness) -> None:
    assert judge(anchor, seen) == expected


@pytest.mark.parametrize(
    ("symbol", "found"),
    [
        ("connect", True),
        ("Pool.connect", True),
        ("Pool::connect", True),
        ("Pool#connect", True),
        ("Pool.close", False),
        ("onnect", False),
        ("conn", False),
        (".", False),
        ("(self)", True),
    ],
)
def test_a_symbol_is_found_as_a_whole_word(symbol: str, found: bool) -> None:
    assert holds(SOURCE, symbol) is found


def test_the_worst_judgement_counts() -> None:
    fresh, unknown, stale = Freshness("fresh", "a"), Freshness("unverifiable", "b"), Freshness("stale", "c")
    assert taken_together([fresh, unknown, stale]) == stale
    assert taken_together([fresh, unknown]) == unknown
    assert taken_together([fresh, fresh]) == Freshness("fresh", "a; a")
    assert taken_together([]).state == "unverifiable"
    assert taken_together([fresh], ["/etc/passwd"]).state == "unverifiable"


@pytest.mark.spec("B8")
def test_evidence_taken_today_is_fresh_until_the_file_changes(project: Path) -> None:
    evidence = anchors(["src/db.py", "src/db.py#connect", "src/db.py", " "], project)
    assert evidence.texts == (f"src/db.py@{DIGEST}", f"src/db.py#connect@{DIGEST}")
    assert check(evidence, project).state == "fresh"
    (project / "src" / "db.py").write_bytes(SOURCE + b"# more\n")
    assert check(evidence, project) == Freshness("stale", "src/db.py has changed")
    assert state(project, f"src/db.py#connect@{DIGEST}").state == "fresh"
    (project / "src" / "db.py").unlink()
    assert check(evidence, project).state == "stale"


def test_evidence_taken_again_gets_the_digest_of_today(project: Path) -> None:
    assert anchors([f"src/db.py@{'0' * 16}", "gone.py"], project).texts == (f"src/db.py@{DIGEST}", "gone.py")


@pytest.mark.spec("B8", "G1")
def test_a_link_out_of_the_project_is_not_followed(project: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(SOURCE)
    (tmp_path / "project-two").mkdir()
    (tmp_path / "project-two" / "f").write_bytes(SOURCE)
    (project / "out").symlink_to(tmp_path / "secret")
    (project / "up").symlink_to(tmp_path)
    (project / "in").symlink_to(project / "src")
    (project / "beside").symlink_to(tmp_path / "project-two")
    for path in ("out", "up/secret", "beside/f"):
        assert look(path, project) == Hidden("leads out of the project")
        assert anchors([path], project).texts == (path,)
    assert look("in/db.py", project) == Found(SOURCE)


def test_what_is_no_regular_file_is_unverifiable_and_nothing_blocks(project: Path) -> None:
    os.mkfifo(project / "pipe")
    (project / "loop").symlink_to(project / "loop")
    for path in ("pipe", "src", "loop/x", "src/db.py/x"):
        assert state(project, path).state in ("unverifiable", "stale")
    assert state(project, "pipe") == Freshness("unverifiable", "pipe is a named pipe")


def test_a_file_too_large_to_read_is_unverifiable(project: Path) -> None:
    with open(project / "big.bin", "wb") as file:
        file.truncate(MOST_BYTES + 1)
    assert state(project, "big.bin") == Freshness("unverifiable", "big.bin is larger than 4 MB")


def test_a_project_that_is_gone_says_nothing_about_its_files(tmp_path: Path) -> None:
    assert state(tmp_path / "gone", "a.py").state == "unverifiable"


def test_more_anchors_than_are_checked_are_kept(project: Path) -> None:
    texts = [f"f{number}.py" for number in range(MOST_ANCHORS + 5)]
    evidence = read_evidence(texts)
    assert list(evidence.texts) == texts
    assert len(evidence.anchors) == MOST_ANCHORS
    assert check(Evidence(tuple(map(Anchor, texts))), project).state == "stale"


@given(st.lists(st.text(max_size=40), max_size=5))
def test_no_text_makes_a_check_fail(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    root = tmp_path_factory.getbasetemp()
    assert check(read_evidence(texts), root).state in ("fresh", "stale", "unverifiable")
    assert check(Evidence(tuple(map(Anchor, texts))), root).state in ("fresh", "stale", "unverifiable")
