"""Drafts: validation of a memory before it is written.

A draft becomes a topic here. Invariants: name and description are one line each, secrets are removed, every part is within
its limit, and fields the draft does not mention stay unchanged. An invalid draft raises InputError before anything is
written. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ...core.errors import InputError
from ...language.invisible import remove_invisible
from ...language.text import Text
from .secrets import extract_secrets, redact, repeats_secret, says_nothing_else
from .topic import DESCRIPTION_CHARS, HIDDEN, KINDS, ORIGIN, Kind, Topic, clean_name, one_line, read_topic, short_digest

# Far more than a memory should contain.
MOST_BYTES = 256 << 10
# A memory relies on a few files; more is a listing. Together they leave room in the front matter for everything else.
MOST_EVIDENCE = 16
_EVIDENCE_BYTES = 1_500
# The advice for a text that is not a valid memory.
FORM = (
    f"begin the file with a line ---, then name: …, description: … (one line) and type: {' | '.join(KINDS)}, then a line ---, "
    "then the text"
)


class Draft(msgspec.Struct, frozen=True):
    """A memory to be saved. `type=None` keeps the current type; `modified` dates a memory that was created elsewhere, and
    earlier. `origin` names where the content comes from if it does not come from the user."""

    name: str
    type: Kind | None = None
    description: str = ""
    body: str = ""
    evidence: tuple[str, ...] = ()
    modified: float | None = None
    origin: str = ""


class CleanDraft(NamedTuple):
    """A valid draft; `redacted` lists the kinds of removed secrets."""

    draft: Draft
    redacted: tuple[str, ...] = ()


def clean_draft(draft: Draft, *, team: bool = False) -> CleanDraft:
    """Validate a draft: one line where required, secrets removed, within the limits. Raises InputError if it may not be
    written."""
    name, type, description, body = draft.name, draft.type, draft.description, draft.body
    kinds: list[str] = []

    def clean(text: str) -> str:
        redacted = redact(remove_invisible(text.encode("utf-8", "replace").decode()))
        kinds.extend(redacted.kinds)
        return redacted.text

    if not (title := clean_name(clean(name))):
        raise InputError("name", "a memory needs a name", "give it a few words, such as testing-db")
    if type is not None and type not in KINDS:
        raise InputError(
            title,
            Text("has the unknown type {kind!r}", kind=one_line(str(type), 40)),
            Text("use one of {options}", options=", ".join(KINDS)),
        )
    if team and type == "user":
        raise InputError(title, "memories about a person stay private", "save it without the team scope")
    if len(body.encode("utf-8", "replace")) > MOST_BYTES:
        raise InputError(
            title,
            Text("is longer than {limit} KiB", limit=MOST_BYTES >> 10),
            "keep the essentials and name the place of the rest",
        )
    text = clean(body)
    text = text if not text or text.endswith("\n") else f"{text}\n"
    rests_on = _evidence([clean(item) for item in draft.evidence[:MOST_EVIDENCE]])
    line = one_line(clean(description), DESCRIPTION_CHARS)
    if kinds and repeats_secret(title, [secret for part in (description, body) for secret in extract_secrets(part)]):
        raise InputError("name", "contains a secret that is also in the text", "choose a name that describes the subject")
    if team and kinds:
        raise InputError(
            title,
            Text("contains a secret ({kinds})", kinds=", ".join(dict.fromkeys(kinds))),
            "remove it, because team memory is shared",
        )
    if says_nothing_else(text):
        raise InputError(title, "would consist only of a secret, which is not saved", "save where the secret is kept instead")
    return CleanDraft(Draft(title, type, line, text, rests_on, draft.modified, draft.origin), tuple(dict.fromkeys(kinds)))


def _evidence(items: Sequence[str]) -> tuple[str, ...]:
    """Keep whole items while they fit: half a path or half a digest is not evidence."""
    evidence, size = list[str](), 0
    for item in (one_line(item, _EVIDENCE_BYTES) for item in items):
        size += len(item.encode()) + len('"", ')
        if item and size <= _EVIDENCE_BYTES:
            evidence.append(item)
    return tuple(evidence)


def apply_draft(draft: Draft, old: Topic | None, file: str) -> Topic:
    """Return the topic after the save: fields that the draft does not mention stay unchanged."""
    rests_on: dict[str, Any] = {"evidence": list(draft.evidence)} if draft.evidence else {}
    came_from = {ORIGIN: draft.origin} if draft.origin else {}
    if old is None:
        return Topic(file, draft.name, draft.description, draft.type, draft.body, rests_on | came_from)
    fields, metadata = old.fields, old.fields.get("metadata")
    if rests_on and "evidence" not in fields and isinstance(metadata, dict):
        rests_on = {"metadata": metadata | rests_on}
    fields = fields | rests_on | came_from
    return msgspec.structs.replace(
        old, description=draft.description, type=draft.type or old.type, body=draft.body, fields=fields, problems=()
    )


def read_draft(file: str, text: str, old: Topic | None, *, team: bool = False, keep: bool = True) -> tuple[CleanDraft, Topic]:
    """Parse the text of a topic file that someone wrote. Raises InputError if it is not a valid memory.

    With `keep`, unknown keys that the text does not mention stay unchanged. A fault that the file already had is accepted.
    """
    written = read_topic(file, text, 0)
    for problem in written.problems:
        if problem != HIDDEN and (old is None or problem not in old.problems):
            raise InputError(file, f"has {problem}" if problem.startswith("no ") else problem, FORM)
    clean = clean_draft(Draft(written.name, written.type, written.description, written.body), team=team)
    draft = clean.draft
    if old is None and (redact(file).kinds or (clean.redacted and repeats_secret(file, extract_secrets(text)))):
        raise InputError("file_path", "the file name contains a secret", "choose a file name that describes the subject")
    raw_fields = (old.fields if old is not None and keep else {}) | written.fields
    fields = {key: _without_secrets(value) for key, value in raw_fields.items()}
    if team and fields != raw_fields:
        raise InputError(draft.name, "contains a secret", "remove it, because team memory is shared")
    own = {"name": draft.name, "description": draft.description, "body": draft.body}
    return clean, msgspec.structs.replace(written, **own, fields=fields, problems=())


def _without_secrets(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_secrets(item) for key, item in value.items()}
    return redact(value).text if isinstance(value, str) else value


def second_file(file: str, name: str) -> str:
    """Return another file name for a memory whose first one belongs to another memory."""
    return f"{file.removesuffix('.md')}-{short_digest(name)}.md"
