"""The threshold: which memories clearly fit a message, and when none does."""

from __future__ import annotations

import pytest

from lamina.memory.recall.rank import Corpus, Ranked, SearchDocument
from lamina.memory.recall.threshold import LOOKED_AT, clear_fits

BACKUP = SearchDocument("backup.md", "backup-schedule", "Database backups run nightly at two", "Stored in the second region.")
DEPLOY = SearchDocument("deploy.md", "deploy-day", "We deploy on Thursdays, never on Fridays")
NOTES = SearchDocument("notes.md", "release-notes", "Release notes are written for customers", "One sentence each.")
# Every memory has two of forty words, so that each word is in many of them.
ENDS = ("ta", "vo", "ri", "mek", "sun", "lap", "nud", "zer")
WORDS = [f"{first}{second}" for first in ("bal", "cor", "dun", "fel", "gim") for second in ENDS]
FILLER = [
    SearchDocument(f"{at}.md", f"n{at}", f"{WORDS[at % 40]} {WORDS[(at // 40 + at) % 40]} w{at} x{at}") for at in range(1_500)
]


def fitting(documents: list[SearchDocument], message: str) -> list[str]:
    ranked = Corpus(documents).rank(message, LOOKED_AT)
    fits = clear_fits(message, ranked, [documents[each.at].name for each in ranked], len(documents))
    return [documents[fit.ranked.at].file for fit in fits]


@pytest.mark.spec("Q1")
def test_two_words_must_be_in_one_sentence_of_a_long_message() -> None:
    together = "The import job takes far too long and customers complain. When do the database backups run, before or after it?"
    apart = (
        "The import job takes far too long and customers complain about the database. Rewrite the loop without a second query. "
        "Then measure the memory with ten thousand rows and write the figures down. Keep the backups of both files until then."
    )
    assert fitting([BACKUP, DEPLOY, NOTES], together) == ["backup.md"]
    assert fitting([BACKUP, DEPLOY, NOTES], apart) == []


@pytest.mark.spec("Q1")
def test_a_long_message_without_full_stops_is_judged_as_strictly_as_one_with_them() -> None:
    message = (
        "the import job takes far too long and customers complain about the database so rewrite the loop without a second query then "
        "measure the memory with ten thousand rows and write the figures down but keep the backups of both files until the last step"
    )
    assert fitting([BACKUP, DEPLOY, NOTES], message) == []


@pytest.mark.spec("Q1")
def test_the_same_two_words_are_weaker_evidence_where_many_memories_have_them() -> None:
    message = f"Rename the {WORDS[3]} of the {WORDS[4]} before the meeting"
    few = [document for document in FILLER if document.file in ("3.md", "4.md", "43.md")]
    assert fitting(few, message) == ["43.md"]
    assert fitting(FILLER, message) == []


def test_a_rare_pair_of_words_still_fits_in_a_large_store() -> None:
    assert fitting([*FILLER, BACKUP, DEPLOY], "When do the database backups run?") == ["backup.md"]


@pytest.mark.spec("Q1")
def test_a_few_words_fit_by_one_rare_word_of_the_name_and_many_do_not() -> None:
    large = [*FILLER, DEPLOY, SearchDocument("coffee.md", "coffee-budget", "The office spends 120 euros on coffee")]
    assert fitting(large, "how much coffee may we order?") == ["coffee.md"]
    assert fitting(large, "Summarise chapter three, translate it into Polish and mention that the author drank coffee") == []
    assert fitting([*large[-2:]], "how much coffee may we order?") == ["coffee.md"]


@pytest.mark.spec("Q1")
def test_rare_words_of_the_text_alone_fit_if_they_are_most_of_the_message() -> None:
    runs = SearchDocument(
        "runs.md", "running-data", "Where the training logs are", "Garmin exports go to a folder; plot them weekly."
    )
    assert fitting([*FILLER, runs], "plot my garmin exports") == ["runs.md"]
    assert fitting([*FILLER, runs], "plot the revenue of the second quarter by region and product") == []


@pytest.mark.spec("Q1")
def test_words_of_any_work_alone_are_no_evidence() -> None:
    tools = SearchDocument("tools.md", "find-and-fix", "Find the wrong line first, then fix it")
    assert fitting([BACKUP, tools], "fix it and go on") == []


def test_a_message_of_a_few_words_is_one_sentence() -> None:
    assert fitting([BACKUP, DEPLOY, NOTES], "Can we deploy this? Tomorrow, Friday?") == ["deploy.md"]


def test_the_word_not_does_not_find_release_notes() -> None:
    other = SearchDocument("other.md", "cache", "The cache is not shared", "Not now, not later.")
    assert [each.at for each in Corpus([NOTES, other]).rank("who writes the notes", 5)] == [0]


@pytest.mark.parametrize("message", ["🙂", "the of and to", "", "?!", "\x00" * 50, "the database backups " * 50_000])
def test_odd_messages_give_an_answer_and_no_error(message: str) -> None:
    assert fitting([BACKUP, DEPLOY, NOTES], message) in ([], ["backup.md"])


def fitting_by_meaning(message: str, cosine: float) -> list[str]:
    documents = [*FILLER, BACKUP]
    ranked = [each._replace(cosine=cosine) for each in Corpus(documents).rank(message, LOOKED_AT)]
    fits = clear_fits(message, ranked, [documents[each.at].name for each in ranked], len(documents))
    return [documents[fit.ranked.at].file for fit in fits]


@pytest.mark.spec("Q1")
def test_closeness_in_meaning_decides_if_the_words_leave_doubt() -> None:
    message = "copy the file to the other region now"
    assert fitting_by_meaning(message, 0.6) == ["backup.md"]
    assert fitting_by_meaning(message, 0.1) == []


@pytest.mark.spec("Q1")
@pytest.mark.parametrize("message", ["where do I leave my car", "где парковка", "駐車場はどこですか"])
def test_a_memory_that_shares_no_word_does_not_fit_however_close_it_is(message: str) -> None:
    assert not clear_fits(message, [Ranked(0, 1.0, ((), (), ()), cosine=1.0)], ["parking"], 1_000)


def test_german_connecting_words_are_no_evidence() -> None:
    coat = SearchDocument("coat.md", "garderobe", "Die Garderobe kostet einen Euro, auch die Kinder zahlen nicht weniger")
    assert (
        fitting([*FILLER, coat], "Ich suche für den Vortrag einen Einstieg, der nicht zu lang ist, und auch die Kinder verstehen")
        == []
    )
    assert fitting([*FILLER, coat], "Was kostet die Garderobe?") == ["coat.md"]


@pytest.mark.spec("Q1")
@pytest.mark.parametrize(("alike", "expected"), [(5, 5), (6, 0)])
def test_a_message_that_fits_many_memories_equally_well_gets_none(alike: int, expected: int) -> None:
    limits = [
        SearchDocument(f"{name}.md", f"{name}-memory-limit", "Pods get little", "More hides leaks.") for name in WORDS[:alike]
    ]
    found = fitting([*FILLER, *limits], "does this memory leak?")
    assert len(found) == expected


def test_a_few_words_are_counted_as_words_where_terms_are_pairs_of_characters() -> None:
    weekly = SearchDocument("weekly.md", "周报格式", "周报先写结论再写细节")
    assert fitting([*FILLER, weekly], "帮我写这周的周报") == ["weekly.md"]
    assert fitting([*FILLER, weekly], "帮我写一首关于月亮的诗") == []


@pytest.mark.spec("Q9")
@pytest.mark.parametrize("message", ["What do we know about the billing service?", "Tell me about the billing service."])
def test_the_best_of_many_memories_with_the_subject_of_a_message_comes(message: str) -> None:
    facts = (
        "retries three times",
        "logs to S3",
        "is owned by Ana",
        "runs in Frankfurt",
        "uses Postgres",
        "sends PDF",
        "rounds cents",
    )
    eight = [
        SearchDocument(f"{at}.md", f"billing-{at}", f"The billing service {fact}") for at, fact in enumerate([*facts, "is new"])
    ]
    assert len(fitting([*eight, BACKUP, DEPLOY, NOTES], message)) == 1
    assert fitting([*eight, BACKUP, DEPLOY, NOTES], "Fix the failing tests of the billing service and the login page") == []
    [best] = fitting([*eight, BACKUP, DEPLOY, NOTES], "The billing service retries three times, right?")
    assert best == "0.md"
