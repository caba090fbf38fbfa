"""Topic files: what is read, and what keeps its bytes when something else changes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.disk.paths.file_names import bad_text
from lamina.disk.paths.memory_paths import check_child
from lamina.language.invisible import remove_invisible, without_joiners
from lamina.memory.store.topic import (
    DESCRIPTION_CHARS,
    NAME_CHARS,
    Topic,
    file_name,
    name_key,
    one_line,
    read_topic,
    stamp_topic,
    write_topic,
)

PLAIN = """---
name: testing-db
description: Integration tests use a real database
type: feedback
---

No mocks of the database.

**Why:** a mock hid a broken migration.
"""
CLAUDE = """---
name: testing-db
description: "Integration tests: a real database"
# a comment of a person
metadata:
  node_type: memory
  type: feedback
  originSessionId: 0b1c
  modified: 2026-03-31T10:00:00.000Z
links: [a, b]
---

Body.
"""

texts = st.text()
# Invisible characters do not survive the reading of a memory.
words = st.text(st.characters(codec="utf-8", exclude_categories=("Cf", "Mn")), max_size=60)
values = st.recursive(words, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=5)


@pytest.mark.spec("S5")
def test_a_topic_is_read_with_its_three_keys_and_its_body() -> None:
    topic = read_topic("testing-db.md", PLAIN, 5.0)
    assert (topic.name, topic.description, topic.type) == ("testing-db", "Integration tests use a real database", "feedback")
    assert topic.body.startswith("No mocks")
    assert (topic.modified, topic.fields, topic.problems) == (5.0, {}, ())


@pytest.mark.spec("S5")
def test_the_type_is_read_under_metadata_and_stays_there() -> None:
    topic = read_topic("testing-db.md", CLAUDE, 5.0)
    assert topic.type == "feedback"
    assert topic.modified == 1774951200.0
    changed = write_topic(msgspec.structs.replace(topic, type="project", body="Other.\n"), before=CLAUDE)
    assert changed == CLAUDE.replace("type: feedback", "type: project").replace("Body.", "Other.")


@pytest.mark.spec("S5")
def test_an_unknown_type_reads_as_none_with_a_finding_and_is_kept() -> None:
    text = PLAIN.replace("feedback", "opinion")
    topic = read_topic("x.md", text, 0)
    assert topic.type is None
    assert topic.problems == ("unknown type 'opinion'",)
    assert "type: opinion\n" in write_topic(msgspec.structs.replace(topic, body="new"), before=text)


def test_only_what_changed_changes() -> None:
    topic = msgspec.structs.replace(read_topic("x.md", CLAUDE, 0), description="New: one")
    expected = CLAUDE.replace('"Integration tests: a real database"', '"New: one"')
    assert write_topic(topic, before=CLAUDE) == expected


def test_line_ends_of_windows_and_a_byte_order_mark_stay() -> None:
    text = "\ufeff" + CLAUDE.replace("\n", "\r\n")
    topic = read_topic("x.md", text, 0)
    assert topic.type == "feedback"
    changed = write_topic(msgspec.structs.replace(topic, description="short"), before=text)
    assert changed == text.replace('"Integration tests: a real database"', "short")


@pytest.mark.spec("S5")
def test_modified_is_stamped_only_where_a_file_has_such_metadata() -> None:
    stamp = stamp_topic(read_topic("x.md", CLAUDE, 0), now=1774951260.5)
    assert '  modified: "2026-03-31T10:01:00.500Z"\n' in write_topic(stamp, before=CLAUDE)
    assert stamp_topic(read_topic("x.md", PLAIN, 0), now=9.0) == read_topic("x.md", PLAIN, 0)


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("name: &a x\nother: *a\n", "anchor"),
        ("name: !!python/object:os.system x\n", "tag"),
        ("name: x\nname: y\n", "twice"),
        ("a: " + "[" * 2_000 + "]" * 2_000 + "\n", "nested"),
        ("a:\n\t- b\n", "YAML"),
        ("x: " + "1" * 5_000 + "\n", "closing"),
    ],
)
def test_bad_front_matter_is_no_front_matter_and_says_why(head: str, problem: str) -> None:
    text = f"---\n{head}---\nbody"
    topic = read_topic("a/topic.md", text, 1.0)
    assert (topic.name, topic.body) == ("topic", text)
    assert problem in topic.problems[0]


def test_a_name_that_yaml_would_read_as_something_else_stays_a_text() -> None:
    for name in ("no", "2026-03-31", "1e3", "null", "a: b", "- x", "#x", "'", '"', "~", "@a", "x #y", "x:", "[x]"):
        written = write_topic(Topic("f.md", name, name, "user", "b"))
        assert (read_topic("f.md", written, 0).name, read_topic("f.md", written, 0).description) == (name, name)


@given(texts, texts)
def test_reading_never_raises_and_an_unchanged_topic_is_written_as_it_was(file: str, text: str) -> None:
    for full in (text, f"---\n{text}\n---\n{text}", f"---\nname: {text}\n---\n"):
        topic = read_topic(file, full, 1.0)
        assert len(topic.name) <= NAME_CHARS
        assert write_topic(topic, before=full) == full


@given(
    words,
    words,
    st.sampled_from(["user", "feedback", "project", "reference", None]),
    texts,
    st.dictionaries(words, values, max_size=4),
)
def test_what_is_written_reads_back(name: str, description: str, kind: Any, body: str, fields: dict[str, Any]) -> None:
    fields = {key: value for key, value in fields.items() if key not in ("name", "description", "type", "metadata", "modified")}
    topic = Topic("f.md", one_line(name, NAME_CHARS) or "f", one_line(description, DESCRIPTION_CHARS), kind, body, fields)
    again = read_topic("f.md", write_topic(topic), 0.0)
    assert (again.name, again.description, again.type) == (topic.name, topic.description, topic.type)
    assert again.body == remove_invisible(topic.body)
    assert again.fields.keys() == fields.keys()


@pytest.mark.spec("S5")
@given(
    words, texts, st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), words | st.lists(words, max_size=3), max_size=4)
)
def test_unknown_keys_and_their_order_survive_a_change_of_the_rest(description: str, body: str, fields: dict[str, Any]) -> None:
    fields = {key: value for key, value in fields.items() if key not in ("name", "description", "type", "metadata", "modified")}
    before = write_topic(Topic("f.md", "f", "old", "user", "old body", fields))
    topic = read_topic("f.md", before, 0)
    new = one_line(description, DESCRIPTION_CHARS)
    after = write_topic(msgspec.structs.replace(topic, description=new, body=body), before=before)
    again = read_topic("f.md", after, 0)
    assert list(again.fields.items()) == list(topic.fields.items())
    assert (again.description, again.body) == (new, remove_invisible(body))
    kept = [line for line in before.split("---\n")[1].split("\n") if not line.startswith("description")]
    assert all(line in after.split("\n") for line in kept)


@pytest.mark.spec("G1")
@given(texts)
def test_every_name_gets_a_file_that_may_be_used(name: str) -> None:
    file = file_name(name)
    assert str(check_child("/nowhere/at/all", file)) == file
    assert file == file_name(name)
    assert len(file) <= 63


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("testing-db", "testing-db.md"),
        ("Testing DB!", "testing-db.md"),
        ("数据库 测试", "数据库-测试.md"),
        ("../../etc/passwd", "etc-passwd.md"),
        ("Größe", "grösse.md"),
        ("हिन्दी नाम", "हिन्दी-नाम.md"),
        ("notes.md", "notes.md"),
    ],
)
def test_a_file_name_shows_the_memory_it_holds(name: str, file: str) -> None:
    assert file_name(name) == file


@pytest.mark.parametrize("name", ["MEMORY", "team", "con", "", "…", "\ud800", "\u200b"])
def test_a_name_that_no_file_may_have_gets_a_digest(name: str) -> None:
    assert file_name(name).startswith("memory-")


@given(texts)
def test_one_line_is_one_line(text: str) -> None:
    line = one_line(text, 50)
    assert without_joiners(line).isprintable()
    assert len(line) <= 50
    assert one_line(line, 50) == line


# Persian "I want", a Bengali and a Sinhala conjunct, an old Malayalam chillu, a family, a health worker with a skin tone.
SPELLED = ["می\u200cخواهم", "র\u200d্যাম", "ක්\u200dරම", "അവന്\u200d", "👨\u200d👩\u200d👧", "👩🏽\u200d⚕\ufe0f", "❤\ufe0f\u200d🔥"]


@pytest.mark.parametrize("text", SPELLED)
def test_joiners_that_spell_a_word_or_an_emoji_stay(text: str) -> None:
    topic = read_topic("a.md", write_topic(Topic("a.md", f"{text} 1", f"a {text} b", "user", "Body.")), 0)
    assert (topic.name, topic.description) == (f"{text} 1", f"a {text} b")
    assert "\\u" not in write_topic(topic)
    assert name_key(text) == name_key(text.replace("\u200c", "").replace("\u200d", "")), "no two memories that look alike"
    assert bad_text(file_name(text)) is None


@pytest.mark.parametrize("joiner", ["\u200c", "\u200d", "\u200b", "\u2060", "\u202e", "\ufeff"])
@pytest.mark.parametrize(
    "text", ["pay{}pal", "{}می", "می{}", "می{} خواهم", "می{}a", "数{}据", "a{}👨", "pro{}{}d", "می{}{}خواهم", "{}"]
)
def test_invisible_characters_elsewhere_are_dropped(text: str, joiner: str) -> None:
    assert one_line(text.replace("{}", joiner), 50) == text.replace("{}", "")
