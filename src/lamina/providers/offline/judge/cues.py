"""Groups of words that mean the same in seven languages: how long a sentence holds, whom it is about, and whether it is meant.

A group is a feature of the learned judge, so a cue decides nothing by itself. The vetoes do: a sentence with one of them is never kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping


def any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


def _words(words: str, others: str = "") -> re.Pattern[str]:
    """Match one of the words as a whole, or any of the others (in scripts without spaces) anywhere."""
    return any_of(rf"\b(?:{words})\b", *others.split("|")) if others else any_of(rf"\b(?:{words})\b")


_MONTHS = (
    "jan(?:uary?|vier)?|feb(?:ruary?)?|février|febrero|enero|mar(?:ch|s|zo)?|märz|apr(?:il)?|avril|abril|mai|mayo|jun[ei]?|juin|junio"
    "|jul[iy]?|juillet|julio|aug(?:ust)?|août|agosto|sept?(?:ember|embre|iembre)?|o[ck]t(?:ober|obre|ubre)?|nov(?:ember|embre|iembre)?"
    "|de[cz](?:ember)?|décembre|diciembre"
)
_DAYS = (
    "(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?|lunes|martes|miércoles|jueves"
    "|viernes|lundis?|mardis?|mercredis?|jeudis?|vendredis?"
)

CUES: Mapping[str, re.Pattern[str]] = {
    "from now on": _words(
        "from (?:now|here) on|going forward|in (?:the )?future|as a rule|künftig|in zukunft|ab (?:jetzt|sofort)|von nun an|désormais"
        "|dorénavant|à partir de maintenant|a partir de ahora|de ahora en adelante",
        "以后|今后|从现在|往后|今後|これから|次から|앞으로|이제부터|다음부터",
    ),
    "always": _words(
        "always|never|every(?:time)?|each|whenever|ever|from (?:now|here) on|going forward|in future|in general|generally|as a rule"
        "|by default|any ?more|immer|nie(?:mals)?|jedes|künftig|grundsätzlich|generell|ab (?:jetzt|sofort)|siempre|nunca|cada|jamais"
        "|toujours|chaque|désormais|dorénavant|a partir de ahora|de ahora en adelante",
        "以后|今后|每次|一律|永远|凡是|总是|从不|都要|统一|今後|いつも|毎回|必ず|常に|これから|次から|絶対|앞으로|항상|언제나|매번|절대|무조건"
        "|다음부터|늘|꼭",
    ),
    "now": _words(
        "now|today|tonight|currently|at the moment|this (?:time|once)|just|once|yet|still|so far|already|in a sec|halfway|heute|gerade"
        "|jetzt|noch|diesmal|erstmal|vorerst|hoy|ahora|todavía|esta vez"
        "|de momento|maintenant|aujourd'hui|cette fois|pour l'instant|encore|là",
        "现在|今天|这次|这回|暂时|刚才|刚刚|先|正在|还没|今は|今日|今回|とりあえず|一旦|まだ|さっき|지금|오늘|이번|일단|아직|방금|잠깐",
    ),
    "this": _words(
        "this|that|these|those|here|there|it|them|diese[rsnm]?|hier|este|esta|esto|eso|aquí|ce|cette|ces|ça|ici|celui",
        "这|那|它|上面|下面|この|その|あの|これ|それ|ここ|이거|그거|이 |그 |저 |여기",
    ),
    "not": _words(
        "don'?t|do not|never|no|stop|avoid|without|not|nicht|keine?[nmrs]?|nie|hör auf|nunca|jamás|sin|deja de|ne|pas|jamais|sans|arrête",
        "不要|别|不用|不许|禁止|不得|勿|ないで|しない|やめて|마세요|말아|마라|지 마|하지|안 ",
    ),
    "i": _words(
        "i|i'm|i've|i'd|me|my|mine|ich|mir|mich|mein\\w*|yo|mi|soy|je|j'ai|moi|mon|ma|mes",
        "我(?!们)|私|僕|俺|自分|저는|나는|제가|내가|저|전 |제 |나 ",
    ),
    "we": _words(
        "we|we're|we've|us|our|ours|wir|uns|unser\\w*|nosotros|nuestr\\w+|nous|notre|nos|on",
        "我们|咱们|大家|弊社|うちの|我々|私たち|우리|저희",
    ),
    "you": _words("you|your|you're|du|dir|dein\\w*|sie|ihr|tú|tu|te|usted|vous|votre|toi", "你|您|あなた|君|당신|네가"),
    "day": _words(
        rf"{_MONTHS}|{_DAYS}|deadline|q[1-4]|next (?:week|month|quarter|year)|end of",
        r"[\d一二三四五六七八九十]+ ?(?:月|号|日|월|일|年)|周[一二三四五六日]|下周"
        r"|下个?月|年底|月底|来週|来月|曜|요일|다음 ?(?:주|달)|마감|截止|締",
    ),
    "years": _words("years?|months?|since|decade|jahren?|seit|años?|desde|ans|années?|depuis", "年|개월|년"),
    "says": _words(
        "sa(?:id|ys|ying)|according|wrote|reads?|asked|told|quote|sagte?|meinte|steht|schrieb|dice|dijo|pone|dit|écrit|disait",
        "说|写着|写道|原话|问我|表示|って|と言|と書|いわく|라고|다고|래요|대요",
    ),
    "quote": re.compile('["“”„«»「」『』]'),
    "if": _words(
        "if|imagine|suppose|assume|would|could|might|maybe|perhaps|let's say|wenn|falls|würde\\w*|wäre\\w*|angenommen|vielleicht|si|imagina"
        "|supongamos|podría|quizás?|supposons|peut-être|serait",
        "如果|假如|假设|要是|万一|也许|可能|もし|たら|なら|かも|만약|만일|라면|다면|아마|혹시",
    ),
    "asks": _words(
        "what|why|how|when|where|who|which|whats|does|did|can you|could you|wie|warum|wieso|wer|welche\\w*|kannst|qué|cómo|por qué|puedes"
        "|pourquoi|comment|est-ce|tu peux|peux-tu",
        "为什么|怎么|为啥|什么|なぜ|どう|왜|어떻게",
    ),
    "irony": _words(
        "wow|lol|mdr|great,|awesome,|toll,|super,|bravo|génial|genial|qué maravilla|how very|can you believe",
        "真棒|太好了|厉害了|大好き|最高|대박",
    ),
    "because": _words(
        "because|since|otherwise|or else|so that|weil|denn|sonst|damit|porque|ya que|si no|car|parce que|sinon|puisque",
        "因为|否则|不然|免得|由于|から|ので|ため|なぜなら|거든|니까|때문|서요",
    ),
    "code": re.compile(r"[`{}=;]|\w\(\)|\w\.[a-z]{1,4}\b|\w_\w|\w/\w|--\w|[a-z][A-Z]\w"),
    "number": re.compile(r"\d"),
    "place": any_of(
        r"\b(?:jira|linear|grafana|kibana|datadog|sentry|confluence|notion|slack|teams|trello|asana|figma|miro|pagerduty|sharepoint|drive"
        r"|dashboard|wiki|board|channel|folder|ordner|kanal|tablero|canal|carpeta|tableau|dossier|bucket|vault|spreadsheet|sheet|discord"
        r"|mattermost|zulip|metabase|looker|airtable|zotero|overleaf|zendesk|intercom|hubspot|redmine|backlog|youtrack|clickup|basecamp"
        r"|nextcloud|dropbox|apifox|yapi|swagger|splunk|bugzilla)\b|#\w|https?:"
        "|飞书|钉钉|语雀|石墨|看板|群里|文档|企业微信|禅道|ノーション|スラック|チャンネル|フォルダ|スプレッドシート|노션|지라|슬랙|채널|위키|시트|드라이브|폴더"
        "|コンフルエンス|컨플루언스|젠데스크|피그마|蓝湖",
    ),
    "prefers": any_of(
        r"\bi(?:['’]d| would)? (?:\w+ )?(?:prefer|rather)\b|\bi like .{1,40} (?:better|more) than\b|\blieber\b|\bich bevorzuge\b",
        r"\bje préfère|\bprefiero\b|更喜欢|宁愿|宁可|の方が好|ほうが好|好みです|선호|더 좋아",
    ),
    # An order for all times, as against "the parser never returns null".
    "always do": any_of(
        r"(?:^|[,;:] )(?:(?:so|please|and|but|ok(?:ay)?|then)[, ]+)*(?:always|never|from now on,?) (?!mind\b)(?!\w+(?:s|ed|ing)\b)\w+",
        r"^ne (?:\w+|\w+-\w+) (?:plus )?jamais\b|\b(?:nunca|jamás) \w+(?:es|as)\b|\bsiempre \w+(?:a|e)\b",
        r"^(?:bitte )?(?:\w+ ){1,5}(?:immer|nie(?:mals)?)\b|\b(?:immer|nie(?:mals)?)\b.*\bbitte\b",
        "(?:^|[，,。])(?:所以)?(?:请|你)?(?:以后|今后|一律|千万|务必|每次)|(?:必ず|絶対|常に|いつも|今後).*(?:ください|こと|ないで)$|(?:항상|절대|꼭|반드시|앞으로).*(?:세요|마|줘)$",
    ),
    # Where something is found in another system.
    "found in": any_of(
        r"\b(?:lives?|sits?|kept|tracked|logged|stored|published|managed|posted|filed|found|goes? (?:to|in|on)|come from|are in"
        r"|is in|are on|is on)\b",
        r"\b(?:liegen?|liegt|stehen|steht|laufen über|findest|trouve\w*|sont (?:dans|sur)|est (?:dans|sur)|están? en|guarda\w*)\b",
        r"\b(?:collected|recorded|archived|piles? up|gesammelt|abgelegt|quedan?|anotad[oa]s?)\b",
        "放在|存在|都在|记在|在.{1,20}[里上下中]|に(?:残|記録)し|にあ[るり]|にまと|で管理"
        "|에 (?:있|모|올|다 모|다? ?쌓|정리)|에서 (?:봐|봅|관리)",
    ),
    # Who somebody is.
    "role": any_of(
        r"\b(?:engineer|developer|dev|designer|manager|lead|nurse|doctor|physicist|biologist|scientist|analyst|student|teacher|professor|lawyer)\b",
        r"\b(?:counsel|accountant|writer|translator|founder|consultant|intern|researcher|statistician|admin|retired|freelanc\w+"
        r"|self-taught|by training)\b",
        r"\b(?:i (?:work|teach|run|study|maintain|lead|manage|do) |my (?:job|role|background|team|degree)|ich bin|arbeite als"
        r"|je suis|soy|trabajo|dirijo)",
        "我是|本人|我在.{1,12}(?:工作|上班|负责|做|教|读)|出身|老师|学生|工程师|医生|律师|设计师|産品|[一-龥]担当|畑|学部|教師|看護師|エンジニア|デザイナー"
        "|(?:普段|ふだん)は|専門|担当(?:で|し|です)|平时|平常|평소|주로|맡고"
        "|개발자|디자이너|엔지니어|학생|교사|년차|출신",
    ),
    "skill": any_of(
        r"\b(?:know|knew|years? of|new to|never (?:used|touched|opened|wrote|written)|beginner|newbie|inside out|fluent|no clue"
        r"|rusty|familiar)\b",
        r"\b(?:only started|first time|learning|kenne|anfänger\w*|neu für|débutant\w*|connais|nunca he|principiante|sé (?:poco"
        r"|bastante))\b",
        r"\b(?:by heart|auswendig|par cœur|maîtrise|hardly|barely)\b|\bneed to explain\b",
        "ことがな|ことがありません|得意|不慣れ|没写过|没怎么|적이 없|잘 몰",
        "不懂|熟悉|没用过|没碰过|小白|不会写|擅长|刚开始|初めて|経験|詳しく|わから|처음|모름|모릅|익숙|초보",
    ),
    # Who does what, and what was agreed.
    "decided": any_of(
        r"\b(?:decided|agreed|chose|settled|signs? off|signed|owns?|in charge|handles?|takes? over|approves?|moved|moves"
        r"|postponed|deadline|due)\b",
        r"\b(?:entschieden|beschlossen|zuständig|kümmert|décidé|choisi|valide|s'occupe|decidimos|decidió|elegimos|se encarga|lleva)\b",
        "定了|决定|负责|接手|推迟|改到|截止|上线|決ま|決定|担当|延期|정했|결정|맡|마감|미뤄",
    ),
    "do": any_of(
        r"^(?:(?:ok(?:ay)?|and|now|then|so|please|pls|also|great|thanks|cool|well|und|dann|bitte|y|et|puis|por favor)[,.! ]+)*"
        r"(?:can you|could you|let's|add|fix|run|make|write|show|move|rename|delete|remove|change|check|look|create|update|give|put|set"
        r"|draw|find|explain|compare|list|open|print|sort|generate|merge|push|commit|build|translate|convert|try|mach|schreib|zeig|füg|such|bau"
        r"|änder|prüf|lösch|erklär|übersetz|teste|schau|haz|añade|cambia|borra|muestra|revisa|pon|expl[ií]ca\w*|traduce|prueba|mira|fais|ajoute"
        r"|montre|supprime|mets|corrige|explique|traduis|teste|regarde)\b"
        "|帮我|一下|把|给我|看看|改成|换成"
        "|して[。]?$|してください|てくれ|見せて|直して|教えて|해줘|해 줘|해주세요|봐줘|고쳐|보여|짜줘|바꿔",
    ),
}

ASKED = any_of(r"[?？][\s)）]*$", r"(?:吗|嗎|呢|か|(?<!니)까요|나요)[。.]?\s*$")
NOT_MEANT = any_of(
    r"\b(?:what could go wrong|yeah right|obviously not|a pleasure|haha+|jaja\w*)\b",
    "多省事|行吧|呵呵|哈哈|笑死|可真(?:棒|行)|さすがですね|ㅋㅋ",
    r"^(?:suppose|imagine|if only|as an? \w+,? i want|if (?:we|i|you|they) (?:used|were|was|had|wanted|went|did|could))\b",
    "^(?:もし|万一|假如|假设|만약)",
    # An exaggerated yes begins sarcasm.
    r"^(?:oh|ah),? (?:great|sure|wonderful|brilliant|lovely|fantastic|awesome|perfect|joy)\b|^(?:yeah|yes),? sure\b|^by all means\b",
    r"\bjust what (?:i|we) (?:needed|always wanted)\b|^(?:na|ja),? (?:klar|toll|super|prima)\b|\bschon schiefgehen\b",
    r"^(?:mais (?:oui|bien sûr)|ben voyons)\b|^claro que sí\b|\bpuede salir mal\b",
    "^(?:行啊|好啊，|はいはい)|참 잘했네",
    r"^(?:yeah|yes|sure|right),? because (?:i|we) (?:totally|really|just|so|all) |^(?:oui|ouais),? bien sûr\b|^(?:sí|si),? claro\b",
    # A wish that is none, and a text that somebody else is to read.
    r"\bi wish (?:i|we)\b|^(?:(?:please|now|can you) )*(?:translate|übersetze?|tradui[st]|traduce)\b|^(?:请|帮我)?(?:把.{1,40})?翻译",
)
# Takes back what was said, in the same sentence or in the one before.
TAKEN_BACK = any_of(
    r"\b(?:scrap|scratch|forget|ignore|disregard) (?:that|this|it|what i (?:just )?said)\b|\bi take (?:that|it) back\b|\bactually,? no\b",
    r"^wait,? no\b|^sorry,? (?:that['’]s|that was|wrong|i meant)\b",
    r"\b(?:kidding|joking|jk|never ?mind|on second thought|no,? wait|wrong (?:chat|window)|my (?:mistake|bad))(?=[\s.,!]*$|[.,!] )",
    r"\b(?:vergiss (?:es|das)|doch nicht(?=[,.!]|$)|(?:nur|bloß) (?:ein|’n) (?:scherz|witz)|ach nein)\b|\bwar (?:nur )?(?:spaß|quatsch)\b",
    r"\b(?:laisse tomber|oublie (?:ça|ce que)|je (?:plaisante|rigole|blague)|non,? finalement|finalement non|en fait non)\b",
    r"\b(?:olvídalo|olvídate|(?:es|era) (?:una )?broma|no,? al final|mejor no(?=[,.!]|$)|retiro lo dicho)\b",
    "算了|当我没说|开玩笑|说错了|作废|别当真|冗談(?:です|だ)|やっぱり(?:いい|なし|やめ)|撤回し|忘れて(?:ください)?[。.]?$",
    "농담이|취소할게|잊어 ?(?:버려|주세요)|됐어요?[.]?$",
)
# Holds for this task only.
ONLY_NOW = _words(
    "for (?:now|the moment|the time being)|this (?:time|once)|diesmal|dieses (?:eine )?mal|vorerst|erst ?mal|fürs erste"
    "|pour (?:l['’]instant|le moment)|cette fois(?:-ci)?|de momento|por (?:ahora|el momento)|esta vez",
    "这次(?!是?(?:第一|头一))|这回|这一次|暂时|先别|先不|今回(?!が初)|とりあえず|一旦|今は|이번만|이번엔|이번에|이번 한|일단|지금은",
)
