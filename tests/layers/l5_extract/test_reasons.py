"""A stated reason becomes the Why of a memory, wherever it stands; another wish or a remark does not."""

from __future__ import annotations

import pytest

from lamina.language.connectives import marked_reason
from lamina.layers.l5_extract.offline import UserText, plan_memories
from lamina.layers.l5_extract.plan import ExtractDirective

ASKED = ExtractDirective(1, "2026-05-04", "m", "", "")


def _why(said: str) -> tuple[str, str]:
    [plan, *_] = plan_memories(ASKED, [UserText(said, "")])
    return plan.note.rule.rstrip(".。"), plan.note.why.rstrip(".。")


@pytest.mark.spec("O1", "S7", "X1")
@pytest.mark.parametrize(
    ("said", "rule", "why"),
    [
        # The reason comes first.
        ("CI is slow, so always run only the unit tests.", "always run only the unit tests", "CI is slow"),
        (
            "Since we deploy on Fridays, please never plan reviews for Friday.",
            "please never plan reviews for Friday",
            "we deploy on Fridays",
        ),
        ("Because the disk is small, never keep old builds around.", "never keep old builds around", "the disk is small"),
        ("因为磁盘很小，所以以后不要保留旧的构建。", "以后不要保留旧的构建", "磁盘很小"),
        ("由于客户在海外，以后文档一律写英文。", "以后文档一律写英文", "客户在海外"),
        (
            "ディスクが小さいので、古いビルドは絶対に残さないでください。",
            "古いビルドは絶対に残さないでください",
            "ディスクが小さい",
        ),
        ("디스크가 작으니까 앞으로 옛날 빌드는 남기지 마세요.", "앞으로 옛날 빌드는 남기지 마세요", "디스크가 작으니까"),
        ("Weil die Platte klein ist, behalte bitte nie alte Builds.", "behalte bitte nie alte Builds", "die Platte klein ist"),
        (
            "Comme le disque est petit, ne garde jamais les anciens builds.",
            "ne garde jamais les anciens builds",
            "le disque est petit",
        ),
        (
            "Como el disco es pequeño, nunca guardes las compilaciones viejas.",
            "nunca guardes las compilaciones viejas",
            "el disco es pequeño",
        ),
        # A clause after a comma, a dash, a semicolon or a colon, and in brackets.
        (
            "Never commit notebooks with output, they bloat the repository.",
            "Never commit notebooks with output",
            "they bloat the repository",
        ),
        (
            "Never commit notebooks with output — they bloat the repository.",
            "Never commit notebooks with output",
            "they bloat the repository",
        ),
        (
            "Never commit notebooks with output; they bloat the repository.",
            "Never commit notebooks with output",
            "they bloat the repository",
        ),
        (
            "Never commit notebooks with output: they bloat the repository.",
            "Never commit notebooks with output",
            "they bloat the repository",
        ),
        (
            "Never commit notebooks with output (they bloat the repository).",
            "Never commit notebooks with output",
            "they bloat the repository",
        ),
        # A sentence of its own.
        ("Never mock the clock in tests. It hid a bug last time.", "Never mock the clock in tests", "It hid a bug last time"),
        (
            "Always write the changelog in English. Otherwise the office in Oslo can't read it.",
            "Always write the changelog in English",
            "Otherwise the office in Oslo can't read it",
        ),
        (
            "We lost a whole day to a bad merge. So never merge without a review.",
            "never merge without a review",
            "We lost a whole day to a bad merge",
        ),
        # A purpose.
        (
            "Always number your questions so that I can answer them one by one.",
            "Always number your questions",
            "I can answer them one by one",
        ),
        ("以后每个接口都要加超时，免得一个请求拖垮整个服务。", "以后每个接口都要加超时", "免得一个请求拖垮整个服务"),
        # A "not" in the reason negates the reason only.
        ("We don't have GPUs in CI, so never add CUDA tests.", "never add CUDA tests", "We don't have GPUs in CI"),
    ],
)
def test_a_reason_is_kept_wherever_it_stands(said: str, rule: str, why: str) -> None:
    assert _why(said) == (rule, why)


@pytest.mark.spec("S7")
@pytest.mark.parametrize(
    "said",
    [
        "Never use tabs in YAML files, and always end them with a newline.",
        "Never use tabs in YAML files. Now let's look at the parser.",
        "Never use tabs in YAML files. Also, always quote strings.",
        "Always answer in English, not in German.",
        "As a rule, never push to main.",
        "以后提交信息一律写英文，也不要超过一行。",
        "以后提交信息一律写英文。接下来看一下登录页面。",
        "Schreib Commits immer auf Englisch, nie auf Deutsch.",
        "I've been a nurse since 2010, databases are new to me.",
    ],
)
def test_another_wish_or_a_remark_is_no_reason(said: str) -> None:
    plans = plan_memories(ASKED, [UserText(said, "")])
    assert plans
    assert [plan.note.why for plan in plans] == [""] * len(plans)


@pytest.mark.spec("S7")
def test_since_gives_a_reason_for_what_is_so_now() -> None:
    assert marked_reason("Skip retries in decorators since they hide the call.") == (
        "Skip retries in decorators",
        "they hide the call.",
        "",
    )
    assert marked_reason("We leave the old API by May since the vendor shuts it down then.") == (
        "We leave the old API by May",
        "the vendor shuts it down then.",
        "",
    )
    for time in (
        "It hangs since we moved to the new host.",
        "Nothing works since it was upgraded.",
        "It fails since the new servers arrived.",
        "It is slow since the merge of the two branches.",
    ):
        assert marked_reason(time) is None


@pytest.mark.spec("O1", "S7")
@pytest.mark.parametrize(
    "said",
    [
        "The customer in Osaka wants to host it, that's why the cloud part is optional from May on.",
        "We decided to drop the wallet in May, so nobody maintains that folder any more.",
        "Priya owns billing from May on, therefore questions about invoices go to her.",
        "Ab Mai betreut Mira die Rechnungen, deshalb gehen Fragen an sie.",
        "À partir de mai c'est Inès qui gère les factures, donc les questions passent par elle.",
        "从五月起账单由小周负责，所以问题都找她。",
    ],
)
def test_what_follows_from_a_fact_is_not_its_reason(said: str) -> None:
    _, why = _why(said)
    assert not why.startswith(("so ", "that's why", "therefore", "deshalb", "donc", "所以"))


@pytest.mark.spec("O1", "S7")
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("We dropped IE support since no customer uses it anymore.", "no customer uses it anymore"),
        ("We're replacing the scanner in May since the vendor went bankrupt.", "the vendor went bankrupt"),
        ("We decided to rip out the old login since legal flagged how it stores tokens.", "legal flagged how it stores tokens"),
        ("We have been on Postgres since the team moved to Oslo in May.", ""),
        ("Los mensajes de error, siempre en español: el cliente no habla inglés.", "el cliente no habla inglés"),
        ("Our biggest customer, a Danish bank, will be on the old API until the end of 2027.", ""),
    ],
)
def test_a_reason_is_a_statement(said: str, why: str) -> None:
    assert _why(said)[1] == why


@pytest.mark.spec("O1")
def test_the_type_is_that_of_the_rule_and_not_of_its_reason() -> None:
    said = "No emojis in commit messages, because the customer decided in March that Priya signs off the release notes."
    [plan] = plan_memories(ASKED, [UserText(said, "")])
    assert (plan.note.type, plan.note.rule) == ("feedback", "No emojis in commit messages")
