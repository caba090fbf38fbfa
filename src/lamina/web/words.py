"""The words of the page: the language and the billing that a request asks for."""

from __future__ import annotations

from starlette.requests import Request

from ..core.settings import Billing
from ..language import text
from ..language.text import LANGUAGES, Shown

COOKIE = "lamina-lang"


class Words(text.Words):
    """The texts of one language and one way to pay: `words("{n} turn|{n} turns", n=3)`."""

    def __init__(self, language: Shown, billing: Billing = "list") -> None:
        super().__init__(language)
        self.billing: Billing = billing


def words_for(request: Request) -> Words:
    """Return the words for a request, in the language of `?lang=`, of the cookie, or that the browser prefers."""
    app = request.scope.get("app")  # a visitor who is not let in reaches no application
    asked_for = getattr(app.state, "billing", None) if app is not None else None
    billing: Billing = asked_for() if asked_for is not None else "list"
    accepted = [part.split(";")[0].strip().lower()[:2] for part in request.headers.get("accept-language", "").split(",")]
    asked = [request.query_params.get("lang", ""), request.cookies.get(COOKIE, ""), *accepted]
    return Words(next((language for part in asked for language in LANGUAGES if language == part), "en"), billing)
