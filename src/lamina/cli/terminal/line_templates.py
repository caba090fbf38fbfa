"""Templates of the lines that other code composes and the chat shows, with their Chinese text.

Owns this table; `texts.translate_line` applies it. `{n}`, `{m}` and `{k}` are numbers, `{tool}` is one word, `{last}` is quoted as it is,
and the other fields are translated too. `[s]` stands for an ending that may be missing, `[is|are]` for one of two words. The first template
that fits the whole line counts.
"""

from __future__ import annotations

LINES: dict[str, str] = {
    # Notices of the session
    "{did} memory: {name}. A secret was removed ({kind}).": "{did}记忆：{name}。其中的密钥已去掉（{kind}）。",
    "Removed memory: {name}. To undo, run `{last}`.": "已移除记忆：{name}。运行 `{last}` 可以恢复。",
    "{did} memory: {name}.": "{did}记忆：{name}。",
    "{did} memory: {name}": "{did}记忆：{name}",
    "Saved": "已保存",
    "Updated": "已更新",
    "saved": "已保存",
    "updated": "已更新",
    "removed": "已移除",
    "waits for your approval": "等待你批准",
    "added {n} bullet[s]": "新增 {n} 条",
    "Added {n} bullet[s] to the log of {date}.": "{date} 的日志新增 {n} 条。",
    "changed": "已改动",
    "assigned secret": "赋值的密钥",
    "private key": "私钥",
    "password in a URL": "网址中的密码",
    "authorization header": "授权头",
    "{tool} key": "{tool} 密钥",
    "{tool} token": "{tool} 令牌",
    "Automatic memory is off for the rest of this session: it failed {n} times in a row.": (
        "本次会话不再自动记忆：已连续失败 {n} 次。"
    ),
    "Dreams are off for the rest of this session: they failed {n} times in a row.": "本次会话不再整理记忆：已连续失败 {n} 次。",
    "Dream finished: memory is in order, nothing was changed.": "整理完成：记忆井井有条，没有改动。",
    "Dream finished: {changes}. Undo with `lamina dream --undo`.": "整理完成：{changes}。用 `lamina dream --undo` 撤销。",
    "The dream was stopped: {why}. Memory is unchanged.": "整理已停止：{why}。记忆没有改动。",
    "The dream failed because of a disk error: {why}. Memory is unchanged, and the next dream starts over.": (
        "整理因磁盘错误失败：{why}。记忆没有改动，下次整理会重新开始。"
    ),
    "The dream failed while changing memories ({why}). The next session restores them, or run `lamina dream --kill` to do it now.": (
        "整理在改动记忆时失败（{why}）。下次会话会恢复它们，或现在运行 `lamina dream --kill`。"
    ),
    "Updating the session notes failed ({n} failure[s] in a row), so updates stop until the next compaction, which is made with a summary instead.": (  # noqa: E501
        "会话笔记连续 {n} 次未能更新，在下次压缩之前不再更新；那次压缩改用摘要。"
    ),
    "The provider ignored the requested cache edits. From now on, old tool results are cleared by size.": (
        "模型服务没有执行缓存编辑。从现在起按大小清除旧的工具结果。"
    ),
    "Old tool results were not cleared, because their originals could not be saved: {error}": (
        "没有清除旧的工具结果，因为原文无法保存：{error}"
    ),
    "A tool result was too large for the context window and was cut: {why}.": "一条工具结果超出上下文窗口，已截断：{why}。",
    "The conversation was not compacted: {why}. Lamina tries again after your next message.": (
        "对话没有压缩：{why}。你发送下一条消息后再试。"
    ),
    "The model asked for a compaction: {before} to {after} tokens.": "模型要求压缩：{before} → {after} 个词元。",
    "The model asked for a compaction, which was not possible: {why}.": "模型要求压缩，但无法进行：{why}。",
    "The model could not write the summary in {n} compaction[s] in a row, so rules make all summaries of this session from now on. Use /compact to ask the model again.": (  # noqa: E501
        "模型连续 {n} 次未能写出摘要，本次会话从现在起由规则生成摘要。用 /compact 再让模型试一次。"
    ),
    "Compaction failed {n} time[s] in a row, so automatic compaction is off for this session. Use /compact to try again, or /clear to start a new session.": (  # noqa: E501
        "压缩连续失败 {n} 次，本次会话不再自动压缩。用 /compact 重试，或用 /clear 开始新会话。"
    ),
    "The window was full again within {n} turn[s] after {m} compaction[s] in a row, so automatic compaction is off for this session. {advice}": (  # noqa: E501
        "连续 {m} 次压缩后，窗口都在 {n} 轮内再次占满，本次会话不再自动压缩。{advice}"
    ),
    "The first request alone has {n} tokens. Shorten the instructions or the list of tools.": (
        "仅第一个请求就有 {n} 个词元。请缩短说明文件或工具列表。"
    ),
    "Something that is read repeatedly is too large for the window. Read smaller parts and then use /compact, or start a new session with /clear.": (  # noqa: E501
        "反复读取的内容对窗口来说太大。请分段读取后用 /compact，或用 /clear 开始新会话。"
    ),
    "The first request has {n} of {m} tokens, which no compaction can remove, so automatic compaction waits until the window is nearly full. Shorten the instructions or the list of tools.": (  # noqa: E501
        "第一个请求占 {m} 个词元中的 {n} 个，压缩不能减少它，所以窗口快满时才自动压缩。请缩短说明文件或工具列表。"
    ),
    "The pins are too large for this window, so {names} [is|are] shortened from now on. The transcript has the full text: expand a pin by its id to see it.": (  # noqa: E501
        "固定的文字对窗口来说太大，{names} 从现在起缩短显示。记录里有全文：用它的 id 展开查看。"
    ),
    "The model did not write the summary: {why}. Lamina made it by rules instead: it lists requests, files, errors and open tasks, but no conclusions. Undo {id} to restore everything.": (  # noqa: E501
        "模型没有写出摘要：{why}。Lamina 改用规则生成：列出请求、文件、错误和未完成的任务，但没有结论。撤销 {id} 可恢复一切。"
    ),
    "A PreCompact hook blocked compaction ({why}), but the window is full, so the conversation is compacted anyway. Use /undo to take it back.": (  # noqa: E501
        "PreCompact 钩子阻止压缩（{why}），但窗口已满，仍然压缩了对话。用 /undo 撤销。"
    ),
    "The summary that was being made in the background was dropped, because the undo changed the conversation.": (
        "后台正在写的摘要已放弃，因为撤销改变了对话。"
    ),
    "The server refused part of the conversation, which is left out from now on ({error}).": (
        "服务器拒绝了对话的一部分，从现在起不再发送（{error}）。"
    ),
    "Background job '{name}' did not finish within {limit} and was cancelled.": "后台任务“{name}”没有在 {limit} 内完成，已取消。",
    "{sentence} Last reason: {why}": "{sentence}最后的原因：{why}",
    # Reasons of permission questions
    "The rule {rule} requires confirmation.": "规则 {rule} 要求确认。",
    "The rule {rule} forbids this.": "规则 {rule} 禁止这样做。",
    "This may do what the deny rule {rule} forbids.": "这可能会做规则 {rule} 禁止的事。",
    "{tool} is denied in read-only mode. The user can change the mode.": "只读模式下不允许 {tool}。用户可以更换模式。",
    "Changing {file} needs confirmation: {why}.": "改动 {file} 需要确认：{why}。",
    "Reading {file} needs confirmation: {why}.": "读取 {file} 需要确认：{why}。",
    "{tool} changes {file}, which is outside the project.": "{tool} 会改动项目之外的 {file}。",
    "{tool} changes {file}.": "{tool} 会改动 {file}。",
    "{file} is outside the project.": "{file} 在项目之外。",
    "The command may do more than read.": "这个命令可能不只是读取。",
    "This fetches from {host}.": "这会从 {host} 获取内容。",
    "This sends a message to another program: {to}.": "这会向另一个程序发送消息：{to}。",
    "{tool} may change something.": "{tool} 可能会改动一些东西。",
    "its name contains invisible characters": "文件名包含不可见字符",
    "files in {name} can make programs run": "{name} 里的文件可以让程序运行",
    "programs read this file when they start": "程序启动时会读取这个文件",
    "it contains settings and keys": "其中有设置和密钥",
    "it contains keys": "其中有密钥",
    "it is a kernel file": "这是内核文件",
    "Lamina stores its files there": "Lamina 把自己的文件存放在那里",
    "Saved in {path}.": "已保存到 {path}。",
    "Saved in {path}. It applies to this chat now, and to others once you trust this directory.": (
        "已保存到 {path}。现在对本次对话有效，信任这个目录后对其他对话也有效。"
    ),
    "The rule applies to this chat only: {why}": "这条规则只对本次对话有效：{why}",
    # /compact, /snip and /expand
    "Nothing was compacted: {why}.": "没有压缩：{why}。",
    "Nothing would be compacted: {why}.": "不会压缩任何内容：{why}。",
    "there is nothing to summarise yet": "还没有可以总结的内容",
    "there is nothing to summarise": "没有可以总结的内容",
    "the conversation changed while the summary was being written": "写摘要时对话发生了变化",
    "Compacted {how}: {before} to {after} tokens in {seconds} s.": (
        "已压缩（{how}）：{before} → {after} 个词元，用时 {seconds} 秒。"
    ),
    "from the notes, without a model call": "用笔记，不调用模型",
    "with a prepared summary": "用准备好的摘要",
    "by rules, without a model": "用规则，不用模型",
    "with a summary": "用摘要",
    "Not restored in full: {files}.": "没有完整恢复：{files}。",
    "{file} (it no longer exists)": "{file}（已不存在）",
    "{file} (it is an image)": "{file}（是图片）",
    "{file} (it is no longer a text file)": "{file}（不再是文本文件）",
    "Of {n} fact[s] removed, {places}.": "移出的 {n} 条事实中，{places}。",
    "{n} [is|are] still in the context": "{n} 条仍在上下文中",
    "{n} [is|are] one tool call away": "{n} 条可用一次工具调用取回",
    "{n} [is|are] out of the model's reach": "{n} 条模型已看不到",
    "The {n} oldest round[s] did not fit into the call, so the summary does not cover [it|them].": (
        "最早的 {n} 轮放不进请求，摘要不包含它们。"
    ),
    "Files restored: {files}": "已恢复的文件：{files}",
    "Use /expand {id} to see the original, /undo {same} to undo it.": "用 /expand {id} 查看原文，用 /undo {same} 撤销。",
    "{n} record[s] ({m} model call[s]) would be summarised, {k} kept as they are.": (
        "会总结 {n} 条记录（{m} 次模型调用），{k} 条保持原样。"
    ),
    "About {n} tokens would become about {m}.": "约 {n} 个词元会变成约 {m} 个。",
    "If the summary is not smaller, /compact changes nothing.": "如果摘要不更短，/compact 不做任何改动。",
    "Pins kept word for word: {n}": "原样保留的固定文字：{n}",
    "No turns in view. {hint}": "上下文中没有对话。{hint}",
    "Use /snip N or /snip N-M to hide turns from the model, /undo to bring them back.": (
        "用 /snip N 或 /snip N-M 对模型隐藏几轮，用 /undo 恢复。"
    ),
    "Hidden. The model now sees about {n} tokens. Use /undo {id} to bring it back.": (
        "已隐藏。模型现在看到约 {n} 个词元。用 /undo {id} 恢复。"
    ),
    "Usage: /expand ID [PAGE]. The id is in the summary or the marker.": "用法：/expand ID [PAGE]。id 在摘要或标记里。",
    "Page {n} of {m}: /expand {id} {k}": "第 {n} 页，共 {m} 页：/expand {id} {k}",
    # /dream
    "No dream was started: {why}.": "没有开始整理：{why}。",
    "Dream completed: {changes}. Use /dream undo to revert it.": "整理完成：{changes}。用 /dream undo 撤销。",
    "Dream completed: {changes}.": "整理完成：{changes}。",
    "The dream completed before it could be stopped: {changes}.": "整理在停止之前已经完成：{changes}。",
    "The dream {outcome}.": "整理{outcome}。",
    "[failed|was stopped]: {why}; {left}": "没有完成：{why}；{left}",
    "nothing was changed": "没有改动",
    "some memories were changed; {repair}": "部分记忆已改动；{repair}",
    "was interrupted; {repair}": "被中断；{repair}",
    "was partly undone; {repair}": "只撤销了一部分；{repair}",
    "was undone": "已撤销",
    "the next session repairs this, or run `lamina dream --kill`": "下次会话会修复，或运行 `lamina dream --kill`",
    "nothing to change": "没有需要改动的",
    "merged {n}": "合并 {n} 条",
    "added {n}": "新增 {n} 条",
    "changed {n}": "改动 {n} 条",
    "removed {n}": "删除 {n} 条",
    "merged {n} ({names})": "合并 {n} 条（{names}）",
    "added {n} ({names})": "新增 {n} 条（{names}）",
    "changed {n} ({names})": "改动 {n} 条（{names}）",
    "removed {n} ({names})": "删除 {n} 条（{names}）",
    "repaired the index": "修复了索引",
    "{n} change[s] pending approval": "{n} 处改动等待批准",
    "{n} need[s] your approval (`lamina inbox`)": "{n} 处需要你批准（`lamina inbox`）",
    "Run `lamina inbox` to review the pending changes.": "运行 `lamina inbox` 查看等待批准的改动。",
    "left unchanged: {file}": "保持不变：{file}",
    "Running: {dream} since {when}, process {n}, {phase}, {k} answer[s] so far": (
        "正在运行：{dream}，从 {when} 起，进程 {n}，阶段：{phase}，已有 {k} 个回答"
    ),
    "Running: {dream}, but its process {n} has died; {repair}": "正在运行：{dream}，但进程 {n} 已不存在；{repair}",
    "stopped on request": "按要求停止",
    "its session ended": "会话已结束",
    "it exceeded the time limit for dreams": "超过整理的时限",
    "Last dream: {when}": "上次整理：{when}",
    "none yet": "还没有",
    "Next: at the end of the next turn": "下次：下一轮结束时",
    "Next: not yet, {why}": "下次：还不到时候，{why}",
    "Pending memory changes: {n} (lamina inbox)": "等待批准的记忆改动：{n}（lamina inbox）",
    "dreaming is off": "整理已关闭",
    "private memory is read-only": "个人记忆是只读的",
    "private memory is off: lamina.memoryMode is off ({last}); set it to auto or confirm": (
        "个人记忆已关闭：lamina.memoryMode 为 off（{last}）；请设为 auto 或 confirm"
    ),
    "private memory is off: autoMemoryEnabled is false ({last}); set it to true": (
        "个人记忆已关闭：autoMemoryEnabled 为 false（{last}）；请设为 true"
    ),
    "private memory is off: {last} is set; unset it": "个人记忆已关闭：已设置 {last}；请取消该设置",
    "private memory is off: bare mode is on; start without it": "个人记忆已关闭：正以精简模式运行；请不用该模式启动",
    "private memory is off: this machine is ephemeral and has no memory directory; set LAMINA_REMOTE_MEMORY_DIR": (
        "个人记忆已关闭：这台机器是临时的，而且没有记忆目录；请设置 LAMINA_REMOTE_MEMORY_DIR"
    ),
    "there are no memories yet": "还没有记忆",
    "the last dream was today": "今天已经整理过",
    "the last dream was {passed} ago; the next may run in {left}": "距上次整理 {passed}；{left}后可以再次整理",
    "less than a minute": "1 分钟以内",
    "{n} h {m} min": "{n} 小时 {m} 分钟",
    "{n} h": "{n} 小时",
    "{n} min": "{n} 分钟",
    "{n} hour[s]": "{n} 小时",
    "{n} minute[s]": "{n} 分钟",
    "only {n} of {m} session[s] since the last dream": "上次整理以来只有 {n} 个会话，需要 {m} 个",
    "Undid dream {id}: restored {what}.": "已撤销整理 {id}：恢复了{what}。",
    "Applied dream {id} again: changed {what}.": "已重新应用整理 {id}：更改了{what}。",
    "the index": "索引",
    "{n} memor[y|ies]": " {n} 条记忆",
    "Stopped dream {id}. Memory is as it was before.": "已停止整理 {id}。记忆和之前一样。",
    "Unknown command /dream {word}. Usage: {usage}": "没有命令 /dream {word}。用法：{usage}",
    # Names of background work
    "extraction": "提取记忆",
    "dream": "整理记忆",
    "notes": "会话笔记",
    "summary": "摘要",
    "select": "挑选记忆",
    "agent_summary": "代理进展",
    "keep_alive": "保持缓存",
    "agent: {last}": "代理：{last}",
    # /context
    "no model yet": "还没有模型",
    "{model}: about {n} of {m} tokens, {k}% left": "{model}：约 {n} / {m} 个词元，剩余 {k}%",
    "Context window: {n} tokens. {m} of them are reserved for the answer, {k} are usable.": (
        "上下文窗口：{n} 个词元，其中 {m} 个留给回答，{k} 个可用。"
    ),
    "Context window: {n} tokens ({why}). {m} of them are reserved for the answer, {k} are usable.": (
        "上下文窗口：{n} 个词元（{why}），其中 {m} 个留给回答，{k} 个可用。"
    ),
    "Context window: {n} tokens.": "上下文窗口：{n} 个词元。",
    "Context window: {n} tokens ({why}).": "上下文窗口：{n} 个词元（{why}）。",
    "set when the session was opened": "打开会话时指定",
    "from the settings": "来自设置",
    "from the environment": "来自环境变量",
    "from the model's name": "来自模型名称",
    "known for this model": "该模型的已知值",
    "stated in the session's file": "会话文件中的记录",
    "from the beta header": "来自 beta 请求头",
    "reported by the server": "由服务器报告",
    "assumed": "假定值",
    "Warning at {n}, {compaction}, full at {m}.": "{n} 时提醒，{compaction}，{m} 时已满。",
    "automatic compaction at {n}": "{n} 时自动压缩",
    "automatic compaction is off": "自动压缩已关闭",
    "system prompt and tools": "系统提示和工具",
    "your messages": "你的消息",
    "answers": "回答",
    "thinking": "思考",
    "{tool} calls": "{tool} 调用",
    "{tool} results": "{tool} 结果",
    "memory and instructions": "记忆和说明文件",
    "attachments": "附件",
    "summaries": "摘要",
    "other": "其他",
    "Files read more than once, with the tokens of the repeats ({n} in total):": "多次读取的文件和重复读取的词元（共 {n} 个）：",
    "Large results stored in files ({n} bytes in total):": "存为文件的大结果（共 {n} 字节）：",
    "{n} times": "{n} 次",
    "and {n} older": "以及更早的 {n} 个",
    "and {n} more": "以及另外 {n} 个",
    "… and {n} more": "… 以及另外 {n} 个",
    "{names} and {n} more": "{names} 和另外 {n} 个",
    # The narration of a dream
    "{n} call[s]": "{n} 次调用",
    "Memory is in order; nothing was changed. (These are rules, not a language model.)": (
        "记忆井井有条，没有改动。（由规则整理，不是语言模型。）"
    ),
    "Memory was tidied by rules ({parts}).": "已按规则整理记忆（{parts}）。",
    "its index": "索引",
    "{n} memor[y|ies] made from daily logs": "从日志整理出 {n} 条记忆",
    "{n} memor[y|ies] merged": "合并 {n} 条记忆",
    "{n} relative date[s] made absolute": "{n} 个相对日期已换成具体日期",
    "{n} index line[s] repaired": "修复 {n} 行索引",
    "starting": "开始",
    "updating": "正在更新",
    "applying": "正在写入",
    "applied": "已写入",
    "undoing": "正在撤销",
    "and {n} more left unchanged; --json lists them": "另有 {n} 个保持不变；--json 可全部列出",
    "a dream of this session is running": "本次会话的整理正在进行",
    "this is not an interactive chat with memory": "这不是带记忆的交互式对话",
    "ephemeral machine": "临时机器",
    "{n} failures in a row": "已连续失败 {n} 次",
    "no earlier day has a new daily log, and today's waits for midnight": "之前的日子没有新的日志，今天的要等到午夜",
    "today's budget for background work is used up": "今天的后台预算已用完",
    "sessions were counted {n} minute[s] ago (the minimum is {m})": "{n} 分钟前刚统计过会话（至少间隔 {m} 分钟）",
    "process {n} has been dreaming since {when}": "进程 {n} 从 {when} 起正在整理",
    # /forget
    "No matches found.": "没有找到。",
    "Nothing {verb} removed.": "没有删除任何内容。",
    "Would be removed: {counts}.": "将删除：{counts}。",
    "Removed: {counts}.": "已删除：{counts}。",
    "{n} in {kind}": "{kind}中 {n} 处",
    "{kind}: {path} ({n} place[s])": "{kind}：{path}（{n} 处）",
    "{kind}: {path} (whole file)": "{kind}：{path}（整个文件）",
    "memories": "记忆",
    "indexes": "索引",
    "transcripts": "会话记录",
    "chat history": "输入历史",
    "history": "改动历史",
    "git history": "Git 历史",
    "caches": "缓存",
    "dreams": "整理记录",
    "inbox": "待批准的改动",
    "logs": "日志",
    "Not done: {path}: {why}": "未处理：{path}：{why}",
    "Left: {path}: {why}": "保留：{path}：{why}",
    "Left: {n} more; --json lists them.": "另外保留 {n} 个；--json 可全部列出。",
    "Unfinished. Run `lamina forget --resume` to finish it.": "尚未完成。运行 `lamina forget --resume` 继续。",
    # /search
    "{n}.  {origin}  {speaker}  {last}": "{n}.  {origin}  {speaker}  {last}",
    "memory": "记忆",
    "user": "用户",
    "assistant": "助手",
    "subagent": "子代理",
    # The provider's failures
    "The turn was not finished after {n} model call[s].": "调用模型 {n} 次后本轮仍未完成。",
    "Standard output: {last}. The answer printed is incomplete; the session has all of it.": (
        "标准输出：{last}。打印的回答不完整；会话里有全部内容。"
    ),
    "Stopped. The conversation so far is kept, and the next message continues from there.": (
        "已停止。到目前为止的对话会保留，下一条消息从这里继续。"
    ),
    "No response from {last}. Check the network and the base URL.": "模型服务没有响应：{last}。请检查网络和 base URL。",
    "The response from {who} is not readable: {last}. You can retry the request.": "无法读取 {who} 的回答：{last}。可以重试。",
    "The response from {who} was interrupted. {error} You can retry the request.": "{who} 的回答中断了。{error}可以重试。",
    "The response is not readable ({last}). You can retry the request.": "无法读取回答（{last}）。可以重试。",
    "The stream contains invalid data ({last}). You can retry the request.": "回答里有无效数据（{last}）。可以重试。",
    "The response ended early, without a stop reason. You can retry the request.": "回答提前结束，没有说明原因。可以重试。",
    "The response exceeds the size limit; the server does not end it.": "回答超过大小上限，服务器没有结束它。",
    "The prompt is too long for {who}: {last}. Compact the conversation.": "请求对 {who} 来说太长：{last}。请压缩对话。",
    "The offline provider has no function for '{last}'. Configure another provider to use it.": (
        "离线替身不能处理“{last}”。请配置另一个模型服务。"
    ),
    "{who} declined the request: {last}. Rephrase it.": "{who} 拒绝了请求：{last}。请换一种说法。",
    "{who} rejected the API key or account ({n}): {last}. Check the key and its permissions.": (
        "{who} 不接受 API 密钥或账户（{n}）：{last}。请检查密钥和它的权限。"
    ),
    "{who} returned not found (404): {last}. Check the model name and the base URL.": (
        "{who} 没有找到（404）：{last}。请检查模型名称和 base URL。"
    ),
    "{who} rate-limited the request (429): {last}. Try again later.": "{who} 限制了请求频率（429）：{last}。请稍后再试。",
    "{who} is overloaded ({n}): {last}. Try again later.": "{who} 过载（{n}）：{last}。请稍后再试。",
    "{who} failed ({n}): {last}. Try again later.": "{who} 出错（{n}）：{last}。请稍后再试。",
    "{who} failed: {last}. Try again later.": "{who} 出错：{last}。请稍后再试。",
    "{who} rejected the request ({n}): {last}.": "{who} 拒绝了请求（{n}）：{last}。",
    "The package {last} is not installed. Run {command} in Lamina's source directory to install it.": (
        "没有安装 {last} 包。在 Lamina 的源码目录运行 {command} 安装。"
    ),
    "The conversation has about {n} tokens and the limit is {m}. Compact it (/compact), undo, or start a new session (/clear) before sending the next message.": (  # noqa: E501
        "对话约有 {n} 个词元，上限是 {m}。发送下一条消息之前请压缩（/compact）、撤销，或开始新会话（/clear）。"
    ),
    "Cannot undo {one} yet. Undo {first} first: it is newer and depends on {last}.": "还不能撤销 {one}。请先撤销较新的 {first}。",
    # Files and sessions
    "Session {name} continues as {id}, because {why}.": "会话 {name} 以 {id} 继续，因为{why}。",
    "it is open in another process": "它在另一个进程中打开",
    "it was last written by another program": "它最后由另一个程序写入",
    "{error} This session is kept in memory only and cannot be resumed.": "{error}本次会话只保存在内存中，不能恢复。",
    "{error} This session goes on without memory.": "{error}本次会话不使用记忆。",
    "{error} This session continues without memory.": "{error}本次会话不使用记忆。",
    "{error} Until this is fixed, no memories are recalled.": "{error}在此之前不会调出记忆。",
    "{error} Until then memory can be read but not written.": "{error}在此之前记忆只能读取，不能写入。",
    "{error} The conversation continues; {waiting} for the next write.": "{error}对话继续；{waiting}，等待下次写入。",
    "{n} record[s] [waits|wait] in memory": "{n} 条记录在内存中",
    "{n} record[s]": "{n} 条记录",
    "{path}: the last {records} could not be written and [is|are] lost. Free some space or make the directory writable, then repeat what must be kept.": (  # noqa: E501
        "{path}：最后 {records}未能写入，已丢失。请腾出空间或使目录可写，然后重复必须保留的内容。"
    ),
    "the disk is full or the quota is used up": "磁盘已满或配额已用完",
    "free some space (no existing data was lost)": "请腾出空间（已有数据没有丢失）",
    "is not writable": "不可写",
    "is a file, not a directory": "是文件，不是目录",
    "move it, or set LAMINA_HOME to a directory": "请移走它，或把 LAMINA_HOME 设为一个目录",
    "check its permissions or set LAMINA_HOME to a writable directory": "请检查权限，或把 LAMINA_HOME 设为可写的目录",
    "is in use by {holder}": "正被{holder}使用",
    "another process": "另一个进程",
    "the process this one was forked from": "父进程",
    "close it there first": "请先在那里关闭",
    "the file system does not support file locks": "文件系统不支持文件锁",
    "move LAMINA_HOME to a local disk": "请把 LAMINA_HOME 移到本地磁盘",
    "{path}: written in format {n} by a newer version of Lamina; this version writes format {m}. Upgrade to continue the session; reading it still works.": (  # noqa: E501
        "{path}：由更新版本的 Lamina 以格式 {n} 写入；这个版本写格式 {m}。升级后可以继续会话；现在只能读取。"
    ),
    "was changed by someone else in the meantime": "在此期间被别人改动",
    "read it again and save what still applies": "请重新读取，再保存仍然适用的内容",
    # Trust and approval
    "Ignored, because this directory is not trusted: {last}.": "已忽略，因为没有信任这个目录：{last}。",
    "A memory change needs your approval. Run `{last}`.": "一处记忆改动需要你批准。运行 `{last}`。",
    "A memory change waits for your approval: {last}": "一处记忆改动等待你批准：{last}",
    # Why a summary was not used
    "the model refused to write it": "模型拒绝写",
    "it calls a tool": "其中调用了工具",
    "it was cut off": "没有写完",
    "it holds no <summary>": "没有 <summary>",
    "it is empty": "是空的",
    "it is too short": "太短",
    "it is no smaller than the messages it would replace ({n} of {m} tokens)": "不比它要代替的消息短（{n} / {m} 个词元）",
    # Reasons that come from errors
    "{path} does not exist. Use Glob to find files by name. The working directory is {cwd}.": "{path} 不存在。当前目录是 {cwd}。",
    "{path} does not exist. Similar: {names}.": "{path} 不存在。相近的有：{names}。",
    "{path} does not exist, and neither does its directory (nearest existing directory: {above}).": (
        "{path} 和它所在的目录都不存在（最近的现有目录：{above}）。"
    ),
    "{name} is not a read-only command ({names}); use one of these.": "{name} 不是只读命令，只读命令有：{names}。",
    "Session {name} not found in {path}. Run `lamina sessions list --all` to see the ids.": (
        "在 {path} 里没有会话 {name}。运行 `lamina sessions list --all` 查看 id。"
    ),
    "no home directory found.": "找不到主目录。",
    "turns": "轮次",
    "turn {n} does not exist (the session has {m} turn[s])": "没有第 {n} 轮（本次会话有 {m} 轮）",
    "{last} is not a number or a range": "{last} 不是序号或范围",
    "use a form like 2 or 2-4": "请写成 2 或 2-4",
    "no compaction with this id exists in the transcript": "记录里没有这个 id 的压缩",
    "copy the id from its summary": "请从摘要里复制 id",
    "undo": "撤销",
    "no change with id {last}": "没有 id 为 {last} 的改动",
    "`lamina sessions show` lists the ids": "`lamina sessions show` 列出 id",
    "there is nothing to undo (the last {n} dreams are kept)": "没有可以撤销的（保留最近 {n} 次）",
    "dream {id}": "整理 {id}",
    "not found (the last {n} dreams are kept)": "没有找到（保留最近 {n} 次）",
    "run `lamina dream --status` to see which dreams are kept": "运行 `lamina dream --status` 查看保留了哪些",
    "no dream is running": "没有正在进行的整理",
    "run `lamina dream --status` to see earlier ones": "运行 `lamina dream --status` 查看以前的",
    "Setting {key} ({last})": "设置 {key}（{last}）",
    "the provider of this model is unknown": "不知道由谁提供",
    "use anthropic:MODEL, openai:MODEL or offline": "请用 anthropic:MODEL、openai:MODEL 或 offline",
    "no API key found": "没有 API 密钥",
    "set {last}, or use offline, which needs no key": "请设置 {last}，或用不需要密钥的 offline",
    "session id": "会话 id",
    "invalid session id {last}": "{last} 无效",
    "use up to {n} letters, digits, '-' and '_'": "最多 {n} 个字母、数字、“-”和“_”",
    "the session is open ({holder}); close it and try again": "会话正打开着（{holder}）；请关闭后重试",
    "process {n} on {last}": "{last} 上的进程 {n}",
    "would consist only of a secret, which is not saved": "去掉密钥就什么都不剩，没有保存",
    "save where the secret is kept instead": "请改为说明密钥保存在哪里",
    "contains a secret": "含有密钥",
    "the file name contains a secret": "文件名里含有密钥",
    "contains a secret that is also in the text": "名称里含有密钥",
    "choose a name that describes the subject": "请换一个说明主题的名称",
    "choose a file name that describes the subject": "请换一个说明主题的文件名",
    "remove it, because team memory is shared": "请删去它，因为团队记忆是共享的",
    "memories about a person stay private": "关于个人的记忆只归自己",
    "save it without the team scope": "请不要存进团队记忆",
    "is longer than {n} KiB": "超过了 {n} KiB",
    "keep the essentials and name the place of the rest": "请只留要点，并写明其余内容在哪里",
    "no such memory exists": "没有这条记忆",
    "no such memory is known": "没有这条记忆",
    "run `lamina memory list` to see the names": "运行 `lamina memory list` 查看名称",
    "run `lamina memory log` to list all changes": "运行 `lamina memory log` 查看所有改动",
    "it is full ({n} proposals)": "已满（{n} 条）",
    "run `lamina inbox` to review them": "运行 `lamina inbox` 处理",
    "has changed since this was proposed": "提出之后又有改动",
    "review the new diff, then accept again": "请查看新的差异后再接受",
    "team memory is off": "团队记忆没有开启",
    "the message is empty": "消息是空的",
    "pass some text or a file": "请写一些文字或附上文件",
    "other files": "其他文件",
    "trash": "回收站",
    # /cost
    "conversation": "对话",
    "unknown price": "价格未知",
    "{n} token[s]": "{n} 个词元",
    "{n} token[s] read from the cache": "从缓存读取 {n} 个词元",
    "{n} token[s] written": "写入 {n} 个词元",
    "{n} token[s] uncached": "未缓存 {n} 个词元",
    "{n} token[s] output": "输出 {n} 个词元",
    "no tokens": "没有词元",
    # Results of tool calls
    "{n} line[s]": "{n} 行",
    "{n} line[s] of {m}": "{n} 行，共 {m} 行",
    "new, {n} line[s]": "新文件，{n} 行",
    "{n} line[s] in {m} file[s]": "{m} 个文件中的 {n} 行",
    "{n} file[s]": "{n} 个文件",
    "-{n} +{m} at line {k}": "-{n} +{m}，第 {k} 行",
    "in the background as {agent}": "在后台运行，名为 {agent}",
    "stopped: too much output": "已停止：输出太多",
    "exit code {n}: {last}": "退出码 {n}：{last}",
    "exit code {n}": "退出码 {n}",
    "timed out: {last}": "超时：{last}",
    "timed out": "超时",
    "stopped: {last}": "已停止：{last}",
    "stopped": "已停止",
    "failed": "失败",
    "Denied by the user. {why} Do not try it again in another way; ask what to do instead.": "用户拒绝。{why}",
    "Denied. The user said: {last}": "用户拒绝，并说：{last}",
    "all occurrences in the file": "文件中的所有位置",
    "… and {n} more line[s] not shown here": "… 还有 {n} 行没有显示",
    "{id}  {outcome}": "{id}  {outcome}",
    # An error: its subject, the problem, and what to do next.
    "{what}: {problem}; {remedy}.": "{what}：{problem}；{remedy}。",
    "{what}: {problem}.": "{what}：{problem}。",
}
