"""Answers from memory without a model: reads the files of matching index lines, or searches all memories.

Every answer from memory names the memory it comes from. This module also handles "Forget …". A memory that clearly matches is read
and then overwritten with an empty text, which moves it to the trash. Partial matches are only listed, and Lamina never removes
everything at once.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from ...core.blocks import Wire
from ...language.memory_requests import to_forget
from ...language.terms import normal, sought
from ...language.wording import counted, plural, shorten
from .replies import replies_to
from .turn_context import Done, KnownMemory, TurnContext, body, call, content, grep, say, share, title, to_user

# How the result of a Write begins that moved a memory to the trash.
REMOVED = "Removed the memory"
# Minimum share of a question's terms that a memory must contain.
ENOUGH = 0.34
# Below this share the memory may be about something else, so the answer starts with a doubt.
SURE = 0.5
# Memories that match nearly as well as the best one are read too.
NEARLY = 0.85
MOST_READ = 3
# Number of characters shown of a memory; the full text is in the conversation above.
SHOWN = 1_200

_WITHOUT = re.compile(
    r"\b(?:ignore|without|don't use|do not use)\b.{0,20}\bmemor(?:y|ies)\b|(?:忽略|不要用|不用|别用).{0,6}记忆", re.IGNORECASE
)
# "What do you know about me?", whole. A question about a subject is no such question.
_OVERVIEW = re.compile(
    r"^\W*(?:what (?:do|can) you (?:remember|know)(?: (?:about|of) (?:me|us|this project|the project))?(?: so far)?"
    r"|was (?:weißt|hast) du (?:(?:schon )?(?:alles )?über (?:mich|uns|(?:das|dieses) projekt)|dir (?:alles )?gemerkt)"
    r"|woran erinnerst du dich"
    r"|(?:que|qu['’]est-ce que tu) sais(?:-tu)?(?: (?:de|sur) (?:moi|nous|ce projet))?|de quoi te souviens-tu"
    r"|qué (?:sabes|recuerdas)(?: (?:de|sobre) (?:mí|nosotros|este proyecto))?"
    r"|你(?:现在|还|都|对|关于)*(?:我们?|这个项目)?(?:的)?(?:事情?)?(?:还|都)?(?:记得|记住了?|知道|了解)(?:关于)?(?:我们?|这个项目)?的?(?:些|了)?(?:什么|哪些|多少)(?:事情?)?"
    r"|(?:(?:私|僕|俺|我々|このプロジェクト)(?:たち)?(?:について|のこと(?:で|を)?)[、は]?)?(?:何|なに)を(?:覚えて|知って)(?:いますか|いるの?|る|いる)?"
    r"|(?:나|저|우리|이 프로젝트)에 (?:대해서?|관해) (?:뭘|뭐를?|무엇을) (?:알고|기억하고) 있(?:나요|어요?|습니까|니))"
    r"\W*$",
    re.IGNORECASE,
)


def without_memory(prompt: str) -> bool:
    """Whether the user asks to ignore memory in this message."""
    return bool(_WITHOUT.search(prompt))


def overview(asked: TurnContext) -> list[Wire] | None:
    """Answer "What do you remember?"; return None for any other question."""
    if not _OVERVIEW.match(asked.prompt):
        return None
    known = list(asked.known)
    if asked.directory is not None and "Grep" in asked.tools:
        # The index is older than the memories that were saved in the background or undone since.
        if not asked.done:
            described = {
                "pattern": "^description:",
                "path": asked.directory,
                "glob": "*.md",
                "output_mode": "content",
                "-n": True,
            }
            return call(asked, "Grep", described)
        known = known if asked.done[-1].failed else _described(asked.done[-1].said, asked)
    lines = [f"- {each.title}: {each.hook}" if each.hook else f"- {each.title}" for each in known]
    replies = replies_to(asked.prompt)
    return say(f"{replies.remembered}\n" + "\n".join(lines) if lines else replies.nothing)


def _described(said: str, asked: TurnContext) -> list[KnownMemory]:
    """Return the memories of a search for descriptions, and those of other scopes from the index."""
    rows = [row for row in map(_row, said.splitlines()) if row is not None]
    return [
        *(KnownMemory(title(path), path, hook) for path, hook in rows),
        *(known for known in asked.known if not known.path.startswith(f"{asked.directory}/")),
    ]


def recall(asked: TurnContext, fitting: Sequence[KnownMemory], score: float = 1.0) -> list[Wire] | None:
    """Return the next step to answer a question from these memories or by a search; None if memory has no answer.

    `score` tells how well the best memory matches.
    """
    if fitting:
        return _from_files(asked, fitting, _doubt(asked, score))
    if asked.directory is None or "Grep" not in asked.tools or not (asked.known or asked.cut or asked.log):
        return None
    if not asked.done:
        return grep(asked, asked.prompt) if sought(asked.prompt) else None
    return _from_lines(asked, asked.done[-1])


def from_recalled(asked: TurnContext, fitting: Sequence[int], score: float) -> list[Wire]:
    """Answer from memories that are already in the conversation, without reading files."""
    parts = [_quoted(asked, asked.recalled[at].text, asked.recalled[at].title) for at in fitting[:MOST_READ]]
    return say(_doubt(asked, score) + "\n\n".join(parts))


def _doubt(asked: TurnContext, score: float) -> str:
    return f"{replies_to(asked.prompt).unsure}\n" if score < SURE else ""


def _quoted(asked: TurnContext, text: str, name: str) -> str:
    return f"{shorten(text.rstrip(), SHOWN)}\n{replies_to(asked.prompt).source.format(name=name)}"


def _from_files(asked: TurnContext, fitting: Sequence[KnownMemory], doubt: str) -> list[Wire]:
    files = fitting[:MOST_READ] if "Read" in asked.tools else ()
    if len(asked.done) < len(files):
        return call(asked, "Read", {"file_path": files[len(asked.done)].path})
    parts = []
    for known, done in zip(files, asked.done, strict=False):
        text = known.hook if done.failed else body(done.said) or known.hook
        parts.append(_quoted(asked, text, known.title))
    lines = "\n".join(_quoted(asked, known.hook or known.title, known.title) for known in fitting)
    return say(doubt + ("\n\n".join(parts) or lines))


def _from_lines(asked: TurnContext, done: Done) -> list[Wire] | None:
    """Answer with the line of a search result that shares most with the question."""
    rows = [] if done.failed else [row for row in (_row(line) for line in done.said.splitlines()) if row is not None]
    best = max(rows, key=lambda row: share(asked.prompt, row[1]), default=None)
    if best is None or share(asked.prompt, best[1]) < ENOUGH:
        return None
    return say(_doubt(asked, share(asked.prompt, best[1])) + _quoted(asked, best[1], title(best[0])))


def _row(line: str) -> tuple[str, str] | None:
    found = re.match(r"(?P<path>.+?\.md)[:-]\d+[:-](?P<text>.*)$", line)
    if found is None or posixpath.basename(found["path"]) == "MEMORY.md":
        return None
    text = found["text"].strip()
    # Other keys of the front matter never answer a question.
    return None if re.match(r"(?:name|type|metadata|evidence):", text) else (found["path"], re.sub(r"^description: *", "", text))


# Minimum share of a subject to list a memory as a candidate; only a memory with all of its words is removed.
HALF = 0.5
MOST_FORGOTTEN = 10

_WIDE = re.compile(
    r"^(?:(?:what|everything|all|anything)(?: that)?"
    r"(?: (?:you|i)(?:'ve| have)? (?:know|remember|saved|told you|said))?(?: (?:about|of))?\s+"
    r"|about\s+|(?:你(?:所)?(?:知道|记得)的)?(?:关于|有关|關於|有關)\s*)(?P<what>.+)$",
    re.IGNORECASE,
)
_TAIL = re.compile(r"(?:的(?:一切|所有(?:事情|内容)?|事情?|内容|记忆))?\s*[.!?。！？]*\s*$|\s*について.*$")
_ARTICLE = re.compile(r"^(?:the|our|my|your|that|this)\s+", re.IGNORECASE)
# Phrases that mean "Forget everything".
_ALL = re.compile(
    r"(?:(?:all|everything|anything|every|each)(?: (?:of )?(?:it|that|this|the|your|my|our))?(?: (?:memor(?:y|ies)|things?|facts?))?"
    r"|(?:what|everything|all|anything)(?: that)? (?:you|i)(?:'ve| have)? (?:know|remember|saved|told you|said|learned)"
    r"(?: about (?:us|me|it|everything))?|(?:everything|all) about (?:everything|all)"
    r"|(?:(?:the|your|my|our) (?:whole |entire )?)?memor(?:y|ies)"
    r"|(?:你(?:所)?(?:知道|记得)的)?(?:一切|所有|全部)(?:的?(?:记忆|事情|内容|东西))?"
    r"|(?:bitte )?alles|tout|todo"
    r"|(?:すべて|全て|全部)(?:の記憶)?|(?:모든\s?(?:것|기억)|전부|모두))",
    re.IGNORECASE,
)


def forget(asked: TurnContext) -> list[Wire]:
    """Return the next step of "Forget …": each matching memory is read and then overwritten with nothing, which removes it.

    A memory is removed only if it contains every word of the subject; memories that contain some of them are listed.
    """
    from .back_references import says_nothing  # imported late: few prompts need it, and its regular expressions compile slowly

    what, wide = subject(asked.prompt)
    if _ALL.fullmatch(re.sub(r"[\s.!?。！？]+$", "", to_forget(asked.prompt.strip()))):
        return say(_not_all(asked))
    if not sought(what) or says_nothing(what):
        return say(replies_to(asked.prompt).forget_what)
    if asked.directory is None or not {"Read", "Write"} <= asked.tools:
        return cannot_change(asked)
    targets = _targets(what, wide, asked.known)
    left = list(asked.done)
    if targets:
        return _remove(asked, targets[:MOST_FORGOTTEN], left, more=len(targets) - MOST_FORGOTTEN)
    if "Grep" in asked.tools and not left:
        return grep(asked, what, files=True)
    found = _files(left.pop(0).said) if left and left[0].name == "Grep" and not left[0].failed else []
    titles = {known.path: known.title for known in asked.known}
    near = [titles.get(path, title(path)) for path in found] or [
        known.title for known in asked.known if share(what, known.words) >= HALF
    ]
    if len(found) != 1:
        return say(_which(asked, what, near))
    if not left:
        return call(asked, "Read", {"file_path": found[0]})
    if left[0].failed or share(what, content(left[0].said)) < 1:
        return say(_which(asked, what, near))
    return _remove(asked, found, left)


def cannot_change(asked: TurnContext) -> list[Wire]:
    replies = replies_to(asked.prompt)
    return say(replies.no_tool if asked.has_memory else replies.no_memory)


def _which(asked: TurnContext, what: str, near: Sequence[str]) -> str:
    replies = replies_to(asked.prompt)
    if not near:
        return replies.forget_none.format(what=what)
    if len(near) == 1:
        return replies.forget_partly.format(name=near[0])
    return replies.forget_which.format(names=", ".join(near[:MOST_FORGOTTEN]))


def _not_all(asked: TurnContext) -> str:
    if not asked.known:
        return replies_to(asked.prompt).nothing
    named = ", ".join(known.title for known in asked.known[:MOST_FORGOTTEN])
    more = len(asked.known) - MOST_FORGOTTEN
    return replies_to(asked.prompt).forget_all.format(names=f"{named} … +{more}" if more > 0 else named)


def _remove(asked: TurnContext, targets: Sequence[str], left: list[Done], *, more: int = 0) -> list[Wire]:
    outcomes: list[str] = []
    for path in targets:
        if not left:
            return call(asked, "Read", {"file_path": path})
        read = left.pop(0)
        if read.failed:
            outcomes.append(read.said)
            continue
        if not left:
            return call(asked, "Write", {"file_path": path, "content": ""})
        done = left.pop(0)
        removed = replies_to(asked.prompt).removed.format(name=title(path))
        outcomes.append(
            removed if done.said.startswith(REMOVED) and not done.failed else to_user(done.said, replies_to(asked.prompt))
        )
    if more > 0:
        matches = f"{counted(more, 'more memory', 'more memories')} {plural(more, 'matches', 'match')}"
        outcomes.append(f"{matches}. Repeat your request to remove {plural(more, 'it', 'them')} too.")
    return say("\n".join(outcomes))


def subject(prompt: str) -> tuple[str, bool]:
    """Return the subject to forget, and whether it means everything about that subject instead of one memory."""
    text = _TAIL.sub("", to_forget(prompt.strip()), count=1)
    wide = _WIDE.match(text)
    return _ARTICLE.sub("", wide["what"] if wide else text).strip(), wide is not None


def _targets(what: str, wide: bool, known: Sequence[KnownMemory]) -> list[str]:
    """Return the memories that clearly match: the one with that name, all about a subject, or the only one about it."""
    named = [each.path for each in known if normal(what) in (normal(each.title), normal(title(each.path)))]
    if named:
        return named[:1]
    whole = [each.path for each in known if share(what, each.words) >= 1]
    return whole if wide or len(whole) == 1 else []


def _files(said: str) -> list[str]:
    """Return the paths in a search result, without the index."""
    lines = (line.strip() for line in said.splitlines())
    return [line for line in lines if line.endswith(".md") and posixpath.basename(line) != "MEMORY.md"][:MOST_FORGOTTEN]
