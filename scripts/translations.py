"""List the translations that the catalogue lacks, and those that nothing uses.

    python scripts/translations.py           list missing and unused templates; fail if one is unused or has other placeholders
    python scripts/translations.py --all     fail also if one is missing, as a release needs

A template is the literal first argument of `Text(…)` or `words(…)`, or one of the literals that this argument chooses from.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "lamina"
CATALOGUE = SOURCE / "language" / "zh_CN.json"
MAKERS = frozenset({"Text", "words"})


def templates() -> dict[str, str]:
    """Return every template with the place where it stands first."""
    places: dict[str, str] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and node.args and _name(node.func) in MAKERS:
                for template in _literals(node.args[0]):
                    places.setdefault(template, f"{path.relative_to(ROOT)}:{node.lineno}")
    return places


def catalogue() -> dict[str, str]:
    entries: dict[str, str] = json.loads(CATALOGUE.read_text("utf-8"))
    return entries


def other_placeholders(entries: dict[str, str]) -> list[str]:
    """Return the templates whose translation does not have its placeholders."""
    return [template for template, translation in entries.items() if _fields(translation) != _fields(template)]


def _name(function: ast.expr) -> str:
    """Return the name that is called; `words_for(request)("…")` and `shown.words("…")` are calls of `words`."""
    match function:
        case ast.Attribute(value=ast.Name(id="options")):  # arguments of the command line
            return ""
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=ast.Name(id="words_for")):
            return "words"
        case _:
            return ""


def _literals(argument: ast.expr) -> Iterator[str]:
    match argument:
        case ast.Constant(value=str(template)):
            yield template
        case ast.IfExp(body=one, orelse=other):
            yield from _literals(one)
            yield from _literals(other)


def _fields(template: str) -> set[str]:
    return {field for _, field, _, _ in Formatter().parse(template) if field}


def main(arguments: list[str]) -> int:
    places, entries = templates(), catalogue()
    missing = [f"{place}: {template!r}" for template, place in places.items() if template not in entries]
    unused = [repr(template) for template in entries if template not in places]
    other = [repr(template) for template in other_placeholders(entries)]
    for title, lines in (("missing", missing), ("unused", unused), ("other placeholders", other)):
        print("\n  ".join([f"{title}: {len(lines)} of {len(places)}", *lines]))
    return 1 if unused or other or ("--all" in arguments and missing) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
