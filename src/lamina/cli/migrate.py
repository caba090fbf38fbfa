"""`lamina migrate`: move the memory and sessions of a project to its new directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..language.wording import counted
from . import options
from .console import notice, print_result, waiting

if TYPE_CHECKING:
    from ..memory.store.project_identity import KnownProject


@click.command("migrate")
@click.option("--list", "listing", is_flag=True, help="List the projects with stored memory or sessions.")
@click.option("--from", "source", metavar="OLD", help="Old path of the project, or the name of its directory in LAMINA_HOME.")
@click.option(
    "--to", "target", type=click.Path(file_okay=False, exists=True), default=".", help="New path. Default: the current directory."
)
@click.option("--merge", is_flag=True, help="Move even if the new path already has memories; both are kept.")
@options.yes
@options.as_json
def migrate_command(listing: bool, source: str | None, target: str, merge: bool, yes: bool, as_json: bool) -> int:
    """Move the memory and sessions of a project to its new directory."""
    import msgspec

    from ..maintenance.migrate.migrate import migrate, moved_from, refuse, root_commits, topics_in
    from ..memory.store.scopes import project_root

    home = options.need_home()
    if listing:
        if source is not None or merge or yes:
            raise click.UsageError("--list only lists the projects. Leave out --from, --merge and --yes.")
        _list(home, as_json)
        return 0
    project = project_root(Path(target).resolve())
    roots = root_commits(project, environ=os.environ)
    old, because = (moved_from(home, source), "given with --from") if source is not None else _only(home, project, roots or ())
    refuse(home, old, project, merge=merge)
    if not yes:
        memories = counted(topics_in(old.directory), "memory")
        notice(f"{memories} and the sessions of {old.path} ({because}) would move to {project}.")
        options.confirm("Move them?")
    with waiting("Moving the memories and sessions") as progress:
        done = migrate(home, old, project, roots, merge=merge, tell=progress.count)
    moved = f"{counted(done.memories, 'memory')} and {counted(done.sessions, 'session')}"
    both = [f"Both projects had this memory; the old project's version is kept as {name}." for name in done.merged]
    print_result(msgspec.to_builtins(done), [f"Moved {moved} from {done.source} to {done.target}.", *both], as_json=as_json)
    notice(*done.left)
    return 1 if done.left else 0


def _only(home: Path, project: Path, roots: tuple[str, ...]) -> tuple[KnownProject, str]:
    from ..maintenance.migrate.migrate import candidates

    found = candidates(home, project, roots)
    if not found:
        raise click.UsageError("No moved project matches this directory. Name it with --from; --list shows the known projects.")
    if len(found) > 1:
        named = ", ".join(str(one.known.path) for one in found)
        raise click.UsageError(f"Several moved projects match this directory ({named}). Choose one with --from.")
    return found[0]


def _list(home: Path, as_json: bool) -> None:
    from ..maintenance.kept_files import session_files
    from ..maintenance.migrate.migrate import topics_in
    from ..memory.store.project_identity import list_known_projects

    rows: list[dict[str, Any]] = [
        {
            "path": str(known.path),
            "exists": os.path.lexists(known.path),
            "directory": str(known.directory),
            "memories": topics_in(known.directory),
            "sessions": sum(one.transcript.is_file() for one in session_files(known.directory)),
        }
        for known in list_known_projects(home)
    ]
    lines = (
        f"{counted(row['memories'], 'memory'):>14} {counted(row['sessions'], 'session'):>14}  {row['path']}"
        + ("" if row["exists"] else "  (missing)")
        for row in rows
    )
    print_result(rows, lines, as_json=as_json, none="No projects with stored memory or sessions yet.")
