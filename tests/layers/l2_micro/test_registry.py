"""The registry holds what a walk over the whole view would find, at any moment."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.blocks import Block, ToolResult, ToolUse
from lamina.core.reach import Reach
from lamina.core.records import Clear, Pin, Placed, Revoke, Span, Spill
from lamina.core.view import View
from lamina.layers.l2_micro.registry import Registry, Rules, marker

from .rows import LEFT, RULES, called, came, ids, registry_of, remembered, said, size, view_of


def walked(view: View) -> list[tuple[str, int, int]]:
    """The same by brute force: id, tokens, tokens before."""
    calls = {block.id for _, block in view.blocks() if isinstance(block, ToolUse) and block.name in RULES.clearable}
    rows: dict[str, tuple[str, int, int]] = {}
    before = 0
    for item, block in view.blocks():
        if isinstance(block, ToolResult) and not item.synthetic and block.tool_use_id in calls:
            shown = view.replaced.get(block.tool_use_id, "")
            if not shown.startswith("[Cleared"):
                rows.setdefault(block.tool_use_id, (block.tool_use_id, size(block), before))
        before += size(block)
    return list(rows.values())


STEPS = st.lists(
    st.tuples(st.sampled_from(["read", "mcp", "say", "clear", "spill", "snip", "look"]), st.integers(0, 60)), max_size=40
)


@given(steps=STEPS)
def test_following_step_by_step_gives_what_a_walk_gives(steps: list[tuple[str, int]]) -> None:
    view, registry = View(), Registry()
    for number, (kind, much) in enumerate(steps):
        for record in _records(kind, number, much, view):
            view.add(record)
        if kind == "look":
            registry.follow(view, RULES, size)
    registry.follow(view, RULES, size)
    assert [(row.block.tool_use_id, row.tokens, row.before) for row in registry.rows] == walked(view)
    assert registry.total == sum(row.tokens for row in registry.rows)
    assert registry.saved_by(len(registry)) == sum(max(0, row.tokens - LEFT) for row in registry.rows)
    assert registry.tokens == sum(size(block) for _, block in view.blocks())


def _records(kind: str, number: int, much: int, view: View) -> list[Placed]:
    name = str(number)
    results = [item for item in view.items if item.uuid.startswith("result-")]
    one = results[much % len(results)].blocks[0] if results else None
    call = one.tool_use_id if isinstance(one, ToolResult) else ""
    match kind:
        case "read" | "mcp":
            return [called(name, "Read" if kind == "read" else "mcp__files__Read"), came(name, much)]
        case "say":
            return [said(f"said-{name}", "w" * much)]
        case "clear" if call:
            return [Clear(f"clear-{name}", None, "", {call: marker(call, f"/tmp/{call}.txt", Reach(read=True))})]
        case "spill" if call:
            return [Spill(f"spill-{name}", None, "", call, "preview", "/tmp/x")]
        case "snip" if call:
            return [Span(f"snip-{name}", None, "", "snip", (f"call-{call}", f"result-{call}"), "snipped")]
        case _:
            return []


@pytest.mark.spec("M1")
@pytest.mark.parametrize(
    ("tool", "registered"),
    [(tool, True) for tool in ("Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write")]
    + [(tool, False) for tool in ("TodoWrite", "Agent", "mcp__files__Read", "")],
)
def test_results_of_the_eight_tools_are_registered_and_no_others(tool: str, registered: bool) -> None:
    registry = Registry()
    registry.follow(view_of([100], tool=tool), RULES, size)
    assert len(registry) == registered


@pytest.mark.spec("M1")
def test_an_mcp_tool_is_never_clearable_whatever_the_policy_says() -> None:
    registry = Registry()
    registry.follow(view_of([100], tool="mcp__web__fetch"), Rules(frozenset({"mcp__web__fetch"})), size)
    assert len(registry) == 0


def test_made_up_pinned_spared_and_orphaned_results_are_left_out() -> None:
    view = view_of([100, 100, 100])
    view.add(called("late"))
    view.add(came("late", 100, synthetic=True))
    view.add(came("orphan", 100))
    view.add(Pin("pin", None, "", target="result-1"))
    registry = Registry()
    registry.follow(view, msgspec.structs.replace(RULES, spared=frozenset({"2"})), size)
    assert ids(registry.rows) == ["0"]


def test_a_pin_set_later_takes_its_result_out() -> None:
    view, registry = view_of([100, 100]), Registry()
    registry.follow(view, RULES, size)
    view.add(Pin("pin", None, "", target="result-0"))
    registry.follow(view, RULES, size)
    assert ids(registry.rows) == ["1"]


def test_results_no_longer_than_a_marker_stay_but_count() -> None:
    registry = registry_of([0, LEFT, LEFT + 1, 100])
    assert len(registry) == 4
    assert ids(registry.oldest(4)) == ["2", "3"]
    assert registry.saved_by(4) == 1 + 90


def test_errors_are_results_too() -> None:
    view = View()
    view.add(called("1", "Bash"))
    view.add(came("1", 100, is_error=True))
    registry = Registry()
    registry.follow(view, RULES, size)
    assert ids(registry.rows) == ["1"]


@pytest.mark.spec("M6")
def test_memories_are_old_after_more_than_three_messages_of_the_person() -> None:
    view, registry = View(), Registry()
    view.add(said("1"))
    view.add(remembered("memory"))
    view.add(remembered("date", kind="date"))
    for number in range(2, 6):
        registry.follow(view, RULES, size)
        assert registry.old_memories(3) == []
        view.add(called(f"c{number}"))
        view.add(came(f"c{number}", 5))
        view.add(said(str(number)))
    registry.follow(view, RULES, size)
    assert [(one.record, one.tokens) for one in registry.old_memories(3)] == [("memory", len("memory"))]
    assert registry.old_memories(4) == []


def test_growth_is_the_mean_between_the_last_answers() -> None:
    assert registry_of([]).growth is None
    assert registry_of([50]).growth is None
    assert registry_of([50, 70, 60]).growth == 60
    assert registry_of([1_000] + [10] * 21).growth == 10


def test_what_was_undone_is_registered_again() -> None:
    view, registry = view_of([100]), Registry()
    view.add(Clear("c", None, "", {"0": marker("0", "/tmp/0.txt", Reach(read=True))}))
    registry.follow(view, RULES, size)
    assert len(registry) == 0
    view = view_of([100])
    view.add(Revoke("r", None, "", "c"))
    registry.follow(view, RULES, size)
    assert ids(registry.rows) == ["0"]


@pytest.mark.spec("M7")
def test_following_looks_at_what_is_new_only() -> None:
    view, registry = view_of([100] * 1_000), Registry()
    looked: list[Block] = []

    def measured(block: Block) -> int:
        looked.append(block)
        return size(block)

    registry.follow(view, RULES, measured)
    looked.clear()
    view.add(called("new"))
    view.add(came("new", 7))
    registry.follow(view, RULES, measured)
    registry.follow(view, RULES, measured)
    assert [block.wire["type"] for block in looked] == ["tool_use", "tool_result"]
