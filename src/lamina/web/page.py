"""The frame of every view: head, navigation, search box, theme, language, keyboard help; or the view's data as JSON.

Attributes that static/frame.js reads:

- forms: `data-change` is sent by script, with the secret; `data-auto` (on the form or a field) when a field changes; `data-find="ids"`
  while the user types, and the elements with these ids are replaced by those of the answer, and asked for again if one has `data-again`;
  `data-with="id"` together with another form;
- `details[data-load]` gets its content when it is opened, `a[data-load]` on a click in place of its parent;
- `data-keep` (with an id) stays as it is when the view is shown again; `data-live="own"` shows its changes itself;
- `data-conflict` is replaced when a change meets another one; a form with `data-unsaved` there has text that is not saved, and a link with
  `data-anew` drops it and shows its view again; `data-copy` copies the address;
- keys: `data-key` is the letter of a view after `g`, `data-hotkey` that of a button, first within its `data-decide`; `j` and `k` go
  through `data-row`.

Events on document, with the prefix `lamina:`: `change` comes from the stream, `visit` has the address of a view on its way and the signal
that it was left, `view` tells that it is shown, `content` that something is new, `key` has a key for the view. The scripts are modules:
each has its own names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ..language.text import HTML_LANGUAGE, LANGUAGES, Text
from ..replay.html import style
from . import labels
from .html import Attribute, Child, Html, join, tag
from .safety import VERSION
from .words import COOKIE, Words, words_for

if TYPE_CHECKING:
    from .site import Site

# The views in the order of the navigation, with the key that opens each after `g`.
VIEWS = {
    "overview": ("/", "o"),
    "sessions": ("/sessions", "s"),
    "memories": ("/memories", "m"),
    "dreams": ("/dreams", "d"),
    "replay": ("/replay", "r"),
    "settings": ("/settings", ","),
}
KEYS = (
    (("/",), Text("Search; Esc leaves it")),
    (("g", "o s m d r ,"), Text("Overview, sessions, memories, dreams, replay, settings")),
    (("←", "→"), Text("Previous and next request; with Shift, turn")),
    (("[", "]"), Text("Previous and next decision")),
    (("Home", "End"), Text("First and last request")),
    (("j", "k"), Text("Next and previous row")),
    (("Enter", "o"), Text("Open; fold")),
    (("e", "a", "x", "u"), Text("Edit, accept, refuse, undo")),
    (("0", "+", "-"), Text("Zoom: reset, in, out")),
    (("?",), Text("This table")),
)
MOON = "M13.500 9.500A6 6 0 0 1 6.500 2.500a6 6 0 1 0 7 7Z"
# Fills for content that was sent but is in no record; the chart and the strips refer to them.
HATCH = tag(
    "svg",
    {"class": "sr", "aria-hidden": "true"},
    [
        tag(
            "pattern",
            {"id": name, "width": 5, "height": 5, "patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"},
            tag("rect", {"width": 5, "height": 5, "class": "k-system"}) if name == "hatch-head" else None,
            tag("rect", {"width": 1.2, "height": 5, "class": "hatch-light" if name == "hatch-head" else "hatch-dark"}),
        )
        for name in ("hatch", "hatch-head")
    ],
)
LOGO = {"system": "M2 15h16v3H2z", "memory": "M2 11h13v3H2z", "user": "M2 7h9v3H2z", "files": "M2 3h5v3H2z"}
REPORT = "report.css"  # the style of a replay's report, which the page shows too
STYLES = (REPORT, "lamina.css")
# Every page has those of all views: the way from view to view loads none.
SCRIPTS = ("frame.js", "chart.js", "session.js", "overview.js")
# Seconds that a view waits for what may take long: a click's, and the script's after it (`opening`).
AT_ONCE = 0.05
PATIENCE = 30.0
# Longer numbers in an address are none.
NUMBER_CHARS = 12
STATIC = Path(__file__).parent / "static"


def page(
    site: Site,
    request: Request,
    *,
    title: str,
    active: str,
    body: Html,
    data: Any = None,
    watch: Mapping[str, str] | None = None,
    ahead: str | None = None,
    status: int = 200,
) -> Response:
    """Return a view as a page, or with `?format=json` its data.

    `watch` is what the event stream follows, from Site.look. `ahead` is the address of data that the scripts will ask for at once.
    """
    if wants_json(request):
        return json_response(data, status)
    words = words_for(request)
    attributes: dict[str, Attribute] = {"data-view": active}
    if watch:
        # What is shown is named too: the stream tells at once what is newer.
        asked = urlencode({"watch": list(watch), "seen": list(watch.values())}, doseq=True)
        attributes |= {"data-watch": " ".join(watch), "data-stream": asked}
    attributes["data-words"] = json.dumps({key: words(text) for key, text in labels.SCRIPT_TEXTS.items()}, ensure_ascii=False)
    notice = (
        tag("p", {"class": "notice", "role": "note"}, words("You are looking at someone else's files. Changes are off."))
        if site.read_only
        else None
    )
    content = tag("main", {"id": "main", "tabindex": "-1"}, notice, body)
    scriptless = tag(
        "noscript", None, tag("p", {"class": "notice"}, words("Charts and changes need scripts, which this browser blocks."))
    )
    parts = (_top(site, request, words, active), scriptless, content, _status(), _keys(words), HATCH)
    answer = HTMLResponse(_document(words, title, join(parts), attributes, site.secret, ahead), status)
    if request.query_params.get("lang") in LANGUAGES:
        answer.set_cookie(COOKIE, words.language, max_age=365 * 86_400, samesite="strict", httponly=True, path="/")
    return answer


def wants_json(request: Request) -> bool:
    return request.query_params.get("format") == "json"


def json_response(data: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(data, enc_hook=str), status, media_type="application/json")


def can_wait(request: Request) -> bool:
    """Whether a request waits for what takes long: the script's after `opening` or for a part of a view, and a program's."""
    asked = request.headers
    return wants_json(request) or asked.get("prefer") == "wait" or "x-lamina-part" in asked


def patience(request: Request, *, told: bool = True) -> float:
    """Return the seconds that a view waits for what may take long. Who was not `told` yet that it does is told at once."""
    return PATIENCE if told and can_wait(request) else AT_ONCE


def opening(site: Site, request: Request, *, title: str, active: str, head: Html, sentence: str) -> Response:
    """Return the head of a view whose data is still being read. The script, or the browser, then asks again and gets the whole.

    A program is told after PATIENCE seconds.
    """
    if wants_json(request):
        return json_response({"error": sentence}, 503)
    again = tag("noscript", None, tag("meta", {"http-equiv": "refresh", "content": "1"}))
    said = tag("p", {"class": "empty", "role": "status"}, sentence)
    body = tag("div", {"id": "opening", "data-live": "own"}, again, head, said)
    return page(site, request, title=title, active=active, body=body)


def number_of(request: Request, name: str) -> int | None:
    """Return the number that the address gives under a name; None if it gives none."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < NUMBER_CHARS else None


def later_part(id: str, url: str, label: str, content: Html | None = None) -> Html:
    """Return a part of a view that is read when it is unfolded, or is unfolded already; without scripts a link to it."""
    loaded: dict[str, Attribute] = {"open": True, "data-loaded": "1"} if content is not None else {"class": "script"}
    summary = tag("summary", {"class": "btn sm"}, label)
    details = tag("details", {"id": id, "data-load": url} | loaded, summary, content)
    return join((details, tag("noscript", None, tag("a", {"href": url}, label)) if content is None else None))


def fragment(body: Html, status: int = 200) -> Response:
    """Return a part of a page that a script puts into it."""
    return HTMLResponse(_encodable(body), status)


def plain_page(words: Words, title: str, sentence: str, *, status: int, back: str | None = None) -> Response:
    """Return a page with one sentence, for visitors without a cookie and for addresses that do not exist."""
    link = tag("p", None, tag("a", {"href": back}, words("Back to the sessions"))) if back is not None else None
    body = tag("main", {"id": "main"}, tag("h1", None, title), tag("p", None, sentence), link)
    return HTMLResponse(_document(words, title, body, {}, None), status)


def problem(
    site: Site,
    request: Request,
    title: str,
    sentence: str,
    *,
    status: int,
    back: str = "/sessions",
    watch: Mapping[str, str] | None = None,
) -> Response:
    """Return one sentence about what went wrong, in the frame, with a way back. With `watch`, what comes back is shown again."""
    words = words_for(request)
    link = tag(
        "p", None, tag("a", {"href": back, "class": "btn"}, words(labels.WAYS_BACK.get(back[1:].partition("?")[0], Text("Back"))))
    )
    body = tag("div", {"class": "empty"}, tag("h1", None, title), tag("p", None, sentence), link)
    return page(site, request, title=title, active="", body=body, data={"error": sentence}, watch=watch, status=status)


def view_head(title: Child, *below: Child, crumb: Child = None, right: Child = None) -> Html:
    """Return the head of a view: the way back above its title, facts below it, and its buttons at the right."""
    path = tag("p", {"class": "crumb"}, crumb) if crumb is not None else None
    return tag("div", {"class": "head"}, tag("div", None, path, tag("h1", None, title), below), right)


def list_of(path: str) -> str:
    """Return the address of the list that a path is below: that of the sessions, unless it is another one."""
    view = path[1:].partition("/")[0]
    return f"/{view}" if view in ("memories", "dreams", "replay") else "/sessions"


def icon(*paths: str, box: int = 16) -> Html:
    """Return a line drawing in the colour of the text."""
    drawn = [tag("path", {"d": path}) for path in paths]
    return tag("svg", {"viewBox": f"0 0 {box} {box}", "aria-hidden": "true", "class": "icon"}, drawn)


def query(request: Request, **changes: str | None) -> str:
    """Return the request's query with some parameters changed, for links that keep the others."""
    kept = {key: value for key, value in request.query_params.items() if key not in ("token", "format", "lang")}
    given = {key: value for key, value in {**kept, **changes}.items() if value}
    return f"?{urlencode(given)}" if given else ""


@cache
def static_address(name: str) -> str:
    """Return the address of a script or style, with a digest of its content: browsers keep it without asking again."""
    content = style().encode() if name == REPORT else (STATIC / name).read_bytes()
    return f"/static/{name}?{VERSION}={blake2b(content, digest_size=6).hexdigest()}"


def search_box(words: Words, *, name: str = "q", value: str = "", label: str | None = None, key: str | None = None) -> Html:
    field: dict[str, Attribute] = {"type": "search", "name": name, "value": value or None, "autocomplete": "off"}
    field |= {
        "placeholder": label or words("Search memories and sessions"),
        "aria-label": label or words("Search memories and sessions"),
    }
    hint = tag("kbd", {"aria-hidden": "true"}, key) if key else None
    return tag(
        "label", {"class": "find"}, icon("M11 7a4 4 0 1 1-8 0 4 4 0 0 1 8 0M10.500 10.500l3.500 3.500"), tag("input", field), hint
    )


def _document(
    words: Words,
    title: str,
    body: Html,
    attributes: dict[str, Attribute],
    secret: str | None,
    ahead: str | None = None,
) -> str:
    head = [
        tag("meta", {"charset": "utf-8"}),
        tag("meta", {"name": "viewport", "content": "width=device-width,initial-scale=1"}),
        tag("meta", {"name": "lamina-secret", "content": secret}) if secret else None,
        tag("title", None, f"{title} · Lamina"),
        tag("link", {"rel": "icon", "href": "data:,"}),
        [tag("link", {"rel": "stylesheet", "href": static_address(name)}) for name in STYLES],
        tag("link", {"rel": "preload", "as": "fetch", "crossorigin": "anonymous", "href": ahead}) if ahead else None,
        tag("script", {"src": static_address("theme.js")}),
        [tag("script", {"src": static_address(name), "type": "module"}) for name in SCRIPTS] if secret else None,
    ]
    whole = tag("html", {"lang": HTML_LANGUAGE[words.language]}, tag("head", None, head), tag("body", attributes, body))
    return _encodable(f"<!doctype html>\n{whole}\n")


def _encodable(text: str) -> str:
    """Replace lone surrogates, which a damaged file may hold and UTF-8 may not."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _top(site: Site, request: Request, words: Words, active: str) -> Html:
    drawn = [tag("path", {"class": f"k-{kind}", "d": path}) for kind, path in LOGO.items()]
    logo = tag("svg", {"viewBox": "0 0 20 20", "aria-hidden": "true"}, drawn)
    counts = site.counts()
    links = []
    for name, (address, key) in VIEWS.items():
        waiting = counts.get(name, 0)
        label = words("{n} waiting", n=waiting)
        badge = tag("span", {"class": "count", "aria-label": label}, f"{waiting:,}") if waiting else None
        current = "page" if name == active else None
        attributes: dict[str, Attribute] = {"href": address, "aria-current": current, "data-key": key}
        links.append(tag("a", attributes, words(labels.VIEWS[name]), " ", badge))
    other = LANGUAGES[1 - LANGUAGES.index(words.language)]
    asked = request.query_params.get("q", "") if active == "search" else ""
    return tag(
        "header",
        {"class": "top"},
        tag("a", {"class": "skip", "href": "#main"}, words("Skip to content")),
        tag("a", {"class": "brand", "href": "/"}, logo, "Lamina"),
        tag("nav", {"aria-label": words("Main")}, links),
        tag("form", {"action": "/search", "role": "search", "class": "search"}, search_box(words, value=asked, key="/")),
        tag(
            "a",
            {
                "class": "btn quiet lang",
                "href": query(request, lang=other),
                "aria-label": words("Switch to Chinese"),
                "lang": other,
            },
            words("中文"),
        ),
        tag(
            "button",
            {"class": "btn quiet theme", "type": "button", "aria-label": words("Switch between light and dark")},
            icon(MOON),
        ),
    )


def _status() -> Html:
    """The line that tells what a change did, and the name of the view that is shown, for screen readers; frame.js fills them."""
    line = tag("div", {"class": "undo", "id": "status", "role": "status", "hidden": True})
    return join((line, tag("p", {"class": "sr", "id": "view", "role": "status"})))


def _keys(words: Words) -> Html:
    rows = [
        tag("tr", None, tag("td", None, [(tag("kbd", None, key), " ") for key in keys]), tag("td", None, words(meaning)))
        for keys, meaning in KEYS
    ]
    label = words("Single-letter keys")
    state: dict[str, Attribute] = {"role": "switch", "aria-checked": "true", "aria-label": label}
    switch = tag(
        "span", {"class": "check"}, tag("button", {"type": "button", "class": "switch", "id": "keys-switch"} | state), label
    )
    close = tag("form", {"method": "dialog"}, tag("button", {"class": "btn sm main"}, words("Close")))
    head = tag("h2", {"id": "keys-title"}, words("Keyboard shortcuts"))
    return tag(
        "dialog",
        {"id": "keys", "class": "panel", "aria-labelledby": "keys-title"},
        head,
        tag("table", None, tag("tbody", None, rows)),
        tag("div", {"class": "btns"}, switch, close),
    )
