"""The texts of this room: markdown files in `prompts/`, read once a process; a text stands under its `## name`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

_PROMPTS = Path(__file__).parent / "prompts"


@cache
def sections(name: str) -> Mapping[str, str]:
    text = (_PROMPTS / f"{name}.md").read_text("utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return MappingProxyType({heading.strip(): said.strip() for heading, said in zip(parts[::2], parts[1::2], strict=True)})
