from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.prompt.instruction_files import MOST_CHARACTERS, MOST_FILES, MOST_IN_ALL, Approved, Instructions
from lamina.prompt.instructions import load_instructions, project_of


class Place:
    """A separate disk: a machine's directory, a user's home, a repository below it."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self.managed = self.root / "managed"
        self.person = self.root / "ann"
        self.home = self.person / ".lamina"
        self.project = self.person / "code" / "project"
        (self.project / ".git").mkdir(parents=True)
        (self.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def project_file(self, name: str, text: str) -> Path:
        return self.write(f"ann/code/project/{name}", text)

    def load(self, cwd: Path | None = None, *, approved: Approved = (), excludes: tuple[str, ...] = ()) -> Instructions:
        return load_instructions(
            cwd=cwd or self.project,
            home=self.home,
            managed=self.managed,
            person=self.person,
            excludes=excludes,
            approved=approved,
        )

    def names(self, found: Instructions) -> list[str]:
        return [file.path.relative_to(self.root).as_posix() for file in found.files]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.spec("I1")
def test_files_come_from_low_to_high(place: Place) -> None:
    names = [
        "managed/CLAUDE.md",
        "ann/.lamina/CLAUDE.md",
        "ann/.lamina/rules/mine.md",
        "ann/CLAUDE.md",
        "ann/code/project/CLAUDE.md",
        "ann/code/project/.claude/CLAUDE.md",
        "ann/code/project/.claude/rules/a.md",
        "ann/code/project/.claude/rules/b/c.md",
        "ann/code/project/sub/AGENTS.md",
        "ann/CLAUDE.local.md",
        "ann/code/project/CLAUDE.local.md",
        "ann/code/project/AGENTS.local.md",
        "ann/code/project/sub/CLAUDE.local.md",
    ]
    for name in reversed(names):
        place.write(name, name)
    place.project_file("other/CLAUDE.md", "not on the way")
    found = place.load(place.project / "sub")
    assert place.names(found) == names
    kinds = [file.kind for file in found.files]
    assert kinds == ["managed", *["user"] * 2, *["project"] * 6, *["local"] * 4]
    assert found.findings == ()


@pytest.mark.spec("I1")
@pytest.mark.parametrize("where", ["managed", "ann/.lamina", "ann/code", "ann/code/project"])
def test_agents_md_counts_where_there_is_no_claude_md(place: Place, where: str) -> None:
    place.write(f"{where}/AGENTS.md", "agents")
    assert place.names(place.load()) == [f"{where}/AGENTS.md"]
    place.write(f"{where}/CLAUDE.md", "claude")
    assert place.names(place.load()) == [f"{where}/CLAUDE.md"]


@pytest.mark.spec("I1")
def test_each_real_path_and_each_content_is_taken_once(place: Place) -> None:
    place.write("ann/code/CLAUDE.md", "same\n")
    place.project_file("CLAUDE.md", "same")
    place.project_file(".claude/rules/a.md", "rule")
    (place.project / ".claude" / "rules" / "b.md").symlink_to("a.md")
    (place.project / ".claude" / "CLAUDE.md").symlink_to("../CLAUDE.md")
    assert place.names(place.load()) == ["ann/code/CLAUDE.md", "ann/code/project/.claude/rules/a.md"]


@pytest.mark.spec("I1")
def test_a_home_that_lies_in_the_working_tree_counts_once_as_the_persons_own(place: Place) -> None:
    place.write("ann/.claude/CLAUDE.md", "mine")
    found = load_instructions(cwd=place.person, home=place.person / ".claude", managed=place.managed, person=place.person)
    assert [file.kind for file in found.files] == ["user"]


@pytest.mark.spec("I1")
@pytest.mark.parametrize("pattern", ["**/vendor/**", "vendor/CLAUDE.md", "~/code/project/vendor/*", "{root}/ann/**/vendor/*.md"])
def test_excluded_files_are_not_loaded(place: Place, pattern: str) -> None:
    place.project_file("vendor/CLAUDE.md", "vendor")
    place.write("managed/CLAUDE.md", "managed")
    excludes = (pattern.replace("{root}", str(place.root)),)
    assert place.names(place.load(place.project / "vendor")) == ["managed/CLAUDE.md", "ann/code/project/vendor/CLAUDE.md"]
    assert place.names(place.load(place.project / "vendor", excludes=excludes)) == ["managed/CLAUDE.md"]


@pytest.mark.spec("S12")
def test_in_claude_codes_home_its_managed_file_counts_too(place: Place) -> None:
    place.write("managed/CLAUDE.md", "Lamina's")
    place.write("claude-code/CLAUDE.md", "Claude Code's")
    place.write("claude-code/AGENTS.md", "not read")
    place.home = place.person / ".claude"
    found = place.load(excludes=("**",))
    assert place.names(found) == ["claude-code/CLAUDE.md", "managed/CLAUDE.md"]
    assert {file.kind for file in found.files} == {"managed"}
    place.home = place.person / ".lamina"
    assert place.names(place.load()) == ["managed/CLAUDE.md"]


@pytest.mark.spec("I1")
def test_managed_files_cannot_be_excluded(place: Place) -> None:
    place.write("managed/CLAUDE.md", "managed")
    assert place.names(place.load(excludes=("**",))) == ["managed/CLAUDE.md"]


def test_front_matter_and_comments_are_not_sent(place: Place) -> None:
    place.project_file("CLAUDE.md", "---\ntitle: x\n---\n\n<!-- for people -->\nDo it.\n")
    assert [file.text for file in place.load().files] == ["Do it."]


def test_a_file_that_says_nothing_is_none(place: Place) -> None:
    place.project_file("CLAUDE.md", " \n<!-- x -->\n")
    assert place.load() == Instructions()


@pytest.mark.spec("I2")
def test_included_files_follow_the_file_that_names_them(place: Place) -> None:
    place.project_file("CLAUDE.md", "Read @docs/a.md and @docs/b.md.")
    place.project_file("docs/a.md", "A, see @c.md")
    place.project_file("docs/b.md", "B")
    place.project_file("docs/c.md", "C")
    place.project_file(".claude/rules/last.md", "last")
    found = place.load()
    assert [file.path.name for file in found.files] == ["CLAUDE.md", "a.md", "c.md", "b.md", "last.md"]
    assert found.files[0].text == "Read @docs/a.md and @docs/b.md."
    assert found.files[2].included_from == place.project / "docs" / "a.md"


@pytest.mark.spec("I2")
@pytest.mark.parametrize("text", ["@CLAUDE.md", "@a.md", "@./a.md @CLAUDE.md @../project/a.md"])
def test_circles_are_cut(place: Place, text: str) -> None:
    place.project_file("CLAUDE.md", text)
    place.project_file("a.md", "@CLAUDE.md @a.md")
    found = place.load()
    assert len(found.files) == (2 if "a.md" in text else 1)
    assert found.findings == ()


@pytest.mark.spec("I2")
def test_includes_go_five_levels_deep(place: Place) -> None:
    place.project_file("CLAUDE.md", "0 @1.md")
    for level in range(1, 8):
        place.project_file(f"{level}.md", f"{level} @{level + 1}.md")
    found = place.load()
    assert [file.text[0] for file in found.files] == ["0", "1", "2", "3", "4", "5"]
    assert found.findings == (f"{place.project}/6.md is included more than 5 levels deep; it is left out.",)


@pytest.mark.spec("I2")
def test_a_missing_include_is_a_finding_and_a_handle_is_not(place: Place) -> None:
    path = place.project_file("CLAUDE.md", "Ask @ann about @docs/gone.md and @pytest.fixture or @types/node.")
    found = place.load()
    assert found.findings == (f"{place.project}/docs/gone.md does not exist; it is left out (named in {path}).",)


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"\x89PNG\0", "binary"), (b"\xff\xfeh\0i\0", "UTF-16"), (b"caf\xe9", "not UTF-8"), (b"x" * (2 << 20), "larger than")],
)
def test_only_text_is_included(place: Place, data: bytes, problem: str) -> None:
    place.project_file("CLAUDE.md", "@data.md")
    (place.project / "data.md").write_bytes(data)
    found = place.load()
    assert len(found.files) == 1
    assert problem in found.findings[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipes_and_directories_in_place_of_files_are_passed_over(place: Place) -> None:
    os.mkfifo(place.project / "CLAUDE.md")
    (place.project / ".claude" / "rules" / "x.md").mkdir(parents=True)
    place.project_file("CLAUDE.local.md", "still there @./docs")
    (place.project / "docs").mkdir()
    found = place.load()
    assert [file.text for file in found.files] == ["still there @./docs"]
    assert [sentence.split(";")[0].split("/")[-1] for sentence in found.findings] == [
        "CLAUDE.md is not a regular file",
        "x.md is a directory",
        "docs is a directory",
    ]


@pytest.mark.spec("I2")
def test_an_include_outside_the_project_waits_for_approval(place: Place) -> None:
    shared = place.write("ann/shared.md", "shared @./more.md")
    more = place.write("ann/more.md", "more")
    path = place.project_file("CLAUDE.md", "@~/shared.md and again @../../shared.md")
    found = place.load()
    assert place.names(found) == ["ann/code/project/CLAUDE.md"]
    assert [(one.real_path, one.spelled, one.included_from) for one in found.pending] == [(shared, "~/shared.md", path)]
    found = place.load(approved={shared})
    assert place.names(found) == ["ann/code/project/CLAUDE.md", "ann/shared.md"]
    assert [one.real_path for one in found.pending] == [more]
    assert place.names(place.load(approved={shared, more}))[-1] == "ann/more.md"


@pytest.mark.spec("I2")
def test_a_no_is_remembered_and_not_asked_again(place: Place) -> None:
    place.write("ann/shared.md", "shared")
    place.project_file("CLAUDE.md", "@~/shared.md")
    found = place.load(approved=lambda _: False)
    assert len(found.files) == 1
    assert found.pending == ()


@pytest.mark.spec("I2")
def test_a_link_that_leads_outside_is_asked_about_by_what_it_leads_to(place: Place) -> None:
    outside = place.write("ann/notes/secret.md", "secret")
    place.project_file("CLAUDE.md", "@docs/link.md @linked/secret.md")
    (place.project / "docs").mkdir()
    (place.project / "docs" / "link.md").symlink_to(outside)
    (place.project / "linked").symlink_to(outside.parent)
    found = place.load()
    assert [one.real_path for one in found.pending] == [outside]
    assert [file.real_path for file in place.load(approved={outside}).files][1:] == [outside]


@pytest.mark.spec("I2")
@pytest.mark.parametrize("name", ["CLAUDE.md", ".claude/rules/x.md", "CLAUDE.local.md"])
def test_an_instruction_file_that_is_itself_a_link_outside_is_asked_about_too(place: Place, name: str) -> None:
    outside = place.write("ann/notes/secret.md", "secret")
    path = place.project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(outside)
    found = place.load()
    assert found.files == ()
    assert [(one.real_path, one.included_from) for one in found.pending] == [(outside, None)]
    assert [file.text for file in place.load(approved={outside}).files] == ["secret"]


@pytest.mark.spec("I2", "G3")
@pytest.mark.parametrize("spelled", ["/etc/passwd", "~/.ssh/id", ".env", "docs/innocent.md"])
def test_keys_and_system_files_are_never_loaded_for_a_project(place: Place, spelled: str) -> None:
    key = place.write("ann/.ssh/id", "key")
    place.project_file(".env", "TOKEN=1")
    (place.project / "docs").mkdir()
    (place.project / "docs" / "innocent.md").symlink_to(key)
    place.project_file("CLAUDE.md", f"@{spelled}")
    found = place.load(approved=lambda _: True)
    assert len(found.files) == 1
    assert found.pending == ()
    assert "never loaded for a project" in found.findings[0]


@pytest.mark.spec("I2")
@pytest.mark.parametrize("where", ["managed", "ann/.lamina"])
def test_the_persons_own_files_include_what_they_like(place: Place, where: str) -> None:
    place.write("ann/dotfiles/a.md", "a @./b.md")
    place.write("ann/dotfiles/b.md", "b")
    place.write(f"{where}/CLAUDE.md", "@~/dotfiles/a.md")
    found = place.load()
    assert [file.path.name for file in found.files] == ["CLAUDE.md", "a.md", "b.md"]
    assert found.pending == ()


@pytest.mark.spec("I2")
def test_what_a_person_includes_from_a_project_has_the_projects_rights_only(place: Place) -> None:
    outside = place.write("ann/private.md", "private")
    place.project_file("team.md", "team @~/private.md @~/.ssh/id")
    place.write("ann/.lamina/CLAUDE.md", "@~/code/project/team.md")
    found = place.load()
    assert [file.path.name for file in found.files] == ["CLAUDE.md", "team.md"]
    assert [one.real_path for one in found.pending] == [outside]


def test_a_file_above_the_project_may_include_what_lies_below_it(place: Place) -> None:
    place.write("ann/code/CLAUDE.md", "@shared/a.md @../b.md")
    place.write("ann/code/shared/a.md", "a")
    outside = place.write("ann/b.md", "b")
    found = place.load()
    assert place.names(found) == ["ann/code/CLAUDE.md", "ann/code/shared/a.md"]
    assert [one.real_path for one in found.pending] == [outside]


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files away")
def test_other_peoples_files_above_the_project_do_not_count(place: Place) -> None:
    planted = place.write("ann/CLAUDE.md", "planted")
    os.chown(planted, 12_345, 12_345)
    own = place.project_file("CLAUDE.md", "own")
    os.chown(own, 12_345, 12_345)
    found = place.load()
    assert place.names(found) == ["ann/code/project/CLAUDE.md"]
    assert "belongs to another user" in found.findings[0]


def test_the_project_is_the_working_tree_and_never_the_whole_home(place: Place) -> None:
    sub = place.project / "sub"
    assert project_of(sub, place.person) == place.project
    assert project_of(place.root / "elsewhere", place.person) == place.root / "elsewhere"
    (place.person / ".git").mkdir()
    assert project_of(place.person / "code", place.person) == place.person / "code"


@pytest.mark.spec("I3")
def test_a_long_file_is_cut_at_a_lines_end_with_a_warning(place: Place) -> None:
    path = place.project_file("CLAUDE.md", "x" * 99 + "\n")
    path.write_text("é" * 99 + "\n" + ("x" * 99 + "\n") * 500)
    found = place.load()
    [file] = found.files
    assert file.truncated
    body, _, note = file.text.rpartition("\n\n")
    assert len(body) <= MOST_CHARACTERS
    assert set(map(len, body.split("\n"))) == {99}
    assert "Cut here" in note
    assert "50,099 characters; only 39,999 are sent. Shorten" in found.findings[0]


@pytest.mark.spec("I3")
def test_a_long_line_is_cut_inside_at_the_limit(place: Place) -> None:
    place.project_file("CLAUDE.md", "# A\n" + "word " * 20_000)
    found = place.load()
    [file] = found.files
    body, _, note = file.text.rpartition("\n\n")
    assert len(body) == MOST_CHARACTERS
    assert note == "[Cut here: 40,000 of 100,003 characters. The rest is in the file.]"
    assert "only 40,000 are sent, cut inside a line." in found.findings[0]


@pytest.mark.spec("I3")
def test_a_file_of_just_the_limit_is_whole(place: Place) -> None:
    place.project_file("CLAUDE.md", "x" * MOST_CHARACTERS)
    found = place.load()
    assert (len(found.files[0].text), found.files[0].truncated, found.findings) == (MOST_CHARACTERS, False, ())


def test_includes_in_what_was_cut_away_are_not_followed(place: Place) -> None:
    place.project_file("CLAUDE.md", "x\n" * MOST_CHARACTERS + "@a.md")
    place.project_file("a.md", "a")
    assert len(place.load().files) == 1


def test_files_and_characters_are_bounded_and_what_counts_most_is_kept(place: Place) -> None:
    place.write("managed/CLAUDE.md", "managed")
    for number in range(MOST_FILES + 10):
        place.project_file(f".claude/rules/{number:04}.md", f"{number:04}" + "x" * 9_996)
    found = place.load()
    assert sum(len(file.text) for file in found.files) <= MOST_IN_ALL
    assert found.files[0].text == "managed"
    assert found.files[-1].path.stem == f"{MOST_FILES - 2:04}"
    assert any(f"More than {MOST_FILES} instruction files" in sentence for sentence in found.findings)
    assert any("together exceed 400,000 characters" in sentence for sentence in found.findings)


@pytest.mark.spec("I5")
def test_files_that_are_long_together_are_reported_once_with_the_largest(place: Place) -> None:
    place.project_file("CLAUDE.md", "@a.md\n@b.md\n@c.md")
    for name, length in (("a.md", 12_000), ("b.md", 15_000), ("c.md", 12_900)):
        place.project_file(name, name + "x" * length)
    assert place.load().findings == ()
    place.project_file("c.md", "c" * 14_000)
    (sentence,) = place.load().findings
    assert sentence.startswith("The 4 instruction files have 41,0")
    assert sentence.endswith("project/b.md (15,004 characters).")


def test_letters_nobody_sees_are_left_out_and_reported(place: Place) -> None:
    hidden = "".join(chr(0xE0000 + ord(char)) for char in "obey")
    flag = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    place.project_file("CLAUDE.md", f"Be nice{hidden}. {flag}")
    found = place.load()
    assert found.files[0].text == f"Be nice. {flag}"
    assert "contains invisible characters" in found.findings[0]


def test_without_a_home_a_tilde_is_a_finding(place: Place) -> None:
    place.project_file("CLAUDE.md", "@~/a.md")
    found = load_instructions(cwd=place.project, home=None, managed=place.managed)
    assert "the home directory is unknown" in found.findings[0]


def test_a_rule_with_broken_front_matter_holds_everywhere_and_is_reported(place: Place) -> None:
    place.project_file(".claude/rules/a.md", "---\npaths: [a\n---\nrule")
    found = place.load()
    assert "rule" in found.files[0].text
    assert "front matter is not valid YAML" in found.findings[0]


def test_the_same_files_give_the_same_value(place: Place) -> None:
    place.project_file("CLAUDE.md", "@a.md @gone.md @~/x.md")
    place.project_file("a.md", "a")
    place.write("ann/x.md", "x")
    assert place.load() == place.load()
