"""Importing costs what is used: `import lamina` loads nothing, and no module needs what only Unix or an extra brings."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import lamina

# Each of these takes from ten milliseconds to two seconds to load.
HEAVY = ("anthropic", "asyncio", "click", "msgspec", "openai", "prompt_toolkit", "rich", "sqlite3", "typing", "yaml")

# Not there on Windows. `resource` and `termios` count too: their absence shows only when the module is imported.
UNIX_ONLY = ("fcntl", "grp", "pwd", "resource", "termios")

# What an extra brings. The test environment has some of them; a module must import without any.
OPTIONAL = ("anthropic", "openai", "openfeature")

# Hides modules from Lamina's own import statements only: the standard library and other packages may use what this platform has.
IMPORT_ALL_WITHOUT = """
import builtins, importlib, pkgutil, sys
hidden = set(sys.argv[1].split(","))
real = builtins.__import__
def without(name, globals=None, locals=None, fromlist=(), level=0):
    importer = (globals or {}).get("__name__", "")
    if level == 0 and name.split(".")[0] in hidden and importer.split(".")[0] == "lamina":
        raise ModuleNotFoundError(f"No module named {name!r} (hidden from {importer})", name=name)
    return real(name, globals, locals, fromlist, level)
builtins.__import__ = without
import lamina
def fail(name):
    raise
names = [found.name for found in pkgutil.walk_packages(lamina.__path__, "lamina.", onerror=fail)]
for name in (name for name in names if not name.endswith("__main__")):
    importlib.import_module(name)
print(len(names))
"""


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(statement: str) -> set[str]:
    """The top-level modules a fresh interpreter loads for one statement, beyond those it starts with."""
    code = f"import sys, json; before = set(sys.modules); {statement}; print(json.dumps(sorted(set(sys.modules) - before)))"
    return {name.split(".")[0] for name in json.loads(run("-c", code))}


def test_importing_the_package_loads_nothing_else() -> None:
    assert loaded_by("import lamina") == {"lamina"}


def test_the_names_that_would_be_heavy_are_seen_when_they_are_loaded() -> None:
    assert "msgspec" in loaded_by("import lamina; lamina.Policy").intersection(HEAVY)


def test_an_error_can_be_caught_without_loading_a_library() -> None:
    assert not loaded_by("import lamina; lamina.LaminaError").intersection(set(HEAVY) - {"typing"})


@pytest.mark.parametrize("name", lamina.__all__)
def test_every_public_name_can_be_used(name: str) -> None:
    assert getattr(lamina, name) is not None
    assert name in dir(lamina)


def test_type_checkers_see_the_names_that_programs_see() -> None:
    tree = ast.parse(Path(lamina.__file__).read_text("utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    declared = {alias.name: node.module for node in imports for alias in node.names}
    assert declared == {name: place.removesuffix(f".{name}") for name, place in lamina._PLACES.items()}


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    name = "Manager"
    with pytest.raises(AttributeError, match="has no attribute 'Manager'"):
        getattr(lamina, name)


@pytest.mark.parametrize("hidden", [UNIX_ONLY, OPTIONAL], ids=["no Unix", "no extras"])
def test_every_module_imports_without(hidden: tuple[str, ...], root: Path) -> None:
    modules = [path for path in (root / "src" / "lamina").rglob("*.py") if path.name != "__init__.py"]
    assert int(run("-c", IMPORT_ALL_WITHOUT, ",".join(hidden))) >= len(modules)


def test_a_module_that_needs_what_is_hidden_is_found(tmp_path: Path) -> None:
    package = tmp_path / "lamina"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "room.py").write_text("import fcntl\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + IMPORT_ALL_WITHOUT
    done = subprocess.run([sys.executable, "-c", code, "fcntl"], capture_output=True, text=True, check=False)
    assert "No module named 'fcntl' (hidden from lamina.room)" in done.stderr
