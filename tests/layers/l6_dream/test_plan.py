"""The rules that decide whether a dream's change is applied, needs approval or is skipped."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.layers.l6_dream.plan import (
    MOST_CHARS,
    MOST_WAITING,
    NEW_BEYOND_REMOVED,
    RETYPED,
    THEIRS,
    Author,
    DreamChange,
    DreamPlan,
    find_authors,
    plan_dream,
    removal_cap,
    without,
)
from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.journal import JournalLine, digest_of

from .staged import topic

GONE = ""


def judged(
    before: Mapping[str, str],
    after: Mapping[str, str | None],
    *,
    authors: Mapping[str, Author] | None = None,
    now: Mapping[str, str | None] | None = None,
    ignored: tuple[str, ...] = (),
) -> DreamPlan:
    """Plan a dream over bodies by name. `after` and `now` name only the differences; None means removed."""
    base = {f"{name}.md": topic(name, body) for name, body in before.items()}

    def changed(by: Mapping[str, str | None]) -> dict[str, str]:
        new = base | {f"{name}.md": topic(name, body) for name, body in by.items() if body is not None}
        return {file: text for file, text in new.items() if by.get(file.removesuffix(".md"), "") is not None}

    digests = {file: digest_of(text.encode()) for file, text in base.items()}
    who: dict[str, Author] = dict.fromkeys(base, "agent")
    who |= {f"{name}.md": each for name, each in (authors or {}).items()}
    return plan_dream(digests, changed(now or {}), changed(after), authors=who, ignored=ignored)


def many(count: int) -> dict[str, str]:
    return {f"t{number:02}": f"Fact number {number} of this memory stands alone here." for number in range(count)}


def files(changes: tuple[DreamChange, ...]) -> list[str]:
    return [change.file.removesuffix(".md") for change in changes]


@pytest.mark.spec("B4")
@pytest.mark.parametrize(("topics", "most"), [(0, 2), (5, 2), (20, 2), (29, 2), (30, 3), (931, 93)])
def test_the_cap_is_a_tenth_and_at_least_two(topics: int, most: int) -> None:
    assert removal_cap(topics) == most


@pytest.mark.spec("B4")
def test_two_removals_are_done_and_a_third_makes_all_wait() -> None:
    assert files(judged(many(9), {"t01": None, "t02": None}).done) == ["t01", "t02"]
    third = judged(
        many(9), {"t01": None, "t02": None, "t03": "   "} | {"t04": "Fact number 4 of this memory stands alone here. More."}
    )
    assert files(third.done) == ["t04"]
    assert files(third.waiting) == ["t03", "t01", "t02"]
    assert "remove or empty 3 of 9 memories; the limit without approval is 2" in third.waiting[0].waits


@pytest.mark.spec("B4")
def test_a_merge_that_keeps_every_fact_does_not_count() -> None:
    topics = many(20)
    whole = " ".join(topics[f"t{number:02}"] for number in range(9))
    done = judged(topics, {"t00": whole} | dict.fromkeys([f"t{number:02}" for number in range(1, 9)]))
    assert files(done.done) == [f"t{number:02}" for number in range(9)]
    assert all(change.merged and change.needs == ("t00.md",) for change in done.done[1:])
    assert not any(change.counts for change in done.done)


@pytest.mark.spec("B4")
def test_a_merge_that_drops_one_fact_counts() -> None:
    (change,) = judged({"a": "One thing is so. Another thing is so.", "b": "One thing is so."}, {"a": None}).changes
    assert change.counts
    assert not change.merged


@pytest.mark.spec("B4")
def test_two_equal_memories_that_both_go_are_no_merge() -> None:
    same = {"a": "The same thing is said here.", "b": "The same thing is said here.", "c": "Else."}
    assert [change.counts for change in judged(same, {"a": None, "b": None}).changes] == [True, True]
    assert [change.counts for change in judged(same, {"a": None}).changes] == [False]


@pytest.mark.spec("B4")
def test_a_topic_that_was_renamed_is_a_merge() -> None:
    done = judged({"old": "It says this one thing."}, {"old": None, "new": "It says this one thing."})
    assert [(change.file, change.new, change.merged) for change in done.done] == [
        ("new.md", True, False),
        ("old.md", False, True),
    ]


@pytest.mark.spec("B4")
@pytest.mark.parametrize("author", ["user", "outside"])
def test_what_a_person_wrote_is_never_removed_or_emptied_without_a_yes(author: Author) -> None:
    topics = {"a": "A person said this about the build.", "b": "A person said this about the tests.", "c": "Else."}
    who: dict[str, Author] = {"a": author, "b": author}
    copied = f"Else. {topics['a']}"
    done = judged(topics, {"a": None, "b": "Gone.", "c": copied}, authors=who)
    assert files(done.waiting) == ["b", "a"]
    assert files(done.done) == ["c"]
    assert done.waiting[0].waits == "you wrote it"
    added = judged(topics, {"a": f"{topics['a']} And more of it."}, authors=who)
    assert files(added.done) == ["a"]


@pytest.mark.spec("B4")
def test_emptying_counts_as_removing() -> None:
    emptied = judged(many(9), dict.fromkeys(["t01", "t02", "t03"], "See the code."))
    assert files(emptied.waiting) == ["t01", "t02", "t03"]


@pytest.mark.spec("B4")
def test_what_somebody_else_changed_meanwhile_is_theirs() -> None:
    topics = {"a": "One.", "b": "Two.", "c": "Three.", "d": "Four."}
    now = {"a": "One, by hand.", "b": None, "e": "Made by a second session."}
    done = judged(topics, {"a": "One, dreamt.", "b": "Two, dreamt.", "c": None, "e": "Made by the dream."}, now=now)
    assert files(done.changes) == ["c"]
    assert {skipped.file: skipped.why for skipped in done.skipped} == {
        "a.md": THEIRS,
        "b.md": THEIRS,
        "e.md": "is the file of another memory, which stays",
    }


@pytest.mark.spec("B4")
def test_a_merge_waits_or_is_left_with_the_text_it_rests_on() -> None:
    topics = {"a": "Ask Kim before any release.", "b": "The second thing about builds is here.", "c": "x"}
    both = {"a": f"{topics['b']}", "b": None}
    done = judged(topics, both, authors={"a": "user"})
    assert files(done.waiting) == ["a", "b"]
    assert done.waiting[1].waits == "depends on a change that needs approval"
    left = without(judged(topics, {"a": f"{topics['a']} {topics['b']}", "b": None}), {"a.md": "no"})
    assert not left.changes
    assert [skipped.why for skipped in left.skipped] == ["no", "depends on a.md, which was not changed"]


@pytest.mark.spec("B4")
def test_two_memories_of_one_name_are_not_made() -> None:
    base = {"a.md": topic("one", "Said in the first."), "b.md": topic("two", "Said in the second.")}
    digests = {file: digest_of(text.encode()) for file, text in base.items()}
    authors: dict[str, Author] = dict.fromkeys(base, "agent")
    clash = plan_dream(digests, base, base | {"c.md": topic("Two", "A third.")}, authors=authors)
    assert not clash.changes
    assert clash.skipped[0].why == "has the name 'Two', which the memory in b.md already has"
    moved = plan_dream(digests, base, {"a.md": base["a.md"], "c.md": topic("two", "Said in the second.")}, authors=authors)
    assert [change.file for change in moved.done] == ["c.md", "b.md"]
    twin = plan_dream(digests, base, base | {"A.md": topic("three", "In capitals.")}, authors=authors)
    assert [skipped.file for skipped in twin.skipped] == ["A.md"]


@pytest.mark.spec("B4")
def test_new_memories_are_bounded() -> None:
    new: dict[str, str | None] = {f"n{number:02}": f"New thing number {number} is here." for number in range(9)}
    done = judged(many(9), new)
    assert len(done.done) == NEW_BEYOND_REMOVED
    assert len(done.skipped) == 9 - NEW_BEYOND_REMOVED
    moved = judged(many(9), new | {"t01": None, "n08": many(9)["t01"]})
    assert "n08" in files(moved.done)


@pytest.mark.spec("B4", "Z7")
def test_a_dream_that_would_remove_nearly_everything_asks_for_a_few_and_does_nothing() -> None:
    topics = many(99)
    done = judged(topics, dict.fromkeys(topics))
    assert not done.done
    assert len(done.waiting) == MOST_WAITING
    assert len(done.skipped) == 99 - MOST_WAITING


@pytest.mark.spec("B4")
def test_what_cannot_be_read_in_the_copy_is_no_removal() -> None:
    topics = many(3)
    assert not judged(topics, {"t00": None, "t01": None}, ignored=("t00.md", "t01.md")).changes
    assert judged(topics, {"t00": None}, ignored=("t01.md",)).waiting[0].waits == "part of what the dream wrote could not be read"
    base = {"sub/a.md": digest_of(b"x")}
    assert not plan_dream(base, {"sub/a.md": "x"}, {}, authors={}, ignored=["sub"]).changes


def line(file: str, text: str, action: str, why: ChangeReason | None) -> JournalLine:
    return JournalLine(1, "0", 0.0, file, file, action, digest_of(text.encode()), "", why)  # type: ignore[arg-type]  # a word of the union


@pytest.mark.spec("B4")
@pytest.mark.parametrize(
    ("lines", "author"),
    [
        ([], "outside"),
        ([("now", "save", ChangeReason("agent"))], "agent"),
        ([("then", "save", ChangeReason("agent"))], "outside"),
        ([("now", "save", ChangeReason("agent")), ("now", "outside", None)], "outside"),
        (
            [
                ("now", "save", ChangeReason("user")),
                ("then", "save", ChangeReason("dream", dream="d")),
                ("now", "restore", ChangeReason("user", dream="d")),
            ],
            "user",
        ),
        ([("now", "save", ChangeReason("agent")), ("now", "restore", ChangeReason("user", dream="d"))], "agent"),
        ([("now", "save", ChangeReason("agent")), ("now", "restore", ChangeReason("user"))], "user"),
        ([("now", "save", ChangeReason("extraction")), ("now", "undone", None)], "extraction"),
    ],
)
def test_who_wrote_a_file_is_who_wrote_what_stands_there(
    lines: list[tuple[str, str, ChangeReason | None]], author: Author
) -> None:
    told = [line("a.md", *each) for each in lines]
    assert find_authors(told, {"a.md": digest_of(b"now")}) == {"a.md": author}


@pytest.mark.spec("B4")
def test_what_a_dream_brought_in_order_is_still_whose_it_was() -> None:
    first, last = digest_of(b"first"), digest_of(b"last")
    rewritten = JournalLine(1, "1", 0.0, "a.md", "a", "save", last, first, ChangeReason("dream", dream="d"))
    assert find_authors([line("a.md", "first", "save", ChangeReason("user")), rewritten], {"a.md": last}) == {"a.md": "user"}
    assert find_authors([line("a.md", "first", "save", ChangeReason("agent")), rewritten], {"a.md": last}) == {"a.md": "agent"}
    assert find_authors([rewritten], {"a.md": last}) == {"a.md": "outside"}
    assert find_authors([line("a.md", "last", "save", ChangeReason("dream", dream="d"))], {"a.md": last}) == {"a.md": "dream"}


@pytest.mark.spec("B4")
@pytest.mark.parametrize(
    ("one", "other"),
    [("/etc/App/token", "/etc/app/token"), ("API_KEY", "api_key"), ("my_app", "my-app"), ("-R", "-r"), ("onSave", "onsave")],
)
def test_a_merge_that_loses_how_a_name_is_spelled_is_a_removal(one: str, other: str) -> None:
    said = "The name that counts here is {} everywhere."
    assert not judged({"a": said.format(one), "b": said.format(other)}, {"a": None}).done[0].merged
    assert judged({"a": said.format(one), "b": said.format(one)}, {"a": None}).done[0].merged


@pytest.mark.spec("B4")
def test_a_merge_of_everything_into_one_endless_memory_waits() -> None:
    topics = {f"t{number:02}": f"Fact {number} is this: {'word ' * 200}{number}." for number in range(30)}
    whole = "\n\n".join(topics.values())
    assert len(whole) > MOST_CHARS
    done = judged(topics, dict.fromkeys(topics) | {"all": whole})
    assert files(done.done) == ["all"]
    assert len(done.waiting) == 30
    some = dict(list(topics.items())[:5])
    assert len(judged(some, dict.fromkeys(some) | {"all": "\n\n".join(some.values())}).done) == 6


@pytest.mark.spec("B4")
def test_taking_a_little_out_of_every_memory_waits() -> None:
    """Each memory has three facts of which one is dropped."""
    said = {
        f"t{at:02}": [f"{word}{at} {word}stands{at} {word}alone{at}." for word in ("One", "Two", "Three")] for at in range(30)
    }
    topics = {name: " ".join(each) for name, each in said.items()}
    thinner = {name: " ".join(each[:2]) for name, each in said.items()}
    done = judged(topics, thinner)
    assert not done.done
    assert done.waiting[0].waits == "the dream would drop 30 of 90 facts; the limit without approval is a tenth"
    assert len(judged(topics, dict(list(thinner.items())[:9])).done) == 9


def of_type(kind: str, name: str, body: str) -> str:
    return topic(name, body).replace("type: project", f"type: {kind}")


@pytest.mark.spec("B4", "B6")
def test_what_is_known_of_the_person_stays_in_memories_about_them() -> None:
    said = "The person wants no mocks in tests."
    wish, code = of_type("feedback", "a", said), topic("b", "The parser is new.")
    base = {file: digest_of(text.encode()) for file, text in {"a.md": wish, "b.md": code}.items()}

    def done(work: dict[str, str]) -> DreamChange:
        found = plan_dream(base, {"a.md": wish, "b.md": code}, work, authors=dict.fromkeys(base, "agent")).changes
        return next(change for change in found if change.file == "a.md")

    assert not done({"b.md": topic("b", f"The parser is new. {said}")}).merged, "into a memory of another type"
    assert done({"b.md": code, "c.md": of_type("user", "c", said)}).merged
    assert done({"a.md": topic("a", said), "b.md": code}).waits == RETYPED
    assert not done({"a.md": of_type("user", "a", said), "b.md": code}).waits


NAMES = [f"m{number:02}" for number in range(24)]
SENTENCES = [f"Sentence number {number} says a thing of its own." for number in range(12)]
BODIES = st.lists(st.sampled_from(SENTENCES), max_size=3).map(" ".join)
AUTHORS: st.SearchStrategy[Author] = st.sampled_from(["user", "agent", "extraction", "dream", "outside"])


@pytest.mark.spec("B4")
@settings(max_examples=40)
@given(
    st.dictionaries(st.sampled_from(NAMES[:18]), BODIES.filter(bool), max_size=18),
    st.dictionaries(st.sampled_from(NAMES), st.none() | BODIES, max_size=24),
    st.dictionaries(st.sampled_from(NAMES), st.none() | BODIES.filter(bool), max_size=4),
    st.dictionaries(st.sampled_from(NAMES), AUTHORS),
)
def test_whatever_the_copy_holds_the_promises_hold(
    before: dict[str, str], after: dict[str, str | None], now: dict[str, str | None], who: dict[str, Author]
) -> None:
    done = judged(before, after, now=now, authors=who)
    assert sum(change.counts for change in done.done) <= removal_cap(len(before))
    theirs = {f"{name}.md" for name in now if name in before and now[name] != before[name]}
    assert theirs.isdisjoint(change.file for change in done.changes)
    seen = [*(change.file for change in done.changes), *(skipped.file for skipped in done.skipped)]
    assert len(seen) == len(set(seen))
    made = {change.file for change in done.done}
    for change in done.done:
        if change.text is None:
            assert who.get(change.file.removesuffix(".md"), "agent") not in ("user", "outside")
        assert made.issuperset(change.needs)
    assert all(name in after for name in files(done.changes))
