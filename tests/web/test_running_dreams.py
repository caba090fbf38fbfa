"""Dreams that run in the server of the page: each starts, is shown and stops by itself."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from lamina.disk.locks.dream_lock import DreamLock, HeldDreamLock
from lamina.layers.l6_dream.record import DreamRecord, new_id, read_records, write_record
from lamina.testing import MessagesServer, Received
from lamina.web import dream_changes

from . import patient
from .made_memories import make_memories, open_memory, project_of
from .serving import Served, environ_of, serving
from .test_memories import data, get, place, post, undo


class SlowModel:
    """A model that answers a dream when the test lets it. `asked` counts the requests that wait for an answer."""

    def __init__(self, server: MessagesServer) -> None:
        self.asked = threading.Semaphore(0)
        self.go = threading.Event()
        server.answer_with(self._answer)

    def _answer(self, received: Received) -> str:
        self.asked.release()
        assert self.go.wait(patient.PATIENCE)
        return "Memory is in order."

    def wait(self, dreams: int = 1) -> None:
        for _ in range(dreams):
            assert self.asked.acquire(timeout=patient.PATIENCE)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowModel]:
    with MessagesServer() as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        slow = SlowModel(server)
        yield slow
        slow.go.set()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    make_memories(tmp_path)
    return tmp_path


@pytest.fixture
def served(home: Path, model: SlowModel) -> Iterator[Served]:
    with serving(home) as page:
        yield page


def start(served: Served, home: Path, name: str = "shop-api") -> dict[str, Any]:
    """Start a dream of a project and return it."""
    answer = post(served, "/changes/dreams/start", place=place(home, name))
    assert answer.status_code == 200, answer.text
    patient.wait_for(lambda: place(home, name) not in data(served, "/dreams")["starting"])
    return newest(served, home, name)


def newest(served: Served, home: Path, name: str = "shop-api") -> dict[str, Any]:
    return next(dict(one) for one in data(served, "/dreams")["dreams"] if one["project"] == place(home, name))


def stop(served: Served, dream: dict[str, Any]) -> None:
    assert post(served, "/changes/dreams/stop", place=dream["project"], dream=dream["id"]).status_code == 200


def wait_until_idle(served: Served, project: str) -> None:
    patient.wait_for(lambda: project not in data(served, "/dreams")["running"])


@pytest.mark.spec("D5")
def test_stopping_a_dream_leaves_the_others_and_the_server_as_they_are(served: Served, home: Path, model: SlowModel) -> None:
    shop, infra = start(served, home), start(served, home, "infra")
    model.wait(2)
    stop(served, shop)
    wait_until_idle(served, place(home))
    assert (ended := newest(served, home))["status"] == "killed"
    assert ended["why"] == "stopped on request"
    assert data(served, "/dreams")["running"] == [place(home, "infra")]
    assert not served.site.closing.is_set()
    again = start(served, home)
    model.wait()
    assert set(data(served, "/dreams")["running"]) == {place(home), place(home, "infra")}
    model.go.set()
    for project in (place(home), place(home, "infra")):
        wait_until_idle(served, project)
    found = {one["id"]: one["status"] for one in data(served, "/dreams")["dreams"]}
    assert found == {shop["id"]: "killed", again["id"]: "completed", infra["id"]: "completed"}


def test_a_start_answers_while_the_model_works_and_tells_why_there_is_no_second_dream(
    served: Served, home: Path, model: SlowModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    dream = start(served, home)
    assert dream["status"] == "running"
    model.wait()
    monkeypatch.setattr(dream_changes, "STARTING", patient.PATIENCE)
    again = post(served, "/changes/dreams/start", place=place(home))
    assert again.status_code == 400
    assert "is already running a dream on this memory" in again.json()["message"]
    assert not data(served, "/dreams")["not_started"], "it is told once"


class SlowModules:
    """Holds back what dreams need, as at the start of the server, until the test lets it be loaded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.loads = 0
        monkeypatch.setattr(dream_changes, "load_needed", self._load)

    def _load(self, pause: object) -> None:
        self.loads += 1
        assert self.go.wait(patient.PATIENCE)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowModules]:
    slow = SlowModules(monkeypatch)
    yield slow
    slow.go.set()


def test_a_start_does_not_wait_for_what_dreams_need(served: Served, home: Path, model: SlowModel, modules: SlowModules) -> None:
    assert data(served, "/dreams")["starting"] == []
    before = served.site.state("dreams:")
    answers = [post(served, "/changes/dreams/start", place=place(home)) for _ in range(2)]
    assert [one.status_code for one in answers] == [200, 200], answers
    assert answers[0].json()["message"] == "A dream of shop-api starts."
    assert modules.loads == 1, "the second start is the first"
    listed, shown = data(served, "/dreams"), get(served, "/dreams").text
    assert (listed["starting"], listed["running"]) == ([place(home)], [])
    assert ">starting</span>" in shown
    assert "No dream yet." not in shown
    assert f'value="{place(home)}"' not in shown.partition('id="start-form"')[2].partition("</form>")[0]
    assert (starting := served.site.state("dreams:")) != before, "the page follows it"
    modules.go.set()
    model.wait()
    patient.wait_for(lambda: data(served, "/dreams")["running"] == [place(home)])
    assert data(served, "/dreams")["starting"] == []
    assert ">starting</span>" not in get(served, "/dreams").text
    assert served.site.state("dreams:") != starting


def test_a_dream_that_cannot_begin_after_the_answer_tells_why_until_the_next_start(
    served: Served, home: Path, model: SlowModel, modules: SlowModules
) -> None:
    settings = home / ".lamina" / "settings.json"
    assert post(served, "/changes/dreams/start", place=place(home)).status_code == 200
    starting = served.site.state("dreams:")
    settings.write_text('{"lamina": {"memoryMode": {"private": "off"}}}', "utf-8")
    modules.go.set()
    told = patient.wait_for(lambda: data(served, "/dreams")["not_started"])
    assert f"private memory is off: lamina.memoryMode is off ({settings}); set it to auto or confirm" in told[place(home)]
    shown = get(served, "/dreams").text
    assert ">not started</span>" in shown
    assert told[place(home)] in shown
    assert served.site.state("dreams:") != starting, "the page follows it"
    settings.unlink()
    assert start(served, home)["status"] == "running"
    model.wait()
    assert not data(served, "/dreams")["not_started"]


def test_a_dream_that_could_not_begin_is_dismissed_and_comes_back_with_an_undo(
    served: Served, home: Path, model: SlowModel, modules: SlowModules
) -> None:
    settings = home / ".lamina" / "settings.json"
    assert post(served, "/changes/dreams/start", place=place(home)).status_code == 200
    early = post(served, "/changes/dreams/dismiss", place=place(home), at="0")
    assert (early.status_code, early.json()["message"]) == (400, "shop-api: has no dream that could not begin.")
    settings.write_text('{"lamina": {"memoryMode": {"private": "off"}}}', "utf-8")
    modules.go.set()
    told = patient.wait_for(lambda: data(served, "/dreams")["not_started"])
    shown = get(served, "/dreams").text
    at = re.search(r'action="/changes/dreams/dismiss".*?name="at" value="([^"]+)"', shown)
    assert at is not None
    assert f'id="dismiss-{place(home)}"' in shown
    fields = {"place": place(home), "at": at[1]}
    assert post(served, "/changes/dreams/dismiss", **{**fields, "at": "1"}).status_code == 400, "another start is not meant"
    state = served.site.state("dreams:")
    done = post(served, "/changes/dreams/dismiss", **fields)
    assert done.json()["message"] == "Dismissed."
    assert data(served, "/dreams")["not_started"] == {}
    assert ">not started</span>" not in get(served, "/dreams").text
    assert served.site.state("dreams:") != state, "the other tabs follow"
    assert post(served, "/changes/dreams/dismiss", **fields).status_code == 400, "the second tab is told"
    assert undo(served, done).status_code == 200
    assert data(served, "/dreams")["not_started"] == told
    assert undo(served, done).status_code == 400


def test_a_dismissal_is_not_undone_once_another_dream_has_started(
    served: Served, home: Path, model: SlowModel, modules: SlowModules
) -> None:
    settings = home / ".lamina" / "settings.json"
    assert post(served, "/changes/dreams/start", place=place(home)).status_code == 200
    settings.write_text('{"lamina": {"memoryMode": {"private": "off"}}}', "utf-8")
    modules.go.set()
    patient.wait_for(lambda: data(served, "/dreams")["not_started"])
    at = re.search(r'name="at" value="([^"]+)"', get(served, "/dreams").text)
    assert at is not None
    done = post(served, "/changes/dreams/dismiss", place=place(home), at=at[1])
    settings.unlink()
    assert start(served, home)["status"] == "running"
    model.wait()
    late = undo(served, done)
    assert (late.status_code, late.json()["message"]) == (400, "shop-api: has no dream that could not begin.")
    assert not data(served, "/dreams")["not_started"]


def test_an_error_of_the_system_is_told_as_the_reason(
    served: Served, home: Path, model: SlowModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(pause: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(dream_changes, "STARTING", patient.PATIENCE)
    monkeypatch.setattr(dream_changes, "is_loaded", lambda: True)
    monkeypatch.setattr(dream_changes, "load_needed", fail)
    answer = post(served, "/changes/dreams/start", place=place(home))
    assert answer.status_code == 400
    assert "no space left" in answer.json()["message"]


def test_each_running_dream_has_its_own_controls_and_a_link_to_its_page(served: Served, home: Path, model: SlowModel) -> None:
    dreams = [start(served, home), start(served, home, "infra")]
    model.wait(2)
    shown = get(served, "/dreams").text
    ids = re.findall(r' id="([^"]+)"', shown)
    assert len(ids) == len(set(ids)), "the focus returns to the control that had it"
    assert all(f'href="{dream["url"]}"' in shown for dream in dreams)
    assert "No dream yet." not in shown
    assert 'id="start-form"' not in shown, "all projects with memories have a dream that runs"
    assert "The next dream" not in shown, "nor is one of them due"
    stop(served, dreams[1])
    wait_until_idle(served, place(home, "infra"))
    form = get(served, "/dreams").text.partition('id="start-form"')[2].partition("</form>")[0]
    assert f'value="{place(home, "infra")}"' in form
    assert f'value="{place(home)}"' not in form
    due = get(served, "/dreams").text.partition("The next dream")[2]
    assert ("infra" in due, "shop-api" in due) == (True, False)


def test_a_dream_is_told_as_running_only_while_it_runs(served: Served, home: Path, model: SlowModel) -> None:
    dream = start(served, home)
    model.wait()
    shown = get(served, dream["url"]).text
    assert "interrupted" not in shown
    assert 'class="live"' in shown


def test_a_dream_whose_process_died_is_not_told_as_running(served: Served, home: Path) -> None:
    with open_memory(home) as memory:
        root = memory.store("private").store.root
        hold = DreamLock(root).acquire(None)
        assert isinstance(hold, HeldDreamLock)
        record = DreamRecord(new_id(1.0), 1.0, 2**22 + 1, "hand", phase="updating")
        write_record(root, record)
        hold.leave()
    for path in ("/dreams", f"/dreams/{place(home)}/{record.id}"):
        shown = get(served, path).text
        assert "its process has died" in shown
        assert 'class="live"' not in shown


@pytest.mark.spec("B9")
def test_the_figures_of_a_dream_and_of_the_day_agree(served: Served, home: Path, model: SlowModel) -> None:
    dream = start(served, home)
    model.go.set()
    wait_until_idle(served, place(home))
    listed = data(served, "/dreams")
    [line] = listed["background"]
    assert (line["purpose"], line["usd"]) == ("dream", listed["dreams"][0]["cost_usd"])
    assert "<dd>6 → 6 <small>lines</small></dd>" in get(served, dream["url"]).text


@pytest.mark.spec("D5")
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent")
def test_a_dream_of_a_server_that_is_told_to_end_is_recorded_as_stopped(home: Path, model: SlowModel) -> None:
    command = [sys.executable, "-m", "lamina", "ui", "--json"]  # another port if its own is taken
    environ = {**os.environ, **environ_of(home)}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True, cwd=project_of(home))
    assert process.stdout is not None
    link = json.loads(process.stdout.readline())["url"]
    with httpx2.Client(timeout=patient.PATIENCE, follow_redirects=True) as client, process:
        shown = client.get(link.replace("/?", "/dreams?")).text
        found = re.search(r'name="lamina-secret" content="([^"]+)"', shown)
        assert found is not None
        base, headers = link.partition("/?")[0], {"X-Lamina-Secret": found[1]}
        answer = client.post(f"{base}/changes/dreams/start", json={"place": place(home)}, headers=headers)
        assert answer.status_code == 200, answer.text
        model.wait()
        process.send_signal(signal.SIGTERM)
    with open_memory(home) as memory:
        [record] = read_records(memory.store("private").store.root)
    assert (record.status, record.why) == ("killed", "stopped on request")
