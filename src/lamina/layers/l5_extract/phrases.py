"""Approvals of the answer before them, and the words that tell two wishes apart, in English, German, Chinese, Japanese and Korean."""

from __future__ import annotations

import re

from ...language.terms import terms
from ...providers.offline.judge.cues import any_of

_LEAD = r"^(?:(?:no|yes|ok(?:ay)?|and|but|also|so|hey|well|please|hmm|great|perfect|thanks)[,.! ]+)*"

# A request to repeat what was just done, with nothing after it that limits it in time or subject.
_END = r"(?:,? (?:please|from now on|in future|always|every time))*[.!]*$"
CONFIRMATION = any_of(
    rf"\bkeep (?:doing (?:it|that|this)(?: (?:that|this) way| like (?:that|this))?|it (?:that|this) way (?:from now on|always)){_END}",
    r"\b(?:do|handle|write) (?:it|that|this|them) (?:exactly )?(?:like (?:that|this)|this way|that way)"
    r",? (?:every time|from now on|in future|always)[.!]*$",
    r"\balways do (?:it|that) (?:exactly )?(?:like (?:that|this)|this way|that way)[.!]*$",
    r"\bexactly (?:what|how) i (?:like|want|need)\b.{0,30}\bevery time[.!]*$",
    r"\bexactly how i (?:like|want) it[.!]*$|\bmore of that,? please[.!]*$",
    r"\b(?:genau so weiter|weiter so|mach das (?:immer|künftig|ab jetzt) so|so machen wir das (?:ab jetzt|künftig|immer))[.!]*$",
    r"以后(?:都|也|就)(?:这样|这么)(?:做|写|来|办)?(?:吧|就好)?[。.！!]*$|继续保持(?:这样)?[。.！!]*$",
    r"(?:今後|これから)も(?:その|この|同じ).{0,12}(?:お願いします|ください)[。.！!]*$",
    r"앞으로도 (?:이렇게|그렇게|계속) ?(?:해 ?)?(?:주세요|줘)[.!]*$",
)

# An approval that names its subject: "splitting it into two commits was exactly right, keep doing that".
APPROVED = any_of(
    rf"{_LEAD}(?P<what>[a-z]+ing \S.{{4,80}}? (?:was|is) (?:exactly |just |absolutely )?(?:right|perfect|the right (?:call|choice|way)))\b"
)

# Begins an order that holds from now on.
_ON = (
    r"(?:(?:from now on|going forward|ab (?:jetzt|sofort)|von nun an|künftig|désormais|dorénavant|à partir de maintenant"
    r"|a partir de ahora|de ahora en adelante),? (?:please |bitte )?)"
)
# The base form of a verb with an object, as against "never seen that", "never in my life" and "always the same".
_VERB = (
    r"(?!(?:mind|say|ever|an?|the|my|in|on|at|off|up|down|out|so|too|quite|really|enough|more|less|be|did|had|got|was|were|knew|saw|thought"
    r"|heard|found|felt|made)\b)"
    r"(?!\w+(?:[^s]s|ed|ing|(?<!op)en)\b)\w+ \w"
)
_NIE = r"(?:immer|nie(?:mals)?) (?!noch\b|wieder\b|mehr\b|im\b|so\b)"
# An order with a word of permanence: "Never touch …", "Niemals … loggen", 绝对不要…, as against "the parser never returns null".
STANDING = any_of(
    rf"{_LEAD}{_ON}?(?:(?:let['’]?s )?(?:never|always)|we never|(?:don['’]?t|do not)(?=.* ever\b)) (?:ever )?{_VERB}",
    rf"^(?:bitte )?{_ON}?(?!\w+t\b|ich\b|wir\b|das\b)\w+ (?:(?:den|die|das|mein\w*) (?:\w+ ){{1,2}})?{_NIE}(?!.*t[.!]*$)",
    rf"^(?:bitte )?{_ON}?{_NIE}(?:[^,;:]* )?(?!ge\w\w+en\b)\w+[elr]n[.!]*$",
    rf"^{_ON}?(?:n(?:e |['’])\w+[esz] (?:plus )?jamais|(?:ne jamais|toujours) \w+(?:er|ir|re)|\w+[sz] toujours(?! pas\b)) ",
    rf"^{_ON}?(?:(?:nunca|jamás) \w+[ea]s|no \w+[ea]s\b.* (?:nunca|jamás))\b",
    "^(?:请|你|大家)?(?:绝对?|永远|千万|(?:以后|今后)(?![缀端台的会])|从现在(?:起|开始))[，,]?"
    "[^，,；]*(?:不要|不许|不准|不得|不允许|禁止|(?<!不)必须|务必|一定要|都要|(?<![特区类级分差个])别(?![人的]))",
    "(?:絶対|決して|二度と|今後)[^、]*(?:ないで|ないこと|禁止)(?:ください|下さい|ね)?[。.!！]*$",
    "^今後は?、?[^、]*(?:ください|下さい|お願いします|こと)[。.!！]*$",
    "(?:절대로?|다시는) [^,]*(?:지 ?마|마세요|마라|말 것|말아 ?(?:줘|주세요))[.!]*$|^앞으로는? [^,]*(?:마세요|주세요|줘|할 것)[.!]*$",
)
# After one of these, an order goes on with something else: "Never trust user input, add a check to the form".
GOES_ON = re.compile("[,;:，；：、]")
# A prohibition that holds as often as its day comes: "No deploys on Fridays", 周五不要发布.
FORBIDS = any_of(rf"{_LEAD}(?:we )?(?:don['’]?t|do not|no) \w+", r"^(?:bitte )?keine? \w+", "不要|不能|不许|禁止|别")
RECURS = any_of(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days|weekends|holidays|\w+tags|am wochenende)\b",
    "(?<![上下这本个])(?:周|星期|礼拜)[一二三四五六日天末]|节假日",
)
# How a team delivers software. "Never deploy on Fridays" is about that; "never return null" is about a program.
PRACTICE = any_of(
    r"\b(?:deploy|releas|ship\b|roll out|merge|commit|rebase|squash|hotfix|mock|stub|migrations\b|pull request|fixtures|prod(?:uction)?\b)",
    "部署|发布|发版|上线|合并",
    r"\b(?:auslief|produktion\b|déploi|fusionn|despli|fusion|publi(?:ca|ques)\b|producción\b)",
)
# At the end of an order for all times, the place where it holds: "Always use tabs here.", "Never use any in this codebase."
PROJECT_WIDE = re.compile(r",? (?:in (?:this|our) (?:project|repo(?:sitory)?|code ?base)|here)(?=[.!]*$)", re.IGNORECASE)
# It holds for a moment, or for a thing at hand.
AT_HAND = ("this", "now", "asks")

# An answer that tells what was done: the subject of an approval.
DID = any_of(
    r"^(?:i|i['’]ve|i have) (?!will\b|would\b|am\b|can\b|could\b|think\b|see\b|do\b|don|did not\b|found\b"
    r"|noted\b|remember|need\b|understand\b)\w+",
    r"^ich habe\b(?! (?:nicht|kein))",
    r"^我?(?:已经?|把|先|用|写|将)",
    r"ました[。.]?$",
    r"(?:했|었|았)(?:습니다|어요)[.]?$",
)

# Two wishes are the same if they agree apart from these words, whatever their form.
FRAME = frozenset(
    terms(
        "please always never ever from now on going forward in the future as a rule i prefer want like love would rather you should"
        " must keep make give write just only really generally every time whenever very yes no ok more"
        " bitte immer ab jetzt sofort künftig zukunft ich bevorzuge mach schreib gib halte deine nur mir"
    )
)
# The wish with the most phrasings: how long an answer should be.
SAME: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        any_of(
            r"\b(?:short(?:er)?|brief(?:ly)?|concise(?:ly)?|terse(?:ly)?|kurz\w*|knapp\w*)\b|简短|简洁|短く|簡潔に?|짧게|간결하게"
        ),
        " short ",
    ),
    (any_of(r"\b(?:answer\w*|repl(?:y|ies)|respon(?:d|ses?)|antwort\w*)\b|回答|回复|答え|답변을?|대답을?"), " answer "),
    (any_of(r"以后|今后|尽量|一点|请|我|更?喜欢|的|[，。]|今後は?|これからは|して|ください|は|を|앞으로는?|해|주세요"), " "),
)
NEGATIVE = any_of(r"\b(?:never|don['’]?t|not|no|stop|without|avoid|nie|niemals|nicht|keine?)\b|不|别|ない|마세요|말아")
