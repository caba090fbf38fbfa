from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.prompt.includes import (
    MOST_PER_FILE,
    ForbiddenInclude,
    IncludeReach,
    IncludeTarget,
    find_includes,
    judge_include,
    meant_as_file,
    resolve,
)

PROJECT = Path("/home/ann/project")
REACH = IncludeReach(PROJECT, (PROJECT,))


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("@README", ["README"]),
        ("@./a.md", ["./a.md"]),
        ("@../a.md", ["../a.md"]),
        ("@~/a.md", ["~/a.md"]),
        ("@/a/b.md", ["/a/b.md"]),
        ("See @docs/a.md, @docs/b.md; and @docs/c.md.", ["docs/a.md", "docs/b.md", "docs/c.md"]),
        ("- @a.md\n* @b.md\n1. @c.md\n> @d.md", ["a.md", "b.md", "c.md", "d.md"]),
        ("**@a.md** *@b.md* _@c.md_ \"@d.md\" '@e.md'", ["a.md", "b.md", "c.md", "d.md", "e.md"]),
        (r"@my\ notes/a\ b.md", ["my notes/a b.md"]),
        ("@a.md#top @b.json @c.py", ["a.md", "b.json", "c.py"]),
        ("@app/(group)/page.md)", ["app/(group)/page.md"]),
        ("@a_b_.md @a.md @a.md", ["a_b_.md", "a.md"]),
        ("# Heading @a.md", ["a.md"]),
        ("@a.md: what it says!", ["a.md"]),
        ("请看 @文档/规则.md。", ["文档/规则.md"]),
    ],
)
def test_paths_are_found_in_prose(text: str, paths: list[str]) -> None:
    assert find_includes(text) == paths


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    "text",
    [
        "ann@example.com",
        "`@a.md`",
        "```\n@a.md\n```",
        "~~~md\n@a.md\n~~~",
        "Text\n\n    @a.md",
        "(@a.md)",
        "[a](@a.md)",
        '@app.route("/x")',
        "@https://example.com/a.md",
        "@ a.md",
        "@",
        "@...",
        "@~/",
        "<!-- -->@a.md",
        "@a\x07b.md",
        "@" + "a" * 2_000,
    ],
)
def test_what_is_no_include_is_left_alone(text: str) -> None:
    assert find_includes(text) == []


def test_a_file_names_a_bounded_number_of_others() -> None:
    assert len(find_includes(" ".join(f"@{number}.md" for number in range(1_000)))) == MOST_PER_FILE


@given(st.text())
def test_any_text_can_be_looked_through(text: str) -> None:
    for spelled in find_includes(text):
        assert spelled.isprintable()


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        *(("./x", True), ("~/x", True), ("/x", True), ("a/b.md", True), ("A.MD", True)),
        *(("ann", False), ("types/node", False), ("pytest.fixture", False), ("functools.cache", False)),
    ],
)
def test_handles_decorators_and_packages_are_not_meant_as_files(spelled: str, meant: bool) -> None:
    assert meant_as_file(spelled) is meant


def test_a_path_is_resolved_through_its_links(tmp_path: Path) -> None:
    real = Path(tmp_path.resolve())
    (real / "docs").mkdir()
    (real / "docs" / "a.md").write_text("a")
    (real / "link").symlink_to(real / "docs")
    found = resolve("./link/../link/a.md", beside=real, person=None)
    assert found is not None
    assert found.real == real / "docs" / "a.md"
    assert resolve("~/docs/a.md", beside=Path("/"), person=real) == IncludeTarget(real / "docs" / "a.md", real / "docs" / "a.md")
    assert resolve("~/docs/a.md", beside=Path("/"), person=None) is None


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    "real", ["/home/ann/other/a.md", "/home/ann/project-2/a.md", "/home/ann/a.md", "/var/log/x", "/etcetera/x", "/home/ann/etc/x"]
)
def test_what_lies_outside_the_project_is_asked_about(real: str) -> None:
    assert judge_include(Path(real), REACH) == "ask"
    assert judge_include(Path(real), msgspec.structs.replace(REACH, exempt=True)) == "load"


@pytest.mark.spec("I2", "G3")
@pytest.mark.parametrize(
    "real",
    [
        "/etc/passwd",
        "/private/etc/passwd",
        "/proc/self/environ",
        "/dev/stdin",
        "/home/ann/.ssh/id_ed25519",
        "/home/ann/.AWS/credentials",
        "/home/ann/.netrc",
        "/home/ann/project/.env",
        "/home/ann/project/.git/config",
        "/home/ann/project/sub/.ssh/key",
        "/home/ann/project/.env.staging",
        "/home/ann/project/.ENV.Production",
        "/home/ann/project/keys/id_rsa",
        "/home/ann/id_ed25519",
        "/home/ann/_netrc",
    ],
)
def test_keys_and_system_files_are_refused_without_a_question(real: str) -> None:
    assert isinstance(judge_include(Path(real), REACH), ForbiddenInclude)
    assert judge_include(Path(real), msgspec.structs.replace(REACH, exempt=True)) == "load"


@pytest.mark.parametrize(
    ("real", "project"),
    [
        ("/home/ann/project/docs/a.md", "/home/ann/project"),
        ("/etc/nginx/a.md", "/etc/nginx"),
        ("/home/ann/.ssh/p/a.md", "/home/ann/.ssh/p"),
    ],
)
def test_what_lies_inside_the_project_is_loaded(real: str, project: str) -> None:
    assert judge_include(Path(real), IncludeReach(Path(project), (Path(project),))) == "load"


def test_a_project_at_the_root_of_the_disk_does_not_own_the_system() -> None:
    assert isinstance(judge_include(Path("/etc/passwd"), IncludeReach(Path("/"), (Path("/"),))), ForbiddenInclude)
