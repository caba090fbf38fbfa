"""Forget a subject: find everything that names it, list what will be removed, and remove it for good once the word is typed again.

It is the only change of the page without an undo, so it asks first. The work is that of `lamina forget`.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..core.errors import InputError, LaminaError
from ..maintenance.forget.forget import ForgetReport
from ..maintenance.forget.forget import as_json as report_json
from ..maintenance.forget.job import ForgetJob, job_path, plan_job, run_job
from .changes import Done, Fields, change_route, digest
from .html import Html, bdi, join, tag
from .memory_changes import bound
from .memory_forms import button, change_form, memory_page
from .memory_list import place_name
from .page import opening, patience, problem, view_head
from .site import Site
from .words import Words, words_for

FORGET = "/changes/memories/forget"
HERE = "/memories/forget"
MOST_SHOWN = 100


def routes(site: Site) -> list[Route]:
    def forget(request: Request) -> Response:
        return _forget(site, request)

    return [Route(HERE, forget), change_route(site, FORGET, bound(site, _run))]


def _forget(site: Site, request: Request) -> Response:
    words, asked = words_for(request), request.query_params
    title = words("Forget a subject")
    if site.read_only or site.home is None:
        return problem(
            site, request, title, words("You are looking at someone else's files. Changes are off."), status=403, back="/memories"
        )
    subject, project = asked.get("subject", "").strip(), asked.get("project", "")
    planned, why = None, ""
    try:
        if subject:
            found = site.slow.ask(("forget", subject, project), lambda: _plan(site, subject, project), patience(request))
            if found is None:
                head, said = view_head(title), words("Looking for it in all memories and sessions…")
                return opening(site, request, title=title, active="memories", head=head, sentence=said)
            planned = found.result()
    except LaminaError as error:
        why = words(error)
    places = [place for place in site.places.all() if place.own and place.agent is None and place.project is not None]
    options = [tag("option", {"value": "", "selected": not project}, words("All projects"))]
    options += [tag("option", {"value": place.id, "selected": place.id == project}, place_name(place)) for place in places]
    form = tag(
        "form",
        {"class": "editor", "action": HERE, "id": "about"},
        tag(
            "label",
            None,
            words("Subject: a name, a word or a phrase"),
            tag("input", {"name": "subject", "value": subject, "required": True, "dir": "auto", "id": "subject"}),
        ),
        tag("label", None, words("Project"), tag("select", {"name": "project", "class": "pick"}, options)),
        tag("div", {"class": "btns"}, tag("button", {"class": "btn" if planned else "btn main"}, words("Find what names it"))),
    )
    body = tag(
        "div",
        {"class": "narrow", "data-live": "own", "data-conflict": True},
        tag("p", {"class": "crumb"}, tag("a", {"href": "/memories"}, words("Memories"))),
        tag("h1", None, title),
        tag(
            "p",
            {"class": "soft"},
            words(
                "Removes every mention from memories, history, transcripts and all other files that Lamina keeps. "
                "This cannot be undone."
            ),
        ),
        form,
        tag("p", {"class": "notice", "role": "alert"}, bdi(why)) if why else None,
        _found(words, subject, project, planned) if planned is not None else None,
    )
    return memory_page(
        site, request, title=title, body=body, data=report_json(planned) if planned is not None else {"error": why}
    )


def _job(site: Site, subject: str, project: str) -> ForgetJob:
    place = site.places.find(project) if project else None
    if project and (place is None or not place.own or place.project is None):
        raise InputError("project", "is not known")
    cwd = place.project if place is not None and place.project is not None else site.cwd
    return ForgetJob(subject, str(cwd), everywhere=place is None)


def _plan(site: Site, subject: str, project: str) -> ForgetReport:
    assert site.home is not None
    job = _job(site, subject, project)
    return plan_job(site.home, job_path(site.home, job), job, site.environ, site.views.wait)[1]


def _found(words: Words, subject: str, project: str, planned: ForgetReport) -> Html:
    """Return what would be removed, and the form that wants the word typed again."""
    if not planned.done:
        return tag("p", {"class": "empty", "role": "status"}, words("Nothing names this subject."))
    rows = [
        tag("li", None, tag("b", None, item.kind), " ", tag("span", {"class": "mono"}, bdi(item.path)))
        for item in planned.done[:MOST_SHOWN]
    ]
    more = tag("li", {"class": "soft"}, f"… {len(planned.done) - MOST_SHOWN:,}") if len(planned.done) > MOST_SHOWN else None
    fields = {"subject": subject, "project": project, "digest": _digest(planned)}
    return join(
        (
            tag("h2", None, words("{n} file would change:|{n} files would change:", n=len(planned.done))),
            tag("ul", {"class": "entries"}, rows, more),
            change_form(
                FORGET,
                fields,
                tag(
                    "label",
                    None,
                    words("Type “{subject}” again to confirm", subject=subject),
                    tag("input", {"name": "typed", "autocomplete": "off", "id": "typed"}),
                ),
                tag("div", {"class": "btns"}, button(words("Remove it for good"), {"class": "btn danger"})),
                attributes={"class": "editor", "id": "editor"},
            ),
        )
    )


def _digest(planned: ForgetReport) -> str:
    """Return what tells one list of files from another: the user agreed to this one."""
    return digest("\n".join(sorted(f"{item.kind} {item.path}" for item in planned.done)).encode("utf-8", "surrogateescape"))


def _run(site: Site, words: Words, fields: Fields) -> Done:
    subject, project = fields.get("subject", "").strip(), fields.get("project", "")
    if not subject or fields.get("typed", "").strip() != subject:
        raise InputError(subject or "subject", words("type the subject again exactly as above"))
    assert site.home is not None
    job = _job(site, subject, project)
    path = job_path(site.home, job)
    job, planned = plan_job(site.home, path, job, site.environ)
    if _digest(planned) != fields.get("digest"):
        raise InputError(subject, words("other files name it by now; look at the new list first"))
    done = run_job(site.home, path, job, planned, site.environ)
    if not done.is_complete():
        each = (words("{file}: {why}", file=one.path, why=words(one.why)) for one in [*done.skipped, *done.left][:3])
        why = words("; ").join(each)
        unfinished = words(
            "Not complete: {n} file changed. Run `lamina forget --resume`."
            "|Not complete: {n} files changed. Run `lamina forget --resume`.",
            n=len(done.done),
        )
        return Done(f"{unfinished} {why}".strip(), None, "/memories")
    return Done(words("Forgotten: {n} file changed.|Forgotten: {n} files changed.", n=len(done.done)), None, "/memories")
