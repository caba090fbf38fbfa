"""What the machine lacks: programs that help, a key for a model, a package for a key that is there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from importlib.util import find_spec

from ...core.settings import Settings
from ...providers import configured
from ...tools.engines import find_ripgrep
from .finding import Finding


def check_machine(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    if shutil.which("git", path=environ.get("PATH")) is None:
        yield Finding(
            "machine",
            "missing-tool",
            "git is not on the PATH, so a session is not told the state of the repository.",
            "Install git.",
        )
    if find_ripgrep(environ) is None:
        yield Finding("machine", "missing-tool", "ripgrep is not installed, so searches are slower.", "Install ripgrep (rg).")
    provider = _provider(settings, environ)
    if provider == "offline":
        text = "No provider is configured, so the offline stand-in answers."
        yield Finding("machine", "no-provider", text, "Set ANTHROPIC_API_KEY or OPENAI_API_KEY to talk to a model.")
    elif provider in ("anthropic", "openai") and find_spec(provider) is None:
        text = f"A key for {provider} is there, and its package is not installed."
        yield Finding("machine", "missing-package", text, f'pip install "lamina[{provider}]" brings it.')


def _provider(settings: Settings, environ: Mapping[str, str]) -> str:
    """Which one a chat would use: the one that is named, else by the keys there are, in settings too."""
    named = settings.model or settings.provider
    if named:
        return named.partition(":")[0]
    keys = {"ANTHROPIC_API_KEY": settings.anthropic_api_key, "OPENAI_API_KEY": settings.openai_api_key}
    there = {name: "yes" for name, key in keys.items() if key is not None}
    place = {"OPENAI_BASE_URL": settings.openai_base_url} if settings.openai_base_url else {}
    return configured({**environ, **there, **place})
