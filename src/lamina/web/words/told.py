"""The Chinese form of sentences that lower packages write in English: why a block is in a request, what a decision did, the rows and
remarks of a replay. Why something was done is in reasons.py, and errors are in faults.py.

Each pattern matches a whole sentence. Numbers, names and paths in it are kept; the part in braces has its own Chinese form.
"""

from __future__ import annotations

import re

from ...core.errors import DiskError, InputError, SettingError
from . import faults, reasons
from .setting_texts import RULES, accepts_in_chinese

# A row of a replay, such as `lean without notes`.
_ROW = r"(\w+(?:, changed)?(?: without \w+)?)"
_ENDS = r"(\d[\d,]*) (minute|hour)s?"

# Details of a clearing, which may have several.
_WHY_CLEARED = {
    "They were cleared automatically.": "自动清理。",
    "Asked for by the user.": "由用户要求。",
    "The conversation had grown large.": "对话已变得很长。",
    "The prompt cache had expired, so everything was written again anyway.": "提示词缓存已过期，全部内容本来就要重新写入。",
    "Later results repeat them.": "之后的结果与其内容重复。",
    "There had been a long pause.": "此前有较长的停顿。",
}

PATTERNS = tuple(
    (re.compile(english), chinese)
    for english, chinese in (
        *reasons.PATTERNS,
        *faults.PATTERNS,
        # Labels of blocks
        (r"call of (.+)", r"调用 \1"),
        (r"result of (?!a call)(.+)", r"\1 的结果"),
        # Why a block is in a request
        (r"replaces the messages removed by compaction ([\w-]*)", r"代替压缩 \1 移除的消息"),
        (r"replaces the messages removed by compaction ([\w-]*) \((.+)\)", r"代替压缩 \1 移除的消息（{\2}）"),
        (
            r"by price: reading the older messages again cost ([\d,]+) input tokens since the last compaction, "
            r"and a compaction costs ([\d,]+)",
            r"按费用：上次压缩之后，重新读取较早的消息花费 \1 个输入词元，而一次压缩花费 \2 个",
        ),
        (r"replaces (\d[\d,]*) records?", r"代替 \1 条记录"),
        (r"context added to the conversation \((.+)\)", r"加入对话的上下文（\1）"),
        (r"written by the model; shortened \((\w+)\) by ([\w-]+)", r"由模型写出；已由 \2 缩短（{\1}）"),
        (r"cleared \((\w+)\) by ([\w-]+)", r"已由 \2 清除（{\1}）"),
        (
            r"shown whole once; later requests show a preview, and the full text is in (.+)",
            r"完整显示一次；以后的请求显示预览，全文在 \1",
        ),
        (r"preview of a result that was shown once; the full text is in (.+)", r"曾显示一次的结果的预览；全文在 \1"),
        (r"preview of a large result; the full text is in (.+)", r"较大结果的预览；全文在 \1"),
        (r"(.+?), recalled \((.+)\)", r"召回的记忆 \1（{recalled: \2}）"),
        (r"recalled: (name|description|text): ([^;]+)", r"{\1}\2"),
        (r"recalled: (name|description): ([^;]+); (.+)", r"{\1}\2；{recalled: \3}"),
        (r"recalled: chosen by (.+)", r"由 \1 选出"),
        (r"recalled: (.+)", r"{\1}"),
        # Why no dream starts by itself
        (r"the last dream was (.+) ago; the next may run in (.+)", r"距上次整理 {\1}；{\2}后可以再次整理"),
        (r"(\d[\d,]*) (?:hours?|h)", r"\1 小时"),
        (r"(\d[\d,]*) (?:minutes?|min)", r"\1 分钟"),
        (r"(\d[\d,]*) h (\d+) min", r"\1 小时 \2 分钟"),
        (r"only (\d+) of (\d+) sessions? since the last dream", r"上次整理之后只有 \1 个会话，需要 \2 个"),
        (r"(\d+) failures in a row", r"连续失败 \1 次"),
        (r"private memory is off: (.+); (.+)", r"个人记忆已关闭：{\1}；{\2}"),
        (r"lamina\.memoryMode is off \((.+)\)", r"lamina.memoryMode 为 off（{\1}）"),
        (r"autoMemoryEnabled is false \((.+)\)", r"autoMemoryEnabled 为 false（{\1}）"),
        (r"(\S+) is set", r"已设置 \1"),
        # Why a dream proposes a change
        (r"merged into (.+)", r"已合并到 \1"),
        # Titles of decisions
        (r"Cleared (\d[\d,]*) results?", r"清除了 \1 个结果"),
        (r"Shortened (\d[\d,]*) messages?", r"缩短了 \1 条消息"),
        (r"Collapsed (\d[\d,]*) records?", r"折叠了 \1 条记录"),
        (r"Summarised (\d[\d,]*) records?", r"概括了 \1 条记录"),
        (r"Stored (\d[\d,]*) results? in files", r"把 \1 个结果转存到文件"),
        (r"Model changed to (\S+)", r"模型换为 \1"),
        (r"Cache break: (\S+)", r"缓存中断：{\1}"),
        (rf"Cache expired after {_ENDS}", r"缓存在 \1 {\2}后过期"),
        (r"(\d[\d,]*) tokens? came without a record", r"多出 \1 个词元，没有记录"),
        (r"(\d[\d,]*) tokens? left without a record", r"减少 \1 个词元，没有记录"),
        # Details of decisions
        (r"Before: (\S+)\.", r"之前：\1。"),
        (rf"({'|'.join(map(re.escape, _WHY_CLEARED))}) (.+)", r"{\1}{\2}"),
        (r"Automatic, (.+)\.", r"自动，{\1}。"),
        (r"Asked for by the user, (.+)\.", r"由用户要求，{\1}。"),
        (r"Decision ([\w-]+) no longer applies\.", r"决定 \1 不再生效。"),
        (r"(\d[\d,]*) bytes; the window shows a preview\.", r"\1 字节；窗口中显示预览。"),
        (
            r"The request has (\d[\d,]*) tokens? more than its records explain\. No record says why\.",
            r"请求比记录多 \1 个词元，没有记录说明原因。",
        ),
        (
            r"The request has (\d[\d,]*) tokens? less than its records explain\. No record says why\.",
            r"请求比记录少 \1 个词元，没有记录说明原因。",
        ),
        (
            r"(\d[\d,]*) tokens? of the previous request were not read from the cache\. No record says why\.",
            r"前一个请求的 \1 个词元没有从缓存读取，没有记录说明原因。",
        ),
        (
            r"(\d[\d,]*) tokens? of the previous request were not read from the cache\. "
            rf"The entry lives {_ENDS}, and the pause was {_ENDS}\.",
            r"前一个请求的 \1 个词元没有从缓存读取。条目保留 \2 {\3}，停顿了 \4 {\5}。",
        ),
        # Rows and remarks of a replay
        (r"(\w+(?:, changed)?) without (\w+)", r"{\1}，关闭{\2}"),
        (r"(\w+), changed", r"{\1}（有改动）"),
        (rf"{_ROW} \(not all finished\)", r"{\1}（未全部完成）"),
        (
            r"(\d[\d,]*) sessions? without reported usage, not counted in the row recorded\.",
            r"\1 个会话没有用量记录，未计入“录制”一行。",
        ),
        (
            rf"{_ROW}: (\d[\d,]*) cache breaks? within five minutes without a cause in the transcript cost (\S+); "
            r"this is taken out of the row, since no policy can prevent it\.",
            r"{\1}：\2 次五分钟之内、会话记录中没有原因的缓存中断花费 \3；任何策略都无法避免，因此不计入该行。",
        ),
        (
            rf"{_ROW}: (\d[\d,]*) cache breaks? within five minutes without a cause in the transcript; "
            r"this is taken out of the row, since no policy can prevent it\.",
            r"{\1}：\2 次五分钟之内、会话记录中没有原因的缓存中断；任何策略都无法避免，因此不计入该行。",
        ),
        (
            rf"{_ROW}: the calls for (\d[\d,]*) summar\w+ are not in the transcripts and estimated\.",
            r"{\1}：\2 次摘要调用不在会话记录中，为估计值。",
        ),
        (
            rf"{_ROW}: the calls for (\d[\d,]*) summar\w+ are not in the transcripts and estimated at (\S+)\.",
            r"{\1}：\2 次摘要调用不在会话记录中，估计为 \3。",
        ),
        (
            rf"{_ROW}: (\d[\d,]*) of (\d[\d,]*) requests? exceeded the context window\.",
            r"{\1}：\3 个请求中有 \2 个超出上下文窗口。",
        ),
        (
            rf"{_ROW}: (\d[\d,]*) of (\d[\d,]*) requests? exceeded the context window, so a provider would reject them\.",
            r"{\1}：\3 个请求中有 \2 个超出上下文窗口，服务商会拒绝。",
        ),
        (rf"{_ROW}: (\d[\d,]*) layer failures?\.", r"{\1}：层失败 \2 次。"),
        (
            rf"{_ROW}: (.+) ended early because the window was full; (\d[\d,]*) calls? not replayed\. "
            r"The session is not in the row's sum\.",
            r"{\1}：窗口已满，\2 提前结束；\3 次调用未重放。该会话不计入该行的总和。",
        ),
        (rf"{_ROW}: memory added (\d[\d,]*) tokens? \(index and recall\)\.", r"{\1}：记忆增加 \2 个词元（索引和召回）。"),
        (
            rf"{_ROW} and (\d[\d,]*) other rows?: memory added (\d[\d,]*) tokens? \(index and recall\)\.",
            r"{\1}和另外 \2 行：记忆增加 \3 个词元（索引和召回）。",
        ),
        (
            r"Some models have unknown prices: the cost lacks up to (\d[\d,]*) calls?\.",
            r"部分模型价格未知：费用最多缺少 \1 次调用。",
        ),
        (
            r"(.+) skipped: (\d[\d,]*) tokens of its first request are not in the file\.",
            r"跳过 \1：首个请求中有 \2 个词元不在文件里。",
        ),
        (r"(.+): the same requests replayed cost (\S+) more\. (.+)", r"\1：重放相同的请求，费用多 \2。{\3}"),
        (r"(.+): the same requests replayed cost (\S+) less\. (.+)", r"\1：重放相同的请求，费用少 \2。{\3}"),
        (
            r"Before request (\d[\d,]*), about (\d[\d,]*) tokens left the prompt, which the transcript does not record\.",
            r"请求 \1 之前约有 \2 个词元从提示词中移除，会话记录中没有。",
        ),
        (
            r"Request (\d[\d,]*) read (\d[\d,]*) tokens less from the cache than the one before had left there\.",
            r"请求 \1 从缓存读取的词元比前一个请求留下的少 \2 个。",
        ),
        (
            r"Request (\d[\d,]*) has about (\d[\d,]*) tokens that are not in the transcript\.",
            r"请求 \1 约有 \2 个词元不在会话记录中。",
        ),
        (r"(.+) skipped: all of its answers are in (.+)\.", r"跳过 \1：其回答全部包含在 \2 中。"),
        (r"(.+) skipped: (.+)", r"跳过 \1：{\2}"),
        (
            r"(.+): (\d[\d,]*) lines? could not be read and (?:was|were) skipped \((.+)\)\. All other records are loaded\.",
            r"\1：\2 行无法读取，已跳过（{\3}）。其余记录均已读取。",
        ),
        (r"(\d+) (NUL bytes|glued|no object|not JSON|not UTF-8|too long|torn)", r"{\2} \1 处"),
        (r"(\d+ (?:NUL bytes|glued|no object|not JSON|not UTF-8|too long|torn)), (.+)", r"{\1}、{\2}"),
    )
)

WHOLE = (
    reasons.WHOLE
    | faults.WHOLE
    | RULES
    | _WHY_CLEARED
    | {
        "message": "消息",
        "answer": "回答",
        "thinking": "思考",
        "redacted_thinking": "加密的思考",
        "inserted": "补入",
        "tool": "工具",
        "system": "系统提示词",
        "memory": "记忆",
        "summary": "摘要",
        "image": "图片",
        "document": "文档",
        "meta": "由程序插入",
        "not recorded": "没有记录",
        "a tool the model may call": "模型可以调用的工具",
        "the system prompt": "系统提示词",
        "inserted so that the API accepts the conversation": "为了让 API 接受对话而插入",
        "replaces a range of messages": "代替一段消息",
        "inserted by a program": "由程序插入",
        "written by the user": "由用户写出",
        "written by the model": "由模型写出",
        "placeholder for a missing result": "缺失结果的占位符",
        "result of a call in the view": "窗口中一次调用的结果",
        "system prompt and tools; the transcript does not hold them": "系统提示词和工具；会话记录中没有",
        "context that the agent inserted; no record holds it": "智能体插入的上下文；没有记录",
        "recorded": "录制",
        "append": "只追加",
        "compaction": "压缩",
        "clearing": "清理",
        "spill": "转存",
        "snip": "剪短",
        "collapse": "折叠",
        "undo": "撤销",
        "branch": "分支",
        "tools": "工具变化",
        "model": "模型变化",
        "options": "选项变化",
        "repair": "修复",
        "unexplained": "原因不明",
        "similar in meaning": "含义相近",
        "You": "您",
        "Lamina: clearing": "Lamina（清理）",
        "Lamina: collapse": "Lamina（折叠）",
        "Lamina: results": "Lamina（大结果存盘）",
        "Lamina: summary": "Lamina（摘要）",
        "Lamina: ahead": "Lamina（提前生成的摘要）",
        "Lamina: rules": "Lamina（按规则生成的摘要）",
        "Lamina: notes": "Lamina（会话笔记）",
        "already covered by another memory": "其他记忆已包含其内容",
        "dreaming is off": "整理已关闭",
        "private memory is read-only": "个人记忆为只读",
        "set it to true": "请设为 true",
        "unset it": "请取消该设置",
        "bare mode is on": "正以精简模式运行",
        "start without it": "请不用该模式启动",
        "this machine is ephemeral and has no memory directory": "此机器是临时的，且没有记忆目录",
        "set LAMINA_REMOTE_MEMORY_DIR": "请设置 LAMINA_REMOTE_MEMORY_DIR",
        "less than a minute": "1 分钟以内",
        "the last dream was today": "今天已经整理过",
        "no earlier day has a new daily log, and today's waits for midnight": "之前的日子没有新的日志，今天的要等到午夜",
        "there are no memories yet": "还没有记忆",
        "today's budget for background work is used up": "今天的后台预算已用完",
        "It is too short to be counted exactly.": "会话太短，无法精确计算。",
        "Compaction": "压缩",
        "Went back": "返回",
        "Undid a decision": "撤销了一个决定",
        "Cache break": "缓存中断",
        "Automatic.": "自动。",
        "Announced before the request.": "在请求之前已告知。",
        "The conversation continued from an earlier message.": "对话从较早的消息继续。",
    }
)

# Words inside a sentence: triggers of a clearing, and units of time.
PARTS = {
    "results": "大结果存盘",
    "notes": "笔记",
    "auto": "自动",
    "size": "大小",
    "idle": "停顿",
    "cold": "缓存已过期",
    "repeated": "重复",
    "manual": "手动",
    "NUL bytes": "含 NUL 字节",
    "glued": "两条记录相连",
    "no object": "不是对象",
    "not JSON": "不是 JSON",
    "not UTF-8": "不是 UTF-8",
    "too long": "过长",
    "torn": "不完整",
    "minute": "分钟",
    "hour": "小时",
    "name": "名称匹配：",
    "description": "描述匹配：",
    "text": "正文匹配：",
}

# A longer text is no error of ours, but an answer of a model.
LONGEST_ERROR = 600


def in_chinese(sentence: str) -> str:
    """Return the Chinese form of a sentence; one without a form stays as it is."""
    return _form(sentence) or _error_form(sentence) or sentence


def _form(sentence: str) -> str | None:
    if sentence in WHOLE:
        return WHOLE[sentence]
    for english, chinese in PATTERNS:
        if (found := english.fullmatch(sentence)) is not None:
            return _filled(chinese, found)
    return None


def _filled(chinese: str, found: re.Match[str]) -> str:
    """Return a Chinese form with the groups of the English sentence, which may themselves contain braces."""

    def fill(place: re.Match[str]) -> str:
        if place[2]:
            return found.expand(place[2])
        part, before = _part(found.expand(place[1])), chinese[: place.start()]
        return f" {part}" if re.search(r"[\u4e00-\u9fff]$", before) and re.match(r'[A-Za-z0-9"]', part) else part

    return re.sub(r"\{(.+?)\}|(\\\d)", fill, chinese)


def _part(text: str) -> str:
    found = PARTS.get(text) or in_chinese(text)
    return found if found != text else _problem(text) or accepts_in_chinese(text)


def _error_form(sentence: str) -> str | None:
    """Return the Chinese form of an error that is known only as a sentence, such as one that a record holds."""
    if len(sentence) > LONGEST_ERROR or "\n" in sentence:
        return None
    for border in re.finditer(": ", sentence):
        if (said := _problem(sentence[border.end() :])) is not None:
            return f"{_about(sentence[: border.start()])}：{said}。"
    return None


def _problem(text: str) -> str | None:
    """Return the Chinese form of a problem and its remedy."""
    text = text.removesuffix(".")
    for border in (*re.finditer("; ", text), None):
        problem, remedy = (text[: border.start()], text[border.end() :]) if border else (text, "")
        if (found := _form(problem)) is not None:
            return f"{found}；{_part(remedy)}" if remedy else found
    return None


def error_in_chinese(error: Exception) -> str:
    """Return the Chinese form of an error: what it is about, the problem and the remedy, each as far as it has a form."""
    match error:
        case InputError():
            about = _about(error.where)
        case DiskError():
            about = _about(error.path)
        case SettingError():
            about = f"设置 {error.key}（{in_chinese(error.source)}）"
        case _:
            return in_chinese(str(error))
    parts = (in_chinese(part.rstrip(".")) for part in (error.problem, error.remedy) if part)
    return f"{about}：{'；'.join(parts).rstrip('。')}。"


def _about(place: str) -> str:
    """Return what an error is about: a word with a Chinese form, alone or before an id; any other name is the user's own."""
    if (found := re.fullmatch(r"Setting (\S+) \((.+)\)", place)) is not None:
        return f"设置 {found[1]}（{in_chinese(found[2])}）"
    head, space, id = place.partition(" ")
    return f"{reasons.PLACES[head]}{space}{id}" if head in reasons.PLACES and " " not in id else place
