"""Replay: choose sessions and policies, watch the table grow, see the difference, save the report as one file.

The choice lives in the address (`session=claude-code/ID`, `policy=lean`, `without=notes`) and the result in the home's cache, so a
link works after a restart. A replay that is no longer kept is started again with the same choice. The parts of the report are those
of `replay.html`, which `lamina replay --html` writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from ..core.policy import POLICIES
from ..history.places import NAMES
from ..history.sessions import SourceSession
from ..language.text import Text
from ..replay.chart import ChartWords
from ..replay.html import ReportWords, SessionName, differences, parts, translated_page
from ..replay.html import page as report_file
from ..replay.report import ReplayReport
from ..replay.variants import LAYERS, row_title
from . import labels
from .changes import Done, Fields, Refused, change_route
from .html import Child, Html, bdi, cut, join, tag
from .numbers import ago, length
from .page import page, problem, search_box, view_head
from .replay_jobs import MOST_SECONDS, Busy, ReplayJob
from .session_list import address, cost_of, filtered, no_sessions, project_name, title_of
from .site import Site
from .words import Words, words_for

# Sessions of one replay.
MOST_SESSIONS = 40
# Sessions listed; the filter finds the others.
LISTED = 60


def routes(site: Site) -> list[Route]:
    def choose(request: Request) -> Response:
        return _choose(site, request)

    def shown(request: Request) -> Response:
        job = site.replays.get(request.path_params["id"])
        return _gone(site, request) if job is None else _one(site, request, job)

    def saved(request: Request) -> Response:
        job = site.replays.get(request.path_params["id"])
        if job is None:
            return _gone(site, request)
        made = _file(words_for(request), job.shown)
        return HTMLResponse(
            made.encode("utf-8", "replace"),
            headers={"Content-Disposition": f'attachment; filename="lamina-replay-{job.id}.html"'},
        )

    def start(request: Request, fields: Fields) -> Done:
        return _start(site, words_for(request), fields)

    def stop(request: Request, fields: Fields) -> Done:
        words, job = words_for(request), site.replays.get(request.path_params["id"])
        if job is None:
            raise Refused(words("This replay is no longer kept. Start it again with the same choice."))
        job.stop()
        return Done(words("The replay stops."))

    return [
        Route("/replay", choose),
        change_route(site, "/replay/start", start, writes=False),
        Route("/replay/{id}", shown),
        Route("/replay/{id}/report.html", saved),
        change_route(site, "/replay/{id}/stop", stop, writes=False),
    ]


def _start(site: Site, words: Words, fields: Fields) -> Done:
    """Start the replay that a form describes: one field per chosen session, policy and layer."""
    names, policies, without = (list(_named(fields, kind)) for kind in ("session", "policy", "without"))
    if not names:
        raise Refused(words("Choose at least one session."))
    if len(names) > MOST_SESSIONS:
        raise Refused(words("Choose at most {n} sessions at a time.", n=MOST_SESSIONS))
    unknown = [name for name in policies if name not in POLICIES] + [one for one in without if one not in LAYERS]
    if unknown:
        raise Refused(words("Unknown policy or layer: {name}.", name=cut(unknown[0], 40)))
    sessions = [_session(site, words, name) for name in names]
    try:
        job = site.replays.start([session.path for session in sessions], policies, without)
    except Busy:
        raise Refused(words("Too many replays wait. Stop one or wait for its end.")) from None
    except OSError:
        raise Refused(words("The session {id} is no longer on disk.", id=cut(names[0], 80))) from None
    return Done(words("Replaying {n} session.|Replaying {n} sessions.", n=len(sessions)), location=_address(site, job))


def _named(fields: Iterable[str], kind: str) -> Iterable[str]:
    """Return the names of the checked boxes of a kind: the field `policy:lean` stands for `lean`."""
    return (name.partition(":")[2] for name in fields if name.startswith(f"{kind}:"))


def _session(site: Site, words: Words, name: str) -> SourceSession:
    origin, _, id = name.partition("/")
    found = site.session(origin, id)
    if found is None:
        raise Refused(words("The session {id} is no longer on disk.", id=cut(name, 80)))
    return found


def _sessions_of(site: Site, job: ReplayJob) -> list[SourceSession]:
    """Return the sessions of a job that are still listed."""
    known = {session.path: session for session in site.sessions().sessions}
    return [known[path] for path in job.files if path in known]


def _choice(site: Site, job: ReplayJob) -> str:
    """Return the query that describes what was chosen."""
    pairs = [("session", _name(session)) for session in _sessions_of(site, job)]
    pairs += [("policy", name) for name in job.policies] + [("without", name) for name in job.without]
    return urlencode(pairs, safe="/")


def _address(site: Site, job: ReplayJob) -> str:
    return f"/replay/{job.id}?{_choice(site, job)}"


def _name(session: SourceSession) -> str:
    return f"{session.origin}/{session.id}"


def _gone(site: Site, request: Request) -> Response:
    words = words_for(request)
    asked = [(key, value) for key, value in request.query_params.multi_items() if key in ("session", "policy", "without")]
    back = f"/replay?{urlencode(asked, safe='/')}"
    return problem(
        site,
        request,
        words("Replay not found"),
        words("This replay is no longer kept. Start it again with the same choice."),
        status=404,
        back=back,
    )


def _choose(site: Site, request: Request) -> Response:
    looked = site.look("sessions:")
    words, asked, listing = words_for(request), request.query_params, site.sessions()
    ticked = {kind: [*asked.getlist(kind), *_named(asked, kind)] for kind in ("session", "policy", "without")}
    chosen = [found for name in ticked["session"] if (found := site.session(*_split(name))) is not None]
    named = {_name(session) for session in chosen}
    others = [session for session in filtered(request, listing.top) if _name(session) not in named]
    policies = ticked["policy"] or [name for name in POLICIES if name != site.settings.policy.name]
    form = tag(
        "form",
        {"class": "replay", "id": "choice", "action": "/replay/start", "method": "post", "data-change": True},
        tag(
            "section",
            {"class": "panel", "aria-labelledby": "hs"},
            tag("header", None, tag("h2", {"id": "hs"}, words("Sessions"))),
            _session_rows(site, words, chosen, others),
        ),
        _policies(words, policies, ticked["without"]),
    )
    content = (_filter(words, request), form) if listing.top or listing.of else no_sessions(site, words)
    body = join((_head(words), content, _earlier(site, words)))
    data = {
        "sessions": [_name(one) for one in (*chosen, *others[:LISTED])],
        "policies": list(POLICIES),
        "layers": list(LAYERS),
        "runs": [_row(site, job) for job in site.replays.list()],
    }
    watch = looked if listing.of else None
    return page(site, request, title=words("Replay"), active="replay", body=body, data=data, watch=watch)


def _head(words: Words) -> Html:
    lead = tag(
        "p",
        {"class": "soft"},
        words(
            "Choose recorded sessions and policies. Lamina plays the sessions again and shows what each policy "
            "would have cost. No model is called and no file of yours is changed."
            if words.billing == "list"
            else "Choose recorded sessions and policies. Lamina plays the sessions again and shows what each policy "
            "would have used. No model is called and no file of yours is changed."
        ),
    )
    return view_head(words("Replay"), lead)


def _split(name: str) -> tuple[str, str]:
    origin, _, id = name.partition("/")
    return origin, id


def _filter(words: Words, request: Request) -> Html:
    """The filter sends what is ticked too, so that it keeps it."""
    sort = request.query_params.get("sort", "newest")
    orders = [
        tag(
            "option",
            {"value": name, "selected": name == sort},
            words(labels.USE_FIRST if name == "dearest" and words.billing == "subscription" else labels.SORT_ORDERS[name]),
        )
        for name in ("newest", "dearest")
    ]
    return tag(
        "form",
        {"class": "bar2", "id": "filter", "action": "/replay", "role": "search", "data-with": "choice"},
        search_box(words, value=request.query_params.get("q", ""), label=words("Filter sessions")),
        tag("select", {"name": "sort", "class": "pick", "aria-label": words("Order"), "data-auto": True}, orders),
        tag("button", {"class": "btn"}, words("Show")),
    )


def _session_rows(site: Site, words: Words, chosen: list[SourceSession], others: list[SourceSession]) -> Html:
    if not chosen and not others:
        return tag("p", {"class": "body soft"}, words("No session matches. Change the filter."))
    shown = [(session, True) for session in chosen] + [(session, False) for session in others[:LISTED]]
    rows = [_session_row(words, session, checked, site.clock()) for session, checked in shown]
    more = (
        words(
            "Listed {shown} of {n} session.|Listed the first {shown} of {n} sessions.",
            n=len(chosen) + len(others),
            shown=len(shown),
        )
        if len(others) > LISTED
        else None
    )
    return join((tag("ul", {"class": "choose"}, rows), tag("p", {"class": "body soft small"}, more) if more else None))


def _session_row(words: Words, session: SourceSession, checked: bool, now: float) -> Html:
    box = tag("input", {"type": "checkbox", "name": f"session:{_name(session)}", "value": "1", "checked": checked})
    facts = [project_name(session), NAMES[session.origin], ago(words, session.last_active, now)]
    return tag(
        "li",
        None,
        tag(
            "label",
            None,
            box,
            tag("span", {"class": "what"}, bdi(cut(title_of(words, session), 120))),
            tag("span", {"class": "meta"}, [tag("span", None, fact) for fact in facts if fact]),
            tag("span", {"class": "num"}, cost_of(words, session)),
        ),
    )


def _policies(words: Words, chosen: list[str], without: list[str]) -> Html:
    def check(kind: str, name: str, label: Child, checked: bool) -> Html:
        box = tag("input", {"type": "checkbox", "name": f"{kind}:{name}", "value": "1", "checked": checked})
        return tag("label", {"class": "check"}, box, tag("span", None, label))

    def told(name: str) -> Html:
        return join((name, tag("br"), tag("span", {"class": "soft small"}, words(labels.POLICIES[name]))))

    return tag(
        "section",
        {"class": "panel options", "aria-labelledby": "hp"},
        tag("header", None, tag("h2", {"id": "hp"}, words("Policies"))),
        tag(
            "div",
            {"class": "body"},
            [check("policy", name, told(name), name in chosen) for name in POLICIES],
            tag("p", {"class": "soft small"}, words("Your settings and the recording are always compared.")),
            tag("h3", None, words("Also with a layer off")),
            [check("without", name, words(labels.LAYERS[name]), name in without) for name in LAYERS],
            tag("div", {"class": "btns"}, tag("button", {"class": "btn main"}, words(Text("Replay##start")))),
        ),
    )


def _earlier(site: Site, words: Words) -> Html | None:
    rows = [
        tag(
            "li",
            None,
            tag("a", {"href": _address(site, job), "data-row": True}, bdi(_subject(site, words, job))),
            tag(
                "span",
                {"class": "meta"},
                [tag("span", None, fact) for fact in (", ".join(job.policies), _state(words, job)) if fact],
                ago(words, job.started, site.clock()),
            ),
        )
        for job in site.replays.list()
    ]
    if not rows:
        return None
    head = tag("header", None, tag("h2", None, words("Earlier replays")))
    return tag("section", {"class": "panel wide"}, head, tag("ul", {"class": "list kept"}, rows))


def _subject(site: Site, words: Words, job: ReplayJob) -> str:
    sessions = _sessions_of(site, job)
    more = f" +{len(job.files) - 1:,}" if len(job.files) > 1 else ""
    return f"{cut(title_of(words, sessions[0]), 80) if sessions else words('Replay')}{more}"


def _state(words: Words, job: ReplayJob) -> str:
    match job.outcome:
        case "limited":
            return words(
                "Stopped after {n} minutes. The table shows what was finished; choose fewer sessions.", n=round(MOST_SECONDS / 60)
            )
        case "failed":
            return words("The replay failed: {reason}", reason=words(job.problem))
        case outcome:
            return words(labels.REPLAY_STATES[outcome])


def _row(site: Site, job: ReplayJob) -> dict[str, object]:
    return {
        "id": job.id,
        "url": _address(site, job),
        "state": job.outcome,
        "played": job.done,
        "sessions": len(job.files),
        "progress": job.progress._asdict(),
    }


def _texts(words: Words) -> ReportWords:
    return ReportWords(words.language, words.billing, _times(words))


def _file(words: Words, report: ReplayReport) -> str:
    """Return the report as one file in the language of the page. The English one is that of the command."""
    if words.language == "en":
        return report_file(report, "Replay", billing=words.billing)
    lead = words(
        "Lamina replayed {n} recorded session with {calls} calls.|Lamina replayed {n} recorded sessions with {calls} calls.",
        n=report.sessions,
        calls=f"{report.calls:,}",
    )
    return translated_page(report, words("Replay"), lead, _texts(words))


def _one(site: Site, request: Request, job: ReplayJob) -> Response:
    # After a restart the titles come with the list of sessions.
    watch = site.look(f"replay:{job.id}") if job.running else site.look("sessions:") if site.sessions().of else None
    words, report = words_for(request), job.shown
    texts = _texts(words)
    names = {
        session.path: SessionName(cut(title_of(words, session), 120), address(session)) for session in _sessions_of(site, job)
    }
    body = join(
        (
            _job_head(site, words, job),
            _progress(words, job),
            differences(report, texts) or _nothing(words, job),
            [
                tag(
                    "section",
                    {"class": "panel wide"},
                    tag("header", None, tag("h2", None, heading)),
                    tag("div", {"class": "body"}, part),
                )
                for heading, part in parts(report, texts, names)
                if report.sessions or report.skipped
            ],
        )
    )
    data = _row(site, job) | {"report": report.to_json()}
    title = words("Replay")
    return page(site, request, title=title, active="replay", body=body, data=data, watch=watch)


def _times(words: Words) -> ChartWords:
    """Return how the charts name days and pauses: in the user's time and language."""
    return ChartWords(
        lambda at: words("{d} {month}", d=at.day, month=labels.MONTHS[at.month - 1]),
        lambda seconds: words("pause of {length}", length=length(words, seconds)),
        zone=None,
    )


def _job_head(site: Site, words: Words, job: ReplayJob) -> Html:
    off = [words("without: {layer}", layer=words(labels.LAYERS[one])) for one in job.without]
    stop = tag(
        "form",
        {"action": f"/replay/{job.id}/stop", "method": "post", "data-change": True},
        tag("button", {"class": "btn", "id": "stop", "disabled": job.stopping}, words("Stop")),
    )
    again = tag("a", {"class": "btn", "href": f"/replay?{_choice(site, job)}"}, words("Choose again"))
    save = tag("a", {"class": "btn main", "href": f"/replay/{job.id}/report.html", "download": True}, words("Save as one file"))
    buttons = (stop,) if job.running else (again, save if job.report.sessions else None)
    facts = [tag("span", None, fact) for fact in (*job.policies, *off)]
    return view_head(
        bdi(_subject(site, words, job)),
        tag("p", {"class": "meta"}, facts),
        crumb=tag("a", {"href": "/replay"}, words("Replay")),
        right=tag("div", {"class": "btns"}, buttons),
    )


def _progress(words: Words, job: ReplayJob) -> Html:
    at, of = job.progress, len(job.files)
    if not job.running:
        played = words("Played {done} of {n} session.|Played {done} of {n} sessions.", n=of, done=f"{job.done:,}")
        bad = job.outcome in ("failed", "limited")
        kind = "notice" if bad else "meta state"
        return tag("p", {"class": kind, "role": "status", "id": "progress"}, f"{_state(words, job)} {played}")
    told = (
        words("Session {at} of {of}: it is being read", at=job.done + 1, of=of)
        if job.begun
        else words("Waits for another replay to end.")
    )
    if at.calls:
        told = words(
            "Session {at} of {of}: {policy}, call {call} of {calls}",
            at=job.done + 1,
            of=of,
            policy=row_title(at.policy),
            call=f"{at.call:,}",
            calls=f"{at.calls:,}",
        )
    return tag(
        "div",
        {"class": "state", "role": "status", "id": "progress"},
        tag("progress", {"max": 1, "value": f"{_share_done(job):.3f}", "aria-label": words("Running.")}),
        tag("span", {"class": "soft small"}, told),
    )


def _share_done(job: ReplayJob) -> float:
    names = [row.name for row in job.rows]
    finished = names.index(job.progress.policy) if job.progress.policy in names else 0
    session = (finished + job.progress.call / max(1, job.progress.calls)) / len(names)
    return (job.done + min(1.0, session)) / len(job.files)


def _nothing(words: Words, job: ReplayJob) -> Html | None:
    """Return why the sessions cannot be compared with the recording; None if the replay runs or was stopped too early to say."""
    shown = job.shown
    if job.running or shown.silent < shown.sessions or (job.outcome != "done" and not shown.sessions):
        return None
    sentence = Text("None of the chosen sessions could be replayed.")
    if shown.sessions and words.billing == "list":
        sentence = Text("The sessions report no usage, so there is no recorded cost to compare with.")
    elif shown.sessions:
        sentence = Text("The sessions report no usage, so there is nothing to compare with.")
    return tag("p", {"class": "empty"}, words(sentence))
