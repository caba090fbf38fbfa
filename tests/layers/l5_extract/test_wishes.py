"""Standing wishes without "always": kept with their reason, and told apart from commands about the current task."""

from __future__ import annotations

import pytest

from lamina.layers.l5_extract.offline import UserText, plan_memories
from lamina.layers.l5_extract.plan import ExtractDirective
from lamina.layers.l5_extract.signals import find_signals
from lamina.providers.offline.memory_note import named

TODAY = "2026-05-04"  # a Monday
ASKED = ExtractDirective(1, TODAY, "m", "", "")

WISHES = """
No emojis in commit messages.
I always want the failing test first.
I prefer tabs over spaces.
Don't mock the database in tests, it hid a bug.
Don't touch the generated files, because the next build overwrites them.
I'd rather have one long function than ten tiny ones.
Whenever you write SQL, put the keywords in upper case.
Show me the plan before you start coding.
Please keep commit messages in the imperative mood.
For this repo, we use conventional commits.
Ändere nie die generierten Dateien, weil der nächste Build sie überschreibt.
不要直接改生成的文件,因为下次构建会覆盖掉。
动手之前先给我看方案。
新しい依存を入れる前に必ず聞いてください、法務の承認が必要なので。
생성된 파일은 수정하지 마세요, 다음 빌드에서 덮어쓰니까요.
I like small commits.
Please don't add comments that repeat the code.
Ask me before you install a new dependency.
When you show me a diff, leave out generated files.
Stop summarising what you did at the end of every answer.
Stop summarising what you did.
Can you stop apologising in every reply?
From here on, give me the diff only.
Never touch the vendored code, upstream syncs overwrite it every night.
You don't need to explain basic Git commands to me.
Hör auf, am Ende alles zusammenzufassen.
Kommentare im Code bitte auf Englisch.
别再在结尾总结了。
请不要自动提交代码。
每次改完代码都要先跑测试再提交。
コミットメッセージに絵文字を使わないでください。
毎回最後に要約を書くのはやめてください。
絵文字を使わないでください。
コミットメッセージは日本語で書いてください。
변수 이름에 약어를 쓰지 마세요.
Schreib die Kommentare bitte auf Englisch, unsere Kollegen in Prag lesen kein Deutsch.
커밋 메시지에 이모지를 쓰지 마세요.
"""
TASKS = """
No tests were run, the runner crashed.
Don't open the file twice, it locks.
Stop summarising this file.
Can you stop the server?
Could you always return a list?
From here on, use the cache.
Never call the hook, the parser frees it twice.
Keep class names in the test file.
Pushe nie Werte auf den Stack.
Don't commit because the tests are red.
Don't touch that line because the next build overwrites it.
不要提交,因为测试还没过。
行吧,以后都别测试了,多省事。
Don't commit, the tests are red.
Don't worry about tests, it is a prototype.
I want tests for calc and parse.
Add tests, otherwise coverage drops.
Use print, it is faster to debug.
Merge main - the conflict is trivial.
Show me the code before you change it.
When you add an item, show a toast.
Stop asking me for the password every time, cache it.
You don't need to write tests, I have some.
No emojis in the output, the terminal shows boxes.
Sure, never test anything, what could go wrong.
The logs go into Datadog when I enable debug.
Messages are in Slack format.
We are moving the button this sprint, update the CSS.
I'm learning a lot from your answers.
I'm a terrible programmer.
If we used pnpm, I would prefer small commits.
Keine Tests gefunden.
Ich will keine Tests, nur den Fix.
Am Montag ist das Release-Skript abgestürzt.
别提交，测试没过。
每次点击都要等三秒。
代码里不要的部分删掉。
テストが通らないのでコミットしないでください。
メッセージが表示されないようにしてほしい。
커밋하지 마세요, 테스트 중이에요.
"""


def _signals(text: str) -> list[str]:
    return [found.signal for found in find_signals(text)]


@pytest.mark.spec("O1", "S7", "S8")
def test_a_wish_for_every_task_is_kept_and_a_command_for_this_one_is_not() -> None:
    assert [text for text in WISHES.split("\n") if text and _signals(text) != ["feedback"]] == []
    assert {text: found for text in TASKS.split("\n") if (found := _signals(text))} == {}


@pytest.mark.spec("O1", "S7")
@pytest.mark.parametrize(
    ("said", "rule", "why"),
    [
        ("Use pnpm instead of npm — the lockfile breaks otherwise.", "Use pnpm instead of npm", "the lockfile breaks otherwise."),
        ("Don't mock the database in tests, it hid a bug.", "Don't mock the database in tests", "it hid a bug."),
        ("Write dates as ISO 8601, otherwise our importer breaks.", "Write dates as ISO 8601", "otherwise our importer breaks."),
        ("Never squash my commits, since I bisect a lot.", "Never squash my commits", "I bisect a lot."),
        (
            "Verwende pnpm statt npm, weil sonst das Lockfile kaputtgeht.",
            "Verwende pnpm statt npm",
            "sonst das Lockfile kaputtgeht.",
        ),
        ("不要在测试里模拟数据库，因为上次掩盖了一个错误。", "不要在测试里模拟数据库", "上次掩盖了一个错误。"),
        ("变量名不要用拼音，否则国外同事看不懂。", "变量名不要用拼音", "否则国外同事看不懂。"),
        (
            "テストではモックを使わないでください。以前バグを見逃したからです。",
            "テストではモックを使わないでください",
            "以前バグを見逃した",
        ),
        ("테스트에서 모킹하지 마세요. 예전에 버그를 놓쳤거든요.", "테스트에서 모킹하지 마세요", "예전에 버그를 놓쳤거든요."),
    ],
)
def test_the_reason_of_a_wish_is_kept_as_its_why(said: str, rule: str, why: str) -> None:
    [plan] = plan_memories(ASKED, [UserText(said, "")])
    assert (plan.note.type, plan.note.rule.rstrip(".。"), plan.note.why) == ("feedback", rule, why)


@pytest.mark.spec("S7")
def test_a_plan_has_its_date_and_a_readable_name() -> None:
    [plan] = plan_memories(ASKED, [UserText("We're freezing merges on Thursday because of the audit.", "")])
    assert (plan.note.type, plan.note.name) == ("project", "freezing-merges-thursday")
    assert plan.note.description == "We're freezing merges on Thursday (2026-05-07)"
    [role] = plan_memories(ASKED, [UserText("I'm a data engineer and I don't know SQL.", "")])
    assert role.note.name == "data-engineer-not-know-sql"


@pytest.mark.spec("O1")
def test_the_point_of_a_german_day_ends_no_sentence() -> None:
    [plan] = plan_memories(ASKED, [UserText("Die Beta geht am 4. Dezember an die Kunden.", "")])
    assert plan.note.rule == "Die Beta geht am 4. Dezember an die Kunden."


@pytest.mark.parametrize(("said", "name"), [
    ("I'm a data engineer, new to Rust.", "data-engineer-new-rust"),
    ("Postmortems go into the Notion space called Incidents.", "postmortems-go-notion-space-called"),
    ("You'll find the latency dashboard at https://grafana.example.com/d/latency.", "find-latency-dashboard"),
    ("验收截止日期是11月30日。", "验收截止日期是11月30日"),
])  # fmt: skip
def test_a_name_has_whole_words_and_no_address(said: str, name: str) -> None:
    assert named(said) == name


@pytest.mark.spec("O1", "S7")
@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ("Never deploy on Fridays.", "Never deploy on Fridays."),
        ("Please never mock the database.", "Please never mock the database."),
        ("Always squash before you merge.", "Always squash before you merge."),
        ("Deploye nie am Wochenende.", "Deploye nie am Wochenende."),
        ("Don't deploy on Fridays.", "Don't deploy on Fridays."),
        ("No deploys on Fridays, please.", "No deploys on Fridays, please."),
        ("We don't merge on weekends.", "We don't merge on weekends."),
        ("Keine Deployments am Wochenende.", "Keine Deployments am Wochenende."),
        ("周五不要发布。", "周五不要发布。"),
        ("Ne déploie jamais le vendredi.", "Ne déploie jamais le vendredi."),
        ("Nunca hagas commits en main.", "Nunca hagas commits en main."),
        ("Never deploy on a Friday, since it wakes the engineer on call.", "Never deploy on a Friday"),
    ],
)
def test_an_order_for_all_times_about_how_the_team_works_is_kept(said: str, rule: str) -> None:
    [found] = find_signals(said)
    assert (found.signal, found.parts.rule) == ("feedback", rule)


@pytest.mark.spec("O1", "S7")
@pytest.mark.parametrize(
    "said",
    [
        "Never touch the legacy folder.",
        "Always cite the page number.",
        "Let's never store raw card numbers.",
        "Never open the safe without a second person.",
        "From now on, never put peanuts in the recipes.",
        "绝对不要动 legacy 目录。",
        "今后报表都要带日期。",
        "다시는 제 파일을 지우지 마세요.",
        "Immer zuerst die Tests laufen lassen.",
        "Ne jamais écrire de secrets dans les journaux.",
        "No subas nunca claves al repositorio.",
    ],
)
def test_a_short_order_with_a_word_of_permanence_is_kept_without_a_reason(said: str) -> None:
    [found] = find_signals(said)
    assert (found.signal, found.parts.rule, found.parts.why) == ("feedback", said, "")


@pytest.mark.spec("S7", "S8")
@pytest.mark.parametrize(
    "said",
    [
        "Never enough time for the tests.",
        "Never made a chart in my life.",
        "Always off by one.",
        "Always round the total in the second row up.",
        "Never delete users, set a flag instead.",
        "Never open the safe in this scene.",
        "Don't know if anybody ever ran the script.",
        "We never see the log line.",
        "以后端返回的数据为准就都要改。",
        "以后就不必须重启了。",
        "Leider nie probiert.",
        "Habe nie Probleme damit gehabt.",
        "N'a jamais fonctionné chez moi.",
        "Llega siempre tarde.",
        "항상 마지막 줄을 실행해 주세요.",
    ],
)
def test_what_only_sounds_like_an_order_for_all_times_is_not_kept(said: str) -> None:
    assert list(find_signals(said)) == []


@pytest.mark.spec("S7", "S8")
@pytest.mark.parametrize(
    "said",
    [
        "Don't deploy it yet, one check is still running.",
        "Never merge that branch, it is still broken.",
        "Never commit this file.",
        "No deploy on Friday last week, as far as I know.",
        "We didn't deploy on Mondays back then.",
        "上周五没有部署。",
        "The cron job never deploys on Fridays.",
        "She says never deploy on Fridays.",
        "Great, always push to production without tests, what could go wrong.",
        "Never seen a deploy fail like this.",
        "Should we never deploy on Fridays?",
        "If we never deployed on Fridays, would that help?",
        'The sign reads "never deploy on Fridays".',
    ],
)
def test_an_order_for_now_a_fact_and_a_joke_are_not_kept(said: str) -> None:
    assert list(find_signals(said)) == []


@pytest.mark.spec("O1", "S7")
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("周五不要发布，上次回滚了一整晚。", "上次回滚了一整晚。"),
        ("Never deploy on a Friday, the last one woke half the team.", "the last one woke half the team."),
        ("No deploys on Fridays: we were called out twice.", "we were called out twice."),
        ("No deploys on Fridays, please.", ""),
        ("Never deploy on Fridays, Saturdays or Sundays.", ""),
    ],
)
def test_the_reason_of_such_an_order_needs_no_word(said: str, why: str) -> None:
    [found] = find_signals(said)
    assert (found.signal, found.parts.why) == ("feedback", why)


@pytest.mark.parametrize(
    "message",
    [
        "why did we drop redis? {}",
        "{} Why did we drop Redis?",
        "Which port does it use? {} And which host?",
    ],
)
@pytest.mark.parametrize("wish", ["Please always use tabs here.", "Please always use tabs in Go.", "I prefer tabs over spaces."])
def test_a_question_beside_a_wish_does_not_hide_it(message: str, wish: str) -> None:
    assert [found.quote for found in find_signals(message.format(wish))] == [wish]


@pytest.mark.parametrize(
    ("sentence", "kept"),
    [
        ("Never use any in this codebase.", True),
        ("Please always write tests in this repo.", True),
        ("Always use tabs here!", True),
        ("Always return null here.", False),
        ("Please always use a mutex here.", False),
        ("Always call it here.", False),
        ("Never do that in this project now.", False),
    ],
)
def test_an_order_for_a_whole_project_is_told_from_one_for_the_code_at_hand(sentence: str, kept: bool) -> None:
    assert bool(list(find_signals(sentence))) is kept
