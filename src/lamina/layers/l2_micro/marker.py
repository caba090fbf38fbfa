"""The marker that stands where a result was cleared: the same bytes for the same result, for ever (M2)."""

from __future__ import annotations

from lamina.core.record_lines import UNRECORDED_MARKER

_BEGINNING = "[Cleared to save room: "


def marker(path: str) -> str:
    """`path` is where the whole result lies; it names the call, so two results never share a marker."""
    return f"{_BEGINNING}the whole result is in {path} and can be read there.]"


def is_marker(shown: str) -> bool:
    """Whether a frozen replacement stands for a cleared result, and not for a spilled one."""
    return shown.startswith(_BEGINNING) or shown == UNRECORDED_MARKER
