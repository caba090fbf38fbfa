"""Git status at the start of a session, and earlier versions of a file. The repository is not trusted: none of its programs runs,
and nothing is written to it.

A repository's configuration names programs: `core.fsmonitor`, hooks, filters that `git status` runs over changed files,
external diffs, signature checkers, transports for missing objects. The repository chooses the names of its filters, so
disabling known settings one by one leaves holes. Therefore git never sees that configuration. GIT_DIR is an empty repository
that ships with this package, and environment variables point git at the objects, the index and the working tree. We read
HEAD and refs from their files, each bounded. A name in them cannot lead outside, and a `.git` file counts only if the
directory it names belongs to this working tree. Submodules are left out: git would start itself inside them and read their
configuration.

This has a price: the user's excludes file counts only at git's default location, files under a filter such as LFS can show
as modified, and repositories with SHA-256 objects or a ref table show no commits.

Everything is bounded: all commands share one deadline, and output beyond a limit is not read.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from ..core.errors import DiskError
from ..core.settings.kinds import printable
from ..disk.child import BoundedOutput, ChildProgram, run_child
from ..disk.git import git_environ, git_program
from ..disk.regular_file import open_regular
from ..disk.session_files.spool import Spool
from .safe_read import FileText, read_text

# A session must not wait for a huge working tree: the report leaves out what is not known in time, and mentions it.
SECONDS = 2.0
MOST_OUTPUT = 64 << 10
MOST_CHANGES = 50
MOST_COMMITS = 5
LONGEST_LINE = 200

# The index size of a repository with half a million files; a larger index is read in place.
MOST_INDEX_BYTES = 64 << 20

EMPTY_REPOSITORY = Path(__file__).parent / "empty_repository"
_DIFF = ("diff", "--name-status", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
_UNTRACKED = ("ls-files", "-z", "--others", "--exclude-standard", "--directory", "--no-empty-directory")
_LOG = ("log", "-z", f"--max-count={MOST_COMMITS}", "--no-decorate", "--no-show-signature", "--format=%h %s")


def git_status(cwd: Path, *, environ: Mapping[str, str], seconds: float = SECONDS) -> str | None:
    """Return branch, changes and last commits as text to be fenced, or None outside a repository."""
    repository = find_repository(cwd)
    if repository is None:
        return None
    head = head_of(repository)
    git = git_program(environ, outside=repository.top)
    answers = _ask_all(git, repository, head, environ, seconds) if git is not None else {}
    main = default_branch(repository)
    lines = [f"Branch: {_line(head.branch)}" if head.branch is not None else "Branch: none (detached HEAD)"]
    if main is not None and main != head.branch:
        lines.append(f"Main branch: {_line(main)}")
    if head.commit is None and head.branch is not None:
        lines.append("No commits found.")
    commits, _ = answers.pop("log", ((), True))
    if answers:
        lines += ["", "Changes:", *_changes(answers)]
    if commits:
        lines += ["", "Last commits:", *map(_line, commits)]
    return "\n".join(lines)


# The fields of a command's output, and whether they are all.
GitAnswer: TypeAlias = tuple[tuple[str, ...], bool]


def _ask_all(
    git: str, repository: GitRepository, head: GitHead, environ: Mapping[str, str], seconds: float
) -> dict[str, GitAnswer]:
    """Run all commands in parallel."""
    exclude = repository.common / "info" / "exclude"
    commands: dict[str, Sequence[str]] = {
        "changed": _DIFF,
        "untracked": (*_UNTRACKED, *((f"--exclude-from={exclude}",) if exclude.is_file() else ())),
    }
    if head.commit is not None:
        commands |= {"staged": (*_DIFF, "--cached", head.commit), "log": (*_LOG, head.commit)}
    settings = [word for name, value in comparison_settings(repository).items() for word in ("-c", f"{name}={value}")]
    line = [git, "--no-pager", *settings]
    with _copied_index(repository) as index, ThreadPoolExecutor(len(commands)) as pool:
        variables = {**git_variables(repository, environ), "GIT_INDEX_FILE": str(index)}
        if index == repository.git / "index":
            # No copy could be made: better to list a file too many than to write the index.
            line += ["-c", "diff.autoRefreshIndex=false"]

        def ask(command: Sequence[str]) -> GitAnswer:
            data, ended_well = ask_git([*line, *command], repository, variables, seconds)
            return fields_of(data), ended_well

        return dict(zip(commands, pool.map(ask, commands.values()), strict=True))


@contextmanager
def _copied_index(repository: GitRepository) -> Iterator[Path]:
    """Yield a copy of the index. When diff compares files it refreshes the index, and would write it back."""
    index = repository.git / "index"
    data = b""
    try:
        with open_regular(index) as file:
            data = file.read(MOST_INDEX_BYTES + 1)
        spool = Spool.create(tempfile.gettempdir(), limit=MOST_INDEX_BYTES) if len(data) <= MOST_INDEX_BYTES else None
    except (OSError, DiskError):
        spool = None
    if spool is None:
        yield index
        return
    with spool:
        spool.write(data)
        yield spool.path


def git_variables(repository: GitRepository, environ: Mapping[str, str]) -> dict[str, str]:
    return {
        **git_environ(environ, EMPTY_REPOSITORY),
        # Git looks for the user's excludes file here, as it does in the home directory.
        **({"XDG_CONFIG_HOME": environ["XDG_CONFIG_HOME"]} if "XDG_CONFIG_HOME" in environ else {}),
        "GIT_WORK_TREE": str(repository.top),
        "GIT_OBJECT_DIRECTORY": str(repository.common / "objects"),
        "GIT_SHALLOW_FILE": str(repository.common / "shallow"),
        # Otherwise git would write a refreshed index back.
        "GIT_OPTIONAL_LOCKS": "0",
    }


def ask_git(
    command: Sequence[str], repository: GitRepository, environ: Mapping[str, str], seconds: float, most: int = MOST_OUTPUT
) -> tuple[bytes, bool]:
    """Return what git prints, and whether that is all and git ended well. Git is stopped once it has printed more than `most` bytes."""
    output = BoundedOutput(most, stop=True)
    try:
        end = run_child(
            ChildProgram(command, "dropped"), cwd=repository.top, environ=environ, timeout=seconds, take=output.take, grace=0
        )
    except OSError:
        return b"", False
    return bytes(output.data), end.why == "exit" and end.code == 0


def fields_of(data: bytes) -> tuple[str, ...]:
    """Return the fields of an output; the part after the last NUL is empty or a truncated field."""
    return tuple(data.decode("utf-8", "replace").split("\0")[:-1])


def _changes(answers: Mapping[str, GitAnswer]) -> list[str]:
    """List the changes as `git status --short` does: staged, changed in the working tree, untracked."""
    both = (answers[name][0] if name in answers else () for name in ("staged", "changed"))
    # Status letter and path alternate.
    staged, changed = ({path: status[:1] for status, path in zip(fields[::2], fields[1::2], strict=False)} for fields in both)
    lines = [f"{staged.get(path, ' ')}{changed.get(path, ' ')} {_line(path)}" for path in sorted({*staged, *changed})]
    lines += [f"?? {_line(path)}" for path in answers["untracked"][0]]
    if len(lines) > MOST_CHANGES:
        lines[MOST_CHANGES:] = [f"… and {len(lines) - MOST_CHANGES:,} more"]
    if not all(whole for _, whole in answers.values()):
        lines.append("(incomplete: git did not finish in time)")
    return lines or ["none"]


def _line(text: str) -> str:
    return printable(text, LONGEST_LINE)


# Fifty thousand packed refs are 4 MB.
MOST_REFS_BYTES = 16 << 20
_REF = re.compile(r"refs/(?:[^/.\0\s~^:?*\[\\][^/\0\s~^:?*\[\\]*/)*[^/.\0\s~^:?*\[\\][^/\0\s~^:?*\[\\]*")
_OBJECT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SETTING = re.compile(r"[ \t]*(?P<name>[A-Za-z]+)[ \t]*=[ \t]*(?P<value>[A-Za-z]+)[ \t]*(?:[#;].*)?")

# Settings that control how files are compared and never run a program.
HARMLESS = frozenset({"filemode", "ignorecase", "symlinks", "precomposeunicode", "trustctime", "autocrlf"})
_VALUES = frozenset({"true", "false", "yes", "no", "on", "off", "input"})


class GitRepository(msgspec.Struct, frozen=True):
    top: Path  # of the working tree
    git: Path  # HEAD and index
    common: Path  # objects and refs


class GitHead(msgspec.Struct, frozen=True):
    branch: str | None  # None if HEAD is detached
    commit: str | None  # None if there is no commit yet, or none was found


def find_repository(cwd: Path) -> GitRepository | None:
    """Find the repository of a directory. A `.git` file leads to a worktree, whose repository points back at it, or to a submodule inside
    the parent repository."""
    directory = Path(os.path.realpath(cwd))
    for top in (directory, *directory.parents):
        dot = top / ".git"
        if dot.is_dir() and (dot / "HEAD").exists():
            return GitRepository(top, dot, dot)
        if not dot.is_file():
            continue
        git = _pointed(dot, "gitdir: ")
        if git is None:
            return None
        if _pointed(git / "gitdir") == dot:
            common = _pointed(git / "commondir")
            return GitRepository(top, git, common) if common is not None and git.parent == common / "worktrees" else None
        above = any(git.is_relative_to(parent / ".git" / "modules") for parent in top.parents)
        return GitRepository(top, git, git) if above else None
    return None


def _pointed(file: Path, prefix: str = "") -> Path | None:
    text = _content(file)
    if text is None or not text.startswith(prefix) or not text[len(prefix) :].strip():
        return None
    return Path(os.path.realpath(file.parent / text[len(prefix) :].strip("\n")))


def head_of(repository: GitRepository) -> GitHead:
    text = (_content(repository.git / "HEAD") or "").strip()
    if not text.startswith("ref: "):
        return GitHead(None, text if _OBJECT.fullmatch(text) else None)
    ref = text.removeprefix("ref: ").strip()
    return GitHead(ref.removeprefix("refs/heads/"), _commit(repository, ref)) if is_ref(ref) else GitHead(None, None)


def default_branch(repository: GitRepository) -> str | None:
    """Return the branch that origin declares as the main one."""
    text = (_content(repository.common / "refs" / "remotes" / "origin" / "HEAD") or "").strip()
    ref = text.removeprefix("ref: ").strip()
    return ref.removeprefix("refs/remotes/origin/") if is_ref(ref) else None


def comparison_settings(repository: GitRepository) -> dict[str, str]:
    """Read the settings of the `core` section that control how files are compared. Settings that could name a program are
    ignored."""
    settings: dict[str, str] = {}
    section = ""
    for line in (_content(repository.common / "config") or "").split("\n"):
        if line.lstrip().startswith("["):
            section = line.strip().casefold()
        elif section == "[core]" and (setting := _SETTING.fullmatch(line)):
            name, value = setting["name"].casefold(), setting["value"].casefold()
            if name in HARMLESS and value in _VALUES:
                settings[f"core.{name}"] = value
    return settings


def is_ref(name: str) -> bool:
    return bool(_REF.fullmatch(name)) and ".." not in name and "@{" not in name


def _commit(repository: GitRepository, ref: str) -> str | None:
    text = (_content(repository.common / ref) or "").strip()
    if _OBJECT.fullmatch(text):
        return text
    packed = _content(repository.common / "packed-refs", MOST_REFS_BYTES) or ""
    end = packed.find(f" {ref}\n")
    commit = packed[packed.rfind("\n", 0, end) + 1 : end] if end >= 0 else ""
    return commit if _OBJECT.fullmatch(commit) else None


def _content(path: Path, most: int = 1 << 16) -> str | None:
    content = read_text(Path(os.path.realpath(path)), most=most)
    return content.text if isinstance(content, FileText) else None


MOST_VERSIONS = 40


class FileVersion(NamedTuple):
    commit: str
    time: float
    data: bytes


def find_version(file: Path, is_wanted: Callable[[bytes], bool], *, environ: Mapping[str, str], most: int) -> FileVersion | None:
    """Return the newest version of a file that is wanted; None if no commit of the current branch has it."""
    repository = find_repository(file.parent)
    head = head_of(repository).commit if repository is not None else None
    git = git_program(environ, outside=repository.top) if repository is not None else None
    if repository is None or head is None or git is None:
        return None
    try:
        path = (file.parent.resolve() / file.name).relative_to(repository.top).as_posix()
    except (OSError, ValueError):
        return None
    variables, line = git_variables(repository, environ), [git, "--no-pager", "--literal-pathspecs"]
    log = ("log", "-z", f"--max-count={MOST_VERSIONS}", "--no-show-signature", "--format=%H %ct", head, "--", path)
    for row in fields_of(ask_git([*line, *log], repository, variables, SECONDS)[0]):
        commit, _, seconds = row.partition(" ")
        data, ended_well = ask_git([*line, "cat-file", "blob", f"{commit}:{path}"], repository, variables, SECONDS, most)
        if ended_well and is_wanted(data):
            return FileVersion(commit, float(seconds or 0), data)
    return None
