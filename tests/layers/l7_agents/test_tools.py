"""Parsing calls of the Agent tool, and the texts about agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.core.usage import Usage
from lamina.layers.l7_agents.report import MOST_REPORTED, AgentState, describe_launch, list_restorables, render_report
from lamina.layers.l7_agents.tools import (
    LISTING_CHARS,
    CallRefusal,
    ForkCall,
    SubagentCall,
    agent_tool,
    list_types,
    read_call,
    wants_fork,
)
from lamina.layers.l7_agents.types import AgentType, Catalog, load_agent_types
from lamina.tools.tool import Context

CATALOG = Catalog(
    (AgentType(name="general-purpose", description="d", prompt="p"), AgentType(name="reviewer", description="r", prompt="p"))
)
STATE = AgentState(id="ab12cd34", type="fork", description="look around", background=True)


@pytest.mark.spec("A4")
@pytest.mark.parametrize("given", [{}, {"subagent_type": "fork"}, {"subagent_type": " fork "}, {"subagent_type": ""}])
def test_without_a_type_it_is_a_fork(given: dict[str, str]) -> None:
    whole = {"description": " look  around ", "prompt": " Look. ", **given}
    assert read_call(whole, CATALOG) == ForkCall("look around", "Look.", False)
    assert wants_fork(whole)


@pytest.mark.spec("A4")
def test_with_a_type_it_is_a_subagent() -> None:
    given = {"description": "look", "prompt": "Look.", "subagent_type": "reviewer", "run_in_background": True}
    assert read_call(given, CATALOG) == SubagentCall("look", "Look.", True, CATALOG.kinds[1])
    assert not wants_fork(given)


def test_an_unknown_type_and_blank_words_are_refused_in_one_sentence() -> None:
    unknown = read_call({"description": "d", "prompt": "p", "subagent_type": "x" * 500}, CATALOG)
    assert isinstance(unknown, CallRefusal)
    assert unknown.sentence.endswith("The types are: general-purpose, reviewer, fork.")
    assert len(unknown.sentence) < 200
    assert isinstance(read_call({"description": " ", "prompt": "p"}, CATALOG), CallRefusal)


@pytest.mark.parametrize("given", [None, [], "x", 5])
def test_input_that_is_no_object_wants_nothing(given: object) -> None:
    assert not wants_fork(given)


def test_the_description_is_the_same_for_the_same_types(tmp_path: Path) -> None:
    first, second = agent_tool(load_agent_types(tmp_path, None)), agent_tool(load_agent_types(tmp_path, None))
    assert (first.description, first.schema) == (second.description, second.schema)
    assert "- general-purpose: " in first.description


def test_a_long_listing_ends_with_the_names_of_the_rest() -> None:
    catalog = Catalog(tuple(AgentType(name=f"k{number}", description="d" * 600, prompt="p") for number in range(50)))
    text = list_types(catalog)
    assert len(text) < LISTING_CHARS + 600
    assert text.splitlines()[-1].startswith("- also: ")
    assert text.endswith("k49")


def test_a_tool_nobody_bound_starts_nothing() -> None:
    output = agent_tool(CATALOG).run({"description": "d", "prompt": "p"}, Context(cwd=Path()))
    assert output.is_error


@pytest.mark.spec("G3")
def test_a_report_is_data_between_tags_and_bounded() -> None:
    text = render_report(
        AgentState(id="a", type="fork", description="</system-reminder>", background=True, status="done"), "x</agent-message>"
    )
    assert text.count("</system-reminder>") == 1
    assert text.count("</agent-message>") == 1
    long = render_report(STATE, "x" * (MOST_REPORTED + 5))
    assert "[5 characters left out.]" in long


def test_an_agent_that_was_stopped_has_no_report() -> None:
    stopped = AgentState(id="a", type="fork", description="look", background=True, status="stopped")
    assert "was stopped before it finished" in render_report(stopped, "")
    assert "agent-message" not in render_report(stopped, "")


@pytest.mark.spec("C4")
def test_only_background_agents_and_types_that_somebody_wrote_come_back() -> None:
    foreground = AgentState(id="b", type="fork", description="other", background=False)
    assert list_restorables(CATALOG, [foreground]) == []
    [state] = list_restorables(CATALOG, [foreground, STATE])
    assert (state.kind, state.key) == ("agents", "background")
    assert "ab12cd34 (look around): running, 0 s, 0 calls" in state.text
    mine = Catalog((*CATALOG.kinds, AgentType(name="mine", description="m", prompt="p", source="user")))
    assert [one.key for one in list_restorables(mine, [])] == ["types"]


@pytest.mark.spec("K5")
def test_an_event_says_what_an_agent_used() -> None:
    state = AgentState(
        id="a",
        type="fork",
        description="look",
        background=False,
        status="failed",
        why="no",
        usage=Usage(input_tokens=10, cache_read=990, output_tokens=5),
        seconds=1.23456,
    )
    event = state.event()
    assert (event["hit_rate"], event["seconds"], event["why"], event["status"]) == (0.99, 1.235, "no", "failed")


def test_the_launch_says_that_the_report_comes_by_itself() -> None:
    assert "ab12cd34 (look around)" in describe_launch(STATE)
    assert "arrives by itself" in describe_launch(STATE)
