"""The fixed replies of the offline chat, in the language it was spoken to: English, German, French, Spanish, Chinese, Japanese or
Korean.

A reply from a tool is shown as it is.
"""

from __future__ import annotations

import re

from ...language.detection import Language, language_of
from .reply_texts import FRENCH, SPANISH, Replies

# A request that needs a model. Statements and questions are answered in other ways.
_REQUEST = re.compile(
    r"^\s*(?:(?:please|now|then|ok(?:ay)?)[, ]+)*(?:help|write|explain|translate|summari[sz]e|draft|refactor|fix|implement|create|generate"
    r"|review|compare|design|debug|rename|improve|run|find|show)\b"
    r"|^\s*(?:bitte )?(?:schreibe?|hilf|erkläre?|übersetze?|fasse?|erstelle?|behebe?|vergleiche?|verbessere?)\b"
    r"|^\s*(?:(?:s'il te plaît|merci de)[, ]+)?(?:écris|explique|traduis|résume|corrige|compare|améliore|aide)(?:-moi)?\b"
    r"|^\s*(?:por favor,? )?(?:escribe|explica|tradu[cz]e|resume|corrige|arregla|compara|mejora|ayúda)(?:me)?(?:lo)?\b|^\s*explícame"
    r"|^\s*(?:请|帮我|请帮我|给我)?(?:写|翻译|解释|总结|修复|改进|生成|创建|画|比较|重构|运行|跑|查找)(?!的|了|得)|^\s*(?:请)?帮我"
    r"|(?:書いて|翻訳して|説明して|要約して|直して|作って|教えて)(?:ください|下さい|くれ)?[。.！!]*\s*$"
    r"|(?:써|번역해|설명해|요약해|고쳐|만들어|알려) ?(?:줘|주세요)[.!]*\s*$",
    re.IGNORECASE,
)

_REPLIES: dict[Language, Replies] = {
    "fr": FRENCH,
    "es": SPANISH,
    "en": Replies(
        "Noted.",
        "I found nothing about that in this conversation, your instructions or memory. "
        "I am Lamina's offline stand-in, not a language model; I can only repeat what you tell me. "
        'Say "help" to see what I can do.',
        'That needs a language model, and I am only Lamina\'s offline stand-in. I noted it. Say "help" to see what I can do.',
        "You told me: ",
        "I am Lamina's offline stand-in, not a language model. I can do a few things:\n\n"
        '- "Remember: …" saves a memory, "Forget …" moves it to the trash; /forget deletes for good.\n'
        "- A question gets the best matching sentence of this conversation, memory or your instruction files.\n"
        "- Commands: `read PATH`, `list PATTERN`, `search TEXT in PATH`, `run COMMAND`, `write PATH: TEXT`, "
        '`replace "OLD" with "NEW" in PATH`, `todo: FIRST; SECOND`.\n\n'
        "With an API key, a model answers instead.",
        "Your instructions say: ",
        "From the context of this session: ",
        "I am not sure that this answers your question:",
        "(memory: {name})",
        "I remember:",
        "There are no memories here yet.",
        "I will remember that: {what}",
        " (instead of: {old})",
        "I added this to today's log: {what}",
        'What should I remember? Say "Remember: …".',
        "I did not save that: {what} can be looked up when needed, and a memory of it goes out of date. What is worth keeping: "
        'the reason, or what to do differently? Say "Remember: …" with that.',
        "I did not save that: I keep no negative judgements of people. What should I do differently? "
        'Say, for example, "Remember: explain regular expressions step by step".',
        'What should I forget? Say "Forget NAME" or "Forget what you know about …".',
        "There is no memory about {what}.",
        'I removed nothing. {name} is a partial match: say "Forget {name}" to remove it.',
        "Several memories mention it. Tell me which one to forget: {names}.",
        "I removed nothing, because that would delete all memories ({names}). "
        'Say "Forget NAME" for one of them, or "Forget what you know about …" for a topic.',
        "That message has {size} characters, and I take at most {most} for a memory. Say the point in a sentence.",
        "Not saved: {why}",
        "Noted in this conversation only: there is no memory here.",
        "Noted in this conversation only: I have no Write tool.",
        'Hello. I am Lamina\'s offline stand-in, not a language model. Tell me something, or say "help" to see what I can do.',
        "You are welcome.",
        "Goodbye. /exit or Ctrl-D leaves the chat.",
        "Set ANTHROPIC_API_KEY or OPENAI_API_KEY in your shell and start `lamina` again; a model then answers. "
        "/model shows the one in use.",
        "/cost shows what this chat cost. Without a model nothing is charged.",
        "Today is {day}.",
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        "That did not work: {why}",
        "Not done, because you said no.",
        "(no output)",
        "No matches.",
        "{path} does not exist.",
        "That did not work: {why}",
        "Wrote {path}.",
        "Moved the memory {name} to the trash.",
        "Not saved: there are already memories with the name {name}.",
        "I will remember that without the secret, as {name}. A secret was left out ({what}).",
        "I did not save that: it is only a secret. Say where the secret is kept instead.",
        "That waits for your approval. Run `{command}` to accept it.",
    ),
    "de": Replies(
        "Notiert.",
        "Dazu habe ich in diesem Gespräch, in deinen Anweisungen und im Gedächtnis nichts gefunden. "
        "Ich bin Laminas Ersatz ohne Netz und kein Sprachmodell; ich kann nur wiedergeben, was du mir sagst. "
        "„help“ zeigt, was ich kann.",
        "Das kann ich nicht: Ich bin Laminas Ersatz ohne Netz und kein Sprachmodell. Ich habe es notiert. "
        "„help“ zeigt, was ich kann.",
        "Du hast mir gesagt: ",
        "Ich bin Laminas Ersatz ohne Netz und kein Sprachmodell. Ein paar Dinge kann ich:\n\n"
        "- „Merke dir: …“ speichert eine Erinnerung, „Vergiss …“ legt sie in den Papierkorb; /forget löscht endgültig.\n"
        "- Eine Frage beantworte ich mit dem Satz aus Gespräch, Gedächtnis oder Anweisungen, der am besten passt.\n"
        "- Befehle: `read PFAD`, `list MUSTER`, `search TEXT in PFAD`, `run BEFEHL`, `write PFAD: TEXT`, "
        '`replace "ALT" with "NEU" in PFAD`, `todo: ERSTENS; ZWEITENS`.\n\n'
        "Mit einem API-Schlüssel antwortet ein Modell.",
        "In deinen Anweisungen steht: ",
        "Aus dem Kontext dieser Sitzung: ",
        "Ich bin nicht sicher, dass das deine Frage beantwortet:",
        "(Erinnerung: {name})",
        "Ich erinnere mich an:",
        "Hier gibt es noch keine Erinnerungen.",
        "Ich merke mir: {what}",
        " (statt: {old})",
        "Im heutigen Protokoll notiert: {what}",
        "Was soll ich mir merken? Sage „Merke dir: …“.",
        "Nicht gespeichert: {what} lässt sich nachsehen, und eine Erinnerung daran veraltet. Was ist das Bleibende daran: der Grund, "
        "oder was ich anders machen soll? Sage „Merke dir: …“ damit.",
        "Nicht gespeichert: Abwertende Urteile über Menschen behalte ich nicht. Was soll ich anders machen? "
        "Sage zum Beispiel „Merke dir: Erkläre reguläre Ausdrücke Schritt für Schritt“.",
        "Was soll ich vergessen? Sage „Vergiss NAME“ oder „Vergiss alles über …“.",
        "Zu {what} gibt es keine Erinnerung.",
        "Nichts entfernt. {name} passt nur zum Teil: „Vergiss {name}“ entfernt es.",
        "Mehrere Erinnerungen nennen das. Welche soll ich vergessen: {names}?",
        "Nichts entfernt, denn das würde alle Erinnerungen löschen ({names}). Sage „Vergiss NAME“ oder „Vergiss alles über …“.",
        "Die Nachricht hat {size} Zeichen, für eine Erinnerung nehme ich höchstens {most}. Sage das Wesentliche in einem Satz.",
        "Nicht gespeichert: {why}",
        "Nur in diesem Gespräch notiert: Hier gibt es kein Gedächtnis.",
        "Nur in diesem Gespräch notiert: Ich habe kein Werkzeug zum Schreiben.",
        "Hallo. Ich bin Laminas Ersatz ohne Netz und kein Sprachmodell. "
        "Sage mir etwas Merkenswertes, oder „help“, um zu sehen, was ich kann.",
        "Gern geschehen.",
        "Auf Wiedersehen. /exit oder Strg-D beendet den Chat.",
        "Setze ANTHROPIC_API_KEY oder OPENAI_API_KEY in der Shell und starte `lamina` neu; dann antwortet ein Modell. "
        "/model zeigt, welches.",
        "/cost zeigt, was dieser Chat gekostet hat. Ohne Modell kostet er nichts.",
        "Heute ist der {day}.",
        "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
        "Das ging nicht: {why}",
        "Nicht ausgeführt, weil du abgelehnt hast.",
        "(keine Ausgabe)",
        "Nichts gefunden.",
        "{path} gibt es nicht.",
        "Das ist hier nicht erlaubt.",
        "{path} geschrieben.",
        "Erinnerung {name} entfernt.",
        "Nicht gespeichert: Es gibt schon Erinnerungen mit dem Namen {name}.",
        "Ich merke mir das ohne das Geheimnis, als {name}. Ein Geheimnis wurde ausgelassen ({what}).",
        "Nicht gespeichert: Das ist nur ein Geheimnis. Sage stattdessen, wo es aufbewahrt wird.",
        "Das wartet auf deine Zustimmung. Mit `{command}` nimmst du es an.",
        (
            *("Code", "der Stand der Aufgabe", "der Ort einer Datei", "eine Liste von Pull Requests oder Tickets"),
            *("die Geschichte des Codes", "wie etwas behoben wurde", "der Aufbau des Codes", "der Inhalt von Anweisungsdateien"),
        ),
    ),
    "zh": Replies(
        "知道了。",
        "这次对话、你的说明文件和记忆里都没有相关内容。我是 Lamina 的离线替身，不是语言模型，只能复述你告诉我的话。"
        "输入“帮助”查看我能做什么。",
        "这个我做不到：我是 Lamina 的离线替身，不是语言模型。我记下了。输入“帮助”查看我能做什么。",
        "你告诉过我：",
        "我是 Lamina 的离线替身，不是语言模型。我能做这些：\n\n"
        "- “记住：…”保存一条记忆，“忘记…”把它移到回收站；/forget 永久删除。\n"
        "- 回答问题：引用这次对话、记忆或说明文件里最匹配的一句。\n"
        "- 命令：`read 路径`、`list 模式`、`search 文本 in 路径`、`run 命令`、`write 路径: 文本`、"
        '`replace "旧" with "新" in 路径`、`todo: 第一项; 第二项`。\n\n'
        "有 API 密钥时由模型回答。",
        "你的说明文件写着：",
        "来自这次会话的上下文：",
        "不确定这是否回答了你的问题：",
        "（记忆：{name}）",
        "我记得：",
        "这里还没有记忆。",
        "记住了：{what}",
        "（取代：{old}）",
        "今天的日志新增一条：{what}",
        "要记住什么？请说“记住：…”。",
        "没有保存：{what}需要时可以查到，写成记忆会过时。值得留下的是什么：原因，还是以后怎么做？请用“记住：…”告诉我。",
        "没有保存：我不记录对人的负面评价。希望我怎么做？例如：“记住：一步一步讲解正则表达式”。",
        "要忘记什么？请说“忘记 名称”或“忘记关于…的一切”。",
        "没有关于{what}的记忆。",
        "没有删除任何内容。{name} 只有部分匹配：说“忘记 {name}”即可删除。",
        "有几条记忆提到它。要忘记哪一条：{names}？",
        "没有删除任何内容，因为那会删除全部记忆（{names}）。请说“忘记 名称”或“忘记关于…的一切”。",
        "这条消息有 {size} 个字符，一条记忆最多 {most} 个。请用一句话说明要点。",
        "没有保存：{why}",
        "只记在这次对话里：这里没有记忆。",
        "只记在这次对话里：我没有写入工具。",
        "你好。我是 Lamina 的离线替身，不是语言模型。告诉我值得记住的事，或输入“帮助”查看我能做什么。",
        "不客气。",
        "再见。输入 /exit 或按 Ctrl-D 离开对话。",
        "在终端里设置 ANTHROPIC_API_KEY 或 OPENAI_API_KEY，再重新启动 `lamina`，就由模型回答。/model 显示当前的模型。",
        "/cost 显示本次对话的费用。不用模型就没有费用。",
        "今天是 {day}。",
        "星期一 星期二 星期三 星期四 星期五 星期六 星期日",
        "没有成功：{why}",
        "没有执行，因为你拒绝了。",
        "（没有输出）",
        "没有找到。",
        "{path} 不存在。",
        "这里不允许这样做。",
        "已写入 {path}。",
        "已把记忆 {name} 移到回收站。",
        "没有保存：名称 {name} 已被其他记忆占用。",
        "记住了，但没有保存其中的密钥，名称是 {name}。",
        "没有保存：这只是一个密钥。请说明密钥保存在哪里。",
        "这需要你批准。运行 `{command}` 接受。",
        ("代码", "当前任务", "文件的位置", "PR 或工单的清单", "代码的历史", "问题的修复方法", "代码的结构", "说明文件的内容"),
    ),
    "ja": Replies(
        "記録済みです。",
        "この会話、指示ファイル、メモリには見つかりませんでした。私は Lamina のオフラインの代役で、言語モデルではありません。"
        "教えていただいたことだけを繰り返せます。「ヘルプ」でできることを表示します。",
        "それはできません。私は Lamina のオフラインの代役で、言語モデルではありません。記録しました。"
        "「ヘルプ」でできることを表示します。",
        "次のように聞きました：",
        "私は Lamina のオフラインの代役で、言語モデルではありません。できることは次のとおりです：\n\n"
        "- 「覚えて：…」で記憶を保存し、「…を忘れて」でごみ箱に移します。/forget は完全に削除します。\n"
        "- 質問には、この会話、記憶、指示ファイルの中から最も合う文で答えます。\n"
        "- コマンド：`read パス`、`list パターン`、`search 文字列 in パス`、`run コマンド`、`write パス: 文`、"
        '`replace "旧" with "新" in パス`、`todo: 一つ目; 二つ目`。\n\n'
        "API キーがあればモデルが答えます。",
        "指示ファイルには次のようにあります：",
        "このセッションの情報より：",
        "ご質問への答えかどうか確かではありません：",
        "（記憶：{name}）",
        "覚えていること：",
        "まだ記憶はありません。",
        "覚えておきます：{what}",
        "（以前：{old}）",
        "今日のログに追加：{what}",
        "何を覚えますか。「覚えて：…」と言ってください。",
        "保存しませんでした。{what}は必要なときに調べられ、記憶は古くなります。残すべきなのは理由ですか、それとも今後のやり方ですか。"
        "「覚えて：…」で教えてください。",
        "保存しませんでした。人への否定的な評価は記憶しません。どうすればよいですか。例：「覚えて：正規表現は一歩ずつ説明する」。",
        "何を忘れますか。「名前を忘れて」と言ってください。",
        "{what}についての記憶はありません。",
        "何も削除していません。{name} は一部だけ一致します：「{name}を忘れて」で削除します。",
        "複数の記憶にあります。どれを忘れますか：{names}",
        "何も削除していません。すべての記憶が消えるためです（{names}）。「名前を忘れて」と言ってください。",
        "このメッセージは {size} 文字です。記憶は {most} 文字までです。要点を一文で教えてください。",
        "保存しませんでした：{why}",
        "この会話だけに記録しました。ここには記憶がありません。",
        "この会話だけに記録しました。書き込みツールがありません。",
        "こんにちは。私は Lamina のオフラインの代役で、言語モデルではありません。"
        "覚えてほしいことを教えるか、「ヘルプ」でできることを表示してください。",
        "どういたしまして。",
        "さようなら。/exit か Ctrl-D で終了します。",
        "シェルで ANTHROPIC_API_KEY か OPENAI_API_KEY を設定し、`lamina` を起動し直すとモデルが答えます。"
        "/model で現在のモデルを表示します。",
        "/cost でこのチャットの費用を表示します。モデルを使わなければ費用はかかりません。",
        "今日は {day} です。",
        "月曜日 火曜日 水曜日 木曜日 金曜日 土曜日 日曜日",
        "うまくいきませんでした：{why}",
        "拒否されたので実行していません。",
        "（出力なし）",
        "見つかりませんでした。",
        "{path} は存在しません。",
        "ここでは許可されていません。",
        "{path} に書き込みました。",
        "記憶 {name} を削除しました。",
        "保存しませんでした。{name} という名前の記憶がすでにあります。",
        "秘密の値（{what}）を除いて、{name} として覚えておきます。",
        "保存しませんでした：秘密の値だけです。代わりに保管場所を教えてください。",
        "これはあなたの承認を待っています。`{command}` で承認します。",
        (
            *("コード", "現在の作業", "ファイルの場所", "PR やチケットの一覧"),
            *("コードの履歴", "修正の方法", "コードの構成", "指示ファイルの内容"),
        ),
    ),
    "ko": Replies(
        "기록됨.",
        "이 대화, 지침 파일, 메모리에는 관련 내용이 없습니다. 저는 Lamina의 오프라인 대역이며 언어 모델이 아닙니다. "
        "알려 주신 내용만 되풀이할 수 있습니다. “도움말”이라고 하면 할 수 있는 일을 보여 드립니다.",
        "그것은 할 수 없습니다. 저는 Lamina의 오프라인 대역이며 언어 모델이 아닙니다. 기록했습니다. "
        "“도움말”이라고 하면 할 수 있는 일을 보여 드립니다.",
        "이렇게 말씀하셨습니다: ",
        "저는 Lamina의 오프라인 대역이며 언어 모델이 아닙니다. 할 수 있는 일:\n\n"
        "- “기억해: …”는 메모리를 저장하고, “… 잊어줘”는 휴지통으로 옮깁니다. /forget은 완전히 삭제합니다.\n"
        "- 질문에는 이 대화, 메모리, 지침 파일에서 가장 잘 맞는 문장으로 답합니다.\n"
        "- 명령: `read 경로`, `list 패턴`, `search 텍스트 in 경로`, `run 명령`, `write 경로: 텍스트`, "
        '`replace "이전" with "새" in 경로`, `todo: 첫째; 둘째`.\n\n'
        "API 키가 있으면 모델이 답합니다.",
        "지침 파일 내용: ",
        "이 세션의 정보: ",
        "질문에 대한 답인지 확실하지 않습니다:",
        "(메모리: {name})",
        "기억하는 내용:",
        "아직 메모리가 없습니다.",
        "기억하겠습니다: {what}",
        " (이전: {old})",
        "오늘 로그에 추가: {what}",
        "무엇을 기억할까요? “기억해: …”라고 말해 주세요.",
        "저장하지 않음: {what}은(는) 필요할 때 찾아볼 수 있고 메모리는 낡습니다. 남길 것은 이유인가요, 앞으로의 방식인가요? "
        "“기억해: …”로 알려 주세요.",
        "저장하지 않음: 사람에 대한 부정적인 평가는 남기지 않습니다. 어떻게 하면 될까요? 예: “기억해: 정규식은 차근차근 설명하기”.",
        "무엇을 잊을까요? “이름 잊어줘”라고 말해 주세요.",
        "{what}에 대한 메모리가 없습니다.",
        "삭제한 것이 없습니다. {name}은(는) 일부만 맞습니다: “{name} 잊어줘”라고 하면 삭제합니다.",
        "여러 메모리에 있습니다. 어느 것을 잊을까요: {names}",
        "삭제한 것이 없습니다. 모든 메모리가 지워지기 때문입니다({names}). “이름 잊어줘”라고 말해 주세요.",
        "메시지가 {size}자입니다. 메모리는 {most}자까지입니다. 요점을 한 문장으로 말해 주세요.",
        "저장하지 않음: {why}",
        "이 대화에만 기록했습니다. 여기에는 메모리가 없습니다.",
        "이 대화에만 기록했습니다. 쓰기 도구가 없습니다.",
        "안녕하세요. 저는 Lamina의 오프라인 대역이며 언어 모델이 아닙니다. "
        "기억할 내용을 알려 주시거나 “도움말”로 할 수 있는 일을 확인하세요.",
        "천만에요.",
        "안녕히 가세요. /exit 또는 Ctrl-D로 대화를 끝냅니다.",
        "셸에서 ANTHROPIC_API_KEY 또는 OPENAI_API_KEY를 설정하고 `lamina`를 다시 시작하면 모델이 답합니다. "
        "/model은 현재 모델을 보여 줍니다.",
        "/cost는 이 대화의 비용을 보여 줍니다. 모델을 쓰지 않으면 비용이 없습니다.",
        "오늘은 {day}입니다.",
        "월요일 화요일 수요일 목요일 금요일 토요일 일요일",
        "실패했습니다: {why}",
        "거절하셔서 실행하지 않았습니다.",
        "(출력 없음)",
        "찾은 것이 없습니다.",
        "{path}이(가) 없습니다.",
        "여기서는 허용되지 않습니다.",
        "{path}에 썼습니다.",
        "메모리 {name}을(를) 삭제했습니다.",
        "저장하지 않음: {name}이라는 이름의 메모리가 이미 있습니다.",
        "비밀 값({what})을 빼고 {name}(으)로 기억하겠습니다.",
        "저장하지 않았습니다: 비밀 값뿐입니다. 대신 보관 장소를 알려 주세요.",
        "승인을 기다리고 있습니다. `{command}`로 승인하세요.",
        ("코드", "현재 작업", "파일 위치", "PR이나 티켓 목록", "코드의 이력", "수정 방법", "코드의 구조", "지침 파일의 내용"),
    ),
}
ENGLISH = _REPLIES["en"]

# The beginning of a message shows what it asks for; the rest may be pasted text.
_BEGINNING = 500


def replies_to(prompt: str) -> Replies:
    return _REPLIES[language_of(prompt)]


def asks_for_a_model(prompt: str) -> bool:
    """Whether the message asks for work that only a language model can do."""
    return _REQUEST.search(prompt[:_BEGINNING]) is not None
