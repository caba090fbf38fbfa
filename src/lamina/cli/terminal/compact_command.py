"""/compact, /expand and /undo of what a layer decided: what is summarised can be looked at before, opened after, and taken back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...conversation.compaction.commit import Compacted
from ...conversation.state import Conversation
from ...core.errors import Aborted
from ...core.records import Boundary, Span
from ...layers.l4_compact.step import CompactionPreview
from ..console import fit
from .calls import shorten_path
from .input_line import suppress_echo
from .screen import clean

if TYPE_CHECKING:
    from .loop import Chat

PREVIEW = "--preview"
COMPACTING = "compacting"
# Words for how it was done.
WAYS = {"notes": "with the notes, without a call", "ahead": "with a summary made ahead", "rules": "by rules, without a model"}


def compact(chat: Chat, rest: str) -> None:
    """/compact [--preview] [INSTRUCTIONS]"""
    if rest.split(None, 1)[:1] == [PREVIEW]:
        chat.screen.notes(describe_preview(chat.agent.session.preview_compaction(), chat.options.cwd))
        return
    chat.screen.wait(COMPACTING)
    try:
        with suppress_echo(), chat.stop.turn(chat.agent.abort):
            done = chat.agent.compact(rest)
    except Aborted:
        chat.screen.calm()
        chat.screen.note("Stopped; nothing was compacted.", "yellow")
        return
    finally:
        chat.screen.calm()
    chat.screen.notes(describe_compaction(done, chat.options.cwd), "plain" if done.done else "yellow")
    chat.tell_notices()


def describe_compaction(done: Compacted, cwd: Path) -> list[str]:
    if not done.done:
        why = (done.why or "there is nothing to summarise").rstrip(".")
        # What is said of a summary that was refused speaks of "it".
        return [f"Nothing was compacted: {f'the summary cannot be used, {why}' if why.startswith('it ') else why}."]
    how = WAYS.get(done.how, "with a summary")
    lines = [f"Compacted {how}: {done.tokens_before:,} to {done.tokens_after:,} tokens in {done.seconds:.1f} s."]
    if done.fidelity is not None and (clause := done.fidelity.clause()):
        lines.append(f"{clause[:1].upper()}{clause[1:]}.")
    if done.not_back:
        lines.append(f"Not put back: {', '.join(f'{key} ({why})' for key, why in done.not_back)}.")
    if done.left_out:
        lines.append(f"The oldest {done.left_out} rounds did not fit into the call: the summary does not cover them.")
    if done.files:
        lines.append(f"Files put back: {_near(done.files, cwd)}")
    lines.append(f"/expand {done.boundary[:8]} shows what it stands for, /undo {done.boundary[:8]} takes it back.")
    return lines


def describe_preview(found: CompactionPreview, cwd: Path) -> list[str]:
    if found.why:
        return [f"Nothing would be compacted: {found.why}."]
    lines = [
        f"{len(found.summarised)} records ({found.rounds} calls of the model) would be summarised, {len(found.kept)} stay as they are.",
        f"About {found.tokens_before:,} tokens would become about {found.tokens_after:,}.",
    ]
    if found.tokens_after >= found.tokens_before:
        lines.append("If that does not make it smaller, /compact leaves everything as it is.")
    if found.files:
        lines.append(f"Files put back: {_near(found.files, cwd)}")
    if found.pins:
        lines.append(f"Pins kept word for word: {found.pins}")
    return lines


def _near(files: Sequence[str], cwd: Path) -> str:
    return ", ".join(shorten_path(file, cwd) for file in files)


def snip(chat: Chat, rest: str) -> None:
    """/snip [N|N-M]: without numbers, the turns there are."""
    session = chat.agent.session
    if not rest:
        for number, turn in enumerate(session.turns, 1):
            chat.screen.line(
                fit(f"{number:>5}  {clean(' '.join(turn.words.split()))}", chat.screen.width - 1, chat.screen.marks.cut)
            )
        none = "" if session.turns else "There are no turns in view. "
        chat.screen.note(f"{none}/snip N or N-M takes turns out of what the model sees; /undo brings them back.", "dim")
        return
    node = session.hide_messages(turns=rest)
    chat.screen.note(f"Taken out: the model sees about {session.tokens:,} tokens. /undo {node[:8]} brings it back.")


def expand(chat: Chat, rest: str) -> None:
    """/expand NODE [PAGE]"""
    node, _, number = rest.partition(" ")
    if not node:
        chat.screen.note("Say what to open: /expand ID [PAGE]; the id stands in the summary or the marker.")
        return
    page = chat.agent.session.expand(node, page_number=int(number) if number.strip().isdecimal() else 1)
    chat.screen.line(page.text)
    if page.pages > 1:
        chat.screen.note(f"Page {page.number} of {page.pages}: /expand {node} {page.number % page.pages + 1}", "dim")


def newest_decision(c: Conversation) -> str | None:
    """A compaction or fold made since the person last spoke: that is what an undo then means."""
    said = [item.time for item in c.log.view.items if item.kind == "said" and item.role == "user" and not item.synthetic]
    for uuid, decision in reversed(c.log.decisions.items()):
        if isinstance(decision, Boundary | Span):
            stands = not isinstance(decision, Boundary) or uuid in c.log.tree.members
            return uuid if stands and (not said or decision.time >= said[-1]) else None
    return None
