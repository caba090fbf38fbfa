"""Adds a permission rule to the local settings of a working tree: the one change Lamina makes there, when a person says "always".

Owns the edit. Invariants: everything else in the file stays as it is, keys we don't know and their order too; a file that can't
be read as JSON is left alone, with an error that names the line. No link is followed, so a repository can't lead the write elsewhere.

A crash at any line leaves the old file or the new one. A crash between a local file and the note of trust leaves a rule that
waits for a yes.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from ..core.errors import SettingError
from ..core.settings import Permissions
from .home.trust import enabled, trust, trusted
from .locks.lock_file import guard
from .settings_files import LOCAL_PATH, MOST_BYTES
from .trees.rootdir import RootDir

# Beside the person's settings, not in the working tree, where it would be one more file to explain.
_GUARD = ".local-settings.lock"


def add_local_rule(home: str | os.PathLike[str], cwd: str | os.PathLike[str], rule: str) -> bool:
    """Adds what is allowed to `.claude/settings.local.json` under `cwd`; True when it counts from now on.

    It does where the tree is trusted, or held nothing that needs trust: then the yes to the rule is noted as a yes to the tree. In
    any other tree it waits with the rest.
    """
    before = enabled(cwd)
    known = not before or trusted(home, cwd)
    where = os.path.realpath(cwd)
    with guard(Path(home) / _GUARD), RootDir.open(where, create=False, shared=True) as tree:
        rel = LOCAL_PATH.as_posix()
        old = tree.read_bytes(rel, MOST_BYTES + 1)
        new = with_rule(old, rule, os.path.join(where, rel))
        if new is not None:
            tree.replace(rel, new)
    if known and _only_added(before, enabled(cwd), rule):
        trust(home, cwd)
        return True
    return trusted(home, cwd)


def _only_added(before: dict[str, Any], after: dict[str, Any], rule: str) -> bool:
    """Whether the tree enables what it did and this rule: a change that came in between is not trusted along with it."""
    old, new = before.pop("permissions", Permissions()), after.pop("permissions", Permissions())
    same = before == after and set(old.ask) == set(new.ask) and set(old.deny) == set(new.deny)
    return same and {*old.allow, rule} == set(new.allow)


def with_rule(old: bytes | None, rule: str, path: str) -> bytes | None:
    """The file with the rule at the end of its list; None when it is there already."""
    data = _object(old, path)
    permissions = data.setdefault("permissions", {})
    rules = permissions.setdefault("allow", []) if isinstance(permissions, dict) else None
    if not isinstance(rules, list):
        raise SettingError("permissions.allow", path, "is no list of rules", "mend the file, then say it again")
    if rule in rules:
        return None
    rules.append(rule)
    return _text(data, old or b"", path)


def _object(old: bytes | None, path: str) -> dict[str, Any]:
    if old is not None and len(old) > MOST_BYTES:
        raise SettingError("permissions", path, f"is in a file of more than {MOST_BYTES:,} bytes", "make it smaller")
    try:
        text = (old or b"").decode("utf-8-sig")
        data: Any = json.loads(text, object_pairs_hook=_once) if text.strip() else {}
    except (ValueError, RecursionError) as fault:
        raise SettingError("permissions", path, f"the file is no JSON ({fault})", "mend it, then say it again") from None
    if not isinstance(data, dict):
        raise SettingError("permissions", path, "the file holds no JSON object", "mend it, then say it again")
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Writing an object back would lose the first of two equal keys."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _text(data: dict[str, Any], old: bytes, path: str) -> bytes:
    indent = re.search(rb"\n([ \t]+)\S", old)
    step = indent[1].decode() if indent else "  "
    try:
        text = json.dumps(data, indent=step, ensure_ascii=False, allow_nan=False) + "\n"
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which only its escape can carry
        return (json.dumps(data, indent=step) + "\n").encode()
    except ValueError as fault:
        raise SettingError("permissions", path, f"the file holds a number that can't be written back ({fault})") from None
