"""Remote flags: a mapping, a function, and OpenFeature if it is installed."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from lamina.core.errors import MissingExtra
from lamina.core.flags import Mistyped, ask, openfeature_flags
from lamina.core.settings import Settings, resolve


def test_a_mapping_says_what_it_holds_and_nothing_else() -> None:
    assert ask({"lamina.spill": False}, "lamina.spill", True) is False
    assert ask({}, "lamina.spill", True) is None


def test_a_function_is_handed_a_value_of_the_type_that_is_expected() -> None:
    samples: dict[str, object] = {}

    def flags(key: str, sample: object) -> object:
        samples[key] = sample
        return None

    assert Settings().with_remote(flags) == Settings()
    assert samples["lamina.spill"] is True
    assert samples["lamina.idleClearing"] is True
    assert samples["lamina.notes.firstAt"] == 10_000
    assert samples["lamina.dreamHours"] == 24.0
    assert samples["lamina.results.perTool"] == {"Bash": 30_000}


def test_a_function_that_fails_says_nothing_and_that_is_known() -> None:
    def flags(key: str, sample: object) -> object:
        raise TimeoutError

    assert isinstance(ask(flags, "lamina.spill", True), Mistyped)


def test_openfeature_that_is_not_installed_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openfeature", None)
    with pytest.raises(MissingExtra, match=r'pip install "\.\[flags\]"'):
        openfeature_flags()


class TestOpenFeature:
    """Tests against the in-memory provider of the SDK."""

    @staticmethod
    def flags(**values: Any) -> Settings:
        memory = pytest.importorskip("openfeature.provider.in_memory_provider")
        from openfeature import api

        known = {key.replace("__", "."): memory.InMemoryFlag("on", {"on": value}) for key, value in values.items()}
        api.set_provider(memory.InMemoryProvider(known), domain="lamina-test")
        user = {"lamina": {"idleClearing": True}}
        return resolve(user=user, remote=openfeature_flags(domain="lamina-test"))

    @pytest.mark.spec("F1")
    def test_a_flag_that_is_false_turns_off_and_one_that_is_missing_says_nothing(self) -> None:
        settings = self.flags(lamina__spill=False, lamina__cacheEdits=True)
        assert (settings.spill, settings.cache_edits, settings.recall) == (False, True, True)
        assert settings.findings == ()

    @pytest.mark.spec("F1")
    def test_a_default_that_is_handed_back_does_not_kill_what_a_person_turned_on(self) -> None:
        assert self.flags().idle_clearing is True
        assert self.flags(lamina__idleClearing=False).idle_clearing is False

    def test_numbers_of_both_kinds_and_objects_are_read(self) -> None:
        settings = self.flags(lamina__notes__firstAt=7, lamina__dreamHours=7, lamina__results__perTool={"Grep": 9})
        assert settings.policy.notes.first_at == 7
        assert settings.dream_hours == 7.0
        assert settings.policy.results.per_tool == {"Bash": 30_000, "Grep": 9}

    @pytest.mark.spec("F1")
    def test_a_flag_of_the_wrong_type_is_ignored_and_said(self) -> None:
        settings = self.flags(lamina__spill="no", lamina__notes__firstAt="7")
        assert (settings.spill, settings.policy.notes.first_at) == (True, 10_000)
        assert [found.key for found in settings.findings] == ["lamina.spill", "lamina.notes.firstAt"]

    def test_a_program_without_a_provider_has_no_flags(self) -> None:
        pytest.importorskip("openfeature")
        user = {"lamina": {"idleClearing": True}}
        settings = resolve(user=user, remote=openfeature_flags(domain="lamina-nobody"))
        assert settings == resolve(user=user)
        assert settings.findings == ()
