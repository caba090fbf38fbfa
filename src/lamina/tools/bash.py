"""Bash: run one shell command.

It runs `bash -c` (`sh -c` without bash) in the working directory and in a separate process group. See `disk.child` for
how a command is ended and `capture` for how its output is kept. Each call is a new shell: a `cd` or a variable lasts as long
as the call. Background processes keep running; the call does not wait for them and shows none of their later output.

On Windows a `bash` on the PATH is used, else `cmd /c`.

Facts: exit_code, why (exit, timeout, abort, full), bytes and lines printed. If `cut` bytes are not shown, output_file
contains the whole text, and the receiver of the ToolOutput owns that file.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..core.blocks import ToolResult, Wire
from ..core.prompt_files import prompt_text
from ..core.reach import RUN_BY_MODEL
from ..disk.child import ChildEnd, ChildProgram, child_environ, run_child
from .capture import FILE_BYTES, Capture, Captured
from .tool import Builtin, Context, ToolOutput, failure

# The limits that users of other agents know, in milliseconds.
DEFAULT_TIMEOUT = 120_000
MAX_TIMEOUT = 600_000
# On Linux one argument can have 128 KiB including its end; a longer command belongs in a file.
MAX_COMMAND = (128 << 10) - 1
# A reason contains a path, and a path may have thousands of characters.
_LONGEST_REASON = 300
EMPTY = "(Bash completed with no output)"
# How the result of a command that ran and failed begins. Other errors, such as a denied permission, come before it runs.
_FAILED = ("Exit code ", "Ended by signal ", "Timed out after ", "Stopped ")

SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "minLength": 1, "maxLength": MAX_COMMAND, "description": "The command to run"},
        "timeout": {
            "type": "number",
            "minimum": 1,
            "description": f"Timeout in milliseconds (default {DEFAULT_TIMEOUT}, at most {MAX_TIMEOUT})",
        },
        "description": {"type": "string", "description": "Explains the command to the user in five to ten words"},
    },
    "required": ["command"],
}


def tool() -> Builtin:
    return Builtin(name="Bash", description=prompt_text(__file__, "bash"), schema=SCHEMA, read_only=False, act=_act)


def has_run(result: ToolResult) -> bool:
    """Return whether the command of this result was started."""
    return not result.is_error or result.text.startswith(_FAILED)


def _act(arguments: Wire, context: Context) -> ToolOutput:
    command = arguments["command"]
    if "\0" in command:
        return failure("command contains a NUL character, which is not allowed in a command line. Remove it.")
    if len(os.fsencode(command)) > MAX_COMMAND:
        return failure(f"command is longer than {MAX_COMMAND:,} bytes. Write it to a file and run that.")
    if not os.path.isdir(context.cwd):
        return failure(f"The working directory {context.cwd} no longer exists. Create it again to run commands.")
    timeout = min(arguments.get("timeout", DEFAULT_TIMEOUT), MAX_TIMEOUT)
    environ = child_environ(context.environ, context.hand_over) | {RUN_BY_MODEL: "1"}
    capture = Capture(context.scratch or Path(tempfile.gettempdir()), context.on_output)
    try:
        end = run_child(
            ChildProgram([*_shell(environ), command]),
            cwd=context.cwd,
            environ=environ,
            timeout=timeout / 1_000,
            take=capture.take,
            abort=context.abort.is_set,
            leave=True,
        )
        return _render(end, capture.close(), timeout)
    except OSError as error:
        return failure(f"The shell could not be started: {error.strerror or error}.")
    finally:
        capture.drop()


def _shell(environ: Mapping[str, str]) -> list[str]:
    bash = "/bin/bash" if os.path.exists("/bin/bash") else shutil.which("bash", path=environ.get("PATH"))
    if bash is not None:
        return [bash, "-c"]
    return [environ.get("COMSPEC", "cmd.exe"), "/d", "/s", "/c"] if os.name == "nt" else ["/bin/sh", "-c"]


def _render(end: ChildEnd, captured: Captured, timeout: float) -> ToolOutput:
    """Render the result for the model."""
    facts: Wire = {"exit_code": end.code, "why": end.why, "bytes": captured.size, "lines": captured.lines}
    if captured.cut:
        facts["cut"] = captured.cut
    if captured.file is not None:
        facts["output_file"] = str(captured.file)
    lines = list[str]()
    match end.why:
        case "exit" if end.code < 0:
            lines.append(f"Ended by signal {-end.code} ({_signal_name(-end.code)})")
        case "exit" if end.code:
            lines.append(f"Exit code {end.code}")
        case "timeout":
            lines.append(f"Timed out after {timeout:,.0f} ms. Set a longer timeout (at most {MAX_TIMEOUT:,}) if needed.")
        case "abort":
            lines.append("Stopped by the user.")
        case "exit":
            pass
        case "full":
            lines.append(f"Stopped after {FILE_BYTES >> 20} MB of output. Redirect the output to a file, or print less.")
    failed = bool(lines)
    if text := captured.text.rstrip():
        lines.append(text)
    if end.held:
        lines.append("[A background process still writes to this output. Redirect it to a file to see the rest.]")
    if captured.lost:
        lines.append(f"[The omitted output could not be saved: {captured.lost[:_LONGEST_REASON]}]")
    return ToolOutput("\n".join(lines) or EMPTY, is_error=failed, facts=facts)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
