"""F3: memory and compaction, on or off; bare mode; layers that exclude each other."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from lamina.core.settings import Resolved, Settings, resolve
from lamina.core.settings.kinds import truth

DISABLE, BARE, REMOTE = "LAMINA_DISABLE_MEMORY", "bare mode", "LAMINA_REMOTE without LAMINA_REMOTE_MEMORY_DIR"
SETTING, DEFAULT = "user", "default"


def memory(disable: str | None, bare: bool, remote: bool, directory: str | None, setting: bool | None) -> Settings:
    environ = {DISABLE: disable, "LAMINA_REMOTE": "1" if remote else None, "LAMINA_REMOTE_MEMORY_DIR": directory}
    return resolve(
        environ={name: text for name, text in environ.items() if text is not None},
        command_line={"bare": bare or None},
        user={} if setting is None else {"autoMemoryEnabled": setting},
    )


@pytest.mark.spec("F3")
@pytest.mark.parametrize(
    ("disable", "bare", "remote", "directory", "setting", "on", "why"),
    [
        # disable, bare, remote, its directory, setting
        (None, False, False, None, None, True, DEFAULT),
        (None, False, False, None, True, True, SETTING),
        (None, False, False, None, False, False, SETTING),
        (None, False, True, None, None, False, REMOTE),
        (None, False, True, None, True, False, REMOTE),
        (None, False, True, "/srv/m", None, True, DEFAULT),
        (None, False, True, "/srv/m", False, False, SETTING),
        (None, False, False, "/srv/m", None, True, DEFAULT),
        (None, True, False, None, True, False, BARE),
        (None, True, True, "/srv/m", True, False, BARE),
        ("1", False, False, None, True, False, DISABLE),
        ("1", True, True, None, True, False, DISABLE),
        ("0", False, False, None, False, True, DISABLE),
        ("0", True, False, None, None, True, DISABLE),
        ("0", False, True, None, None, True, DISABLE),
    ],
)
def test_memory_is_on_or_off_by_the_first_that_applies(
    disable: str | None, bare: bool, remote: bool, directory: str | None, setting: bool | None, on: bool, why: str
) -> None:
    found = memory(disable, bare, remote, directory, setting).resolved("memory")
    assert (found.value, found.detail or found.source) == (on, why)


@pytest.mark.spec("F3")
def test_what_needs_memory_is_on_where_the_rule_says_so() -> None:
    cases = product((None, "1", "0"), (False, True), (False, True), (None, "/srv/kept/m"), (None, True, False))
    for disable, bare, remote, directory, setting in cases:
        settings = memory(disable, bare, remote, directory, setting)
        kept = not bare and not (remote and directory is None) and setting is not False
        assert settings.memory is (disable == "0" if disable is not None else kept)
        assert settings.recall is settings.memory
        assert settings.index_in_prompt is settings.memory


@pytest.mark.spec("F3")
@pytest.mark.parametrize(("disable", "auto", "setting"), list(product((None, "1", "0"), (None, "1", "0"), (None, True, False))))
def test_compaction_is_on_or_off_by_the_first_that_applies(disable: str | None, auto: str | None, setting: bool | None) -> None:
    environ = {"LAMINA_DISABLE_COMPACT": disable, "LAMINA_DISABLE_AUTO_COMPACT": auto}
    settings = resolve(
        environ={name: text for name, text in environ.items() if text is not None},
        managed={} if setting is None else {"autoCompactEnabled": setting},
    )
    by_hand = disable != "1"
    assert settings.compaction is by_hand
    assert settings.auto_compact is (by_hand and auto != "1" and setting is not False)
    assert settings.notes_compaction is by_hand


@pytest.mark.spec("F3")
@pytest.mark.parametrize(
    ("text", "value"),
    [(word, True) for word in ("1", "true", "TRUE", "yes", "Yes", "on", " on ")]
    + [(word, False) for word in ("0", "false", "No", "OFF", "", " ")]
    + [(word, None) for word in ("2", "y", "enable", "truee", "-1")],
)
def test_the_words_for_true_and_false(text: str, value: bool | None) -> None:
    assert truth(text) is value
    settings = resolve(environ={"LAMINA_RECALL": text})
    assert settings.recall is (value if value is not None else True)
    assert len(settings.findings) == (value is None)


class TestWhoStandsFirst:
    @pytest.mark.spec("F3")
    def test_the_environment_stands_before_managed_settings(self) -> None:
        settings = resolve(environ={"LAMINA_DISABLE_MEMORY": "0"}, managed={"autoMemoryEnabled": False})
        assert settings.resolved("memory") == Resolved(True, "environment", "LAMINA_DISABLE_MEMORY")

    def test_an_administrator_can_put_the_variable_into_managed_settings(self) -> None:
        settings = resolve(environ={"LAMINA_DISABLE_MEMORY": "0"}, managed={"env": {"LAMINA_DISABLE_MEMORY": "1"}})
        assert settings.memory is False

    def test_a_variable_does_not_force_memory_on_a_program_that_said_no(self) -> None:
        assert resolve(environ={"LAMINA_DISABLE_MEMORY": "0"}, arguments={"memory": False}).memory is False
        assert resolve(environ={"LAMINA_DISABLE_MEMORY": "1"}, arguments={"memory": True}).memory is False

    def test_an_empty_variable_forces_nothing(self) -> None:
        assert resolve(environ={"LAMINA_DISABLE_MEMORY": ""}, user={"autoMemoryEnabled": False}).memory is False

    def test_a_word_that_is_neither_true_nor_false_is_ignored(self) -> None:
        settings = resolve(environ={"LAMINA_DISABLE_MEMORY": "maybe"})
        assert settings.memory is True
        assert 'not "maybe"' in settings.findings[0].text

    @pytest.mark.spec("F3")
    def test_a_bad_directory_on_a_remote_machine_leaves_memory_off(self) -> None:
        assert resolve(environ={"LAMINA_REMOTE": "1", "LAMINA_REMOTE_MEMORY_DIR": "relative"}).memory is False


# Settings that are off in bare mode by their Python names, and those of them that are off by default.
OPTIONAL = ("memory", "recall", "index_in_prompt", "past_search", "extraction", "dream", "session_notes", "notes_compaction")
FURTHER = ("agent_summaries", "idle_clearing", "cache_edits", "api_clearing", "collapse", "team", "assistant")


class TestBareMode:
    @pytest.mark.spec("F3")
    def test_everything_optional_is_off(self) -> None:
        keys = ("idleClearing", "cacheEdits", "apiClearing", "collapse", "extractionNonInteractive", "team", "assistant")
        settings = resolve(command_line={"bare": True}, user={"lamina": dict.fromkeys(keys, True)})
        assert [name for name in (*OPTIONAL, *FURTHER, "extraction_non_interactive") if getattr(settings, name)] == []

    def test_what_keeps_the_window_usable_stays_on(self) -> None:
        settings = resolve(environ={"LAMINA_BARE": "1"})
        assert settings.spill
        assert settings.size_clearing
        assert settings.auto_compact
        assert settings.compaction

    def test_hooks_do_not_run(self) -> None:
        hooks = {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}
        assert resolve(command_line={"bare": True}, user={"hooks": hooks}).hooks == {}
        assert resolve(user={"hooks": hooks}).hooks != {}

    def test_what_is_named_in_the_same_breath_runs(self) -> None:
        settings = resolve(
            command_line={"bare": True}, environ={"LAMINA_SESSION_NOTES": "1"}, user={"lamina": {"collapse": True}}
        )
        assert settings.session_notes is True
        assert settings.collapse is False

    @pytest.mark.spec("F3")
    def test_memory_that_is_forced_on_is_read_and_not_written_in_the_background(self) -> None:
        settings = resolve(environ={"LAMINA_BARE": "1", "LAMINA_DISABLE_MEMORY": "0"})
        assert (settings.memory, settings.recall, settings.index_in_prompt) == (True, True, True)
        assert (settings.extraction, settings.dream) == (False, False)


class TestLayersThatExcludeEachOther:
    def off_by_rule(self, name: str, **lamina: Any) -> bool:
        found = resolve(user={"lamina": lamina}).resolved(name)
        return found.value is False and found.source == "rule"

    def test_folding_turns_replaces_autocompaction_and_not_the_command(self) -> None:
        assert self.off_by_rule("auto_compact", collapse=True)
        assert resolve(user={"lamina": {"collapse": True}}).compaction is True

    def test_assistant_mode_has_no_extraction_and_no_live_index(self) -> None:
        assert self.off_by_rule("extraction", assistant=True)
        assert self.off_by_rule("index_in_prompt", assistant=True)

    def test_nothing_is_extracted_on_a_remote_machine(self) -> None:
        settings = resolve(environ={"LAMINA_REMOTE": "1", "LAMINA_REMOTE_MEMORY_DIR": "/srv/kept/m"})
        assert settings.memory is True
        assert settings.extraction is False

    def test_without_memory_nothing_that_needs_it_runs(self) -> None:
        settings = resolve(
            user={"autoMemoryEnabled": False, "lamina": {"team": True, "assistant": True, "extractionNonInteractive": True}}
        )
        names = (
            "recall",
            "index_in_prompt",
            "past_search",
            "extraction",
            "extraction_non_interactive",
            "dream",
            "team",
            "assistant",
        )
        assert [name for name in names if getattr(settings, name)] == []
        assert settings.session_notes is True
        assert settings.resolved("recall") == Resolved(False, "rule", "memory is off")

    def test_rules_leave_the_defaults_alone(self) -> None:
        assert not [row.key for row, found in Settings() if found.source != "default"]
