"""Variants of search terms: abbreviations, doubled consonants, -ment, and words written as one."""

from __future__ import annotations

import pytest

from lamina.language.terms import stem
from lamina.memory.recall.rank import Corpus, SearchDocument, query_terms
from lamina.memory.recall.variants import with_variants

OTHERS = [SearchDocument(f"{at}.md", f"other-{at}", "lunch at noon") for at in range(9)]


def finds(question: str, text: str) -> bool:
    """Tell whether the question finds a memory with this description, by its only text."""
    ranked = Corpus([SearchDocument("a.md", "x", text), *OTHERS]).rank(question, 1)
    return bool(ranked)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("which db is it", "a database of tickets"),
        ("which database is it", "the db of tickets"),
        ("open a PR", "small pull requests"),
        ("many PRs", "a PR has one purpose"),
        ("a11y of a form", "accessibility is checked"),
        ("k8s cluster", "kubernetes runs it"),
        ("plan it", "planning happens on Mondays"),
        ("logging", "the log is rotated"),
        ("deploy it", "deployments go through Argo"),
        ("the deployment", "deploy on Tuesdays"),
        ("manage it", "management is in another tool"),
        ("the front end", "the frontend has its own repository"),
        ("write unit tests", "no unittest classes"),
        ("minSdkVersion", "the oldest SDK is 26"),
    ],
)
def test_a_word_is_found_in_another_form(question: str, text: str) -> None:
    assert finds(question, text)
    assert not finds(question, "soup and bread")


@pytest.mark.parametrize(
    ("question", "text"), [("a comment", "they come by train"), ("the moment", "more mo"), ("a long text", "no logs")]
)
def test_other_words_stay_apart(question: str, text: str) -> None:
    assert not finds(question, text)


def test_a_variant_that_is_asked_for_itself_counts_once() -> None:
    groups = with_variants("db or database", query_terms("db or database"))
    assert stem("database") not in groups["db"]
    assert "db" not in groups[stem("database")]


def test_a_rare_word_stays_rare_although_its_variant_is_common() -> None:
    documents = [SearchDocument("a.md", "logging", "Logging"), *(SearchDocument(f"{at}.md", "x", "the log") for at in range(20))]
    [first, *_] = Corpus(documents).rank("logging", 3)
    assert documents[first.at].file == "a.md"
    assert first.having == {stem("logging"): 1}
