"""How the text of a variable becomes a value, and which variables a working tree may never set."""

from __future__ import annotations

from typing import Any

from .kinds import Read, Switch, Whole, truth
from .row import Setting, Variable
from .shapes import frozen_map

# Claude Code's limit for Bash's output, which its variable can lower and not raise.
BASH_CHARACTERS = 30_000

# Variables by which a program finds a server, a key, a certificate or the home directory. Lamina reads none of them from a
# working tree, and hands none of them from there to a child.
_STEERING_STARTS = ("LAMINA_", "CLAUDE", "ANTHROPIC_", "OPENAI_", "AWS_", "AZURE_", "GOOGLE_", "XDG_")
_STEERING_ENDS = ("_URL", "_PROXY", "_ENDPOINT", "_HOST", "_KEY", "_TOKEN", "_SECRET", "_CA_BUNDLE", "_CA_CERTS")
_STEERING = frozenset({"HOME", "USERPROFILE", "SSL_CERT_FILE", "SSL_CERT_DIR"})


def steers(name: str) -> bool:
    upper = name.upper()
    return upper in _STEERING or upper.startswith(_STEERING_STARTS) or upper.endswith(_STEERING_ENDS)


def variable_value(row: Setting[Any], variable: Variable, text: str) -> Read[Any]:
    """A variable that is set to nothing says false to a switch and nothing to any other setting."""
    empty = not text.strip()
    match variable.means:
        case "value":
            return Read(None) if empty and not isinstance(row.kind, Switch) else row.kind.parse(text)
        case "not":
            # An empty variable is no decision to force memory on over a person's "off".
            return Read(None) if empty else _negated(row, text)
        case "off":
            read = _negated(row, text)
            return read if read.value is False else Read(None, read.problems)
        case "bash":
            return Read(None) if empty else _bash(text)


def _negated(row: Setting[Any], text: str) -> Read[Any]:
    value = truth(text)
    return row.kind.parse(text) if value is None else Read(not value)


def _bash(text: str) -> Read[Any]:
    length = Whole(1).parse(text)
    return Read(frozen_map({"Bash": min(length.value, BASH_CHARACTERS)})) if length.value else Read(None, length.problems)
