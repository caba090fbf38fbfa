"""The user's answers about files outside a project that its instruction files include: `<home>/include-approvals.json`.

Owns that file. Invariants: an answer applies to one project and one real path. No answer is lost if several processes record
answers at once. A broken file, or one that is not ours, approves nothing and is not overwritten.

    {"version": 1, "includes": {"<project>": {"<real path>": true}}}

A crash at any line leaves the old answers or the new ones.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ...core.errors import DiskError
from ...language.text import Text
from ..files import read, update
from ..transcripts.jsonl import decode_object

FILE_NAME = "include-approvals.json"
VERSION = 1
# Room for about ten thousand answers; users give a few.
MOST_BYTES = 1 << 20


class Approvals(msgspec.Struct, frozen=True):
    """The answers given for one project."""

    answers: Mapping[str, bool] = {}

    def answer(self, real: Path) -> bool | None:
        """Return True if the user approved the file, False if they declined, None if they were not asked yet."""
        return self.answers.get(str(real))


def load_approvals(home: Path, project: Path) -> Approvals:
    """Load the answers for a project. Raises DiskError if the file is unusable; a session reports that and continues."""
    path = home / FILE_NAME
    answers = _document(path, read(path, MOST_BYTES + 1)).get("includes", {}).get(str(project), {})
    return Approvals({name: yes for name, yes in answers.items() if isinstance(yes, bool)} if isinstance(answers, dict) else {})


def record_approval(home: Path, project: Path, real: Path, *, allowed: bool) -> None:
    """Store the user's answer, so that they are asked only once."""
    path = home / FILE_NAME

    def changed(old: bytes | None) -> bytes:
        document = _document(path, old)
        projects = document.get("includes", {})
        answers = projects.get(str(project))
        changed_answers = {**(answers if isinstance(answers, dict) else {}), str(real): allowed}
        return _encoded(path, {**document, "version": VERSION, "includes": {**projects, str(project): changed_answers}})

    update(path, changed)


def _document(path: Path, data: bytes | None) -> dict[str, Any]:
    """Return the content of the file, including unknown keys."""
    if data is not None and len(data) > MOST_BYTES:
        raise DiskError(
            os.fspath(path), Text("is larger than {limit:,} bytes", limit=MOST_BYTES), "remove it, and answer again when asked"
        )
    if data is None or not data.strip():
        return {}
    document = decode_object(data)
    if document is None or not isinstance(document.get("includes", {}), dict):
        raise DiskError(os.fspath(path), "is not a JSON object with approvals", "fix or remove it")
    version = document.get("version", VERSION)
    if not isinstance(version, int) or version > VERSION:
        raise DiskError(os.fspath(path), "was written by a newer Lamina", "upgrade, or remove it and answer again")
    return document


def _encoded(path: Path, document: dict[str, Any]) -> bytes:
    try:
        data = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
    except UnicodeEncodeError:
        raise DiskError(os.fspath(path), "cannot store a file name that is not valid Unicode", "rename the file") from None
    if len(data) > MOST_BYTES:
        raise DiskError(os.fspath(path), f"would grow beyond {MOST_BYTES:,} bytes", "remove old projects from it")
    return data
