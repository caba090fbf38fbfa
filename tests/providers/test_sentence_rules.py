"""Classification of sentences in four languages: type, reason, and whether they are worth remembering."""

from __future__ import annotations

import pytest

from lamina.language.connectives import Reason
from lamina.language.excluded_kinds import JUDGEMENT, no_memory
from lamina.language.memory_requests import asks_to_forget, asks_to_remember, to_forget
from lamina.providers.offline.memory_note import Note, named, noted
from lamina.providers.offline.reasons import reason
from lamina.providers.offline.sentence_rules import kind_of


@pytest.mark.spec("S7", "B15")
@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("I prefer short answers", "feedback"),
        ("I speak Dutch", "user"),
        ("Ich bin Backend-Entwicklerin", "user"),
        ("私の名前はキムです", "user"),
        ("我熟悉后端", "user"),
        ("Deployments niemals freitags", "feedback"),
        ("金曜日はデプロイしない", "feedback"),
        ("必ず二人でレビューする", "feedback"),
        ("die Fehler im Tracker INGEST liegen", "reference"),
        ("Die Doku liegt im Wiki", "reference"),
        ("バグはトラッカーのINGESTにある", "reference"),
        ("wir am 15. März ausliefern", "project"),
        ("リリースは3月15日です", "project"),
    ],
)
def test_the_words_tell_the_type(said: str, kind: str) -> None:
    assert kind_of(said) == kind


@pytest.mark.spec("S5", "B15")
@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ("nie freitags, weil niemand da ist", Reason("nie freitags", "niemand da ist")),
        ("weil niemand da ist, nie freitags", Reason("nie freitags", "niemand da ist")),
        ("週末は誰もいないので、金曜日はデプロイしない", Reason("金曜日はデプロイしない", "週末は誰もいない")),
        ("金曜日は禁止。なぜなら誰もいないからです", Reason("金曜日は禁止", "誰もいない")),
        ("周五不要部署，因为周末没人，所以迁移放在周一", Reason("周五不要部署", "周末没人", "迁移放在周一")),
        (
            "deploys wait for Tuesday because ops is there, so plan migrations for Monday",
            Reason("deploys wait for Tuesday", "ops is there", "plan migrations for Monday"),
        ),
        ("サーバーは東京から、クライアントは大阪から", Reason("サーバーは東京から、クライアントは大阪から")),
    ],
)
def test_a_reason_and_what_follows_from_it_are_told_apart(said: str, parts: Reason) -> None:
    assert reason(said) == parts


@pytest.mark.spec("S5")
def test_what_follows_from_a_reason_is_how_to_apply_it_and_stands_there_once() -> None:
    note = noted("Remember: deploys wait for Tuesday because ops is there, so plan migrations for Monday")
    text = note.file(rest=["**How to apply:** Ask first.", "More."])
    assert text.endswith("**Why:** Ops is there.\n\n**How to apply:** Plan migrations for Monday.\n\nMore.\n")
    assert "Ask first." in Note("a", "project", "a rule").file(rest=["**How to apply:** Ask first."])


@pytest.mark.spec("S8", "B15")
@pytest.mark.parametrize(
    "said",
    [
        "die aktuelle Aufgabe ist der Login",
        "ich arbeite gerade am Login",
        "der Fehler wurde durch einen Neustart behoben",
        "unsere Architektur besteht aus drei Diensten",
        "バグはキャッシュの削除で修正した",
        "アーキテクチャは三層です",
        "今ログインを修正しています",
        "コミット 1a2b3c4d で直した",
        "we fixed the login crash by restarting redis",
        "the last three commits were by Ana",
        "CLAUDE.md says to use tabs",
    ],
)
def test_what_can_be_looked_up_is_asked_back_in_every_language(said: str) -> None:
    assert no_memory(said) is not None


@pytest.mark.spec("S7", "B15")
@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ("Merke dir: Tests zuerst", "Tests zuerst"),
        ("Bitte merk dir, dass Tests zuerst kommen", "Tests zuerst kommen"),
        ("Vergiss nicht, dass wir am Montag ausliefern", "wir am Montag ausliefern"),
        ("Denk daran: zwei Reviews", "zwei Reviews"),
        ("覚えておいてください、リリースは3月15日です", "リリースは3月15日です"),
    ],
)
def test_a_wish_to_remember_is_heard_and_left_out(said: str, rule: str) -> None:
    assert asks_to_remember(said)
    assert not asks_to_forget(said)
    assert noted(said).rule == rule


@pytest.mark.spec("S7", "B15")
@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("Vergiss, was du über Anna weißt.", "Anna"),
        ("Vergiss alles über Anna", "Anna"),
        ("Vergiss bitte, dass ich Tee mag", "ich Tee mag"),
        ("忘れてください、金曜日の件", "金曜日の件"),
    ],
)
def test_a_wish_to_forget_is_heard_and_left_out(said: str, what: str) -> None:
    assert asks_to_forget(said)
    assert to_forget(said) == what


@pytest.mark.spec("S8")
def test_lists_of_requests_progress_and_places_of_code_are_asked_back() -> None:
    kinds = {
        "PRs 12, 14 and 18 are waiting for review": "a list of pull requests or tickets",
        "未合并的 PR 有 #12 和 #15": "a list of pull requests or tickets",
        "we have done 3 of 5 files": "the current task",
        "the login page is done, next is the settings page": "the current task",
        "当前进度：完成了三个文件": "the current task",
        "the parser lives in parser.py": "the location of a file",
        "config is in the src/config directory": "the location of a file",
    }
    assert {text: no_memory(text) for text in kinds} == kinds
    for text in ("PR titles start with a ticket number", "ask Anna before merging PRs", "release 3.12 is our minimum"):
        assert no_memory(text) is None


@pytest.mark.parametrize("run", [" ", "\n", "，", "a ", "because ", ", "], ids=repr)
def test_a_long_run_of_anything_is_judged_in_one_pass(run: str) -> None:
    """A pattern that gives white space back would need hours for this."""
    text = f"{run * 50_000}we use pnpm because it is fast"
    assert reason(text).why
    no_memory(text)


@pytest.mark.spec("S8")
@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("the repo has three packages: api, core and web", "the structure of the code"),
        ("代码分成 api 和 core 两层", "the structure of the code"),
        ("we're on step 3 of 7", "the current task"),
        ("I still have to write two tests", "the current task"),
        ("TODO finish the importer", "the current task"),
        ("现在正在改登录页", "the current task"),
        ("지금 로그인 버그를 고치는 중이야", "the current task"),
        ("je suis en train de corriger le login", "the current task"),
        ("ahora estoy arreglando el login", "the current task"),
        ("#12 和 #15 已经合并", "a list of pull requests or tickets"),
        ("les PR #12 et #14 sont ouvertes", "a list of pull requests or tickets"),
        ("le bug a été corrigé en mettant à jour la lib", "how something was fixed"),
        ("el fallo se arregló actualizando la librería", "how something was fixed"),
        ("버그는 라이브러리를 올려서 고쳤어", "how something was fixed"),
        ("my colleague Tim is an idiot", JUDGEMENT),
        ("Bob is lazy", JUDGEMENT),
        ("That junior guy on our team is useless", JUDGEMENT),
        ("the intern is hopeless", JUDGEMENT),
        ("le stagiaire est nul", JUDGEMENT),
        ("mi jefe es un inútil", JUDGEMENT),
        ("实习生太笨", JUDGEMENT),
        ("上司は無能です", JUDGEMENT),
        ("동료는 정말 게으르다", JUDGEMENT),
        ("Our intern is on the data team", None),
        ("Tim ist faul", JUDGEMENT),
        ("小王很懒", JUDGEMENT),
        ("田中さんは無能だ", JUDGEMENT),
        ("je suis nulle en tests", JUDGEMENT),
        ("Juan es un vago", JUDGEMENT),
        ("his SQL is bad", JUDGEMENT),
        ("the user's English is terrible", JUDGEMENT),
        ("用户的 SQL 很差", JUDGEMENT),
        ("我写代码很烂", JUDGEMENT),
        ("小王的代码写得很烂", JUDGEMENT),
        ("解析器重构到一半，接下来做词法分析", "the current task"),
        ("测试写了一半，还差三个文件", "the current task"),
        ("目前在改登录页", "the current task"),
        ("I finished the login page, the signup page is next", "the current task"),
        ("the migration is half done", "the current task"),
        ("PR 12 and PR 15 are waiting for review", "a list of pull requests or tickets"),
        ("parse 函数在 parser.py 第 40 行", "the location of a file"),
        ("登录的代码在 auth 目录", "the location of a file"),
        ("the login code is in the auth directory", "the location of a file"),
        ("Müller hat keine Ahnung von Datenbanken", JUDGEMENT),
        ("Der Müller versteht nichts von Tests", JUDGEMENT),
        ("Bob has no clue about SQL", JUDGEMENT),
        ("my boss knows nothing about testing", JUDGEMENT),
        ("Paul ne comprend rien aux bases de données", JUDGEMENT),
        ("Ana no tiene ni idea de SQL", JUDGEMENT),
        ("小王什么都不懂", JUDGEMENT),
        ("田中さんは仕事が遅い", JUDGEMENT),
        ("现在改到第三个文件了", "the current task"),
        ("I'm on the third file now", "the current task"),
        ("Ich bin jetzt bei der dritten Datei", "the current task"),
        ("今は三つ目のテストを直しているところです", "the current task"),
        ("our code uses the repository pattern everywhere", "the structure of the code"),
        ("我们的代码用的是仓储模式", "the structure of the code"),
        ("Unser Code folgt dem Repository-Muster", "the structure of the code"),
    ],
)
def test_excluded_kinds_and_judgements_are_recognized(said: str, kind: str | None) -> None:
    assert no_memory(said) == kind


@pytest.mark.spec("S8")
def test_facts_that_resemble_excluded_kinds_may_be_remembered() -> None:
    for said in (
        "I have no clue about SQL",
        "ich habe keine Ahnung von Datenbanken",
        "我对前端一窍不通",
        "the vendor knows nothing of our deadline, so don't mention it",
        "our team is on the third floor",
        "our code uses tabs",
        "下周三改到第三会议室开会",
        "我们正在把服务迁到新机房",
        "estoy aprendiendo Rust",
        "je suis nouvelle dans l'équipe",
        "soy malagueño",
        "Jenkins is slow on Mondays",
        "our project is on hold until May",
        "tickets start with #PAY",
        "我的网络很差，图片少一点",
        "我们的测试环境很差",
        "Docker's cache is useless on CI",
        "her laptop has no GPU",
        "my network is bad, so keep pictures small",
        "接口文档在 Confluence",
        "设计稿在 Figma 里",
        "the design files are in the shared folder",
        "we pay half in advance",
        "Anna is next on the rota",
        "版本 12 和 15 还在维护",
    ):
        assert no_memory(said) is None, said


@pytest.mark.spec("S7")
@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ("Retiens : la démo est en mai", "la démo est en mai"),
        ("Souviens-toi que la démo est en mai", "la démo est en mai"),
        ("N'oublie pas que la démo est en mai", "la démo est en mai"),
        ("Recuerda que la demo es en mayo", "la demo es en mayo"),
        ("Acuérdate de que la demo es en mayo", "la demo es en mayo"),
    ],
)
def test_a_french_or_spanish_request_to_remember_is_recognized(said: str, rule: str) -> None:
    assert asks_to_remember(said)
    assert noted(said).rule == rule


@pytest.mark.spec("S7")
def test_names_consist_of_the_words_that_carry_the_meaning() -> None:
    names = {
        "El lanzamiento es el lunes": "lanzamiento-lunes",
        "Die Abnahme beim Kunden ist am Freitag": "abnahme-beim-kunden-freitag",
        "Je suis développeuse mobile": "developpeuse-mobile",
        "Bitte keine Emojis in Commits": "keine-emojis-commits",
        "I'm a data engineer, new to Rust": "data-engineer-new-rust",
    }
    assert {rule: named(rule) for rule in names} == names


@pytest.mark.spec("S7")
@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Remember: the release is on Thursday", "release-thursday"),
        ("Remember: the release is on Thursday (2026-11-19)", "release-thursday"),
        ("Remember: the audit is in two weeks (about 2026-12-01)", "audit-two-weeks"),
        ("记住：上周 (2026-11-09 那一周)换了数据库", "上周换了数据库"),
        ("记住：上周（2026-11-09 那一周）换了数据库", "上周换了数据库"),
    ],
)
def test_a_date_is_a_plan_and_no_part_of_the_name(said: str, name: str) -> None:
    note = noted(said, "2026-11-17")
    assert (note.type, note.name) == ("project", name)
