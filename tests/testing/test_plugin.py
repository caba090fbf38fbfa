"""The pytest plugin as users run it, in a separate test run."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester", "lamina.testing.plugin"]
pytestmark = pytest.mark.prefix_free("the runs inside break the rule on purpose, and their servers are seen out here too")

HEAD = """
import json, urllib.request

def send(server, *texts, **headers):
    body = {"model": "claude-sonnet-5", "max_tokens": 5, "messages": [{"role": "user", "content": text} for text in texts]}
    headers = {"x-api-key": "any", "x-lamina-session": "s", **{"x-lamina-" + name: value for name, value in headers.items()}}
    request = urllib.request.Request(server.url + "/v1/messages", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)
"""


def run(pytester: pytest.Pytester, source: str, *, strict: bool = True) -> pytest.RunResult:
    pytester.makepyfile(HEAD + source)
    return pytester.runpytest_inprocess(
        "-p", "lamina.testing.plugin", "-p", "no:xdist", *(["--strict-markers"] if strict else [])
    )


def test_a_test_whose_requests_grow_passes(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_it(messages_server):
    messages_server.reply(text="hello")
    assert send(messages_server, "a")["content"][0]["text"] == "hello"
    send(messages_server, "a", "b")
""",
    )
    result.assert_outcomes(passed=1)


@pytest.mark.spec("K3")
def test_a_test_that_breaks_the_prefix_is_failed_with_the_block_named(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_it(messages_server):
    send(messages_server, "a", "b")
    send(messages_server, "a", "B")

def test_the_next_one_is_not_blamed(messages_server):
    send(messages_server, "a")
""",
    )
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["The prefix rule was broken:", "*Request 1 (conversation s) does not start with request 0: messages.1.*"]
    )


def test_a_server_made_by_hand_is_checked_too(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
from lamina.testing import MessagesServer

def test_it():
    with MessagesServer() as server:
        send(server, "a")
        send(server, "b")
""",
    )
    result.assert_outcomes(passed=1, errors=1)


def test_what_other_fixtures_send_on_their_way_out_counts(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
import pytest

@pytest.fixture
def agent(messages_server):
    yield
    send(messages_server, "b")

def test_it(agent, messages_server):
    send(messages_server, "a")
""",
    )
    result.assert_outcomes(passed=1, errors=1)


def test_announced_breaks_and_the_marker_are_let_through(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
import pytest

def test_header(messages_server):
    send(messages_server, "a")
    send(messages_server, "b", **{"break": "compaction"})

def test_call(messages_server):
    send(messages_server, "a")
    messages_server.announce_break("undo")
    send(messages_server, "b")

def test_records(messages_server):
    breaks = []
    messages_server.follow(breaks=lambda: breaks, decisions=lambda: len(breaks))
    send(messages_server, "a")
    breaks.append({"reason": "clearing"})
    send(messages_server, "b")

@pytest.mark.prefix_free("history is edited on purpose")
def test_marker(messages_server):
    send(messages_server, "a")
    send(messages_server, "b")
""",
    )
    result.assert_outcomes(passed=4)


def test_more_breaks_than_decisions_fail_the_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
def test_it(messages_server):
    messages_server.follow(decisions=lambda: 0)
    send(messages_server, "a")
    send(messages_server, "b", **{"break": "clearing"})
""",
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*1 announced break, but the layers made only 0 decisions*"])


def test_the_marker_needs_a_reason(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
import pytest

@pytest.mark.prefix_free
def test_it():
    pass
""",
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*needs a reason*"])


def test_a_test_may_have_several_servers_with_settings_of_their_own(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
import urllib.error

def test_it(make_messages_server):
    one, two = make_messages_server(key="any"), make_messages_server(key="other")
    send(one, "a")
    try:
        send(two, "a")
    except urllib.error.HTTPError as error:
        assert error.code == 401
        error.close()
""",
    )
    result.assert_outcomes(passed=1)
