"""`lamina stats`: what sessions read, wrote and cost, and what each layer did and saved, for one session or over time (K4)."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.budget import LedgerLine, Limits, Spent, left, limits_of, ran_out, spent_in
from ..core.errors import InputError
from ..core.wording import counted
from ..disk.home.ledger import day_of, list_ledger_days, read_ledger_day
from ..disk.home.loading import settings_in_force
from . import completion, options
from .console import print_result, print_table, terminal_width, waiting
from .output import price
from .transcripts import find_sessions, list_homes, locate

if TYPE_CHECKING:
    from ..core.session_stats import SessionStats
    from ..disk.transcripts.session_list import SessionInfo

# A person reads so many rows; --json has all that were asked for.
MOST_ROWS = 20
# Below this, all columns together leave no room for what a session is about.
NARROW = 90
# Of a row of the ledger.
KEYS = ("day", "purpose", "project")
LedgerRow = tuple[tuple[str, str, str], Spent]


@click.command("stats")
@click.argument("session", metavar="[SESSION|FILE]", required=False, shell_complete=completion.sessions)
@click.option("--all", "everywhere", is_flag=True, help="Sessions of every directory, not only of this one.")
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="Only sessions used in the last so many days.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="At most so many, newest first.")
@click.option("--ledger", is_flag=True, help="What background work has used of its budget, in every project.")
@options.cwd("Whose sessions.")
@options.as_json
def stats_command(
    session: str | None, everywhere: bool, days: float | None, limit: int, ledger: bool, cwd: Path, as_json: bool
) -> None:
    """Show what sessions cost and what the layers saved."""
    from ..core.session_stats import SessionStats, session_stats
    from ..disk.transcripts.store import read_transcript
    from ..maintenance.doctor.examination import pollution
    from .dream_status import describe_last, read_dreams, summarise

    if ledger:
        if session is not None:
            raise InputError("--ledger", "is of all sessions together", "leave the session out")
        print_ledger(cwd, days, as_json=as_json)
        return
    if session is not None:
        path = locate(session, cwd)
        found = session_stats(read_transcript(path))
        if not (found.turns or found.calls):
            problem = f"{session} holds no messages that Lamina can read"
            raise InputError("session", problem, "lamina sessions list shows those that do")
        print_result({"session_id": path.stem, **to_json(found)}, format_figures(found), as_json=as_json)
        return
    since = time.time() - days * 86_400 if days is not None else 0.0
    with waiting("reading the sessions"):
        infos = [info for info in find_sessions(None if everywhere else cwd, "lamina") if info.modified >= since][:limit]
        rows = [(info, session_stats(read_transcript(Path(info.path)))) for info in infos]
    if not rows and not as_json:
        click.echo("No sessions here." + ("" if everywhere else " --all looks at those of other directories."), err=True)
        return
    total = sum((figures for _, figures in rows), SessionStats())
    memory, dreams = pollution(cwd=cwd, environ=os.environ, now=time.time()), read_dreams(cwd)
    shown = [{"session_id": info.id, "modified": info.modified, **to_json(figures)} for info, figures in rows]
    told = {"sessions": shown, "total": to_json(total), "memory": memory.to_json(), "dreams": summarise(dreams)}
    if not as_json:
        _print_sessions(rows)
        click.echo(f"\nAll {len(rows)} together:" if len(rows) > 1 else "")
    last = describe_last(dreams)
    print_result(told, [*format_figures(total), *memory.lines(), *([last] if last is not None else ())], as_json=as_json)


def price_figures(figures: SessionStats) -> float | None:
    spent = [price(model, usage) for model, usage in figures.usage.items()]
    return None if None in spent else sum(usd or 0.0 for usd in spent)


def to_json(figures: SessionStats) -> dict[str, Any]:
    fidelity = {"facts": figures.facts, "answerable": figures.answerable, **figures.fidelity} if figures.facts else None

    def as_is(*names: str) -> dict[str, Any]:
        return {name: getattr(figures, name) for name in names}

    return {
        **as_is("calls", "turns"),
        "usage": figures.total.wire(),
        "cache_hit_ratio": round(figures.hit_ratio, 4),
        "cost_usd": price_figures(figures),
        "side_calls": figures.side_calls,
        "side_usage": figures.side_usage.wire(),
        "side_cost_usd": figures.side_usd,
        **as_is("compactions", "compaction_failures", "compactions_refused"),
        "fidelity": fidelity,
        "summaries_per_100_turns": round(figures.summaries_per_100_turns, 2),
        **as_is("breaker_trips", "clearings", "spills", "collapses", "undos"),
        "tokens_saved": figures.saved,
        "breaks": figures.breaks,
        "cache_missed": figures.missed,
        "layer_failures": figures.failures,
        "budget_stops": figures.budget_stops,
    }


def format_figures(figures: SessionStats) -> list[str]:
    total, usd = figures.total, price_figures(figures)
    money = f"${usd:.4f}" if usd is not None else "the cost is not known"
    done = f"{counted(figures.turns, 'turn')}, {counted(figures.calls, 'call')}"
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
        *_some("{} results spilled", figures.spills),
        *_some("{} times turns folded", figures.collapses),
        *_some("{} taken back", figures.undos),
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
        *_some("{} compactions failed", figures.compaction_failures),
        *_some("{} compactions refused by a hook", figures.compactions_refused),
        *_some("compaction stopped {} times", figures.breaker_trips),
        *(f"{layer} stepped aside {count} times" for layer, count in figures.failures.items()),
        *(f"background work out of {what} {count} times" for what, count in sorted(figures.budget_stops.items())),
    ]
    return [*shown, f"  trouble: {', '.join(trouble)}"] if trouble else shown


def _some(words: str, count: int) -> list[str]:
    return [words.format(count)] if count else []


def _print_sessions(rows: list[tuple[SessionInfo, SessionStats]]) -> None:
    width = terminal_width()
    # A narrow terminal has room for what a session cost and what it was about.
    left_out = ("turns", "compactions") if width is not None and width < NARROW else ()
    shown = []
    for info, figures in rows[:MOST_ROWS]:
        usd = price_figures(figures)
        cells = {
            "id": info.id[:8],
            "turns": str(figures.turns),
            "calls": str(figures.calls),
            "tokens sent": f"{figures.total.prompt:,}",
            "cached": f"{figures.hit_ratio:.0%}",
            "cost": f"${usd:.4f}" if usd is not None else "?",
            "compactions": str(sum(figures.compactions.values())),
            "about": info.title,
        }
        shown.append({name: cell for name, cell in cells.items() if name not in left_out})
    header = list(shown[0])
    print_table(header, [list(cells.values()) for cells in shown], right=header[1:-1])
    if len(rows) > MOST_ROWS:
        click.echo(f"and {len(rows) - MOST_ROWS} more")


def print_ledger(where: Path, days: float | None, *, as_json: bool) -> None:
    """What background work has used of its budget, by purpose and project (B9).

    Today, or as many of the last days as are asked for; what is left is always of today.
    """
    now, limits = time.time(), limits_of(settings_in_force(where))
    today, since = day_of(now), day_of(now - (days or 0) * 86_400)
    lines = [
        (day, line)
        for home in list_homes("lamina")
        for day in list_ledger_days(home)
        if since <= day <= today
        for line in read_ledger_day(home, day)
    ]
    spent = spent_in(line for day, line in lines if day == today)
    out, rows = ran_out(spent, limits), group_lines(lines)
    if rows and not as_json:
        _print_ledger_table(rows, days is not None)
    told = {
        "day": today,
        "used": spent_json(spent),
        "limits": limits._asdict(),
        "left": left(spent, limits),
        "ran_out": out.what if out else None,
        "rows": [dict(zip(KEYS, key, strict=True)) | spent_json(one) for key, one in rows],
    }
    print_result(told, summarise_budget(spent, limits), as_json=as_json)


def group_lines(lines: list[tuple[str, LedgerLine]]) -> list[LedgerRow]:
    """By day, purpose and project: the newest day first, the dearest of it first."""
    found: dict[tuple[str, str, str], Spent] = {}
    for day, line in lines:
        key = (day, line.purpose, line.project)
        found[key] = found.get(key, Spent()).with_line(line)
    rows = sorted(found.items(), key=lambda row: (-row[1].usd, -row[1].tokens, row[0]))
    return sorted(rows, key=lambda row: row[0][0], reverse=True)


def spent_json(spent: Spent) -> dict[str, Any]:
    return {
        "calls": spent.calls,
        "failed": spent.failed,
        "tokens": spent.tokens,
        "usage": spent.usage.wire(),
        "dollars": round(spent.usd, 6),
        "unpriced_calls": spent.unpriced,
    }


def _print_ledger_table(rows: list[LedgerRow], by_day: bool) -> None:
    header = [*(["day"] if by_day else []), "purpose", "calls", "tokens", "cost", "project"]
    cells = [
        [*([day] if by_day else []), purpose, str(spent.calls), f"{spent.tokens:,}", _money(spent), project]
        for (day, purpose, project), spent in rows
    ]
    print_table(header, cells, right=("calls", "tokens", "cost"))
    click.echo()


def _money(spent: Spent) -> str:
    """Of a model without known prices nothing is counted in money."""
    if spent.unpriced and spent.unpriced + spent.failed == spent.calls:
        return "?"
    return f"${spent.usd:.4f}" + ("+?" if spent.unpriced else "")


def summarise_budget(spent: Spent, limits: Limits) -> list[str]:
    said = [
        f"Background work today: {spent.calls:,} of {limits.calls:,} calls, {spent.tokens:,} of {limits.tokens:,} tokens, "
        f"${spent.usd:.4f} of ${limits.dollars:.2f}."
    ]
    if spent.usage.cache_read:
        said.append(f"  {spent.usage.cache_read:,} tokens were read from the cache; each counts a tenth.")
    if spent.unpriced:
        said.append(f"  {spent.unpriced} calls went to a model without known prices: they count in calls and tokens only.")
    if spent.failed:
        said.append(f"  {spent.failed} calls brought no answer.")
    if (out := ran_out(spent, limits)) is not None:
        said.append(out.sentence())
    return said
