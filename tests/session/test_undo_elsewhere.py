"""Compactions that Claude Code made, undone in Lamina: what it compacted is in view again, counted as it was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.session.plain import Session

from lamina.core.errors import DiskError, InputError, UsageError
from lamina.disk.paths.project import slug

from .compacted_elsewhere import OUTPUT_TOKENS, ForeignSession
from .play import compact
from .words import answer, refused, said


def pairs(*questions: str) -> list[str]:
    return [words for question in questions for words in (question, f"About {question}")]


@pytest.mark.spec("B1")
@pytest.mark.parametrize("in_memory", [False, True])
def test_an_undo_shows_what_the_model_saw_before_and_what_came_since(tmp_path: Path, in_memory: bool) -> None:
    source = ForeignSession().ask("a", "b", "c").compact("all of it").ask("d").write(tmp_path)
    before = source.read_bytes()
    with Session("offline", home=tmp_path / "home", in_memory=in_memory, resume=source) as session:
        assert said(session.messages) == ["all of it", *pairs("d")]
        assert session.undo().kind == "compaction"
        assert said(session.messages) == pairs("a", "b", "c", "d")
        session.add_user("e")
        assert refused(session.before_call()) == []
        assert [notice for notice in session.notices if "brought back" in notice] == []
    assert source.read_bytes() == before
    if not in_memory:
        with Session("offline", home=tmp_path / "home", resume=session.id) as again:
            assert said(again.messages) == [*pairs("a", "b", "c", "d"), "e"]


def test_a_session_in_memory_goes_on_when_its_source_is_gone_and_only_the_undo_fails(tmp_path: Path) -> None:
    source = ForeignSession().ask("a", "b", "c").compact("all of it").ask("d").write(tmp_path)
    with Session("offline", in_memory=True, resume=source) as session:
        source.unlink()
        session.add_user("e")
        assert refused(session.before_call()) == []
        session.after_call(answer("m", "About e"))
        with pytest.raises(DiskError):
            session.undo()
        compact(session, "everything")
        session.add_user("f")
        assert said(session.before_call()["messages"]) == ["everything", "f"]


@pytest.mark.spec("T10")
@pytest.mark.parametrize(
    ("recorded", "counted"),
    [(None, 3_000 + OUTPUT_TOKENS), (3_111, 3_111), (0, 3_000 + OUTPUT_TOKENS), (-5, 3_010), (5, 3_010), (10**15, 3_010)],
)
def test_the_count_is_to_the_token_what_the_record_tells(tmp_path: Path, recorded: int | None, counted: int) -> None:
    source = ForeignSession().ask("a", "b", "c").compact("all of it", recorded=recorded).write(tmp_path)
    with Session("offline", home=tmp_path / "home", resume=source) as session:
        session.undo()
        assert session.window_state.tokens == counted
        session.add_user("and now?")
        assert counted < session.window_state.tokens < counted + 20
    with Session("offline", home=tmp_path / "home", resume=session.id) as again:
        assert again.window_state.tokens == session.window_state.tokens


@pytest.mark.spec("B1")
def test_three_compactions_and_a_rewind_are_undone_one_by_one(tmp_path: Path) -> None:
    recorded = ForeignSession().ask("a", "b").compact("first").ask("c", "d").compact("second").ask("e")
    # The rewind leaves `e`; the conversation continues behind the second summary.
    source = recorded.rewind(-3).ask("f").compact("third").ask("g").write(tmp_path)
    with Session("offline", home=tmp_path / "home", resume=source) as session:
        assert said(session.messages) == ["third", *pairs("g")]
        assert session.undo().id == recorded.boundaries[2]
        assert said(session.messages) == ["second", *pairs("f", "g")]
    with Session("offline", home=tmp_path / "home", resume=session.id) as again:
        assert again.undo().id == recorded.boundaries[1]
        assert said(again.messages) == ["first", *pairs("c", "d", "f", "g")]
        again.add_user("more")
        again.before_call()
        assert again.undo().id == recorded.boundaries[0]
        assert said(again.messages) == [*pairs("a", "b", "c", "d", "f", "g"), "more"]
        with pytest.raises(UsageError, match="nothing to undo"):
            again.undo()
        with pytest.raises(InputError, match="no change with id"):
            again.undo(recorded.boundaries[2])


def test_a_rewind_to_before_the_compaction_leaves_nothing_to_undo(tmp_path: Path) -> None:
    source = ForeignSession().ask("a", "b").compact("all of it").ask("c").rewind(2).ask("d").write(tmp_path)
    with Session("offline", home=tmp_path / "home", resume=source) as session:
        assert said(session.messages) == pairs("a", "d")
        with pytest.raises(UsageError, match="nothing to undo"):
            session.undo()


def test_without_the_record_before_the_boundary_the_rest_comes_back_and_a_sentence_says_so(tmp_path: Path) -> None:
    source = ForeignSession().ask("a", "b").compact("all of it", parent="ffffffff-0000").ask("c").write(tmp_path)
    with Session("offline", home=tmp_path / "home", resume=source) as session:
        session.undo()
        assert said(session.messages) == pairs("a", "b", "c")
        [sentence] = [notice for notice in session.notices if "brought back" in notice]
        assert "ffffffff" in sentence


@pytest.mark.parametrize("parent", [None, 5])
def test_a_boundary_that_names_no_record_before_it_follows_the_one_written_last(tmp_path: Path, parent: object) -> None:
    recorded = ForeignSession().ask("a", "b").compact("all of it").ask("c")
    boundary = next(row for row in recorded.rows if row["uuid"] == recorded.boundaries[0])
    boundary["logicalParentUuid"] = parent
    with Session("offline", home=tmp_path / "home", resume=recorded.write(tmp_path)) as session:
        session.undo()
        assert said(session.messages) == pairs("a", "b", "c")


def test_of_a_transcript_without_its_beginning_the_rest_comes_back_and_a_sentence_says_so(tmp_path: Path) -> None:
    source = ForeignSession().ask("a", "b", "c").compact("all of it").ask("d").write(tmp_path, rows=slice(3, None))
    with Session("offline", home=tmp_path / "home", resume=source) as session:
        session.undo()
        assert said(session.messages) == pairs("b", "c", "d")
        assert [notice for notice in session.notices if "brought back" in notice]


def test_a_compaction_whose_messages_are_in_another_file_stays(tmp_path: Path) -> None:
    source = ForeignSession().ask("a", "b").compact("all of it").ask("c").write(tmp_path, rows=slice(5, None))
    with Session("offline", home=tmp_path / "home", resume=source) as session:
        with pytest.raises(UsageError, match="are not in this transcript"):
            session.undo()
        assert said(session.messages) == ["all of it", *pairs("c")]
    assert list((tmp_path / "home").rglob("*.jsonl")) == []


def test_a_copy_belongs_to_the_project_of_its_session(tmp_path: Path) -> None:
    source = ForeignSession(cwd="/their/project").ask("a").compact("all of it").write(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with Session("offline", home=tmp_path / "home", cwd=tmp_path / "elsewhere", resume=source) as session:
        session.undo()
        assert session.path is not None
        assert session.path.parent == tmp_path / "home" / "projects" / slug("/their/project")


def test_a_copy_of_an_open_session_is_in_the_project_of_that_session(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with Session("offline", home=tmp_path, cwd=tmp_path / "one") as session:
        session.add_user("a")
        with Session("offline", home=tmp_path, cwd=tmp_path / "two", resume=session.id) as fork:
            fork.add_user("b")
            assert fork.path is not None
            assert session.path is not None
            assert fork.path.parent == session.path.parent
