"""Ordinary talk about code leaves no memory, and one wish in many phrasings leaves one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lamina.fork.fork import tagged
from lamina.layers.l5_extract.offline import answer
from lamina.layers.l5_extract.plan import render_directive
from lamina.layers.l5_extract.signals import find_signals
from lamina.memory.guard.sources import UserWords
from lamina.memory.store.scopes import MemoryLocation

TODAY = "2026-05-04"  # a Monday
PLACE = MemoryLocation(Path("/m"), None, "default")
NOTHING = [{"type": "text", "text": "There is nothing to keep."}]
DID = "I wrote the failing test before the fix."

ORDINARY = """
We never hit this branch in production, so the test is wrong.
I prefer the second option here, go with that one.
Never mind, I found it.
Always nice to see green tests!
I don't want that import there, remove it.
Stop running the server, the port is taken.
No more errors, thanks.
I have been using your patch and it crashes on startup.
I've been working on this bug since this morning.
I work on the login page while you fix the API.
I'd rather you split the function into two.
The release failed on Friday because the disk was full.
The bug was due to a migration that ran on Monday.
The request goes to https://api.example.com/v1/users and returns 404.
The error is logged to the dashboard twice, make it once.
The button is on the wrong board, move it to the left.
From now on the loop variable is called idx, rename the rest.
Going forward the parser needs two tokens of lookahead.
The tests are in the wiki folder.
Whenever you call flush the buffer is lost, why does that happen
In future versions of Python this is removed.
Never is a strong type in TypeScript.
Always returns None, that is the bug.
We always get a timeout when the queue is empty.
In the future we could cache that.
I'm the admin user in this test and still get a 403.
I'm a tester in the fixture, so the role check fails.
Don't call the API again, the first result is cached.
Ich arbeite im Moment am Parser.
Immer noch derselbe Fehler.
Nie gesehen, was bedeutet der Fehler in Zeile 3.
Die Logs sind im Ordner auf dem Board-Server.
以后再说吧，先修这个错误。
我不喜欢这个变量名，改一下。
我熟悉这个错误，是空指针。
数据迁移在周一失败了，看日志。
点击以后页面会刷新两次。
每次都报同样的错误。
これからテストを実行します。
毎回同じエラーが出ます。
この関数のほうがいいと思う。
その調子でテストも直して。
앞으로 가기 버튼이 동작하지 않아요.
매번 같은 오류가 나요.
이전 배포는 월요일에 실패했어요.
항상 null을 반환하는 버그를 고쳐 주세요.
The demo crashed on the 3rd click.
The holiday test fails before March 1 because of the leap year.
Il faut toujours le même résultat ici.
Prefiero la segunda opción.
Please never delete rows in this migration.
Perfect, keep doing that until all files are converted.
Weiter so mit den restlichen Dateien.
Never seen that warning before, what is it about?
Never got past the login screen, see the screenshot.
Always the same stack trace, no matter which branch I build.
From now on it only fails in CI, locally it is green.
Stop, that is the wrong file.
Stop using the old client in utils.py and call the new one.
No more than three retries, then give up.
I prefer the first version you wrote, bring it back.
I'd rather not touch the schema now.
I don't like the name of this variable.
I hate when this happens, the cache is stale once more.
I don't want to break the API, so keep the old signature.
Please don't change anything else yet.
Don't worry about the types, I will fix them.
Don't run it again until I have restarted the database.
The client should never retry on a 400.
Always check for None before you call len on it here.
Every time you run the migration it drops the index, find out why.
Whenever you press Enter, the form is submitted twice.
We never merged that branch, so the flag is still off.
We always validate the token in the middleware, so remove it from the handler.
Going forward, step three of the plan is the refactoring.
In future we may need a second region.
As a rule the planner picks the wrong index here.
I'm the owner of the repo but the push is rejected.
I'm an idiot, the file was not saved.
I'm in charge of the merge conflict, you do the tests.
I work in a virtualenv and the import still fails.
I work on the frontend branch at the same time, so pull first.
I have been using pytest -x to find the first failure.
I've been doing this by hand, write a script for it.
I've never used this flag, what does it do?
My name is not shown in the header after login.
My first language model call returns an empty string.
I am responsible for the crash, I deleted the row.
As a user I want to see my orders, that is the story to implement.
The class Lead has a field i am not sure about.
We released it on Tuesday and since then memory grows.
The release on Monday broke the login.
The deadline timer fires on the 31st although the month has 30 days.
The job is due to start on Sunday at midnight but cron skips it.
The contract test fails from Monday on.
Migrating the table took until Friday.
The demo page shows the wrong date, it says 2026-05-01.
The function returns the due date, for example 2024-02-29.
Set the release date to 2026-06-01 in the changelog.
If the release is on Friday the banner should be red.
The logs are at https://ci.example.com/job/12, look for the first error.
The response is at https://example.com/api, parse it as JSON.
I get redirected to https://login.example.org and then to the wiki.
The message is posted to the wrong channel, fix the id.
The link in the docs is https://example.org/old, replace it.
The board is in a 2D array.
Tickets are in the tickets table, channel is a column.
Notifications go to Slack twice, please deduplicate them.
Sentry is reporting a TypeError in checkout.
Keep doing that for the other three modules.
Keep it this way and run the tests.
Do it like this again for the second endpoint.
Exactly, keep going.
Yes, like that. Now the next file.
Great, that works now.
Immer wenn ich auf Speichern klicke, stürzt es ab.
Nie im Leben sind das 3 Sekunden.
Ich bin der Meinung, dass der Test falsch ist.
Ich arbeite im Branch feature-x weiter.
Künftig liefert die Schnittstelle ein Array, passe den Parser an.
Der Vertrag läuft im Test am Montag ab, das ist falsch.
Die Veröffentlichung am Freitag ist fehlgeschlagen.
Die Meldungen werden im falschen Kanal auf Slack angezeigt.
In Zukunft wird das Feld null sein, behandle den Fall.
登录以后页面是空白的。
修改以后再运行一遍测试。
以后可能会有并发问题。
每次提交表单都会报错。
不要再改了，先看看日志。
我负责写测试，你来改代码。
我用的是三年前的版本。
周一发布的版本有内存泄漏。
把日志记录在文档里的那一段删掉。
我喜欢这个方案，就这么改。
次から次へとエラーが出ます。
今後の課題は並列化です。
これからデプロイします。
必ずnullが返ってきてしまいます。
金曜日のリリースで壊れました。
このボタンのほうが好きです。
私は開発者モードを有効にしました。
앞으로 스크롤하면 화면이 깨져요.
다음부터 세 줄을 지워 주세요.
항상 같은 값이 나와요, 고쳐 주세요.
월요일 배포 때문에 오류가 났어요.
저는 개발자 도구에서 오류를 봤어요.
Toujours la même erreur après le redémarrage.
Je préfère la deuxième version, garde celle-là.
Siempre devuelve null, arréglalo.
Nunca llega a la segunda línea del bucle.
Le déploiement de vendredi a échoué.
El error sale en https://example.com/login cuando entro.
Always use the cached value when the key is present, otherwise the loop never ends.
Never run two migrations in parallel, the lock table shows why it hung.
Make the button blue and keep the old class name.
Keep the tests as they are, only change the import.
Write a function that always returns a sorted list.
Use a context manager so the file is always closed.
Add a retry, but never more than five attempts.
Ask the user for a name and never store the password.
Start the server and leave it running.
I prefer not to upgrade yet.
I prefer Redis for the session store, switch the config.
I prefer composition, so split the base class.
I like it when the tests are green.
I love it, ship it.
I want your opinion on the second approach.
I would like your answers to the three points above.
You must never await inside the lock, the linter says.
You should always get a 200 from the health check, I get a 503.
Whenever you have time, please look at the flaky test.
Each time you call next, always one element is missing.
From now on we use version 2 of the endpoint, update the client.
From now on use the new logger in all handlers, start with auth.py.
Going forward make the parser strict.
In the future, add a cache to the resolver.
Stop adding the header twice.
Stop using globals and pass the config as an argument.
Don't add comments any more to the SQL, it breaks the parser.
No, do not touch main.py, only the helper.
I'm a user with role editor and I see the delete button.
I'm a step further, the build passes now.
I'm a student in the seed data, id 14.
I'm an engineer short this week, so the review takes longer.
I'm new to this repo, where is the entry point?
I'm still waiting for the build.
I've been maintaining a list of failing tests in notes.txt.
I've used the debugger for an hour and found nothing.
I work for two hours on this and get nowhere.
My job is stuck in the queue.
My role is editor but the menu is hidden.
We ship the assets with the wheel, see MANIFEST.in.
We release the lock on the next tick.
We migrate the data in batches of 1000, starting on row 1.
We freeze the object after the 3rd call.
The release is in the next tag, v2.1.
The migration is on the next line.
The demo is at the end of May in the sample data.
The token will be ready by the next tick.
The contract ends on 2026-12-31 in row four, sort by that.
The audit log must be done before next steps run.
The metrics are in Grafana but the panel is empty.
Docs are in the docs folder, build them with sphinx.
Our Slack bot lives in bots, in slack.py.
The webhook is documented at https://api.slack.com/messaging, use the blocks format.
The payload is described at https://example.org/spec, section 4.
The issue is on GitHub, number 231.
Keep doing this loop until the queue is empty.
Do it like that in every handler.
Perfect, thanks!
Yes, exactly how I want it to look.
Looks good, keep it.
Bitte immer den Index prüfen, bevor du in die Liste greifst, sonst stürzt es ab.
Bitte nimm immer die zweite Spalte aus der CSV.
Ich bin jetzt beim dritten Test.
Ich arbeite bei Zeile 40 weiter.
Ich bevorzuge Variante B.
Das Release ist am Montag im Kalender doppelt eingetragen.
Ab jetzt läuft der Server auf Port 9000.
Wir liefern die Daten am Ende als JSON.
以后缀 .bak 结尾的文件都不要读。
以后端返回的数据为准，不要用缓存。
请一律返回 404。
我喜欢，就用它吧。
我是说测试那一步。
我是想先写测试。
点击发布按钮以后，周三的数据不见了。
发布按钮在周一是灰色的。
日志在 Sentry 里能看到，帮忙定位一下。
毎回ログを出すようにしてください。
常にtrueになるようにしてください。
これからは別のテーブルを見る実装に変えてください。
リリースボタンは金曜日だけ押せる仕様です。
앞으로는 이 API가 배열을 돌려줘요.
항상 마지막 줄을 실행해 주세요.
배포 버튼은 금요일에만 보여야 해요.
Can we make the retry configurable? Default should be three.
The endpoint always answers with 200, even when the body is empty.
Please run the whole suite and tell me which tests fail.
Never saw a segfault in pure Python, interesting.
Keep the answer in a variable and print it at the end.
Write your answer to out.txt.
Use snake_case for the new columns.
Don't commit yet.
Do not use eval, parse the expression instead.
Please don't push, I want to review it first.
I prefer if we do this in two steps.
I like the second diff more.
I want a button that opens the dialog.
Never trust user input, add validation to the form handler.
Always log the request id in the gateway, we need it for the trace.
Avoid the N+1 query in orders.
From now on every request needs a token, so the old tests get a 401.
Going forward I'd split this in two packages, what do you say?
We use Postgres 15 in production.
We never write to that bucket.
I'm a little lost, where does the config come from?
I'm a fan of this approach.
I'm on the main branch and the file is missing.
I'm new here, so explain the folder layout.
I have used both and the second is slower.
I've written a small reproduction, see repro.py.
My background job dies after ten minutes.
I work around it with a sleep for the time being.
We deployed on Thursday and rolled back an hour later.
The release notes are due, write them from the git log.
The freeze happens on every third frame.
The launch script must be executable.
The deadline is passed as the second argument.
Due to the holiday the cron job on Monday did nothing.
Release 2.3 is on PyPI since Tuesday.
The ticket is in Jira as OPS-12, the fix goes to branch ops-12.
The docs say https://example.org/api/v2, we call v1.
See https://docs.python.org/3/library/re.html for the syntax.
The API lives at https://api.example.com and needs a key.
Alerts are in Datadog twice since the deploy.
Yes, do it like that.
Perfect, now the same for the other page.
Keep going.
Die Funktion gibt immer None zurück.
Bitte nie den Cache leeren, solange der Test läuft.
Ich bin gleich fertig mit dem Review.
Ich bin neu hier, wo liegt die Konfiguration?
Ab jetzt schlägt der Build fehl.
Die Tickets sind in Jira schon geschlossen.
Die Abnahme am Montag lief gut.
以后这个接口会废弃。
用户登录以后请跳转到首页。
我喜欢蓝色的按钮，改成蓝色。
我是在本地开发，所以没有证书。
周五上线的功能有问题。
测试结果放在飞书文档里了，你看一下有什么问题。
今後はこのAPIを使うことになりました。
いつも同じところで止まります。
エラーはSentryにあります。
来週リリースした後に直します。
앞으로는 로그인 없이 접근하면 401을 보내 주세요.
매번 다른 결과가 나와요.
저는 지금 로컬에서 개발 중이에요.
다음 주 배포 전에 이 테스트를 고쳐 주세요.
Je suis développeur dans la base de test, id 7.
Le test échoue toujours sur la CI.
A partir de maintenant ça marche, merci.
Siempre que abro la página se bloquea.
Prefiero que lo hagas en dos pasos.
Soy el usuario admin y no puedo entrar.
Never use a mutable default argument, that is what bites us in load().
Always show a spinner while data is loading.
Please always sort by date descending.
Write the file atomically, never leave half of it.
Use async everywhere in the client from now on.
Keep the state in a store, always.
I prefer dark mode as the default, can be a setting.
I prefer Option A.
Don't use any more threads than cores.
From now on show an error when the name is empty.
Never delete users, set a flag instead.
You must always close the cursor.
I'm a parent component and my child gets no props.
I'm a maintainer of left-pad, is that relevant?
We launch the worker on Monday mornings via cron.
The release branch is cut by the bot.
Our demo data ends in March.
The migration will run before Friday's backup.
Our metrics are in Grafana, add a panel for latency.
The design is in Figma, build the header from it.
Ab jetzt nur noch ein Fehler.
以后用户名不能重复。
请每次都先清空表。
Our deadline is set in config.toml.
Thanks, that fixed it.
Why do you always add a newline?
The issues are tracked in a map.
I have never used that much memory.
My name is on the list.
The wiki is at /wiki.
Die Frist ist als Konstante definiert.
""".strip().splitlines()

KEPT = [
    ("Please always answer in English.", "feedback"),
    ("From now on, write commit messages in the imperative.", "feedback"),
    ("Don't ever push to main without asking me.", "feedback"),
    ("I prefer pytest over unittest.", "feedback"),
    ("Never use em dashes in your answers.", "feedback"),
    ("Please keep your answers short from now on.", "feedback"),
    ("You should always run the linter before you commit.", "feedback"),
    ("Stop apologising all the time.", "feedback"),
    ("I work as a nurse and write small scripts.", "user"),
    ("I'm new to Kubernetes.", "user"),
    ("I'm a frontend developer at a bank.", "user"),
    ("The release is due on Friday.", "project"),
    ("We ship version 3 on 2026-06-01.", "project"),
    ("The code freeze starts next Monday.", "project"),
    ("Our incidents are tracked in PagerDuty.", "reference"),
    ("The design docs live in Confluence under Platform.", "reference"),
    ("Bitte antworte ab jetzt immer auf Deutsch.", "feedback"),
    ("Ich arbeite als Lehrerin.", "user"),
    ("Ab jetzt keine Emojis mehr.", "feedback"),
    ("以后请用中文回答。", "feedback"),
    ("我是前端开发，刚接触 Rust。", "user"),
    ("我们的任务都在 Jira 上跟踪。", "reference"),
    ("今後は日本語で答えてください。", "feedback"),
    ("私はバックエンドエンジニアです。", "user"),
    ("앞으로는 한국어로 대답해 주세요.", "feedback"),
    ("저는 데이터 분석가입니다.", "user"),
    ("Yes, keep putting the tests next to the code, always.", "feedback"),
    ("Never force-push to shared branches.", "feedback"),
    ("Always write tests before the implementation, please.", "feedback"),
    ("I prefer functional components over classes.", "feedback"),
    ("Going forward, please use British spelling.", "feedback"),
    ("Don't ever delete my branches without asking.", "feedback"),
    ("I hate it when you summarise what you just did.", "feedback"),
    ("Please keep your replies brief.", "feedback"),
    ("Please stop apologizing.", "feedback"),
    ("Whenever you change the schema, please also update the docs.", "feedback"),
    ("I'm a PhD student in biology.", "user"),
    ("I've been writing Go for ten years, but React is new to me.", "user"),
    ("I'm a product manager, not a programmer.", "user"),
    ("We're shipping the beta on March 3.", "project"),
    ("Our deadline is next Friday.", "project"),
    ("I'm on vacation from Monday until the 20th.", "project"),
    ("All our design docs are kept in Notion.", "reference"),
    ("Our runbooks live at https://wiki.example.org/ops.", "reference"),
    ("The roadmap is in Linear.", "reference"),
    ("Bitte künftig auf Englisch antworten.", "feedback"),
    ("Nie direkt auf main pushen.", "feedback"),
    ("Ich bin Datenwissenschaftlerin bei einer Versicherung.", "user"),
    ("Der Release ist am nächsten Freitag.", "project"),
    ("以后回答请尽量简短。", "feedback"),
    ("我更喜欢用 pnpm 而不是 npm。", "feedback"),
    ("今後はコメントを英語で書いてください。", "feedback"),
    ("앞으로는 커밋 메시지를 영어로 써 주세요.", "feedback"),
]


@pytest.mark.spec("O1", "S8")
def test_ordinary_talk_about_code_leaves_nothing() -> None:
    assert {text: found for text in ORDINARY if (found := list(find_signals(text)))} == {}


@pytest.mark.spec("O1", "B15")
def test_a_standing_wish_a_role_a_plan_and_a_place_are_kept() -> None:
    found = [(text, [each.signal for each in find_signals(text)]) for text, _ in KEPT]
    assert found == [(text, [signal]) for text, signal in KEPT]


def message(role: str, *texts: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text} for text in texts]}


def review(*before: dict[str, Any], said: tuple[str, ...], listed: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """The calls of a review over these user messages."""
    asked = tagged(render_directive([UserWords("m", words) for words in said], listed, PLACE, today=TODAY), "extraction")
    return answer({"messages": [*before, message("user", asked)], "tools": [{"name": "Read"}, {"name": "Write"}]})


def quotes(calls: list[dict[str, Any]]) -> list[str]:
    return [call["input"]["content"].partition("\n---\n\n")[2].split("\n")[0] for call in calls]


@pytest.mark.spec("O1", "X4")
def test_all_texts_of_a_message_are_looked_at() -> None:
    texts = ("I'm a backend engineer.", "Rename x to count.", "I prefer tabs.")
    calls = review(message("user", *texts), message("assistant", DID), said=("\n".join(texts),))
    assert quotes(calls) == ["I'm a backend engineer.", "I prefer tabs."]


@pytest.mark.spec("O1", "X4")
def test_a_message_that_was_reviewed_is_not_looked_at_again_where_two_come_as_one() -> None:
    turns = (message("user", "I'm a backend engineer.", "I prefer tabs."), message("assistant", DID))
    assert quotes(review(*turns, said=("I prefer tabs.",))) == ["I prefer tabs."]
    assert quotes(review(*turns, said=("I'm a backend engineer.", "I prefer tabs."))) == [
        "I'm a backend engineer.",
        "I prefer tabs.",
    ]


def test_the_same_beginning_twice_in_a_range_counts_twice() -> None:
    turns = (message("user", "ok"), message("assistant", DID), message("user", "I prefer tabs."), message("assistant", DID))
    again = (message("user", "ok"), message("assistant", DID))
    assert quotes(review(*turns, *again, said=("ok", "I prefer tabs.", "ok"))) == ["I prefer tabs."]


SHORT = (
    "I prefer short answers.",
    "Please keep your answers short.",
    "From now on, give me brief replies.",
    "Always answer briefly.",
    "Make your responses concise.",
    "以后请简短回答。",
)


def line(about: str) -> str:
    return f"- [feedback] wish.md (2026-04-01T10:00:00Z): {about}"


@pytest.mark.spec("O1", "S6")
@pytest.mark.parametrize("there", SHORT)
@pytest.mark.parametrize("new", SHORT)
def test_one_wish_in_other_words_is_one_memory(there: str, new: str) -> None:
    assert review(message("user", new), said=(new,), listed=(line(there),)) == NOTHING
    both = review(message("user", there), message("assistant", DID), message("user", new), said=(there, new))
    assert quotes(both) == [there]


@pytest.mark.spec("S6")
def test_a_wish_with_more_to_it_takes_the_place_of_the_shorter_one() -> None:
    more = "Always answer briefly in German."
    [read] = review(message("user", more), said=(more,), listed=(line("I prefer short answers."),))
    assert (read["name"], read["input"]) == ("Read", {"file_path": "/m/wish.md"})


@pytest.mark.parametrize("new", ["Never use tabs.", "Always use spaces.", "Always write tests first."])
def test_another_wish_is_another_memory(new: str) -> None:
    [call] = review(message("user", new), said=(new,), listed=(line("Always use tabs."),))
    assert call["name"] == "Write"
    assert call["input"]["file_path"] != "/m/wish.md"


@pytest.mark.spec("O1")
@pytest.mark.parametrize(
    "before",
    [
        "Noted.",
        "Done.",
        "I will remember that from here on.",
        "The server listens on port 8000 by default.",
        "",
    ],
)
def test_an_approval_of_what_nobody_can_name_leaves_nothing(before: str) -> None:
    words = "Great, keep doing that."
    assert review(message("user", "Go on."), message("assistant", before), message("user", words), said=(words,)) == NOTHING
    assert len(review(message("user", "Go on."), message("assistant", DID), message("user", words), said=(words,))) == 1


@pytest.mark.spec("O1")
@pytest.mark.parametrize(
    "said",
    [
        "Nach dem 18. werden nur noch Hotfixes gemerged.",
        "Ab dem 20. wird nichts mehr gemerged.",
        "Die Halle ist vom 3. bis 20. Juli gesperrt.",
        "From May on, Dr. Haas decides what goes into the trial protocol.",
        "Ab Mai betreut Prof. Yilmaz die Schnittstelle zum Finanzamt.",
    ],
)
def test_the_point_of_a_day_or_a_title_ends_no_sentence(said: str) -> None:
    assert [found.quote for found in find_signals(said)] == [said]


@pytest.mark.spec("O1")
def test_a_date_that_is_over_is_no_deadline() -> None:
    for words, calls in (("The release is on 2026-05-01.", 0), ("The release is on 2026-06-01.", 1)):
        assert sum(call["type"] == "tool_use" for call in review(message("user", words), said=(words,))) == calls
