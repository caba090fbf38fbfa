"""Tools for testing an agent: a model API on loopback with a prompt cache, scripted answers and faults, and the prefix rule.

decides  which requests the API would refuse, what a request reads from the cache, whether a conversation kept its prefix
does     answers on 127.0.0.1 in background threads; opens no other connection
costs    a few milliseconds per request of 2,000 messages; nothing is written to disk
spec     K1–K3, M4, M5, A1 (the checks)

    from lamina.testing import MessagesServer
    with MessagesServer() as server:
        client = anthropic.Anthropic(api_key="any", base_url=server.url)

`pytest_plugins = ["lamina.testing.plugin"]` provides the fixture `messages_server` and checks the prefix rule in every test.
"""

from __future__ import annotations

from .prefix_rule import Violation, check_prefixes
from .received_request import Announced, Received
from .request_validation import Limits
from .script import Answer, Broken, Cut, Interrupted, Status, Step
from .server import MessagesServer
from .server_state import Clock

__all__ = [
    "Announced",
    "Answer",
    "Broken",
    "Clock",
    "Cut",
    "Interrupted",
    "Limits",
    "MessagesServer",
    "Received",
    "Status",
    "Step",
    "Violation",
    "check_prefixes",
]
