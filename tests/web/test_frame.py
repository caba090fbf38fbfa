"""The frame without a browser: safety, words, markup, numbers, JSON, changes, the event stream and the command."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from starlette.requests import Request

from lamina.core.errors import InputError
from lamina.language.wording import short_count
from lamina.web.changes import Conflict, Done, Undo, change_route
from lamina.web.html import Html, bdi, join, tag
from lamina.web.labels import SCRIPT_TEXTS
from lamina.web.markdown import markdown
from lamina.web.numbers import absolute, ago, at_least, length, money, price, share, size
from lamina.web.safety import FOREVER
from lamina.web.site import Site
from lamina.web.words import Words

from . import patient
from .made_home import WINDOW_SESSION, make_home
from .patient import PATIENCE
from .serving import Served, serving

WEB = Path(__file__).parents[2] / "src" / "lamina" / "web"
ENGLISH = Words("en")
SESSION = f"/sessions/claude-code/{WINDOW_SESSION}"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("home")
    make_home(root)
    return root


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[Served]:
    with serving(home) as page:
        yield page


def get(served: Served, path: str, **headers: str) -> httpx2.Response:
    return patient.get(served.base + path, headers=headers, cookies=served.cookies())


@pytest.mark.spec("V6")
def test_the_link_works_once_and_becomes_a_cookie_that_scripts_and_other_sites_cannot_use(served: Served) -> None:
    link = served.link.replace("/?", "/sessions?sort=dearest&")
    first = patient.get(link)
    assert first.status_code == 303
    assert first.headers["location"] == "/sessions?sort=dearest"
    cookie = first.headers["set-cookie"]
    assert cookie.startswith(served.keys.cookie_name)
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    again = patient.get(link)
    assert again.status_code == 401
    assert "This link has expired. Copy the new one from the terminal." in again.text
    assert served.link not in link, "a used link is replaced by a new one"
    assert patient.get(link, cookies=served.cookies()).status_code == 303, "a browser that has the cookie may follow an old link"


@pytest.mark.spec("V6")
@pytest.mark.parametrize(
    "path", ["//evil.com/", "/%2Fevil.com", "/%5Cevil.com", "/\\evil.com", "/%2F%2Fevil.com", "/%0d%0aevil.com", "/a%3Fb"]
)
def test_a_link_never_leads_to_another_host(served: Served, path: str) -> None:
    """A browser reads `//evil.com` as a host."""
    with socket.create_connection(("127.0.0.1", served.keys.port)) as connection:
        cookie = f"{served.keys.cookie_name}={served.keys.cookie}"
        head = (
            f"GET {path}?token=x HTTP/1.1\r\nHost: 127.0.0.1:{served.keys.port}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n"
        )
        connection.sendall(head.encode())
        answer = b"".join(iter(lambda: connection.recv(65_536), b"")).decode()
    [location] = [line.partition(": ")[2] for line in answer.splitlines() if line.lower().startswith("location: ")]
    assert re.fullmatch(r"/[a-zA-Z0-9%].*", location), location


@pytest.mark.spec("V6")
def test_a_wrong_token_a_foreign_host_and_a_foreign_origin_are_refused(served: Served) -> None:
    assert patient.get(f"{served.base}/?token=wrong").status_code == 401
    assert patient.get(f"{served.base}/sessions").status_code == 401
    assert patient.get(f"{served.base}/sessions", cookies={served.keys.cookie_name: "wrong"}).status_code == 401
    for host in ("example.org", f"127.0.0.1.example.org:{served.keys.port}", "127.0.0.1:1", "127.0.0.1"):
        assert get(served, "/sessions", Host=host).status_code == 403, host
    for origin in ("https://example.org", "null", "http://127.0.0.1:1", f"https://127.0.0.1:{served.keys.port}"):
        assert get(served, "/sessions", Origin=origin).status_code == 403, origin
    assert get(served, "/sessions", Origin=served.base).status_code == 200
    assert get(served, "/static/../safety.py").status_code == 404


@pytest.mark.spec("V6")
@pytest.mark.parametrize("path", ["/static/", "/static/nowhere", "/static/nowhere?v=1", "/static/../safety.py", "/static/%00"])
def test_without_the_cookie_only_the_files_of_the_page_are_served(served: Served, path: str) -> None:
    """The view that says "not found" holds the secret."""
    answer = patient.get(served.base + path)
    assert answer.status_code == 401
    assert served.keys.secret not in answer.text
    assert patient.post(f"{served.base}/static/lamina.css", content=b"").status_code == 401
    found = get(served, path)
    assert found.status_code == 404
    assert found.headers["cache-control"] == "no-store"


@pytest.mark.spec("V6")
def test_a_change_needs_the_secret_besides_the_cookie(served: Served) -> None:
    def post(secret: str, body: bytes = b"{}") -> int:
        headers = {"X-Lamina-Secret": secret}
        return patient.post(f"{served.base}/nowhere", content=body, headers=headers, cookies=served.cookies()).status_code

    assert post("") == post("wrong") == post(served.keys.cookie) == 403
    assert post(served.keys.secret) == 404
    assert post(served.keys.secret, b"x" * (9 << 20)) == 413
    assert served.keys.secret in get(served, "/sessions").text


@pytest.mark.spec("V6")
def test_every_answer_carries_the_policy(served: Served) -> None:
    refused = patient.get(f"{served.base}/sessions")
    for answer in (
        refused,
        *(get(served, path) for path in ("/sessions", "/static/lamina.css", "/nowhere", "/sessions?format=json")),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_browser_keeps_scripts_and_styles_by_their_digest_and_nothing_else(served: Served) -> None:
    shown = get(served, "/sessions")
    assert shown.headers["cache-control"] == "no-store"
    kept = re.findall(r'"(/static/[^"]+)"', shown.text)
    assert len(kept) == 7
    for address in kept:
        answer = get(served, address)
        assert answer.headers["cache-control"] == FOREVER
        assert blake2b(answer.content, digest_size=6).hexdigest() == address.partition("=")[2]
        assert get(served, address.partition("?")[0]).headers["cache-control"] == "no-cache"


@pytest.mark.spec("V1")
def test_the_list_has_the_sessions_of_the_home_as_html_and_as_json(served: Served) -> None:
    shown = get(served, "/sessions").text
    assert "Round orders once, and say so in a test" in shown
    assert "Claude Code" in shown
    assert "shop-api" in shown
    row = shown.partition('class="srow"')[2].partition("</a>")[0]
    assert {"k-unrecorded_head", "k-files", "k-shell"} <= set(re.findall(r'<rect class="([^"]+)"', row))
    for label in ("Fullest request: ", "System and tools ", "compacted once", "cleared "):
        assert label in row
    found = get(served, "/sessions?format=json").json()
    assert found["count"] == 15
    assert found["sessions"][0]["id"] == WINDOW_SESSION
    infra = get(served, "/sessions?format=json&q=tax.py").json()
    assert infra["count"] == 2
    assert all("tax.py" in one["title"] for one in infra["sessions"])
    full = get(served, "/sessions?format=json&sort=fullest").json()["sessions"]
    assert full[0]["id"] == WINDOW_SESSION
    assert 90_000 < full[0]["fullest"] < 200_000
    dear = [one["cost_usd"] for one in get(served, "/sessions?format=json&sort=dearest").json()["sessions"]]
    assert dear == sorted(dear, reverse=True)
    assert "No session matches these filters." in get(served, "/sessions?q=nothing-like-this").text


@pytest.mark.parametrize(
    ("address", "back", "sentence"),
    [
        ("/nope", "/sessions", "This address does not exist."),
        ("/dreams/nope", "/dreams", "This address does not exist."),
        ("/replay/nope/none", "/replay", "This address does not exist."),
        (f"{SESSION}/turns/999", SESSION, "Turn 999 does not exist. The session has "),
        (f"{SESSION}/requests/9999", SESSION, "Request 9999 does not exist."),
    ],
)
def test_an_address_that_does_not_exist_leads_back_to_the_list_or_the_session(
    address: str, back: str, sentence: str, served: Served
) -> None:
    found = get(served, address)
    assert (found.status_code, sentence in found.text) == (404, True)
    assert f'<a href="{back}" class="btn">' in found.text
    assert get(served, f"{address}?format=json").status_code == 404


def test_an_empty_home_says_where_it_looked_and_what_to_do(tmp_path: Path) -> None:
    with serving(tmp_path) as empty:
        for view in ("/", "/sessions", "/replay"):
            shown = get(empty, view).text
            assert "No sessions found. Lamina looked in" in shown
            assert str(tmp_path / ".claude") in shown
            assert "LAMINA_HOME" in shown
            for useless in ("Change the filter", "/replay/start", "/overview/saving", "at list price"):
                assert useless not in shown, view
        assert get(empty, "/sessions?page=99999999999999999999&sort=x&source=y").status_code == 200


def test_what_a_filter_replaces_while_somebody_types_is_there_whatever_is_found(served: Served) -> None:
    for view in ("/sessions", "/memories"):
        for q in ("", "orders", "zzzz"):
            shown = get(served, f"{view}?q={q}").text
            (ids,) = re.findall(r'data-find="([^"]+)"', shown)
            for id in ids.split():
                assert shown.count(f'id="{id}"') == 1


def test_a_home_that_vanishes_is_an_empty_list_and_no_error(tmp_path: Path) -> None:
    make_home(tmp_path, others=2)
    with serving(tmp_path) as page:
        assert get(page, "/sessions?format=json").json()["count"] == 3
        shutil.rmtree(tmp_path / ".claude")
        patient.wait_for(lambda: not get(page, "/sessions?format=json").json()["count"])
        assert "No sessions found." in get(page, "/sessions").text


@pytest.mark.spec("V6")
def test_a_read_only_page_writes_nothing_and_says_so(tmp_path: Path) -> None:
    make_home(tmp_path, others=1)
    before = sorted(tmp_path.rglob("*"))
    with serving(tmp_path, read_only=True) as page:
        shown = get(page, "/sessions").text
        assert "You are looking at someone else&#x27;s files. Changes are off." in shown
        assert "Round orders once" in shown
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.spec("V6")
def test_words_of_files_are_escaped_whatever_they_are(tmp_path: Path) -> None:
    session = make_home(tmp_path, others=0)
    rows = session.read_text("utf-8").splitlines()
    nasty = "<script>alert(1)</script>\"'&\u202e\ud800"
    rows[0] = json.dumps({"type": "ai-title", "aiTitle": nasty, "sessionId": session.stem})
    session.write_text("\n".join(rows) + "\n", "utf-8")
    with serving(tmp_path) as page:
        shown = get(page, "/sessions").text
    assert "<script>alert" not in shown
    assert "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;" in shown


def test_texts_become_markup_only_escaped() -> None:
    assert tag("p", {"title": '"<'}, "<b>", None, 3, [tag("i"), "&"]) == '<p title="&quot;&lt;">&lt;b&gt;3<i></i>&amp;</p>'
    assert join(("<", Html("<br>"))) == "&lt;<br>"
    assert bdi("<") == "<bdi>&lt;</bdi>"
    assert tag("input", {"disabled": True, "value": None, "checked": False}) == "<input disabled>"
    for key, value in (("onclick", "x"), ("style", "x"), ("href", "javascript:alert(1)"), ("src", "data:text/html,x")):
        with pytest.raises(ValueError, match="not allowed"):
            tag("a", {key: value})


def test_code_in_bold_words_and_right_below_a_line_is_code() -> None:
    shown = re.sub("</?bdi>", "", markdown("**The `x`**:\n```go\n  x < 1\n```\nend"))
    code = '<code class="mono">x</code>'
    assert shown == f"<p><b>The {code}</b>:</p><pre>  x &lt; 1</pre><p>end</p>"


def test_lists_of_a_memory_keep_their_numbers() -> None:
    shown = re.sub("</?bdi>", "", markdown("3. three\n4) <four>\n- a\n* b\nend"))
    assert shown == '<ol start="3"><li>three</li><li>&lt;four&gt;</li></ol><ul><li>a</li><li>b</li></ul><p>end</p>'


def test_scripts_use_their_texts() -> None:
    scripts = "\n".join(path.read_text("utf-8") for path in (WEB / "static").glob("*.js"))
    assert [key for key in SCRIPT_TEXTS if f"'{key}'" not in scripts] == []


def test_counts_choose_the_form_and_the_language_is_the_one_asked_for(served: Served) -> None:
    count = "{n} session|{n} sessions"
    assert [ENGLISH(count, n=number) for number in (0, 1, 1_200)] == ["0 sessions", "1 session", "1,200 sessions"]
    assert Words("zh")(count, n=1) == "1 个会话"
    assert 'lang="zh-CN"' in get(served, "/sessions?lang=zh").text
    assert "lamina-lang=zh" in get(served, "/sessions?lang=zh").headers["set-cookie"]
    assert 'lang="zh-CN"' in get(served, "/sessions", **{"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}).text
    assert 'lang="en"' in get(served, "/sessions", **{"Accept-Language": "fr"}).text


def test_money_tokens_and_times_are_written_as_agreed() -> None:
    assert [money(usd) for usd in (0, 0.001, 0.005, 1_234.5, -0.55, -0.001)] == [
        "$0.00",
        "<$0.01",
        "$0.01",
        "$1,234.50",
        "−$0.55",
        ">−$0.01",
    ]
    assert price(ENGLISH, None) == "price unknown"
    shown = [at_least(ENGLISH, usd, short=True) for usd in (None, 0.0, 0.001, 0.005)]
    assert shown == ["price unknown", "≥ $0.00", "≥ $0.00", "≥ $0.01"]
    assert [share(part, 1_000) for part in (0, 4, 99, 100, 966)] == ["0.0%", "0.4%", "9.9%", "10%", "97%"]
    assert share(1, 0) == "0.0%"
    assert [short_count(count) for count in (830, 12_400, 999_600)] == ["830", "12k", "1.0M"]
    assert [size(count) for count in (9, 12_000, 9_800_000)] == ["9 B", "12 kB", "9.8 MB"]
    assert [length(ENGLISH, seconds) for seconds in (40, 720, 7_500, 145_560)] == ["40 s", "12 min", "2 h 5 min", "1 day 16 h"]
    assert length(ENGLISH, 8 * 86_400 + 7_200) == "8 days"
    made = ago(ENGLISH, "2026-11-16T10:00:00+00:00", 1_794_823_200 + 7_300)
    assert re.fullmatch(r'<time datetime="2026-11-16T\S+" title="16 Nov 2026 [\d:]+">2 hours ago</time>', made), made
    for nothing in ("", "no time", 1e20, float("nan"), -1e20):
        assert absolute(ENGLISH, nothing) == "time unknown"
        assert "time unknown" in ago(ENGLISH, nothing, 0)


def test_a_change_answers_with_a_sentence_an_undo_or_a_conflict(tmp_path: Path) -> None:
    from starlette.applications import Starlette
    from starlette.testclient import TestClient

    def run(request: Request, fields: dict[str, str]) -> Done:
        match fields.get("what"):
            case "conflict":
                raise Conflict("Changed meanwhile.", tag("p", None, "<both>"))
            case "bad":
                raise InputError("name", "is empty")
            case _:
                return Done("Moved.", Undo("/back", {"digest": "1"}))

    site = Site(cwd=tmp_path, environ={"HOME": str(tmp_path)})
    with TestClient(Starlette(routes=[change_route(site, "/change", run)])) as client:  # type: ignore[arg-type]
        assert client.post("/change", json={"what": "x"}).json() == {
            "message": "Moved.",
            "undo": {"url": "/back", "fields": {"digest": "1"}},
        }
        conflict = client.post("/change", json={"what": "conflict"})
        assert (conflict.status_code, conflict.json()["html"]) == (409, "<p>&lt;both&gt;</p>")
        bad = client.post("/change", json={"what": "bad"})
        assert (bad.status_code, bad.json()["message"]) == (400, "name: is empty.")
        for body in (b"", b"[]", b'{"a": 1}', b"\xff"):
            assert client.post("/change", content=body).status_code == 400
        site.read_only = True
        assert client.post("/change", json={}).status_code == 403


@pytest.mark.spec("V5")
def test_the_stream_tells_of_a_session_that_appears(tmp_path: Path) -> None:
    make_home(tmp_path, others=0)
    with (
        serving(tmp_path) as page,
        httpx2.stream(
            "GET", f"{page.base}/live?watch=sessions:&watch=nothing:", cookies=page.cookies(), timeout=PATIENCE
        ) as stream,
    ):
        lines = (line for line in stream.iter_lines() if line.startswith("data:"))
        assert next(lines) == "data: {}"
        time.sleep(1)
        make_home(tmp_path, others=1)
        told = (json.loads(line.removeprefix("data:")) for line in lines)
        assert next(one["watch"] for one in told if one["state"][0] == 2) == "sessions:"


@pytest.mark.spec("V1")
@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent")
@pytest.mark.parametrize("as_json", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_the_command_prints_a_link_takes_another_port_and_stops_at_once(tmp_path: Path, as_json: bool) -> None:
    from lamina.disk.loopback import listen

    taken = listen(0)
    port = taken.getsockname()[1]
    environ = {**os.environ, "HOME": str(tmp_path), "LAMINA_HOME": str(tmp_path / ".lamina")}
    command = [sys.executable, "-m", "lamina", "ui", "--no-open", "--port", str(port), *(["--json"] if as_json else [])]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        notice = (process.stderr if as_json else process.stdout).readline()
        line = process.stdout.readline()
        link = json.loads(line)["url"] if as_json else line.split()[-1]
        other = urlsplit(link).port
        assert other != port
        assert notice == f"Port {port} is in use, so port {other} was taken.\n"
        entered = patient.get(link)
        assert entered.status_code == 303
        cookies = dict(entered.cookies)
        with httpx2.stream("GET", f"{link.partition('/?')[0]}/live?watch=sessions:", cookies=cookies, timeout=PATIENCE) as stream:
            assert next(stream.iter_lines()).startswith("event")
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=PATIENCE)
        assert "ERROR" not in errors, "an open page does not disturb the end"
        assert ("Link for another browser: http://127.0.0.1:" in errors) != as_json
        assert "Traceback" not in errors
    finally:
        process.kill()
        taken.close()


def test_a_failure_is_one_sentence_with_a_way_back(tmp_path: Path) -> None:
    with serving(tmp_path) as page:

        def broken() -> None:
            raise RuntimeError("the <index> broke")

        page.site.sessions = broken  # type: ignore[assignment, method-assign]
        answer = get(page, "/sessions")
    assert answer.status_code == 500
    assert "The page could not be made: the &lt;index&gt; broke" in answer.text
    assert 'href="/sessions"' in answer.text
