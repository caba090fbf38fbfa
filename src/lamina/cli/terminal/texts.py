"""The texts of the chat and of `-p` in Chinese, and which language a conversation has.

Owns the table of the chat's own texts. The key is the English text as the code has it, with the same fields in braces; a Chinese text may
leave out a field, such as an English plural, and use `n` for the number in it. A text without a translation is shown in English.
Lines that other code composed are recognized by the templates of `line_templates`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal, TypeAlias

from ...language.detection import language_of
from .line_templates import LINES
from .setting_templates import SETTING_LINES

Language: TypeAlias = Literal["en", "zh"]

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")

# `read a.py` and `run make test` are the same in every language; a longer text is a sentence.
_COMMAND = re.compile(
    r"(?:read|list|search|grep|find|run|write|replace|todo|cat|ls|pwd|git)\b[^.?!]{0,80}(?:\.\w[^?!]{0,40})*",
)

CHINESE: dict[str, str] = {
    # The running turn
    "thinking": "思考中",
    "waiting for the model": "等待模型",
    "answering": "回答中",
    "waiting to try again": "等待重试",
    "compacting": "压缩中",
    "tidying up memory": "整理记忆中",
    "searching": "搜索中",
    "searching the stored files": "搜索已存文件",
    "removing it": "删除中",
    "finishing {work}": "正在完成 {work}",
    "Ctrl-C stops": "Ctrl-C 停止",
    "{error} Retry {attempt} of {most} in {seconds} s.": "{error} {seconds} 秒后重试（第 {attempt} 次，最多 {most} 次）。",
    # What the layers did
    "Compacted ({by}): {before} to {after} tokens. Use /undo to revert it.": (
        "已压缩（{by}）：{before} → {after} 个词元。用 /undo 撤销。"
    ),
    "Folded {turns}: {before} to {after} tokens.": "已折叠 {n} 轮旧对话：{before} → {after} 个词元。",
    "Shortened {answers}, about {saved} tokens.": "已缩短 {n} 条旧回答，约 {saved} 个词元。",
    "Cleared {results}, about {saved} tokens.": "已清除 {n} 条旧结果，约 {saved} 个词元。",
    "Recalled from memory: {names}.": "已从记忆中调出：{names}。",
    "Remembered: {names}.": "已记住：{names}。",
    "Background agent ({description}): {status}.": "后台代理（{description}）：{status}。",
    "Not compacted: {why}.": "未压缩：{why}。",
    # The end of a turn
    "Press Ctrl-C again, or Ctrl-D, to leave.": "再按一次 Ctrl-C 或按 Ctrl-D 离开。",
    "The answer was cut off at the output limit. Ask the model to continue.": "回答达到输出上限而中断。请让模型继续。",
    "The answer was cut off at the output limit.": "回答达到输出上限而中断。",
    "The model declined to answer.": "模型拒绝回答。",
    "Stopped.": "已停止。",
    "A hook ended the turn: {why}": "一个钩子结束了本轮：{why}",
    "Not finished after {calls}. Continue?": "调用模型 {n} 次后仍未完成。继续吗？",
    "The last turn was not finished. Use /retry to continue it.": "上一轮没有完成。用 /retry 继续。",
    "Last messages of this session:": "本次会话的最后几条消息：",
    "Run `lamina --resume {id}` to continue this session.": "运行 `lamina --resume {id}` 继续本次会话。",
    "Run `lamina team join {team} {member}` to continue this session.": "运行 `lamina team join {team} {member}` 继续本次会话。",
    # The first lines
    "/help for commands": "/help 列出命令",
    "Ctrl-C to stop": "Ctrl-C 停止",
    "Ctrl-D to leave": "Ctrl-D 离开",
    "session {id}": "会话 {id}",
    "Welcome. Lamina is a chat that remembers what you tell it, for the next chat.": (
        "欢迎。Lamina 是会记忆的对话：你告诉它的事，下次对话仍然记得。"
    ),
    "Say `Remember: our tests use a real database`, and later ask about it.": "说 `记住：我们的测试使用真实数据库`，以后再问它。",
    "/memory lists what is kept: plain files in {home}. /forget deletes for good.": (
        "/memory 列出已保存的内容，是 {home} 里的普通文件。/forget 永久删除。"
    ),
    "An offline stand-in answers until you set ANTHROPIC_API_KEY or OPENAI_API_KEY.": (
        "设置 ANTHROPIC_API_KEY 或 OPENAI_API_KEY 之前，由离线替身回答。"
    ),
    "Your messages, and memories that fit them, are sent to the model's provider.": "你的消息和相关的记忆会发送给模型服务。",
    "`lamina --help` lists the other commands.": "`lamina --help` 列出其他命令。",
    "No provider is configured, so the offline stand-in answers. Set ANTHROPIC_API_KEY or OPENAI_API_KEY to use a model.": (
        "没有配置模型服务，由离线替身回答。设置 ANTHROPIC_API_KEY 或 OPENAI_API_KEY 以使用模型。"
    ),
    # The status line
    "context {percent}% left": "上下文剩余 {percent}%",
    " (nearly full)": "（快满了）",
    " (filling up)": "（渐满）",
    " (full: /compact, /clear or /undo)": "（已满：/compact、/clear 或 /undo）",
    "cache {rate}": "缓存 {rate}",
    "{tokens} tokens": "{tokens} 个词元",
    "{tokens} read": "读取 {tokens}",
    "{tokens} written": "写入 {tokens}",
    "{tokens} uncached": "未缓存 {tokens}",
    "{tokens} output": "输出 {tokens}",
    "mode {mode}": "模式 {mode}",
    "background: {work}": "后台：{work}",
    "none": "无",
    "paused until tomorrow (number of calls)": "暂停到明天（调用次数已用完）",
    "paused until tomorrow (tokens)": "暂停到明天（词元已用完）",
    "paused until tomorrow (cost)": "暂停到明天（费用额度已用完）",
    # Questions
    "Please answer y or n.": "请回答 y 或 n。",
    "y yes": "y 同意",
    "n no, or type what to do instead": "n 拒绝，或写下应该怎么做",
    "a always allow: {rule}": "a 总是允许：{rule}",
    "Answer y or a alone, or n followed by instructions for the model.": "只回答 y 或 a，或在 n 后面写下给模型的指示。",
    "No rule can be saved for this call: answer y or n.": "这次调用不能保存规则：请回答 y 或 n。",
    "Files in {cwd} want to set:": "{cwd} 里的文件想设置：",
    "Do you trust them? Hooks are commands that run on your machine.": "信任它们吗？钩子是会在这台机器上运行的命令。",
    "The files changed while you were asked, so they are ignored. Start again to review them.": (
        "询问期间文件有改动，已忽略。请重新启动再查看。"
    ),
    "Your answer could not be saved, so the files are ignored: {error}": "你的回答无法保存，这些文件已忽略：{error}",
    "Your answer could not be saved: {error}": "你的回答无法保存：{error}",
    "{file} is outside the project.": "{file} 在项目之外。",
    "{file} is outside the project, included by {by}.": "{file} 在项目之外，由 {by} 引入。",
    "Send it to the model as part of the instructions?": "把它作为说明的一部分发送给模型吗？",
    "No home directory found. Set LAMINA_HOME.": "找不到主目录。请设置 LAMINA_HOME。",
    "{call} and {n} more": "{call} 和另外 {n} 个",
    # Commands
    "Unknown command /{name}. {hint}": "没有命令 /{name}。{hint}",
    "Did you mean {names}?": "是不是 {names}？",
    "Use /help to list the commands.": "用 /help 列出命令。",
    "Started session {id}.": "已开始会话 {id}。",
    " Use /resume {id} to go back to the previous one.": "用 /resume {id} 回到前一个会话。",
    "Resumed session {id}.": "已恢复会话 {id}。",
    "This session is already open.": "这个会话已经打开。",
    "No other sessions in this directory.": "这个目录里没有其他会话。",
    "Number or id of the session (Enter for none): ": "会话的序号或 id（直接回车则不选）：",
    "Model: {model}. Use /model NAME to change it: anthropic:MODEL, openai:MODEL or offline.": (
        "模型：{model}。用 /model NAME 更换：anthropic:MODEL、openai:MODEL 或 offline。"
    ),
    "Switched to {model}. Its first request cannot use the cache.": "已换成 {model}。它的第一个请求不能使用缓存。",
    "No pins. Use /pin TEXT to keep a text through every compaction.": (
        "没有固定的文字。用 /pin TEXT 让一段文字在每次压缩后保留。"
    ),
    "Pinned. The text is kept word for word through every compaction.": "已固定。每次压缩都会原样保留这段文字。",
    "Nothing to undo.": "没有可以撤销的。",
    "Nothing to continue: the last turn is finished.": "没有需要继续的：上一轮已经完成。",
    "Undid {kind} {id}. The model now sees about {tokens} tokens.": "已撤销 {kind} {id}。模型现在看到约 {tokens} 个词元。",
    'Undid "{words}", {answers}{calls}.': "已撤销“{words}”（{n} 条回答，{m} 次工具调用）。",
    " Changed files stay changed.": "已改动的文件保持改动。",
    " What its commands changed stays changed.": "其命令所做的改动保持不变。",
    "The turn also changed memory: {changes}. Undo that too?": "这一轮还改动了记忆：{changes}。也撤销吗？",
    "Memory stays as it is. `lamina memory log` lists the changes.": "记忆保持不变。`lamina memory log` 列出改动。",
    "Undid in memory: {names}.": "已在记忆中撤销：{names}。",
    "Stopped. Nothing was compacted.": "已停止。没有压缩任何内容。",
    "Usage: {usage}": "用法：{usage}",
    "Usage: /remove NAME. Use /memory to list them.": "用法：/remove NAME。用 /memory 列出所有记忆。",
    "Memory {name!r} not found. Use /memory to list them.": "没有找到记忆 {name!r}。用 /memory 列出所有记忆。",
    "Moved {name!r} to the trash. `{command}` brings it back.": "已把 {name!r} 移到回收站。`{command}` 可以恢复。",
    "{subject!r} would be deleted for good: {places} in {files}.": "将永久删除 {subject!r}：{m} 个文件中的 {n} 处。",
    "Remove it permanently?": "永久删除吗？",
    "Nothing found.": "没有找到。",
    "No memories here yet.": "这里还没有记忆。",
    "Use `lamina memory` to edit the memories in {path}.": "用 `lamina memory` 编辑 {path} 里的记忆。",
    "Recalled in this conversation:": "本次对话调出的记忆：",
    "no longer in view": "已不在上下文中",
    "Mode {mode}: {words}.": "模式 {mode}：{words}。",
    "read project files freely, ask before everything else": "可自由读取项目文件，其他都先询问",
    "edit project files freely, ask before everything else": "可自由修改项目文件，其他都先询问",
    "change nothing": "不做任何改动",
    "allow everything that no rule denies": "允许规则没有禁止的一切",
    "Unknown mode {mode!r}. Choose one of {modes}.": "没有模式 {mode!r}。可选：{modes}。",
    "No rules yet. Answer a permission question with `a` to add one.": "还没有规则。用 `a` 回答权限问题即可添加。",
    # /help
    "show this list": "显示这个列表",
    "show what fills the context window": "显示上下文窗口里有什么",
    "show what this chat cost": "显示本次对话的费用",
    "start a new session; this one is kept": "开始新会话；当前会话会保留",
    "summarise the conversation, or preview that": "总结对话，或预览总结",
    "hide turns from the model, or list the turns": "对模型隐藏几轮对话，或列出各轮",
    "show the original behind a summary, folded turn or marker": "显示摘要、折叠或标记背后的原文",
    "show or change the model": "显示或更换模型",
    "continue an earlier session": "继续以前的会话",
    "list the memories and which were recalled here, or show one": "列出记忆和本次调出的记忆，或显示一条",
    "save a text as a memory": "把一段文字存为记忆",
    "move a memory to the trash": "把一条记忆移到回收站",
    "delete a subject for good, from memories and sessions": "从记忆和会话中永久删除一个主题",
    "search memories and sessions": "搜索记忆和会话",
    "tidy up memory now, or show, stop and undo dreams": "现在整理记忆，或显示、停止、撤销整理",
    "keep a text through every compaction, or list the pins": "让一段文字在压缩后保留，或列出固定的文字",
    "undo the last turn, or a compaction": "撤销上一轮或一次压缩",
    "continue a turn that failed or was stopped": "继续失败或被停止的一轮",
    "show the permission mode and rules, or change the mode": "显示权限模式和规则，或更换模式",
    "leave the chat": "离开对话",
    "Enter sends the message. Esc Enter, or \\ at the end of a line, starts a new line. @ completes file names.": (
        "回车发送消息。Esc 回车，或行尾的 \\，开始新的一行。@ 补全文件名。"
    ),
    "! at the start of a line runs a shell command; the model sees it and its output with your next message.": (
        "行首的 ! 运行 shell 命令；模型在你的下一条消息里看到命令和输出。"
    ),
    "Ctrl-C stops the answer; press it twice to leave. Ctrl-D leaves. Shift-Tab changes the permission mode.": (
        "Ctrl-C 停止回答，按两次离开。Ctrl-D 离开。Shift-Tab 更换权限模式。"
    ),
}

_SHAPES = {**dict.fromkeys("nmk", "[0-9][0-9,.]*"), "tool": r"[A-Za-z_]\w*"}
_PIECE = re.compile(r"\{(?P<field>\w+)\}|\[(?P<ending>[a-z |]+)\]")
# Parts of a list, with a comma outside brackets between them.
_COMMA = re.compile(r", (?![^(]*\))")


def translate(language: Language, english: str, **values: object) -> str:
    """Return a text in a language, with its fields filled in."""
    template = CHINESE.get(english, english) if language == "zh" else english
    return template.format(**values) if values else template


def translate_line(language: Language, line: str) -> str:
    """Return a line that other code composed in a language; one that fits no template stays as it is."""
    return _in_chinese(line) or line if language == "zh" else line


def translate_notice(language: Language, text: str) -> str:
    """Return a notice in a language, whether it is one of the chat's own texts or other code composed it."""
    own = translate(language, text)
    return own if own != text else translate_line(language, text)


def _in_chinese(line: str) -> str | None:
    if not any(map(str.isalpha, line)):
        return line
    whole = _COMMA.split(line)
    parts = [_in_chinese(part) for part in whole] if len(whole) > 1 else []
    if parts and all(parts):
        return "，".join(part for part in parts if part)
    for pattern, chinese in _line_patterns():
        if found := pattern.fullmatch(line):
            said = {name: text if name == "last" else translate_line("zh", text) for name, text in found.groupdict().items()}
            # A template of fields only fits many lines; it counts if one of them is known.
            if said != found.groupdict() or _HAN.search(chinese):
                return chinese.format(**said)
    return None


@cache
def _line_patterns() -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(_line_pattern(english), re.DOTALL), chinese) for english, chinese in (SETTING_LINES | LINES).items()]


def _line_pattern(english: str) -> str:
    out, at = list[str](), 0
    for piece in _PIECE.finditer(english):
        out.append(re.escape(english[at : piece.start()]))
        if (field := piece["field"]) is not None:
            out.append(rf"(?P<{field}>{_SHAPES.get(field, '.+?')})")
        else:
            out.append(f"(?:{piece['ending']}){'' if '|' in piece['ending'] else '?'}")
        at = piece.end()
    return "".join([*out, re.escape(english[at:])])


def detect_language(words: str, current: Language) -> Language:
    """Return the language of a message; one in no language, such as a number or a command of the stand-in, keeps the current one."""
    if language_of(words) == "zh":
        return "zh"
    return "en" if any(map(str.isalpha, words)) and not _COMMAND.fullmatch(words.strip()) else current


def locale_language(environ: Mapping[str, str]) -> Language:
    """Return the language that the locale asks for, until the user has said something."""
    locale = environ.get("LC_ALL") or environ.get("LC_MESSAGES") or environ.get("LANG") or ""
    return "zh" if locale.startswith("zh") else "en"
