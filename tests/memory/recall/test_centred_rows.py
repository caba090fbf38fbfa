"""Vectors in one array: what was put in later counts as if the array had been made with it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.memory.recall.centred_rows import CentredRows

np: Any = pytest.importorskip("numpy")

DIMENSIONS = 4
VECTOR = st.binary(min_size=DIMENSIONS, max_size=DIMENSIONS)
MEMORY = st.lists(VECTOR, min_size=1, max_size=3).map(b"".join)
ASKED = [0.3, -0.5, 0.1, 0.8]


def centred(vectors: list[bytes]) -> list[float]:
    """Return the cosines as the definition has them, in double precision."""
    rows = [np.frombuffer(part, np.int8).astype(float) for each in vectors for part in _parts(each)]
    units = np.array([row / max(np.linalg.norm(row), 1e-9) for row in rows])
    less, question = units - units.mean(0), np.array(ASKED) / np.linalg.norm(ASKED) - units.mean(0)
    cosines = less @ question / np.maximum(np.linalg.norm(less, axis=1), 1e-9) / max(np.linalg.norm(question), 1e-9)
    ends = np.cumsum([len(each) // DIMENSIONS for each in vectors])
    return [float(part.max()) for part in np.split(cosines, ends[:-1])]


def _parts(data: bytes) -> list[bytes]:
    return [data[at : at + DIMENSIONS] for at in range(0, len(data), DIMENSIONS)]


def is_apart(vectors: list[bytes]) -> bool:
    """Whether no vector is the mean of all, to which no angle is defined."""
    rows = np.array([np.frombuffer(part, np.int8).astype(float) for each in vectors for part in _parts(each)])
    units = rows / np.maximum(np.linalg.norm(rows, axis=1), 1e-9)[:, None]
    return bool((np.linalg.norm(units - units.mean(0), axis=1) > 0.05).all())


@given(
    st.lists(MEMORY, min_size=2, max_size=6),
    st.dictionaries(st.integers(0, 5), MEMORY, max_size=3),
    st.lists(MEMORY, max_size=40),
)
def test_memories_that_are_put_in_later_count_as_those_at_the_beginning(
    first: list[bytes], changed: dict[int, bytes], added: list[bytes]
) -> None:
    rows, now = CentredRows(first, DIMENSIONS), list(first)
    rows.cosines(np.array(ASKED, np.float32))  # what was computed for the first memories must not count for the next
    for place, data in changed.items():
        if place < len(first) and rows.put({place: data}):
            now[place] = data
    for data in added:
        assert rows.put({len(now): data})
        now.append(data)
    found = rows.cosines(np.array(ASKED, np.float32))
    assert found is not None
    assert len(found) == len(now)
    if is_apart(now):
        assert found.tolist() == pytest.approx(centred(now), abs=2e-3)


def test_a_memory_with_another_number_of_vectors_is_refused_and_changes_nothing() -> None:
    rows, asked = CentredRows([b"\x01\x02\x03\x04", b"\x04\x03\x02\x01"], DIMENSIONS), np.array(ASKED, np.float32)
    before: Any = rows.cosines(asked)
    assert not rows.put({1: b"\x01\x01\x01\x01\x02\x02\x02\x02", 2: b"\x05\x05\x05\x05"})
    assert np.array_equal(rows.cosines(asked), before)


def test_without_memories_or_for_a_vector_of_another_size_there_are_no_cosines() -> None:
    assert CentredRows([], DIMENSIONS).cosines(np.array(ASKED, np.float32)) is None
    assert CentredRows([b"\x01\x02\x03\x04"], None).cosines(np.array([1.0, 0.0], np.float32)) is None
