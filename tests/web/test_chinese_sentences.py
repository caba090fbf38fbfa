"""Every error and reason that the page may show has a Chinese form: they are collected from the code that writes them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import lamina
from lamina.core.errors import DiskError, InputError, SettingError
from lamina.core.settings import Settings
from lamina.memory.switches import why_off
from lamina.web.words import Words
from lamina.web.words.setting_texts import CHINESE, accepts_in_chinese

SOURCE = Path(lamina.__file__).parent
# The packages whose errors and reasons reach the page: it changes memories and settings, runs dreams and replays, and forgets.
SHOWN = (
    *("web", "memory/store", "memory/memory.py", "memory/guard", "layers/l6_dream", "maintenance/forget", "replay"),
    *("disk", "core/errors.py", "core/policy.py", "session/memory_binding.py", "session/own_tools.py"),
    *("agent/manual_dream.py", "providers/__init__.py", "providers/faults.py"),
)
NOT_SHOWN = (
    *("disk/home", "disk/loopback.py"),  # mail, teams, approvals and sockets of the chat
    *("disk/session_files", "disk/transcripts", "disk/user_files.py"),  # the page writes no session and no file of the user
    *("memory/store/daily_logs.py", "memory/store/scopes.py"),  # an agent writes these
)
# Sentences of the packages above that the page does not show, and why.
EXCEPT = {
    "Stopped. The conversation so far is kept, and the next message continues from there.": "no chat on the page",
    "Session 7 is closed. 7": "no chat on the page",
    "There is no new message to send. Call add_user() or add_tool_result() before before_call().": "no chat on the page",
    "The conversation has about 7 tokens and the limit is 7. Compact it (/compact), undo, or start a new session (/clear) before "
    "sending the next message.": "no chat on the page",
    "Memories are compared by words only: 7. 7": "a notice of a session",
    "Cannot undo 7 yet. Undo 7 first: it is newer and depends on 7.": "always about dreams, whose form has the word",
    "only 7 of 7 since the last dream": "the second value is `5 sessions`, which has a form",
    "7 memory is 7, so it cannot be 7": "the values are words, which have a form",
    "7 7": "a path and a reason, which has a form",
    "7 while another dream changes memories": "the value is what cannot be done; both sentences have a form",
    "use 7": "an advice that is one name",
    "is 7": "the kind of what is in the file's place; each has a form",
    "begin the file with a line ---, then name: …, description: … (one line) and type: 7, then a line ---, then the text": (
        "an answer to an agent that wrote a file without these lines"
    ),
}
# The calls that make errors and reasons, and the first argument that is a sentence.
ERRORS = re.compile(r"(?:Input|Disk|Usage|Setting)Error|PathRefused|ProtectedFile|Refused")
REASONS = frozenset(
    {"ChangeReason", "SkippedChange", "DreamStop", "DreamEnd", "LeftFile", "Freshness", "UnreadablePath", "AcceptedMemory"}
)


def said(tree: ast.Module) -> Iterator[str]:
    """Yield the sentences that a module's errors and reasons consist of, with a 7 for each value."""
    known: dict[str, str | None] = {}

    def text(node: ast.expr) -> str | None:
        match node:
            case ast.Constant(value=str() as value):
                return value
            case ast.JoinedStr(values=parts):
                return "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in parts)
            case ast.Name(id=name):
                return known.get(name)
            case _:
                return None

    for line in tree.body:
        match line:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                known[name] = text(value)
            case _:
                pass
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if ERRORS.fullmatch(name) or name in REASONS:
                given = [
                    *node.args[int(bool(ERRORS.fullmatch(name)) and name != "UsageError") :],
                    *(one.value for one in node.keywords),
                ]
                yield from (found for one in given if (found := text(one)) is not None and " " in found)
            case ast.Call(func=ast.Attribute(attr="__init__")):
                yield from (found for one in node.args if (found := text(one)) is not None and " " in found)
            case _:
                pass


def test_every_error_and_reason_that_the_page_may_show_has_a_chinese_form() -> None:
    found: dict[str, str] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if name.startswith(SHOWN) and not name.startswith(NOT_SHOWN):
            found |= dict.fromkeys(said(ast.parse(path.read_text("utf-8"))), name)
    words = Words("zh")
    lacking = {
        one: where for one, where in found.items() if all(words.told(form) == form for form in (one, one.removesuffix(".")))
    }
    assert len(found) > 150
    assert {one: where for one, where in lacking.items() if one not in EXCEPT} == {}
    assert [one for one in EXCEPT if one not in lacking] == [], "an exception that is no longer needed"


@pytest.mark.parametrize(
    ("settings", "chinese"),
    [
        (Settings(memory=False), "个人记忆已关闭：autoMemoryEnabled 为 false（argument）；请设为 true"),
        (
            Settings(memory_mode={"private": "off"}),
            "个人记忆已关闭：lamina.memoryMode 为 off（argument）；请设为 auto 或 confirm",
        ),
    ],
)
def test_why_memory_is_off_is_told_in_chinese(settings: Settings, chinese: str) -> None:
    assert Words("zh").told(str(why_off(settings))) == chinese


@pytest.mark.parametrize(
    ("error", "chinese"),
    [
        (DiskError("/a/b", "is larger than 3 MiB", "check it by hand"), "/a/b：大于 3 MiB；请手动检查。"),
        (
            InputError("lamina.budgetCalls", 'must be a whole number of at least 0, not "x"'),
            'lamina.budgetCalls：应为不小于 0 的整数，而不是 "x"。',
        ),
        (
            SettingError(
                "model", "environment, LAMINA_MODEL", "no API key found", "set A_KEY, or use offline, which needs no key"
            ),
            "设置 model（环境变量，LAMINA_MODEL）：找不到 API 密钥；请设置 A_KEY，或使用不需要密钥的 offline。",
        ),
        (
            InputError("lamina.policy", 'must be one of lean, classic, not "x"'),
            'lamina.policy：应为 lean, classic 之一，而不是 "x"。',
        ),
        (PermissionError(13, "Permission denied", "/a/b"), "/a/b：没有权限"),
        (
            DiskError("/a", "is in use by process 4 on host", "close it there first"),
            "/a：正被 host 上的进程 4 使用；请先在那里关闭。",
        ),
    ],
)
def test_an_error_is_told_in_chinese_also_if_only_its_sentence_is_known(error: Exception, chinese: str) -> None:
    words = Words("zh")
    assert words.error(error) == chinese
    assert words.told(str(error)) == chinese
    assert Words("en").error(error) == str(error)


def test_every_setting_and_every_value_it_accepts_is_described_in_chinese() -> None:
    rows = [row for row, _ in Settings()]
    assert [row.key for row in rows if row.key not in CHINESE] == []
    for says in {row.kind.says for row in rows}:
        told = accepts_in_chinese(says)
        assert "或" in told or re.search(r"的|之一|列表", told), told
        assert not re.search(r"\b(?:an?|of|that|with|from|to)\b", told), told


def test_what_the_user_wrote_is_kept_as_it_is() -> None:
    words = Words("zh")
    for mine in ("use {braces}, {1} and \\1", "note: keep this; and that.", "{x}: nothing of ours"):
        assert words.told(mine) == mine
        assert words.told(f"the user said: {mine}") == f"用户说：{mine}"
    assert words.told("merged {a} into \\2") == "把“{a}”合并到“\\2”"
