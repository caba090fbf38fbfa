"""The texts of this room: markdown files in `prompts/`, read once a process.

A file is a text, or a collection of texts under `## name` headings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

_PROMPTS = Path(__file__).parent / "prompts"


@cache
def whole(name: str) -> str:
    return (_PROMPTS / f"{name}.md").read_text("utf-8").strip()


@cache
def sections(name: str) -> Mapping[str, str]:
    parts = re.split(r"^## (.+)$", whole(name), flags=re.MULTILINE)[1:]
    return MappingProxyType({heading.strip(): text.strip() for heading, text in zip(parts[::2], parts[1::2], strict=True)})
