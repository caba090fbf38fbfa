"""The offline chat answers in the language it was spoken to, says what it is, and presents no file name as a statement."""

from __future__ import annotations

import re

import pytest

from lamina.layers.l5_extract.phrases import DID
from lamina.providers.offline.chat import answer
from lamina.providers.offline.replies import ENGLISH, replies_to

REQUESTS = {
    "Write a poem about rain.": "language model",
    "Schreibe ein Gedicht über Regen.": "kein Sprachmodell",
    "写一首关于雨的诗": "不是语言模型",
    "雨の詩を書いてください。": "言語モデルではありません",
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
def test_a_file_name_is_no_answer() -> None:
    for question in ("What is 2+2?", "What is session-2?"):
        assert say(question, STATUS) == ENGLISH.not_found
    assert "On branch main" in say("Which branch are we on?", STATUS)


def test_no_fixed_reply_can_be_approved_as_work_that_was_done() -> None:
    for words in REQUESTS:
        assert not [reply for reply in replies_to(words)[:3] if DID.search(re.split(r"(?<=[.。]) ?", reply)[0])]
