"""Loads prompts: Markdown files in a `prompts` directory next to the code that sends them, each read once per process.

A file contains one text, or a collection of texts under `## name` headings. A name consists of words only. A heading that belongs
to a text must therefore contain backticks or other punctuation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

_NAME = r"(?m)^## ([A-Za-z_ -]+)$"


@cache
def prompt_text(module_file: str, name: str) -> str:
    """Return the text of `prompts/NAME.md` next to the module, as in `prompt_text(__file__, "fork")`."""
    return (Path(module_file).with_name("prompts") / f"{name}.md").read_text("utf-8").strip()


@cache
def prompt_sections(module_file: str, name: str) -> Mapping[str, str]:
    """Return the texts of a collection by name."""
    parts = re.split(_NAME, prompt_text(module_file, name))[1:]
    return MappingProxyType({heading.strip(): text.strip() for heading, text in zip(parts[::2], parts[1::2], strict=True)})
