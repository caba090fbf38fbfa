"""Markup of the page: elements of `core.markup`, and the forms of a text in a row of a list."""

from __future__ import annotations

from ..core.markup import Attribute, Child, Html, bdi, join, tag
from ..language.wording import shorten

__all__ = ["Attribute", "Child", "Html", "bdi", "cut", "file_name", "join", "tag"]


def cut(text: str, most: int) -> str:
    """Return the beginning of a long text on one line, for a row of a list."""
    return shorten(" ".join(text[: 4 * most].split()), most)


def file_name(path: str, project: str) -> Html:
    """Return a file's name and then its directory within the project, so that cutting loses the right half."""
    folder, _, name = path.removeprefix(f"{project.rstrip('/')}/" if project else "").rpartition("/")
    return join(
        (tag("span", {"class": "mono"}, bdi(name)), " ", tag("span", {"class": "mono soft"}, bdi(folder)) if folder else None)
    )
