"""The offline chat answers in the language it was spoken to, says what it is, and presents no file name as a statement."""

from __future__ import annotations

import re

import pytest

from lamina.language.detection import HOW, ON, WHY
from lamina.language.excluded_kinds import no_memory
from lamina.layers.l5_extract.phrases import DID
from lamina.providers.offline.chat import answer
from lamina.providers.offline.memory_note import Note, noted
from lamina.providers.offline.replies import ENGLISH, replies_to

REQUESTS = {
    "Write a poem about rain.": "language model",
    "Schreibe ein Gedicht über Regen.": "kein Sprachmodell",
    "写一首关于雨的诗": "不是语言模型",
    "雨の詩を書いてください。": "言語モデルではありません",
    "Écris un poème sur la pluie.": "modèle de langage",
    "Escribe un poema sobre la lluvia.": "modelo de lenguaje",
    "비에 대한 시를 써 줘": "언어 모델이 아닙니다",
}
STATUS = "<system-reminder>\n<git-status>\nOn branch main\nM session-2.md\n?? 2\n</git-status>\n</system-reminder>"


def say(words: str, *reminders: str) -> str:
    content = [{"type": "text", "text": text} for text in (*reminders, words)]
    return str(answer({"messages": [{"role": "user", "content": content}], "tools": []})[0]["text"])


@pytest.mark.spec("O1")
def test_a_request_for_a_model_is_answered_plainly_in_its_own_language() -> None:
    assert [words for words, expected in REQUESTS.items() if expected not in say(words)] == []
    assert len({say(words) for words in REQUESTS}) == len(REQUESTS)
    assert replies_to("What was it, and who will die?") == ENGLISH
    assert say("Lunch is at noon.") == ENGLISH.noted


@pytest.mark.spec("O1")
@pytest.mark.parametrize("sum_", ["2+2", "17 * 23", "what's 17 * 23", "What is 5 + 3?", "Was ist 5+3?"])
def test_a_sum_is_not_noted_and_no_number_of_the_context_answers_it(sum_: str) -> None:
    assert say(sum_, "<system-reminder>\n# Date\nToday is 2026-03-17.\n</system-reminder>") == replies_to(sum_).not_found


@pytest.mark.spec("O1")
def test_a_message_without_a_word_is_answered_in_the_language_of_the_conversation() -> None:
    for before in ("我们用 Postgres 做主库。", "Wir testen immer zuerst."):
        for words, reply in (("2+2 = ? 😀", replies_to(before).not_found), ("ok", replies_to(before).noted)):
            said = [{"role": "user", "content": [{"type": "text", "text": text}]} for text in (before, words)]
            assert answer({"messages": said, "tools": []})[0]["text"] == reply
    assert say("Nein") == replies_to("Das ist nicht gut.").noted
    assert say("oui") == replies_to("Je suis là.").noted


@pytest.mark.spec("O1")
def test_a_message_that_a_summary_replaced_is_noted() -> None:
    assert say("This conversation was compacted. It was long.") == ENGLISH.noted


@pytest.mark.spec("O1")
@pytest.mark.parametrize("said", ["x%y", "x/y", "y", "rename x,y"])
def test_a_single_letter_of_code_is_no_language(said: str) -> None:
    assert replies_to(said) == ENGLISH


@pytest.mark.spec("O1")
def test_small_talk_gets_a_reply_of_its_own_in_its_language() -> None:
    today = "<system-reminder>\n# Date\nToday is 2026-03-05.\n</system-reminder>"
    for words, expected in {
        "hi": "Hello. I am Lamina's offline stand-in",
        "Hello, who are you?": ENGLISH.help,
        "are you ChatGPT?": ENGLISH.help,
        "Was kannst du?": "Laminas Ersatz",
        "你能做什么？": "我能做这些",
        "thanks!": ENGLISH.thanks,
        "Bonjour !": "Bonjour. Je suis le remplaçant",
        "Muchas gracias": "De nada.",
        "再见": "再见。",
        "how do I add an API key?": "ANTHROPIC_API_KEY",
        "how much did this cost?": "/cost",
        "what day is it?": "Today is 2026-03-05 (Thursday).",
        "今天几号？": "今天是 2026-03-05 (星期四)。",
    }.items():
        assert say(words, today).startswith(expected) or expected in say(words, today), words
    for words in ("hi, the tests are slow", "thanks to Anna we deploy daily", "exit codes matter here"):
        assert say(words) == ENGLISH.noted
    assert "needs a language model" in say("run the tests")


@pytest.mark.spec("O1")
def test_after_a_compaction_the_summary_is_not_taken_for_the_message() -> None:
    summary = (
        "This conversation was compacted. The summary follows.\n\n## 6\n<user-message>\n部署在周四。\n</user-message>\nWhat?"
    )
    assert say("记住：", summary).startswith("要记住什么")
    assert say("什么时候部署？", summary) == "你告诉过我：部署在周四。"
    assert say("hi", summary) == ENGLISH.hello


@pytest.mark.spec("O1")
def test_a_file_name_is_no_answer() -> None:
    for question in ("What is 2+2?", "What is session-2?"):
        assert say(question, STATUS) == ENGLISH.not_found
    assert "On branch main" in say("Which branch are we on?", STATUS)


def test_no_fixed_reply_can_be_approved_as_work_that_was_done() -> None:
    for words in REQUESTS:
        assert not [reply for reply in replies_to(words)[:3] if DID.search(re.split(r"(?<=[.。]) ?", reply)[0])]


@pytest.mark.spec("O1", "B15")
def test_help_and_answers_from_memory_are_in_the_language_of_the_question() -> None:
    for words, expected in {
        "help": "not a language model",
        "帮助": "不是语言模型",
        "ヘルプ": "言語モデルではありません",
        "Hilfe": "kein Spr",
    }.items():
        assert expected in say(words), words
    line = "- [部署](deploy.md) — 周四部署"
    index = f"<system-reminder>\nContents of /m/MEMORY.md:\n<memory-index>\n{line}\n</memory-index>\n</system-reminder>"
    system = {"system": "- Memory directory: /m\n", "tools": []}
    for question, label in {"你记得什么？": "我记得：", "什么时候部署？": "（记忆：部署）"}.items():
        content = [{"type": "text", "text": text} for text in (index, question)]
        assert label in answer({"messages": [{"role": "user", "content": content}], **system})[0]["text"]
    assert say("记住：").startswith("要记住什么")
    assert say("记住：未合并的 PR 有 #12 和 #15").startswith("没有保存：PR 或工单的清单")


@pytest.mark.spec("S7", "S8")
@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("Remember: I'm a terrible programmer", "I did not save that: I keep no negative judgements"),
        ("Remember: I am so stupid because I broke it", "I did not save that: I keep no negative judgements"),
        ("Remember: she is lazy", "I did not save that: I keep no negative judgements"),
        ("Merke dir: ich bin ein schlechter Programmierer", "Nicht gespeichert: Abwertende Urteile"),
        ("记住：我太笨了", "没有保存：我不记录对人的负面评价"),
        ("覚えて：私は無能です", "保存しませんでした。人への否定的な評価"),
        ("기억해: 나는 정말 멍청해", "저장하지 않음: 사람에 대한"),
    ],
)
def test_a_negative_judgement_is_not_saved_even_when_asked(said: str, reply: str) -> None:
    assert say(said).startswith(reply)


def test_a_weakness_of_a_program_is_no_judgement() -> None:
    for text in ("the old parser is terrible", "bad input must be refused", "I am new to Rust", "我不太懂前端"):
        assert no_memory(text) is None, text


@pytest.mark.spec("S5", "B15")
def test_labels_follow_the_language_of_the_memory_and_are_read_in_every_language() -> None:
    chinese = noted("记住：周四部署，因为周五人少", "2026-05-04").file()
    assert "**原因：**周五人少。" in chinese
    assert "说于 2026-05-04。" in chinese
    for rule in (
        "Deploys are on Thursday",
        "周四部署",
        "木曜日にデプロイします",
        "목요일에 배포합니다",
        "Wir deployen nie am Freitag",
    ):
        text = Note("x", "project", rule, "a reason", "2026-05-04", "ask first").file()
        assert (WHY.search(text) or [""])[0].endswith("a reason.") or "A reason" in (WHY.search(text) or [""])[0]
        assert HOW.search(text)
        assert ON.search(text)
        again = Note("x", "project", rule, "", "2026-05-05", "ask twice").file(why="kept", rest=text.split("\n\n")[1:])
        assert len(HOW.findall(again)) == 1


@pytest.mark.spec("O1")
def test_words_that_every_sentence_has_are_no_answer() -> None:
    for fact, unrelated, question in (
        ("Das Release ist am Freitag.", "Was ist 2+2?", "Wann ist das Release?"),
        ("El lanzamiento es el lunes.", "¿Qué es 2+2?", "¿Cuándo es el lanzamiento?"),
        ("La démo est lundi.", "Qu'est-ce que 2+2 ?", "Quand est la démo ?"),
    ):
        for asked, answered in ((unrelated, False), (question, True)):
            messages = [{"role": "user", "content": [{"type": "text", "text": text}]} for text in (fact, asked)]
            messages.insert(1, {"role": "assistant", "content": [{"type": "text", "text": "Fine."}]})
            assert (fact in answer({"messages": messages, "tools": []})[0]["text"]) is answered, asked
