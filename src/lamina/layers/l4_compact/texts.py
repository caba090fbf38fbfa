"""The texts of this room: collections under `## name` headings in `prompts/`, read once a process."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

# A heading of the collection is words only; the headings inside a text stand in backticks.
_HEADING = re.compile(r"^## ([a-z_ ]+)$", re.MULTILINE)


@cache
def sections(name: str) -> Mapping[str, str]:
    whole = (Path(__file__).with_name("prompts") / f"{name}.md").read_text("utf-8")
    parts = _HEADING.split(whole)[1:]
    return MappingProxyType({heading.strip(): text.strip() for heading, text in zip(parts[::2], parts[1::2], strict=True)})
