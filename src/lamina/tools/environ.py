"""What the programs we start see of our environment: all of it but our own keys. A command's output goes to the model, and a key
belongs to neither."""

from __future__ import annotations

from collections.abc import Mapping

# What opens a provider for us. Other keys are the person's own business: their programs may need them.
SECRETS = frozenset(
    {
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_CUSTOM_HEADERS",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "OPENAI_ADMIN_KEY",
        "OPENAI_API_KEY",
    }
)
_OWN_PREFIX = "LAMINA_"
_OWN_ENDS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")


def child_environ(environ: Mapping[str, str], hand_over: frozenset[str] = frozenset()) -> dict[str, str]:
    """The variables a command may see; `hand_over` names secrets that are allowed all the same."""
    return {name: value for name, value in environ.items() if name in hand_over or not is_secret(name)}


def is_secret(name: str) -> bool:
    upper = name.upper()
    return upper in SECRETS or (upper.startswith(_OWN_PREFIX) and upper.endswith(_OWN_ENDS))
