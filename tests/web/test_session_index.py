"""The page's list of sessions while a home is read for the first time, and what the first view loads."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from lamina import Settings
from lamina.web import session_index, views_made
from lamina.web.session_index import Listing, SessionIndex
from lamina.web.views_made import ViewsMade, Work

from . import patient
from .made_home import ASKED, small_session
from .patient import PATIENCE
from .serving import environ_of, serving

HEAVY = ("lamina.turn", "lamina.replay.play", "lamina.agent.agent", "lamina.maintenance.forget", "sse_starlette")


def test_work_in_the_background_that_reads_the_index_lets_views_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    views, waits = ViewsMade(), list[Work]()
    index = SessionIndex(tmp_path / ".lamina", Settings, environ_of(tmp_path), views, in_memory=False)
    monkeypatch.setattr(views, "wait", waits.append)
    index.peek(lambda catalogue: catalogue.pause())
    index.close()
    assert waits == [Work.INDEX]


def test_work_that_waits_when_the_server_stops_ends_as_later_work_does(tmp_path: Path) -> None:
    index = SessionIndex(tmp_path / ".lamina", Settings, environ_of(tmp_path), ViewsMade(), in_memory=True)
    begun, go, ended = threading.Event(), threading.Event(), list[BaseException]()

    def hold(_: object) -> None:
        begun.set()
        go.wait(PATIENCE)

    def wait_behind() -> None:
        try:
            index.use(lambda _: None)
        except (RuntimeError, CancelledError) as error:
            ended.append(error)

    first = threading.Thread(target=index.use, args=(hold,))
    first.start()
    begun.wait(PATIENCE)
    second = threading.Thread(target=wait_behind)
    second.start()
    until = time.monotonic() + PATIENCE
    while not index._worker._work_queue.qsize() and time.monotonic() < until:
        second.join(0.01)
    index.close()
    go.set()
    first.join(PATIENCE)
    second.join(PATIENCE)
    assert [type(error) for error in ended] == [RuntimeError]
    with pytest.raises(RuntimeError):
        index.use(lambda _: None)


@pytest.mark.spec("V1")
def test_a_home_is_read_newest_first_in_steps_that_wait_while_a_view_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_index, "FIRST_PUBLISH", 0.0)
    monkeypatch.setattr(session_index, "PUBLISH", 0.0)
    monkeypatch.setattr(views_made, "HOLD", PATIENCE)
    for number in range(4):
        path = tmp_path / ".claude" / "projects" / "-p" / f"{number}.jsonl"
        small_session(path, "/p", ASKED[number], datetime(2026, 3, 1 + number, tzinfo=UTC), number).write()
    views = ViewsMade()
    index = SessionIndex(tmp_path / ".lamina", Settings, environ_of(tmp_path), views, in_memory=True)
    seen = list[Listing]()
    publish = index._publish

    def noted(*given: object) -> None:
        publish(*given)  # type: ignore[arg-type]
        seen.append(index.listing)

    monkeypatch.setattr(index, "_publish", noted)
    views.change(1)
    assert index.current(wait=0.1).sessions == ()
    views.change(-1)
    until = time.monotonic() + PATIENCE
    while (not seen or seen[-1].of) and time.monotonic() < until:
        index.current(wait=0.1)
    index.close()
    assert (seen[0].sessions, seen[0].done, seen[0].of) == ((), 0, 4), "before the first file is read"
    firsts = [one for one in seen if len(one.sessions) == 1]
    assert [one.title for one in firsts[0].sessions] == [ASKED[3][: len(firsts[0].sessions[0].title)]]
    assert (firsts[0].done, firsts[0].of) == (1, 4)
    assert (len(seen[-1].top), seen[-1].of) == (4, 0)
    assert sum(one.usd for one in seen[-1].money) == pytest.approx(sum(one.cost_usd or 0 for one in seen[-1].top))
    assert [one.last_active for one in seen[-1].top] == sorted((one.last_active for one in seen[-1].top), reverse=True)


@pytest.mark.spec("V1")
def test_two_files_with_the_same_id_have_addresses_of_their_own_that_work_after_a_restart(tmp_path: Path) -> None:
    said = {"-a": "Where does the harbour ferry leave?", "-b": "Where does the mountain train leave?"}
    for at, (project, words) in enumerate(said.items()):
        path = tmp_path / ".claude" / "projects" / project / "00000000-0000-4000-8000-00000000000f.jsonl"
        small_session(path, f"/{project}", words, datetime(2026, 3, 1 + at, tzinfo=UTC), at).write()

    def seen() -> dict[str, str]:
        with serving(tmp_path) as served:
            get = partial(patient.get, cookies=served.cookies())
            rows = get(f"{served.base}/sessions?format=json").json()["sessions"]
            for row in rows:
                assert row["title"] in get(served.base + row["url"]).text
            found = get(f"{served.base}/search?q=harbour+ferry&format=json").json()["results"]
            found += get(f"{served.base}/search?q=mountain+train&format=json").json()["results"]
            assert {one["url"].partition("?")[0] for one in found if one["speaker"] == "user"} == {row["url"] for row in rows}
            return {row["title"]: row["url"] for row in rows}

    first = seen()
    assert len(set(first.values())) == 2
    assert seen() == first


def test_the_first_view_does_not_load_what_only_later_views_need() -> None:
    program = (
        f"import sys; from lamina.web import server, overview, session_list; print([n for n in {HEAVY} if n in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
