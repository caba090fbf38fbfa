"""The chat's own texts follow the language of the conversation."""

from __future__ import annotations

import ast
import json
import os
import re
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest
from prompt_toolkit.utils import get_cwidth

from lamina.cli.console import wrap_text
from lamina.cli.output import REFUSED
from lamina.cli.start import OFFLINE
from lamina.cli.terminal.banner import HINTS, NO_KEY, OTHERS, SENT, UNFINISHED, WELCOME
from lamina.cli.terminal.commands import COMMANDS, KEYS, MODE_WORDS
from lamina.cli.terminal.line_templates import LINES
from lamina.cli.terminal.loop import CUT_OFF, LEAVE
from lamina.cli.terminal.setting_templates import SETTING_LINES
from lamina.cli.terminal.texts import CHINESE, Language, detect_language, locale_language, translate, translate_line
from lamina.cli.terminal.turn_display import PAUSED
from lamina.core.budget import What
from lamina.core.settings.table import BY_KEY
from lamina.disk.settings_files import load_settings

TELLERS = {"say", "text", "tell"}
# Keys that the code passes by name, not as a literal.
NAMED = {
    *HINTS,
    *(*WELCOME, NO_KEY, SENT, OTHERS),
    *KEYS,
    *MODE_WORDS.values(),
    *(command.about for command in COMMANDS.values()),
    *PAUSED.values(),
    *(UNFINISHED, LEAVE, CUT_OFF, REFUSED, OFFLINE),
}


def fields(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def literals(root: Path) -> set[str]:
    """The texts in the chat's code that are passed to a teller, whose first argument may be a variable assigned from a literal."""
    found: set[str] = set()
    for path in [*(root / "src/lamina/cli/terminal").glob("*.py"), root / "src/lamina/cli/output.py"]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in TELLERS and node.args and isinstance(node.args[0], ast.Constant):
                    found.add(str(node.args[0].value))
    return found


def test_every_text_of_the_chat_has_a_translation_with_the_same_fields(root: Path) -> None:
    missing = (literals(root) | NAMED) - set(CHINESE)
    assert missing == set()
    for english, chinese in CHINESE.items():
        assert fields(chinese) - {"n", "m"} <= fields(english), english


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_welcome_is_five_lines_of_a_terminal(language: Language) -> None:
    for answers in (NO_KEY, SENT):
        lines = [translate(language, line, home="~/.lamina") for line in (*WELCOME, answers, OTHERS)]
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
def test_the_language_is_that_of_the_last_message(words: str, language: Language) -> None:
    assert detect_language(words, "zh") == language


def test_before_the_first_message_the_locale_decides() -> None:
    assert locale_language({"LANG": "zh_CN.UTF-8"}) == "zh"
    assert locale_language({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}) == "en"
    assert translate("zh", "Remembered: {names}.", names="a") == "已记住：a。"
    assert translate("zh", "no such text") == "no such text"


def test_chinese_is_wrapped_between_characters_and_no_line_begins_with_punctuation() -> None:
    lines = wrap_text("部署只在星期二进行，因为 Friday 没有人值班。", 12, "  ")
    assert lines == ["  部署只在星", "  期二进行，", "  因为", "  Friday 没", "  有人值班。"]
    assert all(get_cwidth(line) <= 12 for line in lines)


@pytest.mark.exhaustive
def test_every_template_of_a_line_still_has_its_words_in_the_code(root: Path) -> None:
    texts = root / "src/lamina/cli/terminal/line_templates.py"
    trees = (ast.parse(path.read_text("utf-8")) for path in (root / "src/lamina").rglob("*.py") if path != texts)
    constants = (node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    written = "\n".join(value for value in constants if isinstance(value, str))
    for english, chinese in (SETTING_LINES | LINES).items():
        pieces = re.split(r"\{\w+\}|\[[a-z |]+\]", english)
        sentences = (one.strip(" ,.;:()'") for piece in pieces for one in re.split(r"(?<=\.) |; ", piece))
        assert [one for one in sentences if one and one not in written] == [], english
        assert fields(chinese) <= fields(english), english


@pytest.mark.parametrize(
    ("line", "chinese"),
    [
        ("Saved memory: deploy-day", "已保存记忆：deploy-day"),
        ("Write changes /tmp/a.py, which is outside the project.", "Write 会改动项目之外的 /tmp/a.py。"),
        ("Changing .env needs confirmation: it contains settings and keys.", "改动 .env 需要确认：其中有设置和密钥。"),
        ("1 line in 1 file", "1 个文件中的 1 行"),
        ("3 calls, 1,234 tokens, unknown price", "3 次调用，1,234 个词元，价格未知"),
        ("1 call, 9 tokens, $0.0100", "1 次调用，9 个词元，$0.0100"),
        (
            "2 calls, 1 token read from the cache, 2,000 tokens written, 3 tokens uncached, 4 tokens output",
            "2 次调用，从缓存读取 1 个词元，写入 2,000 个词元，未缓存 3 个词元，输出 4 个词元",
        ),
        ("0 calls, no tokens", "0 次调用，没有词元"),
        ("exit code 2: 3 files", "退出码 2：3 files"),
        ("Nothing was compacted: there is nothing to summarise yet.", "没有压缩：还没有可以总结的内容。"),
        (
            "Dream completed: merged 2 (a, b), repaired the index. Use /dream undo to revert it.",
            "整理完成：合并 2 条（a, b），修复了索引。用 /dream undo 撤销。",
        ),
        (
            "Automatic memory is off for the rest of this session: it failed 3 times in a row. Last reason: boom",
            "本次会话不再自动记忆：已连续失败 3 次。最后的原因：boom",
        ),
        ("If the summary is not smaller, /compact changes nothing.", "如果摘要不更短，/compact 不做任何改动。"),
        ("  1  merged (a, b) and more", "  1  merged (a, b) and more"),
        ("Nobody knows this line, 3 of 4.", "Nobody knows this line, 3 of 4."),
        ("nobody: knows this; at all.", "nobody: knows this; at all."),
        ("turns: 'x' is not a number or a range; use a form like 2 or 2-4.", "轮次：'x' 不是序号或范围；请写成 2 或 2-4。"),
        ("Saved memory: a. A secret was removed (Anthropic key).", "已保存记忆：a。其中的密钥已去掉（Anthropic 密钥）。"),
        ("Added 1 bullet to the log of 2026-11-17.", "2026-11-17 的日志新增 1 条。"),
        ("added 2 bullets", "新增 2 条"),
        (
            "Running: 20261117T1904-bd82 since 2026-11-17 19:04, process 232, starting, 1 answer so far",
            "正在运行：20261117T1904-bd82，从 2026-11-17 19:04 起，进程 232，阶段：开始，已有 1 个回答",
        ),
        (
            "Running: 20261117T1904-bd82, but its process 232 has died; the next session repairs this, or run `lamina dream --kill`",
            "正在运行：20261117T1904-bd82，但进程 232 已不存在；下次会话会修复，或运行 `lamina dream --kill`",
        ),
        ("The dream was stopped: stopped on request; nothing was changed.", "整理没有完成：按要求停止；没有改动。"),
        ("The dream was stopped: its session ended. Memory is unchanged.", "整理已停止：会话已结束。记忆没有改动。"),
        ("failed: it exceeded the time limit for dreams; nothing was changed", "没有完成：超过整理的时限；没有改动"),
        ("Updated memory: a. A secret was removed (assigned secret).", "已更新记忆：a。其中的密钥已去掉（赋值的密钥）。"),
        ("merged 7 (a, b and 2 more)", "合并 7 条（a, b 和另外 2 个）"),
        (
            "Not restored in full: a (it is an image), b (it no longer exists).",
            "没有完整恢复：a（是图片），b（已不存在）。",
        ),
    ],
)
def test_a_line_that_other_code_composed_is_translated_by_its_template(line: str, chinese: str) -> None:
    assert translate_line("zh", line) == chinese
    assert translate_line("en", line) == line


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


@pytest.mark.parametrize(
    "reason",
    [
        "key: would consist only of a secret, which is not saved; save where the secret is kept instead.",
        "notes: no such memory exists; run `lamina memory list` to see the names.",
        "notes: is longer than 64 KiB; keep the essentials and name the place of the rest.",
        "inbox: it is full (200 proposals); run `lamina inbox` to review them.",
        "notes: memories about a person stay private; save it without the team scope.",
    ],
)
def test_a_reason_why_a_memory_was_not_saved_is_chinese_in_a_chinese_chat(reason: str) -> None:
    said = translate_line("zh", reason)
    assert said != reason
    assert "；" in said
    assert not re.search(r"secret|memory exists|proposals|essentials|private", said)


# Kinds of errors that a chat with a model shows; the page of errors has the sentences of each.
SHOWN_ERRORS = (
    *(
        "Aborted",
        "WindowFull",
        "MissingExtra",
        "UndoOrder",
        "DiskFull",
        "ReadOnly",
        "LockHeld",
        "LockUnsupported",
        "NewerVersion",
    ),
    *("AuthFailed", "PromptTooLong", "BadRequest", "RateLimited", "Overloaded", "ServerFault", "ConnectionLost", "StreamBroken"),
    "Refused",
)
# Data within a sentence: what stands for a value, commands, names of keys and variables, and what has no translation.
_DATA = re.compile(r"<[^>]*>|`[^`]*`|pip install \S+|/\w+|[A-Z_]{2,}|base URL|API")


def sentences_of(root: Path, kind: str) -> list[str]:
    page = (root / "docs/errors.md").read_text("utf-8").split(f"## `{kind}`\n")[1].split("\n## ")[0]
    return [
        row.split(" | ")[0].removeprefix("| ") for row in page.splitlines() if row.startswith("| ") and "| where |" not in row
    ]


def filled(sentence: str) -> str:
    """The sentence with a value in each field: a number where one is expected."""
    numbers = re.compile(r"\{(?:status|judged|blocking|found)\}")
    return re.sub(r"\{(\w+)\}", r"<\1>", numbers.sub("529", sentence))


@pytest.mark.parametrize("kind", SHOWN_ERRORS)
def test_an_error_of_a_chat_is_chinese_in_a_chinese_chat(root: Path, kind: str) -> None:
    for sentence in sentences_of(root, kind):
        shown = translate_line("zh", filled(sentence))
        assert not re.search(r"[A-Za-z]{2,} [A-Za-z]{2,}", _DATA.sub("", shown)), shown


@pytest.mark.parametrize(
    "notice",
    [
        "Session <a> continues as <b>, because it is open in another process.",
        "Session <a> continues as <b>, because it was last written by another program.",
        "<f>: is not writable; check its permissions or set LAMINA_HOME to a writable directory. This session is kept in memory only and cannot be resumed.",  # noqa: E501
        "<f>: is a file, not a directory; move it, or set LAMINA_HOME to a directory. This session is kept in memory only and cannot be resumed.",  # noqa: E501
        "<f>: the disk is full or the quota is used up; free some space (no existing data was lost). This session goes on without memory.",
        'Setting lamina.policy (your settings, <f>): must be one of balanced, thrifty, not "foo"; it is ignored.',
        "Setting lamina.polcy (your settings, <f>): there is no such setting; did you mean lamina.policy? It is ignored.",
        "Setting LAMINA_FOO (environment): is not a known variable; it is ignored.",
        "Settings file <f>: is not valid JSON at line 1, column 2 (<why>); the file is ignored.",
        "Settings file <f>: must contain a JSON object { … }; the file is ignored.",
        "Ignored, because this directory is not trusted: hooks, permissions.",
        "<f>: is not writable; check its permissions or set LAMINA_HOME to a writable directory. The conversation continues; 2 records wait in memory for the next write.",  # noqa: E501
        "<f>: the last 7 records could not be written and are lost. Free some space or make the directory writable, then repeat what must be kept.",  # noqa: E501
        "A memory change waits for your approval: `lamina inbox accept 12`",
        "Nothing was removed.",
        "Nothing would be removed.",
        "A memory change needs your approval. Run `lamina inbox accept 12`.",
        "The model did not write the summary: it is too short. Lamina made it by rules instead: it lists requests, files, errors and open tasks, but no conclusions. Undo <id> to restore everything.",  # noqa: E501
    ],
)
def test_a_notice_of_a_chat_is_chinese_in_a_chinese_chat(notice: str) -> None:
    shown = translate_line("zh", notice)
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
        shown = translate_line("zh", text)
        prose = re.sub(r'"[^"]*"|JSON（[^）]*）', "", shown.replace(str(tmp_path), ""))  # Python explains invalid JSON
        assert not re.search(r"[A-Za-z]{2,} [A-Za-z]{2,}", _DATA.sub("", prose)), shown
