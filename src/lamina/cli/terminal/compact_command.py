"""/compact, /snip and /expand: preview and run a compaction, hide turns, and show the original behind a summary."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...conversation.compaction.commit import Compacted
from ...conversation.state import Conversation
from ...core.errors import Aborted, NotCompacted
from ...core.records import Boundary, Span
from ...language.wording import counted, plural
from ...layers.l4_compact.step import CompactionPreview
from ..console import fit
from .calls import shorten_path
from .input_line import suppress_echo
from .screen import clean

if TYPE_CHECKING:
    from .loop import Chat

PREVIEW = "--preview"
COMPACTING = "compacting"
# How a compaction was done, in words.
WAYS = {"notes": "from the notes, without a model call", "ahead": "with a prepared summary", "rules": "by rules, without a model"}


def compact(chat: Chat, rest: str) -> None:
    """/compact [--preview] [INSTRUCTIONS]"""
    if rest.split(None, 1)[:1] == [PREVIEW]:
        chat.screen.reports(describe_preview(chat.agent.session.preview_compaction(), chat.options.cwd))
        return
    chat.screen.wait(chat.screen.text(COMPACTING))
    try:
        try:
            with suppress_echo(), chat.stop.turn(chat.agent.abort):
                done = chat.agent.compact(rest)
        finally:
            chat.screen.calm()
    except Aborted:
        chat.screen.say("Stopped. Nothing was compacted.", "yellow")
        return
    except NotCompacted as error:
        chat.screen.report(str(error), "yellow")
    else:
        chat.screen.reports(describe_compaction(done, chat.options.cwd))
    chat.tell_notices()


def describe_compaction(done: Compacted, cwd: Path) -> list[str]:
    how = WAYS.get(done.how, "with a summary")
    lines = [f"Compacted {how}: {done.tokens_before:,} to {done.tokens_after:,} tokens in {done.seconds:.1f} s."]
    if done.fidelity is not None and (clause := done.fidelity.clause()):
        lines.append(f"{clause[:1].upper()}{clause[1:]}.")
    if done.not_back:
        lines.append(f"Not restored in full: {', '.join(f'{key} ({why})' for key, why in done.not_back)}.")
    if done.left_out and not done.instead:  # a summary by rules is explained in a notice
        oldest = counted(done.left_out, "oldest round")
        lines.append(
            f"The {oldest} did not fit into the call, so the summary does not cover {plural(done.left_out, 'it', 'them')}."
        )
    if done.files:
        lines.append(f"Files restored: {_near(done.files, cwd)}")
    lines.append(f"Use /expand {done.boundary[:8]} to see the original, /undo {done.boundary[:8]} to undo it.")
    return lines


def describe_preview(found: CompactionPreview, cwd: Path) -> list[str]:
    if found.why:
        return [f"Nothing would be compacted: {found.why}."]
    lines = [
        f"{counted(len(found.summarised), 'record')} ({counted(found.rounds, 'model call')}) would be summarised, "
        f"{len(found.kept):,} kept as they are.",
        f"About {found.tokens_before:,} tokens would become about {found.tokens_after:,}.",
    ]
    if found.tokens_after >= found.tokens_before:
        lines.append("If the summary is not smaller, /compact changes nothing.")
    if found.files:
        lines.append(f"Files restored: {_near(found.files, cwd)}")
    if found.pins:
        lines.append(f"Pins kept word for word: {found.pins}")
    return lines


def _near(files: Sequence[str], cwd: Path) -> str:
    return ", ".join(shorten_path(file, cwd) for file in files)


def snip(chat: Chat, rest: str) -> None:
    """/snip [N|N-M]; without numbers, list the turns."""
    session = chat.agent.session
    if not rest:
        for number, turn in enumerate(session.turns, 1):
            chat.screen.line(
                fit(f"{number:>5}  {clean(' '.join(turn.words.split()))}", chat.screen.width - 1, chat.screen.marks.cut)
            )
        none = "" if session.turns else "No turns in view. "
        chat.screen.report(f"{none}Use /snip N or /snip N-M to hide turns from the model, /undo to bring them back.", "dim")
        return
    node = session.hide_messages(turns=rest)
    chat.screen.report(
        f"Hidden. The model now sees about {session.window_state.tokens:,} tokens. Use /undo {node[:8]} to bring it back."
    )


def expand(chat: Chat, rest: str) -> None:
    """/expand NODE [PAGE]"""
    node, _, number = rest.partition(" ")
    if not node:
        chat.screen.report("Usage: /expand ID [PAGE]. The id is in the summary or the marker.")
        return
    page = chat.agent.session.expand(node, page_number=int(number) if number.strip().isdecimal() else 1)
    chat.screen.line(page.text)
    if page.pages > 1:
        chat.screen.report(f"Page {page.number} of {page.pages}: /expand {node} {page.number % page.pages + 1}", "dim")


def newest_decision(c: Conversation) -> str | None:
    """Return the newest compaction or fold made after the user's last message: /undo then refers to it."""
    spoken = [item.time for item in c.log.view.items if item.kind == "said" and item.role == "user" and not item.synthetic]
    for uuid, decision in reversed(c.log.decisions.items()):
        if isinstance(decision, Boundary | Span):
            stands = not isinstance(decision, Boundary) or uuid in c.log.tree.members
            return uuid if stands and (not spoken or decision.time >= spoken[-1]) else None
    return None
