"""Reading the files of other programs as memories."""

from __future__ import annotations

import pytest

from lamina.core.errors import InputError
from lamina.maintenance.transfer.agents_md import read_agents_md, write_agents_md
from lamina.maintenance.transfer.claude_code import NOTES, merged_index, read_claude_code, write_claude_code
from lamina.maintenance.transfer.codex import read_codex, write_codex
from lamina.maintenance.transfer.mcp_memory import read_mcp_memory
from lamina.maintenance.transfer.mem0 import read_mem0
from lamina.maintenance.transfer.portable_topic import (
    Imported,
    PortableTopic,
    format_date,
    kind_of,
    make_description,
    make_name,
    parse_date,
)

TOPIC = """---
name: testing-db
description: Integration tests use a real database
metadata:
  node_type: memory
  type: feedback
  originSessionId: 0f7e
  modified: 2026-03-31T09:00:00.000Z
---

Integration tests run against a real database.

**Why:** a mock hid a broken migration.
"""


@pytest.mark.spec("B13", "S5")
def test_a_claude_code_memory_keeps_name_type_date_and_what_we_do_not_know() -> None:
    found = read_claude_code({"MEMORY.md": "- [testing-db](testing-db.md) — real database\n", "testing-db.md": TOPIC})
    [topic] = found.topics
    assert (topic.name, topic.type, topic.description) == ("testing-db", "feedback", "Integration tests use a real database")
    assert topic.modified == 1774947600
    assert topic.body.startswith("Integration tests run")
    assert topic.fields == {"metadata": {"node_type": "memory", "type": "feedback", "originSessionId": "0f7e"}}
    assert found.problems == ()


def test_a_memory_without_front_matter_is_named_by_its_file_and_dated_by_it() -> None:
    found = read_claude_code({"team/deploy-day.md": "Deploys happen on Tuesdays.\n"}, times={"team/deploy-day.md": 12.5})
    assert found.topics == (PortableTopic("deploy-day", body="Deploys happen on Tuesdays.\n", modified=12.5),)
    assert found.problems == ("team/deploy-day.md: no front matter",)


def test_an_index_with_notes_of_its_own_becomes_a_memory() -> None:
    index = "# Memory\n\n- [gone](gone.md) — away\n\n## Style\nTabs, not spaces.\n"
    found = read_claude_code({"MEMORY.md": index})
    assert found.topics == (PortableTopic(NOTES, "Memory", body="# Memory\n\n## Style\nTabs, not spaces."),)
    assert found.problems == ("MEMORY.md refers to 'gone.md', which does not exist",)
    assert read_claude_code({"MEMORY.md": "# Memory\n\n- [a](a.md) — x\n", "a.md": TOPIC}).topics[1:] == ()


def test_daily_logs_and_other_files_are_no_memories() -> None:
    assert read_claude_code({"logs/2026/01/02.md": "x", "notes.txt": "y"}).topics == ()


@pytest.mark.spec("B13", "G1")
def test_a_name_that_climbs_becomes_a_plain_file_name() -> None:
    names = ["../../etc/passwd", "/etc/passwd", "a/b", "MEMORY", "memory.md", "CON", "..", "x\x00y", "用户"]
    files = write_claude_code([PortableTopic(name, body="x") for name in names])
    assert len(files) == len(names) + 1
    assert all("/" not in file and not file.startswith(".") and file.endswith(".md") for file in files)
    notes = write_codex([PortableTopic(name) for name in names])
    assert len(notes) == len(names)
    assert all(file.startswith("extensions/ad_hoc/notes/1970-01-01T00-00-00-") and file.count("/") == 3 for file in notes)


def test_two_names_that_give_one_file_get_two() -> None:
    assert list(write_claude_code([PortableTopic("A b"), PortableTopic("a-B"), PortableTopic("a b!")])) == [
        "MEMORY.md",
        "a-b.md",
        "a-b-2.md",
        "a-b-3.md",
    ]


def test_lines_join_an_index_that_is_there() -> None:
    before = "# Mine\n\n- [old](old.md) — kept\n"
    after = "- [new](new.md) — added\n- [other](other.md) — not\n"
    assert merged_index(before, after, without={"other.md"}) == "# Mine\n\n- [new](new.md) — added\n- [old](old.md) — kept\n"


HANDBOOK = """# Task Group: shop checkout

scope: How the checkout is built and reviewed.
applies_to: cwd=/repos/shop; reuse_rule=safe

## User preferences

- wants the plan before the change [Task 1]

# Task Group: website copy

scope: Wording only.

## Reusable knowledge

- informal register
"""
SUMMARY = """v1

## User Profile

Backend engineer.

## User preferences

- short answers

## General Tips

- run the linter

## What's in Memory

- shop checkout
"""


@pytest.mark.spec("B13")
def test_codex_memories_come_from_the_handbook_the_summary_and_the_notes() -> None:
    files = {
        "MEMORY.md": HANDBOOK,
        "memory_summary.md": SUMMARY,
        "raw_memories.md": "…",
        "rollout_summaries/a.md": "…",
        "rollout_summaries/b.md": "…",
        "extensions/ad_hoc/instructions.md": "how to",
        "extensions/ad_hoc/notes/20260718-114309-call-me-sam.md": "Call me Sam.\n",
        "extensions/ad_hoc/notes/2026-07-18T11-43-09-empty.md": "\n",
    }
    found = read_codex(files, times={"MEMORY.md": 5.0})
    assert [(topic.name, topic.type) for topic in found.topics] == [
        ("shop checkout", "project"),
        ("website copy", "project"),
        ("Codex: User Profile", "user"),
        ("Codex: User preferences", "feedback"),
        ("Codex: General Tips", None),
        ("call me sam", None),
    ]
    shop, *_, note = found.topics
    assert shop.description == "How the checkout is built and reviewed."
    assert shop.body.startswith("applies_to: cwd=/repos/shop")
    assert shop.body.endswith("[Task 1]")
    assert shop.modified == 5.0
    assert note == PortableTopic("call me sam", "Call me Sam.", None, "Call me Sam.", 1784374989.0)
    assert found.problems == (
        "extensions/ad_hoc/notes/2026-07-18T11-43-09-empty.md is empty",
        "raw_memories.md (1 file) contains raw notes of single sessions and was skipped",
        "rollout_summaries (2 files) contains accounts of single sessions and was skipped",
    )


def test_a_note_for_codex_can_be_read_by_a_person() -> None:
    topic = PortableTopic("testing-db", "Real database", "feedback", "Tests use a real database.", 1774947600.0)
    [(file, text)] = write_codex([topic]).items()
    assert file == "extensions/ad_hoc/notes/2026-03-31T09-00-00-testing-db.md"
    comment = '<!-- lamina {"description":"Real database","type":"feedback","modified":"2026-03-31T09:00:00.000Z"} -->'
    assert text == f"# testing-db\n{comment}\n\nTests use a real database.\n"


AGENTS = """# Shop

Be brief.

## Build

Run `make`.

```sh
## not a heading
```

## References

- the wiki
"""


@pytest.mark.spec("B13", "S8")
def test_sections_of_instructions_become_memories_and_a_sentence_says_that_is_a_copy() -> None:
    found = read_agents_md(AGENTS)
    assert [(topic.name, topic.type) for topic in found.topics] == [
        ("Shop", "feedback"),
        ("Build", "feedback"),
        ("References", "reference"),
    ]
    assert found.topics[1].body == "Run `make`.\n\n```sh\n## not a heading\n```"
    assert len(found.problems) == 1
    assert read_agents_md(" \n") == Imported()


def test_the_block_is_replaced_in_place_and_goes_with_its_last_memory() -> None:
    first = write_agents_md([PortableTopic("a", body="one")], before=AGENTS) + "after\n"
    second = write_agents_md([PortableTopic("b", body="two")], before=first)
    assert second.startswith(AGENTS)
    assert second.endswith("after\n")
    assert [topic.name for topic in read_agents_md(second).topics] == ["b"]
    assert write_agents_md([], before=first) == AGENTS + "\nafter\n"


def test_a_section_whose_comment_was_damaged_is_still_a_memory() -> None:
    text = write_agents_md([PortableTopic("a", "d", "user", "one")]).replace('"type":', '"type"')
    found = read_agents_md(text)
    assert found.topics == (PortableTopic("a", body="one"),)
    assert "not valid JSON" in found.problems[0]


GRAPH = """{"type":"entity","name":"ann","entityType":"person","observations":["Leads the audit","Works\\nlate"]}
not json

{"type":"entity","name":"billing","entityType":"project","observations":[]}
{"type":"relation","from":"ann","to":"billing","relationType":"works on"}
{"type":"relation","from":"nobody","to":"ann","relationType":"knows"}
{"type":"entity","name":"odd","entityType":"x","observations":[1]}
"""


@pytest.mark.spec("B13")
def test_entities_become_memories_with_their_observations_and_relations() -> None:
    found = read_mcp_memory(GRAPH)
    assert found.topics == (
        PortableTopic(
            "ann",
            "Leads the audit",
            None,
            "- Leads the audit\n- Works\n  late\n- → works on [[billing]]",
            None,
            {"entityType": "person"},
        ),
        PortableTopic("billing", "", "project", ""),
    )
    assert found.problems == (
        "line 2 is not valid JSON and was skipped",
        "line 7: neither an entity (with name, entityType and observations) nor a relation",
        "relation 'nobody' → 'ann': entity 'nobody' not found",
    )


def test_a_graph_in_one_document_is_read_too() -> None:
    text = '{"entities":[{"name":"a","entityType":"user","observations":["x"]}],"relations":[{"from":"a","to":"b","relationType":"r"}]}'
    assert read_mcp_memory(text).topics == (PortableTopic("a", "x", "user", "- x\n- → r [[b]]"),)


MEM0 = """{"results": [
  {"id": "892d", "memory": "Prefers dark mode in every editor. Always.", "hash": "ab", "metadata": {"category": "preference"},
   "created_at": "2024-07-26T08:29:36.032894-07:00", "updated_at": null, "user_id": "dev"},
  {"id": "1", "text": "Uses Postgres", "categories": ["technology", "reference"]},
  {"id": "2"}, 3
], "relations": [{"source": "a"}]}"""


@pytest.mark.spec("B13")
def test_mem0_memories_get_a_name_from_their_words_and_keep_the_rest() -> None:
    found = read_mem0(MEM0)
    first, second = found.topics
    assert (first.name, first.type) == ("Prefers dark mode in every editor. Always", "user")
    assert first.modified == 1722007776.032894
    assert first.fields["mem0"]["user_id"] == "dev"
    assert (second.name, second.type, second.body) == ("Uses Postgres", "reference", "Uses Postgres")
    assert found.problems == (
        "results[2] has no text under `memory` and was skipped",
        "results[3] has no text under `memory` and was skipped",
        "mem0's graph of relations was skipped; each memory states its fact itself",
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"results": [\n {"id": 1},\n oops ]}', "The mem0 file: is not valid JSON at line 3; correct it or export it again."),
        ('{"results": [', "The mem0 file: is not valid JSON at line 1; correct it or export it again."),
        ("[" * 100_000, "The mem0 file: is nested too deeply; correct it or export it again."),
        ('{"a": 1}', "The mem0 file: has no list of memories; it should be a list or have one under `results`."),
    ],
)
def test_json_that_is_wrong_is_refused_with_its_line(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        read_mem0(text)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("user", "user"),
        (" Feedback ", "feedback"),
        ("preference", "user"),
        ("LINK", "reference"),
        ("person", None),
        ("", None),
        (3, None),
    ],
)
def test_types_of_others_are_mapped_and_unknown_ones_are_none(word: object, kind: str | None) -> None:
    assert kind_of(word) == kind


def test_a_description_is_the_first_line_that_says_something() -> None:
    assert make_description("\n---\n## Title here\nmore") == "Title here"
    assert make_description("- x" * 200)[-1] == "…"
    assert make_description("") == ""
    assert make_name("Uses PostgreSQL for everything that has to be kept for longer than one day.") == (
        "Uses PostgreSQL for everything that has to be kept for"
    )
    assert make_name("字" * 100) == "字" * 60


def test_dates_go_there_and_back_and_nonsense_is_none() -> None:
    for text in ("2026-03-31T09:00:00.000Z", "2026-03-31T09:00:00.123456Z"):
        assert format_date(parse_date(text) or 0) == text
    assert parse_date("2026-03-31") == 1774915200
    assert [parse_date(value) for value in ("", "x" * 50, "0001-01-01T00:00:00", None, 5)] == [None] * 5
    assert [format_date(value) for value in (float("nan"), float("inf"), 1e30, -1)] == [None] * 4
