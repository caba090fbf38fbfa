"""The labels of codes: kinds of blocks, causes, states, purposes, authors and months, each with its text."""

from __future__ import annotations

from ..language.text import Text

# The window of a session
BLOCK_KINDS = {
    "unrecorded_head": Text("System and tools"),
    "system": Text("System prompt"),
    "tools": Text("Tool definitions"),
    "memory": Text("Memory"),
    "summary": Text("Summaries"),
    "user": Text("You"),
    "assistant": Text("Assistant"),
    "thinking": Text("Thinking"),
    "call": Text("Tool calls"),
    "files": Text("Results: files"),
    "shell": Text("Results: shell"),
    "web": Text("Results: web, MCP"),
    "other": Text("Results: other"),
    "unrecorded": Text("Not in the transcript##a kind"),
}
CACHED = {
    "read": Text("read##a block"),
    "partly": Text("partly read"),
    "new": Text("written by this request"),
    "unknown": Text("not recorded"),
}
DECISIONS = {
    "clear": Text("Cleared"),
    "compact": Text("Compacted"),
    "collapse": Text("Collapsed"),
    "spill": Text("Stored"),
    "undo": Text("Undone"),
    "model": Text("Model changed"),
    "break": Text("Cache break"),
    "unrecorded": Text("Unexplained"),
}
# The kinds of decisions as causes of a cache break
CAUSES = {
    "spill": Text("Large results moved to files"),
    "clear": Text("Results cleared"),
    "compact": Text("Compaction"),
    "collapse": Text("Collapse"),
    "undo": Text("Undo"),
    "model": Text("Change of model"),
    "unrecorded": Text("Not in the transcript"),
}
DECISION_COUNTS = {
    "compact": Text("{n} compaction.|{n} compactions."),
    "model": Text("{n} change of the model.|{n} changes of the model."),
    "break": Text("{n} cache break.|{n} cache breaks."),
    "unrecorded": Text("{n} request changed without a record.|{n} requests changed without a record."),
}
COST_PARTS = {
    "read": Text("Read from cache"),
    "written": Text("Written"),
    "output": Text("Output"),
}
COST_TEXTS = {
    "read": Text("read {usd}"),
    "written": Text("written {usd}"),
    "output": Text("output {usd}"),
}
TOKEN_COUNTS = {
    "read": Text("{tokens} tokens read from cache"),
    "written": Text("{tokens} written to it"),
    "uncached": Text("{tokens} uncached"),
    "output": Text("{tokens} output"),
}
AXES = {
    "request": Text("By request"),
    "time": Text("By time"),
}
# Lists of sessions, and results of a search
SORT_ORDERS = {
    "newest": Text("Newest first"),
    "dearest": Text("Most expensive first"),
    "fullest": Text("Fullest first"),
    "longest": Text("Longest first"),
}
USE_FIRST = Text("Most used first")  # under a subscription
SPEAKERS = {
    "user": Text("You"),
    "assistant": Text("Assistant"),
    "subagent": Text("Subagent"),
    "memory": Text("Memory"),
    "tool": Text("Tool result"),
    "summary": Text("Summary"),
    "other": Text("Record"),
}
# Memories
MEMORY_TYPES = {
    "user": Text("user"),
    "feedback": Text("feedback"),
    "project": Text("project"),
    "reference": Text("reference"),
    "none": Text("no type"),
}
AUTHORS = {
    "user": Text("you"),
    "agent": Text("agent"),
    "extraction": Text("extraction"),
    "dream": Text("dream"),
    "outside": Text("an editor"),
}
AUTHORS_IN_SENTENCES = {
    "user": Text("you"),
    "agent": Text("an agent"),
    "extraction": Text("extraction"),
    "dream": Text("a dream"),
    "outside": Text("an editor"),
}
EVIDENCE = {
    "fresh": Text("fresh"),
    "stale": Text("stale"),
    "unverifiable": Text("cannot be checked"),
    "none": Text("none named"),
}
MATCHED_FIELDS = {
    "name": Text("in the title"),
    "description": Text("in the description"),
    "text": Text("in the text"),
}
MEMORY_ACTIONS = {
    "save": Text("Saved"),
    "remove": Text("Removed"),
    "restore": Text("Restored"),
    "outside": Text("Changed##a memory"),
    "keep": Text("Kept"),
    "undone": Text("Undone"),
    "rename": Text("Renamed"),
}
NOT_EDITABLE = {
    "large": Text(
        "This file has {size}, so Lamina reads only its first {part} and does not change it. Shorten it, or remove it by hand."
    ),
    "not text": Text("This file is not UTF-8 text, so Lamina does not change it. Convert it, or remove it by hand."),
}
PROPOSED = {
    "new": Text("new, from {who}"),
    "change": Text("changed by {who}"),
    "remove": Text("removal, proposed by {who}"),
}
# Dreams and background work
DREAM_PHASES = {
    "starting": Text("starting"),
    "updating": Text("working on a copy"),
    "applying": Text("changing memories"),
    "applied": Text("done"),
    "undoing": Text("being undone"),
}
DREAM_STATES = {
    "running": Text("interrupted"),
    "completed": Text("completed"),
    "failed": Text("failed"),
    "killed": Text("stopped"),
    "undone": Text("undone"),
}
DREAM_STARTERS = {
    "session": Text("started by a session"),
    "hand": Text("started by hand"),
}
CHANGE_STATES = {
    "waiting": Text("waits for your approval"),
    "changed": Text("changed since then"),
    "refused": Text("not applied"),
    "undone": Text("undone"),
}
CHANGE_COUNTS = {
    "merged": Text("{n} merged"),
    "added": Text("{n} added"),
    "changed": Text("{n} changed"),
    "removed": Text("{n} removed"),
    "waiting": Text("{n} waiting for you"),
    "decided": Text("{n} proposal decided|{n} proposals decided"),
}
CHANGES = {
    "added": Text("New: {name}"),
    "removed": Text("Removed: {name}"),
    "changed": Text("Changed: {name}"),
}
PROPOSED_CHANGES = {
    "added": Text("Would be added: {name}"),
    "removed": Text("Would be removed: {name}"),
    "changed": Text("Would change: {name}"),
}
PURPOSES = {
    "extraction": Text("extraction"),
    "dream": Text("dream"),
    "notes": Text("notes"),
    "select": Text("recall"),
    "summary": Text("summary"),
    "agent": Text("agent"),
    "agent_summary": Text("agent summary"),
}
# Replays
POLICIES = {
    "balanced": Text("the default: compacts when it pays"),
    "thrifty": Text("as balanced, and shows large results once"),
    "classic": Text("compacts when the window is full, keeps notes"),
    "lean": Text("compacts at 100,000 tokens"),
}
LAYERS = {
    "results": Text("Large results on disk"),
    "clearing": Text("Clearing of old results"),
    "notes": Text("Session notes"),
    "compaction": Text("Compaction"),
    "memory": Text("Memory"),
}
REPLAY_STATES = {
    "running": Text("Running."),
    "done": Text("Finished."),
    "stopped": Text("Stopped. The table shows what was finished."),
}
# The frame and the settings
VIEWS = {
    "overview": Text("Overview"),
    "sessions": Text("Sessions"),
    "memories": Text("Memories"),
    "dreams": Text("Dreams"),
    "replay": Text("Replay"),
    "settings": Text("Settings"),
}
WAYS_BACK = {
    "sessions": Text("Back to the sessions"),
    "memories": Text("Back to the memories"),
    "dreams": Text("Back to the dreams"),
    "replay": Text("Back to the replay"),
}
SETTING_GROUPS = {
    "budget": Text("Budget of background work"),
    "window": Text("Window and model"),
    "results": Text("Layer 1: tool results"),
    "clearing": Text("Layer 2: clearing"),
    "notes": Text("Layer 3: session notes"),
    "compaction": Text("Layer 4: compaction"),
    "price": Text("Price"),
    "memory": Text("Memory and recall"),
    "extraction": Text("Layer 5: extraction"),
    "dreams": Text("Layer 6: dreams"),
    "agents": Text("Layer 7: agents"),
    "general": Text("General"),
}
SETTING_SOURCES = {
    "default": Text("Default"),
    "user": Text("Your settings"),
    "managed": Text("Locked by your organisation:"),
    "environment": Text("Set by the environment:"),
    "local": Text("Local settings of this directory:"),
    "project": Text("Settings of this project:"),
    "remote flag": Text("Remote flag"),
    "argument": Text("Given by a program"),
    "command line": Text("Given on the command line"),
    "rule": Text("Follows from another setting:"),
}
MONTHS = (
    Text("Jan"),
    Text("Feb"),
    Text("Mar"),
    Text("Apr"),
    Text("May"),
    Text("Jun"),
    Text("Jul"),
    Text("Aug"),
    Text("Sep"),
    Text("Oct"),
    Text("Nov"),
    Text("Dec"),
)
# What the scripts show
SCRIPT_TEXTS = {
    "undo": Text("Undo"),
    "lost": Text("Not live: the server stopped. Reload after `lamina ui`."),
    "failed": Text("The server did not answer. Is `lamina ui` still running?"),
    "unsaved": Text("Leave without saving your changes?"),
    "copied": Text("Link copied."),
    "keys_on": Text("Single-letter keys are on."),
    "keys_off": Text("Single-letter keys are off."),
    "scrub": Text("Request"),
    "range_start": Text("First request shown"),
    "range_end": Text("Last request shown"),
    "pause": Text("{n} min pause"),
    "request_one": Text("request {n}"),
    "replaced": Text("This session was replaced on disk. Showing the new one."),
    "new_below": Text("{n} new"),
}
