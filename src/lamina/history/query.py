"""One search over the memories and turns of all agents.

A message with the one before it is a document; memories are documents too, and weigh more, because they were kept on purpose.
Ranked by BM25 over the index of `catalogue.py`. Invariants: the same files and question give the same answer. A document that
shares no word with the question is not in it. A text of several sessions appears once. Bad input gives fewer results
and a sentence.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
import sys
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Literal, NamedTuple

import msgspec

from ..core.inputs import check_type
from ..core.settings import Settings
from ..disk.settings_files import lamina_home, settings_in_force
from ..language.terms import stem, terms, unstemmed
from ..memory.store.secrets import redact
from .catalogue import Catalogue, Tell, day_words, with_catalogue
from .exact import ExactMatch, around, search_exact
from .memories import iso_time
from .places import Origin
from .scan import cut_words
from .sessions import (
    SourceSession,
    follow_memories,
    follow_sessions,
    memories,
    project_filter,
    project_slugs,
    session_of,
    sessions,
    ways_to_open,
)

# The weights of the columns: the message itself, the one before it, and its day. Chosen on LoCoMo 1–5 with `bench/past_turns.py`.
WEIGHTS = (1.0, 0.6, 1.0)
# A memory was kept on purpose, so it comes first among equals, but not before a clearly better turn.
MEMORY_BONUS = 1.3
# A document with all words of the question counts this much more than one with a single word, many times.
COVERAGE = 0.3
# Candidates: a few per result, since some are the same text in another session, and at least so many.
DEPTH = 4
LEAST = 40
# A longer question is a document; its beginning and end give the subject. Each term costs a search.
MOST_TERMS = 48
MOST_CHARS = 8_000
# Shown of the messages before and after.
AROUND_CHARS = 300
NO_WORDS = "The query has no words to rank by. Use other words, or --exact to search for it literally."


class SearchResult(msgspec.Struct, frozen=True):
    """A memory or a message. For a message, `turn` and `session_id` say where it is, `before` and `after` what surrounds it.

    For an answer that was found by its question, `before` is the question.
    """

    kind: Literal["memory", "turn"]
    origin: Origin
    score: float
    text: str
    speaker: str  # user, assistant, subagent, or memory
    time: str
    project: str
    path: str
    title: str  # of the session, or the name of the memory
    session_id: str = ""
    turn: int = 0
    before: str = ""
    after: str = ""
    link: str = ""  # the command that opens it, or the file of a memory


class SearchedFile(NamedTuple):
    """The part of a result that comes from its file."""

    kind: Literal["memory", "turn"]
    origin: Origin
    project: str
    path: str
    title: str  # empty for a memory
    session_id: str
    opens: str  # what `lamina sessions show` takes: the id, or the path where several files have that id


class _Candidate(NamedTuple):
    file: int
    place: int
    number: int
    speaker: str
    time: str
    text: str
    head: str
    score: float


def search(
    query: str,
    cwd: str | os.PathLike[str] = ".",
    k: int = 5,
    *,
    exact: bool = False,
    everywhere: bool = False,
    settings: Settings | None = None,
    environ: Mapping[str, str] | None = None,
    notices: list[str] | None = None,
    skip: Collection[str] = (),
    of_project_only: bool = False,
    redacted: bool = False,
    tell: Tell = lambda done, of: None,
) -> list[SearchResult]:
    """Return the best `k` memories and messages of this project, or of all, from every agent.

    `exact` finds the literal text instead, newest first. Sentences about what could not be searched are appended to `notices`.
    `skip` are paths of sessions to leave out; with `of_project_only`, memories that belong to no project are left out too.
    `redacted` removes secrets from literal matches before they are cut. `tell` is called while new files are read, with their number.
    """
    check_type("query", query, str)
    check_type("cwd", cwd, str, os.PathLike)
    check_type("k", k, int)
    told = [] if notices is None else notices
    variables = os.environ if environ is None else environ
    chosen = settings_in_force(cwd, environ=environ) if settings is None else settings
    where = None if everywhere else cwd
    if exact:
        literal = _literal(query, where, chosen, variables, told, redacted=redacted, tell=tell)
        return list(islice((one for one in literal if _wanted(one, skip, of_project_only)), max(0, k)))

    def found(catalogue: Catalogue) -> list[SearchResult]:
        return search_index(
            catalogue, query, where, k, chosen, variables, told, skip=skip, of_project_only=of_project_only, tell=tell
        )

    return with_catalogue(lamina_home(variables), found)


def search_index(
    catalogue: Catalogue,
    query: str,
    cwd: str | os.PathLike[str] | None,
    k: int,
    settings: Settings,
    environ: Mapping[str, str],
    notices: list[str],
    *,
    skip: Collection[str] = (),
    of_project_only: bool = False,
    tell: Tell = lambda done, of: None,
    files: Mapping[int, SearchedFile] | None = None,
) -> list[SearchResult]:
    """Return what `search` returns from an index that is open already. Without a `cwd`, all projects are searched.

    `files` are those that `list_searched` returned, if nothing has changed since.
    """
    words = query_words(query)
    if not words:
        notices.append(NO_WORDS)
        return []
    places = files if files is not None else list_searched(catalogue, settings, environ, cwd, notices, tell)
    places = {number: place for number, place in places.items() if _wanted(place, skip, of_project_only)}
    return _ranked(catalogue.database, words, places, k) if places and k > 0 else []


def _wanted(found: SearchedFile | SearchResult, skip: Collection[str], of_project_only: bool) -> bool:
    return found.path not in skip and not (of_project_only and found.kind == "memory" and not found.project)


def query_words(question: str) -> list[str]:
    """Return the words to search for, in order and without repetitions."""
    half = MOST_CHARS // 2
    found = unstemmed(question if len(question) <= MOST_CHARS else f"{question[:half]}\n{question[-half:]}")
    kept = list(dict.fromkeys(found))
    return kept if len(kept) <= MOST_TERMS else kept[: MOST_TERMS // 2] + kept[-MOST_TERMS // 2 :]


def list_searched(
    catalogue: Catalogue,
    settings: Settings,
    environ: Mapping[str, str],
    cwd: str | os.PathLike[str] | None,
    told: list[str],
    tell: Tell = lambda done, of: None,
) -> dict[int, SearchedFile]:
    """Bring the index up to date, and return the files to search by their number in it."""
    inside = project_filter(cwd, environ) if cwd is not None else None
    listed = {row.id: session_of(row) for row in follow_sessions(catalogue, settings, environ, told, tell)}
    found = list_searched_sessions(listed)
    if inside is not None:
        found = {number: place for number, place in found.items() if inside(listed[number])}
    return found | list_searched_memories(catalogue, settings, environ, cwd, told)


def list_searched_sessions(listed: Mapping[int, SourceSession]) -> dict[int, SearchedFile]:
    opens = ways_to_open(listed.values())
    return {
        number: SearchedFile("turn", one.origin, one.project, one.path, one.title, one.id, opens[one.path])
        for number, one in listed.items()
    }


def list_searched_memories(
    catalogue: Catalogue, settings: Settings, environ: Mapping[str, str], cwd: str | os.PathLike[str] | None, told: list[str]
) -> dict[int, SearchedFile]:
    """Bring the index up to date with the memories, and return their files. A result's title is in its text."""
    wanted = None if cwd is None else {*project_slugs(cwd, environ), ""}
    return {
        row.id: SearchedFile("memory", row.origin, place, row.path, "", "", row.path)
        for row, place in follow_memories(catalogue, settings, environ, cwd, told)
        if wanted is None or place in wanted
    }


def _ranked(database: sqlite3.Connection, words: list[str], places: dict[int, SearchedFile], k: int) -> list[SearchResult]:
    stems = {stem(word) for word in words}
    found = _with_answers(database, _candidates(database, words, places, k), stems)
    results: dict[str, SearchResult] = {}
    for score, one in sorted(((_score(one, stems), one) for one in found), key=lambda pair: -pair[0]):
        if len(results) == k:
            break
        if one.text not in results:
            results[one.text] = _result(database, places[one.file], one, score)
    return list(results.values())


def _with_answers(database: sqlite3.Connection, found: list[_Candidate], stems: set[str]) -> list[_Candidate]:
    """Return the candidates, and for each question the answer at the end of its turn.

    Between a question and its answer, agents report their steps. An answer is ranked with its question all the same, and takes the
    place of a first step that has none of the words.
    """
    at = {(one.file, one.place): one for one in found}
    for one in found:
        answer = _last_answer(database, one) if one.speaker == "user" else None
        if answer is None or answer.place <= one.place + 1:
            continue  # an answer that follows its question directly is ranked with it
        step = at.get((one.file, one.place + 1))
        if step is not None and not stems.intersection(terms(step.text)):
            del at[step.file, step.place]
        known = at.get((one.file, answer.place), answer)
        at[known.file, known.place] = known._replace(score=known.score + WEIGHTS[1] * one.score, head=one.text)
    return list(at.values())


def _last_answer(database: sqlite3.Connection, found: _Candidate) -> _Candidate | None:
    """Return the last answer of a turn, without a score."""
    next_turn = database.execute(
        "SELECT place FROM texts WHERE file = ? AND place > ? AND number > ? ORDER BY place LIMIT 1",
        (found.file, found.place, found.number),
    ).fetchone()
    row = database.execute(
        "SELECT file, place, number, speaker, time, text, head, 0.0 FROM texts"
        " WHERE file = ? AND place < ? AND speaker = 'assistant' ORDER BY place DESC LIMIT 1",
        (found.file, next_turn[0] if next_turn is not None else sys.maxsize),
    ).fetchone()
    return _Candidate(*row) if row is not None else None


def _candidates(database: sqlite3.Connection, words: list[str], places: dict[int, SearchedFile], k: int) -> list[_Candidate]:
    """Return more than `k` documents of these files, the best by BM25 first."""
    inside = ""
    if database.execute("SELECT count(*) FROM files").fetchone()[0] > len(places):
        inside = " AND texts.file IN temp.searched"
        database.execute("CREATE TEMP TABLE IF NOT EXISTS searched (file INTEGER PRIMARY KEY)")
        database.execute("DELETE FROM searched")
        database.executemany("INSERT INTO searched VALUES (?)", [(number,) for number in places])
    # The texts are read behind the limit: a common word is in thousands of them.
    found = database.execute(
        "SELECT file, place, number, speaker, texts.time, text, head, score FROM ("
        " SELECT texts.id AS best, -bm25(words, ?, ?, ?) * iif(kind = 'memory', ?, 1.0) AS score, texts.time, path"
        " FROM words JOIN texts ON texts.id = words.rowid JOIN files ON files.id = texts.file"
        f" WHERE words MATCH ?{inside} ORDER BY score DESC, texts.time DESC, path, best LIMIT ?"
        ") AS ranked JOIN texts ON texts.id = best ORDER BY score DESC, ranked.time DESC, path, best",
        (*WEIGHTS, MEMORY_BONUS, _any_of(words), DEPTH * k + LEAST),
    )
    return [_Candidate(*row) for row in found]


def count_sessions(catalogue: Catalogue, query: str, most: int) -> int:
    """Return how many sessions have a message with one of the query's words. Counting ends at `most`."""
    if not (words := query_words(query)):
        return 0
    row = catalogue.database.execute(
        "SELECT count(*) FROM (SELECT DISTINCT texts.file FROM words JOIN texts ON texts.id = words.rowid"
        " JOIN files ON files.id = texts.file WHERE words MATCH ? AND kind = 'session' LIMIT ?)",
        (_any_of(words), most),
    ).fetchone()
    return int(row[0])


def _any_of(words: list[str]) -> str:
    return " OR ".join(f'"{word}"' for word in words)


def _score(found: _Candidate, stems: set[str]) -> float:
    """Return BM25's score, less for a document with few of the question's words."""
    has = stems.intersection(terms(f"{found.text}\n{found.head}\n{day_words(found.time)}"))
    return found.score * (1 - COVERAGE + COVERAGE * len(has) / len(stems))


def _result(database: sqlite3.Connection, place: SearchedFile, found: _Candidate, score: float) -> SearchResult:
    memory = place.kind == "memory"
    after = database.execute("SELECT text FROM texts WHERE file = ? AND place = ?", (found.file, found.place + 1)).fetchone()
    return SearchResult(
        kind=place.kind,
        origin=place.origin,
        score=round(score, 4),
        text=found.text,
        speaker=found.speaker,
        time=found.time,
        project=place.project,
        path=place.path,
        title=found.head.partition("\n")[0] if memory else place.title,
        session_id=place.session_id,
        turn=0 if memory else found.number,
        before="" if memory else cut_words(found.head, AROUND_CHARS),
        after="" if memory or after is None else cut_words(after[0], AROUND_CHARS),
        link=place.path if memory else _show_turn(place.opens, found.number),
    )


def _show_turn(session: str, turn: int) -> str:
    return f"lamina sessions show {shlex.quote(session)} --turn {turn}"


def _literal(
    term: str,
    cwd: str | os.PathLike[str] | None,
    settings: Settings,
    environ: Mapping[str, str],
    told: list[str],
    *,
    redacted: bool,
    tell: Tell,
) -> Iterator[SearchResult]:
    """Yield the memories and messages that contain the term, memories first."""
    if not term.strip():
        told.append(NO_WORDS)
        return
    for memory in memories(settings, cwd, environ=environ, unread=told):
        text = f"{memory.name}\n{memory.description}\n{memory.body}"
        if term.casefold() in text.casefold():
            text = redact(text).text if redacted else text
            yield SearchResult(
                "memory",
                memory.origin,
                1.0,
                around(text, term),
                "memory",
                iso_time(memory.modified),
                memory.place,
                memory.path,
                memory.name,
                link=memory.path,
            )
    every = sessions(settings, environ=environ, unread=told, tell=tell)
    opens, inside = ways_to_open(every), project_filter(cwd, environ) if cwd is not None else None
    found = [one for one in every if inside is None or inside(one)]
    for hit in search_exact(term, found, told, redacted=redacted, tell=tell):
        yield _literal_result(hit, opens[hit.session.path])


def _literal_result(hit: ExactMatch, opens: str) -> SearchResult:
    session = hit.session
    return SearchResult(
        "turn",
        session.origin,
        1.0,
        hit.text,
        hit.role,
        hit.time,
        session.project,
        session.path,
        session.title,
        session.id,
        hit.turn,
        link=_show_turn(opens, hit.turn),
    )
