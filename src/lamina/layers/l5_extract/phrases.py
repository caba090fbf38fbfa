"""Phrases that mark a user's sentence as worth keeping, in English, German, Chinese, Japanese and Korean.

Each line holds one alternative or a group of them. Most talk about code uses the same words with another meaning ("always returns None",
"the release failed on Friday"). So a wish must have the form of a wish and a plan that of a plan, and a word that points at the current
task disqualifies the sentence. Matching time depends on the length of the sentence, which is bounded.
"""

from __future__ import annotations

import re

from ...core.terms import terms


def any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


def _but_not(words: str, *patterns: str) -> str:
    """Match any of the patterns in a sentence that contains none of the words."""
    return rf"^(?!.*(?:{words})).*?(?:{'|'.join(patterns)})"


LEAD = r"^(?:(?:no|yes|ok(?:ay)?|and|but|also|so|hey|well|please|hmm|great|perfect|thanks)[,.! ]+)*"
_LEAD_DE = r"^(?:(?:bitte|nein|ja|ok|und|aber|also|gut)[,.! ]+)*"
NOT = r"(?:don['’]?t|do not)"
_ROLES = (
    "engineer|developer|designer|scientist|analyst|manager|lead|architect|student|teacher|researcher|intern|founder|cto|ceo|sre|physicist"
    "|biologist|chemist|mathematician|economist|lawyer|doctor|accountant|writer|editor|maintainer|administrator|consultant|programmer"
    "|beginner|freelancer|contractor|nurse|journalist|statistician|tester|translator|professor"
)
_ROLES_DE = (
    r"\w*(?:entwickler|ingenieur|designer|leiter|wissenschaftler|physiker|architekt|administrator|berater)(?:in)?"
    r"|(?:student|anfänger|lehrer)(?:in)?"
)
_ROLES_ZH = "工程师|开发者?|程序员|设计师|经理|学生|老师|分析师|研究员|科学家|架构师|产品|运维|测试|新手|负责人|实习生|律师|医生"
_ROLES_JA = (
    "エンジニア|サイエンティスト|開発者|プログラマ|デザイナー|研究者|学生|マネージャー|リーダー|アナリスト|教師|初心者|担当"
    "|弁護士|医師"
)
_ROLES_KO = "개발자|엔지니어|디자이너|연구원|학생|매니저|분석가|담당|초보|신입|팀장|교사"

# Things an assistant does for a user. Verbs for what programs do (call, return, check) are left out.
_DO = (
    r"(?:use|write|answer|reply|respond|run|commit|push|merge|rebase|squash|add|put|keep|ask|explain|show|give|include|format|name|avoid"
    r"|create|open|test|document|delete|touch|edit|modify|assume|guess|apologi[sz]e|cite|translate|speak|generate|install|skip|mock|tell"
    r"|suggest|propose|do|leave|mention|summari[sz]e|follow|stick|prefer|start|make|force-push|amend|address|begin|end)\b"
)
# The subset that programs do not do: "always show a spinner" describes a program.
_OWN = (
    r"(?:answer|reply|respond|commit|push|force-push|merge|rebase|squash|amend|ask|explain|apologi[sz]e|cite|translate|speak|tell|suggest"
    r"|propose|mention|summari[sz]e|assume|guess|write|run|test|mock|document|use(?! an?\b))\b"
)
_DO_DE = r"(?:antworte|schreibe?|verwende|benutze|nutze|nimm|frage?|mache?|lass|erkläre?|führe|committe|teste|halte|sprich)\b"
_TO_DO_DE = (
    r"(?:verwenden|benutzen|schreiben|antworten|nutzen|pushen|committen|mergen|löschen|ändern|fragen|testen|ausführen|machen|hinzufügen"
    r"|erklären|nehmen|lassen)\b"
)
# "This one" and "here" point at the current task, not at a general rule.
POINTS = (
    r"\b(?:here|there|these|those)\b|\bthis\b(?! (?:project|repo|repository|codebase|team|company)\b)|\bthat (?:one|\w+ there)\b"
    r"|\b(?:do|with|of|for|in|on|use|touch|delete|edit|want|make|mock|test|skip|leave) that\b|\bthat[.!,]|\bthat$"
    r"|\b(?:run|use|delete|add|push|merge|open|edit|skip|leave|make|do|keep|test|touch|modify) (?:it|them)\b"
    r"|\b(?:until|rename)\b|\b(?:hier|diese[rmns]?)\b"
    r"|[，,。 ]就用|它|这[里个段种么]|那[里个段]|第[一二三]|この|その|あの|こちら|(?:^| )(?:이|그|저) "
)
# "The parser" is the one being worked on; "the tests" occur in every task.
THE = (
    r"\bthe (?!(?:unit |whole )?(?:tests?|test suite|linter|docs?|documentation|changelog|type checker|formatter|style guide|reasons?"
    r"|main branch|code|imperative|present tense|same language|team|project|repo|repository|most|time|implementation|user|end of your)\b)"
    r"|\b[45]\d\d\b|\(\)|, that\b|\bfehler\b|, (?:so )?(?:update|switch|split|start|replace|change|fix|go|bring)\b"
    r"|\bd(?:er|ie|as|en|em) (?!(?:tests?|doku\w*|linter|changelog|team|projekt)\b)|\b(?:variante|option|version|lösung)\b"
)
_TROUBLE_ZH = "报错|错误|改一下|改成|换成|按钮|刷新|再说|返回"
_TROUBLE_JA = "エラー|バグ|不具合|失敗|直して|修正|調べ|落ち|返[さしすっるり]|なぜ|変えて|変更して|実装|テーブル|カラム"
_TROUBLE_KO = r"[45]\d\d|하면|오류|버그|고쳐|반환|에러|실패|나와|버튼|돌려|줄을"

QUESTION = any_of(
    r"[?？]\s*$",
    r"(?:吗|嗎|呢|か|까요|나요)[。.]?\s*$",
    r"^(?:what|why|how|when(?! you \w+[^?]*, )|where|who|which|is|are|do(?!n)|does|did|can|could|should|would)\b(?!['’]| not\b)",
    r"\b(?:why does|what does|find out why|was bedeutet|warum)\b",
)

# Holds only this once, or is uncertain.
ONCE = any_of(
    r"\b(?:for now|for the moment|this (?:time|once)|just (?:this )?once|today only|right now|at the moment|temporar\w+)\b",
    r"\b(?:maybe|perhaps|i think|might|could|for example|e\.g\.)",
    r"\bin (?:this|that) (?:file|function|class|commit|change|branch|pr|pull request|task|test|case|line|migration|module|method|loop)\b",
    r"^(?:if|suppose|assume|imagine|as an? \w+,? i want)\b",
    r"\b(?:diesmal|vorerst|erstmal|gerade|vielleicht|im moment|in diese[rmn] \w+)\b",
    r"这次|这一次|暂时|先别|先不|也许|可能|这个(?:文件|函数|提交|分支|任务)|再说|如果",
    r"今回|とりあえず|一旦|たぶん|この(?:ファイル|関数|コミット)|と思う",
    r"이번(?:에는|만)|일단|잠깐|아마|이 (?:파일|함수|커밋)",
)

_WHO = r"(?:^|[,;:] |\b(?:and|but|because|since|hi|hello|hey)[, ]+)"
ROLE = any_of(
    _but_not(
        r"\b(?:40\d|error|fail\w*|crash\w*|denied|fixtures?|mocks?|logged in|still get|rejected|in this)\b"
        r"|\b(?:button|menu|hidden|page|permission)\b"
        r"|\b(?:terrible|bad|lousy|awful|horrible|stupid|useless|hopeless|worst)\b",  # a negative judgement is no role
        rf"{_WHO}(?:i am|i['’]m) (?:(?:currently )?an?|our|one of the) "
        rf"(?:(?!(?:with|in|of|for|on|the|role|that|who|and)\b)[\w/+#.-]+ ){{0,4}}(?:{_ROLES})s?"
        r"(?=[,.!;)]|$| (?:and|at|by|with|for|who|from|but|mostly|working|in an?|on an?|of)\b| in \w+[.!,]*$)",
        r"\b(?:i am|i['’]m) (?:(?:quite|pretty|very|completely|still) )?(?:new to|fluent in|not familiar with)"
        r" (?!th(?:is|at|e|ese|ose)\b|it\b|your\b)",
        r"\b(?:i am|i['’]m) (?:responsible for|in charge of) (?:the|our) (?:[\w-]+ ){0,2}"
        r"(?:team|platform|infrastructure|product|department|backend|frontend|data|security)\b",
        r"\bi work (?:as|for|at) an? |\bi work in (?:the |an? )?(?:[\w-]+ ){0,2}"
        r"(?:team|department|research|finance|security|support|marketing|sales|operations)\b",
        r"\bi(?:['’]ve| have) (?:been )?(?:writing|using|programming|coding|doing|maintaining|working (?:in|with|as)|written|used)\b"
        r".{0,40}\b(?:for|since) (?:[\w-]+ ){0,3}(?:years?|decades?|\d{4})\b",
        r"\bi(?:['’]ve| have) never (?:used|written|worked with) (?!th(?:is|at|e|ese|ose)\b|it\b|your\b|an?\b)[\w.#+ -]{2,30}(?=[.!,]|$)",
        r"\bmy name is (?!not|shown|missing|in|wrong|empty|null|undefined|still)[\w-]+(?: [\w-]+)?(?=[.!,]|$| and\b)",
        rf"{_WHO}(?:i am|i['’]m) the (?:[\w-]+ ){{0,3}}(?:{_ROLES}) (?:of|for|on|at|in) (?:the |our )?(?:[\w-]+ ){{0,3}}"
        r"(?:team|group|company|department|project|product|platform|lab|startup|squad)\b",
        rf"{_WHO}i (?:maintain|lead|run|own|manage|teach|study) (?:the |our |an? )?(?:[\w-]+ ){{0,3}}(?:service|team|group|platform|library"
        r"|department|product|company|startup|courses?|biology|physics|medicine|law|mathematics|economics|statistics)"
        r"(?=[.!,]|$| (?:at|and|in)\b)",
        r"\bi (?:come|came) from an? .{1,40}\bbackground\b",
        r"\bis my (?:main|first|native|primary|strongest|favou?rite|mother) (?:language|tongue)\b",
        r"\bi (?:don['’]?t|do not|barely|hardly) (?:know|speak|read|understand) (?-i:[A-Z])[\w+#.-]*"
        r"(?: (?:at all|well|much|yet|very well))?[.!,]*$",
        r"\bi (?:mostly|mainly|usually|only) (?:write|code in|program in|work (?:in|with|on)) (?-i:[A-Z])[\w+#]*",
        r"\bi(?:['’]m| am) (?:colou?r-?blind|deaf|dyslexic|left-handed)\b",
        r"\bi(?:['’]m| am) (?:preparing|studying|training) for (?:an? |my |the )(?:[\w-]+ ){0,3}"
        r"(?:interview|exams?|certification|thesis|degree)\b",
        r"\bi(?:['’]m| am) (?:(?:learning|teaching myself) (?-i:[A-Z])\w+|self-taught\b)",
        rf"\bmy (?:native|first|main|primary) language is\b|\bmy (?:job|background) is (?:an? |the |in )?(?:[\w-]+ ){{0,3}}(?:{_ROLES})\b",
    ),
    _but_not(
        r"\b(?:angemeldet|eingeloggt|fehler)\b",
        rf"\bich bin (?!als )(?:[\w-]+ ){{0,4}}(?:{_ROLES_DE})\b",
        r"\bich bin (?-i:(?!Admin\b)[A-ZÄÖÜ])\w+(?:in|er|or|ist|ent|arzt|mann|frau)\b(?=[.,!]|$| (?:und|bei|an|im|mit)\b)",
        r"\bmeine (?:muttersprache|hauptsprache) ist\b",
        r"\bich (?:bin neu (?:in|im)|arbeite als|arbeite bei eine[rm]|programmiere seit|heiße)\b",
        r"\bich spreche (?:kein )?(?:nur )?(?:deutsch|englisch|französisch)\b",
        r"\bich kenne mich (?:mit|in) .{1,60} (?:nicht|kaum|gut) aus\b",
    ),
    _but_not(
        "报错|错误|你来|账号|登录",
        rf"我是(?!在|用|从|按|想|说)(?:一名|一个|一位|个|做)?[^，。,]{{0,12}}(?:{_ROLES_ZH})(?=[，,。.！!]|$)",
        r"我(?:主要)?(?:负责|从事)[^，。]{2,16}(?:团队|部门|平台|产品|业务|运维|开发|工作)(?=[，,。.！!]|$)",
        r"我是(?:做|搞|教|学)[^，。,]{1,12}的(?=[，,。.！!]|$)|我的(?:主要|第一|常用|工作)语言是|我的母语是",
        r"我对[^，。,这那它]{1,12}(?:不太?熟|不太?了解|很熟|比较熟|一窍不通)",
        r"我(?:不熟悉|不太懂|刚学|刚开始学|刚接触|擅长)(?!这|那|它|为什么|怎么)",
        r"我(?:写|用|做)(?!的).{1,10}(?:\d+|[一二三四五六七八九十几多]+)年多?(?:了|经验|(?=[，,。.！!]|$))",
    ),
    _but_not(
        "この|その|こんな|エラー|として実行|ログイン",
        rf"(?:私|僕|俺|わたし)は.{{0,20}}(?:{_ROLES_JA})(?:です|で、|として|をして|だ|。|$)",
        r"^(?:私は)?[^。、]{2,16}(?:は|が)(?:初心者|苦手|得意|専門)です",
        r"を担当して(?:います|いる)|は(?:まだ)?初めて(?:です|なので)|(?:に|には)詳しくありません",
    ),
    _but_not(
        "오류|에러|이런|로그인",
        rf"(?:저는|나는|전|제가) .{{0,20}}(?:{_ROLES_KO})(?:입니다|이에요|예요|이고|이며|로 일|이라|\.|$)",
        r"(?:은|는) 처음(?:이에요|입니다|이라)",
    ),
)

_STANDING = r"(?:from now on|going forward|in (?:the )?future|as a rule)"
_WORKS = r"(?:commit|push|answer|reply|write|change|add|create|edit|finish|rename|delete|modify|touch|refactor|update)"
_NO_THING = r"no (?!more\b|errors?\b|bugs?\b|warnings?\b|problems?\b|issues?\b)[\w-]+(?: [\w-]+)?(?: (?:in|at|for|on)\b.*|,? please)?[.!]*$"
_YOUR = r"your (?:answers|replies|responses|explanations|summaries|commit messages)"
# How the user wants things done from now on, including corrections that say they are permanent.
PREFERENCE = any_of(
    _but_not(
        POINTS,
        rf"^(?:please )?(?:every time|whenever|each time) you {_WORKS}\b[^,]{{0,80}}, (?:please|always|never|also|first)\b",
    ),
    _but_not(
        f"{POINTS}|{THE}",
        rf"{LEAD}(?:always|never) (?:please )?{_OWN}",
        rf"{LEAD}(?:never ever|{NOT} ever) {_DO}|{LEAD}(?:please )(?:always|never) {_DO}",
        rf"{LEAD}never {_DO}.*\b(?:without asking|unless i|ask me)\b",
        rf"{LEAD}(?:from now on|going forward),? (?:please )?(?:(?:always|never|only|{NOT}|you (?:should|must)|i want you to|we) )*{_DO}",
        rf"{LEAD}{_STANDING},? (?:please|always|never|{NOT}) (?:(?:always|never|only|{NOT}) )?{_DO}",
        rf"{LEAD}{_STANDING},? (?:please )?{_NO_THING}",
        rf"{LEAD}{_DO} .{{1,120}}[ ,](?:always|{_STANDING})[.!]*$",
        rf"{LEAD}keep \w+ing .{{1,120}}[ ,](?:always|every time|{_STANDING})[.!]*$",
        rf"{LEAD}(?:keep|make|write) {_YOUR}\b",
        rf"{LEAD}i (?:want|like|would like) {_YOUR} (?:short|brief|concise|in|to be|with|without)\b",
        rf"{LEAD}i want you to (?:always|never)\b",
        rf"{LEAD}i (?:really |strongly |generally |usually )?prefer (?!th(?:e|is|at)\b|it\b|your\b|my\b|an?\b|one\b|options?\b|versions?\b"
        r"|first|second|not\b|plan\b|[a-z0-9]\b)",
        rf"{LEAD}i (?:really )?(?:like|love|hate|dislike|{NOT} like) (?:it )?when you\b",
        rf"{LEAD}(?:i['’]d|i would) rather you (?:always|never)\b",
        rf"{LEAD}you (?:should|must) (?:always|never) {_DO}",
        rf"{LEAD}we (?:always|never) {_DO}.* in (?:this|our) (?:team|project|repo|repository|company|codebase)\b",
        r"^(?:no[,.] |please )*stop (?:adding|writing|using|asking|putting|suggesting|making|creating|saying|generating)"
        r" (?!the\b|an?\b|my\b|it\b)(?!.*\b(?:when|if|after|and)\b)",
        r"^(?:no[,.] |please )*stop (?:apologi[sz]ing|thanking me|repeating yourself|explaining everything)\b",
        rf"{LEAD}{NOT} (?:use|add|write|suggest|apologi[sz]e|mock|mention|commit|push) (?!the\b|my\b|it\b|an?\b)[\w -]{{1,40}}"
        r" (?:again|any ?more)[.!]*$",
    ),
    _but_not(
        f"{POINTS}|{THE}",
        rf"^(?:(?:nein|ja|ok|und|aber|gut)[,.! ]+)*bitte (?:{_DO_DE} (?:[\w-]+ ){{0,3}})?(?:immer|nie|niemals|ab jetzt|ab sofort|künftig"
        r"|in zukunft)\b(?! (?:noch|gleich|wieder))",
        rf"{_LEAD_DE}(?:ab jetzt|ab sofort|von nun an|künftig|in zukunft),? "
        rf"(?:bitte |immer |nie |niemals |nur |keine? (?!fehler)|{_DO_DE})",
        rf"{_LEAD_DE}(?:immer|nie|niemals|nie wieder) (?!noch|wenn|mehr)(?:[\w-]+ ){{1,8}}{_TO_DO_DE}[.!]*$",
        rf"{_LEAD_DE}{_DO_DE} .{{1,80}}\b(?:ab jetzt|ab sofort|künftig|in zukunft)\b",
        rf"{_LEAD_DE}ich bevorzuge (?!d(?:ie|en|as)\b)|{_LEAD_DE}ich mag es(?: nicht)?,? wenn du\b",
        rf"{_LEAD_DE}ich (?:will|möchte), dass du (?:immer|nie|niemals)\b",
    ),
    _but_not(
        rf"{POINTS}|{_TROUBLE_ZH}",
        r"(?:^|[，,、\s])(?:请)?(?:你)?(?:以后(?![缀端台续面])|今后|从现在(?:开始|起)|从今以后)[，,]?(?:你|我们)?.{0,20}"
        r"(?:请|一律|不要|别(?!的|人)|必须|务必|都(?:用(?!户)|不))",
        r"(?:^|[，,、\s])(?:请)?(?:以后(?![缀端台续面])|今后|从现在(?:开始|起))[，,]?(?:都|只|就)?(?:用(?!户)|回答|写)",
        r"(?:^|[，,])(?:请)(?:你)?(?:总是|始终|一律|永远不要)(?:用(?!户)|使用|写|以|回答|提交)|^(?:永远|绝对)不要|(?:不要|别)再(?:用|使用|写|添加|提交|道歉)",
        r"^我(?:更|比较)?(?:喜欢|偏好|倾向于?)(?![，,。！!就]|上面|刚才|你刚)|^我(?:不喜欢|喜欢|希望)你(?:以后|总是|每次)",
    ),
    _but_not(
        rf"{POINTS}|{_TROUBLE_JA}",
        r"(?:今後は?|これからは|次回?からは?)、?.{2,80}(?:ください|下さい|お願い|ほしい|欲しい|ようにして|しないで|ないこと|ましょう)",
        r"(?:いつも|常に|毎回).{0,30}(?:答え|回答|返事|説明|コミット|日本語|英語).{0,30}(?:て|で)(?:ください|ほしい|下さい)|二度と.{1,30}(?:ないで|ないこと)",
        r"^(?:私は)?.{1,30}より.{1,30}(?:の方|のほう)が好き",
    ),
    _but_not(
        rf"{POINTS}|{_TROUBLE_KO}",
        r"(?:앞으로는|이제부터는?|다음부터는|지금부터는|앞으로 (?:항상|절대|모든))[ ,].{2,80}"
        r"(?:줘|주세요|하세요|마세요|말아|마라|바랍니다)",
        r"(?:항상|언제나|절대(?:로)?) .{1,40}(?:대답|답변|작성|설명|커밋|푸시)\S*(?: \S+)? ?(?:줘|주세요|하세요|마세요|말아)",
        r"다시는 .{1,30}(?:마세요|말아|마라)|^(?:저는|나는) .{1,30}(?:을|를|게|걸|것을) (?:더 )?선호",
    ),
)

# A request to repeat what was just done, with nothing after it that limits it in time or subject.
_END = r"(?:,? (?:please|from now on|in future|always|every time))*[.!]*$"
CONFIRMATION = any_of(
    rf"\bkeep (?:doing (?:it|that|this)(?: (?:that|this) way| like (?:that|this))?|it (?:that|this) way (?:from now on|always)){_END}",
    r"\b(?:do|handle|write) (?:it|that|this|them) (?:exactly )?(?:like (?:that|this)|this way|that way)"
    r",? (?:every time|from now on|in future|always)[.!]*$",
    r"\balways do (?:it|that) (?:exactly )?(?:like (?:that|this)|this way|that way)[.!]*$",
    r"\bexactly how i (?:like|want) it[.!]*$|\bmore of that,? please[.!]*$",
    r"\b(?:genau so weiter|weiter so|mach das (?:immer|künftig|ab jetzt) so|so machen wir das (?:ab jetzt|künftig|immer))[.!]*$",
    r"以后(?:都|也|就)(?:这样|这么)(?:做|写|来|办)?(?:吧|就好)?[。.！!]*$|继续保持(?:这样)?[。.！!]*$",
    r"(?:今後|これから)も(?:その|この|同じ).{0,12}(?:お願いします|ください)[。.！!]*$",
    r"앞으로도 (?:이렇게|그렇게|계속) ?(?:해 ?)?(?:주세요|줘)[.!]*$",
)

# An answer that tells what was done: the subject of an approval.
DID = any_of(
    r"^(?:i|i['’]ve|i have) (?!will\b|would\b|am\b|can\b|could\b|think\b|see\b|do\b|don|did not\b|found\b"
    r"|noted\b|remember|need\b|understand\b)\w+",
    r"^ich habe\b(?! (?:nicht|kein))",
    r"^我?(?:已经?|把|先|用|写|将)",
    r"ました[。.]?$",
    r"(?:했|었|았)(?:습니다|어요)[.]?$",
)

# A plan is a statement about the future. Reports about the past, and what a program does with dates, do not count.
_TOLD = (
    r"\b(?:was|were|had|did|has been|failed|fails?|broken?|crash\w*|ran|took|went|released|shipped|launched|migrated|yesterday"
    r"|since|ago|last|caused|returns?|shows?|prints?|wrong|should|tests?|fixtures?|mock\w*|banner|page|timer|function|button|field"
    r"|column|parser|error|bug"
    r"|if|although|cron|row|sort|sample|calendar|seed|string|lock|tick)\b"
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?"
    r"|dec(?:ember)?)"
)
_PLAN = (
    r"(?:freezes?|release(?: date)?|deadline|launch(?: date)?|feature cut|demo|audit|migration|cut-?over|milestone|hand-?over|conference"
    r"|end of life|contract|submission|go-live|review)"
)
EVENT = any_of(
    _but_not(
        _TOLD,
        r"\bwe (?:(?:will|['’]ll|plan to|have to|need to|must|are going to|want to) )?"
        r"(?:freeze|release|ship|launch|go live|migrate|cut over|hand over)\b",
        r"\bwe(?: are|['’]re) (?:freezing|releasing|shipping|launching|going live|migrating)\b",
        rf"\b(?:the|our|my|a) (?:[\w-]+ ){{0,3}}{_PLAN}(?: (?:for|of|to|with)(?: [\w-]+){{1,5}}?)? (?:is|are) "
        rf"(?:due |planned |scheduled |set |moved )?(?:on|by|for|next|in|tomorrow|this|at|from|until|\d{{4}}-|{_MONTH}|the \d)",
        rf"\b(?:the|our|my) (?:[\w-]+ ){{0,3}}{_PLAN} (?:has |is |was )?(?:moved|moves|slips|slipped|postponed|shifted) to\b",
        r"\bwe (?:have to|need to|must|plan to|want to|will|are going to) (?:\w+ ){1,8}"
        r"(?:by|before|until) (?:the end of|next|\d{4}-|the \d)",
        r"\b(?:customer|client|partner|team|service|product|site|app|version)s? (?:\S+ )?(?:goes|go|going) live\b",
        r"\b(?:is|are) being (?:shut down|retired|migrated|replaced|moved|switched off|decommissioned|phased out|turned off|sunset)\b",
        rf"\b(?:the|our|my) (?:[\w-]+ ){{0,3}}{_PLAN} "
        r"(?:starts?|begins?|ends?|expires?|happens?|(?:will|must|has to) (?:be|start|end|begin|happen|ship)|goes live|runs out)\b",
        rf"\b{_PLAN}: ",
        r"\b(?:is|are) due (?:on|by|next|in|tomorrow|this|end)\b|\b(?:must|has to|have to|needs? to|will) (?:be (?:released|shipped"
        r"|finished|live|ready|done)|ship|go live|launch)\b",
        r"(?:\bi am|\bi['’]m|\bwill be|\bis|\bare) (?:on (?:vacation|holiday|leave|parental leave)|out of office)\b",
        r"\b(?:leaves|joins) (?:the team|the company|us)\b",
    ),
    _but_not(
        r"\b(?:crash\w*|fail\w*|errors?|bugs?|this (?:morning|afternoon))\b",
        r"\bwe(?: are|['’]re) (?:(?:re)?(?:writing|building|designing)|moving|migrating|replacing"
        r"|focusing|hiring|dropping|switching|porting)\b.*\bbecause\b",
    ),
    _but_not(
        r"\b(?:fehlgeschlagen|falsch|tests?|war|wurden?|hat|hatte|schlug|seit|fehler|feld|spalte|doppelt|kalender|eingetragen|angezeigt)\b",
        r"\b(?:abgabe|frist|veröffentlichung|stichtag|umstellung|abnahme|release|prüfung|freeze|vertrag)\w* "
        r"(?:für (?:[\w-]+ ){1,3})?(?:ist|sind|beginnt|endet|läuft|muss|startet|findet)\b",
        r"\bist (?:die |der |das )?[\w-]*(?:freeze|abgabe|abnahme|release|umstellung|stichtag|demo|prüfung|audit)\b(?!-)",
        r"\bwir (?:veröffentlichen|frieren|releasen|gehen live|liefern .* aus)\b|\bim urlaub\b",
    ),
    _but_not(
        "失败|[布线]的|[布线]后|以来|上周|昨天|报错|泄漏|错误|崩|了[，,。.！!]|了$|字段|函数|返回|显示|测试|按钮|页面|数据",
        "截止|上线|发布|发版|冻结|封版|休假|请假|到期|评审|审计|演示|交付|迁移|离职|入职|重点是",
    ),
    _but_not(
        "ました|でした|失敗|壊|エラー|バグ|表示|返|テスト|昨日|先週|ボタン|仕様|画面|押|した後|する前",
        "締め切り|締切|リリース|公開|凍結|フリーズ|納期|休暇|監査|デモ|移行",
    ),
    _but_not("했|났|었|았|실패|오류|때문에|버그|지난|테스트|버튼|화면|보여", "마감|출시|배포|릴리스|동결|프리즈|휴가|데모"),
)
# A named day. Relative dates are matched elsewhere, where today's date is known.
DAY = any_of(
    r"\b\d{4}-\d\d-\d\d\b",
    r"\b(?:on|by|until|till|before|from|after|starting) (?:the )?\d{1,2}(?:st|nd|rd|th)?(?=[.,!;]|$| of\b| and\b)",
    r"\b(?:on|by|until|till|before|from|after|the) (?:the )?end of (?:the |this |next )?(?:week|month|quarter|year|sprint|q[1-4])\b",
    r"\bnext (?:quarter|sprint|release|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
    r"\b(?:on|by|until|till|before|from|after|starting) (?:mon|tues|wednes|thurs|fri|satur|sun)day\b",
    r"\b(?:on|by|in|until|till|before|from|after|starting) (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b",
    rf"\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?\b|\b\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}\b|\bend of {_MONTH}\b",
    r"\b(?:this|next) (?:quarter|sprint|month|week|year|spring|summer|autumn|fall|winter)\b",
    r"\b(?:on|by|until|before) the \d{1,2}(?:st|nd|rd|th)\b",
    r"\b\d{1,2}\. ?(?:januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember)\b",
    r"\b(?:nächste[nm]|kommende[nm]) (?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)\b",
    r"\b(?:am|bis|ab|vor|zum) (?:zum |dem )?(?:\d{1,2}\.|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch"
    r"|ende (?:der woche|des (?:monats|jahres|quartals)))",
    r"\b(?:nächste|kommende)[nrs]? (?:woche|monat|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|jahr|quartal)\b",
    r"\d{1,2}\s?[月월]\s?\d{1,2}\s?[日号일]|(?:周|星期)[一二三四五六日天]|[月火水木金土日]曜|[월화수목금토일]요일",
    r"(?:本|这个?|下个?)(?:季度|月|周)|月末|月底|年底|年末|월말|연말",
)

_SYSTEM = (
    r"(?:jira|linear|grafana|kibana|datadog|sentry|confluence|notion|slack|microsoft teams|trello|asana|figma|miro|pagerduty|bugzilla"
    r"|youtrack|github (?:projects|issues)|google docs|sharepoint|飞书|钉钉|语雀)(?!\.\w)"
)
_PLACE = rf"(?:{_SYSTEM}|https?://|(?:the|our) (?:[\w-]+ )?(?:wiki|spreadsheet|shared drive|runbook)(?=[.,!]|$)|channel #|board called)"
_THINGS = (
    r"(?:dashboards?|docs?|documentation|specs?|specifications?|designs?|tickets|bugs|issues|metrics|alerts|runbooks?|roadmap|backlog|wiki"
    r"|board|tracker|staging|status page|style guide|handbook|monitoring|incidents|tasks|on-call \w+|post-?mortems?)"
)
# A statement about a single event, or a request, is not a standing fact.
_OF_ONE = (
    r"\b(?:wrong|twice|errors?|returns?|[45]\d\d|fail\w*|replace|fix|look|parse|redirect\w*|make|should|move|delete|old|duplicat\w*|once"
    r"|folder|table|array|column|class|module|was|were|broken|down|not|but|empty|missing|implement|fetch|download|summari[sz]e|open)\b"
    r"|\b(?:the|this|that) (?:bug|error|issue|crash|exception|ticket|task|message|event|request|failure) is\b"
    r"|, (?!in\b|im\b|under\b|unter\b|proje[ck]t\b|board\b|space\b|channel\b|kanal\b|on\b|the\b)"
    r"|https?://\S+,? (?:and|please|read|use|check|see|follow|build|then|but|when)\b"
    r"|\b(?:falsch\w*|ordner|server|angezeigt|doppelt|zweimal|tabelle|spalte|nicht)\b"
)
_OF_ONE_ZH = "帮|一下|定位|错|报|删|改|修|失败|那一|两次|重复|打开|点击|把|总结|下载|没有"
POINTER = any_of(
    _but_not(
        _OF_ONE,
        r"\b(?:is|are) (?:all |always )?(?:tracked|documented|kept|collected|recorded|filed|managed|maintained|found) "
        rf"(?:in|at|on|under)\b.{{0,40}}{_PLACE}",
        rf"\b(?:lands?|goes|go|belongs?|sits?|ends? up|are|arrives?|gets? (?:filed|tracked)) (?:in|into|at|on|to|under) "
        rf"(?:the |our )?(?:[\w-]+ ){{0,3}}{_SYSTEM}(?: (?:project|board|database|space|channel|page|folder)\b[^,]*)?(?:,.*)?[.!]*$",
        rf"\blives? (?:in|at|on|under) (?:[\w-]+ ){{0,3}}{_PLACE}",
        rf"\b(?:channel|board|project|space)\b.{{0,20}}\b{_SYSTEM} is (?:called )?#?\w",
        rf"\b{_SYSTEM} (?:channel|board|project|space)\b.{{0,30}} is (?:called )?#?\w",
        rf"\bthere is an? (?:[\w-]+ ){{0,3}}(?:dashboard|board|page|channel|wiki|handbook|tracker)\b.{{0,30}}(?:{_SYSTEM}|https?://)",
        rf"^(?:(?:the|our|all|my) )?(?:[\w-]+ ){{0,3}}{_THINGS} (?:is|are|:) ?(?:at |in |on |under )(?:the |our )?(?:[\w-]+ )?{_PLACE}",
        rf"^(?:(?:the|our|all|my) )?(?:[\w-]+ ){{0,2}}{_THINGS}(?: (?:is|are)|:) https?://",
    ),
    _but_not(
        _OF_ONE,
        rf"\b(?:steht|stehen|liegt|liegen|landet|landen|kommen|gehören"
        rf"|findest du|finden sich|sind|ist)\b.{{0,30}}\b(?:in|im|auf|unter|bei)\b.{{0,40}}"
        rf"(?:{_SYSTEM}|https?://\S+)(?:-\w+ \w+)?(?:,.*| (?:unter|im|in|auf) .*)?[.!]*$",
        r"\b(?:wird|werden)\b.{0,30}\b(?:in|im|auf|unter|bei)\b"
        rf".{{0,30}}(?:{_SYSTEM}|https?://).{{0,40}}\b(?:gepflegt|verwaltet|dokumentiert|erfasst|gesammelt)\b",
    ),
    _but_not(
        _OF_ONE_ZH,
        rf"(?:在|到|去).{{0,20}}(?:{_SYSTEM}|https?://|看板).{{0,24}}(?:里|上|中|跟踪|记录|登记|管理|查看|看|提)",
        rf"(?:提|报|记|放|填|交)(?:到|在|进).{{0,8}}{_SYSTEM}",
        rf"在.{{0,4}}{_SYSTEM}.{{0,16}}(?:里|上|中)(?:维护|管理|跟踪)?[。.]?$",
        rf"(?:记录|登记|跟踪|存放|放|维护)在.{{0,20}}(?:{_SYSTEM}|https?://|看板|共享文档)",
    ),
    _but_not(
        "エラー|失敗|二回|2回|間違|表示|ない|直して",
        rf"(?:{_SYSTEM}|https?://\S+).{{0,16}}(?:にあります|にある|で管理|に登録し(?:ます|ている)|に記録|にまとめ|で追跡|にまとまって)",
    ),
    _but_not(
        "오류|에러|실패|두 번|잘못|없",
        rf"(?:{_SYSTEM}|https?://\S+|위키).{{0,12}}(?:에 있|에서 관리|에 등록(?:해요|합니다)|에 기록|에 정리|에서 추적|에 올라)",
    ),
)

# A task that mentions a place or a day is not a fact about it.
TASK = any_of(
    rf"{LEAD}(?:fetch|open|download|read|summari[sz]e|look at|check|curl|visit|copy|add|create|update|write|fix|move|rename|post|file)\b",
    rf"{LEAD}(?:make|put|can you|could you|let['’]?s|run|deploy|release|ship|remind|set|change|use|show|print|parse|replace|bump)\b",
    r"^(?:bitte )?(?:öffne|lies|lade|schreib|prüfe|erstelle|füge|ändere|setze)\b",
    r"^(?:请)?(?:帮我|打开|下载|读一?下|总结|看一?下|创建|添加|修改|写|把)",
    r"(?:を開いて|を読んで|を作って|を追加して|を直して|を要約して)",
    r"(?:열어|읽어|만들어|추가해|고쳐|요약해) ?(?:줘|주세요)",
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
