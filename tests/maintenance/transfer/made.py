"""Hypothesis strategies for memories: any text a file can contain, any field JSON can express."""

from __future__ import annotations

from hypothesis import strategies as st

from lamina.maintenance.transfer.portable_topic import PortableTopic
from lamina.memory.store.topic import KINDS, one_line

# What UTF-8 can carry.
# Invisible characters do not survive the reading of a memory.
texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cf", "Mn")), max_size=60)
# Pieces that the formats give a meaning to.
tricky = st.sampled_from(
    [
        "# Task Group: x",
        "## heading",
        "<!-- lamina {} -->",
        "<!-- \\lamina {} -->",
        "<!-- /lamina:memories -->",
        "<!-- lamina:memories -->",
        "- item",
        "- → knows [[b]]",
        "\\→ not one [[b]]",
        "  - nested",
        "---",
        "```",
        "-->",
        "\r\n",
        "\n",
        "",
        "scope: all",
        '{"type":"entity"}',
    ]
)
bodies = st.one_of(texts, st.lists(st.one_of(texts, tricky), max_size=6).map("\n".join))
names = st.one_of(
    texts.filter(bool), st.sampled_from(["MEMORY", "../../etc/passwd", "a\nb", " x ", "CON", "用户", "con.md", "#"])
)
dates = st.one_of(st.none(), st.integers(0, 4_000_000_000_000).map(lambda milliseconds: milliseconds / 1_000))
plain = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), texts)
values = st.recursive(
    plain, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)), max_leaves=5
)
fields = st.dictionaries(
    st.one_of(texts, st.sampled_from(["entityType", "relations", "mem0", "metadata", "lamina", "name", "type"])),
    values,
    max_size=3,
)
topics = st.builds(
    PortableTopic,
    name=names,
    description=texts,
    type=st.sampled_from([None, *KINDS]),
    body=bodies,
    modified=dates,
    fields=fields,
)

# Front matter: names and descriptions are one line, values are texts, and all of it is short.
_keys = st.sampled_from(["node_type", "originSessionId", "tags", "evidence", "x-note"])
_words = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn", "Co", "Cf", "Mn")), max_size=20)
_front = st.dictionaries(_keys, st.one_of(_words, st.lists(_words, max_size=2)), max_size=3)
front_matter_topics = st.builds(
    PortableTopic,
    name=names.map(lambda text: one_line(text, 120)).filter(bool),
    description=texts.map(lambda text: one_line(text, 400)),
    type=st.sampled_from([None, *KINDS]),
    body=bodies,
    modified=dates,
    fields=st.one_of(_front, st.builds(lambda rest, inner: rest | {"metadata": inner}, _front, _front.filter(bool))),
)
