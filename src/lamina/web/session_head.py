"""The head of a session's view: the way back, the title, when it ran; and what its transcript leaves out."""

from __future__ import annotations

from urllib.parse import urlencode

from ..history.places import NAMES
from ..history.sessions import SourceSession
from ..history.window_series import Series
from ..providers.amounts import Amount
from .html import Child, Html, bdi, cut, join, tag
from .numbers import absolute, amount, length, moment
from .page import view_head
from .session_data import OpenSession
from .session_list import TITLE_CHARS, address, amount_of, is_running, project_name, title_of
from .site import Site
from .words import Words

# Subagents that are linked, and characters of their titles.
MOST_SUBAGENTS = 8
LINK_CHARS = 40


def session_head(words: Words, site: Site, opened: OpenSession) -> Html:
    session, series = opened.session, opened.series
    way = crumb(words, session, site.index.find(session.origin, session.parent, wait=0) if session.parent else None)
    period = opened.once("period", words, lambda series: _period(words, session.started, series, session.modified))
    facts = [NAMES[session.origin], series.model, *period]
    foreign = tag("span", {"class": "ro"}, words("Read-only source")) if session.origin != "lamina" else None
    running = tag("span", {"class": "live"}, words("running")) if is_running(session, site.clock()) else None
    replay = tag(
        "a", {"class": "btn main", "href": f"/replay?session={session.origin}/{session.id}"}, words("Replay with another policy")
    )
    told = [tag("span", None, bdi(fact)) for fact in facts if fact]
    copy = tag("button", {"class": "btn script", "type": "button", "data-copy": ""}, words("Copy link"))
    return view_head(
        bdi(cut(title_of(words, session), TITLE_CHARS)),
        tag("div", {"class": "meta", "id": "meta"}, told, running, foreign),
        crumb=way,
        right=tag("div", {"class": "btns"}, copy, replay),
    )


def crumb(words: Words, session: SourceSession, parent: SourceSession | None) -> Html:
    """The way back: the list, the project, and for a subagent the session that started it."""
    steps = [tag("a", {"href": "/sessions"}, words("Sessions"))]
    if session.project:
        steps.append(tag("a", {"href": f"/sessions?{urlencode({'project': session.project})}"}, bdi(project_name(session))))
    if parent is not None:
        steps.append(_linked(words, parent))
    return join([(" / " if at else None, step) for at, step in enumerate(steps)])


def _linked(words: Words, session: SourceSession) -> Html:
    return tag("a", {"href": address(session)}, bdi(cut(title_of(words, session), LINK_CHARS)))


def _period(words: Words, started: str, series: Series, modified: float) -> list[str]:
    """Return when the session began and ended. The header of a copied session is newer than its first request."""
    times = [at for one in (started, *(point.time for point in series.requests)) if (at := moment(one)) is not None]
    if not times:
        return [absolute(words, modified)]
    begin, end = min(times), max(times)
    if end == begin:
        return [absolute(words, begin.timestamp())]
    until = f"{end:%H:%M}" if begin.date() == end.date() else absolute(words, end.timestamp())[:-3]
    return [
        words("{begin} to {end}", begin=absolute(words, begin.timestamp())[:-3], end=until),
        length(words, (end - begin).total_seconds()),
    ]


def subagents_of(site: Site, opened: OpenSession) -> list[SourceSession]:
    """Return the subagents with separate files. The list adds their costs to those of the session."""
    session = opened.session
    folded = (one for one in site.index.listing.top if one.path == session.path and one.origin != "lamina")
    return [child for one in folded for child in one.subagents]


def warnings(words: Words, series: Series, subagents: list[SourceSession]) -> Html | None:
    lines: list[Child] = []
    if series.missing_base:
        lines.append(
            words("This session continues {id}, which is missing or cut short. The rest is shown.", id=series.missing_base)
        )
    if series.skipped_lines:
        others = series.skipped_lines - len(series.damaged)
        which = ", ".join(f"{line:,}" for line in series.damaged) + (f", +{others:,}" if others else "")
        lines.append(
            words(
                "{n} of {lines} lines could not be read (line {which}). The rest is shown.|{n} of {lines} lines "
                "could not be read (lines {which}). The rest is shown.",
                n=series.skipped_lines,
                lines=f"{series.lines:,}",
                which=which,
            )
        )
    if series.estimated and series.requests:
        lines.append(words("This transcript has no token counts. The picture shows estimates."))
    if series.short_outputs:
        lines.append(
            words(
                "The output is too low: the transcript holds only the beginning of the output count of {n} "
                "answer.|The output is too low: the transcript holds only the beginning of the output count of {n} "
                "answers.",
                n=series.short_outputs,
            )
        )
    if series.beside:
        usd = amount(words, Amount(series.beside_usage, series.beside_usd))
        lines.append(
            words(
                "The file also holds {n} request of subagents ({usd}). It is part of the cost in the list of "
                "sessions and is not shown here.|The file also holds {n} requests of subagents ({usd}). They are "
                "part of the cost in the list of sessions and are not shown here."
                if words.billing == "list"
                else "The file also holds {n} request of subagents ({usd}). It is part of the use in the list of sessions "
                "and is not shown here.|The file also holds {n} requests of subagents ({usd}). They are part of the "
                "use in the list of sessions and are not shown here.",
                n=series.beside,
                usd=usd,
            )
        )
    if series.side.calls:
        usd = amount(words, Amount(series.side.usage, series.side.usd))
        lines.append(
            words(
                "{n} call beside the conversation ({usd}). It is part of the cost in the list of sessions and is not "
                "shown here.|{n} calls beside the conversation ({usd}). They are part of the cost in the list of "
                "sessions and are not shown here.",
                n=series.side.calls,
                usd=usd,
            )
        )
    if subagents:
        usd = amount(words, sum(map(amount_of, subagents), Amount()))
        links = [(" ", _linked(words, one)) for one in subagents[:MOST_SUBAGENTS]]
        more = f" +{len(subagents) - MOST_SUBAGENTS:,}" if len(subagents) > MOST_SUBAGENTS else None
        lines.append(
            join(
                (
                    words(
                        "{n} subagent has a file of its own ({usd}). Its cost is part of the list of sessions and is not "
                        "shown here.|{n} subagents have files of their own ({usd}). Their cost is part of the list of "
                        "sessions and is not shown here."
                        if words.billing == "list"
                        else "{n} subagent has a file of its own ({usd}). Its use is part of the list of sessions and is not "
                        "shown here.|{n} subagents have files of their own ({usd}). Their use is part of the list of "
                        "sessions and is not shown here.",
                        n=len(subagents),
                        usd=usd,
                    ),
                    links,
                    more,
                )
            )
        )
    return tag("div", {"class": "notice", "role": "note"}, [tag("p", None, line) for line in lines]) if lines else None


def gone_notice(words: Words) -> Html:
    """Return the line shown once the file is removed; what was read stays on the page."""
    back = tag("a", {"href": "/sessions"}, words("Back to the sessions"))
    return tag("p", {"class": "notice", "id": "gone", "hidden": True}, words("This session is no longer on disk."), " ", back)
