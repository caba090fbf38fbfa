"""Names that deserve a question: files through which a change becomes a command, and files that hold keys.

Owns the lists. Invariant: a file is judged by its name, whether it exists or not, in every spelling that some file system takes
for the same name; the spelled path and the real one are both asked about.
"""

from __future__ import annotations

from pathlib import PurePath

from ..disk.names import fold

# Git runs hooks and filters from its directory, editors run tasks, Lamina and Claude Code run hooks; keys are keys.
_GUARDED_DIRECTORIES = frozenset({".git", "git~1", ".claude", ".lamina", ".vscode", ".idea", ".husky"})
KEY_DIRECTORIES = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store"})
# Read by a shell or another program when it starts.
_SHELL = """.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zprofile .zshenv .zlogin .zlogout .kshrc
    .cshrc .tcshrc .login .inputrc .envrc config.fish"""
_PROGRAMS = """.gitconfig .gitmodules .npmrc .yarnrc .yarnrc.yml .pypirc .pythonrc .vimrc .exrc .emacs .screenrc .tmux.conf
    .ripgreprc .mcp.json .claude.json authorized_keys crontab"""
_GUARDED_NAMES = frozenset((*_SHELL.split(), *_PROGRAMS.split()))
_KEY_NAMES = frozenset({".netrc", "_netrc", ".pgpass", ".git-credentials", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"})
# The kernel's own files: the environment of a process, with its keys, is one of them.
_KERNEL = frozenset({"proc", "sys", "dev"})


def why_not_written(path: PurePath) -> str | None:
    """What is special about writing there, as the end of a sentence; None for ordinary files."""
    names = [_plain(part) for part in path.parts]
    if not all(part.isprintable() for part in path.parts):
        return "its name holds invisible characters"
    if special := next((name for name in names if name in _GUARDED_DIRECTORIES), None):
        return f"what lies in {special} can make programs run"
    if names[-1:] and names[-1] in _GUARDED_NAMES:
        return "programs read this file when they start"
    if names[-1:] and (names[-1] == ".env" or names[-1].startswith(".env.")):
        return "it holds settings and keys"
    return why_not_read(path)


def why_not_read(path: PurePath) -> str | None:
    names = [_plain(part) for part in path.parts]
    if any(name in KEY_DIRECTORIES for name in names) or (names[-1:] and names[-1] in _KEY_NAMES):
        return "it holds keys"
    if path.anchor == "/" and names[1:2] and names[1] in _KERNEL:
        return "it is a file of the kernel"
    return None


def _plain(name: str) -> str:
    """Without case, Unicode form, and the dots, spaces and streams that Windows drops."""
    return fold(name.partition(":")[0] if name not in ("/", "\\") and len(name) > 2 else name).rstrip(" .") or name
