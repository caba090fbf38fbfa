"""List the translations that the catalogue lacks, and those that nothing uses.

    python scripts/translations.py           list missing and unused templates; fail if one is unused or has other placeholders
    python scripts/translations.py --all     fail also if one is missing, as a release needs

A template is a literal argument of the calls in MAKERS, or one of the literals that this argument chooses from. A stored sentence is
looked up as a whole, so each literal of the source uses the translation that it is a key of.
"""

from __future__ import annotations

import ast
import errno
import json
import os
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

from lamina.language.wording import plural

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "lamina"
CATALOGUE = SOURCE / "language" / "zh_CN.json"
# The calls that take templates, and the position of the template.
MAKERS = {"Text": 0, "Sentence": 0, "words": 0, "Number": 0, "Setting": 2}


def templates() -> dict[str, str]:
    """Return every template with the place where it stands first."""
    places: dict[str, str] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                for template in _templates(node):
                    places.setdefault(template, f"{path.relative_to(ROOT)}:{node.lineno}")
    return places


def literals() -> set[str]:
    """Return every string of the source, the advice in the list of read-only commands, and the reasons of the operating system."""
    trees = [ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))]
    strings = {node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    commands = tomllib.loads((SOURCE / "tools" / "permissions" / "readonly" / "commands.toml").read_text("utf-8"))
    return {
        *templates(),
        *commands["instead"].values(),
        *(text for text in strings if isinstance(text, str)),
        *(os.strerror(code).lower() for code in errno.errorcode),
    }


def catalogue() -> dict[str, str]:
    entries: dict[str, str] = json.loads(CATALOGUE.read_text("utf-8"))
    return entries


def other_placeholders(entries: dict[str, str]) -> list[str]:
    """Return the templates whose translation does not have its placeholders."""
    return [template for template, translation in entries.items() if _fields(translation) != _fields(template)]


def _templates(call: ast.Call) -> Iterator[str]:
    match call:
        case ast.Call(func=ast.Name(id="counted"), args=[_, ast.Constant(value=str(one)), *more]):
            many = ast.literal_eval(more[0]) if more else ""
            yield f"{{n}} {one}|{{n}} {plural(2, one, many)}"
        case _:
            position = MAKERS.get(_name(call.func), len(call.args))
            yield from _literals(call.args[position]) if position < len(call.args) else ()


def _name(function: ast.expr) -> str:
    """Return the name that is called; `words_for(request)("…")` and `shown.words("…")` are calls of `words`."""
    match function:
        case ast.Attribute(value=ast.Name(id="options")):  # arguments of the command line
            return ""
        case ast.Attribute(value=ast.Name(id="screen") | ast.Attribute(attr="screen" | "_screen"), attr="say"):
            return "words"
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
    places, used, entries = templates(), literals(), catalogue()
    missing = [f"{place}: {template!r}" for template, place in places.items() if template not in entries]
    unused = [repr(template) for template in entries if template not in used]
    other = [repr(template) for template in other_placeholders(entries)]
    for title, lines in (("missing", missing), ("unused", unused), ("other placeholders", other)):
        print("\n  ".join([f"{title}: {len(lines)} of {len(places)}", *lines]))
    return 1 if unused or other or ("--all" in arguments and missing) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
