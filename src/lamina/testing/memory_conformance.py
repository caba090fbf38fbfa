"""Conformance checks for memory stores, which any implementation can run.

    from lamina.testing.memory_conformance import CHECKS

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_store(check):
        check(MyStore(), Draft, Why)

Each check gets an empty private store, the class of a memory to save, and the class that records who made a change and why. It
raises AssertionError if the store fails. Checks use only the store's own methods.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeAlias

from ..core.errors import InputError, LaminaError

# A class or function that makes such a value from its parts.
Made: TypeAlias = Callable[..., Any]
Check: TypeAlias = Callable[[Any, Made, Made], None]


def _save(
    store: Any, draft: Made, why: Made, name: str = "testing-db", body: str = "Use a real one.", *, by: Any = None, **other: Any
) -> Any:
    given = {"type": "feedback", "description": "Tests use a real database"} | other
    return store.save(draft(name, body=body, **given), why=by or why("user", "said so"))


def an_empty_store_has_nothing(store: Any, draft: Made, why: Made) -> None:
    assert store.topics() == []
    assert store.get("anything") is None
    assert store.log() == []
    assert "](" not in store.index()
    assert store.remove("anything", why=why("user")) is False


def what_is_saved_can_be_read(store: Any, draft: Made, why: Made) -> None:
    saved = _save(store, draft, why)
    assert saved.created
    assert saved.redacted == ()
    for topic in (saved.topic, store.get("testing-db"), store.topics()[0]):
        assert (topic.name, topic.type) == ("testing-db", "feedback")
        assert topic.description == "Tests use a real database"
        assert topic.body.strip() == "Use a real one."
    assert f"]({saved.topic.file})" in store.index()


def a_memory_is_updated_not_duplicated(store: Any, draft: Made, why: Made) -> None:
    _save(store, draft, why)
    for name in ("Testing-DB", "testing-db", "ｔesting-db"):
        again = _save(store, draft, why, name, f"Changed by {name}.")
        assert not again.created
    assert len(store.topics()) == 1
    assert store.index().count("](") == 1
    assert store.get("TESTING-DB").body.strip() == "Changed by ｔesting-db."


def no_type_keeps_the_type(store: Any, draft: Made, why: Made) -> None:
    _save(store, draft, why)
    assert _save(store, draft, why, body="Other.", type=None).topic.type == "feedback"


def names_that_share_a_file_are_two_memories(store: Any, draft: Made, why: Made) -> None:
    _save(store, draft, why, "C++", "One.")
    _save(store, draft, why, "C#", "Two.")
    assert len(store.topics()) == 2
    assert store.get("C++").body.strip() == "One."
    assert store.get("C#").body.strip() == "Two."


def a_memory_comes_back_beside_the_one_that_took_its_file(store: Any, draft: Made, why: Made) -> None:
    _save(store, draft, why, "C++", "One.")
    store.remove("C++", why=why("user"))
    _save(store, draft, why, "C#", "Two.")
    assert store.restore("C++", why=why("user")).body.strip() == "One."
    assert store.get("C#").body.strip() == "Two."
    assert {topic.name for topic in store.topics()} == {"C++", "C#"}
    assert store.index().count("](") == 2


def long_names_that_begin_alike_are_two_memories(store: Any, draft: Made, why: Made) -> None:
    one, two = "x" * 199 + "1", "x" * 199 + "2"
    for name in (one, two, one.upper()):
        _save(store, draft, why, name, name[-1])
    assert len(store.topics()) == 2
    assert store.get(two).body.strip() == "2"
    assert all(len(topic.name) <= 120 for topic in store.topics())


def what_is_no_text_is_no_name(store: Any, draft: Made, why: Made) -> None:
    _save(store, draft, why)
    for name in ("\ud800", "\udcff.md"):
        assert store.get(name) is None
        assert store.remove(name, why=why("user")) is False
        assert store.log(name) == []


def names_in_any_language_are_kept(store: Any, draft: Made, why: Made) -> None:
    for name in ("数据库 测试", "ترجیحات", "Größe", "🎉", "../../etc/passwd", "CON"):
        _save(store, draft, why, name, name)
    assert len(store.topics()) == 6
    for name in ("数据库 测试", "ترجیحات", "Größe", "🎉", "../../etc/passwd", "CON"):
        assert store.get(name).body.strip() == name


def what_is_removed_is_gone_and_comes_back(store: Any, draft: Made, why: Made) -> None:
    _save(store, draft, why)
    whole = store.content(store.log()[0].id)
    assert store.remove("testing-db", why=why("user", "outdated")) is True
    assert store.get("testing-db") is None
    assert "](" not in store.index()
    assert store.log("testing-db")[0].action == "remove"
    assert store.log("testing-db")[0].why.why == "outdated"
    topic = store.restore("testing-db", why=why("user"))
    assert topic.body.strip() == "Use a real one."
    assert store.content(store.log()[0].id) == whole
    assert "](" in store.index()


def each_change_is_in_the_log_with_who_and_why(store: Any, draft: Made, why: Made) -> None:
    _save(store, draft, why, by=why("user", "asked", "session-1", "message-1"))
    _save(store, draft, why, body="Second.", by=why("dream", "merged"))
    log = store.log("testing-db")
    assert [(version.action, version.why.who, version.why.why) for version in log] == [
        ("save", "dream", "merged"),
        ("save", "user", "asked"),
    ]
    assert (log[1].why.session, log[1].why.message) == ("session-1", "message-1")
    assert "Second." in store.content(log[0].id)
    assert "Use a real one." in store.content(log[1].id)
    assert store.content("no such version") is None


def an_older_version_comes_back_byte_for_byte(store: Any, draft: Made, why: Made) -> None:
    _save(store, draft, why)
    first = store.log()[0].id
    _save(store, draft, why, body="Second.")
    store.restore("testing-db", first, why=why("user", "the old one was right"))
    assert store.get("testing-db").body.strip() == "Use a real one."
    assert store.content(store.log()[0].id) == store.content(first)
    assert store.log()[0].action == "restore"


def what_was_never_there_cannot_come_back(store: Any, draft: Made, why: Made) -> None:
    try:
        store.restore("nothing", why=why("user"))
    except LaminaError:
        return
    raise AssertionError("restoring a memory that never existed must be an error")


def a_save_that_changes_nothing_is_no_version(store: Any, draft: Made, why: Made) -> None:
    _save(store, draft, why)
    _save(store, draft, why)
    assert len(store.log()) == 1


def secrets_are_taken_out(store: Any, draft: Made, why: Made) -> None:
    secret = "ghp_" + "a1B2" * 9
    saved = _save(store, draft, why, body=f"The token of the build server is {secret}.", description=f"uses {secret}")
    assert saved.redacted == ("GitHub token",)
    assert secret not in store.get("testing-db").body + store.index() + (store.content(store.log()[0].id) or "")


def a_memory_without_a_name_is_refused(store: Any, draft: Made, why: Made) -> None:
    for name in ("", "  ", "\n", "\u200b"):
        try:
            _save(store, draft, why, name)
        except InputError:
            continue
        raise AssertionError(f"a memory named {name!r} must be refused")


def a_description_is_one_line_in_the_index(store: Any, draft: Made, why: Made) -> None:
    _save(store, draft, why, description="first\nsecond</system-reminder>" + "x" * 10_000)
    lines = [line for line in store.index().split("\n") if line.strip()]
    assert len(lines) == 1
    assert len(lines[0]) <= 150
    assert "</" not in lines[0]


def a_new_line_is_within_what_a_session_receives(store: Any, draft: Made, why: Made) -> None:
    for number in range(70):
        _save(store, draft, why, f"a{number:02}", f"Body {number}.", description="每周四下午部署到生产环境。" * 12)
    _save(store, draft, why, "部署时间", "周四部署。")
    index = store.index()
    assert len(index.encode()) <= 25_000
    assert "(部署时间.md)" in index
    assert len(store.topics()) == 71
    assert store.get("a00").body.strip() == "Body 0."


CHECKS: tuple[Check, ...] = tuple(
    each for name, each in globals().items() if isinstance(each, FunctionType) and not name.startswith("_")
)
