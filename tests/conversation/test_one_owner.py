"""State has one owner: the fields of a conversation are assigned in `conversation/` alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "lamina"
# What a Conversation is called wherever it is handed around.
NAMES = {"c", "conversation", "_c"}


def _is_conversation(node: ast.expr) -> bool:
    """`c`, `self._c`, and the parts of it that are state themselves: `c.last`, `c.side`, …"""
    if isinstance(node, ast.Name):
        return node.id in NAMES
    return isinstance(node, ast.Attribute) and (node.attr in NAMES or _is_conversation(node.value))


def assigned(source: str) -> Iterator[str]:
    """Return what a module assigns on a conversation, or changes in one of its collections."""
    for node in ast.walk(ast.parse(source)):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = [each for target in node.targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])]
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called, holder = node.func.attr, node.func.value
            if called in ("extend", "insert", "clear", "pop", "update") and isinstance(holder, ast.Attribute):
                targets = [holder]
        for target in targets:
            base = target.value if isinstance(target, ast.Subscript) else target
            if isinstance(base, ast.Attribute) and _is_conversation(base.value):
                yield ast.unparse(node)[:100]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("c.count = 1", True),
        ("self._c.last.readable += 2", True),
        ("conversation.notices.extend(x)", True),
        ("c.checkpointed['a'] = 1", True),
        ("self._c = conversation", False),
        ("state.cursor = c.count", False),
    ],
)
def test_the_rule_sees_an_assignment(line: str, found: bool) -> None:
    assert bool(list(assigned(line))) is found


def test_only_conversation_assigns_what_is_a_conversations() -> None:
    others = [path for path in PACKAGE.rglob("*.py") if "conversation" not in path.relative_to(PACKAGE).parts[:1]]
    wrong = {str(path.relative_to(PACKAGE)): found for path in others if (found := list(assigned(path.read_text("utf-8"))))}
    assert wrong == {}
