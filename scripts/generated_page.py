"""What the generators of docs pages share: write a page, or with --check fail if it is out of date."""

from __future__ import annotations

import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def write_or_check(page: str, text: str, script: str, arguments: list[str]) -> int:
    """Return the exit code: 1 if --check was given and the page differs from the text."""
    target = ROOT / page
    if arguments != ["--check"]:
        target.write_text(text, encoding="utf-8")
        print(f"{page}: written")
        return 0
    current = target.is_file() and target.read_text("utf-8") == text
    print(f"{page} is " + ("current" if current else f"out of date: run python {script}"))
    return 0 if current else 1
