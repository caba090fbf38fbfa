"""What is shipped: the wheel holds every file of the package and nothing else, and each extra brings what it is for."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
import yaml

import lamina

# A library user adds these to an agent of theirs: the list grows only with a decision.
BASE = {"click", "msgspec", "prompt-toolkit", "pyyaml", "rich"}
EXTRAS = {"anthropic", "openai", "dense", "flags", "mcp", "web", "all", "test", "docs", "dev"}

# Where the name to import is not the name to install.
IMPORTED_AS = {
    "import-linter": "importlinter",
    "openfeature-sdk": "openfeature",
    "pytest-xdist": "xdist",
    "pyyaml": "yaml",
}


def plain(requirement: str) -> str:
    """The normalised name at the front of a requirement."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def expand(extra: str, extras: dict[str, list[str]]) -> Iterator[str]:
    """The packages an extra brings, through `lamina[…]`."""
    for requirement in extras[extra]:
        if inner := re.fullmatch(r"lamina\[(.+)\]", requirement):
            for name in inner[1].split(","):
                yield from expand(name, extras)
        else:
            yield plain(requirement)


def imported_by(paths: Iterable[Path], *, at_once: bool = False) -> set[str]:
    """The top-level modules that any of the files imports, at whatever depth; `at_once`: those that importing the file needs."""
    names = set()
    for path in paths:
        tree = ast.parse(path.read_text("utf-8"))
        for node in tree.body if at_once else ast.walk(tree):
            match node:
                case ast.Import():
                    names |= {alias.name.split(".")[0] for alias in node.names}
                case ast.ImportFrom(level=0, module=str(module)):
                    names.add(module.split(".")[0])
                case _:
                    pass
    return names


def importable(packages: set[str]) -> set[str]:
    return {IMPORTED_AS.get(name, name.replace("-", "_")) for name in packages}


def third_party(names: set[str], root: Path) -> set[str]:
    local = {path.stem for path in (root / "tests").rglob("*.py")} | {"lamina", "tests", "bench", "conftest"}
    return names - set(sys.stdlib_module_names) - local


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    return loaded


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """A wheel built by the backend that pip would call, without a network."""
    target = tmp_path_factory.mktemp("wheel")
    code = f"import hatchling.build; hatchling.build.build_wheel({str(target)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True, capture_output=True)
    [path] = target.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: zipfile.ZipFile, root: Path) -> None:
    source = root / "src"
    ours = {str(path.relative_to(source).as_posix()) for path in (source / "lamina").rglob("*") if path.is_file()}
    ours = {name for name in ours if "__pycache__" not in name and not any(part.startswith(".") for part in name.split("/"))}
    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert shipped == ours
    assert "lamina/py.typed" in shipped


def test_the_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = Parser().parsestr(wheel.read(name).decode())
    assert metadata["Name"] == "lamina"
    assert metadata["Version"] == lamina.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    assert any(name.endswith("/licenses/LICENSE") for name in wheel.namelist())


def test_the_base_install_stays_small(project: dict[str, Any]) -> None:
    assert {plain(requirement) for requirement in project["dependencies"]} == BASE


def test_every_requirement_names_its_oldest_version(project: dict[str, Any]) -> None:
    named = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    assert [one for one in named if not one.startswith("lamina[") and ">=" not in one] == []


def test_the_extras_are_the_documented_ones_and_all_brings_all(project: dict[str, Any]) -> None:
    extras = project["optional-dependencies"]
    assert set(extras) == EXTRAS
    features = EXTRAS - {"all", "test", "docs", "dev"}
    assert set(expand("all", extras)) == {package for extra in features for package in expand(extra, extras)}


@pytest.mark.exhaustive
def test_the_test_extra_brings_every_package_the_tests_import(project: dict[str, Any], root: Path) -> None:
    installed = BASE | set(expand("test", project["optional-dependencies"]))
    assert third_party(imported_by((root / "tests").rglob("*.py")), root) - importable(installed) == set()


@pytest.mark.exhaustive
def test_the_package_imports_only_its_base_and_its_extras(project: dict[str, Any], root: Path) -> None:
    extras = project["optional-dependencies"]
    installed = BASE | {package for extra in EXTRAS - {"docs", "dev"} for package in expand(extra, extras)}
    assert third_party(imported_by((root / "src").rglob("*.py")), root) - importable(installed) == set()


def test_every_extra_is_imported_by_some_module(project: dict[str, Any], root: Path) -> None:
    """An extra exists once there is code that uses it. The SDKs are imported by a name that is put together at run time."""
    extras = project["optional-dependencies"]
    code = "\n".join(path.read_text("utf-8") for path in (root / "src").rglob("*.py"))
    for extra in EXTRAS - {"all", "test", "docs", "dev"}:
        names = {IMPORTED_AS.get(package, package) for package in expand(extra, extras)}
        assert any(f"import {name}" in code or f"from {name}" in code or f'"{name}' in code for name in names), extra


def test_the_console_script_leads_to_a_function(project: dict[str, Any]) -> None:
    assert set(project["scripts"]) == {"lamina"}
    module, _, function = project["scripts"]["lamina"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_the_checks_are_programs(root: Path) -> None:
    for script in (root / ".ci" / "run", root / "scripts" / "check"):
        assert script.read_text("utf-8").startswith("#!/usr/bin/env bash\n")
        assert script.stat().st_mode & 0o100, f"{script} is not executable"


# What is automated around the repository


def read_yaml(path: Path) -> dict[Any, Any]:
    loaded: dict[Any, Any] = yaml.safe_load(path.read_text("utf-8"))
    return loaded


@pytest.fixture(scope="module")
def jobs(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(root / ".github" / "workflows" / "ci.yml")["jobs"]
    return found


def test_the_hosted_checks_cover_every_supported_python(jobs: dict[str, Any], project: dict[str, Any]) -> None:
    named = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", one) for one in project["classifiers"]]
    supported = [found[1] for found in named if found is not None]
    assert project["requires-python"] == f">={supported[0]}"
    matrix = jobs["tests"]["strategy"]["matrix"]
    assert matrix["os"] == ["ubuntu-latest"]
    assert matrix["python"] == supported
    assert matrix["include"] == [{"os": "macos-latest", "python": version} for version in (supported[0], supported[-1])]


def test_the_hosted_checks_run_the_documented_commands(jobs: dict[str, Any]) -> None:
    runs = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
    assert runs["tests"] == ['pip install ".[test]"', "pytest"]
    assert runs["static"][-1] == "scripts/check static"
    assert runs["exhaustive"][-1] == "pytest -m exhaustive"
    assert jobs["windows"]["runs-on"] == "windows-latest"


@pytest.mark.exhaustive
def test_the_windows_job_installs_what_every_module_imports(jobs: dict[str, Any], project: dict[str, Any], root: Path) -> None:
    [install] = [step["run"] for step in jobs["windows"]["steps"] if step.get("run", "").startswith("pip install")]
    named = re.fullmatch(r'pip install "?\.(?:\[(?P<extras>[\w,]+)\])?"?', install)
    assert named is not None
    extras = named["extras"].split(",") if named["extras"] else []
    installed = BASE | {package for extra in extras for package in expand(extra, project["optional-dependencies"])}
    # The job leaves lamina.testing out, which needs pytest.
    modules = [path for path in (root / "src" / "lamina").rglob("*.py") if "testing" not in path.relative_to(root).parts]
    assert third_party(imported_by(modules, at_once=True), root) - importable(installed) == set()


def test_a_commit_is_checked_with_local_tools_only(root: Path) -> None:
    repositories = read_yaml(root / ".pre-commit-config.yaml")["repos"]
    assert [one["repo"] for one in repositories] == ["local"]
    hooks = repositories[0]["hooks"]
    assert {hook["language"] for hook in hooks} == {"system"}
    script = (root / "scripts" / "check").read_text("utf-8")
    for hook in hooks:
        tool = " ".join(hook["entry"].removeprefix("env PYTHONPATH=src ").replace("--fix", "").split()[:2])
        assert tool in script, hook["id"]


@pytest.mark.parametrize("name", ["bug.yml", "feature.yml"])
def test_an_issue_form_asks_for_something(root: Path, name: str) -> None:
    form = read_yaml(root / ".github" / "ISSUE_TEMPLATE" / name)
    assert form["name"]
    assert form["description"]
    assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_the_changelog_has_a_section_for_this_version(root: Path) -> None:
    assert re.search(
        rf"^## \[{re.escape(lamina.__version__)}\] - \d{{4}}-\d\d-\d\d$", (root / "CHANGELOG.md").read_text("utf-8"), re.M
    )


def test_every_command_that_installs_an_extra_works_in_the_checkout() -> None:
    """The package is in no index, so `pip install "lamina[…]"` finds nothing."""
    root = Path(__file__).parents[1]
    texts = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "src").rglob("*.py")]
    shown = {(path, name) for path in texts for name in re.findall(r'pip install "([^"]*\[[^"]*)"', path.read_text("utf-8"))}
    assert {name for _, name in shown if not name.startswith(".[")} == set()
    assert len(shown) > 10
