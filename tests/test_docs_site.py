"""The site and its generated pages: every page is in the navigation, and the table of errors is the one in the code."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

import lamina

ROOT = Path(__file__).parent.parent


def check_errors(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "scripts" / "generate_errors.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_page_of_errors_is_current() -> None:
    done = check_errors(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_reworded_error_makes_the_page_out_of_date(tmp_path: Path) -> None:
    for name in ("scripts", "src", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    errors = tmp_path / "src" / "lamina" / "core" / "errors.py"
    text = errors.read_text("utf-8")
    errors.write_text(text.replace("add_user()", "add_message()"), "utf-8")
    assert errors.read_text("utf-8") != text
    done = check_errors(tmp_path)
    assert (done.returncode, done.stdout) == (1, "docs/errors.md is out of date: run python scripts/generate_errors.py\n")


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
