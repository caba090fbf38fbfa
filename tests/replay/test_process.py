"""A replay in a separate process: the same report, and no process or home is left when the one that asked is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.web import patient
from tests.web.made_home import START, long_session, small_session

from lamina.replay.options import options_in
from lamina.replay.process import ENDED, ReplayEnded, ReplayNews, ReplayOrder, ReplayProcess
from lamina.replay.run import replay
from lamina.replay.variants import variants

# Starts a replay and never ends it.
FORSAKEN = """
import sys, msgspec
from lamina.replay.process import ReplayOrder, ReplayProcess
process = ReplayProcess(msgspec.json.decode(sys.argv[1], type=ReplayOrder), lambda news: print(process.pid, flush=True))
process.find_copies()
process.play(sys.argv[2])
"""


@pytest.fixture
def order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReplayOrder:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    files = [str(tmp_path / f"c0000000-0000-4000-8000-00000000000{at}.jsonl") for at in range(2)]
    for at, file in enumerate(files):
        small_session(Path(file), "/work/shop", f"Session {at}", START, seed=at).write()
    environ = {"HOME": str(tmp_path), "LAMINA_HOME": str(tmp_path / ".lamina")}
    return ReplayOrder(files, variants(["lean"]), str(tmp_path), str(tmp_path / ".lamina"), environ)


def test_a_process_finds_what_the_replay_finds(order: ReplayOrder) -> None:
    told = list[ReplayNews]()
    with ReplayProcess(order, told.append) as process:
        assert process.find_copies() == {}
        found = [process.play(file) for file in order.files]
    wanted = options_in(Path(order.cwd), Path(order.home or ""), environ=order.environ)._replace(variants=order.rows)
    assert found == [replay([Path(file)], wanted) for file in order.files]
    firsts = [news.first for news in told if news.first is not None]
    assert [len(first.figures) for first in firsts] == [2, 3, 4], "the rows of the first session as they come"
    assert {first.played[0].name for first in firsts} == {order.files[0]}


def test_names_that_are_not_text_reach_the_process_and_come_back(order: ReplayOrder, tmp_path: Path) -> None:
    place = tmp_path / os.fsdecode(b"caf\xe9")
    place.mkdir()
    path = str(place / Path(order.files[0]).name)
    Path(order.files[0]).rename(path)
    odd = msgspec.structs.replace(order, files=[path], environ={**order.environ, "WHERE": os.fsdecode(b"\xff")})
    with ReplayProcess(odd, lambda news: None) as process:
        process.find_copies()
        assert process.play(path).played[0].name == path


def test_a_copy_is_named_and_a_missing_file_skipped(order: ReplayOrder, tmp_path: Path) -> None:
    copy, missing = str(tmp_path / "d0000000-0000-4000-8000-000000000001.jsonl"), str(tmp_path / "missing.jsonl")
    Path(copy).write_bytes(Path(order.files[0]).read_bytes())
    with ReplayProcess(msgspec.structs.replace(order, files=[*order.files, copy, missing]), lambda news: None) as process:
        assert len(process.find_copies()) == 1
        assert process.play(missing).skipped == [f"{missing} skipped: no such file or directory."]
        assert process.play(order.files[0]).sessions == 1, "it goes on"


def test_what_cannot_be_replayed_is_told_in_one_sentence(order: ReplayOrder) -> None:
    wrong = msgspec.structs.replace(order, environ={**order.environ, "LAMINA_HOME": "relative"})
    with ReplayProcess(wrong, lambda news: None) as process, pytest.raises(ReplayEnded, match="LAMINA_HOME"):
        process.find_copies()


def test_a_process_that_has_ended_says_so(order: ReplayOrder) -> None:
    with ReplayProcess(order, lambda news: None) as process:
        process.find_copies()
        process.end()
        with pytest.raises(ReplayEnded, match=ENDED):
            process.play(order.files[0])


def test_a_process_ends_and_removes_its_home_when_its_page_is_killed(order: ReplayOrder, tmp_path: Path) -> None:
    path = tmp_path / "e0000000-0000-4000-8000-000000000001.jsonl"
    long_session(path, "/work/shop", 500).write()
    ordered = msgspec.json.encode(msgspec.structs.replace(order, files=[str(path)])).decode()
    page = subprocess.Popen([sys.executable, "-c", FORSAKEN, ordered, str(path)], stdout=subprocess.PIPE, text=True)
    assert page.stdout is not None
    process = int(page.stdout.readline())
    patient.wait_for(lambda: [*(tmp_path / "tmp").iterdir()])
    page.send_signal(signal.SIGKILL)
    page.communicate()

    def gone() -> bool:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        return Path(f"/proc/{process}/stat").read_text().split(") ")[-1].startswith("Z")

    patient.wait_for(gone)
    assert not [*(tmp_path / "tmp").iterdir()]
