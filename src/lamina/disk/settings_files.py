"""Reads the settings files and resolves them to `Settings`, and notices when they change. Writes nothing.

Missing files are skipped. An unusable file (unreadable, too large, not a regular file, not JSON) becomes one finding and the
others still apply, so a broken file never prevents a session from starting. Links are followed, because users keep their settings
in other directories; a linked file in the working tree gains no rights by it. On Windows, a named pipe in place of a file may
block; elsewhere it is refused unread.

`settings_in_force` is how every surface loads the settings of a directory: files of the working tree count as far as the user trusts the
tree. Its value can refresh itself: a stat of each file tells whether anything changed, and then everything is loaded again, trust included.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..core.errors import InputError, PathRefused, SettingError, error_message
from ..core.flags import Flags
from ..core.settings import Document, Finding, Settings, Source, resolve
from ..core.settings.kinds import printable
from ..language.text import Text, message
from .paths.memory_paths import check_root
from .regular_file import IrregularFile, open_regular, stamp_of

MANAGED_PATH = "/etc/lamina/settings.json"
FILE_NAME = "settings.json"
FLAGS_NAME = "flags.json"
TRUST_NAME = "trust.json"
PROJECT_PATH = Path(".claude") / "settings.json"
LOCAL_PATH = Path(".claude") / "settings.local.json"

# A thousand times the size of a usual file, and still read in a few milliseconds.
MOST_BYTES = 1_000_000
# Hooks, the most nested setting, need five levels.
DEEPEST = 32
LONGEST_SHOWN_PATH = 500


class SettingsPaths(msgspec.Struct, frozen=True):
    """The paths of the settings files. `user` and `flags` are None if there is no home directory."""

    home: Path | None
    managed: Path
    user: Path | None
    project: Path
    local: Path
    flags: Path | None


class _Unusable(Exception):
    """A file cannot be used. The message completes the sentence "Settings file …"."""


def lamina_home(environ: Mapping[str, str]) -> Path | None:
    """Return LAMINA_HOME or `~/.lamina`. It is read only from the given environment, because many tenants may share a process.

    Raises SettingError if it is a relative path or the root of the disk or belongs to another user.
    """
    named = environ.get("LAMINA_HOME", "").strip()
    own = user_home(environ)
    home, problem = own / ".lamina" if own is not None else None, None
    if named.startswith("~/") and own is not None:
        home = own / named[2:]
    elif os.path.isabs(named):
        home = Path(named)
    elif named:
        problem = f"{printable(named, LONGEST_SHOWN_PATH)!r} is not an absolute path"
    if problem or (home is not None and (problem := _bad_home(home))):
        raise SettingError("LAMINA_HOME", "environment", problem, "set LAMINA_HOME to a directory that you own")
    return home


def checked_home(home: str | os.PathLike[str]) -> Path:
    """Return the `home` argument of a public function. Raises InputError for a directory that cannot be the home."""
    directory = Path(home)
    if problem := _bad_home(directory):
        raise InputError("home", problem, "pass a directory that you own")
    return directory


def _bad_home(home: Path) -> str | None:
    """Return why a directory cannot be the home. Whoever owns it could write settings there, and hooks are among them."""
    if os.path.dirname(os.path.normpath(home)) == os.path.normpath(home):
        return f"{home} is the root of the disk"
    try:
        owner = os.stat(home).st_uid
    except OSError:
        return None
    ours = not hasattr(os, "geteuid") or owner in (os.geteuid(), 0)
    return None if ours else f"{printable(str(home), LONGEST_SHOWN_PATH)} belongs to another user (uid {owner})"


def user_home(environ: Mapping[str, str]) -> Path | None:
    named = environ.get("HOME") or environ.get("USERPROFILE") or ""
    return Path(named) if os.path.isabs(named) else None


def settings_paths(
    *, cwd: str | Path, environ: Mapping[str, str], home: str | Path | None = None, managed_path: str | Path = MANAGED_PATH
) -> SettingsPaths:
    directory = Path(home) if home is not None else lamina_home(environ)
    named = environ.get("LAMINA_FLAGS", "").strip()
    flags = Path(named) if os.path.isabs(named) else directory and directory / FLAGS_NAME
    top = Path(cwd)
    user = directory and directory / FILE_NAME
    return SettingsPaths(directory, Path(managed_path), user, top / PROJECT_PATH, top / LOCAL_PATH, flags)


def load_settings(
    *,
    cwd: str | Path,
    environ: Mapping[str, str],
    home: str | Path | None = None,
    managed_path: str | Path = MANAGED_PATH,
    command_line: Mapping[str, Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
    trusted: bool = False,
    remote: Flags | None = None,
    refresh: Callable[[Settings], Settings] | None = None,
) -> Settings:
    """Load the settings that apply in `cwd`. `remote` flags default to those in `<home>/flags.json` (or LAMINA_FLAGS)."""
    paths = settings_paths(cwd=cwd, environ=environ, home=home, managed_path=managed_path)
    findings = [] if home is not None else _home_findings(environ, paths)
    managed, user = _read("managed", paths.managed, findings), _read("user", paths.user, findings)
    project = _read("project", paths.project, findings, unless=paths.user)
    local = _read("local", paths.local, findings, unless=paths.user)
    if remote is None and (flags := _read("remote flag", paths.flags, findings)) is not None:
        remote = flags.data
    return resolve(
        arguments=arguments,
        managed=managed,
        command_line=command_line,
        environ=environ,
        local=local,
        project=project,
        user=user,
        remote=remote,
        trusted=trusted,
        judge=_judge(user_home(environ) or paths.home),
        findings=tuple(findings),
        refresh=refresh,
    )


def _judge(home: Path | None) -> Callable[[str], str | None] | None:
    """Return a function that checks a directory setting, so that a directory that would be refused later is reported now."""
    if home is None:
        return None

    def problem(text: str) -> str | None:
        try:
            check_root(text, home=home)
        except PathRefused as refused:
            return refused.problem
        return None

    return problem


def _home_findings(environ: Mapping[str, str], paths: SettingsPaths) -> list[Finding]:
    if paths.home is not None:
        return []
    text = Text("No home directory found, so your user settings are not read. Set LAMINA_HOME.")
    return [Finding("LAMINA_HOME", "environment", text)]


def _read(source: Source, path: Path | None, findings: list[Finding], *, unless: Path | None = None) -> Document | None:
    """Read one settings file. If it is the same file as `unless`, it is skipped.

    When the working directory is the home directory, the project's file may be the user's file, which must count only once.
    """
    if path is None or (unless is not None and _same(path, unless)):
        return None
    problems: list[tuple[str, str]] = []
    data = None
    try:
        data = _object(_content(path), problems)
    except _Unusable as fault:
        problems.append((message(fault), "the file is ignored"))
    shown = printable(str(path), LONGEST_SHOWN_PATH)
    subject = Text("Settings file {path}", path=shown)
    findings += [Finding(source, source, error_message(subject, *problem), problem[0], file=shown) for problem in problems]
    return None if data is None else Document(data, str(path))


def _same(path: Path, other: Path) -> bool:
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):
        return False


def _content(path: Path) -> bytes:
    """Return the content of a regular file, or no bytes if it does not exist. Never blocks on a pipe or device."""
    try:
        with open_regular(path) as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return b""
    except IrregularFile:
        raise _Unusable("is not a regular file") from None
    except OSError as fault:
        raise _Unusable(Text("cannot be read ({reason})", reason=_reason(fault))) from None
    if len(content) > MOST_BYTES:
        raise _Unusable(Text("is larger than {limit:,} bytes", limit=MOST_BYTES))
    return content


def _reason(fault: Exception) -> str:
    return getattr(fault, "strerror", None) or str(fault)


def _object(content: bytes, problems: list[tuple[str, str]]) -> dict[str, Any] | None:
    """Parse the JSON object in a file. Defects that do not make it unusable are added to `problems`."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise _Unusable(Text("is not UTF-8 text (byte {start:,})", start=fault.start + 1)) from None
    if not text.strip():
        return None
    data = _parsed(text, problems)
    if not isinstance(data, dict):
        raise _Unusable("must contain a JSON object { … }")
    if _too_deep(data):
        raise _Unusable(Text("is nested more than {limit} levels deep", limit=DEEPEST))
    return data


def _parsed(text: str, problems: list[tuple[str, str]]) -> object:
    import json  # most sessions find no settings file

    twice: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        joined = dict(items)
        if len(joined) < len(items):
            twice.extend(key for key, times in Counter(key for key, _ in items).items() if times > 1)
        return joined

    try:
        data: object = json.loads(text, object_pairs_hook=pairs, parse_constant=_no_constant)
    except json.JSONDecodeError as fault:
        raise _Unusable(
            Text(
                "is not valid JSON at line {lineno}, column {colno} ({msg})",
                lineno=fault.lineno,
                colno=fault.colno,
                msg=fault.msg,
            )
        ) from None
    except RecursionError:
        raise _Unusable(Text("is nested more than {limit} levels deep", limit=DEEPEST)) from None
    except ValueError as fault:  # a number with thousands of digits
        raise _Unusable(Text("contains an invalid number ({reason})", reason=_reason(fault))) from None
    if twice:
        problems.append((Text('has the key "{key}" twice', key=printable(twice[0])), "the last one applies"))
    return data


def _no_constant(name: str) -> float:
    raise _Unusable(Text("contains {name}, which is not a JSON number", name=name))


def _too_deep(node: object, left: int = DEEPEST) -> bool:
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return left == 0 or any(_too_deep(child, left - 1) for child in children)


def settings_in_force(
    cwd: str | os.PathLike[str] = ".",
    *,
    home: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    managed_path: str | Path = MANAGED_PATH,
    command_line: Mapping[str, Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
    remote: Flags | None = None,
) -> Settings:
    """Return the settings of `cwd`; without `environ`, those of the process's environment at each look."""
    variables = os.environ if environ is None else environ
    where = Path(cwd).absolute()
    own = Path(home) if home is not None else None
    base = own or lamina_home(variables)
    paths = settings_paths(cwd=where, environ=variables, home=own, managed_path=managed_path)
    watched = [path for path in (paths.managed, paths.user, paths.project, paths.local, paths.flags) if path is not None]
    watched += [base / TRUST_NAME] if base is not None else []

    def load() -> Settings:
        stamps = [stamp_of(path) for path in watched]  # before the files are read: a change in between is found at the next look

        def refreshed(settings: Settings) -> Settings:
            if [stamp_of(path) for path in watched] != stamps:
                return load()
            return settings.with_remote(remote) if callable(remote) else settings

        def loaded(trusted: bool) -> Settings:
            return load_settings(
                cwd=where,
                environ=variables,
                home=own,
                managed_path=managed_path,
                command_line=command_line,
                arguments=arguments,
                trusted=trusted,
                remote=remote,
                refresh=refreshed,
            )

        if base is None or not os.path.lexists(base / TRUST_NAME):
            return loaded(False)
        from .home.trust import while_trusted

        return while_trusted(base, where, loaded)

    return load()
