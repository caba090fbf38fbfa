"""A message list that was copied ahead of its request equals one that is made for the request."""

from __future__ import annotations

from copy import deepcopy

from hypothesis import given

from lamina.core.log import Log
from lamina.core.records import Record

from .histories import examples, grow, histories, loaded


@examples(60)
@given(histories(most=14))
def test_a_list_made_ahead_is_the_list_made_on_demand(records: list[Record]) -> None:
    log = Log()
    handed_out = []
    for at in range(len(records)):
        log.view.flat.prepare()
        grow(log, records, at)
        messages = log.view.messages()
        handed_out.append((messages, deepcopy(messages)))
        assert messages == loaded(records[: at + 1]).view.messages()
    assert all(messages == as_it_was for messages, as_it_was in handed_out)
