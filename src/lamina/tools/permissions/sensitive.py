"""Sensitive names: files through which a change can run a command, and files that hold keys.

Invariant: a file is judged by its name, whether it exists or not, in every spelling that some file system treats as the same
name. Both the spelled path and the resolved one are checked. Only names are looked up on the disk.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePath

from ...disk.paths.file_names import fold
from ...disk.regular_file import list_entries
from ...language.text import Text

# Version control runs hooks and filters from its directory. Editors and other agents run tasks and servers. Build tools load
# plugins. A home's .config and .local hold programs that start with a session.
_VERSIONS = ".git git~1 .hg .jj .sl .bzr .githooks .husky"
_EDITORS = """.claude .lamina .vscode .idea .zed .fleet .theia .devcontainer .cursor .windsurf .gemini .codex .kiro .roo .continue
    .vim .ipython .jupyter"""
_BUILDS = ".cargo .yarn .mvn .gradle .bundle .direnv .config .local .zsh .oh-my-zsh"
_GUARDED_DIRECTORIES = frozenset((*_VERSIONS.split(), *_EDITORS.split(), *_BUILDS.split()))
KEY_DIRECTORIES = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store"})
# Read by a shell or another program at startup.
_SHELL = """.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bash_functions .profile .zshrc .zprofile .zshenv .zlogin
    .zlogout .kshrc .cshrc .tcshrc .login .inputrc .envrc config.fish .xinitrc .xprofile .xsession .xsessionrc"""
_PROGRAMS = """.gitconfig .gitmodules .hgrc .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pypirc .pythonrc .pdbrc .irbrc .rprofile
    .condarc .terraformrc .mise.toml .vimrc .nvimrc .nvim.lua .exrc .emacs .dir-locals.el .screenrc .tmux.conf .gdbinit .lldbinit
    .psqlrc .sqliterc .curlrc .wgetrc .ripgreprc .mcp.json .claude.json .devcontainer.json .pre-commit-config.yaml lefthook.yml
    .lefthook.yml authorized_keys crontab"""
_GUARDED_NAMES = frozenset((*_SHELL.split(), *_PROGRAMS.split()))
# Templates, with no secrets filled in.
_EMPTY_FORMS = frozenset({".env.example", ".env.sample", ".env.template", ".env.dist"})
_KEY_NAMES = frozenset({".netrc", "_netrc", ".pgpass", ".git-credentials", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"})
# These names identify a home directory.
_HOME_KEYS = frozenset({".ssh", ".gnupg", ".aws"})
# More home directories than any shared machine has.
_MOST_HOMES = 500
# Kernel files: one of them is the environment of a process, with its keys.
_KERNEL = frozenset({"proc", "sys", "dev"})


def why_not_written(path: PurePath) -> str | None:
    """Return why writing there needs confirmation, as the end of a sentence; None for ordinary files."""
    names = [_plain(part) for part in path.parts]
    if not all(part.isprintable() for part in path.parts):
        return "its name contains invisible characters"
    if special := next((name for name in names if name in _GUARDED_DIRECTORIES), None):
        return Text("files in {why} can make programs run", why=special)
    if names[-1:] and names[-1] in _GUARDED_NAMES:
        return "programs read this file when they start"
    if names[-1:] and (names[-1] == ".env" or names[-1].startswith(".env.")) and names[-1] not in _EMPTY_FORMS:
        return "it contains settings and keys"
    return why_not_read(path)


def why_not_read(path: PurePath) -> str | None:
    names = [_plain(part) for part in path.parts]
    if any(name in KEY_DIRECTORIES for name in names) or (names[-1:] and names[-1] in _KEY_NAMES):
        return "it contains keys"
    if path.anchor == "/" and names[1:2] and names[1] in _KERNEL:
        return "it is a kernel file"
    return None


def holds_keys(directory: Path, keys: frozenset[str] = KEY_DIRECTORIES | _KEY_NAMES) -> str | None:
    """Return a sentence on why searching the whole directory goes too far: keys lie directly in it."""
    key = next((name for name in sorted(keys) if os.path.lexists(directory / name)), None)
    form = Text("{directory} contains {key}, which a search of the whole directory would read; name a directory inside it.")
    return Text(form, directory=directory, key=key) if key else None


def holds_a_home(directory: Path) -> str | None:
    """Do the same for a directory of home directories, such as /home: a search program would read the keys without asking."""
    names = [entry.name for entry in list_entries(directory, _MOST_HOMES) if entry.is_dir(follow_symlinks=False)]
    return next(filter(None, (holds_keys(directory / name, _HOME_KEYS) for name in names)), None)


def _plain(name: str) -> str:
    """Normalise case and Unicode form, and drop the dots, spaces and streams that Windows drops."""
    return fold(name.partition(":")[0] if name not in ("/", "\\") and len(name) > 2 else name).rstrip(" .") or name
