"""When two texts contain the same fact."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.memory.guard.facts import FactIndex, exact_words, facts_of, is_emptied, is_said

from .staged import topic


def facts(body: str) -> tuple[str, ...]:
    return facts_of(topic("a", body)).each


@pytest.mark.spec("B4", "B15")
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Tests use Postgres. CI runs on 8 cores.", ("tests use postgres", "ci runs on 8 cores")),
        ("- [ ] one thing to do\n2. another thing\n> quoted words", ("one thing to do", "another thing", "quoted words")),
        ("# Setup\n\nUse **make** `all`.", ("use make all",)),
        ("# Never deploy on a Friday evening", ("never deploy on a friday evening",)),
        ("测试用真实数据库。部署在周二！", ("测 试 用 真 实 数 据 库", "部 署 在 周 二")),
        ("テストは本物のDBで行う。", ("テ ス ト は 本 物 の db で 行 う",)),
        ("the limit is != 5\nthe limit is -5", ("limit is ! = 5", "limit is - 5")),
        ("Please don't squash, since it hides the author.", ("do not squash because it hides author",)),
        ("The user prefers tabs. We can't squash. I'm new.", ("i prefer tabs", "we can not squash", "i am new")),
        ("---\n\n***\n", ("about a",)),
    ],
)
def test_a_text_is_read_as_its_facts(body: str, expected: tuple[str, ...]) -> None:
    assert facts(body) == expected


@pytest.mark.spec("B4")
@pytest.mark.parametrize(
    ("fact", "body", "said"),
    [
        ("Use tabs here.", "- use TABS here", True),
        ("We use tabs in Go.", "Since March we use tabs in Go, says the linter.", True),
        ("Use tabs in Go.", "Do not use tabs in Go.", False),
        ("Use tabs in Go.", "Never use tabs in Go. Use tabs in Go.", True),
        ("Use tabs in Go.", "In Go use tabs.", False),
        ("Port 80 is open.", "Port 8080 is open.", False),
        ("Postgres.", "Tests use Postgres for speed.", False),
        ("Postgres.", "Tests are slow. Postgres.", True),
        ("a sentence that ends here", "a sentence that\nends here", False),
        ("部署在周二。", "我们部署在周二。", True),
        ("部署在周二。", "我们不部署在周二。", False),
        ("\uff35se \uff54abs here", "use tabs here", True),
        ("The café opens at nine.", "the cafe\u0301 opens at nine", True),
    ],
)
def test_a_fact_is_said_in_its_words_and_their_order_and_not_taken_back(fact: str, body: str, said: bool) -> None:
    (one,) = facts(fact)
    text = topic("b", body)
    assert is_said(one, text) is said
    assert (FactIndex({"b.md": text, "c.md": topic("c", "elsewhere")}).of(one) == "b.md") is said


@pytest.mark.spec("B4")
def test_reworded_is_not_emptied_and_gone_is() -> None:
    old = topic("a", "The build takes nine minutes on the old machine.\nAsk Kim before a release goes out.")
    assert not is_emptied(old, [topic("a", "On the old machine a build takes nine minutes. Before a release, ask Kim.")])
    assert is_emptied(old, [topic("a", "Builds are slow.")])
    assert not is_emptied(old, [topic("a", "x"), topic("b", old)])


@pytest.mark.spec("B4")
def test_paths_options_and_names_of_code_are_what_is_spelled_exactly() -> None:
    body = (
        "The file is /etc/App/Token.txt (API_TOKEN_FILE, `myVar`); run **make all** with --force -R, _not_ e.g. well-known Words."
    )
    assert exact_words(topic("a", body)) == {"/etc/App/Token.txt", "API_TOKEN_FILE", "myVar", "--force", "-R"}


WORDS = st.lists(
    st.sampled_from(["Use", "tabs", "not", "80", "不", "数据", "x_y", "`code`", "**b**", "e.g."]), min_size=1, max_size=6
)
BODIES = st.lists(WORDS.map(" ".join), min_size=1, max_size=5).map(".\n- ".join)


@pytest.mark.spec("B4")
@settings(max_examples=50)
@given(BODIES, BODIES)
def test_a_text_says_all_of_itself_wherever_it_is_put(one: str, other: str) -> None:
    assert all(is_said(fact, topic("b", f"{other}\n\n{one}")) for fact in facts(one))


@given(st.text(max_size=200), st.text(max_size=200))
def test_nothing_raises_on_any_text(one: str, other: str) -> None:
    for fact in facts_of(one).each:
        is_said(fact, other)
        FactIndex({"a": other, "b": one}).of(fact)
    is_emptied(one, [other])
