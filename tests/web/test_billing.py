"""`lamina.billing`: under a subscription no view shows dollars; tokens, shares and input units take their place."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx2
import msgspec
import pytest

from lamina.core.budget import LedgerLine
from lamina.core.usage import Usage
from lamina.disk.home.ledger import UsageLedger
from lamina.layers.l6_dream.record import DreamRecord, new_id, write_record

from . import patient
from .conftest import Watched
from .made_home import WINDOW_SESSION, make_home
from .made_memories import make_memories, open_memory
from .serving import Served, serving
from .test_memories import place

# Each opens many views; the frame, a session, memories and the inbox are in the README's run.
pytestmark = pytest.mark.exhaustive

SESSION = f"/sessions/claude-code/{WINDOW_SESSION}"
MODEL = "claude-sonnet-4-5"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A home with everything that costs: sessions, background calls, a dream and two replays."""
    root, now = tmp_path_factory.mktemp("home"), datetime.now(UTC)
    make_home(root, now=now - timedelta(hours=1), others=5)
    make_memories(root)
    ledger = UsageLedger(root / ".lamina")
    for purpose, usd in (("dream", 0.25), ("extraction", 0.5), ("notes", None)):
        ledger.add(LedgerLine(now.timestamp(), purpose, "shop", "s", MODEL, 900, 40_000, 3_000, 700, usd))
    (root / ".lamina" / "settings.json").write_text('{"lamina": {"billing": "subscription"}}', "utf-8")
    with serving(root) as page:
        while page.site.sessions().of:
            time.sleep(0.05)
        yield page


@pytest.fixture(scope="module")
def addresses(served: Served) -> list[str]:
    """The address of every view that may show an amount, and of every part that a script fetches."""
    root = served.site.cwd
    with open_memory(root) as memory:
        usage, id = Usage(100, 50_000, 4_000, 0, 800), new_id(time.time())
        record = DreamRecord(id, time.time(), 1, "hand", ended=time.time(), status="completed", phase="applied")
        record = msgspec.structs.replace(record, tokens=usage.total, usage=usage, cost=0.35)
        write_record(memory.store("private").store.root, record)
    files = [one.path for one in served.site.sessions().top]
    job, saving = served.site.replays.start(files[:2], []), served.site.replays.start_saving(files[:2], days=7)
    while job.running or saving.running:
        time.sleep(0.05)
    while "Results cleared" not in _get(served, "/").text:  # the causes of cache breaks are read behind the view
        time.sleep(0.05)
    count = len(served.site.sessions().top)
    assert count == 6
    decided = [one["request"] for one in _get(served, f"{SESSION}?format=json").json()["series"]["decisions"]]
    parts = [f"{SESSION}/requests/{number}{part}" for number in {1, *decided} for part in ("", "/panel", "/blocks")]
    return [
        *("/", "/?days=30", "/sessions", "/sessions?sort=dearest", SESSION, f"{SESSION}/series", f"{SESSION}/table", *parts),
        *(f"{SESSION}/turns/1", "/memories", "/memories/duplicates", "/dreams", f"/dreams/{place(root)}/{id}", "/search?q=round"),
        *("/replay", f"/replay/{job.id}", f"/replay/{job.id}/report.html", "/settings", "/nowhere"),
    ]


def _get(served: Served, path: str, lang: str = "en") -> httpx2.Response:
    return patient.get(served.base + path, cookies=served.cookies() | {"lamina-lang": lang})


def _bill(served: Served, value: str) -> None:
    """Change the setting as the page's form does."""
    row = next(one for one in _get(served, "/settings?format=json").json()["settings"] if one["key"] == "lamina.billing")
    fields = {"key": "lamina.billing", "base": json.dumps(row["value"]), "value": value}
    headers = {"X-Lamina-Secret": served.keys.secret}
    told = patient.post(f"{served.base}/settings/set", json=fields, headers=headers, cookies=served.cookies())
    assert told.status_code == 200, told.text


@pytest.mark.spec("V4")
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_view_shows_dollars_under_a_subscription(served: Served, addresses: list[str], lang: str) -> None:
    shown = {address: _get(served, address, lang) for address in addresses}
    assert {address: answer.status_code for address, answer in shown.items() if answer.status_code != 200} == {"/nowhere": 404}
    found = {address: re.findall(r".{0,40}\$.{0,10}", answer.text) for address, answer in shown.items()}
    assert {address: amounts for address, amounts in found.items() if amounts} == {}


@pytest.mark.spec("V4")
def test_the_settings_view_switches_between_dollars_and_tokens_without_a_restart(served: Served, addresses: list[str]) -> None:
    _bill(served, "list")
    dollars = [address for address in addresses if "$" in _get(served, address).text]
    _bill(served, "subscription")
    without = {f"{SESSION}/series", f"{SESSION}/turns/1", "/memories", "/memories/duplicates", "/search?q=round", "/nowhere"}
    assert {*addresses} - {*dollars} == without, "each other view has an amount that a subscription hides"


@pytest.mark.spec("V4")
def test_a_subscription_shows_tokens_by_price_class_shares_and_input_units(served: Served, addresses: list[str]) -> None:
    series = _get(served, f"{SESSION}?format=json").json()["series"]
    read, written, fresh, output = (
        sum(one[name] for one in series["requests"]) for name in ("read", "written", "fresh", "output")
    )
    parts = [0.1 * read, 1.25 * written + fresh, 5 * output]
    columns = _get(served, f"{SESSION}/series").json()
    assert columns["units"] is True
    drawn = [sum(one[at] for one in columns["cost"]) for at in range(3)]
    assert drawn == pytest.approx(parts, rel=0.001), "the cost row of the chart is in input units"
    shown = _get(served, SESSION).text
    assert f"read {read:,} ({100 * parts[0] / sum(parts):.0f}%)" in shown
    assert f"output {output:,} (" in shown
    assert re.search(r"\d[\d.]*[kM] units", shown)
    assert "The 2 clearings cost" in shown
    over = _get(served, "/").text
    apart = r"6 sessions, [\d.]+M tokens read from cache, \d+k written to it, \d+ uncached, \d+k output; \d+% of the input"
    assert re.search(apart, over)
    assert "of the period" in over
    assert "A unit is one uncached input token, whatever the model." in over
    assert "Lamina would have used" in over
    assert " units instead of " in over
    assert "14k units" in _get(served, "/dreams").text, "0.1 · 50,000 + 1.25 · 4,000 + 100 + 5 · 800"
    dream = next(one for one in addresses if one.startswith("/dreams/"))
    assert "50k tokens read from cache, 4k written to it, 100 uncached, 800 output" in _get(served, dream).text
    settings = _get(served, "/settings").text
    assert "38% of the cost limit (lamina.budgetDollars) today" in settings
    assert "3 of 200 calls today" in settings


def test_costs_stay_in_the_data_for_programs(served: Served) -> None:
    listed = _get(served, "/sessions?format=json").json()["sessions"]
    assert all(one["cost_usd"] > 0 for one in listed)


@pytest.mark.spec("V4")
def test_a_browser_draws_no_dollar_under_a_subscription(watched: Watched, served: Served, addresses: list[str]) -> None:
    page = watched.page()
    page.goto(served.link)
    dream, replay = (next(one for one in addresses if one.startswith(start)) for start in ("/dreams/", "/replay/"))
    drawn = {"/": "#days path.area", SESSION: "#chart path.c-read", dream: ".figs", replay: "svg polyline", "/dreams": "#calls"}
    for address, ready in drawn.items():
        page.goto(served.base + address)
        page.wait_for_selector(ready, state="attached")
        if address == SESSION:
            page.keyboard.press("Home")
            page.wait_for_selector('.scrub[aria-valuetext*=" units"]', state="attached")
        told = page.locator("body").inner_text() + page.evaluate("() => document.documentElement.outerHTML")
        assert re.findall(r".{0,40}\$.{0,10}", told) == [], address
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 1_400, address
        assert re.search(r"\d (units|input units|tokens|output)|\d[kM] units", told), address
