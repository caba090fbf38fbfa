"""Tables of what leaves when the cache has expired, and of which results a later one repeats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lamina.core.blocks import Block, ToolUse, read_block, text, tool_result
from lamina.core.policy import ColdPolicy
from lamina.core.records import Clear, Message, Placed
from lamina.core.view import View
from lamina.layers.l2_micro.plan import ColdClearing, plan_cold, plan_repeated, shorten_cold
from lamina.layers.l2_micro.registry import Registry

from .rows import RULES, ids

COLD = ColdPolicy(clear=True)


def size(block: Block) -> int:
    return len(str(block.wire.get("content", block.wire)))


def use(name: str, tool: str = "Bash", **given: Any) -> Message:
    block = read_block({"type": "tool_use", "id": name, "name": tool, "input": given})
    return Message(f"call-{name}", None, "", "assistant", (block,), message_id=f"m-{name}")


def got(name: str, content: str | None = None, *, is_error: bool = False) -> Message:
    words = f"{name} " * 50 if content is None else content
    return Message(f"result-{name}", None, "", "user", (tool_result(name, words, is_error=is_error),))


def said(name: str) -> Message:
    return Message(name, None, "", "user", (text("go on"),))


def thought(name: str) -> Message:
    block = read_block({"type": "thinking", "thinking": "so " * 50, "signature": "s"})
    return Message(f"think-{name}", None, "", "assistant", (block,), message_id=f"m-{name}")


def calls(names: list[str], tool: str = "Bash", **given: Any) -> Sequence[Placed]:
    return [record for name in names for record in (use(name, tool, **given), got(name))]


def followed(*records: Placed | Sequence[Placed]) -> Registry:
    view = View()
    for one in records:
        for record in one if isinstance(one, Sequence) else [one]:
            view.add(record)
    registry = Registry()
    registry.follow(view, replace(RULES, cold=True), size)
    return registry


def numbered(start: int, end: int) -> list[str]:
    return [str(number) for number in range(start, end)]


@pytest.mark.spec("P2")
def test_all_but_the_newest_five_results_leave_and_reads_of_the_last_ten_calls_stay() -> None:
    assert ids(plan_cold(followed(said("a"), calls(numbered(0, 9))), COLD).results) == ["0", "1", "2", "3"]
    mixed = [*calls(numbered(0, 2), "Read", file_path="a.py"), *calls(numbered(2, 12))]
    assert ids(plan_cold(followed(mixed), COLD).results) == numbered(0, 7), "12 calls: both Reads are too old"
    reads = [record for name in numbered(0, 20) for record in (use(name, "Read", file_path=f"{name}.py"), got(name))]
    assert ids(plan_cold(followed(reads), COLD).results) == numbered(0, 10)
    assert plan_cold(followed(calls(numbered(0, 5))), COLD).results == []
    assert plan_cold(followed(), COLD) == ColdClearing([], [], [])


@pytest.mark.spec("P2")
@given(
    tools=st.lists(st.tuples(st.sampled_from(["Read", "Bash"]), st.integers(0, 3), st.booleans()), max_size=30),
    keep_results=st.integers(0, 6),
    keep_reads=st.integers(0, 12),
)
def test_the_search_decides_what_a_walk_would(tools: list[tuple[str, int, bool]], keep_results: int, keep_reads: int) -> None:
    records: list[Placed] = []
    waiting: list[Placed] = []
    for at, (tool, file, late) in enumerate(tools):
        records += [use(str(at), tool, file_path=f"{file}.py"), *waiting]
        waiting = [got(str(at), f"{tool} {file} " * 20 if file else None)]
        if not late:
            records, waiting = [*records, *waiting], []
    registry = followed(records)
    policy = replace(COLD, keep_results=keep_results, keep_reads=keep_reads)
    worthless, rows = registry.repeated.superseded, registry.rows

    def leaves(at: int) -> bool:
        name, call = rows[at].block.tool_use_id, rows[at].call
        recent = call.tool == "Read" and call.answer > registry.answers - keep_reads
        return call.answer < registry.answers and (name in worthless or not (at >= len(rows) - keep_results or recent))

    assert ids(plan_cold(registry, policy).results) == [rows[at].block.tool_use_id for at in range(len(rows)) if leaves(at)]


@pytest.mark.spec("P2", "P5")
def test_results_the_model_has_not_seen_stay_and_so_do_those_shorter_than_their_marker() -> None:
    uses = tuple(block for name in numbered(0, 8) for block in use(name).blocks)
    unseen = [
        Message("calls", None, "", "assistant", uses, message_id="m"),
        *(got(name, "the same " * 9) for name in numbered(0, 8)),
    ]
    assert plan_cold(followed(unseen), COLD).results == []
    assert plan_repeated(followed(unseen)) == []
    assert len(plan_cold(followed(unseen, calls(["next"])), COLD).results) == 7, (
        "only the newest of eight equal ones is worth anything"
    )
    short = [record for name in numbered(0, 9) for record in (use(name), got(name, ""))]
    assert plan_cold(followed(short), replace(COLD, keep_results=0)).results == [], "nothing to save"


@pytest.mark.spec("P5")
@pytest.mark.parametrize(
    ("second", "tool", "repeated"),
    [
        pytest.param({}, "Read", True, id="the file is read again"),
        pytest.param({"offset": 100, "limit": 20}, "Read", False, id="only a part is read again"),
        pytest.param({}, "Write", True, id="the file is rewritten"),
        pytest.param({}, "Edit", False, id="an edit leaves the rest of the file as it was read"),
        pytest.param({"file_path": "other.py"}, "Read", False, id="another file"),
    ],
)
def test_a_file_read_again_or_rewritten_makes_the_older_copy_worthless(second: dict[str, Any], tool: str, repeated: bool) -> None:
    first = [use("old", "Read", file_path="a.py"), got("old")]
    registry = followed(first, use("new", tool, **{"file_path": "a.py", **second}), got("new"), calls(["last"]))
    assert ids(plan_repeated(registry)) == (["old"] if repeated else [])
    assert ("old" in ids(plan_cold(registry, COLD).results)) is repeated


@pytest.mark.spec("P5")
def test_a_repeat_counts_only_if_it_shows_everything() -> None:
    part = [use("part", "Read", file_path="a.py", offset=10, limit=20), got("part")]
    assert ids(
        plan_repeated(followed(part, use("more", "Read", file_path="a.py", offset=5, limit=40), got("more"), calls(["z"])))
    ) == ["part"]
    far = [use("far", "Read", file_path="a.py", offset=3_000, limit=10), got("far")]
    assert plan_repeated(followed(far, use("page", "Read", file_path="a.py"), got("page"), calls(["z"]))) == [], (
        "a page ends earlier"
    )
    whole = [use("whole", "Read", file_path="a.py"), got("whole")]
    again = use("again", "Read", file_path="a.py")
    assert plan_repeated(followed(whole, again, got("again", is_error=True), calls(["z"]))) == [], "the second read failed"
    unchanged = got("again", "File unchanged since last read. The content is still current.")
    assert plan_repeated(followed(whole, again, unchanged, calls(["z"]))) == [], "the first is the only copy"
    odd = [use("odd", "Read", file_path=7, offset="x", limit=True), got("odd"), use("odd2", "Read"), got("odd2"), *calls(["z"])]
    assert plan_repeated(followed(odd)) == []


@pytest.mark.spec("P5")
def test_equal_results_leave_but_for_the_newest() -> None:
    same = [record for name in ("a", "b", "c") for record in (use(name), got(name, "42 passed\n" * 20))]
    assert ids(plan_repeated(followed(same, calls(["z"])))) == ["a", "b"]


@pytest.mark.spec("P2", "M1")
def test_thinking_of_earlier_turns_leaves_after_three_calls() -> None:
    earlier = [said("one"), *(record for name in numbered(0, 4) for record in (thought(name), use(name), got(name)))]
    now = [said("two"), *(record for name in numbered(4, 9) for record in (thought(name), use(name), got(name)))]
    assert [old.item.uuid for old in plan_cold(followed(earlier, now), COLD).thinking] == [f"think-{n}" for n in range(4)]
    assert plan_cold(followed(earlier), COLD).thinking == [], "the current turn keeps its thinking"
    soon = [old.item.uuid for old in plan_cold(followed(earlier, said("two")), COLD).thinking]
    assert soon == ["think-0"], "the last three calls keep theirs"


@pytest.mark.spec("P2")
def test_inputs_of_edits_leave_but_the_newest_eight_and_the_path_stays() -> None:
    long = "x = 1\n" * 200
    names = numbered(0, 10)
    written = [record for name in names for record in (use(name, "Write", file_path="/a/" + "d" * 300, content=long), got(name))]
    registry = followed(said("go"), written)
    planned = plan_cold(registry, COLD)
    assert [old.item.uuid for old in planned.inputs] == ["call-0", "call-1"]
    made = shorten_cold(planned, node="12345678", tools=RULES.clearable, failed={"1"}, measure=size)
    first, second = (one.blocks[0] for one in made)
    assert isinstance(first, ToolUse)
    assert isinstance(second, ToolUse)
    assert first.input["file_path"] == "/a/" + "d" * 300
    assert first.input["content"] == (
        "[1,200 characters cleared to save room. The file had them after this call. Expand 12345678 shows them.]"
    )
    assert second.input["content"] == "[1,200 characters cleared to save room. Expand 12345678 shows them.]", "the call failed"
    assert all(one.saved > 0 for one in made)


@pytest.mark.spec("P2")
def test_only_long_texts_of_an_edit_leave_and_other_tools_keep_their_inputs() -> None:
    long, edits = "y" * 500, [{"old_string": "short", "new_string": "z" * 500}]
    edit = use("e", "Edit", file_path="a.py", old_string=long, new_string="tiny", replace_all=True, edits=edits)
    bash = use("b", "Bash", command=long)
    planned = plan_cold(followed(edit, got("e"), bash, got("b"), calls(["z"])), replace(COLD, keep_inputs=0))
    (made,) = shorten_cold(planned, node="", tools=RULES.clearable, failed=(), measure=size)
    assert [block.wire["input"] for block in made.blocks] == [
        {
            "file_path": "a.py",
            "old_string": "[500 characters cleared to save room.]",
            "new_string": "tiny",
            "replace_all": True,
            "edits": [
                {"old_string": "short", "new_string": "[500 characters cleared to save room. The file had them after this call.]"}
            ],
        }
    ]
    tiny = plan_cold(
        followed(use("t", "Edit", file_path="a.py", old_string="a", new_string="b"), got("t")), replace(COLD, keep_inputs=0)
    )
    assert shorten_cold(tiny, node="", tools=RULES.clearable, failed=(), measure=size) == [], "nothing to save"


@pytest.mark.spec("P2")
def test_an_answer_is_shortened_once_and_never_after_an_undo() -> None:
    long = "c" * 999
    records = [
        said("go"),
        use("w", "Write", file_path="a", content=long),
        got("w"),
        thought("t"),
        said("next"),
        *calls(numbered(0, 9)),
    ]
    keep_none = replace(COLD, keep_inputs=0)
    assert len(plan_cold(followed(records), keep_none).inputs) == 1
    gone = Clear("clear", None, "", {}, shortened={"call-w": [], "think-t": []})
    planned = plan_cold(followed(records, gone), keep_none)
    assert (planned.inputs, planned.thinking) == ([], [])
    view = View()
    for record in records:
        view.add(record)
    registry = Registry()
    registry.follow(view, replace(RULES, cold=True, spared=frozenset({"call-w", "think-t", "0"})), size)
    planned = plan_cold(registry, keep_none)
    assert (planned.thinking, planned.inputs) == ([], [])
    assert "0" not in ids(planned.results)
