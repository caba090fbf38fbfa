"""Texts that an expression of the source can give, read from the syntax tree without running it.

`readings` follows f-strings, constants, local variables, alternatives and functions that return a text. Values known only at run time
appear as {name}.
"""

from __future__ import annotations

import ast
import functools
import itertools
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from string import Formatter

from generated_page import ROOT

PACKAGE = ROOT / "src" / "lamina"

# Calls that only make a value fit for a message: the value is what the reader wants to know.
TRANSPARENT = {
    *(
        "ascii",
        "format",
        "fspath",
        "int",
        "list",
        "one_line",
        "printable",
        "repr",
        "sentence",
        "shorten",
        "shown",
        "sorted",
        "str",
    ),
    *("tuple", "type"),
}
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
# More readings of one call than this are shown by their names.
MOST_READINGS = 12
DEEPEST = 8


@dataclass(frozen=True)
class Module:
    name: str
    tree: ast.Module
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Scope:
    """Where a name is looked up: values bound by a caller, the function around the expression, then the module."""

    module: Module
    function: ast.FunctionDef | None = None
    bound: dict[str, list[str]] = field(default_factory=dict)
    depth: int = 0


@functools.cache
def modules() -> dict[str, Module]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = _read(name, ast.parse(path.read_text("utf-8")), is_package=parts[-1] == "__init__")
    return found


def _read(name: str, tree: ast.Module, *, is_package: bool) -> Module:
    module = Module(name, tree)
    for node in _statements(tree):
        match node:
            case ast.FunctionDef():
                module.functions.setdefault(node.name, node)
            case ast.ClassDef():
                module.classes[node.name] = node
            case ast.ImportFrom(module=source, names=names, level=level) if level:
                base = name.split(".") if name else []
                up = level - 1 if is_package else level
                origin = ".".join([*base[: len(base) - up], *(source.split(".") if source else [])])
                module.imports.update({alias.asname or alias.name: (origin, alias.name) for alias in names})
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value):
                module.constants[target] = value
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value):
                module.constants[target] = value
            case _:
                pass
    return module


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
            yield from _statements(child)
        elif isinstance(child, ast.excepthandler | ast.match_case):
            yield from _statements(child)


def owner(name: str, module: Module) -> tuple[Module, str]:
    """The module in which a name is defined, following imports inside the package."""
    for _ in range(5):
        if name not in module.imports or module.imports[name][0] not in modules():
            break
        origin, name = module.imports[name]
        module = modules()[origin]
    return module, name


def last_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def readings(node: ast.expr, scope: Scope) -> list[str]:
    """Every text that an expression can give, with {name} for what is not written in the source."""
    deeper = Scope(scope.module, scope.function, scope.bound, scope.depth + 1)
    if scope.depth > DEEPEST:
        return [_placeholder(node)]
    match node:
        case ast.Constant(value=value):
            return [str(value) if value is not None else ""]
        case ast.JoinedStr(values=values):
            return _joined([readings(value, deeper) for value in values])
        case ast.FormattedValue(value=value) if (number := _number(value, scope)) is not None:
            return [f"{number:,}"]
        case ast.FormattedValue(value=value, conversion=conversion):
            return [f"'{text}'" if conversion == ord("r") and text.startswith("{") else text for text in readings(value, deeper)]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _joined([readings(left, deeper), readings(right, deeper)])
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _chosen(test, body, orelse, deeper)
        case ast.Name(id=name):
            return _named(name, deeper)
        case ast.Call(func=ast.Attribute(value=value, attr="format")):
            return readings(value, deeper)
        case ast.Call(func=ast.Name(id="counted"), args=[_, ast.Constant(value=str(one)), *_]):
            return [f"{{number}} {one}(s)"]
        case ast.Call(func=ast.Name(id="plural"), args=[_, ast.Constant(value=str(one)), ast.Constant(value=str(many))]):
            return [f"{one}/{many}"]
        case ast.Call(func=ast.Name(id="plural"), args=[_, ast.Constant(value=str(one))]):
            return [f"{one}(s)"]
        case ast.Call(func=ast.Attribute(value=ast.Name(id="Text"), attr="whole"), args=[value]):
            return readings(value, deeper)
        case ast.Call(func=ast.Name(id="Text" | "Sentence"), args=[template], keywords=values):
            return _filled(_templates(template, deeper), {value.arg or "": value.value for value in values}, deeper)
        case ast.Call(func=ast.Name(id=name)) if name not in TRANSPARENT:
            return _called(name, node, deeper)
        case _:
            return [_placeholder(node)]


def _templates(node: ast.expr, scope: Scope) -> list[str]:
    """The templates that the first argument of a `Text` can be: literals, alternatives of them, or another `Text` by name."""
    match node:
        case ast.Constant(value=str(template)):
            return [template]
        case ast.Call(func=ast.Name(id="Text" | "Sentence"), args=[template], keywords=[]):
            return _templates(template, scope)
        case ast.IfExp(test=ast.Name(id=name), body=body, orelse=orelse) if (given := scope.bound.get(name)) is not None:
            return _templates(body if any(given) else orelse, scope)
        case ast.IfExp(body=body, orelse=orelse):
            return [*_templates(body, scope), *_templates(orelse, scope)]
        case ast.Name(id=name) if scope.function is not None and (values := _assigned(name, scope.function)):
            return [template for value in values for template in _templates(value, scope)]
        case ast.Name(id=name):
            module, own = owner(name, scope.module)
            return _templates(module.constants[own], Scope(module)) if own in module.constants else []
        case _:
            return []


def _filled(templates: list[str], values: dict[str, ast.expr], scope: Scope) -> list[str]:
    """Fill the templates of a `Text` with the readings of its values; a number that decides between two forms is shown by its noun."""
    texts: list[str] = []
    for template in templates:
        singular, _, plural = template.partition("|")
        parts: list[list[str]] = []
        for literal, name, _, conversion in Formatter().parse(plural or singular):
            parts.append([literal])
            value = values.get(name) if name else None
            if name == "n" or (name and value is None):
                parts.append(["{number}" if name == "n" else f"{{{name}}}"])
            elif value is not None and (number := _number(value, scope)) is not None:
                parts.append([f"{number:,}"])
            elif value is not None:
                known = readings(value, scope)
                parts.append([f"'{text}'" if conversion == "r" and text.startswith("{") else text for text in known])
        texts += _joined(parts)
    return texts


def _number(node: ast.expr, scope: Scope) -> int | None:
    """A whole number that is written in the source, also as a product or through the name of a constant."""
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name) if name not in scope.bound and name.isupper():
            module, own = owner(name, scope.module)
            return _number(module.constants[own], Scope(module)) if own in module.constants else None
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            first, second = _number(left, scope), _number(right, scope)
            return OPERATORS[type(op)](first, second) if first is not None and second is not None else None
    return None


def _chosen(test: ast.expr, body: ast.expr, orelse: ast.expr, scope: Scope) -> list[str]:
    """Both branches; only one where the test is a parameter whose text is known."""
    if isinstance(test, ast.Name) and (given := scope.bound.get(test.id)) is not None:
        return readings(body if any(given) else orelse, scope)
    return [*readings(body, scope), *readings(orelse, scope)]


def _joined(parts: list[list[str]]) -> list[str]:
    texts = ["".join(chosen) for chosen in itertools.islice(itertools.product(*parts), MOST_READINGS + 1)]
    return texts if len(texts) <= MOST_READINGS else ["".join(part[0] if len(part) == 1 else "{…}" for part in parts)]


def _named(name: str, scope: Scope) -> list[str]:
    if name in scope.bound:
        return scope.bound[name]
    if scope.function is not None and (values := _assigned(name, scope.function)):
        texts = [text for value in values for text in readings(value, scope) if text]
        return texts if texts and any(is_worded(text) for text in texts) and len(texts) <= MOST_READINGS else [f"{{{name}}}"]
    module, own = owner(name, scope.module)
    if (value := module.constants.get(own)) is not None:
        texts = readings(value, Scope(module, depth=scope.depth))
        return texts if not texts[0].startswith("{") else [f"{{{name.strip('_').lower()}}}"]
    return [f"{{{name}}}"]


def _assigned(name: str, function: ast.FunctionDef) -> list[ast.expr]:
    found: list[ast.expr] = []
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                found.append(value)
            case ast.NamedExpr(target=ast.Name(id=target), value=value) if target == name:
                found.append(value)
    return found


def _called(name: str, call: ast.Call, scope: Scope) -> list[str]:
    """The texts a function of ours returns; its name where it returns none that is written in the source."""
    module, own = owner(name, scope.module)
    function = module.functions.get(own)
    returns = _returned(function) if function is not None and _gives_text(function) else []
    if function is None or not returns:
        return [_placeholder(call)]
    inner = Scope(module, function, bind(call, function.args, scope), scope.depth + 1)
    texts = [text for value in returns for text in readings(value, inner) if text]
    return texts if texts and len(texts) <= MOST_READINGS and any(map(is_worded, texts)) else [_placeholder(call)]


def _gives_text(function: ast.FunctionDef) -> bool:
    return function.returns is not None and ast.unparse(function.returns) in ("str", "str | None", "Text", "Text | None")


def _returned(function: ast.FunctionDef) -> list[ast.expr]:
    return [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None]


def is_worded(text: str) -> bool:
    """Whether it contains words of ours, not only values."""
    return len(re.findall(r"[A-Za-z]{2,}", re.sub(r"\{[^}]*\}", "", text))) >= 2


def bind(call: ast.Call, parameters: ast.arguments, scope: Scope) -> dict[str, list[str]]:
    """Parameter → the texts given for it by a call, or by its default."""
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args) if each.arg != "self"]
    optional = parameters.args[len(parameters.args) - len(parameters.defaults) :]
    defaults = zip(optional, parameters.defaults, strict=True)
    bound = {each.arg: readings(value, scope) for each, value in defaults if isinstance(value, ast.Constant)}
    bound |= {
        name: readings(value, scope) for name, value in zip(names, call.args, strict=False) if not isinstance(value, ast.Starred)
    }
    return bound | {word.arg: readings(word.value, scope) for word in call.keywords if word.arg}


def _placeholder(node: ast.expr) -> str:
    return f"{{{_label(node)}}}"


def _label(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name.strip("_").lower()
        case ast.Attribute(value=value, attr="__name__" | "name" | "path" | "text" | "id") if _label(value) not in ("self", "…"):
            return _label(value)
        case ast.Attribute(attr=name):
            return name.strip("_")
        case ast.Subscript(value=value) | ast.Starred(value=value) | ast.Await(value=value):
            return _label(value)
        case ast.Call(func=ast.Name(id="len")):
            return "number"
        case ast.Call(func=ast.Attribute(attr="join"), args=[value]) | ast.Call(func=ast.Name(id="map"), args=[_, value]):
            return _label(value)
        case ast.Call(func=func, args=[value, *_]) if last_name(func) in TRANSPARENT:
            return _label(value)
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if hasattr(str, name) or name in ("isoformat", "strftime"):
            return _label(value)
        case ast.Call(func=func):
            return last_name(func).strip("_") or "…"
        case ast.GeneratorExp(generators=[each, *_]) | ast.ListComp(generators=[each, *_]):
            return _label(each.iter)
        case ast.BoolOp(values=[value, *_]) | ast.BinOp(left=value) | ast.IfExp(body=value) | ast.NamedExpr(value=value):
            return _label(value)
        case _:
            return "…"
