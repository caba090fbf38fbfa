"""Every format round-trips memories without loss."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.maintenance.transfer.made import bodies, front_matter_topics, texts, topics, values

from lamina.maintenance.transfer.agents_md import read_agents_md, write_agents_md
from lamina.maintenance.transfer.claude_code import read_claude_code, write_claude_code
from lamina.maintenance.transfer.codex import read_codex, write_codex
from lamina.maintenance.transfer.mcp_memory import listed, read_mcp_memory, unlisted, write_mcp_memory
from lamina.maintenance.transfer.mem0 import read_mem0, write_mem0
from lamina.maintenance.transfer.portable_topic import PortableTopic
from lamina.memory.store.index import read_entries

lists = st.lists(topics, max_size=4)


def by_name(found: tuple[PortableTopic, ...]) -> list[PortableTopic]:
    return sorted(found, key=lambda topic: msgspec.json.encode(topic))


@pytest.mark.spec("B13")
@given(st.lists(front_matter_topics, max_size=4))
def test_a_claude_code_directory_brings_back_every_memory(made: list[PortableTopic]) -> None:
    files = write_claude_code(made)
    found = read_claude_code(files)
    assert by_name(found.topics) == by_name(tuple(made))
    assert [entry.file for entry in read_entries(files.get("MEMORY.md", ""))] == [file for file in files if file != "MEMORY.md"]


@pytest.mark.spec("B13")
@given(lists)
def test_codex_notes_bring_back_every_memory(made: list[PortableTopic]) -> None:
    found = read_codex(write_codex(made))
    assert by_name(found.topics) == by_name(tuple(made))
    assert found.problems == ()


@pytest.mark.spec("B13")
@given(lists, st.sampled_from(["", "# Instructions\n\nBe brief.\n", "no line end"]))
def test_the_block_in_agents_md_brings_back_every_memory_in_order(made: list[PortableTopic], before: str) -> None:
    text = write_agents_md(made, before=before)
    assert text.startswith(before)
    if made:
        assert read_agents_md(text).topics == tuple(made)
    assert write_agents_md(made, before=text) == text


@pytest.mark.spec("B13")
@given(st.lists(topics, max_size=4, unique_by=lambda topic: topic.name))
def test_the_mcp_memory_file_brings_back_every_memory_in_order(made: list[PortableTopic]) -> None:
    assert read_mcp_memory(write_mcp_memory(made)).topics == tuple(made)


@pytest.mark.spec("B13")
@given(lists)
def test_mem0_json_brings_back_every_memory_in_order(made: list[PortableTopic]) -> None:
    assert read_mem0(write_mem0(made)).topics == tuple(made)


# The other way: what another program wrote goes out again as it came.

entities = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.just("entity"),
            "name": texts,
            "entityType": st.one_of(texts, st.sampled_from(["person", "user", "memory", "preference"])),
            "observations": st.lists(bodies, max_size=3),
        }
    ),
    max_size=4,
    unique_by=lambda row: row["name"],
)


@pytest.mark.spec("B13")
@given(entities, st.data())
def test_a_knowledge_graph_goes_out_as_it_came(rows: list[dict[str, object]], data: st.DataObject) -> None:
    if rows:
        ends = st.sampled_from([row["name"] for row in rows])
        kinds = st.one_of(texts, st.sampled_from(["knows", "a [[b]] c", ""]))
        made = st.fixed_dictionaries(
            {"type": st.just("relation"), "from": ends, "to": st.one_of(ends, texts), "relationType": kinds}
        )
        rows = rows + data.draw(st.lists(made, max_size=4))
    text = "".join(msgspec.json.encode(row).decode() + "\n" for row in rows)
    again = [msgspec.json.decode(line) for line in write_mcp_memory(read_mcp_memory(text).topics).split("\n")[:-1]]
    assert _rows(again) == _rows(rows)


def _rows(rows: list[dict[str, object]]) -> list[bytes]:
    return sorted(
        msgspec.json.encode({key: value for key, value in row.items() if key != "lamina"}, order="sorted") for row in rows
    )


mem0_rows = st.lists(
    st.fixed_dictionaries(
        {"id": texts, "memory": bodies},
        optional={
            "metadata": st.one_of(st.none(), st.dictionaries(texts.filter(lambda key: key != "lamina"), values, max_size=2)),
            "user_id": st.one_of(st.none(), texts),
            "created_at": st.sampled_from(["2024-07-26T08:29:36.032894-07:00", "2026-01-02T03:04:05Z", "yesterday", None]),
            "updated_at": st.sampled_from(["2024-07-26T08:29:36.032894-07:00", "2026-01-02T03:04:05Z", "soon", None]),
            "categories": st.lists(texts, max_size=2),
            "hash": texts,
        },
    ),
    max_size=4,
)


@pytest.mark.spec("B13")
@given(mem0_rows)
def test_mem0_rows_go_out_as_they_came(rows: list[dict[str, object]]) -> None:
    again = msgspec.json.decode(write_mem0(read_mem0(msgspec.json.encode(rows).decode()).topics))
    assert again == {"results": rows}


@given(st.lists(bodies, min_size=1))
def test_a_list_in_a_body_comes_apart_as_it_was_put_together(items: list[str]) -> None:
    assert unlisted(listed(items)) == items
