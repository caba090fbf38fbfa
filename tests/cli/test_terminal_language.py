"""The chat's own texts follow the language of the conversation."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import get_args

import pytest
from prompt_toolkit.utils import get_cwidth

from lamina.cli.console import wrap_text
from lamina.cli.forget import describe_report
from lamina.cli.terminal.banner import NO_KEY, OTHERS, SENT, WELCOME
from lamina.cli.terminal.calls import describe_result
from lamina.cli.terminal.language import detect_language, locale_language
from lamina.cli.terminal.turn_display import PAUSED, describe_event
from lamina.conversation.compaction.probes import Fidelity
from lamina.core.budget import What
from lamina.core.errors import (
    Aborted,
    DiskFull,
    InputError,
    LaminaError,
    LockHeld,
    LockUnsupported,
    MissingExtra,
    NewerVersion,
    ReadOnly,
    UndoOrder,
    WindowFull,
)
from lamina.core.settings.table import BY_KEY
from lamina.disk.settings_files import load_settings
from lamina.language.text import Shown, Text, Words
from lamina.maintenance.forget.forget import ForgetReport, ForgottenFile


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_welcome_is_five_lines_of_a_terminal(language: Shown) -> None:
    for answers in (NO_KEY, SENT):
        lines = [Words(language)(line, home="~/.lamina") for line in (*WELCOME, answers, OTHERS)]
        assert [len(wrap_text(line, 79, "")) for line in lines] == [1] * 5


def test_each_limit_of_the_budget_has_its_text_in_the_status_line() -> None:
    assert set(PAUSED) == set(get_args(What))
    assert not any("dollar" in text for text in PAUSED.values()), "who pays a subscription sees none"


@pytest.mark.parametrize(
    ("words", "language"),
    [
        ("记住：部署只在星期二", "zh"),
        ("Remember it", "en"),
        ("42", "zh"),
        ("明日デプロイします", "en"),
        ("用 pytest 跑 tests", "zh"),
        ("把 README.md 里的 How to run the tests 改掉", "zh"),
        ("git commit 之前先跑 lint", "zh"),
        ("I prefer tabs over spaces in 中文 comments", "en"),
        ("What does 部署 mean?", "en"),
        ("run make test", "zh"),
        ("read src/app.py", "zh"),
        ("Run the tests, please. Then commit.", "en"),
    ],
)
def test_the_language_is_that_of_the_last_message(words: str, language: Shown) -> None:
    assert detect_language(words, "zh") == language


def test_before_the_first_message_the_locale_decides() -> None:
    assert locale_language({"LANG": "zh_CN.UTF-8"}) == "zh"
    assert locale_language({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}) == "en"


def test_chinese_is_wrapped_between_characters_and_no_line_begins_with_punctuation() -> None:
    lines = wrap_text("部署只在星期二进行，因为 Friday 没有人值班。", 12, "  ")
    assert lines == ["  部署只在星", "  期二进行，", "  因为", "  Friday 没", "  有人值班。"]
    assert all(get_cwidth(line) <= 12 for line in lines)


@pytest.mark.parametrize(
    ("line", "chinese"),
    [
        (describe_event("extraction", {"names": ["a"]}, Words("zh")), "已记住：a。"),
        (
            describe_event("collapse", {"turns": 2, "tokens_before": 9_000, "tokens_after": 8}, Words("zh")),
            "已折叠 2 轮旧对话：9,000 → 8 个词元。",
        ),
        (describe_result("Grep", {}, "", {"lines": 1, "files": 1}, is_error=False), "1 个文件中的 1 行"),
        (describe_result("Read", {}, "", {"lines": 1, "more": True, "total": 2_000}, is_error=False), "1 行，共 2,000 行"),
        (describe_result("Bash", {}, "3 files", {"exit_code": 2}, is_error=True), "退出码 2：3 files"),
        (describe_result("Write", {}, "Saved the memory 'a'.", {"memory": "saved"}, is_error=False), "已保存"),
        (describe_result("Write", {}, "Added 2 bullets.", {"bullets": 2}, is_error=False), "添加了 2 条"),
        (
            describe_report(ForgetReport(done=[ForgottenFile("/a", "memories", "rewritten", 2)]), done=False)[0],
            "记忆：/a（2 处）",
        ),
        (Fidelity(2, 1, 0).sentence(), "移出的 3 个事实中，2 条仍在上下文中，1 条可用一次工具调用取回。"),
        (
            InputError("turns", Text("{wanted!r} is not a number or a range", wanted="x"), "use a form like 2 or 2-4").args[0],
            "轮次：'x' 不是序号或范围；请写成 2 或 2-4。",
        ),
        ("Nobody knows this line, 3 of 4.", "Nobody knows this line, 3 of 4."),
    ],
)
def test_a_line_that_other_code_composed_is_translated(line: str, chinese: str) -> None:
    assert Words("zh")(line) == chinese


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_a_chinese_conversation_gets_chinese_notices(tmp_path: Path) -> None:
    from .at_terminal import Terminal

    with Terminal(cwd=tmp_path) as terminal:
        terminal.prompt()
        terminal.say("记住：部署只在星期二进行")
        terminal.expect("已保存记忆：")
        terminal.expect("后台：")
        terminal.say("/remove nothing")
        terminal.expect("没有找到记忆 'nothing'。")
        terminal.expect("后台：")
        terminal.say("/compact --preview")
        terminal.expect("会")
        terminal.expect("后台：")
        terminal.say("/cost")
        terminal.expect("次调用")
        terminal.expect("后台：")
        terminal.say("run touch 新.txt")
        terminal.expect("这个命令可能不只是读取。")
        terminal.expect("\n  >")  # what is typed before the question reads is dropped on purpose
        terminal.say("n")
        terminal.expect("用户拒绝")
        terminal.expect("后台：")
        terminal.say("And now in English?")
        terminal.prompt()
        terminal.press("\x04")
        terminal.expect("Run `lamina --resume ")
        assert terminal.wait() == 0


# Data within a sentence: commands, names of keys and variables, and what has no translation.
_DATA = re.compile(r"<[^>]*>|`[^`]*`|pip install \S+|/\w+|[A-Z_]{2,}|base URL|API")


@pytest.mark.parametrize(
    "error",
    [
        Aborted(),
        WindowFull(9, 8),
        MissingExtra("x", "web"),
        UndoOrder("a", "b"),
        DiskFull("/a"),
        ReadOnly("/a"),
        LockHeld("/a"),
        LockUnsupported("/a"),
        NewerVersion("/a", 9, 1),
    ],
)
def test_an_error_of_a_chat_is_chinese_in_a_chinese_chat(error: LaminaError) -> None:
    shown = Words("zh")(error)
    assert shown != str(error)
    assert not re.search(r"[A-Za-z]{2,} [A-Za-z]{2,}", _DATA.sub("", shown)), shown


def problems_of(tmp_path: Path, data: object, name: str = "settings.json") -> list[str]:
    """The problems that Lamina finds in a settings file: the user's, or the project's."""
    home, cwd = tmp_path / "home", tmp_path / "work"
    path = home / name if name == "settings.json" else cwd / ".claude" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    cwd.mkdir(exist_ok=True)
    found = load_settings(cwd=cwd, environ={"HOME": str(tmp_path)}, home=home, managed_path=tmp_path / "none", trusted=False)
    path.unlink()
    return [finding.text for finding in found.findings]


def nested(key: str, value: object) -> object:
    for part in reversed(key.split(".")):
        value = {part: value}
    return value


def test_every_problem_with_a_setting_is_chinese_in_a_chinese_chat(tmp_path: Path) -> None:
    wrong = (
        ["?", 1],
        {"?": [1]},
        {"?=": "?"},
        1e300,
        "?",
        "\\?",
        -1,
        {"allow": [1], "deny": "?", "defaultMode": 1},
        "/",
        "/usr/lib/a/b",
    )
    keys = {(row.kind.says, row.tree): key for key, row in BY_KEY.items()}.values()
    told = [text for key in keys for raw in wrong for text in problems_of(tmp_path, nested(key, raw))]
    told += [text for key in keys for text in problems_of(tmp_path, nested(key, {"Stop": [1]}), "settings.local.json")]
    for data in ('{"a": 1, "a": 2}', "[1]", "{", "NaN", '{"a": NaN}', "[" * 200, {"policy": "a"}, {"env": {"LAMINA_HOME": "/a"}}):
        told += problems_of(tmp_path, data)
    told += problems_of(tmp_path, {"lamina": {f"k{number}": 1 for number in range(40)}})
    assert len(told) > 100
    for text in dict.fromkeys(told):
        shown = Words("zh")(text)
        prose = re.sub(r'"[^"]*"|JSON（[^）]*）', "", shown.replace(str(tmp_path), ""))  # Python explains invalid JSON
        assert not re.search(r"[A-Za-z]{2,} [A-Za-z]{2,}", _DATA.sub("", prose)), shown
