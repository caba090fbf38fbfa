"""Forms of words: a memory may say in plain statements what the user asked for politely, and nothing else."""

from __future__ import annotations

import pytest

from lamina.memory.guard.own_sentence import find_sentence
from lamina.memory.guard.support import negated

# What the user said, and a memory that changes the form and the order of its words.
SAME = [
    ("저는 파이썬을 매일 씁니다", "사용자는 파이썬을 매일 쓴다"),
    ("설정 파일은 config 폴더에 있어요", "설정 파일은 config 폴더에 있다"),
    ("로그에 이름을 남기지 마세요", "로그에 이름을 남기지 않는다"),
    ("함수를 작게 만들어 주세요", "함수를 작게 만든다"),
    ("저는 부산에 살아요", "사용자는 부산에 산다"),
    ("우리 팀은 월요일에 회의합니다", "팀은 월요일에 회의한다"),
    ("저는 디자이너예요", "사용자는 디자이너이다"),
    ("마감일은 3월 4일이에요", "마감일은 3월 4일이다"),
    ("설명은 쉬운 말로 써 주세요", "설명은 쉬운 말로 쓴다"),
    ("결과를 표로 보여 줘", "결과를 표로 보여 준다"),
    ("보안 검토는 민수가 합니다", "보안 검토는 민수가 한다"),
    ("주말에는 배포하지 않아요", "주말에는 배포하지 않는다"),
    ("저는 러스트를 잘 몰라요", "사용자는 러스트를 잘 모른다"),
    ("테스트 데이터는 S3에 저장돼요", "테스트 데이터는 S3에 저장된다"),
    ("주석은 한국어로 달아 주세요", "주석은 한국어로 단다"),
    ("コミットメッセージは英語で書いてください", "コミットメッセージは英語で書く"),
    ("私はデータ分析者で、Rをよく使います", "ユーザーはデータ分析者で、Rをよく使う"),
    ("議事録はGoogleドライブにあります", "議事録はGoogleドライブにある"),
    ("返事に絵文字を使わないでください", "返事に絵文字を使わない"),
    ("ベータ版のリリースは2027年6月3日です", "ベータ版のリリースは2027年6月3日である"),
    ("私は東京に住んでいます", "ユーザーは東京に住んでいる"),
    ("テストは毎回走らせてほしい", "テストは毎回走らせる"),
    ("本番には金曜日にデプロイしません", "本番には金曜日にデプロイしない"),
    ("説明は短くまとめてください", "説明は短くまとめる"),
    ("説明は短くまとめる", "説明は短くまとめます"),
    ("Bitte schreib die Doku auf Deutsch", "Die Doku wird auf Deutsch geschrieben"),
    ("Lies zuerst die Fehlermeldung", "Zuerst die Fehlermeldung lesen"),
    ("Nimm für Diagramme immer Mermaid", "Für Diagramme wird immer Mermaid genommen"),
    ("Ich kenne mich mit Docker nicht aus", "Der Nutzer kennt sich mit Docker nicht aus"),
    ("Ich arbeite bei der Bahn und spreche kein Englisch", "Der Nutzer arbeitet bei der Bahn und spricht kein Englisch"),
    ("Führe nach jeder Änderung den Linter aus", "Nach jeder Änderung den Linter ausführen"),
    ("Führe nach jeder Änderung den Linter aus", "Nach jeder Änderung wird der Linter ausgeführt"),
    ("Lass Kommentare weg", "Kommentare weglassen"),
    ("Die Logs liegen unter /var/log/app", "Logs liegen unter /var/log/app"),
    ("Wir testen jede Funktion", "Jede Funktion wird getestet"),
    ("Write the changelog in plain English", "The changelog is written in plain English"),
    ("Run the linter before each commit", "The linter is run before each commit"),
    ("Tell me the cost first", "The user is told the cost first"),
    ("We keep the fixtures in tests/data", "The fixtures are kept in tests/data"),
    ("I teach physics and know little about Git", "The user teaches physics and knows little about Git"),
    ("No sé nada de Kubernetes", "El usuario no sabe nada de Kubernetes"),
    ("Escribe los comentarios en español", "Los comentarios se escriben en español"),
    ("Haz los commits pequeños", "Los commits se hacen pequeños"),
    ("Trabajo en un hospital y vivo en Quito", "El usuario trabaja en un hospital y vive en Quito"),
    ("Écris les commentaires en français", "Les commentaires sont écrits en français"),
    ("Je ne sais pas programmer", "L'utilisateur ne sait pas programmer"),
    ("Je connais bien Python et je vis à Lyon", "L'utilisateur connaît bien Python et vit à Lyon"),
    ("Mets les tests dans le dossier tests", "Les tests sont mis dans le dossier tests"),
    ("提交信息请用英文写", "提交信息用英文写"),
    ("我是数据分析师，主要用 R", "用户是数据分析师，主要用 R"),
    ("저는 병원에서 일합니다", "사용자는 병원에서 일한다"),
    ("API 키는 볼트에 보관해요", "API 키는 볼트에 보관한다"),
    ("영어로 답하지 말아 주세요", "영어로 답하지 않는다"),
    ("저는 음악을 자주 들어요", "사용자는 음악을 자주 듣는다"),
    ("긴 함수는 나눠 주세요", "긴 함수는 나눈다"),
    ("다음 버전은 5월에 나와요", "다음 버전은 5월에 나온다"),
    ("저는 변호사이고 코딩은 처음이에요", "사용자는 변호사이고 코딩은 처음이다"),
    ("먼저 테스트를 돌려 주세요", "먼저 테스트를 돌린다"),
    ("変数名は英語にしてください", "変数名は英語にする"),
    ("私は医者で、プログラミングは初めてです", "ユーザーは医者で、プログラミングは初めてである"),
    ("ログは /var/log にあります", "ログは /var/log にある"),
    ("設定は変えないでください", "設定は変えない"),
    ("会議は月曜日に行います", "会議は月曜日に行う"),
    ("Sprich mit mir Deutsch", "Mit dem Nutzer Deutsch sprechen"),
    ("Ich weiß wenig über Netzwerke", "Der Nutzer weiß wenig über Netzwerke"),
    ("Fass Ergebnisse in einer Tabelle zusammen", "Ergebnisse in einer Tabelle zusammenfassen"),
    ("Halte die Funktionen kurz", "Funktionen werden kurz gehalten"),
    ("Put new modules under src/app", "New modules are put under src/app"),
    ("Show me the diff before you commit", "The diff is shown to the user before a commit"),
    ("Build the docs with Sphinx", "The docs are built with Sphinx"),
    ("Pon los tests junto al código", "Los tests se ponen junto al código"),
    ("Lis le journal d'abord", "Le journal est lu d'abord"),
    ("저는 위키를 안 써요", "사용자는 위키를 안 쓴다"),
]
# A memory that changes a word, a number, a negation, a subject, or a limit.
OTHER = [
    ("저는 파이썬을 매일 씁니다", "사용자는 파이썬을 매일 쓰지 않는다"),
    ("배포는 화요일부터 합니다", "배포는 화요일까지 한다"),
    ("배포는 화요일에만 합니다", "배포는 화요일에 한다"),
    ("프로젝트 목록을 지워 주세요", "프로덕션 목록을 지운다"),
    ("동생은 부산에 살아요", "사용자는 부산에 산다"),
    ("로그에 이름을 남기지 마세요", "로그에 이름을 남긴다"),
    ("마감일은 3월 4일이에요", "마감일은 3월 14일이다"),
    ("한글로 써 주세요", "한국어로 쓴다"),
    ("민수는 커피를 좋아해요", "사용자는 커피를 좋아한다"),
    ("문을 열어 주세요", "물을 열어 준다"),
    ("차를 마셔요", "차를 만든다"),
    ("저는 커피를 싫어해요", "사용자는 커피를 좋아한다"),
    ("테스트가 실패하면 배포하지 마세요", "배포하지 않는다"),
    ("이번 배포는 테스트를 건너뛰세요", "배포는 항상 테스트를 건너뛴다"),
    ("예전에는 자바를 썼어요", "사용자는 자바를 쓴다"),
    ("返事に絵文字を使わないでください", "返事に絵文字を使う"),
    ("デプロイは火曜日からです", "デプロイは火曜日までである"),
    ("田中さんは東京に住んでいます", "ユーザーは東京に住んでいる"),
    ("テストを走らせてください", "テストをやめる"),
    ("リリースは6月3日です", "リリースは6月13日である"),
    ("今回はテストを飛ばしてください", "常にテストを飛ばす"),
    ("デプロイは火曜日だけです", "デプロイは火曜日である"),
    ("説明をまとめてください", "説明をあきらめる"),
    ("Schalte die Prüfung ein", "Die Prüfung ausschalten"),
    ("Mach das Ticket auf", "Das Ticket zumachen"),
    ("Führe den Linter aus", "Den Linter nicht ausführen"),
    ("Schreib die Doku auf Deutsch", "Die Doku wird auf Englisch geschrieben"),
    ("Meine Schwester kennt sich mit Docker aus", "Der Nutzer kennt sich mit Docker aus"),
    ("Nimm keine Mermaid-Diagramme", "Mermaid-Diagramme werden genommen"),
    ("Ich habe früher Java geschrieben", "Der Nutzer schreibt Java"),
    ("Lass die Tests laufen", "Die Tests weglassen"),
    ("Gib dem Team Zugriff", "Dem Team den Zugriff nehmen"),
    ("Lies die Passwörter nicht", "Die Passwörter lesen"),
    ("Write the changelog in English", "The changelog is deleted in English"),
    ("My boss taught physics", "The user teaches physics"),
    ("I told Bob to skip the tests", "Skip the tests"),
    ("I wrote Java for 3 years", "The user wrote Java for 30 years"),
    ("Don't run the migrations", "The migrations are run"),
    ("Mi hermana no sabe programar", "El usuario no sabe programar"),
    ("Sé programar", "El usuario no sabe programar"),
    ("Haz copias de la base", "Deshaz copias de la base"),
    ("Pon los tests en src", "Quita los tests de src"),
    ("Ne mets pas les tests dans src", "Les tests sont mis dans src"),
    ("Mon chef connaît Python", "L'utilisateur connaît Python"),
    ("Écris les commentaires en français", "Les commentaires sont écrits en anglais"),
    ("提交信息不要用英文写", "提交信息用英文写"),
    ("小王是数据分析师", "用户是数据分析师"),
    ("저는 병원에서 일하지 않아요", "사용자는 병원에서 일한다"),
    ("형은 변호사예요", "사용자는 변호사이다"),
    ("API 키는 볼트에 보관해요", "API 키는 메일에 보관한다"),
    ("먼저 테스트를 돌려 주세요", "먼저 테스트를 지운다"),
    ("서버보다 클라이언트가 중요해요", "서버가 클라이언트보다 중요하지 않다"),
    ("관리자에게 물어보세요", "관리자를 지운다"),
    ("5시까지 답해 주세요", "5시부터 답한다"),
    ("사용자 목록을 보여 주세요", "사용자 목록을 보낸다"),
    ("設定は変えないでください", "設定は変える"),
    ("兄は医者です", "ユーザーは医者である"),
    ("会議は月曜日に行います", "会議は火曜日に行う"),
    ("ログを消してください", "ログを送る"),
    ("Schließe das Ticket ab", "Das Ticket wird geöffnet"),
    ("Gib bei Fehlern die Zeile an", "Bei Fehlern wird die Zeile nicht angegeben"),
    ("Mein Chef spricht Deutsch", "Der Nutzer spricht Deutsch"),
    ("Schalte den Cache ab", "Den Cache einschalten"),
    ("Put new modules under src/app", "New modules are put under src/lib"),
    ("I knew COBOL once", "The user knows COBOL always"),
    ("No pongas los tests en src", "Los tests se ponen en src"),
    ("Mon frère sait programmer", "L'utilisateur sait programmer"),
]


@pytest.mark.spec("B6")
@pytest.mark.parametrize(("said", "memory"), SAME)
def test_a_sentence_in_another_form_is_the_users_own(said: str, memory: str) -> None:
    assert find_sentence(memory, said, memory) is not None


@pytest.mark.spec("B6", "G3")
@pytest.mark.parametrize(("said", "memory"), OTHER)
def test_a_sentence_with_another_meaning_is_not_the_users_own(said: str, memory: str) -> None:
    assert find_sentence(memory, said, memory) is None


@pytest.mark.parametrize("text", ["보안 검토", "주말 근무", "쉬운 말로", "잘못 찾기", "이미지 마크"])
def test_a_korean_syllable_inside_a_word_negates_nothing(text: str) -> None:
    assert not negated(text)


@pytest.mark.parametrize(
    "text", ["쓰지 마세요", "쓰지 마", "쓰지 않는다", "쓰지말아요", "안 써요", "못 합니다", "로그 말고 표로", "권한이 없다"]
)
def test_a_korean_negation_is_found(text: str) -> None:
    assert negated(text)
