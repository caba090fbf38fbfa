"""Changes settings files for the user: adds a permission rule to the local settings of a working tree, when the user answers
"always", and sets one value of the user's own file, when the user chose it on the page.

Owns the edits. Invariants: the rest of the file is preserved, including unknown keys and their order; a file that is not valid
JSON is left alone, with an error that names the line. No link is followed, so a repository cannot redirect the write.

A crash at any line leaves the old file or the new one. A crash between the local file and the record of trust leaves a rule that
waits for the user's approval.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from ..core.errors import SettingError
from ..core.settings import Permissions
from ..language.text import Text
from .home.trust import enabled, trust, trusted
from .locks.lock_file import guard
from .settings_files import FILE_NAME, LOCAL_PATH, MOST_BYTES
from .trees.rootdir import RootDir
from .user_files import read_whole, replace

# In the home directory, not in the working tree, where it would be one more file to explain.
_GUARD = ".local-settings.lock"
_USER_GUARD = ".user-settings.lock"


def add_local_rule(home: str | os.PathLike[str], cwd: str | os.PathLike[str], rule: str) -> bool:
    """Add an allow rule to `.claude/settings.local.json` under `cwd`. Returns True if it applies from now on.

    It applies if the tree is trusted, or contained nothing that needs trust. In the second case, approving the rule also trusts
    the tree. In any other tree the rule waits, like the other settings, until the user trusts the tree.
    """
    before = enabled(cwd)
    is_known = not before or trusted(home, cwd)
    where = os.path.realpath(cwd)
    with guard(Path(home) / _GUARD), RootDir.open(where, create=False, shared=True) as tree:
        rel = LOCAL_PATH.as_posix()
        old = tree.read_bytes(rel, MOST_BYTES + 1)
        new = with_rule(old, rule, os.path.join(where, rel))
        if new is not None:
            tree.replace(rel, new)
    if is_known and _only_added(before, enabled(cwd), rule):
        trust(home, cwd)
        return True
    return trusted(home, cwd)


def set_user_setting(home: str | os.PathLike[str], key: str, value: object, *, expected: object) -> None:
    """Set a key such as `lamina.notes.firstAt` in the user's settings file; None removes it.

    Raises ChangedSetting if the file has another value than `expected`, where None means that the key is not in the file.
    """
    path = Path(home) / FILE_NAME
    with guard(Path(home) / _USER_GUARD):
        before = read_whole(path, MOST_BYTES)
        old = before.data if before is not None else b""
        data = _object(old, str(path))
        *groups, last = key.split(".")
        inner = data
        for name in groups:
            inner = inner.setdefault(name, {})
            if not isinstance(inner, dict):
                raise SettingError(key, str(path), Text("{name} is not an object", name=name), "fix the file, then try again")
        if inner.get(last) != expected:
            raise ChangedSetting(key, str(path), inner.get(last))
        if value is None:
            inner.pop(last, None)
        else:
            inner[last] = value
        target = os.path.realpath(path) if os.path.islink(path) else None
        roots = (path.parent,) if target is None else (os.path.dirname(target),)
        replace(path, _text(data, old, str(path)), expect=before and before.stamp, roots=roots)


def user_document(home: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the content of the user's settings file. Raises SettingError if it cannot be changed as it is."""
    path = Path(home) / FILE_NAME
    before = read_whole(path, MOST_BYTES)
    return _object(before.data if before is not None else None, str(path))


def value_in(document: object, key: str) -> object:
    """Return what a settings file has under a key; None if it has nothing there."""
    for name in key.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document


class ChangedSetting(SettingError):
    """The file has another value than the one that was shown."""

    def __init__(self, key: str, path: str, found: object) -> None:
        super().__init__(key, path, "was changed in the meantime", "look at it again before you change it")
        self.found = found


def _only_added(before: dict[str, Any], after: dict[str, Any], rule: str) -> bool:
    """Return whether the tree enables exactly what it did before, plus this rule. No other change may become trusted with it."""
    old, new = before.pop("permissions", Permissions()), after.pop("permissions", Permissions())
    same = before == after and set(old.ask) == set(new.ask) and set(old.deny) == set(new.deny)
    return same and {*old.allow, rule} == set(new.allow)


def with_rule(old: bytes | None, rule: str, path: str) -> bytes | None:
    """Return the file's content with the rule appended, or None if the rule is there already."""
    data = _object(old, path)
    permissions = data.setdefault("permissions", {})
    rules = permissions.setdefault("allow", []) if isinstance(permissions, dict) else None
    if not isinstance(rules, list):
        raise SettingError("permissions.allow", path, "is not a list of rules", "fix the file, then try again")
    if rule in rules:
        return None
    rules.append(rule)
    return _text(data, old or b"", path)


def _object(old: bytes | None, path: str) -> dict[str, Any]:
    if old is not None and len(old) > MOST_BYTES:
        raise SettingError(
            "permissions", path, Text("is in a file of more than {limit:,} bytes", limit=MOST_BYTES), "make it smaller"
        )
    try:
        text = (old or b"").decode("utf-8-sig")
        data: Any = json.loads(text, object_pairs_hook=_once) if text.strip() else {}
    except (ValueError, RecursionError) as fault:
        raise SettingError(
            "permissions", path, Text("the file is not valid JSON ({reason})", reason=fault), "fix it, then try again"
        ) from None
    if not isinstance(data, dict):
        raise SettingError("permissions", path, "the file does not contain a JSON object", "fix it, then try again")
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse duplicate keys: writing the object back would lose the first of them."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("an object has the same key twice")
    return mapping


def _text(data: dict[str, Any], old: bytes, path: str) -> bytes:
    indent = re.search(rb"\n([ \t]+)\S", old)
    step = indent[1].decode() if indent else "  "
    try:
        text = json.dumps(data, indent=step, ensure_ascii=False, allow_nan=False) + "\n"
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which can only be written as an escape
        return (json.dumps(data, indent=step) + "\n").encode()
    except ValueError as fault:
        raise SettingError(
            "permissions", path, Text("the file contains a number that cannot be written back ({reason})", reason=fault)
        ) from None
