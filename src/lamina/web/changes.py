"""The form of a change: a POST that answers with one sentence, how to undo it, and where to go; or with a conflict.

The page sends forms marked `data-change` by script, with the secret in a header (static/frame.js). Invariants: a read-only page
changes nothing; an error of Lamina becomes its sentence; a conflict shows both versions and loses neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import TypeAlias

import msgspec
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..core.decoding import UNDECODABLE
from ..core.errors import LaminaError
from ..core.reach import RUN_BY_MODEL
from .html import Html
from .page import json_response
from .site import Site
from .words import words_for

Fields: TypeAlias = Mapping[str, str]


class Undo(msgspec.Struct, frozen=True):
    """The change that takes a change back: the address to post to, and the form's fields."""

    url: str
    fields: dict[str, str] = {}


class Done(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a change. `location` is the view to show next; without one the same view is shown again."""

    message: str
    undo: Undo | None = None
    location: str = ""


class Conflict(Exception):
    """The file changed since the form was made. `body` shows both versions, with forms to keep one of them, in place of the form.

    An undo has no form: `location` is the view where the user finds the versions.
    """

    def __init__(self, message: str, body: Html, location: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.body = body
        self.location = location


Run: TypeAlias = Callable[[Request, Fields], Done]


class Refused(Exception):
    """A form that cannot be done, with the sentence that says why."""


def change_route(site: Site, path: str, run: Run, *, writes: bool = True) -> Route:
    """Return a route for a change. `run` gets the form's fields and works in a thread; it raises Conflict, Refused or a LaminaError.

    A form that writes no file, such as one that starts a replay, works on a read-only page too.
    """

    async def change(request: Request) -> Response:
        words = words_for(request)
        if writes and (site.read_only or RUN_BY_MODEL in site.environ):
            return json_response(
                {
                    "message": words(
                        "You are looking at someone else's files. Changes are off."
                        if site.read_only
                        else "Changes are off: a model started this page. Run `lamina ui` in your own terminal."
                    )
                },
                403,
            )
        fields = await _fields(request)
        if fields is None:
            return json_response({"message": words("The form could not be read. Reload the page and try again.")}, 400)
        try:
            return json_response(await to_thread.run_sync(run, request, fields))
        except Conflict as conflict:
            told = {"message": conflict.message, "html": conflict.body, "location": conflict.location}
            return json_response(told, 409)
        except (LaminaError, Refused) as error:
            return json_response({"message": words(error)}, 400)
        finally:
            site.count_again()

    return Route(path, change, methods=["POST"])


def digest(data: bytes) -> str:
    """Return the digest that a form carries, so that a change to another version of the file is noticed."""
    return blake2b(data, digest_size=16).hexdigest()


async def _fields(request: Request) -> dict[str, str] | None:
    try:
        return msgspec.json.decode(await request.body(), type=dict[str, str])
    except UNDECODABLE:
        return None
