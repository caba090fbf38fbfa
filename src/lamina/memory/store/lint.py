"""What is wrong with memories as texts: descriptions that help nobody choose, memories that say the same (S5).

Owns the judgement, not the words of a report. Invariant: the same topics give the same problems; the work grows with what is there, not
with its square. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from .secrets import redact
from .topic import Topic, same_name

# Words that could stand in the description of any memory: what is left without them is what it says.
_OF_ANY = """a an the this that these some any various misc miscellaneous general other important useful relevant new old my our your
    note notes memory memories info information detail details data stuff thing things item items summary overview description
    project user feedback reference file topic update updates todo tbd n na none about of on for from to in and or with is are
    remember context knowledge content text document documentation"""
_EMPTY_WORDS = frozenset(_OF_ANY.split())
# 笔记 notes, 备注 remarks, 记录 record, 信息 information, 说明 explanation, 内容 content, …
_EMPTY_HAN = re.compile(
    "笔记|备注|记录|信息|资料|重要|其他|其它|杂项|说明|内容|项目|用户|反馈|参考|记忆|事项|相关|关于|一些|的|メモ|記録|情報|その他|について|메모|기록|정보|기타"
)
_WORD = re.compile(r"\w+")


def is_vague(description: str, name: str) -> bool:
    """Whether a description says nothing that tells this memory from any other. An empty one is another matter."""
    if not description:
        return False
    if same_name(description) == same_name(name) and len(_WORD.findall(description)) < 3 and description.isascii():
        return True
    words = _WORD.findall(_EMPTY_HAN.sub(" ", description.casefold()))
    return all(word in _EMPTY_WORDS or word.isdecimal() for word in words)


# The shortest known form of a secret; shorter ones stand in an address or behind a word that gives them away.
LONG_ENOUGH = 15
_LONG = re.compile(rf"\S{{{LONG_ENOUGH}}}")
GIVEAWAYS = (
    "://",
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "credential",
    "bearer",
    "basic",
    "密码",
    "密钥",
    "口令",
    "令牌",
    "パスワード",
    "비밀번호",
)


def secrets_in(text: str) -> tuple[str, ...]:
    """The kinds of secrets in a text. Most texts hold nothing long and no such word, and are done at once."""
    lower = text.lower()
    if _LONG.search(text) is None and not any(word in lower for word in GIVEAWAYS):
        return ()
    return redact(text).kinds


class Same(NamedTuple):
    """Memories that are alike in one respect, as positions; the one to keep first."""

    positions: tuple[int, ...]


def same_names(topics: Sequence[Topic]) -> list[Same]:
    return _groups(topics, lambda topic: same_name(topic.name))


def same_descriptions(topics: Sequence[Topic]) -> list[Same]:
    return _groups(topics, lambda topic: " ".join(topic.description.casefold().split()) or None)


def same_bodies(topics: Sequence[Topic]) -> list[Same]:
    return _groups(topics, lambda topic: topic.body.strip() or None)


def identical(topics: Sequence[Topic]) -> list[Same]:
    """All but the name and the date is the same: one of them is enough."""
    return _groups(
        topics, lambda topic: (topic.body.strip(), topic.description, topic.type, _fields(topic)) if topic.body.strip() else None
    )


def _fields(topic: Topic) -> str:
    metadata = topic.fields.get("metadata")
    if not isinstance(metadata, dict):
        return repr(sorted(topic.fields.items(), key=str))
    # Which session wrote it, and when, is no part of what it says.
    said = {key: value for key, value in metadata.items() if key not in ("modified", "originSessionId")}
    return repr(sorted((topic.fields | {"metadata": said}).items(), key=str))


def _groups(topics: Sequence[Topic], key: Callable[[Topic], Hashable | None]) -> list[Same]:
    found: dict[Hashable, list[int]] = {}
    for position, topic in enumerate(topics):
        if (value := key(topic)) is not None:
            found.setdefault(value, []).append(position)
    return [Same(tuple(positions)) for positions in found.values() if len(positions) > 1]


def first_kept(group: Same, topics: Sequence[Topic], listed: Iterable[str]) -> Same:
    """In the order in which one would keep them: in the index, older, the file that sorts first."""
    known = set(listed)

    def rank(position: int) -> tuple[bool, float, str]:
        topic = topics[position]
        return topic.file not in known, topic.modified, topic.file

    return Same(tuple(sorted(group.positions, key=rank)))
