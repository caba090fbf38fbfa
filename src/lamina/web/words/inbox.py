"""Words of the inbox."""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "inbox.title": ("Waiting for you", "等待您处理"),
    "inbox.count": ("{n} proposal; it is not in use yet|{n} proposals; none is in use yet", "{n} 项提议，尚未生效"),
    "inbox.accept_all": ("Accept all", "全部接受"),
    "inbox.accept": ("Accept", "接受"),
    "inbox.refuse": ("Refuse", "拒绝"),
    "inbox.keep": ("Keep it", "保留"),
    "inbox.accept_edited": ("Save and accept", "保存并接受"),
    "inbox.accept_named": ("Accept {name}", "接受 {name}"),
    "inbox.refuse_named": ("Refuse {name}", "拒绝 {name}"),
    "inbox.edit_named": ("Edit {name}", "编辑 {name}"),
    "inbox.new": ("new, from {who}", "新建，来自{who}"),
    "inbox.change": ("changed by {who}", "由{who}修改"),
    "inbox.remove": ("removal, proposed by {who}", "移除，由{who}提议"),
    "inbox.waits": ("It waits: {why}", "等待原因：{why}"),
    "inbox.recent_title": ("Recent changes by MCP clients", "MCP 客户端最近的更改"),
    "inbox.recent_count": ("{n} memory; it is in use|{n} memories; all are in use", "{n} 条记忆，已经生效"),
    "inbox.undo": ("Undo", "撤销"),
    "inbox.undo_named": ("Undo the change of {name}", "撤销对 {name} 的更改"),
    "inbox.undone": ("Took back the change of “{name}” by {client}.", "已撤销 {client} 对“{name}”的更改。"),
    "inbox.accepted": (
        "Accepted “{name}”.|Accepted {n} changes, from “{name}” on.",
        "已接受 {n} 项更改：“{name}”。",
    ),
    "inbox.refused": (
        "Refused “{name}”.|Refused {n} changes, from “{name}” on.",
        "已拒绝 {n} 项更改：“{name}”。",
    ),
    "inbox.accepted_some": ("accepted {n}, then stopped", "已接受 {n} 项，然后停止"),
    "inbox.waits_again": ("The proposal waits again.|{n} proposals wait again.", "{n} 项提议重新等待处理。"),
    "inbox.too_late": ("it is too late; the history of the memory has its versions", "现在已无法撤销；各个版本仍在记忆的历史中"),
    "inbox.decided_title": ("Decided proposals", "已处理的提议"),
    "inbox.was_accepted": ("proposed by {who}, accepted", "由{who}提议，已接受"),
    "inbox.was_refused": ("proposed by {who}, refused", "由{who}提议，已拒绝"),
    "inbox.again": ("Let it wait again", "重新等待处理"),
    "inbox.again_named": ("Let {name} wait again", "让 {name} 重新等待处理"),
    "inbox.decided": ("this proposal is already decided", "此提议已处理"),
    "inbox.renewed": (
        "This proposal has a new difference.",
        "此提议已更新，请查看新的差异。",
    ),
}
