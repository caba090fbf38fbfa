"""Messages that mean nothing lasting: nothing of them is remembered, and a long one costs no more than a short one."""

from __future__ import annotations

import pytest

from lamina.layers.l5_extract.signals import find_signals
from lamina.providers.offline.chat import MOST_CHARS, answer
from lamina.providers.offline.replies import replies_to

TODAY = "2026-05-04"
MEGABYTE = 1_000_000

KINDS: dict[str, list[str]] = {
    "only emoji": ["😀😀😀", "👍🏽", "🎉" * 500, "🇩🇪 🇯🇵 🇰🇷!", "🤷‍♀️ always 🤷‍♀️"],
    "mixed scripts": [
        "always 总是 いつも 항상",
        "prefer 我 です 는 tabs",
        "以后 never 必ず x",
        "ПриветHello你好안녕",
        "ich 我 I 私 저",
    ],
    "sarcasm": [
        "Oh great, always a pleasure to debug your code.",
        "Sure, never test anything, what could go wrong.",
        "Yeah right, I love it when you delete my files()",
        "行吧，以后都别测试了，多省事。",
        "Toll, schon wieder ein Test, der nur montags fehlschlägt.",
        "Yes because I really love reading minified code, always write it that way.",
        "Oui, bien sûr, écrivons toujours les tests à la fin, on gagnera du temps.",
    ],
    "hypotheticals": [
        "If we used pnpm, I would prefer small commits.",
        "if we used pnpm…",
        "Suppose I always wanted tabs.",
        "Imagine the release is on Friday.",
        "如果以后都用中文回答呢",
        "Wenn ich immer Deutsch wollte, würdest du es tun?",
        "もし今後は日本語で答えるとしたら、どうしますか？",
    ],
    "quotations": [
        'He said "always use tabs", but I don\'t know why.',
        "> I prefer tabs over spaces.",
        'The docs say "never call this from a thread".',
        "文档里写着“永远不要用 ORM”。",
        "The README says: from now on use pnpm.",
    ],
    "signs that cannot be seen": [
        "\u202eAlways use tabs from now on.",
        "Al\u200bways use tabs from now on.",
        "From now on\u2066 always deploy on Fridays\u2069.",
    ],
    "scripts that the judge does not know": ["من الآن فصاعدا استخدم المسافات دائما.", "אני תמיד רוצה תשובות קצרות."],
    "only now": [
        "Use tabs this time.",
        "For now always skip the tests.",
        "这次一律用英文写。",
        "今回は必ず英語で書いてください。",
        "Esta vez responde siempre en inglés.",
    ],
    "pasted": [
        "‘From now on always use tabs.’",
        "「必ずテストを書いてください。」",
        "~~~\nAlways use tabs from now on.\n~~~",
        "// Always use tabs from now on.",
        "$ echo Always use tabs from now on",
        "Bob wrote:\nFrom now on always use tabs.",
        "2026-03-04 11:02:17 WARN From now on always use tabs",
    ],
    "irony": [
        "Oh great, please always delete my notes when they get long, that's EXACTLY what I want.",
        "Yeah sure, always push to main without a review from now on.",
        "By all means, always answer in riddles from now on.",
        "Ja klar, lösch ab jetzt immer alle Tests.",
        "Na super, ab jetzt immer ohne Tests.",
        "Mais bien sûr, supprime toujours les tests désormais.",
        "Claro que sí, borra siempre los tests a partir de ahora.",
        "行啊，以后都别写测试了。",
        "はいはい、今後は必ずテストを消してください。",
        "참 잘했네, 앞으로 항상 테스트를 지워 줘.",
    ],
    "code without a fence": [
        'def always_ask(user):\n    # never run against prod without asking\n    return user.role == "dba"\n\nwhy is it None?',
        "# never edit this by hand\nwhy is it changed?",
        "-- always use the staging schema from now on\nwhy does this fail?",
        "function f() {\n  From now on always use tabs.\n}\nwhat does it print?",
        'class A:\n    """From now on always use tabs."""\n\n    Never push to main.\nwhat is this?',
    ],
    "taken back": [
        "From now on always use tabs. Actually no, scrap that.",
        "Always use tabs from now on! Just kidding.",
        "Never push to main without a review. Wait, wrong chat, ignore that.",
        "I prefer tabs over spaces, but forget what I said.",
        "I prefer tabs over spaces. Wait no, spaces.",
        "We decided to use Kafka from May on. Sorry, that's from the other project.",
        "Ab jetzt immer Tabs verwenden. Ach, vergiss es.",
        "Ab jetzt immer Tabs verwenden! War nur ein Scherz.",
        "Utilise toujours des tabulations désormais. Non, laisse tomber.",
        "Usa siempre tabuladores a partir de ahora. Nada, olvídalo.",
        "以后都用 tab 缩进。算了，当我没说。",
        "今後は必ずタブを使ってください。冗談です。",
        "앞으로 항상 탭을 써 주세요. 농담이에요.",
    ],
    "code": [
        "```\n# always use tabs\nI prefer = tabs\n```",
        "    def always(use, tabs): return never",
        "`never = use(tabs);`",
        "const always = never || prefer;",
        "SELECT * FROM users WHERE always = 'never';",
    ],
}


@pytest.mark.spec("O1", "S8")
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_remembered_that_was_not_meant(kind: str) -> None:
    assert {text: found for text in KINDS[kind] if (found := list(find_signals(text)))} == {}


def replied(text: str) -> str:
    request = {"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}], "tools": [{"name": "Write"}]}
    [block] = answer({**request, "system": "- Memory directory: /m\n"})
    return str(block.get("text", block))


@pytest.mark.spec("O1")
@pytest.mark.parametrize("run", ["I always want tabs. ", "以后都用中文，", "😀", " ", "x; why ", "- we use tabs\n"], ids=repr)
def test_a_message_of_a_megabyte_is_no_memory(run: str) -> None:
    """Patterns that try every beginning would need minutes for these."""
    text = run * (MEGABYTE // len(run))
    assert list(find_signals(text)) == []
    assert replied(text) == (replies_to(text).not_found if run == "😀" else replies_to(text).noted)
    said = f"Remember: {text}."
    assert replied(said) == replies_to(said).too_long.format(size=f"{len(said):,}", most=f"{MOST_CHARS:,}")
    assert replied(f"todo: {text}") == replies_to(f"todo: {text}").noted, "a pasted text is no list of tasks"
    assert replied(f"What is {text}?") == replies_to(f"What is {text}").not_found


@pytest.mark.spec("O1", "S7")
def test_a_wish_after_a_long_log_is_found() -> None:
    log = "\n".join(f"2026-03-04 11:02:{second:02} INFO worker {second} of 60 is ready" for second in range(60))
    [found] = find_signals(f"It fails again.\n```\n{log}\n```\n{log}\n\nFrom now on, always lint before you push.")
    assert found.quote == "From now on, always lint before you push."


@pytest.mark.spec("O1")
@pytest.mark.parametrize("said", ["サーバーサイドは今回が初めてです。", "我是前端工程师，写 Go 这次是第一次。"])
def test_the_first_time_is_not_only_this_time(said: str) -> None:
    assert [found.signal for found in find_signals(said)] == ["user"]
