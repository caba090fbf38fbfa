"""The kinds of content in a context window: the kind of a tool's results, and that of an attachment."""

from __future__ import annotations

# In the order of the prompt: what never changes comes first.
KINDS = (
    "unrecorded_head",  # the system prompt and the tools, if the transcript does not hold them
    "system",
    "tools",
    "memory",
    "summary",
    "user",
    "assistant",
    "thinking",
    "call",
    "files",  # results, by group
    "shell",
    "web",
    "other",
    "unrecorded",  # everything else that was sent but is in no record
)

# Tools by the group of their results, in lower case; tools of MCP servers count as `web`.
_FILES = (
    "read grep glob ls find edit multiedit write notebookread notebookedit read_file list_dir grep_files apply_patch view_image"
)
_SHELL = "bash bashoutput killshell shell exec exec_command write_stdin local_shell shell_command container.exec"
_WEB = "webfetch websearch web_search web_fetch fetch"
GROUPS = {name: group for group, names in (("files", _FILES), ("shell", _SHELL), ("web", _WEB)) for name in names.split()}
FILE_ATTACHMENTS = frozenset({"file", "compact_file_reference", "plan_file_reference", "edited_text_file"})
# Attachments that carry instructions and knowledge; most other kinds report events.
MEMORY_KINDS = frozenset({"instructions", "nested_memory", "memory", "recall", "relevant_memories"})

# Attachments with words of the user: typed while the agent worked, and those that a compaction of another agent restored.
KEPT_MESSAGE = "kept_message"
USER_KINDS = frozenset({"queued_command", KEPT_MESSAGE})


def group_of(tool: str) -> str:
    """Return the kind of a tool's results."""
    name = tool.lower()
    return "web" if name.startswith("mcp__") else GROUPS.get(name, "other")


def kind_of_attachment(kind: str) -> str:
    if kind in MEMORY_KINDS:
        return "memory"
    if kind in FILE_ATTACHMENTS:
        return "files"
    return "user" if kind in USER_KINDS else "other"


def input_chars(given: object) -> int:
    """Return the characters of a call's arguments, about as the model wrote them."""
    if isinstance(given, str):
        return len(given)
    if isinstance(given, dict):
        return sum(len(name) + input_chars(value) for name, value in given.items())
    if isinstance(given, list):
        return sum(map(input_chars, given))
    return len(str(given))
