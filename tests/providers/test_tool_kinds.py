"""A question for a kind of tool finds the memory that names a tool of that kind, and nothing else."""

from __future__ import annotations

import pytest

from lamina.providers.offline.chat import scored

KNOWN = [
    "We use pnpm",
    "Our data lives in Postgres",
    "Tests are written with pytest",
    "Bugs go to Linear",
    "The service is written in Go",
    "In spring we move to Bern",
    "Anna is the engineering manager",
]


@pytest.mark.spec("O1")
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which package manager do we use?", "We use pnpm"),
        ("我们用哪个包管理器？", "We use pnpm"),
        ("What database do we use?", "Our data lives in Postgres"),
        ("我们用什么数据库？", "Our data lives in Postgres"),
        ("Welche Datenbank benutzen wir?", "Our data lives in Postgres"),
        ("Quelle base de données utilisons-nous ?", "Our data lives in Postgres"),
        ("¿Qué base de datos usamos?", "Our data lives in Postgres"),
        ("データベースは何を使っていますか？", "Our data lives in Postgres"),
        ("Which test framework do we use?", "Tests are written with pytest"),
        ("What issue tracker do we use?", "Bugs go to Linear"),
        ("Which programming language do we use?", "The service is written in Go"),
        ("Who is the manager?", "Anna is the engineering manager"),
        # A tool of another kind, a word that only looks like a tool, and a kind that nothing names.
        ("Which web framework do we use?", None),
        ("What linter do we use?", None),
        ("What CI do we use?", None),
    ],
)
def test_a_kind_of_tool_stands_for_its_tools(question: str, answer: str | None) -> None:
    found = scored(question, KNOWN)
    assert (found.sentence if found is not None else None) == answer
