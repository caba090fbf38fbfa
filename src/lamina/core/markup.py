"""Markup as Python values. Pure. Invariant: a text becomes markup only by `tag`, which escapes it; nothing else makes an Html.

The page's content security policy forbids inline styles and scripts, so attributes for them are refused here, and links lead only
to addresses of this page or of the web. The page and the report of a replay are made with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TypeAlias

Attribute: TypeAlias = "str | int | float | bool | None"
Child: TypeAlias = "str | int | Iterable[Child] | None"

VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
LINKS = frozenset({"href", "src", "action", "formaction"})
ALLOWED_LINKS = ("/", "#", "?", "http://", "https://", "data:,")


class Html(str):
    """Markup that is safe to send. Made by `tag` and `join` only."""

    __slots__ = ()


def tag(name: str, attributes: Mapping[str, Attribute] | None = None, *children: Child) -> Html:
    """Return an element. Children that are texts are escaped, None is left out, and an attribute that is None or False is too."""
    head = ""
    for key, value in (attributes or {}).items():
        if key == "style" or key.startswith("on"):
            raise ValueError(f"The attribute {key!r} is not allowed. Use a class or a script of static/.")
        if value is None or value is False:
            continue
        text = str(value)
        if key in LINKS and value is not True and not text.startswith(ALLOWED_LINKS):
            raise ValueError(f"A link to {text[:40]!r} is not allowed.")
        head += f" {key}" if value is True else f' {key}="{escape(text)}"'
    if name in VOID:
        return Html(f"<{name}{head}>")
    return Html(f"<{name}{head}>{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Html:
    """Return the children one after the other."""
    parts = list[str]()
    for child in children:
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, str | int):
            parts.append(escape(str(child)))
        elif child is not None:
            parts.append(join(child))
    return Html("".join(parts))


def bdi(text: str) -> Html:
    """Return a text from a file. Its direction marks have no effect on the text around it."""
    return tag("bdi", None, text)
