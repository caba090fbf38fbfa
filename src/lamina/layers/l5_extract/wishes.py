"""Recognizes a standing wish by its parts: the form of a wish, and something that recurs in every task.

`phrases` knows wishes by words such as "always" or "from now on". Most wishes have none: "No emojis in commit messages". They hold for
later tasks if they name a matter of style (emojis), or say how the usual work should be ("small commits", "comments that repeat the
code"), and nothing in them points at the current task. "No tests" or "don't commit" alone is about the current task. A positive command is
a wish if it says when ("before you commit") or gives its reason and the alternative ("pnpm instead of npm — the lockfile breaks").
"""

from __future__ import annotations

import re

from .phrases import LEAD, NOT, POINTS, THE, any_of

# Done in every task, in English without an article: "tests" recur, "the parser" does not.
_WORK = (
    r"(?:commits?|commit messages?|branch(?:es)?|pull requests?|prs|merge commits|tests?|mocks|answers?|repl(?:y|ies)|responses?"
    r"|explanations?|summar(?:y|ies)|comments?|docs|documentation|(?:function|variable|file|class|branch|test) names?|names|identifiers"
    r"|functions|methods|classes|code(?: blocks?| review)?|diffs?|snippets|dependenc(?:y|ies)|packages|libraries|examples)\b"
)
# A matter of style needs no more words to be a wish.
_STYLE = (
    r"(?:emojis?|abbreviations?|jargon|docstrings|type hints?|wildcard imports?|one-liners|exclamation marks|generated files|buzzwords"
    r"|bullet points|headings|force[- ]push\w*|(?:basic|obvious|trivial) \w+|filler words|follow-up questions|magic numbers)\b"
)
_MANNER = (
    r"(?:small|short|long|large|big|huge|brief|concise|detailed|verbose|atomic|separate|plain|simple|clean|descriptive|nested|clever"
    r"|automatic|unnecessary|public|inline|new|english|german)"
)
_WORK_SO = (
    rf"(?:(?:{_MANNER},? (?:\w+ )?){_WORK}|{_WORK} (?:longer than|larger than|over \d|with (?:more|less|fewer) than|without)\b"
    rf"|comments? (?:that|which)\b)"
)
# A scope that holds in every task: "the database in tests" is any database.
_SCOPE = rf"\b(?:in|for|on|to) (?:your |all |any |every |our )?(?:(?:public|production|\w+ing) )?{_WORK}(?! (?:for|of|in) (?:the|\w+\.)\b)"
_NEVER = (
    rf"{LEAD}(?:(?:{NOT}|never) (?:use|add|write|put|make|mock|open|create|touch|edit|include|give|commit|start|end|send|show|leave)"
    rf"|avoid|no|skip|stop (?:adding|writing|using|giving|putting|making)|i (?:{NOT}|never) (?:like|want)|i (?:hate|dislike))\b"
)
_WANTED = rf"{LEAD}i(?:['’]d| would)? (?:(?:always|really|usually|generally) )?(?:want|like|love|prefer|expect|rather have|appreciate)\b"
_NO_NEED = (
    rf"{LEAD}(?:please )?(?:(?:you )?(?:{NOT}) (?:need|have) to|stop) (?:explain|summari[sz]|repeat|apologi[sz]|prais|thank|translat)\w*\b"
    r".{0,60}(?:\b(?:every|each|all|answer|end|time|basic|obvious|simple|me|yourself)\b)"
)
_COMMAND = (
    rf"{LEAD}(?:(?:{NOT}|never|always) )?(?:use|write|answer|keep|prefer|avoid|put|name|ask|show|give|leave|add|commit|push|merge|squash"
    r"|rebase|mock|open|explain|tell|propose|suggest|make|format|touch|reply|respond|include|run|test|document)\b"
)
_CONTRAST = re.compile(
    rf"\b(?:instead of|rather than|over)\b|, not\b|\b(?:dates|names|numbers|{_WORK})\b.* (?:as|in) [\w-]+(?: [\w-]+)?$|{_SCOPE}|{_WORK_SO}",
    re.IGNORECASE,
)
_WHEN = (
    rf"{LEAD}(?:when(?:ever)?|every time|each time|before|after) you (?:show|give|write|answer|commit|push|change|add|finish|explain|edit"
    rf"|create|open|start|make|propose|suggest|refactor|fix)\b[^,]{{0,60}}, (?:please )?(?:{NOT}|never|always|first|also|leave out"
    r"|ask me|tell me|show me|explain)\b"
)
_BEFORE = (
    r".{2,80}\b(?:before|when(?:ever)?|after|unless) (?:you (?:install|add|commit|push|merge|delete|start|write|change|refactor|open|edit)"
    r"(?! (?:it|them|that|this|the)\b)|i (?:ask|say|write|tell|speak|request))\b"
)
# What has a number, an owner or an end belongs to the current task.
_COUNTED = re.compile(r"\b(?:yet|one|two|three|more of|another|last|first|its|still)\b|\.\w|\(", re.IGNORECASE)
_SARCASM = re.compile(r"\(\)|\b(?:what could go wrong|yeah right|obviously not|a pleasure)\b", re.IGNORECASE)

_POINTS = re.compile(POINTS, re.IGNORECASE)
_TASK_OF = re.compile(rf"{POINTS}|{THE}", re.IGNORECASE)
_GENERAL = re.compile(rf"(?:{_NEVER}|{_WANTED})(?: \S+){{0,3}}? (?:{_STYLE}|{_WORK_SO}|[\w -]{{2,30}} {_SCOPE})", re.IGNORECASE)
_NOT_IN_WORK = re.compile(rf"{_NEVER}.*{_SCOPE}", re.IGNORECASE)
_REASONED = re.compile(_COMMAND, re.IGNORECASE)
_NEVER_OWN = re.compile(rf"{LEAD}never (?:squash|rebase|amend|mock|force-push|commit|push|merge)\b", re.IGNORECASE)
_HABIT = any_of(_WHEN, _COMMAND + _BEFORE)
_EVERY_TIME = re.compile(rf"{_COMMAND}.{{2,120}},? (?:every|each) (?:single )?time[.!]*$", re.IGNORECASE)
_TOLD_OFF = re.compile(_NO_NEED, re.IGNORECASE)

_STYLE_DE = r"(?:emojis?|abkürzungen|anglizismen|zusammenfassungen|zusammenzufassen|docstrings|entschuldigungen|floskeln|ausrufezeichen)\b"
_WORK_DE = (
    r"(?:commits?|commit-\w+|tests?|mocks?|antworten?|erklärungen?|kommentare?|docstrings?|doku\w*|\w*namen|code|beispiele)\b"
)
_GERMAN = re.compile(
    rf"^(?:(?:nein|ja|ok|und|aber)[,.! ]+)*(?:(?:bitte )?(?:keine?|nie|niemals|vermeide|hör auf)\b.{{0,40}}?{_STYLE_DE}"
    rf"|(?:bitte )?keine \w+ (?:in|für) (?:den |die |der )?(?:{_WORK_DE}|\w+, das hat)"
    rf"|ich (?:mag|will|möchte) (?:keine|immer|lieber|nur) \w+e[nr]? {_WORK_DE}|{_WORK_DE}.{{0,30}} bitte (?:immer |nur )?"
    r"(?:auf (?:deutsch|englisch)|kurz|ohne)\b"
    r"|(?:bitte )?frage? mich(?: immer)?, bevor du\b)",
    re.IGNORECASE,
)
_GERMAN_COMMAND = re.compile(
    rf"^(?:bitte )?(?:(?:verwende|benutze|nutze|nimm|schreibe?|antworte|halte)\b.*\b(?:statt|anstatt|auf|als)\b|keine? \w+ (?:für|in)\b|"
    rf"keine \w+e[nr]? {_WORK_DE})(?!.*\b(?:hier|eine[mnr]?)\b)",
    re.IGNORECASE,
)

_WORK_ZH = (
    "提交|代码|测试|注释|变量名?|函数名|命名|回答|回复|总结|结尾|解释|拼音|英文|中文|缩写|表情|依赖|分支|文档|示例|建议|push"
    "|结论|概念"
)
_TASK_ZH = re.compile(
    "它|[这那](?:里|个|段|种|次|一|些|条|行)|第[一二三]|错别字|帮我|一下|先别|可能|如果|改成|换成|报错|刚才|重做|怎么|没过|删掉"
)
_NOT_ZH = r"(?:不要|别(?!的|人)|不用|不必|避免|禁止)"
_CHINESE = re.compile(
    rf"(?:^|^请|^.{{1,10}}[，,]?|[，,]请?){_NOT_ZH}(?:自动|随便|擅自|总是|使?用|写|加|添加|在.{{1,6}}[里中]|解释|重复).{{0,12}}?(?:{_WORK_ZH})"
    rf"|^请?{_NOT_ZH}在.{{0,4}}(?:{_WORK_ZH}).{{0,2}}[里中上].{{2,}}|^(?:{_WORK_ZH}).{{0,10}}(?:请用|一律|必须用|都要?用)|别再.{{1,16}}了[。.！!]*$"
    r"|每次.{1,12}(?:都要|都请|必须|请)先?(?:先|跑|写|更新|检查|问|运行|给).{1,16}|^(?:以后|今后)先"
    rf"|^我(?:更)?(?:希望|喜欢)(?:你.{{1,24}}而不是|.{{1,8}}的(?:{_WORK_ZH}))"
)

_WORK_JA = (
    "コミット|メッセージ|テスト|コメント|絵文字|説明|回答|返答|要約|まとめ|変数名|関数名|命名|依存|ブランチ|ドキュメント|略語"
)
_TASK_JA = re.compile("この|その|あの|これ|それ|ここ|こちら|エラー|落ち|直して|修正|今回|作って|追加して|表示|通ら|ので")
_JAPANESE = re.compile(
    rf"(?:{_WORK_JA})(?:の中)?(?:に|には|で|では|は).{{1,20}}(?:ないでください|ないで下さい|ないでほしい|は不要)"
    rf"|(?:{_WORK_JA}).{{0,10}}のはやめて|(?:{_WORK_JA})[はを](?:短く|簡潔に|詳しく|英語で|日本語で|丁寧に).{{0,8}}ほしい"
    rf"|(?:毎回|必ず|いつも).{{0,20}}(?:{_WORK_JA}).{{0,24}}(?:ください|やめて|ほしい)"
)

_WORK_KO = "커밋|메시지|테스트|주석|이모지|설명|답변|대답|요약|변수|함수 이름|의존성|브랜치|문서|약어"
_TASK_KO = re.compile(r"(?:^|\s)(?:이|그|저|여기|이번)(?:\s|에)|오류|에러|고쳐|실패|만들어|추가해|중이에요")
_KOREAN = re.compile(
    rf"(?:{_WORK_KO})(?:에|에는|에서|에서는) .{{1,20}}지 (?:마세요|말아|마)|(?:{_WORK_KO})[은는] (?:그만|안) .{{1,10}}(?:주세요|줘|돼요)"
    rf"|^(?:저는|나는) .{{1,10}}(?:{_WORK_KO})[이가을를]? (?:좋아요|좋습니다|싫어요|선호)"
)


def is_standing_wish(rule: str, why: str) -> bool:
    """Whether a sentence without its reason asks for something in every later task."""
    if _SARCASM.search(rule) or _SARCASM.search(why):
        return False
    return _is_english(rule, why) or _is_german(rule, why) or _is_in_other_script(rule)


def _is_english(rule: str, why: str) -> bool:
    if _POINTS.search(rule):
        return False
    if _EVERY_TIME.search(rule) or _TOLD_OFF.search(rule):
        return True
    if _TASK_OF.search(rule):
        return bool(why) and _NOT_IN_WORK.search(rule) is not None
    if _HABIT.search(rule) or (why and _NEVER_OWN.search(rule)):
        return True
    if _COUNTED.search(rule):
        return False
    return _GENERAL.search(rule) is not None or (bool(why and _REASONED.search(rule)) and _CONTRAST.search(rule) is not None)


def _is_german(rule: str, why: str) -> bool:
    if why and _GERMAN_COMMAND.search(rule):
        return _POINTS.search(rule) is None
    return _GERMAN.search(rule) is not None and _TASK_OF.search(rule) is None


def _is_in_other_script(rule: str) -> bool:
    if rule.isascii():
        return False
    chinese = _CHINESE.search(rule) is not None and _TASK_ZH.search(rule) is None
    japanese = _JAPANESE.search(rule) is not None and _TASK_JA.search(rule) is None
    return chinese or japanese or (_KOREAN.search(rule) is not None and _TASK_KO.search(rule) is None)
