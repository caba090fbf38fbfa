"""The offline chat, which works without a language model and says so.

It remembers statements within the conversation and saves a memory when asked to. It answers a question with the sentence or memory
that shares the rarest words with it, or says that it found none. Words are compared in the same way as in the ranker (`language.terms`),
so Chinese, Japanese and Korean work like English.

It also has a small command grammar over the tools:

    read PATH, show PATH                   Read
    list [PATTERN], list files             Glob
    search TEXT [in PATH], grep, find      Grep
    run COMMAND, ls, git status            Bash
    write PATH: TEXT                       Write
    replace "OLD" with "NEW" in PATH       Read, then Edit
    todo: FIRST; SECOND; …                 TodoWrite

Each command is a sequence of steps. The number of calls after the command in the conversation determines the next step, so
`next_step` keeps no state. A failed step ends the sequence with its error message.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ...core.blocks import Wire
from ...language.detection import shown_language
from ...language.memory_requests import REMEMBER, asks_to_forget, asks_to_remember
from ...language.terms import terms
from ...language.wording import shorten
from . import memory_answers
from .replies import ENGLISH, asks_for_a_model, replies_to
from .reply_texts import Replies
from .small_talk import small_talk
from .turn_context import TurnContext, read_turn, result_text, say, share, texts

WHAT_I_AM = "I am Lamina's offline stand-in, not a language model"
HELP = ENGLISH.help
NOTED = ENGLISH.noted
NOT_FOUND = ENGLISH.not_found

REMINDER = "<system-reminder>"
SUMMARY = "This conversation was compacted."

# Longer messages are pasted text: only their beginning is compared, and none of it becomes a memory.
MOST_CHARS = 20_000

# So few words, such as "ok cool", may be said in any language.
FEW_WORDS = 2

# Minimum share of the question's weight that an answer must contain (rare words weigh more). Below this, no answer is better.
ENOUGH = 0.34

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*|\n+")
_ASKS = re.compile(
    r"[?？]\s*$"
    r"|^\s*(?:what|who|whom|whose|where|when|which|why|how|do|does|did|is|are|was|were|can|could|should|will|would|tell me)\b"
    r"|什么|谁|哪|何时|为什么|怎么|多少|吗\s*$|何|どこ|誰|いつ|무엇|누구|어디|언제",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[^\W\d_]+")
_HELP = re.compile(r"^\s*/?(?:help|hilfe|帮助|ヘルプ|도움말)\s*[.!?]?\s*$", re.IGNORECASE)
# The texts of instruction files of the user and the project. Escaping ensures that they cannot contain these tags.
_INSTRUCTIONS = re.compile(r"^<instruction-file>\n(?P<text>.*?)\n</instruction-file>$", re.MULTILINE | re.DOTALL)
_USER_MESSAGE = re.compile(r"^<user-message>\n(?P<text>.*?)\n</user-message>$", re.MULTILINE | re.DOTALL)
# Other context of the session: the date, the state of the repository, output of hooks. Lamina's own text around it is no answer.
_CONTEXT = re.compile(
    r"^(?P<day>Today is [\d-]{10}\.)$|^<git-status>\n(?P<git>.*?)\n</git-status>$|^# From a hook\n(?P<hook>.*?)(?=\n# |</system-reminder>)",
    re.MULTILINE | re.DOTALL,
)
# A changed file in a Git status, or a single word. A name is no statement.
_FILE_LINE = re.compile(r"\s*(?:[MADRCUT?!]{1,2}\s+\S+.*|\S+)$")


class BestSentence(NamedTuple):
    score: float
    sentence: str


def answer(request: Wire) -> list[Wire]:
    """Return the reply to the user's last message, or the next step of the command in it."""
    messages = request["messages"]
    at = _last_prompt(messages)
    prompt = _text(messages[at]) if messages else ""
    tools = {str(tool.get("name")) for tool in request.get("tools") or ()}
    if (steps := _steps(prompt, tools)) is not None:
        return next_step(steps, messages[at + 1 :], at, _replies_of_conversation(messages[: at + 1]))
    if prompt and not _LETTERS.search(prompt):  # a compaction may leave no prompt
        return say(_replies_of_conversation(messages[: at + 1]).not_found)
    if _HELP.match(prompt):
        return say(replies_to(prompt).help)
    asked = read_turn(request, prompt[:MOST_CHARS], at)
    if (reply := small_talk(asked)) is not None:
        return say(reply)
    if len(prompt) > MOST_CHARS and (asks_to_forget(prompt) or asks_to_remember(prompt)):
        return say(replies_to(prompt).too_long.format(size=f"{len(prompt):,}", most=f"{MOST_CHARS:,}"))
    if asks_to_forget(prompt):
        return memory_answers.forget(asked)
    if asks_to_remember(prompt):
        from . import remember_command  # imported late: few prompts need it, and its regular expressions compile slowly

        return remember_command.remember(asked)
    if not _ASKS.search(prompt):
        return say(replies_to(prompt).cannot if asks_for_a_model(prompt) else _replies_of_conversation(messages[: at + 1]).noted)
    return _answered(asked, messages[: at + 1])


def _answered(asked: TurnContext, messages: list[Wire]) -> list[Wire]:
    """Answer from the conversation, or else from memory, instruction files or context, whichever matches best."""
    ignored = memory_answers.without_memory(asked.prompt)
    if not ignored and (known := memory_answers.overview(asked)) is not None:
        return known
    if all(term.isdigit() for term in terms(asked.prompt)):  # a sum, which no sentence with the same numbers answers
        return say(replies_to(asked.prompt).not_found)
    stated = scored(asked.prompt, [*_statements(messages, _summarised), *_statements(messages[:-1], _text)])
    if stated is not None:
        return say(f"{replies_to(asked.prompt).told}{stated.sentence}")
    written = scored(asked.prompt, _statements(messages, _instructions))
    context = scored(asked.prompt, _statements(messages, _context))
    fitting = [] if ignored else _fitting(asked.prompt, [each.words for each in asked.known])
    beside = [] if ignored else _fitting(asked.prompt, [f"{each.title} {each.text}" for each in asked.recalled])
    if asked.directory and fitting and beside and not fitting[0].score < min(memory_answers.SURE, beside[0].score):
        beside = []  # the index has a good match, so recalled memories are not needed
    score = max((each.score for each in (*fitting, *beside)), default=0.0)
    if written is not None and written.score > score:
        return say(f"{replies_to(asked.prompt).instructions}{written.sentence}")
    if context is not None and context.score > score:
        return say(f"{replies_to(asked.prompt).context}{context.sentence}")
    if beside:
        return memory_answers.from_recalled(asked, [each.at for each in beside], score)
    recalled = None if ignored else memory_answers.recall(asked, [asked.known[each.at] for each in fitting], score)
    return recalled if recalled is not None else say(replies_to(asked.prompt).not_found)


class FittingText(NamedTuple):
    score: float
    at: int


def _fitting(question: str, texts: list[str]) -> list[FittingText]:
    """Return the texts that match the question, best first, without those that match much worse than the best."""
    scores = _scores(question, texts)
    found = sorted((FittingText(score, at) for at, score in enumerate(scores) if score >= ENOUGH), key=lambda each: -each.score)
    return [each for each in found if each.score >= memory_answers.NEARLY * found[0].score]


def scored(question: str, sentences: list[str]) -> BestSentence | None:
    """Return the sentence that shares most of the question's weight; the newest of several equals."""
    score, at = max(((score, at) for at, score in enumerate(_scores(question, sentences))), default=(0.0, 0))
    return BestSentence(score, sentences[at]) if score >= ENOUGH else None


def _scores(question: str, texts: list[str]) -> list[float]:
    """Return, for each text, the share of the question's weight that it contains. Rare words weigh more.

    A text that names a tool contains the name of its kind, if the question asks for that kind. The list is empty if the question has no
    terms.
    """
    from .tool_kinds import named_kinds, question_terms, terms_of_tools  # imported late: its regular expressions compile slowly

    kinds = named_kinds(question)
    wanted = question_terms(question, kinds)
    if not wanted or not texts:
        return []
    having = [{*terms(text), *terms_of_tools(text, kinds)} for text in texts]
    weight = {word: math.log(1 + len(texts) / (1 + sum(word in other for other in having))) + 0.1 for word in wanted}
    total = sum(weight.values())
    return [sum(weight[word] for word in wanted & have) / total for have in having]


def _statements(messages: list[Wire], of: Callable[[Wire], str]) -> list[str]:
    """Return the statements in order, without questions and without those that the user asked to forget."""
    found: list[str] = []
    for message in messages:
        if message["role"] != "user":
            continue
        text = of(message)[:MOST_CHARS]
        if asks_to_forget(text):
            what, _ = memory_answers.subject(text)
            found = [sentence for sentence in found if share(what, sentence) < 1]
            continue
        for piece in _SENTENCE_END.split(text):
            sentence = REMEMBER.sub("", piece.strip())
            if sentence and not _ASKS.search(sentence):
                found.append(sentence)
    return found


def _last_prompt(messages: list[Wire]) -> int:
    """Return the index of the user's last message; results and reminders after it belong to the same turn."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] == "user" and _text(messages[index]):
            return index
    return len(messages) - 1


def _text(message: Wire) -> str:
    """Return the user's own text of a message, without reminders and without the summary of a compaction."""
    return "\n".join(text for text in texts(message) if not text.startswith((REMINDER, SUMMARY))).strip()


def _summarised(message: Wire) -> str:
    """Return the user's messages that a summary in this message quotes."""
    summaries = (text for text in texts(message) if text.startswith(SUMMARY))
    return "\n".join(found["text"] for text in summaries for found in _USER_MESSAGE.finditer(text))


def _instructions(message: Wire) -> str:
    """Return the text of the instruction files in the reminders of a message, without headings."""
    found = [file["text"] for text in texts(message) if text.startswith(REMINDER) for file in _INSTRUCTIONS.finditer(text)]
    return "\n".join(line for text in found for line in text.splitlines() if not line.startswith("#"))


def _context(message: Wire) -> str:
    found = [
        part for text in texts(message) if text.startswith(REMINDER) for part in _CONTEXT.finditer(_INSTRUCTIONS.sub("", text))
    ]
    said = "\n".join(part["day"] or part["git"] or part["hook"] or "" for part in found)
    return "\n".join(line for line in said.splitlines() if not _FILE_LINE.match(line))


Steps: TypeAlias = tuple[tuple[str, Wire], ...]

# How results begin of calls that may not run, and that the user refused; the rest tells a model what to do.
NOT_ALLOWED = "Not allowed: "
DENIED = "Not allowed: Denied by the user. "
# How such a result ends, if nobody could be asked.
FOR_A_MODEL = "Continue without it, or say what you would have done."
MISSING = " does not exist"
EMPTY = ("No files match.", "No matches.")
# Number of characters shown of a result; the full result is in the conversation above.
SHOWN = 2_000


class Command(NamedTuple):
    pattern: re.Pattern[str]
    steps: Callable[[re.Match[str]], Steps]


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(rf"\s*{text}\s*", re.IGNORECASE | re.DOTALL)


def _edit(match: re.Match[str]) -> Steps:
    path = match["path"]
    change = {"file_path": path, "old_string": match["old"], "new_string": match["new"]}
    return (("Read", {"file_path": path}), ("Edit", change))


def _search(match: re.Match[str]) -> Steps:
    arguments: Wire = {"pattern": match["what"], "output_mode": "content", "-n": True}
    return (("Grep", arguments | ({"path": match["path"]} if match["path"] else {})),)


def _todo(match: re.Match[str]) -> Steps:
    items = [item.strip() for item in re.split(r"[;；\n]", match["items"]) if item.strip()]
    return (("TodoWrite", {"todos": [{"content": item, "status": "pending", "activeForm": item} for item in items]}),)


def _write(match: re.Match[str]) -> Steps:
    return (("Write", {"file_path": match["path"], "content": match["text"].rstrip() + "\n"}),)


def _bash(match: re.Match[str]) -> Steps:
    return (("Bash", {"command": match["command"].strip()}),)


# Words after "show" are a file only if they look like one.
_FILE = r"(?P<path>\S*[./]\S*[^\s.?!。？])"
COMMANDS = (
    Command(_pattern(r"(?:read|读|読む)\s+(?P<path>\S+)"), lambda m: (("Read", {"file_path": m["path"]}),)),
    Command(
        _pattern(
            rf"(?:show(?: me)?|open|cat|(?:读|看|查看|打开|显示)(?:一下|取)?|zeig(?:e? mir)?|lies)\s*(?<![a-z]){_FILE}[.。]?"
        ),
        lambda m: (("Read", {"file_path": m["path"]}),),
    ),
    Command(
        _pattern(
            r"(?:list|show)(?: me)?(?: all)?(?: (?:the|my|our))? files(?: here)?|what files are (?:there|here)\?"
            r"|列出(?:所有|全部)?文件|(?:这里|目录里)?有(?:哪些|什么)文件[？?]?|liste? (?:alle |die )?dateien(?: auf)?"
        ),
        lambda m: (("Glob", {"pattern": "**/*"}),),
    ),
    Command(_pattern(r"(?:list|列出)(?:\s+(?P<what>\S+))?"), lambda m: (("Glob", {"pattern": m["what"] or "*"}),)),
    Command(_pattern(r"(?:search|grep|搜索)\s+(?:for\s+)?(?P<what>.+?)(?:\s+in\s+(?P<path>\S+))?"), _search),
    Command(_pattern(r"(?:find|查找)\s+(?P<what>.+?)\s+in\s+(?P<path>\S+)"), _search),
    # "Run the tests" names no command.
    Command(_pattern(r"(?:run|运行)\s+(?!(?:the|all|my|our|your|these|this|it|some)\b)(?P<command>.+)"), _bash),
    Command(_pattern(r"(?P<command>pwd|ls(?: [-./~]\S*)*|git (?:status|log|diff|branch|show)(?: \S+)*)"), _bash),
    Command(_pattern(r"(?:write|写)\s+(?P<path>[^\s:：]+)\s*[:：]\s?(?P<text>.*)"), _write),
    Command(
        _pattern(
            r"(?:create|make|write) (?:a |the )?(?:new )?file (?:called |named )?(?P<path>\S+) (?:with|containing) (?P<text>.+)"
        ),
        _write,
    ),
    Command(_pattern(r"replace\s+([\"'`])(?P<old>.+?)\1\s+(?:with|by)\s+([\"'`])(?P<new>.*?)\3\s+in\s+(?P<path>\S+)"), _edit),
    # A longer text is pasted, not a list of tasks.
    Command(_pattern(rf"(?:todo|待办)\s*[:：]\s*(?P<items>.{{1,{MOST_CHARS}}})"), _todo),
)


def next_step(steps: Steps, behind: list[Wire], at: int, replies: Replies) -> list[Wire]:
    """Return the next call of a command or its final result.

    `behind` contains the messages after the prompt, with the calls so far and their results; `at` is the index of the prompt.
    """
    results = [block for message in behind for block in message["content"] if block["type"] == "tool_result"]
    if results and (results[-1].get("is_error") or len(results) >= len(steps)):
        return say(_outcome(steps[len(results) - 1], results[-1], replies))
    name, arguments = steps[len(results)]
    # The index makes the id unique, because the same command may be given again later.
    return [{"type": "tool_use", "id": f"toolu_offline_{at}_{len(results)}", "name": name, "input": arguments}]


def _steps(prompt: str, tools: set[str]) -> Steps | None:
    for command in COMMANDS:
        if match := command.pattern.fullmatch(prompt):
            steps = command.steps(match)
            return steps if all(name in tools for name, _ in steps) else None
    return None


def _replies_of_conversation(messages: list[Wire]) -> Replies:
    """Return the replies in the language of the last message that has one: `read a.py`, `2+2` and "ok" are in no language."""
    said = [text for message in reversed(messages) if message["role"] == "user" and (text := _text(message))]
    return replies_to(next((text for text in said if _has_language(text)), "".join(said[:1])))


def _has_language(text: str) -> bool:
    # A longer text without common words is English.
    known = shown_language(text) is not None or len(_LETTERS.findall(text)) > FEW_WORDS
    return known and not any(one.pattern.fullmatch(text) for one in COMMANDS)


def _outcome(step: tuple[str, Wire], result: Wire, replies: Replies) -> str:
    (name, given), text = step, result_text(result)
    shown = shorten(text, SHOWN, f"\n… ({len(text):,})")
    if result.get("is_error"):
        if text.startswith(NOT_ALLOWED):
            why = shown.removesuffix(FOR_A_MODEL).rstrip()
            return replies.denied if text.startswith(DENIED) else replies.forbidden.format(why=why)
        path = given.get("file_path") or given.get("path")
        return replies.failed.format(why=replies.missing.format(path=path) if path and MISSING in text else shown)
    if name in ("Write", "Edit"):
        return replies.written.format(path=given["file_path"])
    return {"": replies.no_output, "(no output)": replies.no_output, **dict.fromkeys(EMPTY, replies.no_matches)}.get(text, shown)
