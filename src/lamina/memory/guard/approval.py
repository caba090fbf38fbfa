"""Recognizes a message that accepts the answer before it. Pure."""

from __future__ import annotations

import re

from ...language.memory_requests import asks_to_remember, to_remember
from .sources import weigh_words, words
from .support import content, negated

# An approval is short; a longer message has another subject.
APPROVAL_WORDS = 16

# Words that approve of what was done and ask for more of it.
APPROVES = re.compile(
    r"\b(?:exactly|perfect|great|excellent|nice|love (?:it|this|that)|well done|good (?:call|choice|idea|job|work)|right call"
    r"|keep (?:doing|it)|like (?:that|this)|yes|yep|yeah|agreed|works for me|spot on|looks good|lgtm|sounds good"
    r"|genau|perfekt|super|prima|weiter so|gut so|klasse|einverstanden|parfait|exactement"
    r"|impeccable|c['’]est (?:ça|bien|très bien)|continue comme ça|exacto|perfecto|eso es|así está bien|sigue así)\b"
    r"|完美|很好|太好了|不错|对了|没错|就这样|就这么|保持|正是|完璧|いいね|良い|よい|その調子|その通り|最高|いい(?:感じ|です)|それで(?:いい|お願い)|좋아|좋네|완벽|그대로|훌륭|맞아",
    re.IGNORECASE,
)
# A message that goes on to the next thing accepts the answer before it, if it objects to nothing.
_MOVES_ON = re.compile(
    r"\s*(?:(?:ok(?:ay)?|fine|good|thanks|thank you|sure|right|and|great)\b[,.!]?\s*)*"
    r"(?:ok(?:ay)?|fine|thanks|sure|now|next|then|continue|go (?:on|ahead)"
    r"|ship it|merge (?:it|that)|commit (?:it|that)|push it|gut|danke|weiter|dann|jetzt)\b"
    r"|\s*(?:好的?|可以|行|谢谢|接下来|下一步|然后|继续|次は?|では|じゃあ|続けて|네|다음|이제|계속)",
    re.IGNORECASE,
)
_OBJECTS = re.compile(
    r"[?？]|\b(?:but|instead|wrong|revert|undo|actually|rather|hmm+|wait|why|again|shorter|too|nein|aber|stattdessen|falsch|zurück|mais|pero)\b"
    r"|但|不过|撤销|回滚|为什么|でも|違|いいえ|戻して|하지만|아니|틀렸|되돌",
    re.IGNORECASE,
)


def accepts(quote: str, message: str) -> bool:
    """Whether a message accepts the answer before it: by an approval, by "remember this", or by going on without an objection."""
    if asks_to_remember(message) and not content(to_remember(message)):
        return True
    if _OBJECTS.search(message) or negated(message):
        return False
    if APPROVES.search(quote) is not None:
        return weigh_words(words(quote)) <= APPROVAL_WORDS
    return _MOVES_ON.match(message) is not None
