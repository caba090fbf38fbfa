"""The pytest plugin: `pytest_plugins = ["lamina.testing.plugin"]`, or `-p lamina.testing.plugin`.

Fixtures: `messages_server` is one server for the test; `make_messages_server` is for tests that need several servers or other
settings. For every server that a test starts, by fixture or directly, the prefix rule is checked at the end of the test. Mark a
test that breaks the rule on purpose with `@pytest.mark.prefix_free("why")`.
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
    """Check the prefix rule. Torn down after all other fixtures, so that requests in their teardown count too."""
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
    """Return a function that starts servers. It takes the arguments of MessagesServer; the servers are closed after the test."""
    servers: list[MessagesServer] = []

    def make(**settings: Any) -> MessagesServer:
        servers.append(MessagesServer(**settings).start())
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def messages_server(make_messages_server: Callable[..., MessagesServer]) -> MessagesServer:
    """Return a new server for this test: a Messages API and a Chat Completions API on loopback."""
    return make_messages_server()
