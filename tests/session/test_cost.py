"""The cost of a session, call by call: in dollars if prices are known, and always in prices of one input token."""

from __future__ import annotations

import pytest
from tests.session.plain import Session

from lamina.core.errors import NotCompacted
from lamina.providers.models import Cost


def answer(model: str, number: int, **usage: int) -> dict[str, object]:
    counts = {"input_tokens": 0, "output_tokens": 0} | usage
    text = [{"type": "text", "text": "ok"}]
    return {"id": f"msg_{number}", "model": model, "content": text, "stop_reason": "end_turn", "usage": counts}


def test_each_call_is_counted_once_at_its_own_price() -> None:
    with Session("anthropic:claude-sonnet-5-5", in_memory=True) as session:
        session.add_user("one")
        first = answer("claude-sonnet-5-5", 1, input_tokens=1_000, cache_read_input_tokens=10_000, output_tokens=100)
        session.after_call(first)
        once = session.status.cost
        session.after_call(first)
        assert session.status.cost == once
        session.add_user("two")
        session.after_call(first | {"id": "msg_2"})
        assert session.status.cost.units == pytest.approx(2 * once.units)
        assert session.status.cost.usd == pytest.approx(2 * (once.usd or 0))
        assert (once.usd or 0) > 0
        # 1,000 uncached, 10,000 at a tenth, and the output at the model's own ratio.
        assert once.units > 2_000


def test_side_calls_that_no_model_answered_cost_nothing() -> None:
    with Session("anthropic:claude-sonnet-5-5", in_memory=True) as session:
        for number in range(3):
            session.add_user(f"Question {number}: " + "word " * 2_000)
            session.after_call(answer("claude-sonnet-5-5", number, input_tokens=3_000 * (number + 1), output_tokens=10))
        with pytest.raises(NotCompacted, match="not get smaller"):
            session.compact()
        assert session.status.side_usage.total > 0
        assert session.status.side_cost == Cost()


def test_an_unknown_model_is_named_once_and_its_money_is_unknown() -> None:
    with Session("openai:some-model-nobody-knows", in_memory=True) as session:
        assert [notice for notice in session.notices if "Unknown model some-model-nobody-knows" in notice] == session.notices
        session.add_user("one")
        session.after_call(
            {
                "id": "c",
                "model": "some-model-nobody-knows",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 10},
            }
        )
        assert session.status.cost.usd is None
        assert session.status.cost.units == pytest.approx(150)
