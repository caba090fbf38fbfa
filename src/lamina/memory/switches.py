"""Which switch turned private memory off, and what to do about it. Pure."""

from __future__ import annotations

from ..core.settings.resolution import Settings
from ..core.settings.table import VARIABLE_NAMES
from ..language.text import Text


def why_off(settings: Settings) -> str | None:
    """Return the setting that switched private memory off, with what to do; None if it is on."""
    if not settings.memory:
        return _memory_switch(settings)
    if settings.memory_mode["private"] == "off":
        found = settings.resolved("memory_mode")
        return Text(
            "private memory is off: lamina.memoryMode is off ({detail}); set it to auto or confirm",
            detail=found.detail or found.source,
        )
    return None


def _memory_switch(settings: Settings) -> str:
    found = settings.resolved("memory")
    if found.source == "rule":
        if settings.bare:
            return "private memory is off: bare mode is on; start without it"
        return "private memory is off: this machine is ephemeral and has no memory directory; set LAMINA_REMOTE_MEMORY_DIR"
    if found.detail.endswith(VARIABLE_NAMES["memory"]):
        return Text("private memory is off: {detail} is set; unset it", detail=found.detail)
    return Text(
        "private memory is off: autoMemoryEnabled is false ({detail}); set it to true", detail=found.detail or found.source
    )
