"""Which window applies, first that does."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.conversation.window.thresholds import ModelFacts, Window, window_for
from lamina.core.errors import InputError

KNOWN = {
    "small-1": ModelFacts(window=128_000, max_output=16_000),
    "big-2": ModelFacts(window=1_000_000, max_output=64_000),
    "headed-3": ModelFacts(window=1_000_000, max_output=32_000, needs_header=True),
}


@pytest.mark.spec("T4")
@pytest.mark.parametrize(
    ("model", "given", "tokens", "source"),
    [
        ("big-2[1m]", {"explicit": 50_000, "setting": 60_000, "environ_value": "70000", "beta_1m": True}, 50_000, "argument"),
        ("big-2[1m]", {"setting": 60_000, "environ_value": "70000", "beta_1m": True}, 60_000, "setting"),
        ("big-2[1m]", {"environ_value": "70000", "beta_1m": True}, 70_000, "environment"),
        ("small-1[1m]", {}, 1_000_000, "suffix"),
        ("small-1[1M]", {}, 1_000_000, "suffix"),
        ("small-1", {"beta_1m": True}, 128_000, "model"),
        ("big-2", {}, 1_000_000, "model"),
        ("headed-3", {"beta_1m": True}, 1_000_000, "header"),
        ("headed-3", {}, 200_000, "default"),
        ("never-heard-of", {"beta_1m": True}, 1_000_000, "header"),
        ("never-heard-of", {}, 200_000, "default"),
        ("never-heard-of", {"default": 90_000}, 90_000, "default"),
    ],
)
def test_the_first_source_that_applies_decides(model: str, given: dict[str, Any], tokens: int, source: str) -> None:
    window = window_for(model, known=KNOWN, **given)
    assert (window.tokens, window.source, window.findings) == (tokens, source, ())


@pytest.mark.spec("T4")
@pytest.mark.parametrize("model", ["small-1", "small-1[1m]", "small-1-20250929", "small-1@20250929", "small-1-latest"])
def test_a_snapshot_of_a_known_model_is_known(model: str) -> None:
    assert window_for(model, known=KNOWN).max_output == 16_000


@pytest.mark.parametrize("model", ["small-1-5", "small-1-20", "small-12", ""])
def test_another_model_with_a_like_name_is_not(model: str) -> None:
    assert window_for(model, known=KNOWN) == Window(200_000, "default")


@pytest.mark.spec("T4")
@pytest.mark.parametrize("value", ["many", "0", "-5", "999", "1e6", "nan"])
def test_an_unusable_environment_value_is_passed_over_with_a_sentence(value: str) -> None:
    window = window_for("small-1", environ_value=value, known=KNOWN)
    assert (window.tokens, window.source) == (128_000, "model")
    assert window.findings == (f"Ignored LAMINA_CONTEXT_WINDOW={value!r}: use a whole number of at least 1,000 tokens.",)


def test_an_empty_environment_value_is_none_at_all() -> None:
    assert window_for("small-1", environ_value="", known=KNOWN).findings == ()


def test_an_unusable_setting_gives_way_to_the_environment() -> None:
    window = window_for("small-1", setting=10, environ_value="70000", known=KNOWN)
    assert (window.tokens, len(window.findings)) == (70_000, 1)


def test_an_argument_that_is_too_small_is_an_error() -> None:
    with pytest.raises(InputError, match="use at least 1,000"):
        window_for("small-1", explicit=999, known=KNOWN)
