"""Words that replace those about money for users who pay a flat subscription (`lamina.billing`)."""

from __future__ import annotations

_UNITS = (
    "A unit is one uncached input token, whatever the model. A token read from the cache counts 0.1, one written to it 1.25 "
    "(2 for an hour), an output token 5.",
    "一个单位是一个未缓存的输入词元，各模型相同。读取缓存计 0.1，写入缓存计 1.25（一小时的计 2），输出词元计 5。",
)

WORDS: dict[str, tuple[str, str]] = {
    "overview.figures@subscription": (
        "{period}: {n} session, {usd}; {share} of the input was read from cache|"
        "{period}: {n} sessions, {usd}; {share} of the input was read from cache",
        "{period}：{n} 个会话，{usd}；{share} 的输入来自缓存",
    ),
    "overview.newest_period@subscription": ("Show the newest use, up to {day}", "显示最近的用量（截至 {day}）"),
    "overview.nothing_yet@subscription": ("{period}: no use found so far", "{period}：尚未发现用量"),
    "overview.nothing@subscription": ("{period}: no use recorded", "{period}：没有用量记录"),
    "overview.list_price@subscription": _UNITS,
    "overview.money@subscription": ("Units by day and model", "按日期和模型统计的单位"),
    "overview.day@subscription": (
        "{day}: {part} of the period: {usd} (read {read}, written {written}, output {output}); "
        "{share} of the input was read from cache.",
        "{day}：占该时间段的 {part}：{usd}（读取 {read}，写入 {written}，输出 {output}）；{share} 的输入来自缓存。",
    ),
    "overview.total@subscription": ("Share of the period", "占该时间段的比例"),
    "overview.cost@subscription": ("Share", "比例"),
    "sessions.dearest@subscription": ("Most used first", "用量最高在前"),
    "sessions.at_list_price@subscription": _UNITS,
    "session.beside@subscription": (
        "The file also holds {n} request of subagents ({usd}). It is part of the use in the list of sessions and is not shown here.|"
        "The file also holds {n} requests of subagents ({usd}). They are part of the use in the list of sessions and are not shown here.",
        "文件中还有 {n} 个子智能体请求（{usd}）。会话列表的用量包含它们，此处不显示。",
    ),
    "session.subagents@subscription": (
        "{n} subagent has a file of its own ({usd}). Its use is part of the list of sessions and is not shown here.|"
        "{n} subagents have files of their own ({usd}). Their use is part of the list of sessions and is not shown here.",
        "有 {n} 个子智能体使用单独的文件（{usd}）。会话列表的用量包含它们，此处不显示。",
    ),
    "session.cost@subscription": ("Use", "用量"),
    "session.split@subscription": ("Share of read, written and output units", "读取、写入和输出的单位比例"),
    "session.caption@subscription": (
        "Totals are what the provider reported; the parts are estimates from the transcript, scaled to fit. Hatched: sent, but not "
        f"in the transcript. Below: units of each request. {_UNITS[0]}",
        f"总数由服务商报告；各部分根据记录估计并按总数缩放。斜线：已发送但不在记录中。下方：每个请求的单位。{_UNITS[1]}",
    ),
    "request.carried@subscription": ("Carried so far", "累计携带用量"),
    "dreams.today@subscription": ("Share of the cost limit", "费用上限的已用比例"),
    "dreams.cost@subscription": ("Use", "用量"),
    "settings.used_dollars@subscription": (
        "{share} of the cost limit (lamina.budgetDollars) today",
        "今天已用费用上限（lamina.budgetDollars）的 {share}",
    ),
    "settings.unpriced@subscription": (
        "Price unknown for {n} call. It does not count for the cost limit.|"
        "Price unknown for {n} calls. They do not count for the cost limit.",
        "有 {n} 次调用价格未知，未计入费用上限。",
    ),
    "replay.lead@subscription": (
        "Choose recorded sessions and policies. Lamina plays the sessions again and shows what each policy would have used. "
        "No model is called and no file of yours is changed.",
        "选择已录制的会话和策略。Lamina 重新播放这些会话，显示每种策略的用量。不调用模型，也不修改您的文件。",
    ),
    "replay.no_usage@subscription": (
        "The sessions report no usage, so there is nothing to compare with.",
        "会话没有用量记录，因此无法比较。",
    ),
    "saving.sentence@subscription": (
        "Lamina would have used {change}: {amounts} ({spread}).",
        "使用 Lamina 的用量{change}：{amounts}（{spread}）。",
    ),
}
