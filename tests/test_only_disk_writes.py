"""Only `lamina.disk` writes: no other module opens a file for writing, renames, removes or makes one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

# Every call that changes the disk whatever its arguments are, by module.
CHANGING = {
    "os": """mkdir makedirs link symlink unlink remove rmdir removedirs rename renames replace truncate ftruncate chmod fchmod
        lchmod chown fchown lchown utime mkfifo mknod pwrite posix_fallocate sendfile""",
    "shutil": "copy copy2 copyfile copyfileobj copymode copystat copytree move rmtree chown make_archive unpack_archive",
    "tempfile": "mkstemp mkdtemp mktemp TemporaryFile NamedTemporaryFile SpooledTemporaryFile TemporaryDirectory",
    "logging": "FileHandler handlers.RotatingFileHandler handlers.TimedRotatingFileHandler",
    "sqlite3": "connect",
    "shelve": "open",
    "dbm": "open",
    "zipfile": "ZipFile",
    "tarfile": "open",
}
CHANGING_CALLS = frozenset(f"{module}.{name}" for module, names in CHANGING.items() for name in names.split())
# Calls that take a mode: where it stands, counted from 0.
MODES = {
    "open": 1,
    "io.open": 1,
    "codecs.open": 1,
    "os.fdopen": 1,
    "gzip.open": 1,
    "bz2.open": 1,
    "lzma.open": 1,
    "tokenize.open": 1,
}
WRITE_FLAGS = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND", "O_TRUNC")
# Methods of pathlib.Path that are not also methods of something else; for those that are, the arguments tell: see `_path_method`.
PATH_METHODS = frozenset({"write_text", "write_bytes", "symlink_to", "hardlink_to", "lchmod", "chmod"})


def writes_in(source: str) -> list[tuple[int, str]]:
    """Line and text of every call in `source` that may change the disk."""
    tree = ast.parse(source)
    names = dict(_imported(tree))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return sorted((call.lineno, ast.unparse(call.func)) for call in calls if _writes(call, names))


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Local name → what it stands for, for every import in the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.split(".")[0], alias.name if alias.asname else alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _writes(call: ast.Call, names: dict[str, str]) -> bool:
    match call.func:
        case ast.Name(id=name):
            return _function(call, names.get(name, name))
        case ast.Attribute() if (full := _dotted(call.func, names)) is not None:
            return _function(call, full)
        case ast.Attribute(attr=method):
            return _path_method(call, method)
        case _:
            return False


def _dotted(func: ast.expr, names: dict[str, str]) -> str | None:
    """`os.path.join` for such an expression, if it begins at an imported module."""
    parts = []
    while isinstance(func, ast.Attribute):
        parts.append(func.attr)
        func = func.value
    if not isinstance(func, ast.Name) or func.id not in names or names[func.id] in ("pathlib.Path", "os.PathLike"):
        return None
    return ".".join([names[func.id], *reversed(parts)])


def _function(call: ast.Call, full: str) -> bool:
    if call.args and ast.unparse(call.args[0]) == "os.devnull":
        return False
    if full == "os.open":
        flags = ast.unparse(call.args[1]) if len(call.args) > 1 else "".join(ast.unparse(word.value) for word in call.keywords)
        return any(name in flags for name in WRITE_FLAGS) or "os.O_" not in flags
    return full in CHANGING_CALLS or (full in MODES and _mode_writes(call, MODES[full]))


def _path_method(call: ast.Call, method: str) -> bool:
    """`Path.replace` takes one argument, `str.replace` two; `Path.unlink` none, our own `unlink` a path; and so on."""
    match method:
        case "open":
            # A first argument that is no literal is a path: this `open` is another class's.
            return _mode_writes(call, 0) and (not call.args or isinstance(call.args[0], ast.Constant))
        case "replace" | "rename":
            return len(call.args) == 1 and not call.keywords
        case "unlink" | "mkdir" | "touch" | "rmdir":
            return not call.args
        case _:
            return method in PATH_METHODS


def _mode_writes(call: ast.Call, place: int) -> bool:
    """A mode that is not spelled out counts as writing: nobody could tell."""
    given = [word.value for word in call.keywords if word.arg == "mode"] or call.args[place : place + 1]
    if not given:
        return False
    return not isinstance(given[0], ast.Constant) or bool(set("wax+") & set(str(given[0].value)))


def test_no_module_outside_the_disk_room_changes_the_disk(root: Path) -> None:
    package = root / "src" / "lamina"
    others = [path for path in sorted(package.rglob("*.py")) if path.relative_to(package).parts[0] != "disk"]
    assert others
    found = {str(path.relative_to(root)): writes for path in others if (writes := writes_in(path.read_text("utf-8")))}
    assert found == {}, "use lamina.disk: files.replace, files.update, files.Appender or rootdir.RootDir"


@pytest.mark.parametrize(
    "source",
    [
        "open(p, 'w')",
        "open(p, mode='ab')",
        "open(p, 'r+')",
        "open(p, 'x')",
        "open(p, mode)",
        "import io\nio.open(p, 'wb')",
        "import os\nos.open(p, os.O_RDWR | os.O_CREAT)",
        "import os\nos.open(p, flags)",
        "from os import open as o, O_WRONLY\no(p, O_WRONLY)",
        "import os\nos.fdopen(fd, 'w')",
        "import os as system\nsystem.replace(a, b)",
        "from os import unlink\nunlink(p)",
        "import shutil\nshutil.copy(a, b)",
        "from shutil import rmtree as gone\ngone(p)",
        "import tempfile\ntempfile.mkstemp()",
        "import sqlite3\nsqlite3.connect(p)",
        "import logging\nlogging.FileHandler(p)",
        "path.write_text('x')",
        "Path(p).write_bytes(b'x')",
        "from pathlib import Path\nPath(p).open('w')",
        "path.open(mode='a')",
        "path.unlink()",
        "path.unlink(missing_ok=True)",
        "path.replace(target)",
        "path.rename(target)",
        "path.mkdir(parents=True)",
        "path.touch()",
        "path.symlink_to(x)",
        "def f():\n    with open(p, 'w') as file:\n        pass",
    ],
)
def test_each_way_of_writing_is_found(source: str) -> None:
    assert writes_in(source)


@pytest.mark.parametrize(
    "source",
    [
        "open(p)",
        "open(p, 'rb')",
        "open(p, encoding='utf-8')",
        "path.open()",
        "path.open('r', encoding='utf-8')",
        "import os\nos.open(p, os.O_RDONLY | os.O_CLOEXEC)",
        "import os\nos.path.join(a, b)",
        "text.replace('a', 'b')",
        "moment.replace(tzinfo=UTC)",
        "import msgspec\nmsgspec.structs.replace(value, a=1)",
        "from .disk.files import replace\nreplace(path, data)",
        "from .disk import files\nfiles.replace(path, data)",
        "root.unlink('x.md')",
        "root.rename('a', 'b')",
        "root.replace('a', b'x')",
        "root.mkdir('a')",
        "Store.open(path, envelope)",
        "import os\nos.open(os.devnull, os.O_WRONLY)",
        "import os\nopen(os.devnull, mode)",
        "import os\nos.write(1, b'x')",
        "sys.stdout.write('x')",
        "file.read()",
    ],
)
def test_what_only_reads_or_is_something_else_passes(source: str) -> None:
    assert not writes_in(source)
