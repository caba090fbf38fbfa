"""Words of the overview."""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "overview.title": ("Overview", "概览"),
    "overview.last_days": ("Last {n} day|Last {n} days", "最近 {n} 天"),
    "overview.figures": (
        "{period}: {n} session, {usd} at list price, {share} read from cache|"
        "{period}: {n} sessions, {usd} at list price, {share} read from cache",
        "{period}：{n} 个会话，按标价 {usd}，{share} 来自缓存",
    ),
    "overview.days_until": ("{n} days up to {day}", "截至 {day} 的 {n} 天"),
    "overview.newest_period": ("Show the newest costs, up to {day}", "显示最近的费用（截至 {day}）"),
    "overview.nothing_yet": ("{period}: no costs found so far", "{period}：尚未发现费用"),
    "overview.nothing": ("{period}: no costs recorded", "{period}：没有费用记录"),
    "overview.list_price": ("Prices of {date}.", "价格日期：{date}。"),
    "overview.unpriced": (
        "Price unknown for {n} call.|Price unknown for {n} calls.",
        "有 {n} 次调用价格未知。",
    ),
    "overview.reading": (
        "Reading the session file for the first time.|Reading session files for the first time, the newest first: {done} of {n}. "
        "The figures are those of the files read so far.",
        "正在首次读取会话文件（最新的优先）：已读 {done} / {n}。数据只包含已读的文件。",
    ),
    "overview.short_outputs": (
        "≥: {n} session recorded only the beginning of some outputs.|≥: {n} sessions recorded only the beginning of some outputs.",
        "≥：有 {n} 个会话只记录了部分输出的开头。",
    ),
    "overview.period": ("Period", "时间段"),
    "overview.money": ("Money by day and model", "按日期和模型统计的费用"),
    "overview.no_money": ("No session of this period reports its usage.", "此时间段内没有会话报告用量。"),
    "overview.no_model": ("model unknown", "未知模型"),
    "overview.read": ("Read from cache", "读取缓存"),
    "overview.written": ("Written", "写入"),
    "overview.output": ("Output", "输出"),
    "overview.total": ("Total", "合计"),
    "overview.date": ("Day", "日期"),
    "overview.day": (
        "{day}: {usd} (read {read}, written {written}, output {output}); {share} of the input was read from cache.",
        "{day}：{usd}（读取 {read}，写入 {written}，输出 {output}）；{share} 的输入来自缓存。",
    ),
    "overview.as_table": ("Show as table", "以表格显示"),
    "overview.breaks": ("Cache breaks", "缓存中断"),
    "overview.no_breaks": ("No cache breaks in this period.", "此时间段内没有缓存中断。"),
    "overview.reading_breaks": (
        "Reading {n} session with cache breaks …|Reading {n} sessions with cache breaks …",
        "正在读取 {n} 个有缓存中断的会话…",
    ),
    "overview.broke": (
        "The cache broke once: {tokens} tokens were written again.|The cache broke {n} times: {tokens} tokens were written again.",
        "缓存中断 {n} 次：重新写入 {tokens} 个词元。",
    ),
    "overview.cause": ("Cause", "原因"),
    "overview.cause_spill": ("Large results moved to files", "大结果转存到文件"),
    "overview.cause_clear": ("Results cleared", "清理结果"),
    "overview.cause_compact": ("Compaction", "压缩"),
    "overview.cause_collapse": ("Collapse", "折叠"),
    "overview.cause_undo": ("Undo", "撤销"),
    "overview.cause_model": ("Change of model", "更换模型"),
    "overview.cause_expired": ("Cache expired in a pause", "缓存在停顿中过期"),
    "overview.cause_unrecorded": ("Not in the transcript", "未记录在会话中"),
    "overview.how_often": ("How often", "次数"),
    "overview.times": ("once|{n} times", "{n} 次"),
    "overview.again": ("Tokens written again", "重新写入的词元"),
    "overview.cost": ("Cost", "费用"),
    "overview.worst": ("Show the worst", "查看最严重的一次"),
    "overview.layers": ("Background work by layer", "各层的后台任务"),
    "overview.layer": ("Purpose", "用途"),
    "overview.calls": ("Calls", "调用"),
    "overview.waits": ("Waits for you", "等待您处理"),
    "overview.waiting": ("{view}: {n} waits|{view}: {n} wait", "{view}：{n} 项待处理"),
    "overview.nothing_waits": ("Nothing waits for you.", "没有待处理的事项。"),
    "overview.runs": ("Running now", "正在运行"),
    "overview.nothing_runs": ("No session runs.", "没有正在运行的会话。"),
    "overview.full": ("{tokens} of {window} tokens", "{tokens} / {window} 个词元"),
    "overview.newest": ("Newest memories", "最新记忆"),
    "overview.no_memories": (
        "Nothing remembered yet. Memories appear after your first session.",
        "还没有记忆。第一次会话后会出现记忆。",
    ),
}
