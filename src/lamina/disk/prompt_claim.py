"""Decides who answers the first prompt of a Claude Code process: Lamina's server, or the command of the same hook. Never both.

Some versions of Claude Code do not wait for the server and skip its hooks until it is connected. So a command stands beside it, which goes
ahead only if the server has not been asked. The claim is a symbolic link in the directory for temporary files, named after the process
id of Claude Code: a link is created whole or not at all. It points to nothing. Its text names the prompt that the command answers, or is
SERVER. A crash leaves a link, which costs a later process of the same id its command.

Where links cannot be made, the server answers, and the command does not.
"""

from __future__ import annotations

import os
import zlib
from contextlib import suppress

from .crash_points import point

SERVER = "server"
# The variable in which the hook entry tells its command the process id of Claude Code.
CLIENT = "LAMINA_HOOK_CLIENT"
# For the shell: the same path as `claim_path`, if `$PPID` is the process of Claude Code.
SHELL_PATH = '"${TMPDIR:-/tmp}/lamina-claude-$PPID"'


def claim_path(client: int) -> str:
    return f"{os.environ.get('TMPDIR') or '/tmp'}/lamina-claude-{client}"


def claim_for_server(client: int, prompt: str) -> bool:
    """Return whether the server answers this prompt: unless the command does."""
    path = claim_path(client)
    try:
        point("claim.server")
        os.symlink(SERVER, path)
    except OSError:
        if not _is_for(path, prompt):
            return True
        release(client)  # later prompts are the server's, also one with the same words
        with suppress(OSError):
            point("claim.again")
            os.symlink(SERVER, path)
        return False
    return True


def claim_for_command(client: int, prompt: str) -> bool:
    """Return whether the command answers this prompt: if nobody has answered a prompt yet."""
    try:
        point("claim.command")
        os.symlink(_digest(prompt), claim_path(client))
    except OSError:
        return False
    return True


def release(client: int) -> None:
    """Remove the claim, when the server ends or takes over."""
    with suppress(OSError):
        point("claim.release")
        os.unlink(claim_path(client))


def _is_for(path: str, prompt: str) -> bool:
    try:
        return os.readlink(path) == _digest(prompt)
    except OSError:
        return False


def _digest(prompt: str) -> str:
    return f"prompt-{zlib.crc32(prompt.encode('utf-8', 'replace')):08x}"
