"""Variants of a search term: other stems that mean the same word.

Four kinds are known: common abbreviations ("db", "database"), a doubled consonant ("planning", "plan"), the ending -ment
("deployment", "deploy") and two words written as one ("front end", "frontend"). The stems of `language.terms` are prefixes of their
words and cannot join these. Pure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from ...language.terms import is_word, stem, unstemmed

# Abbreviations that people type in any project, with the words they stand for.
_ABBREVIATIONS = """
a11y accessibility accessible; addr address; admin administrator administration; app application; auth authentication authorization;
avg average; bday birthday; calc calculate; cert certificate; cfg conf config configuration; cmd command; creds credentials; ctx context;
db dbs database; deps dependency; dev development developer; dir directory; docs documentation; e2e end; env environment;
exec execute; func fn function; gh github; hr hrs hour; i18n internationalization translation; img image; impl implementation;
info information; infra infrastructure; init initialize; js javascript; k8s kubernetes; l10n localization; lib libs library; max maximum;
mgmt management; min mins minute; msg message; num number; ops operations; param params parameter; perf performance;
pg postgres postgresql; pic picture; pkg package; pr prs pull; pw pwd password; py python; repo repository; req request;
spec specification; stats statistics; stg staging; sync synchronize; temp temperature; tf terraform; tmp temporary; ts typescript;
tz timezone; var vars variable; ver version
"""
_CONSONANTS = "bdgklmnprt"
_SHORT_VERB = re.compile(f"[a-z]?[^aeiou][aeiou][{_CONSONANTS}]")
_DOUBLED = re.compile(f"[a-z]+([{_CONSONANTS}])\\1")
# A shorter stem before -ment is part of another word: "comment", "moment".
_SHORTEST_VERB = 5
# In a longer question the words tell enough by themselves.
MOST_JOINED = 10


def _known() -> dict[str, frozenset[str]]:
    found = defaultdict[str, set[str]](set)
    for group in _ABBREVIATIONS.split(";"):
        stems = {stem(word) for word in group.split()}
        for each in stems:
            found[each] |= stems - {each}
    return {each: frozenset(others) for each, others in found.items()}


_KNOWN = _known()


def with_variants(question: str, wanted: Sequence[str]) -> dict[str, list[str]]:
    """Return for each wanted term the stems to look for: the term itself first, then others that are not wanted anyway."""
    joined = _joined(question) if len(wanted) <= MOST_JOINED else {}
    others = ({*_KNOWN.get(term, ()), *_inflected(term), *joined.get(term, ())}.difference(wanted) for term in wanted)
    return {term: [term, *sorted(more)] for term, more in zip(wanted, others, strict=True)}


def _joined(question: str) -> Mapping[str, Collection[str]]:
    """Return the stems of adjacent words written as one, for both words: "front end" is also "frontend"."""
    found = defaultdict[str, set[str]](set)
    for first, second in pairwise(unstemmed(question)):
        if is_word(first) and is_word(second):
            for each in (first, second):
                found[stem(each)].add(stem(first + second))
    return found


def _inflected(term: str) -> Iterable[str]:
    if _SHORT_VERB.fullmatch(term):
        yield term + term[-1]
    elif _DOUBLED.fullmatch(term):
        yield term[:-1]
    if term.endswith("ment"):
        verb = term[:-4].removesuffix("e")
        if len(verb) >= _SHORTEST_VERB:
            yield verb
    elif term.isalpha() and term.isascii() and len(term) >= _SHORTEST_VERB:
        yield f"{term}ment"
        yield f"{term}ement"
