"""The pytest plugin: `pytest_plugins = ["lamina.testing.plugin"]`, or `-p lamina.testing.plugin`.

Fixtures: `messages_server`, one server for the test; `make_messages_server`, for tests that need several or other settings. For
every server a test starts, by fixture or by hand, the prefix rule is checked when the test is over. A test that breaks it on
purpose says so: `@pytest.mark.prefix_free("why")`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from . import server as server_module
from .prefix_rule import check_prefixes, rule
from .server import MessagesServer

MARKER = "prefix_free"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARKER}(reason): requests of this test need not keep their prefix")


@pytest.fixture(autouse=True)
def _prefix_rule(request: pytest.FixtureRequest) -> Iterator[None]:
    """Set up before every other fixture, and so torn down after them: what they send on their way out counts too."""
    servers: list[MessagesServer] = []
    server_module.on_start.append(servers.append)
    yield
    server_module.on_start.remove(servers.append)
    marker = request.node.get_closest_marker(MARKER)
    if marker is not None:
        if not marker.args or not isinstance(marker.args[0], str):
            pytest.fail(
                f'@pytest.mark.{MARKER} needs a reason, as in {MARKER}("the history is edited on purpose").', pytrace=False
            )
        return
    for server in servers:
        violations = check_prefixes(server.requests, decisions=server.announcements.decisions())
        if violations:
            pytest.fail(rule(violations), pytrace=False)


@pytest.fixture
def make_messages_server() -> Iterator[Callable[..., MessagesServer]]:
    """A function that starts servers with the settings of MessagesServer; they are closed with the test."""
    servers: list[MessagesServer] = []

    def make(**settings: Any) -> MessagesServer:
        servers.append(MessagesServer(**settings).start())
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def messages_server(make_messages_server: Callable[..., MessagesServer]) -> MessagesServer:
    """A Messages API and a Chat Completions API of the test's own, on loopback."""
    return make_messages_server()
