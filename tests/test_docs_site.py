"""The site and its generated pages: every page is in the navigation, and commands and errors are those of the code."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import lamina
from lamina import errors

ROOT = Path(__file__).parent.parent


def check(root: Path, page: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "scripts" / f"generate_{page}.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("page", ["commands", *(pytest.param(page, marks=pytest.mark.exhaustive) for page in ("errors", "week"))])
def test_a_generated_page_is_current(page: str) -> None:
    done = check(ROOT, page)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_page_that_is_out_of_date_is_found(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "src").symlink_to(ROOT / "src")
    (tmp_path / "docs").mkdir()
    text = (ROOT / "docs" / "commands.md").read_text("utf-8")
    (tmp_path / "docs" / "commands.md").write_text(text.replace("--ledger", "--book"), "utf-8")
    done = check(tmp_path, "commands")
    assert (done.returncode, done.stdout) == (1, "docs/commands.md is out of date: run python scripts/generate_commands.py\n")


@pytest.mark.parametrize("error", [errors.NothingToSend(), errors.DiskFull("{where}"), errors.Aborted()])
def test_the_page_has_the_sentence_that_is_raised(error: errors.LaminaError) -> None:
    assert f"| {error} |" in (ROOT / "docs" / "errors.md").read_text("utf-8")


def test_every_page_is_in_the_navigation_once() -> None:
    named = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(named) == sorted(pages)


def test_the_site_loads_nothing_from_another_host() -> None:
    theme = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))["theme"]
    assert (theme["name"], theme["highlightjs"]) == ("readthedocs", False)


def test_every_public_name_is_in_the_reference() -> None:
    shown = set(re.findall(r"^::: lamina\.(\w+)$", (ROOT / "docs" / "api.md").read_text("utf-8"), re.MULTILINE))
    assert shown - {"testing"} == {*lamina.__all__} - {"LaminaError", "__version__"}


def undocumented(name: str, value: object) -> Iterator[str]:
    """The members of a public name without a docstring. A generated one, which repeats the signature, does not count."""
    if inspect.ismodule(value):
        own = [each for each in vars(value).values() if inspect.isclass(each) and each.__module__ == value.__name__]
        yield from (each for one in own for each in undocumented(f"{name}.{one.__name__}", one))
        return
    if not value.__doc__ or value.__doc__.startswith(f"{name.rpartition('.')[2]}("):
        yield name
    for key, member in vars(value).items() if inspect.isclass(value) else ():
        function = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
        if inspect.isfunction(function) and not key.startswith("_") and not function.__doc__:
            yield f"{name}.{key}"


def test_every_public_name_has_a_docstring() -> None:
    public = [(name, getattr(lamina, name)) for name in lamina.__all__ if name not in ("__version__", "Record")]
    assert [each for name, value in public for each in undocumented(name, value)] == []


@pytest.mark.spec("V1")
def test_each_view_of_the_page_has_its_pictures_and_they_are_small() -> None:
    pictures = ROOT / "docs" / "images" / "ui"
    views = {path.name.split("-")[0] for path in pictures.iterdir()}
    assert views >= {"overview", "sessions", "session", "request", "memories", "dreams", "search", "replay", "settings"}
    made = {f"{view}-{width}-{theme}.png" for view in views for width in (1_400, 360) for theme in ("light", "dark")}
    made |= {f"{view}-tokens-1400-light.png" for view in ("overview", "session")}
    assert {path.name for path in pictures.iterdir()} == made
    assert [path.name for path in pictures.iterdir() if path.stat().st_size > 60_000] == []
