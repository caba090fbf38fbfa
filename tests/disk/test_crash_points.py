"""Every system call of the disk room that changes something stands right behind a crash point, so that tests can stop there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

_NAMES = """write pwrite fsync fdatasync rename replace renames unlink remove rmdir removedirs mkdir makedirs link symlink
    truncate ftruncate utime chmod fchmod chown fchown mkfifo mknod copy_file_range sendfile posix_fallocate"""
CHANGING = frozenset(_NAMES.split())
# The one place where `os.write` is called, with the watcher asked in the line above.
EXEMPT = {"crash_points.py"}


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """All simple statements in source order."""
    for node in body:
        inner = [
            child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)
        ]
        if not inner:
            yield node
        for child in inner:
            yield from statements([child] if isinstance(child, ast.stmt) else child.body)


def changes(node: ast.stmt) -> bool:
    return any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "os"
        and (call.func.attr in CHANGING or (call.func.attr == "open" and writes(call)))
        for call in ast.walk(node)
    )


def writes(call: ast.Call) -> bool:
    flags = ast.unparse(call.args[1]) if len(call.args) > 1 else ""
    return any(name in flags for name in ("O_CREAT", "O_WRONLY", "O_RDWR", "O_APPEND", "O_TRUNC", "CREATE", "flags"))


def is_point(node: ast.stmt | None) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) in ("point", "crash.point")
    )


def unnamed(source: str) -> list[int]:
    """The lines with a changing call that no point precedes."""
    found = []
    before: ast.stmt | None = None
    for node in statements(ast.parse(source).body):
        if changes(node) and not is_point(before):
            found.append(node.lineno)
        before = node
    return found


def test_every_changing_call_of_the_room_has_a_point(root: Path) -> None:
    room = [path for path in sorted((root / "src" / "lamina" / "disk").rglob("*.py")) if path.name not in EXEMPT]
    assert len(room) > 10
    assert {path.name: lines for path in room if (lines := unnamed(path.read_text("utf-8")))} == {}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("point('x')\nos.unlink(p)", []),
        ("os.unlink(p)", [1]),
        ("point('x')\ntry:\n    os.unlink(p)\nexcept OSError:\n    pass", []),
        ("try:\n    pass\nfinally:\n    os.close(fd)\n    os.rename(a, b)", [5]),
        ("fd = os.open(p, os.O_RDONLY)", []),
        ("fd = os.open(p, os.O_WRONLY)", [1]),
        ("def f():\n    point('x')\n    a = 1\n    os.mkdir(p)", [4]),
    ],
)
def test_a_call_without_a_point_is_found(source: str, lines: list[int]) -> None:
    assert unnamed(source) == lines
