"""What somebody wants to remember, and what of it may be written (S5, B7, W1).

Owns the step from a wish to a topic. Invariants: name and description are one line each, secrets are gone, every part is within its
limit; what a wish does not speak of stays as it was. A wish that may not be written is an InputError, before anything is. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ...core.errors import InputError
from .secrets import extract_secrets, redact, repeats_secret
from .topic import DESCRIPTION_CHARS, KINDS, Kind, Topic, clean_name, one_line, read_topic, short_digest

# Far more than a memory should hold.
MOST_BYTES = 256 << 10
# A memory rests on a few files; more is a listing. Together they leave room in the front matter for all else.
MOST_EVIDENCE = 16
_EVIDENCE_BYTES = 1_500
# What to do about a text that is no memory.
FORM = (
    f"begin the file with a line ---, then name: …, description: … (one line) and type: {' | '.join(KINDS)}, then a line ---, "
    "then the text"
)


class Draft(msgspec.Struct, frozen=True):
    """A memory as somebody wants it. `type=None` keeps the type it has; `modified` dates one that was made elsewhere, and earlier."""

    name: str
    type: Kind | None = None
    description: str = ""
    body: str = ""
    evidence: tuple[str, ...] = ()
    modified: float | None = None


class CleanDraft(NamedTuple):
    """A draft as it may be written; `redacted` names the kinds of secrets that were taken out."""

    draft: Draft
    redacted: tuple[str, ...] = ()


def clean_draft(draft: Draft, *, team: bool = False) -> CleanDraft:
    """One line where one line is meant, secrets gone, within its limits; InputError where it may not be written."""
    name, type, description, body = draft.name, draft.type, draft.description, draft.body
    kinds: list[str] = []

    def clean(text: str) -> str:
        found = redact(text.encode("utf-8", "replace").decode())
        kinds.extend(found.kinds)
        return found.text

    if not (shown := clean_name(clean(name))):
        raise InputError("name", "a memory needs a name", "give it a few words, such as testing-db")
    if type is not None and type not in KINDS:
        raise InputError(shown, f"there is no type {one_line(str(type), 40)!r}", f"the types are {', '.join(KINDS)}")
    if team and type == "user":
        raise InputError(shown, "what is known about a person stays private", "save it without the team's scope")
    if len(body.encode("utf-8", "replace")) > MOST_BYTES:
        raise InputError(shown, f"is longer than {MOST_BYTES >> 10} KiB", "keep what matters and name where the rest lies")
    text = clean(body)
    text = text if not text or text.endswith("\n") else f"{text}\n"
    rests_on = _evidence([clean(item) for item in draft.evidence[:MOST_EVIDENCE]])
    line = one_line(clean(description), DESCRIPTION_CHARS)
    if kinds and repeats_secret(shown, [secret for part in (description, body) for secret in extract_secrets(part)]):
        raise InputError("name", "holds a secret that the text holds too", "give the memory a name that says what it is about")
    if team and kinds:
        raise InputError(shown, f"holds a secret ({', '.join(dict.fromkeys(kinds))})", "take it out: a team's memory is shared")
    return CleanDraft(Draft(shown, type, line, text, rests_on, draft.modified), tuple(dict.fromkeys(kinds)))


def _evidence(items: Sequence[str]) -> tuple[str, ...]:
    """Whole items while they fit: half a path or half a digest would be evidence of nothing."""
    kept, size = list[str](), 0
    for item in (one_line(item, _EVIDENCE_BYTES) for item in items):
        size += len(item.encode()) + len('"", ')
        if item and size <= _EVIDENCE_BYTES:
            kept.append(item)
    return tuple(kept)


def apply_draft(draft: Draft, old: Topic | None, file: str) -> Topic:
    """The topic after the save: what the draft does not speak of stays as it was."""
    rests_on: dict[str, Any] = {"evidence": list(draft.evidence)} if draft.evidence else {}
    if old is None:
        return Topic(file, draft.name, draft.description, draft.type, draft.body, rests_on)
    fields, metadata = old.fields, old.fields.get("metadata")
    if rests_on and "evidence" not in fields and isinstance(metadata, dict):
        rests_on = {"metadata": metadata | rests_on}
    fields = fields | rests_on
    return msgspec.structs.replace(
        old, description=draft.description, type=draft.type or old.type, body=draft.body, fields=fields, problems=()
    )


def read_draft(file: str, text: str, old: Topic | None, *, team: bool = False) -> tuple[CleanDraft, Topic]:
    """A topic from the text somebody wrote for its file; InputError where that is no memory.

    What the text does not say of keys that are not ours stays as it was. A fault that the file had before is not held against it.
    """
    said = read_topic(file, text, 0)
    for problem in said.problems:
        if old is None or problem not in old.problems:
            raise InputError(file, f"has {problem}" if problem.startswith("no ") else problem, FORM)
    done = clean_draft(Draft(said.name, said.type, said.description, said.body), team=team)
    draft = done.draft
    if old is None and (redact(file).kinds or (done.redacted and repeats_secret(file, extract_secrets(text)))):
        raise InputError("file_path", "the name of the file holds a secret", "give the file a name that says what it is about")
    kept = {} if old is None else old.fields
    fields = {key: _without_secrets(value) for key, value in (kept | said.fields).items()}
    if team and fields != kept | said.fields:
        raise InputError(draft.name, "holds a secret", "take it out: a team's memory is shared")
    own = {"name": draft.name, "description": draft.description, "body": draft.body}
    return done, msgspec.structs.replace(said, **own, fields=fields, problems=())


def _without_secrets(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_secrets(item) for key, item in value.items()}
    return redact(value).text if isinstance(value, str) else value


def second_file(file: str, name: str) -> str:
    """A second file name for a memory whose first one belongs to another memory."""
    return f"{file.removesuffix('.md')}-{short_digest(name)}.md"
