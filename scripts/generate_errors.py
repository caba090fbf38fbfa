"""Write docs/errors.md: every error of the public API and of the command line, with its sentence.

    python scripts/generate_errors.py            write the page
    python scripts/generate_errors.py --check    fail if the page is out of date

Covers every call of a class in the tree of `lamina.errors`, of click's errors, and of the command line's own `notice`. A sentence with
alternatives takes one row for each.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from generated_page import write_or_check
from source_texts import Module, Scope, bind, is_worded, last_name, modules, owner, readings

CLICK = {"UsageError", "BadParameter", "ClickException", "BadArgumentUsage", "NoSuchOption", "FileError"}

INTRO = """\
# Error messages

Lamina raises one kind of error on purpose: `lamina.LaminaError`, with the subclasses below (`lamina.errors`). Each message is one sentence
that names the file, field or setting, what is wrong and what to do. The parts are attributes of the error, so a program need not parse
the sentence.

The command line prints the sentence on standard error, after `lamina: `. The exit code is 2 for a wrong call (`InputError`, `SettingError`,
`NoSuchSession`, wrong options), 1 for every other failure and 130 after Ctrl-C.

`{name}` stands for a value known only at run time. The column *where* names the package that raises the error.

<!-- Generated from the code: python scripts/generate_errors.py -->
"""


@functools.cache
def error_classes() -> dict[str, tuple[Module, ast.ClassDef]]:
    """The tree below LaminaError, also what packages add to it; parents come before their children."""
    known = {"LaminaError": (modules()["core.errors"], modules()["core.errors"].classes["LaminaError"])}
    every = [(module, node) for module in modules().values() for node in module.classes.values()]
    grew = True
    while grew:
        new = {n.name: (m, n) for m, n in every if n.name not in known and known.keys() & {last_name(base) for base in n.bases}}
        known |= new
        grew = bool(new)
    return known


def sentences(call: ast.Call, name: str, scope: Scope) -> list[str]:
    """The messages of an error that is made here: the class's own template with the arguments filled in."""
    if name not in error_classes():
        return readings(call.args[0], scope) if call.args else []
    module, node = error_classes()[name]
    own = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    if own is None:
        parent = next((base for base in map(last_name, node.bases) if base in error_classes()), "")
        return sentences(call, parent, scope) if parent else [text for value in call.args[:1] for text in readings(value, scope)]
    inner = Scope(module, own, bind(call, own.args, scope))
    parent = next((base for base in map(last_name, node.bases) if base in error_classes()), "")
    above = [
        each
        for each in ast.walk(own)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "__init__"
    ]
    return [text for each in above for text in (sentences(each, parent, inner) if parent else readings(each.args[0], inner))]


@dataclass(frozen=True, order=True)
class Row:
    error: str
    package: str
    sentence: str


def rows() -> list[Row]:
    found = {
        Row(name, module.name.split(".")[0] or "lamina", _tidy(text))
        for module in modules().values()
        if module.name != "core.errors"
        for name, call, scope in _made(module)
        for text in sentences(call, name, scope)
        if is_worded(text)
    }
    return sorted(found)


def _made(module: Module) -> Iterator[tuple[str, ast.Call, Scope]]:
    """Every call that makes an error or prints a failure. A helper that only makes one is read at each of its callers."""
    helpers = {name for name, node in module.functions.items() if _makes(node, module)}
    for function, call in _calls(module.tree, None):
        scope = Scope(module, function)
        name = last_name(call.func)
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "click":
            if name in CLICK:
                yield f"click.{name}", call, scope
        elif _is_error(call.func, module) and (function is None or function.name not in helpers):
            yield name, call, scope
        elif name == "notice" and module.name.startswith("cli"):
            yield "notice", call, scope
        elif isinstance(call.func, ast.Name) and (made := _helped(name, call, scope)) is not None:
            yield made


def _is_error(called: ast.expr, module: Module) -> bool:
    """A class of the tree is called, not another one of the same name."""
    name = last_name(called)
    if name not in error_classes():
        return False
    if isinstance(called, ast.Attribute):
        return last_name(called.value) == "errors"
    return owner(name, module)[0] is error_classes()[name][0]


def _makes(function: ast.FunctionDef, module: Module) -> bool:
    """Its body is one `return` of a new error."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    match body:
        case [ast.Return(value=ast.Call(func=func))]:
            return _is_error(func, module)
        case _:
            return False


def _helped(name: str, call: ast.Call, scope: Scope) -> tuple[str, ast.Call, Scope] | None:
    module, own = owner(name, scope.module)
    function = module.functions.get(own)
    if function is None or not _makes(function, module):
        return None
    made = function.body[-1]
    assert isinstance(made, ast.Return)
    assert isinstance(made.value, ast.Call)
    return last_name(made.value.func), made.value, Scope(module, function, bind(call, function.args, scope))


def _calls(node: ast.AST, function: ast.FunctionDef | None) -> Iterator[tuple[ast.FunctionDef | None, ast.Call]]:
    """Every call below a node. `raise Error` and the pair `Error, "sentence"` count as calls of the error."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Call():
                yield function, child
            case ast.Raise(exc=ast.Name() as error):
                yield function, ast.Call(error, [], [])
            case ast.Tuple(elts=[ast.Name() as error, ast.Call(func=ast.Name(id="Text")) as text]):
                yield function, ast.Call(error, [text], [])
            case _:
                pass
        yield from _calls(child, child if isinstance(child, ast.FunctionDef) else function)


def _tidy(text: str) -> str:
    return re.sub(r"\{(\w+)\}\{\1\}", r"{\1}", " ".join(text.split())).replace("{}", "{message}")


def _meaning(name: str) -> str:
    """The first sentence of an error's docstring, or what the tree at the top of core/errors.py says of it."""
    _, node = error_classes()[name]
    if written := ast.get_docstring(node):
        return re.sub(r" \([A-Z][0-9]+\)", "", written.split("\n\n")[0].replace("\n", " "))
    tree = ast.get_docstring(modules()["core.errors"].tree) or ""
    drawn = re.search(rf"[├└]── {name} +(\S.*)", tree)
    return re.sub(r" \([A-Z][0-9]+\)", "", f"{drawn[1][0].upper()}{drawn[1][1:]}.") if drawn else ""


def page() -> str:
    found = rows()
    order = [
        *(name for name in error_classes()),
        *sorted({row.error for row in found if row.error.startswith("click.")}),
        "notice",
    ]
    return INTRO + "".join(_section(name, [row for row in found if row.error == name]) for name in order)


HEADINGS = {
    "notice": ("Notices of the command line", "Sentences that a command prints on standard error without raising an error.")
}


def _section(name: str, found: list[Row]) -> str:
    if not found:
        return ""
    usual = (f"`{name}`", _meaning(name) if name in error_classes() else "A wrong call of the command line; exit code 2.")
    heading, meaning = HEADINGS.get(name, usual)
    packages: dict[str, list[str]] = {}
    for row in sorted(found, key=lambda row: (row.package, row.sentence)):
        packages.setdefault(row.sentence, []).append(row.package)
    table = "".join(f"| {_cell(sentence)} | {', '.join(where)} |\n" for sentence, where in packages.items())
    return f"\n## {heading}\n\n{meaning}\n\n| sentence | where |\n|---|---|\n{table}".replace("\n\n\n", "\n")


def _cell(text: str) -> str:
    return re.sub(r"([|<*])", r"\\\1", text)


if __name__ == "__main__":
    sys.exit(write_or_check("docs/errors.md", page(), "scripts/generate_errors.py", sys.argv[1:]))
