"""A Chinese chat shows no English sentence: every command, its errors, and what runs beside it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from lamina.cli.terminal.commands import COMMANDS

pytestmark = [pytest.mark.exhaustive, pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")]

# Each line is typed; `n` and `y` answer questions of the line before.
TYPED = """
你好
记住：部署只在星期二进行，因为周五没人值班
记住：部署只在星期四进行
记住：数据库密码是 hunter22xyz!
你还记得什么？
run touch 新.txt
n
read missing.py
search 没有 in ./没有
write a.txt: 内容
y
/help
/context
/cost
/memory
/memory 没有
/remember
/remember 我们用 pnpm
/remove
/remove 没有
/remove 我们用-pnpm
/forget
/forge 值班
/forget 值班
n
!
!echo 一二三
/search
/search 部署
/search 没有的东西哦
/dream status
/dream
/dream undo 1234
/dream undo
/dream kill
/dream 睡
/model
/model nothing
/model openai:gpt-x
/resume 没有
/resume
/pin
/pin 不要动 main
/snip 99
/snip abc
/expand
/expand 99999
/permissions
/permissions 没有
/permissions read-only
run touch 再.txt
/permissions ask
/retry
/undo 999
记住：发布由小组审批
/undo
n
/compact --preview
/compact
/snip
/remember 压缩之后还能记住
/undo
n
/没有
/nothing
/dreamm
/clear
/undo
"""
# Data and names: paths, quoted and typed text, placeholders, names of tools, keys and variables.
_DATA = re.compile(
    r"`[^`]*`|“[^”]*”|'[^']*'|\S*/\S*|\[[^\]]*\]|\b[A-Z_]{2,}\b|Ctrl-\w|\S*:MODEL|Bash\([^)]*\)"
    r"|lamina sessions show \S+ --turn \d+|Grep '[^']*'(?: in \S+)?|(?:Read|Write|Bash|Glob) \S+|cat, cut[\w, …]*|> .*"
)
# Two English words with a space between are the beginning of a sentence.
_ENGLISH = re.compile(r"\b[A-Za-z]{2,} [A-Za-z]{2,}\b")
_PROMPT = re.compile(r">[^\n>]*\n[\s\x08]*上下文[^\n]*后台：")
_QUESTION = re.compile(r"应该怎么做\s*\n\s+>|\(y/n\) ?")


@pytest.mark.spec("B15", "O1")
def test_a_chinese_chat_shows_no_english_sentence_in_any_command(tmp_path: Path) -> None:
    from .at_terminal import Terminal

    typed = TYPED.split("\n")[1:-1]
    assert {f"/{name}" for name in COMMANDS} - {line.split()[0] for line in typed} == {"/exit"}
    with Terminal(cwd=tmp_path, columns=100, LC_ALL="zh_CN.UTF-8", PYTHONIOENCODING="utf-8") as terminal:
        terminal.expect_match(_PROMPT)
        for line, after in zip(typed, [*typed[1:], ""], strict=True):
            terminal.say(line)
            terminal.expect_match(_QUESTION if after in ("y", "n") else _PROMPT)
        shown = terminal.text
    english = [row.strip() for row in shown.split("\n") if _ENGLISH.search(_DATA.sub("", row))]
    assert "\n".join(english) == ""
