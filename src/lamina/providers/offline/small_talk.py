"""Short messages that are neither statements nor questions about a subject: greetings, thanks, questions about the chat itself.

Owns their patterns in seven languages. A message counts only as a whole: "hi" is a greeting, "hi, the tests are slow" is a statement. Pure.
"""

from __future__ import annotations

import re
from datetime import date

from .replies import replies_to
from .turn_context import TurnContext

# Longer messages say something.
MOST_CHARS = 80

_GREETING = (
    "hi|hello|hey|good (?:morning|afternoon|evening)|hallo|guten (?:morgen|tag|abend)"
    "|bonjour|bonsoir|salut|hola|buen(?:os|as) (?:días|tardes|noches)"
    "|你好|您好|早上好|嗨|こんにちは|おはよう(?:ございます)?|안녕(?:하세요)?"
)
_HELLO = re.compile(rf"(?:{_GREETING})(?: (?:there|lamina|all|everyone))?", re.IGNORECASE)
_BEFORE = re.compile(rf"^(?:{_GREETING})[\s,，!！.。]+", re.IGNORECASE)
_THANKS = re.compile(
    r"(?:ok(?:ay)?,? )?(?:many )?(?:thanks?|thank you|thx|danke(?:schön)?|merci(?: beaucoup)?"
    r"|(?:muchas )?gracias|谢谢|多谢|ありがとう(?:ございます)?|고마워요?|감사합니다)"
    r"(?: (?:a lot|so much|very much|you|lamina)|你|啦|了)?",
    re.IGNORECASE,
)
_BYE = re.compile(
    r"(?:good)?bye|see you(?: later)?|quit|exit|:q|tschüss|au revoir|adiós|hasta luego|再见|拜拜|退出|さようなら|안녕히 (?:가|계)세요|종료",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"(?:who|what) are you|are you (?:a |an |really )*(?:chatgpt|gpt\S*|claude|gemini|llama|ai|bot|robot|human|person|(?:language )?model)"
    r"|(?:which|what) model (?:are you|is this|do you use|is running)|what can (?:you|i) (?:do|say|ask|type)(?: here)?"
    r"|how do(?:es)? (?:you|this|it|lamina) work|what (?:is|does) (?:this|lamina)(?: do)?|what now"
    r"|wer bist du|was (?:bist|kannst) du|was kann ich (?:hier )?(?:tun|machen)|wie funktioniert (?:das|lamina)"
    r"|qui es-tu|que sais-tu faire|quién eres|qué (?:sabes|puedes) hacer"
    r"|你是(?:谁|什么|机器人吗|\S{0,8}模型吗?|chatgpt吗?)|你(?:能|会|可以)(?:做|干)?(?:些)?什么|(?:怎么|如何)(?:使用|用)(?:你|lamina)?"
    r"|あなたは(?:誰|何)(?:ですか)?|何が(?:でき|出来)(?:ますか|る)?"
    r"|(?:넌|너는|당신은) 누구(?:세요|입니까|야)?|(?:뭘|무엇을) 할 수 있(?:어요?|습니까|나요)",
    re.IGNORECASE,
)
_KEY = re.compile(
    r"(?:how|where) (?:do|can|should) i (?:add|set|enter|put|get|use|configure) (?:an?|the|my|another) (?:api )?(?:key|model)"
    r"|wie (?:setze|nutze|verwende) ich (?:einen|den|ein) (?:api-)?(?:schlüssel|modell)"
    r"|(?:怎么|如何|在哪里?)(?:设置|添加|配置|使用|接入|填)\s?(?:api\s?)?(?:密钥|key|模型)",
    re.IGNORECASE,
)
_COST = re.compile(
    r"(?:how much|what) (?:did|does|will|has) (?:this|it|that)(?: chat| session)? cost(?: me)?"
    r"|was kostet das|(?:花了|要)多少钱|多少钱|费用是多少"
    r"|いくらですか|얼마(?:예요|입니까)",
    re.IGNORECASE,
)
_DAY = re.compile(
    r"what(?:'s| is| day is)? (?:the |today's )?(?:date|day|it)(?: is it)?(?: today)?|welche(?:r tag|s datum)(?: ist| haben wir)(?: heute)?"
    r"|今天(?:是)?(?:几号|几月几号|星期几|周几|礼拜几|什么日子)|今日は(?:何日|何曜日)(?:ですか)?"
    r"|오늘(?:은)? (?:며칠|무슨 요일)(?:이에요|입니까|이야)?",
    re.IGNORECASE,
)


def small_talk(asked: TurnContext) -> str | None:
    """Return the reply to a greeting, thanks or a question about the chat itself; None for any other message."""
    if len(asked.prompt) > MOST_CHARS:
        return None
    said, replies = asked.prompt.strip(" \t\n.!?。！？~～,，"), replies_to(asked.prompt)
    if _HELLO.fullmatch(said):
        return replies.hello
    said = _BEFORE.sub("", said)
    if _DAY.fullmatch(said) and asked.today:
        return replies.today.format(day=_day(asked.today, replies.weekdays))
    kinds = ((_ABOUT, replies.help), (_THANKS, replies.thanks), (_BYE, replies.bye), (_KEY, replies.key), (_COST, replies.cost))
    return next((reply for pattern, reply in kinds if pattern.fullmatch(said)), None)


def _day(today: str, weekdays: str) -> str:
    return f"{today} ({weekdays.split()[date.fromisoformat(today).weekday()]})"
