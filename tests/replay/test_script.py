"""Reading a recording into a replay script."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.core.blocks import Text, ToolResult
from lamina.core.errors import InputError
from lamina.replay.recorded_row import replay_recorded
from lamina.replay.script import RecordedAnswer, RecordedInput, read_script
from lamina.replay.token_scale import TokenCounter, learn_scale

from .recording import OVERHEAD, Recording, long_work, page, text, use


def test_blocks_of_one_answer_are_one_call_though_results_stand_between_them(tmp_path: Path) -> None:
    made = Recording()
    made.say("Read both.")
    made.answer(use("a", "Read", file_path="/a"), key="msg_both")
    made.result("a", "first")
    made.answer(use("b", "Read", file_path="/b"), key="msg_both")
    made.result("b", "second")
    made.answer(text("Done."))
    script = read_script(made.write(tmp_path / "s.jsonl"))
    answers = [step for step in script.steps if isinstance(step, RecordedAnswer)]
    assert [[call.id for call in answer.calls] for answer in answers] == [["a", "b"], []]
    assert len(script.answers) == 2
    assert [type(step).__name__ for step in script.steps] == [
        "RecordedInput",
        "RecordedAnswer",
        "RecordedInput",
        "RecordedInput",
        "RecordedAnswer",
    ]


def test_what_the_recorded_program_took_out_is_in_the_script_and_its_summary_is_not(tmp_path: Path) -> None:
    made = Recording()
    made.say("Read it.")
    call = made.read("/a", page(1))
    made.compact("This session is being continued: /a was read.")
    made.answer(text("Go on."))
    made.say("And now?")
    made.answer(text("Done."))
    script = read_script(made.write(tmp_path / "s.jsonl"))
    said = [
        block.text for step in script.steps if isinstance(step, RecordedInput) for block in step.blocks if isinstance(block, Text)
    ]
    assert said == ["Read it.", "And now?"]
    assert any(isinstance(block, ToolResult) and block.tool_use_id == call for step in script.steps for block in step.blocks)
    assert (script.recorded.compactions, script.recorded.auto) == (1, 1)
    assert set(script.recorded.gone.values()) == {3}, "gone before the fourth step"
    assert [since for since, _ in script.recorded.summaries] == [3]


def test_the_recorded_row_counts_the_clearings_of_the_recorded_program(tmp_path: Path) -> None:
    made = Recording()
    made.say("Read them.")
    made.clear(made.read("/a", page(1)), made.read("/b", page(2)))
    made.clear(made.read("/c", page(3)))
    made.answer(text("Done."))
    script = read_script(made.write(tmp_path / "s.jsonl"))
    assert script.recorded.clearings == 2
    assert replay_recorded(script, {}, 200_000, TokenCounter(1.0)).figures.clearings == 2


def test_a_subagents_own_transcript_is_a_conversation(tmp_path: Path) -> None:
    assert len(read_script(long_work(2, sidechain=True).write(tmp_path / "agent-1.jsonl")).answers) == 4


@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02", b'{"type": "user"}\n', b"not json\n", b"[1, 2]\n"])
def test_what_is_no_conversation_is_refused_with_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no model answer"):
        read_script(path)


def test_scale_and_overhead_are_learnt_from_what_the_recording_reports(tmp_path: Path) -> None:
    script = read_script(long_work(20).write(tmp_path / "s.jsonl"))
    learnt = learn_scale(script)
    assert learnt.overhead == pytest.approx(OVERHEAD, rel=0.02)
    count = TokenCounter(learnt.scale)
    whole = learnt.overhead + sum(count.of(step.blocks) for step in script.steps[:-1])
    last = script.steps[-1]
    assert isinstance(last, RecordedAnswer)
    assert last.usage is not None
    assert whole == pytest.approx(last.usage.prompt, rel=0.02)


def test_two_short_calls_do_not_double_what_the_estimate_says(tmp_path: Path) -> None:
    made = Recording()
    made.say("Hello")
    made.answer(text("Hello."))
    made.say("And now?" * 60)  # four characters a token is far from what our estimate says of it
    made.answer(text("Nothing."))
    assert learn_scale(read_script(made.write(tmp_path / "s.jsonl"))).scale == pytest.approx(1.0, abs=0.05)


def test_without_usage_the_estimate_stands_as_it_is(tmp_path: Path) -> None:
    learnt = learn_scale(read_script(long_work(3, usage=False).write(tmp_path / "s.jsonl")))
    assert (learnt.scale, learnt.overhead, learnt.warm) == (1.0, 0, ())


def test_an_id_that_is_made_anew_in_every_run_weighs_the_same() -> None:
    count = TokenCounter(1.0)
    ids = ("deadbeef-dead-4ead-beef-deadbeefdead", "12345678-1234-4234-8234-123456789012")
    assert len({count.text(f"expand {one} opens it") for one in ids}) == 1


def test_a_filler_has_the_tokens_it_is_asked_for() -> None:
    count = TokenCounter(1.3)
    assert count.text(count.filler(10_000)) == pytest.approx(10_000, rel=0.001)
    assert count.filler(-5) == ""


def test_tools_of_other_agents_are_played_under_our_names(tmp_path: Path) -> None:
    made = Recording()
    made.say("Look.")
    made.answer(use("a", "read", path="/a"), use("b", "mcp__read", path="/b"))
    made.result("a", "first")
    made.answer(text("Done."))
    script = read_script(made.write(tmp_path / "s.jsonl"))
    assert [call.name for answer in script.answers.values() for call in answer.calls] == ["Read", "mcp__read"]
    assert [tool["name"] for tool in script.tools] == ["Read", "mcp__read"]
