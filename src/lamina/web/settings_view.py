"""Settings by layer: value, origin, meaning, and a form where the user's own file decides. Locked values say who locked them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..core.budget import limits_of
from ..core.decoding import UNDECODABLE
from ..core.errors import InputError, LaminaError
from ..core.settings import Resolved, Setting, Settings, find
from ..core.settings.kinds import API_KEY, DIRECTORY, SWITCH, URL
from ..disk.home.ledger import UsageLedger
from ..disk.settings_write import ChangedSetting, set_user_setting, user_document, value_in
from ..language.text import Text
from . import labels
from .changes import Conflict, Done, Fields, Undo, change_route
from .html import Attribute, Html, bdi, cut, join, tag
from .numbers import money, share, tokens
from .page import page, search_box, view_head
from .site import Site
from .words import Words, words_for

# The groups of the view, and the letters of the specification whose settings they hold.
GROUPS = {
    "budget": "",
    "window": "T",
    "results": "R",
    "clearing": "M",
    "notes": "N",
    "compaction": "C",
    "price": "PV",
    "memory": "SQWI",
    "extraction": "X",
    "dreams": "D",
    "agents": "A",
    "general": "",
}
BUDGET = frozenset({"lamina.budgetCalls", "lamina.budgetTokens", "lamina.budgetDollars"})
# Levels below the user's file, and the file itself: there a change takes effect.
OURS = frozenset({"default", "user", "remote flag"})
VALUE_CHARS = 160


def routes(site: Site) -> list[Route]:
    def settings(request: Request) -> Response:
        return _settings(site, request)

    def write(request: Request, fields: Fields) -> Done:
        return _write(site, words_for(request), fields)

    return [Route("/settings", settings), change_route(site, "/settings/set", write)]


def group_of(row: Setting[Any]) -> str:
    if row.key in BUDGET:
        return "budget"
    return next((name for name, letters in GROUPS.items() if row.spec[0] in letters), "general")


def _settings(site: Site, request: Request) -> Response:
    words, held = words_for(request), site.settings
    document = _document(site)
    wanted, changed = request.query_params.get("q", ""), request.query_params.get("changed") == "1"
    groups: dict[str, list[Html]] = {name: [] for name in GROUPS}
    for row, found in held:
        if _matches(words, row, wanted) and (found.source != "default" or not changed):
            groups[group_of(row)].append(_row(words, row, found, document))
    body = join(
        (
            _head(site, words, held),
            [tag("p", {"class": "notice"}, bdi(words(found.text))) for found in held.findings],
            _filter(words, wanted, changed=changed),
            _jumps(words, groups),
            [_group(site, words, held, name, rows) for name, rows in groups.items() if rows],
            None
            if any(groups.values())
            else tag("div", {"class": "empty"}, tag("p", None, words("No setting matches. Change the filter."))),
        )
    )
    return page(site, request, title=words("Settings"), active="settings", body=body, data=_data(site, held))


def _matches(words: Words, row: Setting[Any], wanted: str) -> bool:
    """Whether a setting has all words of a filter in its name or its description."""
    text = f"{row.key} {_help(words, row)}".casefold()
    return all(term in text for term in wanted.casefold().split())


def _filter(words: Words, wanted: str, *, changed: bool) -> Html:
    box = tag("input", {"type": "checkbox", "name": "changed", "value": "1", "checked": changed})
    return tag(
        "form",
        {"class": "bar2", "id": "filter", "data-auto": True, "action": "/settings", "role": "search"},
        search_box(words, value=wanted, label=words("Filter settings")),
        tag("label", {"class": "check"}, box, words("Only those that differ")),
        tag("button", {"class": "btn"}, words("Apply")),
    )


def _document(site: Site) -> dict[str, Any] | None:
    """Return the file that changes are written to; None if this page changes nothing, or the file has to be repaired first."""
    if site.read_only or site.home is None:
        return None
    try:
        return user_document(site.home)
    except LaminaError:
        return None


def _data(site: Site, held: Settings) -> dict[str, Any]:
    rows = [
        {
            "key": row.key,
            "group": group_of(row),
            "value": row.shown(found.value),
            "source": found.source,
            "detail": found.detail,
            "help": row.help,
        }
        for row, found in held
    ]
    spent, limits = UsageLedger(site.home).today(), limits_of(held)
    used = {"calls": spent.calls, "tokens": spent.tokens, "dollars": spent.usd, "unpriced": spent.unpriced}
    return {
        "settings": rows,
        "budget": {"used": used, "limits": msgspec.structs.asdict(limits)},
        "findings": [one.text for one in held.findings],
    }


def _head(site: Site, words: Words, held: Settings) -> Html:
    changed = sum(found.source != "default" for _, found in held)
    place = str(site.home / "settings.json") if site.home is not None else ""
    facts = (
        tag("span", None, words("{n} value differs from its default|{n} values differ from their defaults", n=changed)),
        tag("span", None, words("Changes are written to {path}", path=place)) if place and not site.read_only else None,
    )
    keys = tag("button", {"class": "btn script", "type": "button", "data-keys": True}, words("Keyboard shortcuts"))
    return view_head(words("Settings"), tag("p", {"class": "meta"}, facts), right=keys)


def _jumps(words: Words, groups: dict[str, list[Html]]) -> Html:
    links = [
        tag("a", {"class": "btn sm", "href": f"#{name}"}, words(labels.SETTING_GROUPS[name]))
        for name, rows in groups.items()
        if rows
    ]
    return tag("nav", {"class": "bar2", "aria-label": words("Groups of settings")}, links)


def _group(site: Site, words: Words, held: Settings, name: str, rows: list[Html]) -> Html:
    head = tag("header", None, tag("h2", {"id": name}, words(labels.SETTING_GROUPS[name])))
    used = _budget(site, words, held) if name == "budget" else None
    return tag("section", {"class": "panel wide"}, head, used, tag("ul", {"class": "list"}, rows))


def _budget(site: Site, words: Words, held: Settings) -> Html:
    """Today's use of each limit of background work."""
    ledger, limits = UsageLedger(site.home), limits_of(held)
    spent = ledger.today()
    amounts = {"used": money(spent.usd), "limit": money(limits.dollars)}
    dollars = amounts if words.billing == "list" else {"share": share(spent.usd, limits.dollars)}
    lines = [
        (words("{n} of {limit} calls today", n=spent.calls, limit=tokens(limits.calls)), spent.calls, limits.calls),
        (
            words("{used} of {limit} tokens today", used=tokens(spent.tokens), limit=tokens(limits.tokens)),
            spent.tokens,
            limits.tokens,
        ),
        (
            words(
                "{used} of {limit} today, at list price"
                if words.billing == "list"
                else "{share} of the cost limit (lamina.budgetDollars) today",
                **dollars,
            ),
            spent.usd,
            limits.dollars,
        ),
    ]
    bars = [
        tag(
            "div",
            None,
            tag("span", {"class": "small"}, text),
            tag("progress", {"value": min(used, most), "max": most or 1, "aria-label": text}, share(used, most)),
        )
        for text, used, most in lines
    ]
    unknown = (
        tag(
            "p",
            {"class": "soft small"},
            words(
                "Price unknown for {n} call. It is not in the dollars.|Price unknown for {n} calls. They are not in the dollars."
                if words.billing == "list"
                else "Price unknown for {n} call. It does not count for the cost limit.|Price unknown for {n} calls. They "
                "do not count for the cost limit.",
                n=spent.unpriced,
            ),
        )
        if spent.unpriced
        else None
    )
    return tag("div", {"class": "body use"}, bars, unknown)


def _row(words: Words, row: Setting[Any], found: Resolved, document: dict[str, Any] | None) -> Html:
    shown = row.shown(found.value)
    text = words("not set") if shown is None else _said(shown)
    if row.kind is SWITCH:
        text = words("on") if found.value else words("off")
    return tag(
        "li",
        {"id": row.key, "class": "setting"},
        tag(
            "div",
            None,
            tag("b", {"class": "mono"}, row.key),
            tag("p", {"class": "soft small"}, _help(words, row)),
            _accepts(words, row) if document is not None and can_change(row) and found.source in OURS else None,
        ),
        tag("span", {"class": "mono value", "title": text}, bdi(cut(text, VALUE_CHARS))),
        tag("span", {"class": "soft small"}, _origin(words, found)),
        tag("div", {"class": "btns", "data-conflict": True}, _controls(words, row, found, document)),
    )


def _help(words: Words, row: Setting[Any]) -> str:
    return words(row.help)


def _accepts(words: Words, row: Setting[Any]) -> Html | None:
    """Return the sentence about accepted values; a switch and a list of choices show theirs."""
    if row.kind is SWITCH or row.kind.options:
        return None
    return tag("p", {"class": "soft small", "id": f"accepts-{row.key}"}, words("Accepts {what}.", what=Text.whole(row.kind.says)))


def _origin(words: Words, found: Resolved) -> Html:
    label = words(labels.SETTING_SOURCES[found.source])
    if found.source == "default" and found.detail:
        return join((words("Default of policy {name}", name=found.detail.removeprefix("policy ")),))
    return join((label, " ", bdi(words(found.detail))) if found.detail else (label,))


def can_change(row: Setting[Any]) -> bool:
    """Whether the page has a form for it. Addresses, directories, secrets and objects are changed in the file."""
    return row.kind.from_text is not None and row.kind not in (API_KEY, DIRECTORY, URL)


def _controls(words: Words, row: Setting[Any], found: Resolved, document: dict[str, Any] | None) -> Html | None:
    if document is None or not can_change(row):
        return None
    if found.source not in OURS:
        return tag("span", {"class": "soft small"}, words("Locked: a higher level decides."))
    base = json.dumps(value_in(document, row.key))
    hidden: list[Html] = [
        tag("input", {"type": "hidden", "name": "key", "value": row.key}),
        tag("input", {"type": "hidden", "name": "base", "value": base}),
    ]
    form: dict[str, Attribute] = {"data-change": True, "action": "/settings/set", "method": "post", "class": "btns"}
    form["id"] = f"form-{row.key}"
    reset = tag("button", {"class": "btn sm quiet", "name": "reset", "value": "1"}, words("Use the default"))
    return tag("form", form, hidden, _field(words, row, found), reset if found.source == "user" else None)


def _field(words: Words, row: Setting[Any], found: Resolved) -> Html:
    # The view is drawn again after a change, and the focus stays on the element with the same id.
    given: dict[str, Attribute] = {"name": "value", "aria-label": row.key, "id": f"set-{row.key}"}
    if row.kind is SWITCH:
        switch: dict[str, Attribute] = {"class": "switch", "role": "switch", "aria-checked": "true" if found.value else "false"}
        return tag("button", given | switch | {"value": "false" if found.value else "true"})
    shown = row.shown(found.value)
    text = "" if shown is None else shown if isinstance(shown, str) else json.dumps(shown)
    save = tag("button", {"class": "btn sm", "id": f"save-{row.key}"}, words("Save"))
    if row.kind.options:
        options = [tag("option", {"value": one, "selected": one == text}, one) for one in row.kind.options]
        return join((tag("select", given | {"class": "pick val"}, options), save))
    described: dict[str, Attribute] = {"value": text, "aria-describedby": f"accepts-{row.key}", "class": "pick val"}
    return join((tag("input", given | described), save))


def _write(site: Site, words: Words, fields: Fields) -> Done:
    row, home = find(fields.get("key", "")), site.home
    if row is None or home is None or not can_change(row):
        raise InputError("key", "is not a setting that can be changed here")
    value = _wanted(row, fields)
    base = _json(fields.get("base", "null"))
    try:
        set_user_setting(home, row.key, value, expected=base)
    except ChangedSetting as changed:
        raise Conflict(words("This was changed meanwhile. Nothing was lost."), _both(words, row, value, changed.found)) from None
    back = {"key": row.key, "base": json.dumps(value), "raw": json.dumps(base)}
    message = (
        words("{name} has its default again.", name=row.key)
        if value is None
        else words("{name} is now {value}.", name=row.key, value=_said(value))
    )
    return Done(message, Undo("/settings/set", back))


def _wanted(row: Setting[Any], fields: Fields) -> object:
    """Return the JSON to write; None removes the key. An undo sends the JSON itself, since the text of a value may be shortened."""
    if fields.get("reset"):
        return None
    if "raw" not in fields:
        return _parsed(row, fields.get("value", ""))
    raw = _json(fields["raw"])
    if raw is not None and (problems := row.kind.read(raw).problems):
        raise InputError(row.key, problems[0])
    return raw


def _json(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except UNDECODABLE:
        raise InputError("form", "is not readable", "reload the page and try again") from None


def _parsed(row: Setting[Any], text: str) -> object:
    """Read a value as a variable would be read, and return the JSON that stands for it in the file."""
    if row.kind is SWITCH:
        return text == "true"
    read = row.kind.read_text(text)
    if read.value is None or read.problems:
        raise InputError(row.key, next(iter(read.problems), Text("must be {says}", says=row.kind.says)))
    assert row.kind.from_text is not None
    return row.kind.from_text(text)


def _said(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _both(words: Words, row: Setting[Any], mine: object, theirs: object) -> Html:
    """Both versions: keep the one in the file, or write the one that was entered."""
    fields = {"key": row.key, "base": json.dumps(theirs), "raw": json.dumps(mine)}
    hidden = [tag("input", {"type": "hidden", "name": name, "value": value}) for name, value in fields.items()]
    return tag(
        "form",
        {"data-change": True, "action": "/settings/set", "method": "post", "class": "btns"},
        hidden,
        tag(
            "span",
            {"class": "small"},
            words("In the file: {value}", value=words("not set") if theirs is None else _said(theirs)),
        ),
        tag(
            "button",
            {"class": "btn sm"},
            words("Write {value}", value=words("not set") if mine is None else _said(mine)),
        ),
        tag("a", {"class": "btn sm quiet", "href": f"#{row.key}", "data-anew": "1"}, words("Keep it")),
    )
