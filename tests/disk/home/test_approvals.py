from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lamina.core.errors import DiskError
from lamina.disk.home.approvals import FILE_NAME, load_approvals, record_approval

PROJECT = Path("/work/project")
FILE = Path("/shared/style.md")


@pytest.mark.spec("I2")
def test_an_answer_is_remembered_for_one_project_and_one_path(tmp_path: Path) -> None:
    record_approval(tmp_path, PROJECT, FILE, allowed=True)
    record_approval(tmp_path, PROJECT, Path("/shared/no.md"), allowed=False)
    answers = load_approvals(tmp_path, PROJECT)
    assert answers.answer(FILE) is True
    assert answers.answer(Path("/shared/no.md")) is False
    assert answers.answer(Path("/shared/other.md")) is None
    assert load_approvals(tmp_path, Path("/work/other")).answer(FILE) is None


def test_without_a_file_nobody_was_asked(tmp_path: Path) -> None:
    assert load_approvals(tmp_path / "none", PROJECT).answer(FILE) is None


def test_an_answer_can_be_changed(tmp_path: Path) -> None:
    record_approval(tmp_path, PROJECT, FILE, allowed=True)
    record_approval(tmp_path, PROJECT, FILE, allowed=False)
    assert load_approvals(tmp_path, PROJECT).answer(FILE) is False


def test_the_file_is_private_and_keeps_what_it_does_not_know(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text(json.dumps({"theirs": 1, "includes": {"/p": {"/x": True, "/y": "maybe"}}}))
    record_approval(tmp_path, PROJECT, FILE, allowed=True)
    kept = json.loads((tmp_path / FILE_NAME).read_text())
    assert kept["theirs"] == 1
    assert kept["includes"]["/p"] == {"/x": True, "/y": "maybe"}
    assert load_approvals(tmp_path, Path("/p")).answers == {"/x": True}
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) & 0o077 == 0


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"includes": []}', '{"version": 2}', '{"version": "x"}', "\0", " " * (2 << 20) + "x"]
)
def test_a_file_that_is_not_ours_approves_nothing_and_is_not_overwritten(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE_NAME).write_text(content)
    with pytest.raises(DiskError, match=FILE_NAME):
        load_approvals(tmp_path, PROJECT)
    with pytest.raises(DiskError, match=FILE_NAME):
        record_approval(tmp_path, PROJECT, FILE, allowed=True)
    assert (tmp_path / FILE_NAME).read_text() == content


def test_a_name_that_is_no_unicode_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="not valid Unicode"):
        record_approval(tmp_path, PROJECT, Path("/x/\udcff.md"), allowed=True)


def test_answers_given_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    paths = [Path(f"/shared/{number}.md") for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda path: record_approval(tmp_path, PROJECT, path, allowed=True), paths))
    assert set(load_approvals(tmp_path, PROJECT).answers) == set(map(str, paths))
