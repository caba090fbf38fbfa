"""Ids."""

from __future__ import annotations

from uuid import RFC_4122, UUID

from lamina.core.records import new_id


def test_an_id_is_a_random_uuid_in_its_usual_spelling() -> None:
    for made in (new_id() for _ in range(200)):
        read = UUID(made)
        assert (str(read), read.version, read.variant) == (made, 4, RFC_4122)


def test_no_two_ids_are_the_same_and_every_digit_of_the_variant_occurs() -> None:
    made = [new_id() for _ in range(2_000)]
    assert len(set(made)) == len(made)
    assert {one[19] for one in made} == set("89ab")
