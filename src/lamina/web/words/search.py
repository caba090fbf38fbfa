"""Words of the search over everything."""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "search.title": ("Search", "搜索"),
    "search.title_for": ("Search: {query}", "搜索：{query}"),
    "search.count": ("{n} result, best match first|{n} results, best match first", "{n} 条结果，按匹配程度排列"),
    "search.best": ("The best result|The best {n} results", "匹配程度最高的 {n} 条结果"),
    "search.newest": ("The newest result|The newest {n} results", "最新的 {n} 条结果"),
    "search.exact": ("Exact text, newest first", "精确文本，最新在前"),
    "search.here": ("Only this directory", "仅当前目录"),
    "search.go": ("Search", "搜索"),
    "search.none": (
        "Nothing matches “{query}”. Use other words, or search for the exact text.",
        "没有与“{query}”匹配的内容。请换用其他词语，或搜索精确文本。",
    ),
    "search.none_here": ("Nothing matches “{query}”. Use other words.", "没有与“{query}”匹配的内容。请换用其他词语。"),
    "search.count_exact": ("{n} result, newest first|{n} results, newest first", "{n} 条结果，最新在前"),
    "search.searching": ("Searching…", "正在搜索…"),
    "search.reading": (
        "Lamina is reading {n} new session file. The search starts when it is done.|"
        "Lamina is reading {n} new session files. The search starts when they are done.",
        "正在读取 {n} 个新的会话文件，完成后开始搜索。",
    ),
    "search.why": ("Matches: {words}", "匹配：{words}"),
    "search.why_title": ("Matches in the name: {words}", "名称匹配：{words}"),
    "search.why_before": ("Matches in the message before: {words}", "前一条消息匹配：{words}"),
    "search.why_day": ("Matches its day: {words}", "日期匹配：{words}"),
    "search.why_around": ("Matches in the text around it.", "上下文匹配。"),
    "search.by_user": ("You", "您"),
    "search.by_assistant": ("Assistant", "助手"),
    "search.by_subagent": ("Subagent", "子智能体"),
    "search.by_memory": ("Memory", "记忆"),
    "search.by_tool": ("Tool result", "工具结果"),
    "search.by_summary": ("Summary", "摘要"),
    "search.by_other": ("Record", "记录"),
}
