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
    AnchorTarget,
    Evidence,
    Freshness,
    UnreadablePath,
    anchor_text,
    check_evidence,
    combine_freshness,
    judge_anchor,
    pin_evidence,
    read_anchor,
    read_evidence,
    read_target,
    short_file_digest,
    symbol_lines,
)

SOURCE = b"class Pool:\n    def connect(self): ...\n"
DIGEST = short_file_digest(SOURCE)
CONNECT = short_file_digest(b"    def connect(self): ...")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "db.py").write_bytes(SOURCE)
    return root


def state(project: Path, *texts: str) -> Freshness:
    return check_evidence(read_evidence(list(texts)), project)


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
digests = st.one_of(st.just(""), st.binary(max_size=8).map(short_file_digest))


@pytest.mark.spec("B8")
@given(st.builds(Anchor, paths, symbols, digests))
def test_an_anchor_comes_back_from_its_text(anchor: Anchor) -> None:
    assert read_anchor(anchor_text(anchor)) == anchor


@given(st.lists(st.text()))
def test_any_list_of_texts_is_read_and_each_is_kept(texts: list[str]) -> None:
    evidence = read_evidence(texts)
    assert sorted([*map(anchor_text, evidence.anchors), *evidence.unreadable]) == sorted(texts)
    assert len(evidence.anchors) <= MOST_ANCHORS


@pytest.mark.spec("B8")
@pytest.mark.parametrize(
    ("anchor", "seen", "expected"),
    [
        (Anchor("a.py"), b"", Freshness("fresh", "a.py is unchanged")),
        (Anchor("a.py"), None, Freshness("stale", "a.py no longer exists")),
        (Anchor("a.py", "", DIGEST), SOURCE, Freshness("fresh", "a.py is unchanged")),
        (Anchor("a.py", "", DIGEST), SOURCE + b"\n", Freshness("stale", "a.py has changed")),
        (Anchor("a.py", "connect"), SOURCE, Freshness("fresh", "connect is still in a.py")),
        (Anchor("a.py", "connect", DIGEST), SOURCE, Freshness("fresh", "connect is unchanged in a.py")),
        (Anchor("a.py", "connect", DIGEST), b"connect = 1", Freshness("stale", "connect in a.py has changed")),
        (Anchor("a.py", "connect", DIGEST), b"reconnect = 1", Freshness("stale", "connect is no longer in a.py")),
        (Anchor("a.py", "x"), UnreadablePath("is a directory"), Freshness("unverifiable", "a.py is a directory")),
    ],
)
def test_the_judgement_follows_from_what_is_there(anchor: Anchor, seen: AnchorTarget, expected: Freshness) -> None:
    assert judge_anchor(anchor, seen) == expected


PYTHON = """\
from pool import connect

@cached
def connect(
    host,
) -> Connection:
    \"\"\"Open it.\"\"\"

    return dial(host)

class Pool:
    def close(self): ...
    def connect(self):
        return self.idle.pop()
"""
GO = """\
// connect is called by Pool.
func connect(host string) Conn {
\tif host == "" {
\t\treturn nil
\t}
\treturn dial(host)
}

func (p *Pool) Close() {}
"""


@pytest.mark.spec("B8")
@pytest.mark.parametrize(
    ("source", "symbol", "old", "new", "state"),
    [
        (PYTHON, "connect", "return dial(host)", "return dial(host, tls=True)", "stale"),
        (PYTHON, "connect", "    host,", "    host, port,", "stale"),
        (PYTHON, "connect", "self.idle.pop()", "self.idle.popleft()", "fresh"),
        (PYTHON, "connect", "from pool", "import os\nfrom pool", "fresh"),
        (PYTHON, "Pool.connect", "self.idle.pop()", "self.idle.popleft()", "stale"),
        (PYTHON, "Pool.connect", "return dial(host)", "return None", "fresh"),
        (PYTHON, "Pool", "self.idle.pop()", "self.idle.popleft()", "stale"),
        (GO, "connect", "return nil", "panic(host)", "stale"),
        (GO, "connect", "Close() {}", "Close() { p.done() }", "fresh"),
        (GO, "connect", "is called by", "serves", "fresh"),
    ],
)
def test_a_symbol_is_stale_when_its_own_lines_change(
    source: str, symbol: str, old: str, new: str, state: str, tmp_path: Path
) -> None:
    (tmp_path / "source").write_text(source)
    evidence = read_evidence(pin_evidence([f"source#{symbol}"], tmp_path))
    assert check_evidence(evidence, tmp_path) == Freshness("fresh", f"{symbol} is unchanged in source")
    assert old in source
    (tmp_path / "source").write_text(source.replace(old, new))
    assert check_evidence(evidence, tmp_path).state == state


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
    assert (symbol_lines(SOURCE, symbol) is not None) is found


def test_the_worst_judgement_counts() -> None:
    fresh, unknown, stale = Freshness("fresh", "a"), Freshness("unverifiable", "b"), Freshness("stale", "c")
    assert combine_freshness([fresh, unknown, stale]) == stale
    assert combine_freshness([fresh, unknown]) == unknown
    assert combine_freshness([fresh, fresh]) == Freshness("fresh", "a; a")
    assert combine_freshness([]).state == "unverifiable"
    assert combine_freshness([fresh], ["/etc/passwd"]).state == "unverifiable"


@pytest.mark.spec("B8")
def test_evidence_with_a_digest_is_fresh_until_the_file_changes(project: Path) -> None:
    texts = (f"src/db.py@{DIGEST}", f"src/db.py#connect@{CONNECT}")
    assert state(project, *texts).state == "fresh"
    (project / "src" / "db.py").write_bytes(SOURCE + b"# more\n")
    assert state(project, *texts) == Freshness("stale", "src/db.py has changed")
    assert state(project, f"src/db.py#connect@{CONNECT}").state == "fresh"
    (project / "src" / "db.py").unlink()
    assert state(project, *texts).state == "stale"


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
        assert read_target(path, project) == UnreadablePath("leads out of the project")
    assert read_target("in/db.py", project) == SOURCE


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
    assert [*map(anchor_text, evidence.anchors), *evidence.unreadable] == texts
    assert len(evidence.anchors) == MOST_ANCHORS
    assert check_evidence(evidence, project).state == "stale"


@given(st.lists(st.text(max_size=40), max_size=5))
def test_no_text_makes_a_check_fail(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    root = tmp_path_factory.getbasetemp()
    assert check_evidence(read_evidence(texts), root).state in ("fresh", "stale", "unverifiable")
    assert check_evidence(Evidence(tuple(map(Anchor, texts))), root).state in ("fresh", "stale", "unverifiable")


@pytest.mark.spec("B8")
def test_evidence_gets_its_digest_when_it_is_recorded(project: Path) -> None:
    given = ["src/db.py", "src/db.py#Pool.connect", str(project / "src" / "db.py"), "./src/db.py", "gone.py", "no file at all"]
    pinned = pin_evidence(given, project)
    assert pinned == (
        f"src/db.py@{DIGEST}",
        f"src/db.py#Pool.connect@{CONNECT}",
        f"src/db.py@{DIGEST}",
        f"src/db.py@{DIGEST}",
        "gone.py",
        "no file at all",
    )
    old = f"src/db.py@{short_file_digest(b'before')}"
    assert pin_evidence([*pinned, old], project) == (*pinned, old), "a recorded digest stays"
    assert pin_evidence(["/etc/passwd", "../x", "src/db.py@x"], project) == ("/etc/passwd", "../x", "src/db.py@x")
