"""Groups of words that tell a reason from another wish, a continuation or an aside, in seven languages.

Each group is a feature of the judge of reasons, so none decides by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .cues import any_of

REASON_CUES: Mapping[str, re.Pattern[str]] = {
    # What happened once: "it hid a bug last year".
    "past": any_of(
        r"\b(?:last|once|twice|ago|already|used to|in (?:19|20)\d\d|before|back then|got|had|did)\b",
        r"\b(?:letzte[snr]?|schon|damals|vorig\w+|dernière|déjà|fois|avait|eu|última|ya|vez|\w{3,}imos)\b",
        "上次|之前|以前|去年|上回|上个|曾|过一?[次了回]|前に|前回|ました|지난|작년|예전|전에|[었았했]",
    ),
    "cannot": any_of(
        r"\b(?:can'?t|cannot|couldn'?t|doesn'?t|don'?t|won'?t|isn'?t|aren'?t|hasn'?t|hard|no(?:body| one|thing|ne)?|never|fewe?r?|only)\b",
        r"\b(?:nicht|keine?[nmrs]?|niemand|keiner|schwer|kaum|pas|aucune?|personne|ne|nadie|no|sin|apenas)\b",
        "看不|不能|不支持|不了|不懂|没|难|无法|不会|不认|只|ません|ない|できな|苦手|しか|못|안 |없|어려|않",
    ),
    "must": any_of(
        r"\b(?:wants?|insists?|requires?|needs?|ha(?:s|ve) to|rule|policy|law|audit\w*|compliance|legal|rejects?|ask(?:s|ed)?|expects?)\b",
        r"\b(?:reviews?|checks?|reads?|bound|verlangt|muss|prüf\w+|vorschrift|will|liest|lesen|exigen?t?|demande|veut|doit|lit|lisent)\b",
        r"\b(?:pide|quiere|debe|leen?)\b",
        "要求|规定|审|会查|必须|要看|要走|要过|合规|必要|求め|規則|審査|見て|요구|규정|심사|필요|봐요|봅니다",
    ),
    "harm": any_of(
        r"\b(?:br[eo]a?ke?n?s?|lost|loses?|costs?|crash\w*|fail\w*|hid(?:es?)?|leak\w*|burn\w*|down|wip\w+|overwrit\w+|delet\w+|drop\w*)\b",
        r"\b(?:slow\w*|wrong|bugs?|outage|mess|confus\w+|trouble|complain\w*|annoy\w*|expensive|takes?|took|too|paid|bill|charg\w+)\b",
        r"\b(?:kaputt|verl\w+|kostet|langsam|weg|falsch|dauert|zu|perdu\w*|cass\w+|tomb\w+|coûte|lente?s?|plant\w+|trop|perd\w+|romp\w+)\b",
        r"\b(?:cuestan?|lent[oa]s?|cay\w+|fall\w+|demasiado)\b",
        "挂|丢|崩|慢|错|坏|卡|贵|乱|麻烦|事故|翻车|太|累|要钱|收|拖|锁|止ま|失|壊|遅|高い|困|かか|間違|멈|잃|느리|비싸|날렸|걸려|걸립|돈|틀",
    ),
    "help": any_of(
        r"\b(?:easier|easy|faster|quick\w*|helps?|clear\w*|readable|that way|keeps?|saves?|obvious|painless|better|leichter"
        r"|hilft|besser)\b",
        r"\b(?:plus facile|aide|mieux|ayuda\w*|fácil|mejor)\b",
        "方便|省|清楚|容易|一目了然|更|好懂|楽|助か|その方|わかりやす|편|쉬|그래야|좋",
    ),
    # Begins like a statement, with its subject.
    "subject": any_of(
        r"^(?:the|our|my|we(?:'\w+)?|it(?:'s)?|they(?:'\w+)?|he|she|i(?:'\w+)?|nobody|everyone|some(?:body|one)|people|an?|two|three|half)\b",
        r"^(?:some|most|that(?:'s)?|this|there(?:'s)?|their|his|her|each|every|one|last)\b",
        r"^(?:die|der|das|wir|ich|es|er|sie|uns|unsere?|am|im|da|dort|hier|niemand|keiner|zwei|jede[rs]?|letzte[sr]?|eine?)\b",
        r"^(?:le|la|les|on|nous|je|il|elle|ça|ce|personne|nos|notre|mon|ma|deux|chacune?|une?)\b|^[ljcd]'",
        r"^(?:el|la|los|las|nos|es|en|lo|mi|nuestr\w+|nadie|aquí|dos|cada|ya|una?|de|son|se)\b",
        "^(?:我们?|他们?|她|那|这|上次|上回|之前|客户|大家|每|有|老板|领导|新|对方|里面|去年|总部|公司)",
    ),
    "statement": any_of(
        r"\b(?:is|are|was|were|ha(?:s|ve|d)|will|would|does|did|gets?|got|can|could|may|keeps?|makes?|ist|sind|war|hat|haben|wird|werden)\b",
        r"\b(?:est|sont|était|a|ont|es|son|está|están|fue|hay|tiene|va)\b|'(?:s|re|ve|m)\b|\b\w{3,}(?:ed|es)\b",
        "[的了过]$|是|在|有|会|です|ます|ません|である|いる|ある|た$|어요|아요|습니다|입니다|[어아]$|거든",
    ),
    # Begins or ends like another wish.
    "orders": any_of(
        r"^(?:(?:please|just|then|and|also|but) )*(?:use|keep|put|never|don'?t|do|stop|always|prefer|avoid|ask|tell|say|name|work|write)\b",
        r"^(?:(?:please|just|then|and|also|but) )*(?:make|show|give|run|fix|add|rename|look|open|check|let|let's|start|go|leave|hide)\b",
        r"^(?:(?:please|just|then|and|also|but) )*(?:send|reword|draft|list|print|quote|wait|skip|i(?:'d| would) (?:like|want"
        r"|prefer)|i want)\b",
        r"^(?:nimm|mach|schreib|halte?|zeig|sag|frag|benutze?|verwende|lass|gib|hör|schick|bitte|nutze|erklär|antworte)\b|st du\b",
        r"^(?:mets|fais|montre|donne|utilise|arrête|écris|garde|lance|réponds|corrige|envoie|préviens|sois|évite|laisse|commence)\b",
        r"^(?:pon|haz|usa|muestra|dame|escribe|deja|para|avísa\w*|m[aá]nda\w*|arregla|mira|responde|sé|evita|empieza|hazlo)\b",
        "^(?:请|不要|别|用|先|再|把|就|直接|只|能|以后|帮|改|写|给|来|尽量|宁可|也不)|吧$|就[行好]$",
        "(?:ください|下さい|て|で|ほしい|お願いします|しよう)$|(?:세요|줘|마|돼요|부탁해요)$",
    ),
    # Begins like the rest of the rule.
    "continues": any_of(
        r"^(?:and|but|not|no|even|like|unless|with(?:out)?|for|in|at|by|to|from|on|e\.g|including|instead|then|also|plus|when(?:ever)?|if)\b",
        r"^(?:before|after|same|or|nor|especially|mostly|never|und|nicht|aber|zum|danach|dann|keine?|wenn|vor|nach|et|pas|mais|puis|par)\b",
        r"^(?:sauf|quand|si|y|nada|luego|por|pero|incluye|cuando)\b",
        r"^(?:will|would|is|are|was|were|has|had|can|should|must|may|wird|ist|sind|muss|hat|est|sont|sera|doit|será|debe)\b",
        "^(?:比如|例如|再|也|还|而|但|不过|除非|其中|例え|たとえば|でも|예를|하지만)|除外$|也算|也一样|也不行|も含",
    ),
    # Turns to something else.
    "aside": any_of(
        r"\b(?:by the way|btw|anyway|okay?|thanks|let's|next|now|what's|where|how|today|later|at the moment|i'll)\b",
        r"\b(?:übrigens|jetzt|eigentlich|gestern|au fait|maintenant|hier|por cierto|ahora|ayer|mientras)\b",
        "对了|顺便|现在|今天|接下来|昨天|看一?下|看看|ところで|次は|昨日|そろそろ|그런데|다음은|어제",
    ),
}
