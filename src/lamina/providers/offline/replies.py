"""The fixed replies of the offline chat, in the language it was spoken to: English, German, Chinese, Japanese or Korean."""

from __future__ import annotations

import re
from typing import NamedTuple


class Replies(NamedTuple):
    noted: str
    not_found: str
    cannot: str
    told: str  # begins an answer from the user's own words


# Words that English does not have.
_GERMAN = re.compile(
    r"\b(?:ich|wir|ist|sind|nicht|und|bitte|eine?[mnrs]?|schreibe?|erkläre?|hilf|wann|wer|wie|warum|welche[nrs]?)\b",
    re.IGNORECASE,
)
_SCRIPTS = (("ja", re.compile("[\u3040-\u30ff]")), ("ko", re.compile("[\uac00-\ud7af]")), ("zh", re.compile("[\u3400-\u9fff]")))
# A request that needs a model. Statements and questions are answered in other ways.
_REQUEST = re.compile(
    r"^\s*(?:(?:please|now|then|ok(?:ay)?)[, ]+)*(?:help|write|explain|translate|summari[sz]e|draft|refactor|fix|implement|create|generate"
    r"|review|compare|design|debug|rename|improve)\b"
    r"|^\s*(?:bitte )?(?:schreibe?|hilf|erkläre?|übersetze?|fasse?|erstelle?|behebe?|vergleiche?|verbessere?)\b"
    r"|^\s*(?:请|帮我|请帮我|给我)?(?:写|翻译|解释|总结|修复|改进|生成|创建|画|比较|重构)(?!的|了|得)|^\s*(?:请)?帮我"
    r"|(?:書いて|翻訳して|説明して|要約して|直して|作って|教えて)(?:ください|下さい|くれ)?[。.！!]*\s*$"
    r"|(?:써|번역해|설명해|요약해|고쳐|만들어|알려) ?(?:줘|주세요)[.!]*\s*$",
    re.IGNORECASE,
)

_REPLIES = {
    "en": Replies(
        "Noted in this conversation.",
        "I found nothing about that in this conversation, your instructions or memory. "
        "I am Lamina's offline stand-in, not a language model; I can only repeat what you tell me.",
        "That needs a language model, and I am only Lamina's offline stand-in. I noted it in this conversation. "
        'Say "help" to see what I can do.',
        "You told me: ",
    ),
    "de": Replies(
        "In diesem Gespräch notiert.",
        "Dazu habe ich in diesem Gespräch, in deinen Anweisungen und im Gedächtnis nichts gefunden. "
        "Ich bin Laminas Ersatz ohne Netz und kein Sprachmodell; ich kann nur wiedergeben, was du mir sagst.",
        "Das kann ich nicht: Ich bin Laminas Ersatz ohne Netz und kein Sprachmodell. Ich habe es in diesem Gespräch notiert. "
        "„help“ zeigt, was ich kann.",
        "Du hast mir gesagt: ",
    ),
    "zh": Replies(
        "这次对话里已有记录。",
        "这次对话、你的说明文件和记忆里都没有相关内容。我是 Lamina 的离线替身，不是语言模型，只能复述你告诉我的话。",
        "这个我做不到：我是 Lamina 的离线替身，不是语言模型。我已把它记在这次对话里。输入“帮助”查看我能做什么。",
        "你告诉过我：",
    ),
    "ja": Replies(
        "この会話に記録済みです。",
        "この会話、指示ファイル、メモリには見つかりませんでした。私は Lamina のオフラインの代役で、言語モデルではありません。"
        "教えていただいたことだけを繰り返せます。",
        "それはできません。私は Lamina のオフラインの代役で、言語モデルではありません。この会話に記録しました。"
        "「ヘルプ」でできることを表示します。",
        "次のように聞きました：",
    ),
    "ko": Replies(
        "이 대화에 기록됨.",
        "이 대화, 지침 파일, 메모리에는 관련 내용이 없습니다. 저는 Lamina의 오프라인 대역이며 언어 모델이 아닙니다. "
        "알려 주신 내용만 되풀이할 수 있습니다.",
        "그것은 할 수 없습니다. 저는 Lamina의 오프라인 대역이며 언어 모델이 아닙니다. 이 대화에 기록했습니다. "
        "“도움말”이라고 하면 할 수 있는 일을 보여 드립니다.",
        "이렇게 말씀하셨습니다: ",
    ),
}
ENGLISH = _REPLIES["en"]

# The beginning of a message shows its language; the rest may be pasted text.
_BEGINNING = 500


def replies_to(prompt: str) -> Replies:
    begins = prompt[:_BEGINNING]
    script = next((name for name, pattern in _SCRIPTS if pattern.search(begins)), None)
    return _REPLIES[script or ("de" if _GERMAN.search(begins) else "en")]


def asks_for_a_model(prompt: str) -> bool:
    """Whether the message asks for work that only a language model can do."""
    return _REQUEST.search(prompt[:_BEGINNING]) is not None
