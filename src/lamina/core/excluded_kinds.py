"""Recognizes what memory excludes, even when asked: code, file locations, task state, history, fixes, and judgements of people.

The patterns only look at words, in English, German, French, Spanish, Chinese, Japanese and Korean. Of a whole memory, the description or
most lines decide, so a memory may name a file or a ticket. Pure.
"""

from __future__ import annotations

import re
from collections import Counter

from ..language.connectives import marked_reason

_URL = re.compile(r"https?://\S+", re.IGNORECASE)
_CODE = re.compile(
    r"```|\b(?:def|function|fn|func) \w+\s*\(|\b(?:const|let|var) \w+ =|^[ \t]*+(?:class|import|from \w+ import)\b.*[(){};=]|=>\s*[{(]"
    r"|\b(?i:select)\b.{1,80}\b(?i:from) \w+.*(?:[;=*]|\b(?i:where)\b)|`[^`\n]*(?:[=;{}]|\(\))[^`\n]*`"
    r"|^[ \t]*+(?:th(?:is|e following)\s+)?(?:code|snippet|function|class|regex)\s*[:：]|^[ \t]*+(?:这段|以下)?代码\s*[:：]"
    r"|^[ \t]*+(?:(?i:dieser|folgender) )?(?i:code)\s*[:：]|^[ \t]*+(?:この|次の)?コード\s*[:：]",
    re.MULTILINE,
)
_PATH = re.compile(r"(?<![\w:/.])(?:\.{0,2}/)?(?:[\w.-]+/)+[\w-]+\.[A-Za-z]\w{0,4}\b")
_MOMENT = re.compile(
    r"^\s*(?:(?:i am|i'm|we are|we're) (?:now |currently |just )?(?:working on|fixing|debugging|editing|halfway|(?:on|at) step \d"
    r"|(?:on|at) the \w+ (?:file|test|step|chapter|item))"
    r"|(?:i|we) still (?:have|need) to"
    r"|(?:(?:the|our|my|your) )?(?:current|present) (?:task|job|step)|(?:the|our|my|your) (?:next step|task (?:now|is)))\b"
    r"|^\s*(?:(?:die|unsere|meine) (?:aktuelle|jetzige|momentane) aufgabe|der (?:nächste|aktuelle) schritt"
    r"|(?:ich|wir) (?:bin|sind|arbeite|arbeiten|repariere|reparieren|behebe|beheben) (?:gerade|jetzt|im moment|momentan))\b"
    r"|^\s*(?:ich bin|wir sind) (?:gerade |jetzt )?bei (?:der|dem) \w+ (?:datei|schritt|kapitel|test)\b"
    r"|^\s*(?:je suis|on est|nous sommes) en train de |^\s*(?:il me reste|me queda|me faltan?)\b"
    r"|^\s*(?:ahora )?est(?:oy|amos) (?:ahora )?(?:arregl|corrig|depur|edit|cambi|termin|refactoriz)\w*(?:ando|iendo)\b"
    r"|^\s*(?:(?:我们?的?)?当前(?:的)?任务|今のタスク|現在の(?:タスク|作業)|현재 작업)"
    r"|^\s*(?:我们?)?(?:现在|目前)?(?:我们?)?(?:正在|还在|(?<=现在)在|(?<=目前)在)(?:改|修|调试?|写|做|看|编辑|处理|重构)"
    r"|(?:^|[，。；,])\s*(?:我们?)?还[剩差]|(?:^|[，。；,])\s*接下来(?:要|再)?(?:改|修|写|做|处理|重构|是)"
    r"|^\s*(?:我们?)?(?:现在|目前|已经|刚刚?)?(?:改|写|修|做|看|处理|重构)到了?第.{1,4}(?:个|行|步|章|页)"
    r"|^\s*지금 .{1,30} 중(?:이야|이에요|입니다)"
    r"|^\s*今(?:は)?.{1,30}(?:しています|している|してる|ところです?)",
    re.IGNORECASE,
)
_PROGRESS = re.compile(
    r"\b(?:done|finished|completed|ported|migrated|fixed) \d+ (?:of|out of) \d+\b|^\s*(?:step|phase|part) \d+ of \d+\b"
    r"|\b\d+ of \d+ \w+ (?:are|is) (?:done|left|finished|ported)\b"
    r"|\b(?:is|are) (?:done|finished),? (?:and )?(?:next|now) (?:is|are|up|comes)\b"
    r"|\b(?:done|finished|completed)\b.{1,80}\b(?:is|are|comes?) next\b|\bhalf(?:way)?[ -](?:done|finished|through)\b"
    r"|\b(?:fertig|erledigt|abgeschlossen)\b.{1,60}\b(?:als nächstes|nächster schritt|jetzt kommt|dann kommt)\b"
    r"|\b(?:finie?s?|terminée?s?)\b.{1,60}\b(?:ensuite|prochaine?|reste à)\b"
    r"|\b(?:terminad[oa]s?|hech[oa]s?|list[oa]s?)\b.{1,60}\b(?:ahora toca|lo siguiente|luego|falta)\b"
    r"|(?:做|写|改|弄|完成|迁移)(?:完|好)?了.{1,30}(?:接下来|下一步|然后|剩下)|(?:終わ(?:った|り)|完了|でき(?:た|まし)).{1,30}次は"
    r"|(?:끝났|끝냈|완료|다 했).{1,30}(?:다음은|이제|남았)"
    r"|(?:写|做|改|重构|迁移|完成)(?:了|到)一半"
    r"|^\s*(?:(?:next steps?|progress|status)\s*[:：]|to-?dos?\b)"
    r"|^\s*(?:the|our|my) current branch is\b|^\s*(?:当前|目前)?(?:的)?进度|^\s*(?:下一步|待办)|^\s*(?:進捗|次の作業)",
    re.IGNORECASE,
)
# Two or more numbers: "PRs #12 and #14". The tracker has the current list.
_REQUESTS = re.compile(
    r"\b(?:PRs?|MRs?|(?:pull|merge) requests?|issues?|tickets?)(?:\s+(?:are|sind|include))?\s*[:：有は]?\s*#?\d+"
    r"(?:\s*(?:,|、|，|and|und|et|y|&|和|と|,\s*and)\s*(?:PR|MR|issue|ticket)?\s*#?\d+)+"
    r"|#\d+(?:\s*(?:,|、|，|and|und|et|y|&|和|と|,\s*and)\s*#\d+)+",
    re.IGNORECASE,
)
_SUFFIX = "(?:py|js|ts|tsx|jsx|go|rs|java|rb|c|h|cpp|kt|swift|php|cs|sh|sql)"
_FILE = re.compile(
    r"\b(?:is|are|lives?|lies|defined|located|implemented|liegt|steht|est|sont|está|están)\s+(?:in|at|under|dans|en)\s+(?:the\s+|der\s+)?`?"
    rf"(?:[\w-]+\.{_SUFFIX}\b|(?:src|lib|app|pkg|tests?)/\w)"
    r"|\b(?:code|functions?|class(?:es)?|logic|implementation|handlers?|modules?)\b.{0,40}\b(?:is|are|lives?) in (?:the )?\S+ "
    r"(?:directory|folder|package)\b"
    rf"|[在于]\s?`?[\w./-]+\.{_SUFFIX}\b|(?:代码|函数|实现|逻辑|模块|组件)[都放]?(?:在|位于)\s?[\w./-]+\s?(?:目录|文件夹|包|文件)",
    re.IGNORECASE,
)
_GIT = re.compile(
    r"\bcommit [0-9a-f]{7,40}\b|\bgit (?:log|blame|history)\b|\b(?:the )?last (?:\w+ )?commits? (?:was|were|is|are)\b"
    r"|\bder letzte commit\b|(?:提交|コミット) ?[0-9a-f]{7,40}|(?:最近|上)(?:一|几)次提交(?:是|由)|(?:最後|直近)のコミットは",
    re.IGNORECASE,
)
_FIX = re.compile(
    r"\b(?:bug|error|crash|issue|problem|failure) (?:was|is|got|has been) (?:fixed|solved|resolved) (?:by|with|in)\b"
    r"|\b(?:was|were|got|has been) (?:fixed|solved|resolved) by \w+ing\b"
    r"|\bthe (?:fix|workaround) (?:for|is|was)\b|\b(?:we|i) (?:fixed|solved|resolved) .{1,80}\bby\b"
    r"|\b(?:fehler|bug|problem|absturz)\b.{0,60}\b(?:wurde|ist|haben wir|habe ich)\b.{1,60}\b(?:behoben|gelöst|repariert)\b"
    r"|\b(?:bug|erreur|problème|panne|fallo|error|problema)\b.{0,40}\b(?:corrigée?|résolue?|réglée?|(?:arregl|corrig|solucion|resolv)\w+)\b"
    r"|(?:버그|오류|문제|에러).{1,40}(?:고쳤|해결했|수정했)"
    r"|(?:错误|问题|缺陷|故障|bug)\s*(?:是)?(?:通过|用).{1,30}(?:修复|修好|解决)|(?:バグ|エラー|問題|不具合)は.{1,40}(?:で|により|によって)(?:修正|解決|直)",
    re.IGNORECASE,
)
_SHAPE = re.compile(
    r"^\s*(?:the|our) (?:architecture|directory structure|folder structure|file layout|code ?base) (?:has|is|consists|uses|contains)\b"
    r"|^\s*(?:the|our) (?:code|repo(?:sitory)?|project) (?:is (?:split|divided|structured|organi[sz]ed)"
    r"|has \S+ (?:packages|modules|layers))\b"
    r"|^\s*(?:the|our) (?:code ?base|code|backend|frontend|app) (?:uses|follows) (?:the|an?) .{1,40} (?:pattern|architecture)\b"
    r"|^\s*(?:der|unser) code (?:nutzt|folgt|verwendet) (?:da?s?e?[mnr]?|eine[mnr]?) .{1,40}(?:muster|architektur)\b"
    r"|^\s*(?:我们的)?代码(?:都|全部)?(?:采用|使用|用)(?:的是|了)?.{1,20}(?:模式|架构)"
    r"|^\s*(?:die|unsere) (?:architektur|verzeichnisstruktur|ordnerstruktur|codebasis) (?:hat|ist|besteht|nutzt|enthält)\b"
    r"|^\s*(?:我们的)?(?:架构|目录结构|代码(?:结构)?)(?:是|有|分为|分成|包括)|^\s*(?:アーキテクチャ|ディレクトリ構成|フォルダ構成|コードの構成)は",
    re.IGNORECASE,
)
_INSTRUCTIONS = re.compile(
    r"\b(?:CLAUDE|AGENTS)(?:\.local)?\.md (?:says?|said|states?|sagt)|(?:CLAUDE|AGENTS)\.md(?:里|中|に)?(?:写|说|書)"
)


# A negative judgement of a person, mostly the user: no memory, even when asked. The first words are said of things as well.
_POOR = "terrible|lousy|awful|horrible|useless|hopeless|worthless|bad|no good|the worst|failure"
_INSULT = "stupid|incompetent|lazy|dumb|clueless|idiot|moron|fool"
_BEFORE = "(?:(?:such|just|really|so|very|an?|quite|always|too) )*"
_BELEIDIGT = "(?:dumm|faul|unfähig|blöd|doof|idiot|versager)"
_INSULTE = "(?:null?es?|nul|bêtes?|stupides?|incompétente?s?|idiote?s?|paresseu(?:x|ses?)|fainéante?s?|imbéciles?)"
_INSULTO = "(?:tont[oa]s?|idiotas?|inútil(?:es)?|incompetentes?|vag[oa]s?|perezos[oa]s?|torpes?|malísim[oa]s?|estúpid[oa]s?)"
_WORK = "code|coding|work|writing|spelling|math|english|sql|python|java|rust|css"
_SKILL = "代码|写|编程|英[语文]|水平|能力|技术|记性|数学|表达|SQL|Python|Java|Rust|CSS|Git"
_PERSON = "(?:guy|dude|kid|intern|junior|trainee|boss|colleague|manager|coworker|teammate|neighbou?r)s?"
# A name is a word with a capital.
_NAME = r"(?-i:[A-ZÀ-Þ][a-zà-ÿ]+)"
_NAME_OR_PERSON = rf"(?:{_NAME}|s?he|{_PERSON})"
_JUDGES = re.compile(
    rf"\b(?:i am|i['’]m|the user is|s?he is|s?he['’]s|my (?:boss|colleague|manager|code|work) is) {_BEFORE}(?:{_POOR}|{_INSULT})\b"
    rf"|(?:^|[,;:] |\bthat ){_NAME} is {_BEFORE}(?:{_INSULT})\b|\bmy \w+ {_NAME} is {_BEFORE}(?:{_INSULT})\b"
    rf"|\b(?:his|her|my|the user['’]s) (?:{_WORK}) (?:is|are) {_BEFORE}(?:{_POOR})\b"
    rf"|\b{_PERSON}\b(?: (?:on|in|from|at|of)(?: \w+){{1,3}})? (?:is|are) {_BEFORE}(?:{_POOR}|{_INSULT})\b"
    rf"|(?:^|[,;:] |\bthat |\bmy (?:\w+ )?){_NAME_OR_PERSON} (?:has no (?:idea|clue) (?:about|of)|knows nothing about)\b"
    rf"|(?:^|\bder |\bdie ){_NAME} (?:hat keine ahnung von|versteht nichts von|kann nichts)\b"
    rf"|^{_NAME} (?:ne comprend rien|n['’]y connaît rien|no tiene ni idea|no sabe nada)\b"
    r"|\bi suck\b|\bi can['’]?t (?:code|program)\b"
    rf"|\b(?:ich bin|{_NAME} ist) (?:(?:so|eine?|zu|echt|einfach|sehr) )*(?:{_BELEIDIGT}|schlecht|mies)\w*\b"
    rf"|\b(?:je suis|(?:il|elle|collègue|chef|stagiaire|mec|type|{_NAME}) est) (?:(?:trop|très|une?|vraiment|si) )*{_INSULTE}\b"
    rf"|\b(?:soy|(?:él|ella|compañer[oa]|jef[ea]|becari[oa]|tío|tipo|{_NAME}) es) (?:(?:muy|una?|tan|demasiado) )*{_INSULTO}\b"
    r"|(?:我|他|她|用户|同事|领导|老板|实习生|新人)(?:真|太|很|是个?|就是个?|这个人)*(?:笨|蠢|傻|差劲|没用|懒|白痴|废物|糟糕|无能)"
    rf"|(?:我(?!们)|[他她](?!们)|用户|[小老]\w)的?\s?(?:{_SKILL})[^，。；]{{0,6}}(?:很|太|真|非常|特别|比较)(?:差|烂|菜|糟)"
    r"|^[^\s，。的]{2,3}(?:真|太|很|是个|就是个)(?:笨|蠢|傻|懒|白痴|废物|无能)"
    r"|^[^\s，。的我]{2,3}(?:什么都|啥都|根本)不(?:懂|会)"
    r"|(?:さん|くん|上司|同僚|新人|先輩|彼|彼女)は.{0,6}仕事が(?:遅い|できない|雑)"
    r"|(?:私|僕|俺|彼|彼女|ユーザー|さん|くん|上司|同僚|新人|先輩)は.{0,6}(?:バカ|馬鹿|無能|ダメ|駄目|役立たず|怠け)"
    r"|(?:저는|나는|전|그는|사용자는|씨는|님은|동료는|신입은) .{0,6}(?:멍청|바보|무능|게으)",
    re.IGNORECASE,
)
# Descriptions that name one of the kinds.
_TITLES = (
    (
        "a list of pull requests or tickets",
        r"\b(?:PRs|MRs|(?:pull|merge) requests|commits|changes|issues|tickets|change ?log)"
        r" (?:of|from|in|since|this|last|merged|open|closed)\b"
        r"|\b(?:week|sprint|today|yesterday|month)['’]?s (?:PRs?|MRs?|(?:pull|merge) requests|commits|changes|tickets)\b"
        r"|\b(?:recent|latest|last|merged|open) (?:\w+ )?(?:PRs|MRs|(?:pull|merge) requests|commits|changes|tickets|issues)\b"
        r"|\bwhat (?:we|i) changed\b|\b(?:PRs?|pull requests?|commits?) (?:de la semaine|de esta semana|dieser woche|der woche)\b"
        r"|(?:本周|这周|上周|最近|今天)的?\s?(?:PR|MR|提交|改动|变更|合并请求)|(?:今週|先週|最近)の\s?(?:PR|MR|コミット|変更)"
        r"|(?:이번 주|지난주|최근)의?\s?(?:PR|MR|커밋|변경)",
    ),
    (
        "how something was fixed",
        r"^\s*(?:fixed\b|(?:bug ?fix|hot ?fix|fix|solution|workaround)\s?(?:for|of|in|:))|\broot cause of\b"
        r"|^(?:已?修复|解决)了?.{1,20}(?:问题|错误|缺陷|故障|bug)$",
    ),
    (
        "the structure of the code",
        r"\b(?:director(?:y|ies)|folders?|files?|projects?|repo(?:sitory)?|code ?base|code|modules?|packages?|source) "
        r"(?:layouts?|structures?|tree|organi[sz]ation|overview)\b|\b(?:code|repo(?:sitory)?|project) is organi[sz]ed\b"
        r"|\b(?:verzeichnis|ordner|projekt|datei|code)struktur\b|\barborescence\b"
        r"|\b(?:structure|estructura) (?:du|des|del|de) (?:l[ao]s? )?"
        r"(?:projet|dossiers|code|répertoires|carpetas|directorios|proyecto|código)\b"
        r"|(?:目录|项目|文件夹|代码)结构|(?:ディレクトリ|フォルダ|プロジェクト|コード)(?:の)?構成"
        r"|(?:디렉터리|디렉토리|폴더|프로젝트|코드) 구조",
    ),
    (
        "the current task",
        r"^\s*(?:current task|next steps?|to-?do(?: list)?|where (?:i|we) stopped|(?:progress|status)(?=\s*(?:$|[:：]|of|on|in)))\b",
    ),
)
_TITLE = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _TITLES)
# A line of a list of changes, and a line of a directory tree.
_CHANGE = re.compile(r"#\d+\b|\b(?:PR|MR|[A-Z]{2,8}-)\s?\d+\b|^\W*(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b")
_TREE = re.compile(r"^\s*[│├└]|^\s*(?:[-*+]\s+)?`?(?:[\w.-]+/)+[\w.-]*`?(?=\s*(?:$|[-–—:：#(（]|\s\S))")
_SEPARATOR = re.compile("[,;，；、]")
_INLINE = re.compile(r"`[^`\n]*`")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？]")
_LABELLED = re.compile(r"^\s*(?:#{1,6}\s|\*\*|$)")

JUDGEMENT = "a judgement of a person"
INSTRUCTIONS = "the content of instruction files"
# Kinds of text that are not worth remembering, in the order of the translations in `replies`.
KINDS = (
    "code",
    "the current task",
    "the location of a file",
    "a list of pull requests or tickets",
    "the history of the code",
    "how something was fixed",
    "the structure of the code",
    INSTRUCTIONS,
)
# Kinds that a user may want kept, in a large code base.
ARCHITECTURE = frozenset({"code", "the location of a file", "the structure of the code", INSTRUCTIONS})
# Kinds that are lists: a sentence with such a description is about something else, such as who decides.
LISTS = frozenset({"a list of pull requests or tickets", "the structure of the code"})
# A shorter list is no list. One line may name a ticket or two.
FEWEST_ROWS = 2
FEWEST_NAMED = 3


def find_excluded(description: str, body: str, *, architecture: bool = True) -> str | None:
    """Return the kind of a memory that is not worth keeping; None if it may be. Without `architecture`, its kinds are kept."""
    rows = [row for row in body.splitlines() if not _LABELLED.match(row)]
    kinds = Counter(kind for row in rows if (kind := _row_kind(row, alone=len(rows) < FEWEST_ROWS)) is not None)
    most = next((kind for kind, count in kinds.most_common(1) if 2 * count > len(rows)), None)
    lists = len(rows) >= FEWEST_ROWS or _SEPARATOR.search(body) is not None
    title = next((kind for kind, pattern in _TITLE if pattern.search(description) and (lists or kind not in LISTS)), None)
    found = (title, _sentence_kind(description), most)
    return next((kind for kind in found if kind is not None and (architecture or kind not in ARCHITECTURE)), None)


def _row_kind(row: str, *, alone: bool) -> str | None:
    if len(_CHANGE.findall(row)) >= (FEWEST_NAMED if alone else 1):
        return "a list of pull requests or tickets"
    if not alone and _TREE.match(row):
        return "the structure of the code"
    sentences = [part for part in _SENTENCE_END.split(row) if part.strip()]
    kinds = [_sentence_kind(part) for part in sentences]
    return next(filter(None, kinds), None) if 2 * (len(kinds) - kinds.count(None)) > len(kinds) else None


def _sentence_kind(text: str) -> str | None:
    """Return the kind of a sentence of a memory. A path or a piece of code that it only mentions does not count."""
    return no_memory(_PATH.sub("file", _INLINE.sub("code", _URL.sub(" ", text))))


def no_memory(text: str) -> str | None:
    """Return the kind of a text that is not worth remembering; None if it may be."""
    if _JUDGES.search(text):
        return JUDGEMENT
    if _CODE.search(text):
        return "code"
    if _MOMENT.search(text) or _PROGRESS.search(text):
        return "the current task"
    if marked_reason(text) is not None:
        return None
    if _PATH.search(bare := _URL.sub(" ", text)) or _FILE.search(bare):
        return "the location of a file"
    kinds = (
        (_REQUESTS, "a list of pull requests or tickets"),
        (_GIT, "the history of the code"),
        (_FIX, "how something was fixed"),
        (_SHAPE, "the structure of the code"),
        (_INSTRUCTIONS, INSTRUCTIONS),
    )
    return next((what for pattern, what in kinds if pattern.search(text)), None)
