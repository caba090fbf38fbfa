"""Write permissions by mode, and proposals that wait for approval."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lamina.core.errors import DiskError, InputError, SettingError
from lamina.core.settings import Mode
from lamina.memory.store import modes
from lamina.memory.store.contract import ChangeAuthor, ChangeReason, Proposed, Saved
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.draft import Draft
from lamina.memory.store.journal import digest_of
from lamina.memory.store.modes import GatedStore, WriteVerdict, plan_write

ME, EXTRACTION = ChangeReason("user"), ChangeReason("extraction", "said in a turn", "session-1")


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
def store(memory: Path) -> Iterator[DirectoryStore]:
    with DirectoryStore.open(memory, durability="process", clock=lambda: 7.0) as opened:
        opened.save(Draft("there", type="user", description="d", body="first\nsame"), why=ME)
        yield opened


def save(gated: GatedStore, name: str = "there", body: str = "second\nsame", why: ChangeReason = EXTRACTION) -> Saved | Proposed:
    return gated.save(Draft(name, type="user", description="d", body=body), why=why)


def proposed(gated: GatedStore, name: str = "there", body: str = "second\nsame") -> str:
    found = save(gated, name, body)
    assert isinstance(found, Proposed)
    return found.id


def body_of(store: DirectoryStore, name: str = "there") -> str | None:
    topic = store.get(name)
    return None if topic is None else topic.body


@pytest.mark.spec("B5")
@pytest.mark.parametrize(
    ("mode", "who", "verdict"),
    [
        ("auto", "extraction", "write"),
        ("auto", "user", "write"),
        ("confirm", "extraction", "propose"),
        ("confirm", "agent", "propose"),
        ("confirm", "dream", "propose"),
        ("confirm", "user", "write"),
        ("read-only", "user", "refuse"),
        ("read-only", "agent", "refuse"),
        ("off", "user", "refuse"),
    ],
)
def test_the_mode_and_who_asks_decide(mode: Mode, who: ChangeAuthor, verdict: WriteVerdict) -> None:
    assert plan_write(mode, who) == verdict


@pytest.mark.spec("B5")
def test_off_is_empty_and_takes_nothing(store: DirectoryStore, memory: Path) -> None:
    gated = GatedStore(store, "off")
    assert (gated.topics(), gated.get("there"), gated.index(), gated.log()) == ([], None, "", [])
    before = {path: path.read_bytes() for path in memory.rglob("*") if path.is_file()}
    for act in (lambda: save(gated), lambda: gated.remove("there", why=ME), lambda: gated.restore("there", why=ME)):
        with pytest.raises(SettingError, match="memoryMode"):
            act()
    assert before == {path: path.read_bytes() for path in memory.rglob("*") if path.is_file()}


@pytest.mark.spec("B5")
def test_read_only_is_read_and_takes_nothing(store: DirectoryStore) -> None:
    gated = GatedStore(store, "read-only")
    assert [topic.name for topic in gated.topics()] == ["there"]
    with pytest.raises(SettingError, match="read-only"):
        save(gated)
    assert body_of(store) == "first\nsame\n"


@pytest.mark.spec("B5")
def test_a_proposal_waits_as_a_diff_and_a_yes_does_it(store: DirectoryStore) -> None:
    gated = GatedStore(store, "confirm")
    first = proposed(gated)
    assert body_of(store) == "first\nsame\n"
    (waiting,) = gated.inbox.waiting()
    assert (waiting.id, waiting.action, waiting.file, waiting.why) == (first, "save", "there.md", EXTRACTION)
    assert "\n-first\n+second\n same\n" in waiting.diff
    done = gated.inbox.accept(first)
    assert isinstance(done, Saved)
    assert body_of(store) == "second\nsame\n"
    assert gated.inbox.waiting() == []
    assert store.log("there")[0].why == replace(EXTRACTION, approved=True, act=first)


@pytest.mark.spec("B5")
def test_a_no_leaves_everything_as_it_was(store: DirectoryStore) -> None:
    gated = GatedStore(store, "confirm")
    name = proposed(gated, "new")
    assert gated.inbox.reject(name)
    assert not gated.inbox.reject(name)
    assert body_of(store, "new") is None
    with pytest.raises(InputError, match="already decided"):
        gated.inbox.accept(name)


@pytest.mark.spec("B5")
def test_a_removal_waits_too(store: DirectoryStore) -> None:
    gated = GatedStore(store, "confirm")
    assert gated.remove("there.md", why=EXTRACTION) is False
    (waiting,) = gated.inbox.waiting()
    assert (waiting.action, waiting.name) == ("remove", "there")
    assert "-first" in waiting.diff
    assert gated.inbox.accept(waiting.id) is True
    assert store.topics() == []
    assert gated.remove("missing", why=EXTRACTION) is False
    assert gated.inbox.waiting() == []


@pytest.mark.spec("B5")
def test_a_yes_counts_for_what_was_seen(store: DirectoryStore) -> None:
    gated = GatedStore(store, "confirm")
    name = proposed(gated)
    store.save(Draft("there", type="user", description="d", body="by hand\nsame"), why=ME)
    with pytest.raises(InputError, match="has changed since"):
        gated.inbox.accept(name)
    assert body_of(store) == "by hand\nsame\n"
    (waiting,) = gated.inbox.waiting()
    assert waiting.id == name
    assert "\n-by hand\n+second\n" in waiting.diff
    gated.inbox.accept(name)
    assert body_of(store) == "second\nsame\n"


@pytest.mark.spec("B5")
@pytest.mark.parametrize("mode", ["off", "read-only"])
def test_a_yes_writes_nothing_where_nothing_may_be_written(store: DirectoryStore, mode: Mode) -> None:
    name = proposed(GatedStore(store, "confirm"))
    with pytest.raises(SettingError):
        GatedStore(store, mode).accept(name)
    assert body_of(store) == "first\nsame\n"
    assert [each.id for each in GatedStore(store, mode).inbox.waiting()] == [name]
    GatedStore(store, "confirm").accept(name)
    assert body_of(store) == "second\nsame\n"


@pytest.mark.spec("B5", "Z3")
def test_a_memory_that_changes_while_a_yes_is_carried_out_is_left_to_who_changed_it(store: DirectoryStore, memory: Path) -> None:
    draft = Draft("there", body="from a proposal")
    base = digest_of((memory / "there.md").read_bytes())
    (memory / "there.md").write_text("---\nname: there\ndescription: d\n---\n\nby hand\n")
    with pytest.raises(DiskError, match="someone else"):
        store.save(draft, why=EXTRACTION, base=base)
    assert body_of(store) == "by hand\n"


def test_the_same_proposal_waits_once(store: DirectoryStore) -> None:
    gated = GatedStore(store, "confirm")
    assert proposed(gated) == proposed(gated)
    assert proposed(gated, body="another") != proposed(gated)
    assert len(gated.inbox.waiting()) == 2


@pytest.mark.spec("B5", "Z11")
def test_a_secret_does_not_wait_in_the_inbox(store: DirectoryStore, memory: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    proposed(GatedStore(store, "confirm"), body=f"the build uses token {secret}")
    assert not [path for path in memory.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


@pytest.mark.spec("Z7")
def test_the_inbox_is_bounded(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "MOST_PROPOSALS", 3)
    gated = GatedStore(store, "confirm")
    for number in range(3):
        proposed(gated, f"n{number}")
    with pytest.raises(InputError, match=r"it is full \(3 proposals\)"):
        proposed(gated, "n3")


def test_what_is_no_proposal_is_passed_over(store: DirectoryStore, memory: Path) -> None:
    gated = GatedStore(store, "confirm")
    proposed(gated)
    (memory / ".inbox" / "0123456789ab.json").write_text("{")
    (memory / ".inbox" / "readme.json").write_text("{}")
    assert len(gated.inbox.waiting()) == 1
    with pytest.raises(InputError):
        gated.inbox.accept("../../etc")


def test_the_last_decisions_are_kept_in_a_bounded_number(
    store: DirectoryStore, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gated = GatedStore(store, "confirm")
    for number in range(4):
        proposed(gated, f"m{number}", "It is so.")
    monkeypatch.setattr(modes, "MOST_DECIDED", 2)
    for number, proposal in enumerate(gated.inbox.waiting()):
        store.clock = lambda number=number: float(number)  # type: ignore[misc]
        assert gated.inbox.reject(proposal.id)
    (memory / modes.DECIDED / "0123456789ab.json").write_text("{")
    kept = gated.inbox.decided()
    assert [decision.time for decision in kept] == [3.0, 2.0]
    gated.inbox.undecide(kept[0].proposal)
    assert [decision.time for decision in gated.inbox.decided()] == [2.0]
    assert [proposal.id for proposal in gated.inbox.waiting()] == [kept[0].proposal.id], "decisions are no proposals"
