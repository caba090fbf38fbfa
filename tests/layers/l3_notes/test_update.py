"""One update, driven by hand over real files: what takes the place of the old notes and what does not."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.disk.crash.harness import Act, Fail, Kill, Say, every
from tests.disk.processes import needs_fork

from lamina.core.effects import drive
from lamina.core.errors import DiskError
from lamina.core.reply import Reply
from lamina.disk.temp_files import is_temp
from lamina.layers.l3_notes.sections import render
from lamina.layers.l3_notes.update import Draft, NotUpdated, Updated, begin, finish, rewrite

from .working import CURSOR, Model, answer, edit, handed, letters, order, updated, with_bodies

OLD = render(with_bodies(session="old title", worklog="- began"))
NEW = render(with_bodies(session="new title", worklog="- began\n- went on"))


def whole(text: str) -> Reply:
    return answer(f"<notes>\n{text}</notes>")


def put(directory: Path, text: str = OLD) -> Path:
    path = order(directory).path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path


def why(ended: object) -> str:
    assert isinstance(ended, NotUpdated), ended
    return ended.why


@pytest.mark.spec("N1", "N4")
def test_a_whole_file_between_tags_becomes_the_notes(tmp_path: Path) -> None:
    ended, model = updated(order(tmp_path), whole(NEW))
    assert isinstance(ended, Updated)
    assert ended.cursor == CURSOR
    assert order(tmp_path).path.read_text() == NEW
    assert order(tmp_path).path.stat().st_mode & 0o777 == 0o600
    assert "# Session Title" in model.asked[0]


@pytest.mark.spec("N4")
def test_edits_become_the_notes_with_one_call(tmp_path: Path) -> None:
    path = put(tmp_path)
    ended, model = updated(
        order(tmp_path, "edit"), answer(edit(path, "old title", "new title"), edit(path, "- began", "- began\n- went on", "e2"))
    )
    assert isinstance(ended, Updated)
    assert path.read_text() == NEW
    assert len(model.asked) == 1


def test_an_edit_that_fails_is_told_once_and_can_be_mended(tmp_path: Path) -> None:
    path = put(tmp_path)
    first = answer(edit(path, "- began", "- began\n- went on"), edit(path, "no such text", "new title", "e2"))
    ended, model = updated(order(tmp_path, "edit"), first, answer(edit(path, "old title", "new title")))
    assert isinstance(ended, Updated)
    assert len(ended.outcomes) == 2
    assert path.read_text() == NEW
    assert "- went on" in model.asked[1]
    assert "was not found in the file" in model.asked[1]


ALTERING: dict[str, Callable[[Path], list[Reply]]] = {
    "by an edit": lambda path: [answer(edit(path, "# Worklog", "# Log"))] * 2,
    "by an edit among good ones": lambda path: [answer(edit(path, "old", "new"), edit(path, "_One terse", "_Some", "e2"))] * 2,
    "in the whole file": lambda path: [whole(NEW.replace("# Worklog", "# Log"))],
    "a description in the whole file": lambda path: [whole(NEW.replace("_One terse", "_One short"))],
}


@pytest.mark.spec("N1", "N3")
@pytest.mark.parametrize("answers", ALTERING.values(), ids=ALTERING)
def test_an_update_that_alters_a_heading_or_description_leaves_the_old_file(
    tmp_path: Path, answers: Callable[[Path], list[Reply]]
) -> None:
    path = put(tmp_path)
    said = answers(path)
    ended, _ = updated(order(tmp_path, "edit" if said[0].tool_uses else "sections"), *said)
    assert re.search("the (heading|description).*(Worklog|Log)", why(ended))
    assert path.read_text() == OLD


USELESS = {
    "no tags": answer("All is noted."),
    "nothing": answer(""),
    "only thinking of it": answer("<notes>"),
    "refused": answer("I can't help with that.", stop="refusal"),
    "cut off": answer(f"<notes>\n{NEW[:200]}", stop="max_tokens"),
    "broken off": answer(f"<notes>\n{NEW[:200]}", stop="none"),
    "other tools": answer({"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/etc/passwd"}}),
    "the template": whole(render(with_bodies())),
    "a hundred thousand tokens": whole(render(with_bodies(worklog="word " * 80_000))),
}


@pytest.mark.spec("N3", "B1")
@pytest.mark.parametrize("reply", USELESS.values(), ids=USELESS)
@pytest.mark.parametrize("how", ["sections", "edit"])
def test_an_answer_that_is_no_notes_changes_nothing(tmp_path: Path, reply: Reply, how: str) -> None:
    path = put(tmp_path)
    ended, _ = updated(order(tmp_path, "edit" if how == "edit" else "sections"), reply, reply)
    assert why(ended)
    assert path.read_text() == OLD
    assert os.listdir(path.parent) == ["summary.md"]


@pytest.mark.spec("N4")
def test_a_persons_change_during_the_update_wins(tmp_path: Path) -> None:
    path = put(tmp_path)
    job = order(tmp_path)
    mine = OLD.replace("old title", "my title")
    draft = Draft()
    begun = begin(job)
    done = drive(rewrite(job, begun, handed(), draft, letters), Model(draft, whole(NEW)))
    path.write_text(mine)
    assert "in the meantime" in why(finish(job, begun, done, letters))
    assert path.read_text() == mine


@pytest.mark.parametrize("nonsense", ["my shopping list", "# Session Title\n", OLD.replace("# Workflow", "# Flow")])
def test_a_file_that_is_no_longer_notes_is_kept_beside_and_fresh_notes_are_begun(tmp_path: Path, nonsense: str) -> None:
    path = put(tmp_path, nonsense)
    ended, model = updated(order(tmp_path), whole(NEW))
    assert isinstance(ended, Updated)
    assert path.read_text() == NEW
    assert Path(ended.beside).read_text() == nonsense
    assert Path(ended.beside).parent == path.parent
    assert "It is renamed" in ended.remarks[0]
    assert "shopping" not in model.asked[0]


def test_nonsense_stays_where_it_is_while_updates_fail(tmp_path: Path) -> None:
    path = put(tmp_path, "my shopping list")
    ended, _ = updated(order(tmp_path), answer("no"))
    assert isinstance(ended, NotUpdated)
    assert path.read_text() == "my shopping list"
    assert os.listdir(path.parent) == ["summary.md"]


def test_bytes_that_are_no_text_are_no_notes(tmp_path: Path) -> None:
    put(tmp_path).write_bytes(b"\xff\xfe\x00")
    ended, _ = updated(order(tmp_path), whole(NEW))
    assert isinstance(ended, Updated)
    assert Path(ended.beside).read_bytes() == b"\xff\xfe\x00"


@pytest.mark.spec("N5")
def test_a_template_and_a_prompt_of_the_users_are_in_force(tmp_path: Path) -> None:
    config = tmp_path / "home" / "session-memory" / "config"
    config.mkdir(parents=True)
    (config / "template.md").write_text("# Goal\n_why_\n")
    (config / "prompt.md").write_text("Keep {{notesPath}}: {{currentNotes}}")
    job = order(tmp_path / "s", home=tmp_path / "home")
    ended, model = updated(job, whole("# Goal\n_why_\nto ship\n"))
    assert isinstance(ended, Updated)
    assert job.path.read_text() == "# Goal\n_why_\nto ship\n"
    assert model.asked[0].startswith(f"Keep {job.path}: # Goal\n_why_")
    assert isinstance(updated(job, whole(NEW))[0], NotUpdated)


@pytest.mark.spec("N5")
def test_a_config_that_cannot_be_read_is_said_and_ours_is_used(tmp_path: Path) -> None:
    config = tmp_path / "home" / "session-memory" / "config"
    config.mkdir(parents=True)
    (config / "template.md").write_bytes(b"\xff\xff")
    (config / "prompt.md").mkdir()
    ended, _ = updated(order(tmp_path / "s", home=tmp_path / "home"), whole(NEW))
    assert isinstance(ended, Updated)
    assert len(ended.remarks) == 2


@pytest.mark.parametrize("what", ["a file where the directory belongs", "a link to elsewhere"])
def test_a_directory_that_cannot_be_used_is_an_error_and_nothing_is_written_elsewhere(tmp_path: Path, what: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    session = tmp_path / "s"
    session.mkdir()
    if what.startswith("a file"):
        (session / "session-memory").write_text("x")
    else:
        (session / "session-memory").symlink_to(elsewhere)
    with pytest.raises(DiskError):
        updated(order(session), whole(NEW))
    assert list(elsewhere.iterdir()) == []


def do_update(directory: Path, say: Say) -> None:
    ended, _ = updated(order(directory), whole(NEW))
    if isinstance(ended, Updated):
        say("done")


def do_begin_anew(directory: Path, say: Say) -> None:
    put(directory, "nonsense")
    do_update(directory, say)


@needs_fork
@pytest.mark.spec("N1", "Z1")
@pytest.mark.parametrize(("act", "before"), [(do_update, OLD), (do_begin_anew, "nonsense")], ids=["update", "begin anew"])
@pytest.mark.parametrize("fault", [Kill(), Kill(torn=True), Fail(errno.ENOSPC), Fail(errno.EROFS)], ids=str)
@pytest.mark.usefixtures("crash_points")
def test_whatever_stops_an_update_the_notes_are_old_or_new_and_nothing_is_lost(
    tmp_path: Path, act: Act, before: str, fault: Kill | Fail
) -> None:
    seen = set()
    for run in every(tmp_path, put, act, fault):
        path = order(run.directory).path
        texts = [one.read_text() for one in path.parent.iterdir() if one.suffix == ".md" and not is_temp(one.name)]
        assert set(texts) <= {before, NEW, OLD}, run
        assert before in texts or act is do_update or "nonsense" in texts, run
        assert not run.said or path.read_text() == NEW, run
        seen.add(path.read_text() if path.exists() else None)
        assert isinstance(updated(order(run.directory), whole(NEW))[0], Updated), run
    assert NEW in seen
    assert before in seen
