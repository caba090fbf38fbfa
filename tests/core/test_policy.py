"""Policies: one frozen value each, found by name."""

from __future__ import annotations

import msgspec
import pytest

from lamina.core.errors import InputError
from lamina.core.policy import BALANCED, CLASSIC, LEAN, POLICIES, THRIFTY, Policy, named_policy
from lamina.core.settings import Resolved, Settings


@pytest.mark.spec("P1")
def test_balanced_is_the_default() -> None:
    assert Settings().policy is BALANCED
    assert Settings().resolved("lamina.policy") == Resolved("balanced", "default")
    assert Settings(policy_name="thrifty").policy is THRIFTY


def test_the_policies_are_found_by_name() -> None:
    assert named_policy("balanced") is BALANCED
    assert named_policy("thrifty") is THRIFTY
    assert named_policy("classic") is CLASSIC
    assert named_policy("lean") is LEAN
    assert all(policy.name == name for name, policy in POLICIES.items())


def test_an_unknown_policy_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match="balanced, classic, lean, thrifty"):
        named_policy("generous")


def test_a_policy_is_frozen_and_a_changed_one_is_another_value() -> None:
    with pytest.raises(AttributeError):
        CLASSIC.window.reserve = 0  # type: ignore[misc]  # that it is refused is the point
    smaller = msgspec.structs.replace(CLASSIC, window=msgspec.structs.replace(CLASSIC.window, reserve=1))
    assert CLASSIC.window.reserve == 20_000
    assert smaller != CLASSIC


@pytest.mark.spec("R1")
def test_two_policies_do_not_share_what_can_be_changed() -> None:
    assert Policy("a").results.per_tool == {"Bash": 30_000} == CLASSIC.results.per_tool


@pytest.mark.spec("T5")
def test_the_classic_numbers_are_those_of_the_specification() -> None:
    window = CLASSIC.window
    assert (window.reserve, window.autocompact_offset, window.blocking_offset) == (20_000, 13_000, 3_000)
    assert (window.warning_offset, window.error_offset) == (20_000, 20_000)
    assert window.autocompact_at is None


@pytest.mark.spec("P4", "C3")
def test_the_policies_that_save_leave_less_behind_a_compaction() -> None:
    for policy in (BALANCED, THRIFTY):
        assert (policy.compact.tail_min, policy.compact.tail_max, policy.compact.restored_tokens) == (30_000, 30_000, 10_000)
        assert policy.compact.users_tokens == 5_000 < CLASSIC.compact.users_tokens


def test_lean_compacts_earlier_and_keeps_a_verbatim_tail() -> None:
    assert LEAN.window.autocompact_at == 100_000
    assert (LEAN.compact.tail_min, LEAN.compact.tail_max) == (25_000, 45_000)
    assert LEAN.micro.must_pay
    assert LEAN.notes.first_at > CLASSIC.notes.first_at


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_the_numbers_of_a_policy_fit_together(policy: Policy) -> None:
    window, compact, notes = policy.window, policy.compact, policy.notes
    assert 0 < window.blocking_offset < window.autocompact_offset <= window.warning_offset
    assert compact.tail_min <= compact.tail_max
    assert compact.file_tokens <= compact.files_tokens
    assert compact.skill_tokens <= compact.skills_tokens
    assert notes.section_tokens <= notes.total_tokens
    assert notes.keep_tokens <= notes.keep_cap
    assert policy.results.preview < policy.results.default <= policy.results.per_message
