"""A clause that only points back is no rule: what it points to stands in the memory beside it, or nothing is kept."""

from __future__ import annotations

import pytest

from lamina.layers.l5_extract.offline import UserText, plan_memories
from lamina.layers.l5_extract.plan import ExtractDirective
from lamina.providers.offline.back_references import points_back, says_nothing
from lamina.providers.offline.reasons import reason

ASKED = ExtractDirective(1, "2026-05-04", "m", "", "")


def _parts(said: str) -> list[tuple[str, str, str, str]]:
    notes = [plan.note for plan in plan_memories(ASKED, [UserText(said, "")])]
    return [(note.type, note.rule.rstrip(".。"), note.why.rstrip(".。"), note.how) for note in notes]


@pytest.mark.spec("S7", "S8")
@pytest.mark.parametrize(
    "said",
    [
        "yes, exactly. now do the same for the delete endpoint",
        "Great, just like that, thanks!",
        "Ja, genau so. Jetzt bitte noch die Fußzeile.",
        "Oui, exactement. Fais pareil pour la page de connexion",
        "Sí, exacto. Ahora haz lo mismo con el menú",
        "对,就是这样。接下来改登录接口",
        "はい、その通りです。次はログイン画面をお願いします",
        "네, 맞아요. 이제 결제 화면도 고쳐줘",
        "Always do it that way from now on.",
        "以后都按这个来",
    ],
)
def test_an_approval_of_nothing_is_not_kept(said: str) -> None:
    assert _parts(said) == []


@pytest.mark.spec("O1", "S7")
@pytest.mark.parametrize(
    ("said", "kind", "rule"),
    [
        ("对,就是这样,先写失败的测试再改代码,以后都按这个来", "feedback", "先写失败的测试再改代码,以后都按这个来"),
        (
            "Genau, erst die Zusammenfassung und dann die Details, so machst du das bitte ab jetzt immer",
            "feedback",
            "erst die Zusammenfassung und dann die Details, so machst du das bitte ab jetzt immer",
        ),
        (
            "Commit the schema and the code separately. Always do it that way from now on.",
            "feedback",
            "Commit the schema and the code separately. Always do it that way from now on",
        ),
        (
            "手順書はConfluenceの「運用ノート」にまとめてあるので、調査するときはそこを見てください",
            "reference",
            "手順書はConfluenceの「運用ノート」にまとめてあるので、調査するときはそこを見てください",
        ),
        (
            "배포 공지는 슬랙 릴리스 채널에 올라오니까 배포 전에 거기 확인하면 돼요",
            "reference",
            "배포 공지는 슬랙 릴리스 채널에 올라오니까 배포 전에 거기 확인하면 돼요",
        ),
        (
            "Postmortems are collected in the Confluence space OPS, so look there before you guess at a cause",
            "reference",
            "Postmortems are collected in the Confluence space OPS, so look there before you guess at a cause",
        ),
    ],
)
def test_the_rule_and_what_points_to_it_stay_together(said: str, kind: str, rule: str) -> None:
    assert _parts(said) == [(kind, rule, "", "")]


@pytest.mark.spec("S7")
@pytest.mark.parametrize(
    "said",
    [
        "注释统一用中文写,变量名还是英文",
        "Variable names in English, comments stay in German",
        "Integration tests should hit a real postgres, not mocks",
    ],
)
def test_another_rule_is_no_reason(said: str) -> None:
    assert _parts(said) == [("feedback", said, "", "")]


@pytest.mark.spec("S7", "X1")
def test_a_reason_after_two_halves_of_a_rule_belongs_to_both() -> None:
    said = "Integration tests should hit a real postgres, not mocks. We got burned when the mocked tests passed"
    rule = "Integration tests should hit a real postgres, not mocks"
    assert _parts(said) == [("feedback", rule, "We got burned when the mocked tests passed", "")]


@pytest.mark.spec("S7", "X1")
def test_a_reason_between_two_wishes_is_the_why_and_the_second_wish_says_how() -> None:
    assert _parts("回答别写那么多,太长了我根本看不完,直接给结论就行") == [
        ("feedback", "回答别写那么多", "太长了我根本看不完", "直接给结论就行")
    ]


@pytest.mark.spec("S7")
def test_what_follows_from_now_on_is_the_rule_and_not_its_reason() -> None:
    said = "从现在起，会议都要录音。"
    assert reason(said) == (said, "", "")


@pytest.mark.spec("S7")
def test_a_request_to_remember_keeps_the_place_with_what_points_to_it() -> None:
    said = "手順書はConfluenceにあるので、調査するときはそこを見てください"
    assert reason(said) == (said, "", "")


@pytest.mark.parametrize(
    "said",
    [
        "yes, exactly",
        "That’s exactly how I want it.",
        "so machst du das bitte immer",
        "fais toujours comme ça",
        "hazlo siempre así",
        "从现在起",
        "今後も同じようにお願いします",
        "앞으로 계속 이렇게 해주세요",
    ],
)  # fmt: skip
def test_a_text_without_a_content_word_says_nothing(said: str) -> None:
    assert says_nothing(said)
    assert points_back(said)


@pytest.mark.parametrize("said", ["Keep it short", "not mocks", "短く", "先写测试", "짧게 해주세요", "There is a queue"])
def test_a_text_with_a_content_word_says_something(said: str) -> None:
    assert not says_nothing(said)
    assert not points_back(said)
