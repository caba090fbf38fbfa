"""/compact, /snip and /expand: preview and run a compaction, take turns out of the context, and show the original behind a summary."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...conversation.compaction.commit import Compacted
from ...conversation.state import Conversation
from ...core.errors import Aborted, NotCompacted
from ...core.records import Boundary, Span
from ...language.text import SENTENCES, Text, joined, message
from ...language.wording import counted
from ...layers.l4_compact.step import CompactionPreview
from ..console import fit
from .calls import shorten_path
from .input_line import suppress_echo
from .screen import clean

if TYPE_CHECKING:
    from .loop import Chat

PREVIEW = "--preview"
COMPACTING = Text("compacting")
# How a compaction was done, in words.
WAYS = {
    "notes": Text("from the notes, without a model call"),
    "ahead": Text("with a prepared summary"),
    "rules": Text("by rules, without a model"),
}


def compact(chat: Chat, rest: str) -> None:
    """/compact [--preview] [INSTRUCTIONS]"""
    if rest.split(None, 1)[:1] == [PREVIEW]:
        chat.screen.reports(describe_preview(chat.agent.session.preview_compaction(), chat.options.cwd))
        return
    chat.screen.wait(chat.screen.words(COMPACTING))
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
        chat.screen.report(message(error), "yellow")
    else:
        chat.screen.reports(describe_compaction(done, chat.options.cwd))
    chat.tell_notices()


def describe_compaction(done: Compacted, cwd: Path) -> list[str]:
    how = WAYS.get(done.how, Text("with a summary"))
    lines: list[str] = [
        Text(
            "Compacted {how}: {tokens_before:,} to {tokens_after:,} tokens in {seconds:.1f} s.",
            how=how,
            tokens_before=done.tokens_before,
            tokens_after=done.tokens_after,
            seconds=done.seconds,
        )
    ]
    if done.fidelity is not None and (clause := done.fidelity.sentence()):
        lines.append(clause)
    if done.not_back:
        lines.append(
            Text(
                "Not restored in full: {files}.",
                files=joined(Text("{file} ({why})", file=key, why=Text.whole(why)) for key, why in done.not_back),
            )
        )
    if done.left_out and not done.instead:  # a summary by rules is explained in a notice
        form = Text(
            "The {n} oldest round did not fit into the call, so the summary does not cover it."
            "|The {n} oldest rounds did not fit into the call, so the summary does not cover them."
        )
        lines.append(Text(form, n=done.left_out))
    if done.files:
        lines.append(Text("Files restored: {files}", files=_near(done.files, cwd)))
    lines.append(Text("Use /expand {boundary} to see the original, /undo {boundary} to undo it.", boundary=done.boundary[:8]))
    return lines


def describe_preview(found: CompactionPreview, cwd: Path) -> list[str]:
    if found.why:
        return [Text("Nothing would be compacted: {why}.", why=Text.whole(found.why))]
    lines: list[str] = [
        Text(
            "{records} ({calls}) would be summarised, {kept:,} kept as they are.",
            records=counted(len(found.summarised), "record"),
            calls=counted(found.rounds, "model call"),
            kept=len(found.kept),
        ),
        Text(
            "About {tokens_before:,} tokens would become about {tokens_after:,}.",
            tokens_before=found.tokens_before,
            tokens_after=found.tokens_after,
        ),
    ]
    if found.tokens_after >= found.tokens_before:
        lines.append(Text("If the summary is not smaller, /compact changes nothing."))
    if found.files:
        lines.append(Text("Files restored: {files}", files=_near(found.files, cwd)))
    if found.pins:
        lines.append(Text("Pins kept word for word: {pins}", pins=found.pins))
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
        hint = Text("Use /snip N or /snip N-M to take turns out of the context, /undo to bring them back.")
        chat.screen.report(hint if session.turns else joined((Text("No turns in view."), hint), SENTENCES), "dim")
        return
    node = session.hide_messages(turns=rest)
    chat.screen.report(
        Text(
            "Taken out of the context. The model now sees about {tokens:,} tokens. Use /undo {node} to bring it back.",
            tokens=session.window_state.tokens,
            node=node[:8],
        )
    )


def expand(chat: Chat, rest: str) -> None:
    """/expand NODE [PAGE]"""
    node, _, number = rest.partition(" ")
    if not node:
        chat.screen.report(Text("Usage: /expand ID [PAGE]. The id is in the summary or the marker."))
        return
    page = chat.agent.session.expand(node, page_number=int(number) if number.strip().isdecimal() else 1)
    chat.screen.line(page.text)
    if page.pages > 1:
        chat.screen.report(
            Text(
                "Page {number} of {pages}: /expand {node} {other_number}",
                number=page.number,
                pages=page.pages,
                node=node,
                other_number=page.number % page.pages + 1,
            ),
            "dim",
        )


def newest_decision(c: Conversation) -> str | None:
    """Return the newest compaction or fold made after the user's last message: /undo then refers to it."""
    spoken = [item.time for item in c.log.view.items if item.kind == "said" and item.role == "user" and not item.synthetic]
    for uuid, decision in reversed(c.log.decisions.items()):
        if isinstance(decision, Boundary | Span):
            stands = not isinstance(decision, Boundary) or uuid in c.log.tree.members
            return uuid if stands and (not spoken or decision.time >= spoken[-1]) else None
    return None
