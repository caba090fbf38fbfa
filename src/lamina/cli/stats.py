"""`lamina stats`: what sessions read, wrote and cost, and what each layer did and saved, for one session or over time (K4)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from . import completion as offering
from .columns import show
from .output import FREE
from .safe_text import document

if TYPE_CHECKING:
    from ..core.session_stats import SessionStats
    from ..disk.transcripts.session_list import SessionInfo
    from ..maintenance.doctor.pollution import Pollution

# A person reads so many rows; --json has all that were asked for.
MOST_ROWS = 20
# Below this, all columns together leave no room for what a session is about.
NARROW = 90


class Row(NamedTuple):
    info: SessionInfo
    figures: SessionStats


@click.command("stats")
@click.argument("session", metavar="[SESSION|FILE]", required=False, shell_complete=offering.sessions)
@click.option("--all", "everywhere", is_flag=True, help="Sessions of every directory, not only of this one.")
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="Only sessions used in the last so many days.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="At most so many, newest first.")
@click.option("--ledger", is_flag=True, help="What background work has used of its budget, in every project.")
@click.option("--cwd", type=click.Path(file_okay=False, exists=True), default=".", help="Whose sessions.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def command(session: str | None, everywhere: bool, days: float | None, limit: int, ledger: bool, cwd: str, as_json: bool) -> None:
    """Show what sessions cost and what the layers saved."""
    from ..core.errors import InputError
    from ..core.session_stats import SessionStats, session_stats
    from ..disk.transcripts.store import read_transcript
    from .dream_status import kept_in, summary, summary_line
    from .progress import waiting
    from .sessions import locate

    where = Path(cwd).resolve()
    if ledger:
        from .ledger import command as show_ledger

        if session is not None:
            raise InputError("--ledger", "is of all sessions together", "leave the session out")
        show_ledger(where, days, as_json=as_json)
        return
    if session is not None:
        path = locate(session, where)
        found = session_stats(read_transcript(path))
        if not (found.turns or found.calls):
            raise InputError(
                "session", f"{session} holds no messages that Lamina can read", "lamina sessions list shows those that do"
            )
        if as_json:
            click.echo(document({"session_id": path.stem, **to_json(found)}))
        else:
            click.echo("\n".join(lines(found)))
        return
    with waiting("reading the sessions"):
        rows = _rows(where, everywhere, days, limit)
    total = SessionStats()
    for row in rows:
        total += row.figures
    if as_json:
        shown = [{"session_id": row.info.id, "modified": row.info.modified, **to_json(row.figures)} for row in rows]
        memory, dreams = pollution_of(where).to_json(), summary(kept_in(where))
        click.echo(document({"sessions": shown, "total": to_json(total), "memory": memory, "dreams": dreams}))
    elif not rows:
        click.echo("No sessions here." + ("" if everywhere else " --all looks at those of other directories."), err=True)
    else:
        _table(rows)
        click.echo(f"\nAll {len(rows)} together:" if len(rows) > 1 else "")
        click.echo("\n".join(lines(total)))
        for line in (*pollution_of(where).lines(), summary_line(kept_in(where))):
            if line is not None:
                click.echo(line)


def pollution_of(where: Path) -> Pollution:
    import os
    import time

    from ..maintenance.doctor.pollution import pollution

    return pollution(cwd=Path(os.path.realpath(where)), environ=os.environ, now=time.time())


def _rows(where: Path, everywhere: bool, days: float | None, limit: int) -> list[Row]:
    import time

    from ..core.session_stats import session_stats
    from ..disk.paths.project import slug
    from ..disk.transcripts.search import project_directories
    from ..disk.transcripts.session_list import list_sessions
    from ..disk.transcripts.store import read_transcript
    from .sessions import homes

    directories = [
        directory
        for home in homes("lamina")
        for directory in (project_directories(home / "projects") if everywhere else [home / "projects" / slug(where)])
    ]
    since = time.time() - days * 86_400 if days is not None else 0.0
    found = [info for info in list_sessions(directories) if info.modified >= since][:limit]
    with click.progressbar(found, label="Reading", length=len(found), file=_progress(len(found))) as bar:
        return [Row(info, session_stats(read_transcript(Path(info.path)))) for info in bar]


def _progress(count: int) -> Any:
    """Where progress goes: nowhere for what is done at once, and never into the output."""
    import io
    import sys

    return sys.stderr if count > MOST_ROWS and sys.stderr.isatty() else io.StringIO()


def dollars(figures: SessionStats) -> float | None:
    from ..providers.models import cost

    spent = [0.0 if model == FREE else cost(model, usage).usd for model, usage in figures.usage.items()]
    known = [usd for usd in spent if usd is not None]
    return sum(known) if len(known) == len(spent) else None


def to_json(figures: SessionStats) -> dict[str, Any]:
    total = figures.total
    return {
        "calls": figures.calls,
        "turns": figures.turns,
        "usage": total.wire(),
        "cache_hit_ratio": round(figures.hit_ratio, 4),
        "cost_usd": dollars(figures),
        "side_calls": figures.side_calls,
        "side_usage": figures.side_usage.wire(),
        "side_cost_usd": figures.side_usd,
        "compactions": figures.compactions,
        "compaction_failures": figures.compaction_failures,
        "compactions_refused": figures.compactions_refused,
        "fidelity": {"facts": figures.facts, "answerable": figures.answerable, **figures.fidelity} if figures.facts else None,
        "summaries_per_100_turns": round(figures.summaries_per_100_turns, 2),
        "breaker_trips": figures.breaker_trips,
        "clearings": figures.clearings,
        "spills": figures.spills,
        "collapses": figures.collapses,
        "undos": figures.undos,
        "tokens_saved": figures.saved,
        "breaks": figures.breaks,
        "cache_missed": figures.missed,
        "layer_failures": figures.failures,
        "budget_stops": figures.budget_stops,
    }


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def lines(figures: SessionStats) -> list[str]:
    total, usd = figures.total, dollars(figures)
    money = f"${usd:.4f}" if usd is not None else "the cost is not known"
    done = f"{_counted(figures.turns, 'turn')}, {_counted(figures.calls, 'call')}"
    shown = [
        f"  {done}: {total.prompt:,} tokens sent, {figures.hit_ratio:.1%} of them read from the "
        f"cache, {total.output_tokens:,} answered; {money}",
    ]
    side = figures.side_usage
    if figures.side_calls:
        calls = ", ".join(f"{count} {purpose}" for purpose, count in sorted(figures.side_calls.items()))
        shown.append(f"  beside them: {calls}; {side.prompt:,} tokens sent, {side.output_tokens:,} answered")
    did = [
        *(f"{count} compactions by {how}" for how, count in sorted(figures.compactions.items())),
        *(f"{count} clearings ({trigger})" for trigger, count in sorted(figures.clearings.items())),
        *([f"{figures.spills} results spilled"] if figures.spills else []),
        *([f"{figures.collapses} times turns folded"] if figures.collapses else []),
        *([f"{figures.undos} taken back"] if figures.undos else []),
    ]
    if did:
        shown.append(f"  layers: {', '.join(did)}")
    if figures.facts:
        here, near, lost = (figures.fidelity.get(fate, 0) for fate in ("in_context", "one_call", "lost"))
        shown.append(
            f"  facts of what was compacted: {figures.facts} looked for, {here} in the context, {near} one call away, {lost} lost"
        )
    if figures.saved:
        saved = ", ".join(f"{tokens:,} by {layer}" for layer, tokens in figures.saved.items())
        shown.append(f"  tokens kept out: {saved}")
    if figures.breaks or figures.missed:
        named = ", ".join(f"{count} {reason}" for reason, count in sorted(figures.breaks.items())) or "none announced"
        shown.append(f"  breaks of the cache: {named}; {figures.missed} unexplained misses")
    trouble = [
        *([f"{figures.compaction_failures} compactions failed"] if figures.compaction_failures else []),
        *([f"{figures.compactions_refused} compactions refused by a hook"] if figures.compactions_refused else []),
        *([f"compaction stopped {figures.breaker_trips} times"] if figures.breaker_trips else []),
        *(f"{layer} stepped aside {count} times" for layer, count in figures.failures.items()),
        *(f"background work out of {what} {count} times" for what, count in sorted(figures.budget_stops.items())),
    ]
    return [*shown, f"  trouble: {', '.join(trouble)}"] if trouble else shown


def _table(rows: list[Row]) -> None:
    shown = []
    for row in rows[:MOST_ROWS]:
        figures, usd = row.figures, dollars(row.figures)
        cells = {
            "id": row.info.id[:8],
            "turns": str(figures.turns),
            "calls": str(figures.calls),
            "tokens sent": f"{figures.total.prompt:,}",
            "cached": f"{figures.hit_ratio:.0%}",
            "cost": f"${usd:.4f}" if usd is not None else "?",
            "compactions": str(sum(figures.compactions.values())),
            "about": row.info.title,
        }
        shown.append({name: cell for name, cell in cells.items() if name not in _left_out()})
    header = list(shown[0])
    show(header, [list(cells.values()) for cells in shown], right=header[1:-1])
    if len(rows) > MOST_ROWS:
        click.echo(f"and {len(rows) - MOST_ROWS} more")


def _left_out() -> tuple[str, ...]:
    """A narrow terminal has room for what a session cost and what it was about."""
    import shutil
    import sys

    narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < NARROW
    return ("turns", "compactions") if narrow else ()
