"""The offline chat: no language model, and honest about it.

It keeps what it is told in the conversation, saves to memory what it is asked to remember, and answers a question with the sentence
or the memory that shares the rarest words with it, or says that it found none. Words are compared as the ranker compares them
(`core.terms`), so that Chinese, Japanese and Korean work as English does (B15).

It also has a small command grammar over the tools:

    read PATH                              Read
    list [PATTERN]                         Glob
    search TEXT [in PATH]                  Grep
    run COMMAND                            Bash
    write PATH: TEXT                       Write
    replace "OLD" with "NEW" in PATH       Read, then Edit
    todo: FIRST; SECOND; …                 TodoWrite

Each command is a row of steps; how many calls stand behind the command in the conversation says which step is next, so `next_step` needs
no memory of its own. A step that failed ends the row with what it said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ...core.blocks import Wire
from ...core.memory_requests import REMEMBER, asks_to_forget, asks_to_remember
from ...core.terms import terms
from . import memory_answers
from .turn_context import TurnContext, read_turn, result_text, say, share, texts

WHAT_I_AM = "I am Lamina's offline stand-in, not a language model"
HELP = (
    f'{WHAT_I_AM}. I keep what you tell me in this conversation, save to memory what begins with "Remember: …", remove it with '
    '"Forget …", and answer questions by finding the sentence or the memory that fits, there or in your instruction files. '
    "I also know a few commands: read PATH, list PATTERN, search TEXT in PATH, run COMMAND, "
    'write PATH: TEXT, replace "OLD" with "NEW" in PATH, todo: FIRST; SECOND. With an API key a model answers instead.'
)
NOTED = "Noted in this conversation."
NOT_FOUND = f"I found nothing about that in this conversation, your instructions or memory. {WHAT_I_AM}; I can only repeat what I was told."

REMINDER = "<system-reminder>"

# A question shares at least this part of its weight (rare words weigh more) with a sentence that answers it; below, silence is
# better.
ENOUGH = 0.34

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*|\n+")
_ASKS = re.compile(
    r"[?？]\s*$"
    r"|^\s*(?:what|who|whom|whose|where|when|which|why|how|do|does|did|is|are|was|were|can|could|should|will|would|tell me)\b"
    r"|什么|谁|哪|何时|为什么|怎么|多少|吗\s*$|何|どこ|誰|いつ|무엇|누구|어디|언제",
    re.IGNORECASE,
)
_HELP = re.compile(r"^\s*/?(?:help|帮助|ヘルプ|도움말)\s*[.!?]?\s*$", re.IGNORECASE)
# What files of the person and the project say; no text of theirs can hold the tags.
_INSTRUCTIONS = re.compile(r"^<instruction-file>\n(?P<text>.*?)\n</instruction-file>$", re.MULTILINE | re.DOTALL)
# What else the session was told: the day, the state of the repository, hooks. Words of our own around them are no answer.
_CONTEXT = re.compile(
    r"^(?P<day>Today is [\d-]{10}\.)$|^<git-status>\n(?P<git>.*?)\n</git-status>$|^# From a hook\n(?P<hook>.*?)(?=\n# |</system-reminder>)",
    re.MULTILINE | re.DOTALL,
)


class BestSentence(NamedTuple):
    score: float
    sentence: str


def answer(request: Wire) -> list[Wire]:
    """The reply to what the person said last, or the next step of what it asks for."""
    messages = request["messages"]
    at = _last_prompt(messages)
    prompt = _text(messages[at]) if messages else ""
    tools = {str(tool.get("name")) for tool in request.get("tools") or ()}
    if (step := next_step(prompt, messages[at + 1 :], tools, at)) is not None:
        return step
    if _HELP.match(prompt):
        return say(HELP)
    asked = read_turn(request, prompt, at)
    if asks_to_forget(prompt):
        return memory_answers.forget(asked)
    if asks_to_remember(prompt):
        from . import remember_command  # most prompts save nothing, and its many expressions take long to make

        return remember_command.remember(asked)
    if not _ASKS.search(prompt):
        return say(NOTED)
    return _answered(asked, messages[: at + 1])


def _answered(asked: TurnContext, messages: list[Wire]) -> list[Wire]:
    """From the conversation, else from memory or the instruction files, whichever fits better."""
    ignored = memory_answers.without_memory(asked.prompt)
    if not ignored and (known := memory_answers.overview(asked)) is not None:
        return known
    said = scored(asked.prompt, _said(messages[:-1], _text))
    if said is not None:
        return say(f"You told me: {said.sentence}")
    written = scored(asked.prompt, _said(messages, _instructions))
    context = scored(asked.prompt, _said(messages, _context))
    fitting = [] if ignored else _fitting(asked.prompt, [each.words for each in asked.known])
    beside = [] if ignored else _fitting(asked.prompt, [f"{each.title} {each.text}" for each in asked.recalled])
    if fitting and beside and not fitting[0].score < min(memory_answers.SURE, beside[0].score):
        beside = []  # the index names what answers it; a memory brought here is asked where that is in doubt
    score = max((each.score for each in (*fitting, *beside)), default=0.0)
    if written is not None and written.score > score:
        return say(f"Your instructions say: {written.sentence}")
    if context is not None and context.score > score:
        return say(f"This session was told: {context.sentence}")
    if beside:
        return memory_answers.from_recalled(asked, [each.at for each in beside], score)
    recalled = None if ignored else memory_answers.recall(asked, [asked.known[each.at] for each in fitting], score)
    return recalled if recalled is not None else say(NOT_FOUND)


class FittingText(NamedTuple):
    score: float
    at: int


def _fitting(question: str, texts: list[str]) -> list[FittingText]:
    """The texts that answer the question, best first; those that fit far worse than the best are left out."""
    scores = _scores(question, texts)
    found = sorted((FittingText(score, at) for at, score in enumerate(scores) if score >= ENOUGH), key=lambda each: -each.score)
    return [each for each in found if each.score >= memory_answers.NEARLY * found[0].score]


def scored(question: str, said: list[str]) -> BestSentence | None:
    """The sentence that shares most of the question's weight; of equals the newest."""
    score, at = max(((score, at) for at, score in enumerate(_scores(question, said))), default=(0.0, 0))
    return BestSentence(score, said[at]) if score >= ENOUGH else None


def _scores(question: str, texts: list[str]) -> list[float]:
    """For each text the share of the question's weight that it has; rare words weigh more. None where nothing is asked for."""
    wanted = set(terms(question))
    if not wanted or not texts:
        return []
    having = [set(terms(text)) for text in texts]
    weight = {word: math.log(1 + len(texts) / (1 + sum(word in other for other in having))) + 0.1 for word in wanted}
    total = sum(weight.values())
    return [sum(weight[word] for word in wanted & have) / total for have in having]


def _said(messages: list[Wire], of: Callable[[Wire], str]) -> list[str]:
    """The sentences that tell something, in their order; what was to be forgotten is left out."""
    said: list[str] = []
    for message in messages:
        if message["role"] != "user":
            continue
        text = of(message)
        if asks_to_forget(text):
            what, _ = memory_answers.subject(text)
            said = [sentence for sentence in said if share(what, sentence) < 1]
            continue
        for piece in _SENTENCE_END.split(text):
            sentence = REMEMBER.sub("", piece.strip())
            if sentence and not _ASKS.search(sentence):
                said.append(sentence)
    return said


def _last_prompt(messages: list[Wire]) -> int:
    """Where the person spoke last; results and reminders behind it belong to the same turn."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] == "user" and _text(messages[index]):
            return index
    return len(messages) - 1


def _text(message: Wire) -> str:
    """What the person said, without the reminders put beside it."""
    return "\n".join(text for text in texts(message) if not text.startswith(REMINDER)).strip()


def _instructions(message: Wire) -> str:
    """What instruction files in its reminders say; headings left out."""
    found = [file["text"] for text in texts(message) if text.startswith(REMINDER) for file in _INSTRUCTIONS.finditer(text)]
    return "\n".join(line for text in found for line in text.splitlines() if not line.startswith("#"))


def _context(message: Wire) -> str:
    found = [
        part for text in texts(message) if text.startswith(REMINDER) for part in _CONTEXT.finditer(_INSTRUCTIONS.sub("", text))
    ]
    return "\n".join(part["day"] or part["git"] or part["hook"] or "" for part in found)


Steps: TypeAlias = tuple[tuple[str, Wire], ...]

# What is shown of a result; the whole of it stands in the conversation above.
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


COMMANDS = (
    Command(_pattern(r"(?:read|读|読む)\s+(?P<path>\S+)"), lambda m: (("Read", {"file_path": m["path"]}),)),
    Command(_pattern(r"(?:list|列出)(?:\s+(?P<what>\S+))?"), lambda m: (("Glob", {"pattern": m["what"] or "*"}),)),
    Command(_pattern(r"(?:search|搜索)\s+(?:for\s+)?(?P<what>.+?)(?:\s+in\s+(?P<path>\S+))?"), _search),
    Command(_pattern(r"(?:run|运行)\s+(?P<command>.+)"), lambda m: (("Bash", {"command": m["command"].strip()}),)),
    Command(
        _pattern(r"(?:write|写)\s+(?P<path>[^\s:：]+)\s*[:：]\s?(?P<text>.*)"),
        lambda m: (("Write", {"file_path": m["path"], "content": m["text"].rstrip() + "\n"}),),
    ),
    Command(_pattern(r"replace\s+([\"'`])(?P<old>.+?)\1\s+(?:with|by)\s+([\"'`])(?P<new>.*?)\3\s+in\s+(?P<path>\S+)"), _edit),
    Command(_pattern(r"(?:todo|待办)\s*[:：]\s*(?P<items>.+)"), _todo),
)


def next_step(prompt: str, behind: list[Wire], tools: set[str], at: int) -> list[Wire] | None:
    """The answer to a command: its next call, or what came of the last one; None where the prompt is no command.

    `behind` is what stands in the conversation behind the prompt: our own calls and their results; `at` is the prompt's place."""
    steps = _steps(prompt, tools)
    if steps is None:
        return None
    results = [block for message in behind for block in message["content"] if block["type"] == "tool_result"]
    if results and (results[-1].get("is_error") or len(results) >= len(steps)):
        return say(_told(results[-1]))
    name, arguments = steps[len(results)]
    # The place makes the id new: the same words may be said again later.
    return [{"type": "tool_use", "id": f"toolu_offline_{at}_{len(results)}", "name": name, "input": arguments}]


def _steps(prompt: str, tools: set[str]) -> Steps | None:
    for command in COMMANDS:
        if match := command.pattern.fullmatch(prompt):
            steps = command.steps(match)
            return steps if all(name in tools for name, _ in steps) else None
    return None


def _told(result: Wire) -> str:
    text = result_text(result) or "(no output)"
    said = text if len(text) <= SHOWN else f"{text[:SHOWN]}\n… ({len(text):,} characters in all)"
    return f"That did not work: {said}" if result.get("is_error") else said
