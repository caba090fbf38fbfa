"""The words by which a sentence of a person shows that it is worth keeping: English, German, Chinese, Japanese, Korean.

One alternative or group of them a line. Time goes by the length of a sentence, which is bounded.
"""

from __future__ import annotations

import re


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_LEAD = r"^(?:(?:no|yes|ok(?:ay)?|and|but|also|so|hey|well|please|hmm)[,.! ]+)*"
_NOT = r"(?:don['’]?t|do not)"
_ROLES = (
    "engineer|developer|designer|scientist|analyst|manager|lead|architect|student|teacher|researcher|intern|founder|cto|ceo|sre|physicist"
    "|biologist|chemist|mathematician|economist|lawyer|doctor|accountant|writer|editor|maintainer|admin(?:istrator)?|consultant|programmer"
    "|beginner|freelancer|contractor|nurse|journalist|statistician|tester|translator|professor"
)
_ROLES_DE = (
    r"\w*(?:entwickler|ingenieur|designer|leiter|wissenschaftler|physiker|architekt|administrator|berater)(?:in)?"
    r"|(?:student|anfänger|lehrer)(?:in)?"
)
_ROLES_ZH = "工程师|开发者?|程序员|设计师|经理|学生|老师|分析师|研究员|科学家|架构师|产品|运维|测试|新手|负责人|实习生|律师|医生"
_ROLES_JA = "エンジニア|開発者|プログラマ|デザイナー|研究者|学生|マネージャー|リーダー|アナリスト|教師|初心者|担当|弁護士|医師"
_ROLES_KO = "개발자|엔지니어|디자이너|연구원|학생|매니저|분석가|담당|초보|신입|팀장|교사"

QUESTION = _any(
    r"[?？]\s*$",
    r"(?:吗|嗎|呢|か|까요|나요)[。.]?\s*$",
    r"^(?:what|why|how|when|where|who|which|is|are|do|does|did|can|could|should|would)\b",
)

# What holds for this once only, or is not sure.
ONCE = _any(
    r"\b(?:for now|for the moment|this (?:time|once)|just (?:this )?once|today only|right now|at the moment|temporar\w+)\b",
    r"\b(?:maybe|perhaps|i think)\b",
    r"\bin (?:this|that) (?:file|function|class|commit|change|branch|pr|pull request|task|test|case|line)\b",
    r"\b(?:diesmal|vorerst|erstmal|gerade|vielleicht|in diese[rmn] \w+)\b",
    r"这次|这一次|暂时|先别|先不|也许|可能|这个(?:文件|函数|提交|分支|任务)",
    r"今回|とりあえず|一旦|たぶん|この(?:ファイル|関数|コミット)",
    r"이번(?:에는|만)|일단|잠깐|아마|이 (?:파일|함수|커밋)",
)

ROLE = _any(
    rf"\b(?:i am|i['’]m) (?:an?|the|our|one of the|currently an?) (?:[\w/+#.-]+ ){{0,4}}(?:{_ROLES})s?\b",
    r"\b(?:i am|i['’]m) (?:(?:quite|pretty|very|completely|still) )?(?:new to|fluent in|not familiar with|responsible for|in charge of)\b",
    r"\bi work (?:as|in|for|on the)\b",
    r"\bi(?:['’]ve| have) (?:been )?(?:writing|using|working|programming|coding|doing|maintaining|never used)\b",
    r"\bmy (?:name is|native language|first language|job is|role is|background is)\b",
    rf"\bich bin (?:[\w-]+ ){{0,4}}(?:{_ROLES_DE})\b",
    r"\bich (?:bin neu in|arbeite (?:als|bei|im)|programmiere seit|spreche|heiße)\b",
    r"\bich kenne mich (?:mit|in) .{1,60} (?:nicht|kaum|gut) aus\b",
    rf"我是(?:一名|一个|一位|个|做)?.{{0,12}}(?:{_ROLES_ZH})",
    r"我(?:主要)?(?:负责|从事|不熟悉|不太懂|刚学|刚开始学|擅长|熟悉)",
    r"我(?:写|用|做).{1,10}(?:\d+|[一二三四五六七八九十几多]+)年",
    rf"(?:私|僕|俺|わたし)は.{{0,20}}(?:{_ROLES_JA})",
    r"を担当して(?:います|いる)|は(?:まだ)?初めて(?:です|なので)|(?:に|には)詳しくありません",
    rf"(?:저는|나는|전|제가) .{{0,20}}(?:{_ROLES_KO})",
    r"(?:은|는) 처음(?:이에요|입니다|이라)",
)

# How the person wants things done from here on; corrections too, where they say that they hold.
PREFERENCE = _any(
    rf"{_LEAD}(?:always|never|from now on|in (?:the )?future|going forward|as a rule|stop \w+ing|no more \w+|{_NOT} ever)\b",
    rf"{_LEAD}i (?:really |strongly |generally )?(?:prefer|dislike|{_NOT} want|(?:like|hate|{_NOT} like) (?:it )?when)\b",
    rf"{_LEAD}(?:i['’]d|i would) rather\b",
    rf"{_LEAD}(?:we (?:always|never) (?!had|saw|got|knew|have seen)|you should (?:always|never)|you (?:always|never) need to)\b",
    r"\b(?:from now on|going forward|in future|every time you|whenever you|each time you)\b",
    rf"{_LEAD}(?:{_NOT}|stop)\b.*\b(?:again|any ?more|ever)\b",
    r"^(?:bitte |nein[,.] |und |aber )*(?:immer|nie|niemals|ab jetzt|in zukunft|künftig|hör auf)\b",
    r"^(?:bitte |nein[,.] |und |aber )*ich (?:bevorzuge|hätte lieber|mag es(?: nicht)?,? wenn)\b",
    r"\b(?:ab jetzt|ab sofort|in zukunft|künftig|von nun an|nie wieder|nicht mehr (?:so )?machen|jedes mal, wenn du)\b",
    r"以后|今后|从现在(?:开始|起)|每次(?:都|你|提交|回答|改)|永远不要|不要再|别再|一律",
    r"我(?:更|比较)?(?:喜欢你?|偏好|倾向于?|不喜欢|希望你(?:以后|总是|每次))",
    r"今後(?:は|、)|これから(?:は|、)|次から|次回から|毎回|二度と|もう.{1,20}しないで|(?:の方|ほう)が(?:好き|いい)",
    r"(?:いつも|必ず|常に|絶対に).{1,40}(?:て|で)(?:ください|ほしい|下さい)",
    r"앞으로(?:는| )|이제부터|다음부터|다시는|매번|더 이상 .{1,30}(?:마|말)",
    r"(?:항상|언제나|절대(?:로)?) .{1,40}(?:줘|주세요|하세요|마세요|말아|마라)",
    r"(?:을|를|게|걸|것을) (?:더 )?(?:선호|좋아)",
)

# What was just done is to be done so again.
CONFIRMATION = _any(
    r"\bkeep (?:doing (?:it|that|this)|it (?:that|this) way)\b",
    r"\b(?:do|handle|write) (?:it|that|this|them) (?:exactly )?(?:like (?:that|this)|this way|that way)"
    r" (?:every time|from now on|in future|again|always|next time)\b",
    r"\bexactly how i (?:like|want) it\b|\bmore of that,? please\b",
    r"\b(?:genau so weiter|weiter so|mach das (?:immer|künftig|ab jetzt) so|so machen wir das (?:ab jetzt|künftig|immer))\b",
    r"以后(?:都|也|就)?(?:这样|这么)|就按这(?:样|个方式)|继续保持|保持这样",
    r"(?:今後|これから)も(?:その|この|同じ)|その調子で",
    r"앞으로도 (?:이렇게|그렇게|계속)|이대로 계속",
)

EVENT = _any(
    r"\b(?:freez\w+|releas\w+|deadline|due|launch\w*|ship(?:s|ping)?|feature cut|demo|audit\w*|migrat\w+|go(?:es|ing)? live|cut-?over)\b",
    r"\b(?:vacation|on leave|out of office|parental leave|contract|end of life|sunset|conference|holiday|leaves the (?:team|company))\b",
    r"\b(?:code complete|milestone|hand-?over)\b",
    r"\b(?:abgabe\w*|frist|veröffentlich\w+|urlaub|vertrag|stichtag|umstellung|abnahme|prüfung|einfrieren|eingefroren)\b",
    "截止|上线|发布|发版|冻结|封版|休假|请假|到期|评审|审计|演示|交付|迁移",
    "締め切り|締切|リリース|公開|凍結|納期|休暇|監査|デモ|移行",
    "마감|출시|배포|릴리스|동결|휴가|데모|감사|이전",
)
# A day that is named; relative ones are found by who knows what they mean.
DAY = _any(
    r"\b\d{4}-\d\d-\d\d\b",
    r"\b(?:on|by|until|till|before|from|after|starting) (?:the )?(?:\d{1,2}(?:st|nd|rd|th)?|next|end of)\b",
    r"\b(?:on|by|until|till|before|from|after|starting) (?:mon|tues|wednes|thurs|fri|satur|sun)day\b",
    r"\b(?:on|by|in|until|till|before|from|after|starting) (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b",
    r"\b(?:am|bis|ab|vor|zum|seit) (?:zum |dem )?(?:\d{1,2}\.|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|ende)",
    r"\b(?:nächste|kommende)[nrs]? (?:woche|monat|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|jahr|quartal)\b",
    r"\d{1,2}\s?[月월]\s?\d{1,2}\s?[日号일]|(?:周|星期)[一二三四五六日天]|[月火水木金土日]曜|[월화수목금토일]요일",
    r"月末|月底|年底|年末|월말|연말",
)

_SYSTEM = (
    "jira|linear|grafana|kibana|datadog|sentry|confluence|notion|slack|teams|trello|asana|figma|miro|pagerduty|github projects|wiki"
    "|bugzilla|youtrack|dashboard|board|channel|tracker|runbook|spreadsheet|shared drive|看板|频道|群|文档|飞书|钉钉|语雀"
    "|ダッシュボード|チャンネル|トラッカー|스프레드시트|채널|대시보드|위키"
)
_PLACE = rf"(?:{_SYSTEM}|https?://)"
POINTER = _any(
    r"\b(?:is|are|live[sd]?|lies?|tracked|documented|kept|found|collected|logged|reported|go(?:es)?|posted|filed) (?:\w+ )?"
    rf"(?:in|at|on|under|to)\b.{{0,60}}{_PLACE}",
    rf"\b(?:{_SYSTEM}|docs?|documentation|specs?|designs?|tickets?|bugs?|metrics|logs|alerts|runbooks?)\b"
    r".{0,40}(?:\bis\b|\bare\b|:) (?:at |in |on |under )?https?://",
    r"\b(?:steht|stehen|liegt|liegen|findest du|finden sich|sind|werden|kommen|ist)\b.{0,30}"
    rf"\b(?:in|im|auf|unter|bei|beim|ins)\b.{{0,40}}(?:{_SYSTEM}|kanal|https?://)",
    rf"(?:在|到|去).{{0,20}}{_PLACE}.{{0,12}}(?:里|上|中|跟踪|记录|登记|管理|查看|看|提)",
    rf"(?:记录|登记|跟踪|存放|放|维护)在.{{0,20}}{_PLACE}",
    rf"(?:{_SYSTEM}|https?://\S+).{{0,16}}(?:にあります|にある|で管理|に記録|にまとめ|を見て|で追跡|にまとまって)",
    rf"(?:{_SYSTEM}|https?://\S+).{{0,12}}(?:에 있|에서 관리|에 기록|에 정리|에서 추적|에 올라)",
)

# A task that names a place or a day is no fact about it.
TASK = _any(
    rf"{_LEAD}(?:fetch|open|download|read|summari[sz]e|look at|check|curl|visit|copy|add|create|update|write|fix|move|rename|post|file)\b",
    rf"{_LEAD}(?:make|put|can you|could you|let['’]?s|run|deploy|release|ship|remind)\b",
    r"^(?:bitte )?(?:öffne|lies|lade|schreib|prüfe|erstelle|füge)\b",
    r"^(?:请)?(?:帮我|打开|下载|读一?下|总结|看一?下|创建|添加|修改|写)",
    r"(?:を開いて|を読んで|を作って|を追加して|を直して|を要約して)",
    r"(?:열어|읽어|만들어|추가해|고쳐|요약해) ?(?:줘|주세요)",
)
