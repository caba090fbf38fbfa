"""Separates what a user wrote from what they pasted or quoted. Pure.

A message may contain a mail, a page, a log, a chat, a diff or a quotation. Those are data: a request in them is not the user's. Code
fences, lines that begin with `>`, lines of logs and comments, diffs, JSON, YAML, markup, chats with times, mails, text after an
introduction such as "The page says:", long quotations and the middle of a very long message count as pasted. In doubt a text counts as
pasted: the user can say it again. Pasted lines leave an empty line behind.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# Longer messages are mostly pasted text: only short paragraphs at their beginning and end are the user's.
MOST_CHARS = 2_000
PARAGRAPH_CHARS = 400
# A shorter quotation is a name or a term.
QUOTED_WORDS, QUOTED_CHARS = 5, 12
# Headers of a mail are close together: two of them within this many lines make a mail.
HEADER_LINES = 4
# A mail without headers is closed within this many lines.
MAIL_LINES = 60
# A longer line is no name.
NAME_CHARS = 30

_FENCE = re.compile(r"\s*(```+|~~~+)")
_OPENS = re.compile(r"\s*<(?P<tag>[A-Za-z][\w-]*)(?:\s[^<>]*)?>\s*$")
_QUOTED_LINE = re.compile(r"\s*(?:>|&gt;|＞)")
# A line of a log, a comment in code, a shell prompt, a row of a table, or a box to tick.
_MACHINE_LINE = re.compile(
    r"\s*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL)\b|//|/\*|#+ |-- |\$ |\||[-*] \[[ xX]\])"
)
# The first line of a block of code. The indented lines below belong to it.
_BLOCK = re.compile(
    r"\s*(?:async |export |pub )*(?:def|class|function|fn|func|public|private|static|interface|struct|impl|if|for|while|try)\b.*[:{]\s*$"
)
_IN_BLOCK = re.compile(r"\s|\}|$")
# The first line of a diff, a JSON value, or a message of a chat with its time. The rest of its paragraph belongs to it.
_PASTE = re.compile(
    r"(?:diff --git |@@ |\+\+\+ |--- [ab]/|\+\S)|\s*[{\[]\s*(?:[\"{\[]|$)|\s*\[?\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?\]? +\S"
    r"|(?:[A-Z\u00c0-\u00de][\w.'-]*|[\u3400-\u9fff\uac00-\ud7af]+)(?: [A-Z][\w.'-]*){0,2} +\[?\d{1,2}:\d\d(?: ?[AP]M)?\]?\s*$"
)
# A key of YAML without a value, and an indented key below it.
_KEY, _INNER_KEY = re.compile(r"\s*[\w.-]+:\s*$"), re.compile(r"\s+(?:- )?[\w.-]+:(?:\s|$)")
# An element of HTML or XML inside a line.
_ELEMENT = re.compile(r"<([A-Za-z][\w-]*)(?:\s[^<>]*)?>[^\n]*</[A-Za-z]")
_HEADER = re.compile(
    r"\s*\**(?:from|to|cc|bcc|subject|sent|date|reply-to|von|an|betreff|gesendet|datum|de|à|objet|envoyé|para|asunto"
    r"|发件人|寄件者|收件人|主题|主旨|发送时间|日期|差出人|宛先|件名|送信日時|日時|보낸 ?사람|받는 ?사람|제목|날짜)\**\s*[:：]\s*\S",
    re.IGNORECASE,
)
# From such a line on, everything is by someone else.
_FORWARDED = re.compile(
    r"\s*[-_=*]{2,}\s*(?:original|forwarded|ursprüngliche|weitergeleitete|message d'origine|mensaje"
    r"|begin|原始邮件|转发|轉寄|元のメッセージ|転送|원본|전달)"
    r"|\s*begin forwarded message|\s*(?:on|am|le|el|il)\b.{5,160}\b(?:wrote|schrieb|a écrit|escribió|ha scritto)\b.{0,60}:\s*$"
    r"|\s*\S+(?: \S+)? (?:wrote|writes|schrieb|schreibt|a écrit|écrit|escribió|escribe)\s*:\s*$"
    r"|.{0,160}(?:写道|寫道|のメッセージ|さんは書きました|님이 작성)\s*[:：]?\s*$",
    re.IGNORECASE,
)
# A mail without headers: a line that greets, and below it a line that closes, with a name.
_GREETING = re.compile(
    r"\s*(?:hi|hello|hey|dear|hallo|moin|liebe[rs]?|sehr geehrte[rns]?|guten (?:tag|morgen)|bonjour|salut|ch(?:er|ère)s?|hola|estimad[oa]s?"
    r"|buen[oa]s (?:días|tardes))\b[^.!?:\n]{0,40}[,!]?\s*$"
    r"|\s*(?:各位|大家|尊敬的|亲爱的|您|你).{0,12}好?[，,：:！!]?\s*$|.{1,20}(?:さん|様|各位|님|여러분)(?:께)?[、，,:：]?\s*$",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"\s*(?:(?:(?:best|kind|warm) )?regards|cheers|best|sincerely|yours|(?:viele|liebe|beste|schöne) grüße|(?:mit )?freundlichen? grüßen"
    r"|gruß|lg|vg|mfg|cordialement|bien à (?:vous|toi)|bonne journée|(?:un )?(?:cordial )?saludos?|atentamente|此致|敬礼|祝好|谢谢大家"
    r"|よろしくお願い(?:いた)?します|以上、よろしくお願いします|敬具|감사합니다|드림)[,.，。、!！]?(?P<name>.{0,30})$",
    re.IGNORECASE,
)
_SOURCE = (
    r"(?:web ?)?(?:page|site)|wiki|readme|docs?|documentation|document|e-?mail|mail|ticket|issue|article|blog(?: post)?|post|logs?|output"
    r"|comment|file|manual|guide|report|message|thread|chat|snippet|banner|tool|bot|agent|seite|datei|artikel|nachricht|doku|ausgabe"
)
_SAYS = (
    r"says?|said|reads?|states?|stated|claims?|claimed|asks?|asked|wants?|demands?|tells?|told|recommends?|suggests?|writes?|wrote|instructs?"
    r"|sagt|schreibt|verlangt|behauptet|steht|lautet"
)
# A source that says something, and a colon: what follows is its text.
_QUOTES_SOURCE = re.compile(
    rf"\b(?:{_SOURCE})\b(?:\s+\w+){{0,3}}?\s+(?:{_SAYS})\b[^.!?\n:：]{{0,40}}[:：](?=\s|$)", re.IGNORECASE
)
# A line that ends with a colon and names a source, or a task on a text: the lines below are that text.
_INTRODUCES = re.compile(
    rf"(?:\b(?:{_SOURCE}|error|trace(?:back)?|forwarded|pasted|copied)\b"
    r"|^\s*(?:(?:please|can you|could you|bitte)\s+)?(?:summari[sz]e|translate|proofread|explain|rewrite|reply to|answer|review|analy[sz]e"
    r"|look at|read|übersetze|fasse)\b"
    r"|页面|网页|网站|文档|邮件|日志|工单|文章|消息|报错|输出|翻译|总结|写着|ページ|サイト|メール|文書|ドキュメント|ログ|記事|メッセージ|翻訳|要約"
    r"|페이지|사이트|메일|문서|로그|기사|메시지|번역|요약).{0,80}[:：]\s*$",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\s*(?:[-*•]|\d+[.)])\s")
# A sentence that reports what a document says.
_REPORTS = re.compile(
    rf"\b(?:{_SOURCE})\b(?:\s+\w+){{0,3}}?\s+(?:{_SAYS})\b|\baccording to (?:the|this|that|their) (?:{_SOURCE})\b"
    r"|(?:页面|网页|网站|文档|邮件|日志|工单|文章|消息)[^。！？\n]{0,8}(?:说|写(?=[着道明的了“「:：])|要求|声称|建议|提到)"
    r"|(?:ページ|サイト|メール|文書|ドキュメント|ログ|記事)[^。！？\n]{0,12}(?:書いて(?=[あい])|書かれ|言って(?=[いる])|とある|とあり)"
    r"|(?:페이지|사이트|메일|문서|로그|기사)[^.!?\n]{0,20}(?:라고|다고|적혀|쓰여)",
    re.IGNORECASE,
)
_QUOTATION = re.compile(r"[\"“„«「『](?P<inner>[^\"”“»」』\n]+)[\"”“»」』]")
_SENTENCE = re.compile(r"[^.!?。！？\n]*(?:[.!?](?!\s|$)[^.!?。！？\n]*)*[.!?。！？]*\s*")
_WORDS = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]|[^\W_\u2e80-\u9fff\uac00-\ud7af]+")


class MessageParts(NamedTuple):
    """The user's own words in a message, and what was pasted into it."""

    own: str
    pasted: str


def split_pasted(text: str) -> MessageParts:
    own, pasted = _split_lines(text.replace("\r\n", "\n").split("\n"))
    words = "\n".join(own).strip()
    if len(words) > MOST_CHARS:
        words, middle = _split_long(words)
        pasted.append(middle)
    for pattern in (_QUOTATION, _SENTENCE):
        words = pattern.sub(lambda found: _taken(found, pasted), words)
    return MessageParts(words.strip(), "\n".join(pasted).strip())


def _taken(found: re.Match[str], pasted: list[str]) -> str:
    """Return a match as the user's own, or move it to what is pasted."""
    inner = found.groupdict().get("inner")
    foreign = _REPORTS.search(found[0]) is not None if inner is None else _is_long(inner)
    if foreign:
        pasted.append(found[0].strip())
    return " " if foreign else found[0]


def _is_long(quoted: str) -> bool:
    return len(quoted) >= QUOTED_CHARS and len(_WORDS.findall(quoted)) >= QUOTED_WORDS


def _split_lines(lines: list[str]) -> tuple[list[str], list[str]]:
    """Split a message line by line. Once a mail or an introduced text begins, the rest of the message is pasted."""
    own, pasted, at = list[str](), list[str](), 0
    while at < len(lines):
        line = lines[at]
        if (end := _end_of_block(lines, at)) is not None:
            pasted += lines[at:end]
            own.append("")
            at = end
            continue
        if _QUOTED_LINE.match(line) or _MACHINE_LINE.match(line):
            pasted.append(line)
            own.append("")
        elif (found := _ELEMENT.search(line)) is not None:
            own.append(line[: found.start()])
            pasted.append(line[found.start() :])
        elif _FORWARDED.match(line) or _is_mail(lines, at):
            return own, pasted + lines[at:]
        elif (found := _QUOTES_SOURCE.search(line)) is not None:
            return [*own, line[: found.start()]], [*pasted, line[found.start() :], *lines[at + 1 :]]
        elif _INTRODUCES.search(line[-200:]) and not _is_own(_next_text(lines, at)):
            return [*own, line], pasted + lines[at + 1 :]
        else:
            own.append(line)
        at += 1
    return own, pasted


def _end_of_block(lines: list[str], at: int) -> int | None:
    """Return the end of the code, the tagged block, the diff or the data that begins with this line; None if none begins."""
    line, below = lines[at], lines[at + 1] if at + 1 < len(lines) else ""
    rest = range(at + 1, len(lines))
    if (closing := _closing(line)) is not None:
        return next((each + 1 for each in rest if closing in lines[each]), len(lines))
    if _BLOCK.match(line) and below[:1].isspace():
        return next((each for each in rest if not _IN_BLOCK.match(lines[each])), len(lines))
    if (
        _GREETING.match(line)
        and (end := next(filter(None, (_end_of_mail(lines, each) for each in rest[:MAIL_LINES])), None)) is not None
    ):
        return end
    if _PASTE.match(line) or (_KEY.match(line) and _INNER_KEY.match(below)):
        return next((each for each in rest if not lines[each].strip()), len(lines))
    return None


def _end_of_mail(lines: list[str], at: int) -> int | None:
    """Return the end of a mail that this line closes: with a name behind it, or on the line below."""
    found = _CLOSING.match(lines[at])
    below = lines[at + 1].strip() if at + 1 < len(lines) else ""
    if found is None or not (found["name"].strip() or 0 < len(below) <= NAME_CHARS):
        return None
    return at + 1 if found["name"].strip() else at + 2


def _closing(line: str) -> str | None:
    """Return what ends the code fence or tagged block that begins with this line; None if none begins."""
    if (fence := _FENCE.match(line)) is not None:
        return fence[1]
    opened = _OPENS.match(line)
    return f"</{opened['tag']}>" if opened is not None else None


def _is_mail(lines: list[str], at: int) -> bool:
    return (
        _HEADER.match(lines[at]) is not None
        and sum(_HEADER.match(line) is not None for line in lines[at : at + HEADER_LINES]) > 1
    )


def _is_own(line: str) -> bool:
    """Whether the line after an introduction is a list of the user's, or begins a block with an end of its own."""
    return _BULLET.match(line) is not None or _QUOTED_LINE.match(line) is not None or _closing(line) is not None


def _next_text(lines: list[str], at: int) -> str:
    return next((line for line in lines[at + 1 :] if line.strip()), "-  ")


def _split_long(text: str) -> tuple[str, str]:
    """Split a long text into its short first and last paragraphs, and the rest."""
    parts = [part for part in re.split(r"\n[ \t]*\n", text) if part.strip()]
    ends = {0, len(parts) - 1} if len(parts) > 1 else set[int]()
    kept = [index for index in sorted(ends) if len(parts[index]) <= PARAGRAPH_CHARS]
    return "\n\n".join(parts[index] for index in kept), "\n\n".join(part for index, part in enumerate(parts) if index not in kept)
