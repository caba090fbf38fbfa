"""What holds in every test: its own home, no keys, the tree in child processes, repeatable properties, the prefix rule."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from tests.disk.crash.harness import Extent

ROOT = Path(__file__).parent.parent

# What a test sends to a server of lamina.testing is checked when the test is over: the prefix repeats, or a break was announced.
pytest_plugins = ["lamina.testing.plugin"]

# A child process must import the tree, not a copy that happens to be installed.
os.environ["PYTHONPATH"] = str(ROOT / "src")
# Hundreds of tests start `lamina` as a process: compiled once, the package serves them all and the next run, whatever the user has
# switched off.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Whoever starts the tests in the background may ignore signals; programs that tests start would inherit that.
for _signal in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
    if threading.current_thread() is threading.main_thread() and signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, signal.default_int_handler if _signal is signal.SIGINT else signal.SIG_DFL)
# Two threads of a numeric library on a busy machine are many times slower than one.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A run must give the same answer twice and must not depend on how busy the machine is. The exhaustive run tries more examples, and
# `explore` looks for new ones: HYPOTHESIS_PROFILE=explore pytest tests/core
settings.register_profile(
    "repeatable",
    max_examples=25,
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("repeatable"), max_examples=200)
settings.register_profile("explore", max_examples=2_000, deadline=None, print_blob=True)


def pytest_configure(config: pytest.Config) -> None:
    """Before any test module is imported: some take their number of examples from the profile."""
    usual = "thorough" if config.option.markexpr == "exhaustive" else "repeatable"
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", usual))


# Their tests start processes, servers and threads.
_SLOW_FIRST = {name: rank for rank, name in enumerate(("cli", "disk", "agent", "session", "memory", "replay", "maintenance"))}


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each process begin with another part of the tests, so that each test file is compiled by one process and loaded by the
    others. `pytest_collection_modifyitems` sorts what they find."""
    gc.disable()
    worker: dict[str, Any] | None = getattr(session.config, "workerinput", None)
    if worker is not None and session.config.args == session.config.getini("testpaths"):
        parts = sorted(str(path) for path in (ROOT / "tests").iterdir() if path.is_dir() or path.match("test_*.py"))
        first = len(parts) * int(worker["workerid"].removeprefix("gw")) // int(worker["workercount"])
        session.config.args[:] = parts[first:] + parts[:first]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Property tests belong to both runs, with more examples in the exhaustive one. Packages with slow tests start first: files go
    to the next free process, and a slow one at the end would run alone."""
    if config.option.markexpr == "exhaustive":
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker("exhaustive")
        items[:] = [item for item in items if "some points" not in item.name]  # the same test tries every point
    items.sort(key=_place)


def _place(item: pytest.Item) -> tuple[int, str]:
    return _SLOW_FIRST.get(item.path.relative_to(ROOT).parts[1], len(_SLOW_FIRST)), str(item.path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: a fifth of the time tests wait for the disk or for processes they started."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    """What was collected stays until the end: no search for garbage looks at it again, and forked children share its pages."""
    gc.enable()
    gc.collect()
    gc.freeze()


# Variables that choose a provider, a key, a directory or a switch: none may leak in from the person who runs the tests.
FOREIGN_PREFIXES = ("LAMINA_", "ANTHROPIC_", "OPENAI_", "CLAUDE_", "CLAUDECODE")


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The next unused name for a home; pytest would also keep a link to the newest one up to date, for each test."""
    above = tmp_path_factory.mktemp("homes")
    return (above / f"home{number}" for number in itertools.count())


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, homes: Iterator[Path]) -> None:
    """A private home and no variable that would steer Lamina; a test sets what it needs. A fault in a layer fails its test."""
    for name in [name for name in os.environ if name.startswith(FOREIGN_PREFIXES)]:
        monkeypatch.delenv(name)
    home = next(homes)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("LAMINA_HOME", str(home / ".lamina"))
    monkeypatch.setenv("LAMINA_STRICT", "1")


@pytest.fixture(autouse=True)
def closed_clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the clients that a test left open: the garbage collector may reach a socket before the client that would close it."""
    from lamina.providers.sdk import Clients

    used, sync = set[Clients](), Clients.sync

    def remembered(self: Clients) -> Any:
        used.add(self)
        return sync(self)

    monkeypatch.setattr(Clients, "sync", remembered)
    yield
    for clients in used:
        clients.close()


@pytest.fixture(scope="session", autouse=True)
def patient_git() -> Iterator[None]:
    """Git gets a second or a few in the product; on a busy machine it may need longer to start."""
    from lamina.maintenance import start_checks
    from lamina.maintenance.migrate.migrate import root_commits
    from lamina.prompt.git_status import git_status

    with pytest.MonkeyPatch.context() as patch:
        for function in (git_status, root_commits):
            patch.setattr(function, "__kwdefaults__", {"seconds": 120.0})
        patch.setattr(start_checks, "WAIT", 120.0)
        yield


@pytest.fixture(params=["some points", pytest.param("every point", marks=pytest.mark.exhaustive)])
def crash_points(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that stops writers does so at a few of their crash points, and in the exhaustive run at every one."""
    monkeypatch.setattr(Extent, "every", request.param == "every point")


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the repository."""
    return ROOT
