"""Permissions for SendMessage: rules apply as for any tool, names are free, and messages that leave the user's sessions need a question."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tools.permissions.house import MODES, House, build, call, rules

from lamina.core.blocks import ToolUse
from lamina.tools.permissions.request import Allow, AskUser, Deny, Mode


@pytest.fixture
def house(tmp_path: Path) -> House:
    return build(tmp_path)


def send(to: str) -> ToolUse:
    return call("SendMessage", to=to, message="Hello.")


@pytest.mark.spec("A6")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("to", ["1a2b3c4d", "main", "bob", "*"])
def test_a_message_to_an_agent_or_a_mailbox_needs_no_question(to: str, mode: Mode, house: House) -> None:
    assert isinstance(house.decide(send(to), mode), Allow)


@pytest.mark.spec("A6")
@pytest.mark.parametrize("to", ["uds:/run/x.sock", " uds:/run/x.sock", "bridge:phone"])
def test_a_message_to_a_socket_or_a_bridge_is_asked_about(to: str, house: House) -> None:
    asked = house.decide(send(to), "ask")
    assert isinstance(asked, AskUser)
    assert to.strip() in asked.why
    assert asked.suggestion == (f"SendMessage({to})" if to == to.strip() else None)
    assert isinstance(house.decide(send(to), "read-only"), Deny)
    assert isinstance(house.decide(send(to), "ask", rules(allow=["SendMessage"])), Allow)
    assert isinstance(house.decide(send("bridge:phone"), "ask", rules(allow=["SendMessage(bridge:phone)"])), Allow)


@pytest.mark.spec("A6")
@pytest.mark.parametrize("mode", MODES)
def test_deny_rules_hold_in_every_mode_also_for_who_is_meant_by_everybody(mode: Mode, house: House) -> None:
    assert isinstance(house.decide(send("bob"), mode, rules(deny=["SendMessage"])), Deny)
    assert isinstance(house.decide(send("bob"), mode, rules(deny=["SendMessage(bob)"])), Deny)
    assert isinstance(house.decide(send("carl"), mode, rules(deny=["SendMessage(bob)"])), Allow)
    assert isinstance(house.decide(send("*"), mode, rules(deny=["SendMessage(bob)"])), AskUser)


@pytest.mark.spec("A6")
def test_a_fork_that_works_for_lamina_sends_nothing(house: House) -> None:
    assert isinstance(house.decide(send("main"), fork=True), Deny)
