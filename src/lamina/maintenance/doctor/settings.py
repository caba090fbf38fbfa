"""Check the settings (ignored values, invalid rules, what a project may not set) and the machine: helper programs, an API key,
and the package for it (F2, Z10)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from ...core.errors import DiskError, install_command
from ...core.settings import NOT_IN_TREE, WAITS_FOR_TRUST, Settings
from ...disk.files import read
from ...disk.home.trust import FILE_NAME as TRUST
from ...providers import configured
from ...tools.grep import find_ripgrep
from ...tools.permissions.rules import read_rules
from .finding import Finding

# The problem of a settings finding → kind; any other finding is an ignored setting.
_KINDS: dict[str, str] = {WAITS_FOR_TRUST: "waits-for-trust", NOT_IN_TREE: "setting-of-tree"}
_MOST_BYTES = 4 << 20


def check_settings(settings: Settings, home: Path | None) -> Iterator[Finding]:
    for found in settings.findings:
        yield Finding("settings", _KINDS.get(found.problem, "setting"), found.text, found.file)
    for rule in read_rules(settings.permissions).findings:
        yield Finding("settings", "permission-rule", rule.text)
    if home is not None:
        yield from _trust(home / TRUST)


def _trust(path: Path) -> Iterator[Finding]:
    """Report an unreadable trust file: it trusts nothing, so the user is asked again, and only this check explains why."""
    try:
        data = json.loads(read(path, _MOST_BYTES) or b"{}")
        problem = "" if isinstance(data, dict) and isinstance(data.get("projects", {}), dict) else "is not a list of projects"
    except DiskError as error:
        problem = error.problem
    except (ValueError, RecursionError):
        problem = "is not valid JSON"
    if problem:
        text = f"The list of trusted directories is unreadable ({problem}), so nothing is trusted."
        yield Finding("settings", "answers-damage", text, str(path))


def check_machine(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    if shutil.which("git", path=environ.get("PATH")) is None:
        text = "git is not on the PATH, so sessions do not receive the state of the repository."
        yield Finding("machine", "missing-tool", text, advice="Install git.")
    if find_ripgrep(environ) is None:
        text = "ripgrep is not installed, so searches are slower."
        yield Finding("machine", "missing-tool", text, advice="Install ripgrep (rg).")
    provider = _provider(settings, environ)
    if provider == "offline":
        yield Finding("machine", "no-provider", "No provider is configured, so the offline stand-in answers.")
    elif provider in ("anthropic", "openai") and find_spec(provider) is None:
        text = f"An API key for {provider} is set, but its package is not installed."
        yield Finding(
            "machine", "missing-package", text, advice=f"Run `{install_command(provider)}` in Lamina's source directory."
        )


def _provider(settings: Settings, environ: Mapping[str, str]) -> str:
    """Return the provider a chat would use: the configured one, or the one with an API key in the environment or settings."""
    named = settings.model or settings.provider
    if named:
        return named.partition(":")[0]
    keys = {"ANTHROPIC_API_KEY": settings.anthropic_api_key, "OPENAI_API_KEY": settings.openai_api_key}
    there = {name: "yes" for name, key in keys.items() if key is not None}
    place = {"OPENAI_BASE_URL": settings.openai_base_url} if settings.openai_base_url else {}
    return configured({**environ, **there, **place})
