"""Many tenants in one process: each has a home, and nothing of one reaches another."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

import lamina
from lamina.conversation.isolate import take_job_results
from lamina.session.base import working

PATIENCE = 120
NAMES = ("anna", "bo")
SECRETS = {"anna": "Kestrel", "bo": "Osprey"}


def serve(root: Path, name: str, together: Barrier) -> list[str]:
    """Two sessions of a tenant, one after the other, while the other tenant's run. Returns all that its model was sent."""
    home, work = root / name / "home", root / name / "work"
    work.mkdir(parents=True)
    (work / "CLAUDE.md").write_text(f"Nest of the {SECRETS[name]}.\n")
    sent: list[str] = []
    for words in (
        f"From now on, always run the tests against a {SECRETS[name]} database.",
        "Which database do the tests run against?",
    ):
        together.wait(PATIENCE)
        settings = lamina.Settings(session_notes=False)
        with lamina.Session("offline", home=home, cwd=work, settings=settings, offer_tools=True) as session:
            session.add_user(words)
            together.wait(PATIENCE)
            sent.append(str(session.before_call()))
            session.ask()
            session.end_turn()
            with working(session) as c:
                assert c.background.wait("extraction", PATIENCE)
                take_job_results(c)
    return sent


@pytest.mark.spec("U2")
def test_nothing_of_one_tenant_reaches_another(tmp_path: Path) -> None:
    before, here = dict(os.environ), os.getcwd()
    together = Barrier(len(NAMES))
    with ThreadPoolExecutor(len(NAMES)) as pool:
        sent = dict(zip(NAMES, pool.map(lambda name: serve(tmp_path, name, together), NAMES), strict=True))
    for name, other in (NAMES, NAMES[::-1]):
        files = [path.read_bytes() for path in (tmp_path / name).rglob("*") if path.is_file()]
        assert SECRETS[name] in sent[name][0]
        assert f"{SECRETS[name]} database" in sent[name][1], "what the first session learned comes back in the second"
        assert SECRETS[other] not in "".join(sent[name])
        assert not any(SECRETS[other].encode() in data for data in files)
        with lamina.Memory.open(tmp_path / name / "work", home=tmp_path / name / "home") as memory:
            assert [SECRETS[name] in topic.body for topic in memory.topics()] == [True]
    assert (dict(os.environ), os.getcwd()) == (before, here)
