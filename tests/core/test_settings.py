"""The table of settings and the frozen value: defaults, levels, findings, live flags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.errors import SettingError
from lamina.core.policy import BALANCED, CLASSIC, LEAN
from lamina.core.settings import SETTINGS, Resolved, Secret, Settings, find, resolve
from lamina.core.settings.table import NUMBERS, VARIABLES

# The defaults of all switches, exactly as in F1.
ON = {
    "instructions": True,
    "spill": True,
    "size_clearing": True,
    "idle_clearing": False,
    "cache_edits": False,
    "api_clearing": False,
    "session_notes": True,
    "notes_compaction": True,
    "auto_compact": True,
    "collapse": False,
    "snip": True,
    "recall": True,
    "index_in_prompt": True,
    "past_search": True,
    "extraction": True,
    "extraction_non_interactive": False,
    "dream": True,
    "team": False,
    "assistant": False,
    "agent_summaries": True,
}

# F1: the numbers of R1, M3, N3 and D1, and the throttle of X2.
REMOTE_NUMBERS = {
    "lamina.results.perTool": {"Grep": 5},
    "lamina.results.default": 7,
    "lamina.results.perMessage": 7,
    "lamina.micro.idleMinutes": 7,
    "lamina.micro.idleKeep": 7,
    "lamina.cold.clear": True,
    "lamina.cold.repeated": True,
    "lamina.notes.firstAt": 7,
    "lamina.notes.growth": 7,
    "lamina.notes.toolCalls": 7,
    "lamina.dreamHours": 7,
    "lamina.dreamSessions": 7,
    "lamina.dreamScanMinutes": 7,
    "lamina.extractionEvery": 7,
}


def texts(settings: Settings) -> str:
    return "\n".join(found.text for found in settings.findings)


class TestTable:
    @pytest.mark.spec("F1")
    @pytest.mark.parametrize(("name", "on"), ON.items())
    def test_each_layer_has_a_switch_with_its_default(self, name: str, on: bool) -> None:
        assert getattr(Settings(), name) is on

    @pytest.mark.spec("F1")
    @pytest.mark.parametrize(("name", "on"), ON.items())
    def test_each_switch_is_turned_by_setting_variable_and_flag(self, name: str, on: bool) -> None:
        row = find(name)
        assert row is not None
        word = "1" if row.means != "value" or not on else "0"
        by_key = resolve(user={row.key: not on})
        assert getattr(by_key, name) is not on
        assert getattr(resolve(environ={row.variables[0]: word}), name) is not on
        assert getattr(resolve(remote={row.key: not on}), name) is not on

    @pytest.mark.spec("F1")
    def test_what_a_flag_may_set_is_the_switches_and_the_numbers_of_four_ids(self) -> None:
        switches = {key for name in ON if (row := find(name)) is not None for key in [row.key]}
        assert {row.key for row in SETTINGS if row.remote} == switches | set(REMOTE_NUMBERS)

    def test_every_number_of_the_policy_is_a_setting(self) -> None:
        groups = {name: getattr(CLASSIC, name) for name in CLASSIC.__struct_fields__ if name != "name"}
        assert {(name, field) for name, group in groups.items() for field in group.__struct_fields__} == set(NUMBERS)

    def test_keys_names_and_variables_are_each_used_once(self) -> None:
        assert len({row.key for row in SETTINGS}) == len({row.name for row in SETTINGS}) == len(SETTINGS)
        assert sum(len(row.variables) for row in SETTINGS) == len(VARIABLES)

    def test_a_row_is_complete_and_its_default_can_be_shown(self) -> None:
        for row in SETTINGS:
            assert row.help.endswith("."), row.key
            assert row.spec[0].isupper(), row.key
            assert row.tree in ("never", "trusted", "less", "freely"), row.key
            msgspec.json.encode(row.shown(Settings().resolved(row.key).value))

    @pytest.mark.parametrize("row", [row for row in SETTINGS if row.tree == "less"], ids=lambda row: row.key)
    def test_what_a_tree_may_lower_knows_what_less_is(self, row: Any) -> None:
        assert row.kind.least(row.default, row.default) == row.default

    @pytest.mark.parametrize("name", ["lamina.recall", "recall", "LAMINA_RECALL"])
    def test_a_row_is_found_by_key_name_and_variable(self, name: str) -> None:
        assert find(name) is Settings.recall

    @pytest.mark.parametrize(
        ("alias", "text", "name", "value"),
        [
            ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1", "memory", False),
            ("DISABLE_COMPACT", "1", "compaction", False),
            ("DISABLE_AUTO_COMPACT", "true", "auto_compact", False),
            ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "50", "autocompact_percent", 50.0),
            ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100k", "auto_compact_window", 100_000),
            ("CLAUDE_CODE_REMOTE", "1", "remote", True),
            ("CLAUDE_CODE_REMOTE_MEMORY_DIR", "/mnt/kept/m", "remote_memory_directory", "/mnt/kept/m"),
            ("CLAUDE_COWORK_MEMORY_PATH_OVERRIDE", "/srv/m/x", "memory_directory", "/srv/m/x"),
        ],
    )
    @pytest.mark.spec("F3")
    def test_the_names_of_claude_code_are_read(self, alias: str, text: str, name: str, value: object) -> None:
        assert getattr(resolve(environ={alias: text}), name) == value

    @pytest.mark.spec("R5")
    @pytest.mark.parametrize(("text", "characters"), [("8000", 8_000), ("90000", 30_000)])
    def test_the_output_length_of_bash_can_be_lowered_by_its_known_variable(self, text: str, characters: int) -> None:
        settings = resolve(environ={"BASH_MAX_OUTPUT_LENGTH": text}, user={"lamina": {"results": {"perTool": {"Grep": 9}}}})
        assert settings.policy.results.per_tool == {"Bash": characters, "Grep": 9}


class TestLevels:
    @pytest.mark.spec("F2")
    def test_each_level_wins_over_the_ones_below_it(self) -> None:
        sources: dict[str, Any] = {
            "remote": {"lamina.extractionEvery": 2},
            "user": {"lamina": {"extractionEvery": 3}},
            "project": {"lamina": {"extractionEvery": 4}},
            "local": {"lamina": {"extractionEvery": 5}},
            "environ": {"LAMINA_EXTRACTION_EVERY": "6"},
            "command_line": {"extraction_every": 7},
            "managed": {"lamina": {"extractionEvery": 8}},
            "arguments": {"extraction_every": 9},
        }
        seen = []
        given: dict[str, Any] = {}
        for name, value in sources.items():
            given[name] = value
            found = resolve(trusted=True, **given).resolved("extraction_every")
            seen.append((found.value, found.source))
        assert seen == [
            (2, "remote flag"),
            (3, "user"),
            (4, "project"),
            (5, "local"),
            (6, "environment"),
            (7, "command line"),
            (8, "managed"),
            (9, "argument"),
        ]
        assert Settings().resolved("extraction_every") == Resolved(1, "default")

    def test_maps_are_laid_over_each_other_and_lists_are_united(self) -> None:
        settings = resolve(
            managed={"claudeMdExcludes": ["a"], "permissions": {"deny": ["Bash(rm:*)"]}, "env": {"A": "managed"}},
            user={
                "claudeMdExcludes": ["b", "a"],
                "permissions": {"allow": ["Read"], "deny": ["Write"], "defaultMode": "plan"},
                "env": {"A": "user", "B": "user"},
                "lamina": {"memoryMode": {"team": "confirm"}},
            },
            environ={"LAMINA_MEMORY_MODE": "private=read-only"},
        )
        assert settings.instruction_excludes == ("a", "b")
        assert settings.permissions.deny == ("Bash(rm:*)", "Write")
        assert settings.permissions.allow == ("Read",)
        assert settings.permissions.mode == "plan"
        assert settings.env == {"A": "managed", "B": "user"}
        assert settings.memory_mode["private"] == "read-only"
        assert settings.memory_mode["team"] == "confirm"
        assert settings.memory_mode["agentUser"] == "auto"

    def test_a_list_that_is_the_whole_list_is_replaced(self) -> None:
        settings = resolve(user={"lamina": {"micro": {"clearable": ["Read"]}}})
        assert settings.policy.micro.clearable == frozenset({"Read"})

    def test_hooks_of_all_levels_run_the_higher_levels_first(self) -> None:
        def group(name: str) -> dict[str, Any]:
            return {"Stop": [{"matcher": "*", "hooks": [{"type": "command", "command": name}]}]}

        settings = resolve(managed={"hooks": group("m")}, user={"hooks": group("u")})
        assert [each["hooks"][0]["command"] for each in settings.hooks["Stop"]] == ["m", "u"]

    @pytest.mark.spec("F4")
    def test_guidelines_come_from_a_variable_or_a_setting(self) -> None:
        assert resolve(environ={"LAMINA_EXTRA_GUIDELINES": "Never save names."}).extra_guidelines == "Never save names."
        assert resolve(user={"lamina": {"extraGuidelines": "Be brief."}}).extra_guidelines == "Be brief."
        assert Settings().extra_guidelines is None

    @pytest.mark.spec("T4")
    @pytest.mark.parametrize("text", ["1000000", "1000k", "1m"])
    def test_the_window_is_set_by_a_variable(self, text: str) -> None:
        assert resolve(environ={"LAMINA_CONTEXT_WINDOW": text}).context_window == 1_000_000

    @pytest.mark.spec("T6")
    @pytest.mark.parametrize("text", ["0", "-5", "100.5", "140", "nan", "inf", "half"])
    def test_a_percentage_outside_its_range_is_ignored_with_a_warning(self, text: str) -> None:
        settings = resolve(environ={"LAMINA_AUTOCOMPACT_PCT": text})
        assert settings.autocompact_percent is None
        assert "LAMINA_AUTOCOMPACT_PCT" in texts(settings)

    @pytest.mark.spec("T6")
    @pytest.mark.parametrize("text", ["0.5", "50", "100"])
    def test_a_percentage_inside_its_range_is_taken(self, text: str) -> None:
        assert resolve(environ={"LAMINA_AUTOCOMPACT_PCT": text}).autocompact_percent == float(text)

    @pytest.mark.spec("B9")
    def test_the_budget_is_200_calls_2_million_tokens_and_2_dollars(self) -> None:
        settings = Settings()
        assert (settings.budget_calls, settings.budget_tokens, settings.budget_dollars) == (200, 2_000_000, 2.0)

    @pytest.mark.spec("B5")
    @pytest.mark.parametrize("mode", ["off", "read-only", "confirm", "auto"])
    def test_one_mode_can_be_given_to_all_scopes(self, mode: str) -> None:
        assert set(resolve(user={"lamina": {"memoryMode": mode}}).memory_mode.values()) == {mode}

    def test_the_env_object_of_a_file_counts_as_that_file(self) -> None:
        settings = resolve(user={"env": {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50", "EDITOR": "vi"}})
        resolved = settings.resolved("autocompact_percent")
        assert (resolved.value, resolved.source) == (50.0, "user")
        assert settings.env == {"EDITOR": "vi"}

    def test_our_variable_stands_before_its_alias_and_a_bad_one_lets_the_alias_speak(self) -> None:
        both = {"LAMINA_MODEL": "ours", "ANTHROPIC_MODEL": "alias"}
        assert resolve(environ=both).model == "ours"
        assert resolve(environ={"LAMINA_AUTOCOMPACT_PCT": "x", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "9"}).autocompact_percent == 9

    @pytest.mark.spec("S2")
    def test_the_memory_directory_comes_from_the_variable_then_managed_then_user_settings(self) -> None:
        named: dict[str, Any] = {"user": {"autoMemoryDirectory": "~/u/memory"}}
        assert resolve(**named).memory_directory == "~/u/memory"
        named["managed"] = {"autoMemoryDirectory": "/srv/m/memory"}
        assert resolve(**named).memory_directory == "/srv/m/memory"
        named["environ"] = {"LAMINA_MEMORY_DIR": "/srv/e/memory"}
        assert resolve(**named).memory_directory == "/srv/e/memory"
        named["arguments"] = {"memory_directory": "/srv/a/memory"}
        assert resolve(**named).memory_directory == "/srv/a/memory"

    @pytest.mark.spec("S2")
    def test_a_directory_that_is_refused_lets_the_next_level_speak(self) -> None:
        def judge(text: str) -> str | None:
            return "is in a system directory" if text.startswith("/etc/") else None

        settings = resolve(
            environ={"LAMINA_MEMORY_DIR": "/etc/x/memory"}, user={"autoMemoryDirectory": "/srv/u/memory"}, judge=judge
        )
        assert settings.memory_directory == "/srv/u/memory"
        assert "is in a system directory" in texts(settings)


class TestFindings:
    @pytest.mark.parametrize(
        ("user", "said"),
        [
            ({"lamina": {"spill": "yes"}}, 'must be true or false, not "yes"'),
            ({"lamina": {"spill": 1}}, "must be true or false, not 1"),
            ({"lamina": {"notes": {"firstAt": -1}}}, "must be a whole number of at least 0"),
            ({"lamina": {"notes": {"firstAt": 1.5}}}, "not 1.5"),
            ({"lamina": {"policy": "fast"}}, "must be one of balanced, thrifty, classic, lean"),
            ({"lamina": {"durability": "none"}}, "must be one of full, process"),
            ({"lamina": {"memoryMode": {"team": "maybe"}}}, 'entry "team"'),
            ({"lamina": {"memoryMode": {"everybody": "auto"}}}, 'unknown scope "everybody"'),
            ({"lamina": {"results": {"perTool": {"Bash": "many"}}}}, 'entry "Bash"'),
            ({"lamina": {"baseUrl": "ftp://me:pass@host"}}, "starts with https://"),
            ({"lamina": []}, "must be an object"),
            ({"lamina": {"recal": True}}, "did you mean lamina.recall?"),
            ({"lamina": {"notes": {"zzz": 1}}}, "lamina.notes.zzz"),
            ({"recall": False}, 'move it into the object "lamina"'),
            ({"autoMemoryDirectory": "notes"}, "must be an absolute path"),
            ({"cleanupPeriodDays": 0}, "from 1 to 36,500"),
            ({"hooks": {"Stop": "rm"}}, 'entry "Stop"'),
            ({"hooks": {"Stop": ["rm"]}}, "each group must be an object"),
            ({"permissions": {"deny": "Bash"}}, "deny: must be a list"),
            ({"env": {"A": 1}}, 'entry "A"'),
            ({"env": {"LAMINA_SPIL": "0"}}, "is not a known variable"),
            ({"env": {"LAMINA_HOME": "/x"}}, "is read only from the process environment"),
        ],
    )
    def test_a_bad_setting_is_one_sentence_and_the_default_stays(self, user: Mapping[str, Any], said: str) -> None:
        settings = resolve(user=user)
        assert len(settings.findings) == 1
        assert said in settings.findings[0].text
        assert settings.findings[0].text.endswith(".")
        assert settings == Settings()

    def test_a_password_is_not_repeated_in_a_sentence(self) -> None:
        settings = resolve(user={"lamina": {"baseUrl": "ftp://me:pass@host", "openaiApiKey": "sk one two"}})
        assert len(settings.findings) == 2
        assert "pass" not in texts(settings)
        assert "sk" not in texts(settings)

    def test_what_belongs_to_claude_code_is_left_alone(self) -> None:
        assert not resolve(user={"statusLine": {}, "outputStyle": "x", "enabledPlugins": {}}).findings

    def test_a_variable_of_ours_that_does_not_exist_is_said_and_others_are_not(self) -> None:
        settings = resolve(environ={"LAMINA_SPIL": "0", "CLAUDE_SPIL": "0", "PATH": "/bin", "LAMINA_HOME": "/x"})
        assert [found.key for found in settings.findings] == ["LAMINA_SPIL"]

    def test_one_bad_entry_does_not_take_the_others_with_it(self) -> None:
        settings = resolve(user={"permissions": {"deny": ["Bash(rm:*)", 7]}, "env": {"A": "1", "B": 2}})
        assert settings.permissions.deny == ("Bash(rm:*)",)
        assert settings.env == {"A": "1"}
        assert len(settings.findings) == 2

    def test_a_key_cannot_move_the_cursor_of_the_one_who_reads_the_finding(self) -> None:
        settings = resolve(user={"lamina": {"\x1b[2J\u202eevil": 1}})
        assert "\x1b" not in texts(settings)
        assert "\u202e" not in texts(settings)
        assert "evil" in texts(settings)

    def test_a_file_full_of_mistakes_gives_few_findings(self) -> None:
        settings = resolve(project={"lamina": {f"x{number}": 1 for number in range(5_000)}})
        assert len(settings.findings) == 26
        assert "4,975 more problems" in settings.findings[-1].text

    def test_null_says_nothing(self) -> None:
        assert resolve(user={"lamina": {"spill": None}, "env": None}, arguments={"spill": None}) == Settings()

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
            max_leaves=8,
        ),
        st.sampled_from([row.key for row in SETTINGS]),
        st.booleans(),
    )
    def test_nothing_that_stands_in_a_file_raises(self, raw: object, key: str, trusted: bool) -> None:
        settings = resolve(user={key: raw}, project={key: raw, "lamina": raw, "env": raw}, trusted=trusted)
        assert all("\n" not in found.text for found in settings.findings)
        repr(settings)

    @given(st.text(), st.sampled_from(sorted(VARIABLES)))
    def test_no_text_of_a_variable_raises(self, text: str, name: str) -> None:
        resolve(environ={name: text})


class TestValue:
    def test_without_arguments_it_is_the_defaults_and_reads_no_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("LAMINA_SPILL", "0")
        settings = Settings()
        assert settings.spill is True
        assert settings.findings == ()
        assert settings.policy is BALANCED

    def test_arguments_say_so_in_code(self) -> None:
        settings = Settings(recall=False, notes_first_at=500, provider="offline")
        assert settings.resolved("recall") == Resolved(False, "argument")
        assert settings.policy.notes.first_at == 500
        assert settings.provider == "offline"

    @pytest.mark.parametrize("arguments", [{"recal": False}, {"recall": "no"}])
    def test_a_wrong_argument_in_code_is_an_error(self, arguments: dict[str, Any]) -> None:
        with pytest.raises(SettingError, match="recal"):
            Settings(**arguments)

    def test_a_name_nobody_knows_is_an_error(self) -> None:
        with pytest.raises(SettingError, match="no such setting"):
            Settings().resolved("recal")

    def test_nothing_can_be_changed(self) -> None:
        settings = resolve(user={"env": {"A": "1"}})
        with pytest.raises(AttributeError):
            settings.spill = False
        with pytest.raises(AttributeError):
            settings._values = {}
        with pytest.raises(AttributeError):
            del settings.findings
        with pytest.raises(TypeError):
            settings.env["A"] = "2"  # type: ignore[index]  # what must not work is what is tried

    def test_the_policy_follows_its_name_and_the_numbers_lie_over_it(self) -> None:
        assert resolve(user={"lamina": {"policy": "lean"}}).policy is LEAN
        settings = resolve(user={"lamina": {"policy": "lean", "notes": {"growth": 9}}})
        assert settings.policy.notes == msgspec.structs.replace(LEAN.notes, growth=9)
        assert settings.resolved("lamina.notes.firstAt") == Resolved(LEAN.notes.first_at, "default", "policy lean")

    def test_a_key_does_not_show_in_a_repr(self) -> None:
        settings = resolve(environ={"ANTHROPIC_API_KEY": "sk-ant-123"}, user={"env": {"DB": "hunter2"}})
        key = settings.anthropic_api_key
        assert isinstance(key, Secret)
        assert key.reveal() == "sk-ant-123"
        shown = repr(settings) + repr(key) + repr(settings.resolved("ANTHROPIC_API_KEY"))
        assert "sk-ant-123" not in shown
        assert "hunter2" not in repr(settings)


class TestFlags:
    @pytest.mark.spec("F1")
    @pytest.mark.parametrize("source", ["arguments", "managed", "command_line", "user"])
    def test_a_remote_false_turns_a_layer_off_whoever_turned_it_on(self, source: str) -> None:
        given: dict[str, Any] = {source: {"lamina": {"recall": True}} if source in ("managed", "user") else {"recall": True}}
        settings = resolve(remote={"lamina.recall": False}, **given)
        assert settings.resolved("recall") == Resolved(False, "remote flag")

    @pytest.mark.spec("F1")
    def test_a_remote_true_turns_on_only_what_nobody_turned_off(self) -> None:
        flags = {"lamina.idleClearing": True, "lamina.cacheEdits": True}
        settings = resolve(remote=flags, user={"lamina": {"cacheEdits": False}})
        assert settings.resolved("idle_clearing") == Resolved(True, "remote flag")
        assert settings.resolved("cache_edits").value is False

    @pytest.mark.spec("F1", "R5")
    @pytest.mark.parametrize(("key", "value"), REMOTE_NUMBERS.items())
    def test_a_remote_number_fills_in_where_nobody_spoke(self, key: str, value: Any) -> None:
        before = Settings().resolved(key).value
        found = Settings().with_remote({key: value}).resolved(key)
        assert found.source == "remote flag"
        assert found.value == ({**before, **value} if isinstance(value, dict) else value)
        own = resolve(arguments={key: before}, remote={key: value}).resolved(key)
        assert own.source == "argument"

    @pytest.mark.spec("R5")
    def test_thresholds_by_tool_are_laid_over_each_other_tool_by_tool(self) -> None:
        settings = resolve(
            remote={"lamina.results.perTool": {"Bash": 1_000, "Grep": 2_000}},
            user={"lamina": {"results": {"perTool": {"Grep": 3_000}}}},
        )
        assert settings.policy.results.per_tool == {"Bash": 1_000, "Grep": 3_000}

    @pytest.mark.spec("F1")
    @pytest.mark.parametrize(
        ("key", "value"),
        [("lamina.recall", "false"), ("lamina.recall", 0), ("lamina.notes.firstAt", "9"), ("lamina.dreamHours", True)],
    )
    def test_a_flag_of_the_wrong_type_is_ignored_and_said(self, key: str, value: object) -> None:
        settings = Settings().with_remote({key: value})
        assert settings == Settings()
        assert [(found.key, found.source) for found in settings.findings] == [(key, "remote flag")]

    def test_a_flag_sets_nothing_it_may_not(self) -> None:
        settings = Settings().with_remote(
            {"autoMemoryDirectory": "/srv/x/y", "lamina.baseUrl": "https://x", "lamina.nosuch": 1, "other": 2}
        )
        assert settings == Settings()
        assert [found.key for found in settings.findings] == ["autoMemoryDirectory", "lamina.baseUrl", "lamina.nosuch"]

    @pytest.mark.spec("F1")
    def test_flags_that_change_give_a_new_value_at_once_and_keep_everything_else(self) -> None:
        before = resolve(user={"lamina": {"snip": False, "x": 1}}, remote={"lamina.spill": False})
        after = before.with_remote({"lamina.recall": False})
        assert (before.spill, before.recall, before.snip) == (False, True, False)
        assert (after.spill, after.recall, after.snip) == (True, False, False)
        assert after.findings == before.findings
        assert after.with_remote({"lamina.recall": False}) is after
        assert after.with_remote(None).recall is True

    def test_a_function_is_asked_for_each_flag_and_may_fail(self) -> None:
        def flags(key: str, sample: object) -> object:
            if key == "lamina.spill":
                raise ConnectionError("away")
            return False if key == "lamina.recall" else None

        settings = Settings().with_remote(flags)
        assert (settings.recall, settings.spill) == (False, True)
        assert "reading the flag failed (ConnectionError)" in texts(settings)
