"""Errors, reasons and settings in Chinese: each part that has a translation, and what the user wrote as it is."""

from __future__ import annotations

import pytest

from lamina.core.errors import DiskError, InputError, LockHeld, SettingError
from lamina.core.settings import Settings
from lamina.core.settings.kinds import one_of, whole
from lamina.language.text import Text
from lamina.memory.switches import why_off
from lamina.web.words import Words


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
    assert Words("zh")(why_off(settings) or "") == chinese


@pytest.mark.parametrize(
    ("error", "chinese"),
    [
        (
            DiskError("/a/b", Text("is larger than {limit} MiB", limit=3), "check it by hand"),
            "/a/b：大于 3 MiB；请手动检查。",
        ),
        (
            InputError("lamina.budgetCalls", whole().read("x").problems[0]),
            'lamina.budgetCalls：应为不小于 0 的整数，而不是 "x"。',
        ),
        (
            SettingError(
                "model",
                Text("environment"),
                "no API key found",
                Text("set {variable}, or use offline, which needs no key", variable="A"),
            ),
            "设置 model（环境变量）：找不到 API 密钥；请设置 A，或使用不需要密钥的 offline。",
        ),
        (
            InputError("lamina.policy", one_of("lean", "classic").read("x").problems[0]),
            'lamina.policy：应为lean, classic 之一，而不是 "x"。',
        ),
        (PermissionError(13, "Permission denied", "/a/b"), "/a/b：没有权限"),
        (LockHeld("/a"), "/a：正被另一个进程使用；请先在那里关闭。"),
    ],
)
def test_an_error_is_told_in_chinese(error: Exception, chinese: str) -> None:
    assert Words("zh")(error) == chinese
    if not isinstance(error, OSError):
        assert Words("en")(error) == str(error)


def test_every_setting_is_described_in_chinese() -> None:
    words = Words("zh")
    for row, _ in Settings():
        assert words(row.help) != row.help, row.key
        assert words(Text.whole(row.kind.says)) != row.kind.says, row.key


def test_what_the_user_wrote_is_kept_as_it_is() -> None:
    words = Words("zh")
    for mine in ("use {braces}, {1} and \\1", "note: keep this; and that.", "{x}: nothing of ours", "a ## b | c"):
        assert words(mine) == mine
        assert words("Saved “{name}”.", name=mine) == f"已保存“{mine}”。"
        assert words("Saved “{name}”.", name="memory") == "已保存“memory”。"
