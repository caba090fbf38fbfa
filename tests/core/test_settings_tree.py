"""F2: which settings files in the working tree may change, before and after the user trusts the directory."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.core.settings import SETTINGS, Setting, Settings, Source, resolve

# A value other than the default for every setting that a file may contain.
OTHER: dict[str, Any] = {
    "lamina.policy": "lean",
    "lamina.cache.ttl": "1h",
    "lamina.contextWindow": 50_000,
    "autoCompactWindow": 50_000,
    "lamina.autocompactPercent": 50,
    "lamina.memoryMode": "off",
    "lamina.extraGuidelines": "x",
    "claudeMdExcludes": ["x"],
    "autoMemoryDirectory": "/srv/x/memory",
    "teamMemoryDirectory": "/srv/x/memory",
    "lamina.remoteMemoryDirectory": "/srv/x/memory",
    "lamina.durability": "process",
    "lamina.transcriptDurability": "full",
    "cleanupPeriodDays": 1,
    "lamina.provider": "openai:x",
    "model": "x",
    "lamina.billing": "subscription",
    "lamina.recallSelector": "model",
    "lamina.recallVectors": "static",
    "lamina.embeddingsUrl": "https://x.example",
    "lamina.embeddingsModel": "x",
    "lamina.smallModel": "x",
    "lamina.baseUrl": "https://x.example",
    "lamina.anthropicBaseUrl": "https://x.example",
    "lamina.openaiBaseUrl": "https://x.example",
    "lamina.anthropicApiKey": "x",
    "lamina.openaiApiKey": "x",
    "permissions": {"allow": ["Bash"]},
    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]},
    "env": {"EDITOR": "x"},
    "lamina.results.perTool": {"Bash": 9},
    "lamina.mailbox": "alice",
    "lamina.mcp.writes": "wait",
    "lamina.micro.clearable": ["Read"],
    "lamina.micro.keptTools": ["Read"],
    "lamina.once.keptTools": ["Read"],
    "lamina.window.defaultWindow": 2_000,
    "lamina.window.fullEffective": 2_000,
}
TREE: tuple[Source, ...] = ("project", "local")


def other(row: Setting[Any]) -> Any:
    if row.key in OTHER:
        return OTHER[row.key]
    before = Settings().resolved(row.key).value
    return (not before) if isinstance(before, bool) else 1 if before != 1 else 2


def with_tree(source: str, value: dict[str, Any], *, trusted: bool = False, **further: Any) -> Settings:
    further[source] = value
    return resolve(trusted=trusted, **further)


@pytest.mark.parametrize("source", TREE)
@pytest.mark.parametrize("row", [row for row in SETTINGS if row.tree == "never"], ids=lambda row: row.key)
@pytest.mark.spec("F2")
def test_paths_endpoints_and_keys_are_never_taken_trusted_or_not(row: Setting[Any], source: str) -> None:
    for trusted in (False, True):
        settings = with_tree(source, {row.key: other(row)}, trusted=trusted)
        assert settings == Settings()
        assert [found.key for found in settings.findings] == [row.key]
    assert resolve(user={row.key: other(row)}).resolved(row.key).source == "user"


@pytest.mark.parametrize("source", TREE)
@pytest.mark.parametrize(
    ("row", "name"),
    [(row, name) for row in SETTINGS if row.tree == "never" for name in row.variables],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.spec("F2", "S2")
def test_nor_are_they_through_the_env_object(row: Setting[Any], name: str, source: str) -> None:
    text = str(other(row)) if not isinstance(other(row), bool) else "1"
    settings = with_tree(source, {"env": {name: text}}, trusted=True)
    assert settings == Settings()
    assert name not in settings.env
    assert len(settings.findings) == 1


@pytest.mark.parametrize("source", TREE)
@pytest.mark.spec("F2")
def test_hooks_permissions_and_what_guards_the_window_wait_for_trust(source: str) -> None:
    for row in (row for row in SETTINGS if row.tree == "trusted"):
        value = {row.key: other(row)}
        before = with_tree(source, value)
        assert before == Settings(), row.key
        assert "waits until you trust this directory" in before.findings[0].text
        after = with_tree(source, value, trusted=True)
        assert after.resolved(row.key).source == source
        assert after.findings == ()


@pytest.mark.parametrize("row", [row for row in SETTINGS if row.tree == "freely"], ids=lambda row: row.key)
def test_what_costs_a_person_nothing_is_taken_at_once(row: Setting[Any]) -> None:
    assert with_tree("project", {row.key: other(row)}).resolved(row.key).source == "project"


@pytest.mark.parametrize("row", [row for row in SETTINGS if row.tree == "less" and row.default is True], ids=lambda row: row.key)
@pytest.mark.spec("F3")
def test_a_repository_can_turn_memory_and_spending_off_and_never_on_over_a_person(row: Setting[Any]) -> None:
    off = with_tree("project", {row.key: False}, user={row.key: True})
    resolved = off.resolved(row.key)
    assert (resolved.value, resolved.source) == (False, "project")
    for trusted in (False, True):
        on = with_tree("project", {row.key: True}, trusted=trusted, user={row.key: False})
        resolved = on.resolved(row.key)
        assert (resolved.value, resolved.source) == (False, "user")
        assert "more than your own settings allow" in on.findings[0].text


@pytest.mark.spec("F2")
def test_what_is_off_by_default_is_turned_on_only_by_a_trusted_repository() -> None:
    team = {"lamina": {"team": True}}
    assert with_tree("project", team).team is False
    assert "requires trusting this directory" in with_tree("project", team).findings[0].text
    assert with_tree("project", team, trusted=True).team is True


def test_local_settings_overrule_those_of_the_project() -> None:
    both = resolve(project={"autoMemoryEnabled": False}, local={"autoMemoryEnabled": True})
    assert both.memory is True
    assert resolve(project={"autoMemoryEnabled": True}, local={"autoMemoryEnabled": False}).memory is False


@pytest.mark.spec("B5")
def test_modes_can_be_tightened_scope_by_scope() -> None:
    wanted = {"lamina": {"memoryMode": {"private": "auto", "team": "off"}}}
    settings = with_tree("project", wanted, user={"lamina": {"memoryMode": "confirm"}})
    assert settings.memory_mode["private"] == "confirm"
    assert settings.memory_mode["team"] == "off"
    assert settings.memory_mode["agentLocal"] == "confirm"


@pytest.mark.spec("B9")
def test_a_budget_can_be_lowered_and_not_raised() -> None:
    assert with_tree("project", {"lamina": {"budgetCalls": 5}}).budget_calls == 5
    assert with_tree("project", {"lamina": {"budgetCalls": 5_000}}).budget_calls == 200
    assert (
        with_tree("project", {"lamina": {"budgetCalls": 50}}, trusted=True, user={"lamina": {"budgetCalls": 20}}).budget_calls
        == 20
    )


@pytest.mark.spec("F3")
def test_forcing_memory_on_through_the_env_object_is_no_more_than_asking_for_it() -> None:
    forced = {"env": {"LAMINA_DISABLE_MEMORY": "0"}}
    assert with_tree("project", forced, trusted=True, user={"autoMemoryEnabled": False}).memory is False
    assert with_tree("project", forced, trusted=True, command_line={"bare": True}).memory is False
    assert with_tree("project", {"env": {"LAMINA_DISABLE_MEMORY": "1"}}).memory is False


@pytest.mark.parametrize(
    "name",
    [
        *("HTTPS_PROXY", "http_proxy", "AWS_ENDPOINT_URL", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "HOME", "XDG_CONFIG_HOME"),
        *("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CONFIG_DIR", "LAMINA_HOME", "LAMINA_FLAGS", "GITHUB_TOKEN", "OPENAI_ORG_ID"),
    ],
)
def test_variables_that_steer_a_program_are_not_handed_on_from_a_trusted_repository(name: str) -> None:
    settings = with_tree("project", {"env": {name: "x", "EDITOR": "vi"}}, trusted=True)
    assert settings.env == {"EDITOR": "vi"}
    assert len(settings.findings) == 1


def test_a_trusted_repository_widens_no_directories_and_chooses_no_mode() -> None:
    wanted = {"permissions": {"allow": ["Read"], "additionalDirectories": ["/"], "defaultMode": "bypassPermissions"}}
    settings = with_tree("project", wanted, trusted=True)
    assert settings.permissions.allow == ("Read",)
    assert settings.permissions.directories == ()
    assert settings.permissions.mode is None
    assert len(settings.findings) == 1


def test_no_flag_and_no_trust_lets_a_repository_overrule_a_kill_switch() -> None:
    settings = with_tree("project", {"lamina": {"recall": True}}, trusted=True, remote={"lamina.recall": False})
    assert settings.recall is False
