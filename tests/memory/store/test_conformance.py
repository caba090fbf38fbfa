"""Both stores keep the contract."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.histories import examples

from lamina.core.errors import InputError
from lamina.memory.store.contract import ChangeReason, MemoryStore
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.draft import Draft
from lamina.memory.store.in_memory import InMemoryStore
from lamina.memory.store.modes import GatedStore
from lamina.testing.memory_conformance import CHECKS, Check

NAMES = st.sampled_from(["a", "A", "b c", "b-c", "数", "x.md", "../e"])
STEPS = st.lists(
    st.tuples(st.sampled_from(["save", "save", "remove", "restore"]), NAMES, st.sampled_from(["1", "2", "3\n"])), max_size=12
)
ME = ChangeReason("user")


@pytest.mark.spec("S6", "B4", "B7")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_directory_keeps_the_contract(check: Check, tmp_path: Path) -> None:
    with DirectoryStore.open(tmp_path / "memory", durability="process") as store:
        check(store, Draft, ChangeReason)


@pytest.mark.spec("B5")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_store_under_a_mode_that_allows_all_keeps_the_contract(check: Check, tmp_path: Path) -> None:
    with DirectoryStore.open(tmp_path / "memory", durability="process") as store:
        check(GatedStore(store, "auto"), Draft, ChangeReason)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_dict_keeps_the_contract(check: Check) -> None:
    check(InMemoryStore(), Draft, ChangeReason)


def do(store: MemoryStore, action: str, name: str, body: str) -> object:
    match action:
        case "save":
            return store.save(Draft(name, type="project", description=body, body=body), why=ME)[1:]
        case "remove":
            return store.remove(name, why=ME)
        case _:
            try:
                return store.restore(name, why=ME).body
            except InputError:
                return None


def shown(store: MemoryStore) -> object:
    topics = [(topic.file, topic.name, topic.description, topic.type, topic.body) for topic in store.topics()]
    return topics, store.index(), [(version.action, version.name, version.digest, version.before) for version in store.log()]


@examples(40)
@given(STEPS)
def test_both_stores_say_the_same_after_any_steps(steps: list[tuple[str, str, str]]) -> None:
    other = InMemoryStore(clock=lambda: 1.0)
    with (
        tempfile.TemporaryDirectory() as directory,
        DirectoryStore.open(Path(directory) / "memory", durability="process", clock=lambda: 1.0) as store,
    ):
        for step in steps:
            assert do(store, *step) == do(other, *step), step
            assert shown(store) == shown(other), step
