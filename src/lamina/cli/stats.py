"""`lamina stats`: the tokens and cost of sessions, and what each layer did and saved, for one session or over time (K4)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..core.budget import LedgerLine, Limits, Spent, left, limits_of, ran_out, spent_in
from ..core.errors import DiskError, InputError
from ..core.settings import Billing, Settings
from ..core.usage import Usage
from ..disk.home.ledger import day_of, list_ledger_days, read_ledger_day
from ..history import sessions as sources
from ..history.catalogue import scan_added
from ..history.copies import added_records, older_files
from ..history.session_stats import AGENT_PURPOSES
from ..history.sessions import name_of
from ..language.text import Text
from ..language.wording import counted, short_count
from ..providers.amounts import Amount
from ..providers.models import FREE
from . import completion, options
from .amounts import HEADS, NO_COUNTS, cell, tokens_apart
from .console import folded, notice, notice_unread, print_result, print_table, terminal_width, waiting
from .output import price
from .sessions import SOURCES
from .transcripts import find_sessions, locate, name_rows

if TYPE_CHECKING:
    from ..core.records import Record
    from ..history.session_stats import SessionStats, SideCost
    from ..history.sessions import SourceSession

# Rows printed; --json has all.
MOST_ROWS = 20
# A narrower terminal has no room for all columns and the session's title.
NARROW = 90
_AGENTS = {"agent": "fork", "subagent": "subagent"}
# The key of a ledger row.
KEYS = ("day", "purpose", "model", "project")
LedgerRow = tuple[tuple[str, str, str, str], Spent]


@click.command("stats")
@click.argument("session", metavar="[SESSION|FILE]", required=False, shell_complete=completion.sessions)
@click.option("--all", "everywhere", is_flag=True, help="Include the sessions of all directories.")
@click.option("--source", type=click.Choice(SOURCES), default="all", show_default=True, help="Program that wrote the sessions.")
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="Include only sessions used in the last DAYS days.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Maximum number of sessions.")
@click.option("--ledger", is_flag=True, help="Show how much of its budget background work has used, over all projects.")
@options.cwd("Use the sessions of this directory.")
@options.as_json
def stats_command(
    session: str | None,
    everywhere: bool,
    source: str,
    days: float | None,
    limit: int,
    ledger: bool,
    cwd: Path,
    as_json: bool,
) -> None:
    """Show what sessions cost and what the layers saved."""
    if ledger:
        if session is not None:
            raise InputError("--ledger", "covers all sessions", "leave out SESSION")
        print_ledger(cwd, days, as_json=as_json)
    elif session is not None:
        _print_session(session, cwd, as_json=as_json)
    else:
        since = time.time() - days * 86_400 if days is not None else 0.0
        _print_all(cwd, lambda info: info.last_active >= since, limit, None if everywhere else cwd, source, as_json=as_json)


def _print_session(session: str, cwd: Path, *, as_json: bool) -> None:
    path = locate(session, cwd)
    with waiting("Reading the session"):
        found = read_figures(path, [info for info in find_sessions(None) if info.path == str(path)])
    if not (found.turns or found.calls or found.side):
        problem = f"{session} has no readable messages"
        raise InputError("session", problem, "run `lamina sessions list` to see the sessions")
    settings, name = options.load_settings(cwd), name_of(path)
    policy, billing = _policy(settings), settings.billing
    print_result(
        {"session_id": name.id, "source": name.origin, **to_json(found), "policy": policy, "billing": billing},
        folded([f"{name.id}  {name.origin}", *format_figures(found, billing), _policy_line(policy)]),
        as_json=as_json,
    )


def _print_all(
    cwd: Path, wanted: Callable[[SourceSession], bool], limit: int, where: Path | None, source: str, *, as_json: bool
) -> None:
    """Print the sessions of `where`, or of all directories, their sum, and the state of memory in `cwd`."""
    from ..history.session_stats import SessionStats
    from ..maintenance.doctor.examination import pollution
    from .dream_status import describe_last, read_dreams, summarise

    settings, unread = options.load_settings(cwd), list[str]()
    with waiting("Reading the sessions"):
        every = find_sessions(where, unread=unread)
        infos = [info for info in every if source in ("all", info.origin) and wanted(info)][:limit]
        rows = [(info, figures) for info in infos if (figures := figures_of(info, unread)) is not None]
        added = without_copies(rows, older_files(every))
    notice_unread(unread)
    if not rows and not as_json:
        click.echo("No sessions found." + ("" if where is None else " Use --all to include all directories."), err=True)
        return
    with waiting("Checking the memories"):
        memory, dreams = pollution(cwd=cwd, environ=os.environ, now=time.time()), read_dreams(cwd)
    total = sum((figures for _, figures in added), SessionStats())
    policy, billing = _policy(settings), settings.billing
    told = {
        "sessions": [_session_json(info, figures) for info, figures in rows],
        "total": to_json(total),
        "memory": memory.to_json(),
        "dreams": summarise(dreams),
        "policy": policy,
        "billing": billing,
    }
    if not as_json:
        _print_sessions(rows, billing)
        once = "" if added == rows else ", each answer counted once"
        click.echo(f"\nTotal of {len(rows)} sessions{once}:" if len(rows) > 1 else "")
    last = describe_last(dreams)
    lines = [
        *format_figures(total, billing),
        *(_known_costs(added, total) if billing == "list" else ()),
        *_background_today(billing),
        _policy_line(policy),
        *memory.lines(),
        *([last] if last is not None else ()),
    ]
    print_result(told, folded(lines), as_json=as_json)


def _session_json(info: SourceSession, figures: SessionStats) -> dict[str, Any]:
    named = {"session_id": info.id, "source": info.origin, "modified": info.modified}
    return {**named, **to_json(figures), "total_cost_usd": session_cost(info, figures)}


def figures_of(info: SourceSession, unread: list[str]) -> SessionStats | None:
    """Return what a session did; None, with a sentence in `unread`, if its file has vanished or cannot be read."""
    try:
        return read_figures(Path(info.path), [info])
    except (DiskError, OSError) as error:
        unread.append(str(error))
        return None


def without_copies(
    rows: list[tuple[SourceSession, SessionStats]], older: dict[str, list[str]]
) -> list[tuple[SourceSession, SessionStats]]:
    """Return the rows with what each adds: of a file that begins as a copy of an older one, only what follows the copy.

    `older` is that of all sessions: the older file need not be among the rows.
    """
    from ..history.session_stats import session_stats

    def added(info: SourceSession, figures: SessionStats) -> SessionStats:
        if info.path not in older:
            return figures
        try:
            found = session_stats(added_records(_own_records, info.path, older[info.path]), price)
            if info.origin == "pi":
                found = msgspec.structs.replace(found, usd=scan_added("pi", info.path, older[info.path]).cost_usd)
            return found + sum_subagents([info])
        except (DiskError, OSError):  # one of the files has vanished since
            return figures

    return [(info, added(info, figures)) for info, figures in rows]


def _own_records(path: str | Path) -> Iterator[Record]:
    """Read a session without the base of a fork, whose calls and turns count there."""
    return sources.read(path, with_base=False)


def read_figures(path: Path, listed: list[SourceSession]) -> SessionStats:
    """Return what a session did, with its subagents. pi records what it paid, which counts before any list price."""
    from ..history.session_stats import session_stats

    found = session_stats(_own_records(path), price)
    recorded = [info.cost_usd for info in listed if info.origin == "pi" and info.cost_usd is not None]
    # A subagent's file has no calls of a conversation. If the session that started it is gone, it stands for itself.
    alone = [info for info in listed if info.parent and not found.calls]
    return msgspec.structs.replace(found, usd=recorded[0] if recorded else found.usd) + sum_subagents(listed, alone)


def _policy(settings: Settings) -> dict[str, str]:
    """Return the policy of new calls in this directory, and where it is set."""
    found = settings.resolved("lamina.policy")
    return {"name": found.value, "source": found.source, "detail": found.detail}


def _policy_line(policy: dict[str, str]) -> str:
    source = f"{policy['source']}, {policy['detail']}" if policy["detail"] else policy["source"]
    return f"  policy in this directory: {policy['name']} ({source})"


def session_cost(info: SourceSession, figures: SessionStats) -> float | None:
    """Return the cost of a session. Some agents record what they paid, also for models with unknown prices."""
    found = price_all(figures)
    return info.known_cost if found is None else found


def _known_costs(rows: list[tuple[SourceSession, SessionStats]], total: SessionStats) -> list[str]:
    """If the total cost is unknown, return the sum of those that are known."""
    costs = [session_cost(info, figures) for info, figures in rows]
    unknown = costs.count(None)
    if price_all(total) is not None or unknown == len(costs):
        return []
    without = f", without {counted(unknown, 'session')} of unknown cost" if unknown else ""
    return [f"  as priced or recorded: {_dollars(sum(usd or 0.0 for usd in costs))}{without}"]


def sum_subagents(infos: list[SourceSession], alone: Sequence[SourceSession] = ()) -> SessionStats:
    """Return the costs of the subagents of other agents, which have separate files, and of those in `alone`."""
    from ..history.session_stats import SessionStats, SideCost

    children = [*alone, *(child for info in infos if info.origin != "lamina" for child in info.subagents)]
    cost = sum((SideCost(1, child.usage, child.cost_usd) for child in children), SideCost())
    return SessionStats(side={"subagent": cost}) if children else SessionStats()


def price_all(figures: SessionStats) -> float | None:
    """Return the cost of the conversation, its agents and its background calls; None also without token counts."""
    if not _is_counted(figures):
        return None
    own, side = figures.usd, price_side(figures, figures.side_total())
    return None if own is None or side is None else own + side


def price_side(figures: SessionStats, side: SideCost) -> float | None:
    """Return the cost of side calls. Those of an offline session are free."""
    return 0.0 if not side.calls or set(figures.usage) == {FREE} else side.usd


def to_json(figures: SessionStats) -> dict[str, Any]:
    fidelity = {"facts": figures.facts, "answerable": figures.answerable, **figures.fidelity} if figures.facts else None

    def as_is(*names: str) -> dict[str, Any]:
        return {name: getattr(figures, name) for name in names}

    return {
        **as_is("calls", "turns"),
        "usage": figures.total.wire(),
        "cache_hit_ratio": round(figures.hit_ratio, 4),
        "cost_usd": figures.usd if _is_counted(figures) else None,
        "agents": side_json(figures, figures.side_total(agents=True)),
        "side": {purpose: side_json(figures, cost) for purpose, cost in sorted(figures.side.items())},
        "side_usage": figures.side_total().usage.wire(),
        "side_cost_usd": price_side(figures, figures.side_total()),
        "total_cost_usd": price_all(figures),
        **as_is("compactions", "compactions_by_price", "compaction_failures", "compactions_refused"),
        "fidelity": fidelity,
        "summaries_per_100_turns": round(figures.summaries_per_100_turns, 2),
        **as_is("breaker_trips", "clearings", "spills", "shown_once", "collapses", "undos"),
        "tokens_saved": figures.saved,
        "breaks": figures.breaks,
        "cache_missed": figures.missed,
        "tokens_written_again": figures.written_again,
        "layer_failures": figures.failures,
        "budget_stops": figures.budget_stops,
    }


def side_json(figures: SessionStats, cost: SideCost) -> dict[str, Any]:
    return {"calls": cost.calls, "usage": cost.usage.wire(), "cost_usd": price_side(figures, cost)}


def format_side(figures: SessionStats, billing: Billing, *, agents: bool) -> list[str]:
    side = figures.side_total(agents=agents)
    if not side.calls:
        return []
    counts = {name: one.calls for name, one in sorted(figures.side.items()) if (name in AGENT_PURPOSES) == agents}
    calls = ", ".join(counted(count, _AGENTS[name]) if name in _AGENTS else f"{count} {name}" for name, count in counts.items())
    sent = f"{counted(side.usage.prompt, 'input token')}, {counted(side.usage.output_tokens, 'output token')}"
    used = f"{sent}, {_dollars(price_side(figures, side))}" if billing == "list" else tokens_apart(side.usage)
    return [f"  {'agents' if agents else 'background calls'}: {calls}; {used}"]


def _dollars(usd: float | None) -> str:
    return f"${usd:.4f}" if usd is not None else "cost unknown"


def format_figures(figures: SessionStats, billing: Billing = "list") -> list[str]:
    done = f"{counted(figures.turns, 'turn')}, {counted(figures.calls, 'call')}"
    shown = [f"  {done}: {_used(figures, billing)}"]
    shown += [*format_side(figures, billing, agents=True), *format_side(figures, billing, agents=False)]
    if figures.side and billing == "list":
        shown.append(f"  total cost: {_dollars(price_all(figures))}")
    elif figures.side:
        shown.append(f"  in all: {tokens_apart(_usage(figures))}")
    did = [
        *(f"{counted(count, 'compaction')} by {how}" for how, count in sorted(figures.compactions.items())),
        *_some(figures.compactions_by_price, "of them", "before the window was full, because it paid", many="of them"),
        *(f"{counted(count, 'clearing')} ({trigger})" for trigger, count in sorted(figures.clearings.items())),
        *_some(figures.spills, "result", "stored in files"),
        *_some(figures.shown_once, "result", "shown once"),
        *_some(figures.collapses, "collapse"),
        *_some(figures.undos, "undo", many="undos"),
    ]
    if did:
        shown.append(f"  layers: {', '.join(did)}")
    if figures.facts:
        here, near, lost = (figures.fidelity.get(fate, 0) for fate in ("in_context", "one_call", "lost"))
        shown.append(
            f"  facts in compacted text: {figures.facts} checked, {here} in the context, {near} one call away, {lost} lost"
        )
    if figures.saved:
        saved = ", ".join(f"{tokens:,} by {layer}" for layer, tokens in figures.saved.items())
        shown.append(f"  tokens saved: {saved}")
    if figures.breaks or figures.missed:
        named = ", ".join(f"{count} {reason}" for reason, count in sorted(figures.breaks.items())) or "none expected"
        shown.append(f"  cache breaks: {named}; {counted(figures.missed, 'unexplained miss', 'unexplained misses')}")
    if figures.written_again:
        shown.append(f"  written to the cache again: {counted(figures.written_again, 'token')}")
    trouble = [
        *_some(figures.compaction_failures, "compaction", "failed"),
        *_some(figures.compactions_refused, "compaction", "vetoed by a hook"),
        *_some(figures.breaker_trips, "stop", "of automatic compaction after repeated failures"),
        *(f"{counted(count, 'failure')} of {layer}" for layer, count in figures.failures.items()),
        *(f"background work ran out of {what} {counted(count, 'time')}" for what, count in sorted(figures.budget_stops.items())),
    ]
    return [*shown, f"  problems: {', '.join(trouble)}"] if trouble else shown


def _is_counted(figures: SessionStats) -> bool:
    """Whether the transcript has token counts, or the cost that its agent recorded."""
    return bool(_usage(figures).total or figures.usd)


def _used(figures: SessionStats, billing: Billing) -> str:
    if not _is_counted(figures):
        return "no token counts"
    total, cached = figures.total, f"{figures.hit_ratio:.1%} from the cache"
    if billing == "subscription":
        return f"{tokens_apart(total)} ({cached})"
    return f"{counted(total.prompt, 'input token')} ({cached}), {counted(total.output_tokens, 'output token')}, {_dollars(figures.usd)}"


def _usage(figures: SessionStats) -> Usage:
    return figures.total + figures.side_total().usage


def _some(count: int, noun: str, rest: str = "", many: str = "") -> list[str]:
    return [f"{counted(count, noun, many)} {rest}".rstrip()] if count else []


def _print_sessions(rows: list[tuple[SourceSession, SessionStats]], billing: Billing) -> None:
    width = terminal_width()
    # A narrow terminal keeps the cost and the title.
    left_out = ("turns", "compactions", "read", "written", "uncached", "output") if width is not None and width < NARROW else ()
    shown = []
    names, shared = name_rows([info for info, _ in rows])
    for short, (info, figures) in zip(names, rows[:MOST_ROWS], strict=False):
        amount = Amount(_usage(figures), session_cost(info, figures))
        cells = {
            "id": short,
            "turns": str(figures.turns),
            "calls": str(figures.calls),
            **_columns(figures, billing),
            "cached": f"{figures.hit_ratio:.0%}" if _is_counted(figures) else NO_COUNTS,
            HEADS[billing]: cell(amount, billing),
            "from": info.origin,
            "compactions": str(sum(figures.compactions.values())),
            "about": info.title,
        }
        shown.append({name: cell for name, cell in cells.items() if name not in left_out})
    header = list(shown[0])
    print_table(header, [list(cells.values()) for cells in shown], right=header[1:-1])
    if len(rows) > MOST_ROWS:
        click.echo(Text("and {rows} more", rows=len(rows) - MOST_ROWS))
    notice(*shared)


def _columns(figures: SessionStats, billing: Billing) -> dict[str, str]:
    """Return the tokens of a session: those it sent, or each price class under a subscription."""
    if billing == "list":
        return {"tokens sent": f"{figures.total.prompt:,}" if _is_counted(figures) else NO_COUNTS}
    used = _usage(figures)
    counts = {"read": used.cache_read, "written": used.cache_write, "uncached": used.input_tokens, "output": used.output_tokens}
    return {name: short_count(count) for name, count in counts.items()}


def print_ledger(where: Path, days: float | None, *, as_json: bool) -> None:
    """Print how much of its budget background work has used, by purpose, model and project.

    The table covers today, or the last `days` days; the remaining budget is always today's.
    """
    now, settings = time.time(), options.load_settings(where)
    limits = limits_of(settings)
    today, since = day_of(now), day_of(now - (days or 0) * 86_400)
    lines = read_ledger(since, today)
    spent = spent_in(line for day, line in lines if day == today)
    out, rows = ran_out(spent, limits), group_lines(lines)
    if rows and not as_json:
        _print_ledger_table(rows, days is not None, settings.billing)
    told = {
        "day": today,
        "used": spent_json(spent),
        "limits": msgspec.structs.asdict(limits),
        "left": left(spent, limits),
        "ran_out": out.what if out else None,
        "rows": [dict(zip(KEYS, key, strict=True)) | spent_json(one) for key, one in rows],
        "billing": settings.billing,
    }
    print_result(told, folded(summarise_budget(spent, limits, settings.billing)), as_json=as_json)


def read_ledger(first: str, last: str) -> list[tuple[str, LedgerLine]]:
    """Return the background calls of these days, each with its day."""
    return [
        (day, line)
        for home in filter(None, [options.find_home()])
        for day in list_ledger_days(home)
        if first <= day <= last
        for line in read_ledger_day(home, day)
    ]


def _background_today(billing: Billing) -> list[str]:
    """Return a line about today's background calls, which are in no session of another agent: purpose, model, count and cost."""
    today = day_of(time.time())
    by: dict[str, Spent] = {}
    for (_, purpose, model, _), spent in group_lines(read_ledger(today, today)):
        name = f"{purpose} by {model or 'an unknown model'}"
        by[name] = by.get(name, Spent()) | spent
    parts = [f"{spent.calls} {name}" + (f" {_money(spent)}" if billing == "list" else "") for name, spent in by.items()]
    return [f"  background calls today, all projects: {', '.join(parts)}"] if parts else []


def group_lines(lines: list[tuple[str, LedgerLine]]) -> list[LedgerRow]:
    """Sum the lines by day, purpose, model and project: newest day first, then the most expensive."""
    found: dict[tuple[str, str, str, str], Spent] = {}
    for day, line in lines:
        key = (day, line.purpose, line.model, line.project)
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


def _print_ledger_table(rows: list[LedgerRow], by_day: bool, billing: Billing) -> None:
    cost = ["cost"] if billing == "list" else []
    header = [*(["day"] if by_day else []), "purpose", "model", "calls", "tokens", *cost, "project"]
    cells = [
        [
            *([day] if by_day else []),
            purpose,
            model or "?",
            str(spent.calls),
            f"{spent.tokens:,}",
            *([_money(spent)] if cost else []),
            project,
        ]
        for (day, purpose, model, project), spent in rows
    ]
    print_table(header, cells, right=("calls", "tokens", "cost"))
    click.echo()


def _money(spent: Spent) -> str:
    """Format the cost; calls to models with unknown prices are marked with a question mark."""
    if spent.unpriced and spent.unpriced + spent.failed == spent.calls:
        return "?"
    return f"${spent.usd:.4f}" + ("+?" if spent.unpriced else "")


def summarise_budget(spent: Spent, limits: Limits, billing: Billing = "list") -> list[str]:
    cost = f"${spent.usd:.4f} of ${limits.dollars:.2f}"
    if billing == "subscription":
        cost = f"{spent.usd / limits.dollars if limits.dollars else 1:.0%} of the limit of its cost (lamina.budgetDollars)"
    lines = [
        f"Background work today: {spent.calls:,} of {limits.calls:,} calls, {spent.tokens:,} of {limits.tokens:,} tokens, {cost}."
    ]
    if spent.usage.cache_read:
        lines.append(f"  {counted(spent.usage.cache_read, 'token')} read from the cache; each counts as a tenth.")
    if spent.unpriced:
        lines.append(f"  {counted(spent.unpriced, 'call')} to models with unknown prices, counted in calls and tokens only.")
    if spent.failed:
        lines.append(f"  {counted(spent.failed, 'call')} failed.")
    if (out := ran_out(spent, limits)) is not None:
        lines.append(out.sentence(billing))
    return lines
