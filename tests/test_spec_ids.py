"""Requirements are data: docs/spec.md and the tests that carry `@pytest.mark.spec` are checked against each other, both ways."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

# A test that shows more than three requirements shows none of them well.
MOST_IDS_PER_TEST = 3
ITEM = re.compile(r"^- (?P<id>[A-Z][0-9]+) (?P<rest>.*)$", re.MULTILINE)
STATE = re.compile(r"\((?P<state>built|deferred)(?:: (?P<why>[^)]+))?\) \S")


class Item(NamedTuple):
    id: str
    state: str | None  # None: the marker is missing or misspelt
    why: str | None
    line: str


class Citation(NamedTuple):
    test: str
    ids: tuple[str, ...]


def items_in(spec: str) -> list[Item]:
    found = []
    for item in ITEM.finditer(spec):
        state = STATE.match(item["rest"])
        found.append(Item(item["id"], state and state["state"], state and state["why"], item[0]))
    return found


def citations_in(source: str, name: str) -> Iterator[Citation]:
    """One citation for each test function: the ids of its own marks, of its class and of the module's `pytestmark`."""
    tree = ast.parse(source)
    inherited = [node.value for node in tree.body if isinstance(node, ast.Assign) and _names_pytestmark(node)]
    yield from _citations(tree.body, name, tuple(_ids(inherited)))


def _citations(body: list[ast.stmt], name: str, inherited: tuple[str, ...]) -> Iterator[Citation]:
    for node in body:
        match node:
            case ast.ClassDef():
                yield from _citations(node.body, f"{name}::{node.name}", (*inherited, *_ids(node.decorator_list)))
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name.startswith("test"):
                yield Citation(f"{name}::{node.name}", (*inherited, *_ids([*node.decorator_list, *_parameter_marks(node)])))
            case _:
                pass


def _names_pytestmark(node: ast.Assign) -> bool:
    return any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets)


def _parameter_marks(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    """`pytest.param(..., marks=pytest.mark.spec("T5"))` inside a parametrize counts for the function."""
    calls = [call for mark in node.decorator_list for call in ast.walk(mark) if isinstance(call, ast.Call)]
    return [keyword.value for call in calls for keyword in call.keywords if keyword.arg == "marks"]


def _ids(marks: list[ast.expr]) -> Iterator[str]:
    for mark in marks:
        nodes = mark.elts if isinstance(mark, ast.List | ast.Tuple) else [mark]
        for node in nodes:
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.spec":
                yield from (str(ast.literal_eval(argument)) for argument in node.args)


def complaints(items: list[Item], citations: list[Citation]) -> list[str]:
    """Every way in which the specification and the tests disagree, one sentence each."""
    state = {item.id: item.state for item in items}
    cited = {id for citation in citations for id in citation.ids}
    found = [f"{item.id} is not marked (built) or (deferred: why)" for item in items if item.state is None]
    found += [f"{item.id} is deferred without a reason" for item in items if item.state == "deferred" and not item.why]
    found += [
        f"{item.id} is built but its first line says deferred"
        for item in items
        if item.state == "built" and "deferred" in item.line.lower()
    ]
    found += [f"{id} stands twice" for id in state if sum(item.id == id for item in items) > 1]
    found += [f"{id} is built but no test carries it" for id in state if state[id] == "built" and id not in cited]
    for test, ids in citations:
        found += [f"{test} names {id}, which is not in docs/spec.md" for id in ids if id not in state]
        if len(set(ids)) > MOST_IDS_PER_TEST:
            found.append(f"{test} carries {len(set(ids))} ids, at most {MOST_IDS_PER_TEST} are allowed")
    return found


def all_citations(root: Path) -> list[Citation]:
    paths = sorted((root / "tests").rglob("*.py"))
    return [found for path in paths for found in citations_in(path.read_text("utf-8"), str(path.relative_to(root)))]


def test_the_specification_and_the_tests_agree(root: Path) -> None:
    items = items_in((root / "docs" / "spec.md").read_text("utf-8"))
    assert len(items) > 100, "docs/spec.md was not read as a list of ids"
    assert not (found := complaints(items, all_citations(root))), "\n".join(found)


SPEC = "- Y1 (built) One.\n- Y2 (deferred: later) Two.\n  More of it.\n"


@pytest.mark.parametrize(
    ("spec", "ids", "complaint"),
    [
        (SPEC, ("Y1",), None),
        (SPEC, (), "Y1 is built but no test carries it"),
        (SPEC, ("Y1", "Y9"), "t names Y9, which is not in docs/spec.md"),
        (SPEC, ("Y1", "Y2"), None),
        (SPEC + "- Y3 Three.\n", ("Y1",), "Y3 is not marked (built) or (deferred: why)"),
        (SPEC + "- Y3 (deferred) Three.\n", ("Y1",), "Y3 is deferred without a reason"),
        (SPEC + "- Y1 (built) Again.\n", ("Y1",), "Y1 stands twice"),
        ("- Y1 (built) What is deferred.\n", ("Y1",), "Y1 is built but its first line says deferred"),
        ("".join(f"- Y{n} (built) x\n" for n in range(4)), ("Y0", "Y1", "Y2", "Y3"), "t carries 4 ids, at most 3 are allowed"),
    ],
)
def test_each_kind_of_disagreement_is_named(spec: str, ids: tuple[str, ...], complaint: str | None) -> None:
    assert complaints(items_in(spec), [Citation("t", ids)]) == ([complaint] if complaint else [])


def test_ids_are_collected_from_functions_classes_modules_and_parameters() -> None:
    source = """
pytestmark = [pytest.mark.spec("Y1")]

@pytest.mark.spec("Y2")
class TestRoom:
    @pytest.mark.spec("Y3")
    def test_in_a_class(self): ...

@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.spec("Y4"))])
async def test_with_parameters(n): ...

@pytest.mark.spec("Y5")
def not_collected(): ...
"""
    assert list(citations_in(source, "m")) == [
        Citation("m::TestRoom::test_in_a_class", ("Y1", "Y2", "Y3")),
        Citation("m::test_with_parameters", ("Y1", "Y4")),
    ]
