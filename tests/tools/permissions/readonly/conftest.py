"""A small tree to look at: a memory directory with topics and logs, and transcripts beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

INDEX = """- [Role](role.md) — who the person is
- [Rules](rules.md) — it's about -delete and $HOME/.cache
# heading
a database, a Database
type: user
"""


class Tree(NamedTuple):
    memory: Path
    transcripts: Path
    outside: Path

    @property
    def roots(self) -> tuple[Path, ...]:
        return (self.memory, self.transcripts)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    base = tmp_path.resolve()
    made = Tree(base / "memory", base / "transcripts", base / "outside")
    for directory in (made.memory / "logs" / "2025" / "01", made.memory / "two words", made.transcripts, made.outside):
        directory.mkdir(parents=True)
    files = {
        "MEMORY.md": INDEX,
        "role.md": "---\ntype: user\n---\n数据库 and a database\n",
        "rules.md": "---\ntype: feedback\n---\nfoo\nbar\n",
        ".hidden.md": "hidden\n",
        "counts.txt": "a:3\nb:1\na:2\n",
        "logs/2025/01/2025-01-02.md": "- 10:00 something\n",
        "two words/note.md": "note\n",
    }
    for name, text in files.items():
        (made.memory / name).write_text(text, "utf-8")
    (made.transcripts / "s1.jsonl").write_text("".join(f'{{"n": {n}}}\n' for n in range(120)), "utf-8")
    (made.outside / "secret.md").write_text("secret\n", "utf-8")
    for path in made.memory.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return made
