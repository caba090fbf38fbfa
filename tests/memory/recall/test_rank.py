"""The ranker: which memories fit a question."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.memory.recall import rank
from lamina.memory.recall.rank import Corpus, SearchDocument, explain

MEMORIES = [
    SearchDocument("a.md", "testing-db", "Integration tests run against a real database", "Mocks once hid a broken migration."),
    SearchDocument(
        "b.md", "deploy-day", "Deploys happen on Tuesdays", "The people on call are there. The database is backed up before."
    ),
    SearchDocument("c.md", "集成测试", "集成测试使用真实数据库", "模拟对象曾经掩盖了损坏的迁移。"),
    SearchDocument("d.md", "部署", "每周二部署", "值班的人在场。"),
    SearchDocument("e.md", "テスト", "結合テストは本物のデータベースを使う"),
    SearchDocument("f.md", "배포", "배포는 화요일에 합니다"),
    SearchDocument("g.md", "lunch", "Lunch is at noon"),
]
CORPUS = Corpus(MEMORIES)


def rank_documents(documents: list[SearchDocument], question: str, most: int) -> list[SearchDocument]:
    return [documents[ranked.at] for ranked in Corpus(documents).rank(question, most)]


def found(question: str, most: int = 5) -> list[str]:
    return [MEMORIES[ranked.at].file for ranked in CORPUS.rank(question, most)]


@pytest.mark.spec("B15")
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What database do our integration tests use?", "a.md"),
        ("Which day do we deploy?", "b.md"),
        ("broken migrations", "a.md"),
        ("我们的集成测试用什么数据库？", "c.md"),
        ("什么时候部署？", "d.md"),
        ("結合テストは何を使いますか", "e.md"),
        ("배포는 언제 합니까?", "f.md"),
    ],
)
def test_the_memory_that_answers_comes_first(question: str, expected: str) -> None:
    assert found(question)[0] == expected


def test_what_shares_nothing_is_not_found() -> None:
    assert found("quantum chromodynamics") == []
    assert found("what is it") == []
    assert found("") == []
    assert Corpus([]).rank("tests", 5) == []


def test_a_name_counts_more_than_a_description_and_that_more_than_a_body() -> None:
    documents = [
        SearchDocument("body.md", "x", "y", "about caching here"),
        SearchDocument("description.md", "x", "caching", "nothing else here"),
        SearchDocument("name.md", "caching strategy", "y", "nothing else here"),
    ]
    assert [each.file for each in rank_documents(documents, "caching", 3)] == ["name.md", "description.md", "body.md"]


def test_a_memory_that_is_called_by_its_name_comes_first() -> None:
    documents = [
        SearchDocument("long.md", "release notes and release dates", "How release notes are written for each release"),
        SearchDocument("exact.md", "release", "When"),
    ]
    assert rank_documents(documents, "release", 1)[0].file == "exact.md"


def test_a_word_inside_another_is_no_match() -> None:
    assert [each.file for each in rank_documents([SearchDocument("a.md", "latest contest", "protest")], "test", 5)] == []


def test_the_whole_question_counts_more_than_one_word_of_it_many_times() -> None:
    documents = [
        SearchDocument("often.md", "tests", "tests tests tests tests", "tests " * 50),
        SearchDocument("both.md", "flaky", "How flaky tests are handled"),
        *(SearchDocument(f"{number}.md", f"other {number}", "tests") for number in range(20)),
    ]
    assert rank_documents(documents, "flaky tests", 1)[0].file == "both.md"


def test_why_is_said_field_by_field() -> None:
    [first, *_] = CORPUS.rank("real database tests", 1)
    assert explain(first) == "name: databas, test; description: real, databas, test"


def test_equal_memories_come_in_the_order_of_their_files() -> None:
    documents = [SearchDocument(file, "same", "words") for file in ("b.md", "a.md", "c.md")]
    assert [each.file for each in rank_documents(documents, "words", 3)] == ["a.md", "b.md", "c.md"]


LATIN = ["tests", "testing", "test", "protest", "database", "dä", "a1", "TEST-db", "é"]
OTHERS = ["集成测试", "测测测测", "数", "データベース", "test测试", "화요일", "\x00", "\x01"]
PROSE = st.lists(st.sampled_from(LATIN + OTHERS), max_size=6).map(" ".join)


@given(
    documents=st.lists(st.tuples(PROSE, PROSE, PROSE), max_size=8),
    questions=st.lists(PROSE, min_size=1, max_size=6),
    at_once=st.integers(1, 4),
)
def test_the_index_and_the_text_give_the_same_answer(
    documents: list[tuple[str, str, str]], questions: list[str], at_once: int
) -> None:
    made = [SearchDocument(f"{number}.md", *fields) for number, fields in enumerate(documents)]
    asked_often = Corpus(made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank, "INDEX_LEAST", at_once)
        for question in questions:
            assert asked_often.rank(question, 5) == Corpus(made).rank(question, 5)


def test_who_asks_again_is_answered_from_the_index() -> None:
    corpus = Corpus(MEMORIES)
    first = corpus.rank("real database tests", 5)
    assert corpus._index.fields == 0
    assert corpus.rank("real database tests", 5) == first
    assert corpus._index.fields == 3 * len(MEMORIES)


def test_no_question_pays_for_the_whole_index() -> None:
    corpus = Corpus(SearchDocument(f"{number}.md", f"name {number}", "tests") for number in range(1_400))
    grown = [corpus._index.fields for _ in range(14) if corpus.rank("tests of name 7", 3)]
    assert grown[0] == 0
    assert max(after - before for before, after in pairwise(grown)) == 3 * 140
    assert grown[-1] == 3 * 1_400


@pytest.mark.parametrize("asked_before", [0, 1, 2])
def test_a_term_that_is_everywhere_is_counted_up_to_a_limit(monkeypatch: pytest.MonkeyPatch, asked_before: int) -> None:
    monkeypatch.setattr(rank, "MOST_PLACES", 3)
    monkeypatch.setattr(rank, "INDEX_LEAST", 1)
    corpus = Corpus(SearchDocument(f"{number}.md", "x", "tests") for number in range(9))
    for _ in range(asked_before):
        corpus.rank("tests", 9)
    assert [found.at for found in corpus.rank("tests", 9)] == [0, 1, 2]


def test_nothing_is_asked_for_and_nothing_is_given() -> None:
    assert CORPUS.rank("tests", 0) == CORPUS.rank("tests", -1) == []


TEXTS = st.text(alphabet="ab 测试,.-\x00\x01é", max_size=12)


@given(documents=st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=6), question=TEXTS)
def test_any_texts_are_ranked_the_same_way_twice(documents: list[tuple[str, str, str]], question: str) -> None:
    made = [SearchDocument(f"{number}.md", *fields) for number, fields in enumerate(documents)]
    once, again = Corpus(made).rank(question, 3), Corpus(made).rank(question, 3)
    assert once == again
    assert all(each.score > 0 for each in once)
    assert [each.score for each in once] == sorted((each.score for each in once), reverse=True)


def test_a_month_or_a_year_in_a_question_counts_twice() -> None:
    texts = ("the offsite, planned in march 2023", "the offsite budget, planned")
    corpus = Corpus([SearchDocument(f"{at}.md", "", "", text) for at, text in enumerate(texts)])
    assert [each.at for each in corpus.rank("planned offsite budget", 2)] == [1, 0]
    assert [each.at for each in corpus.rank("offsite budget in march", 2)] == [0, 1]
    assert [each.at for each in corpus.rank("offsite budget of 2023", 2)] == [0, 1]
