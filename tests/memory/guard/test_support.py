"""A "not" that belongs to the reason for a claim negates the reason, and nothing else."""

from __future__ import annotations

import pytest

from lamina.memory.guard.own_sentence import asks
from lamina.memory.guard.support import flips


@pytest.mark.spec("X1")
@pytest.mark.parametrize(
    ("claim", "quote", "flipped"),
    [
        ("always skip the CUDA tests", "We don't have GPUs in CI, so always skip the CUDA tests.", False),
        ("We are rewriting the importer", "We are rewriting the importer because the old one cannot be maintained.", False),
        ("以后注释写英文", "因为海外同事看不懂中文，所以以后注释写英文。", False),
        ("use tabs", "Never use tabs because they break.", True),
        ("deploy with force", "Because it broke once, do not deploy with force.", True),
        ("never deploy on Friday", "Because nobody is there, deploy on Friday.", True),
        ("we use pnpm", "Don't forget that we use pnpm", False),
        ("我们用 pnpm", "别忘了我们用 pnpm", False),
        ("we use npm", "Don't forget that we don't use npm", True),
    ],
)
def test_a_negation_is_looked_for_in_the_rule_alone(claim: str, quote: str, flipped: bool) -> None:
    assert flips(claim, quote) is flipped


def test_a_korean_reason_is_no_question() -> None:
    assert not asks("수정하지 마세요, 다음 빌드에서 덮어쓰니까요.")
    assert asks("이 파일은 무엇입니까?")
    assert asks("지금 배포해도 됩니까")
