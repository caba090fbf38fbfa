"""The top-level command: help is cheap, misuse gives one line and exit code 2, and users never see a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

import lamina as package
from lamina.cli.main import lamina_command as command

from .running import LAMINA, PATIENCE, failed, here, lamina, misused, on_a_terminal, one_line

# Each of these costs more than the rest of `--help` together.
HEAVY = ("rich", "prompt_toolkit", "msgspec", "yaml", "asyncio", "anthropic", "openai", "sqlite3")


@pytest.mark.parametrize(
    "arguments", [("--help",), ("-h",), ("chat", "--help"), ("sessions", "--help"), ("sessions", "list", "-h")]
)
def test_help_explains_and_ends_well(arguments: tuple[str, ...]) -> None:
    done = here(*arguments)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("Usage: lamina ")


def test_help_names_every_command_with_its_own_first_line() -> None:
    top = here("--help").stdout
    for name in ("chat", "sessions", "config"):
        first = here(name, "--help").stdout.splitlines()[2].strip()
        assert first in " ".join(top.split()), name


def test_help_loads_nothing_heavy() -> None:
    code = "import sys; from lamina.cli.main import main\ntry: main(['--help'])\nfinally: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    loaded = {name.split(".")[0] for name in done.stderr.split()}
    assert "click" in loaded
    assert loaded.isdisjoint(HEAVY), loaded & set(HEAVY)


def test_the_version_is_the_packages() -> None:
    assert package.__version__ in lamina("--version").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such-command",),
        ("--no-such-option",),
        ("-p",),
        ("-p", "x", "--output-format", "yaml"),
        ("sessions", "no-such-command"),
        ("sessions", "show"),
        ("sessions", "list", "-n", "0"),
        ("sessions", "list", "--cwd", "/no/such/directory"),
        ("sessions", "list", "--source", "elsewhere"),
        ("-p", "x", "surplus"),
        ("-p", "x", "--cwd", "/no/such/directory"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(arguments: tuple[str, ...]) -> None:
    assert misused(done := here(*arguments)), done


def test_a_reader_that_has_seen_enough_is_left_in_peace() -> None:
    for arguments in (("--help",), ("-p", "help"), ("sessions", "list", "--all", "--json")):
        process = subprocess.Popen(
            [*LAMINA, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read().decode()
        process.stderr.close()
        code = process.wait(PATIENCE)
        assert code == 0 or arguments == ("--help",)
        assert "Traceback" not in told
        assert "BrokenPipe" not in told
        assert "Exception ignored" not in told


@pytest.mark.skipif(os.name == "nt", reason="a directory in use cannot be removed there")
def test_a_directory_that_was_removed_is_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {gone} && rmdir {gone} && exec \"$0\" -c 'from lamina.cli.main import main; main()' -p hello"
    done = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode in (1, 2)
    assert one_line(done.stderr), done.stderr


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
@pytest.mark.parametrize(("redirect", "arguments"), [("<&-", ""), (">&-", "-p hello"), ("<&- >&- 2>&-", "-p hello")])
def test_streams_that_are_closed_are_no_reason_for_a_traceback(redirect: str, arguments: str) -> None:
    script = f"\"$0\" -c 'from lamina.cli.main import main; main()' {arguments} {redirect}"
    done = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert done.returncode == (0 if "hello" in arguments else 2), done


@pytest.mark.parametrize(("encoding", "form"), [("ascii", "text"), ("latin-1", "json"), ("utf-8", "json")])
def test_a_terminal_that_knows_few_characters_gets_an_answer_too(encoding: str, form: str) -> None:
    here("-p", "记住：数据库是 Postgres 🐘")
    done = subprocess.run(
        [*LAMINA, "--continue", "-p", "数据库是什么？", "--output-format", form],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"Postgres" in done.stdout
    if form == "json":
        import json

        assert "数据库是 Postgres 🐘" in json.loads(done.stdout.decode(encoding))["result"]


def test_without_colour_there_is_none(tmp_path: Path) -> None:
    here("-p", "hello", cwd=tmp_path)
    for arguments in (("sessions", "list"), ("sessions", "no-such-command")):
        written, _ = on_a_terminal(*arguments, cwd=tmp_path, NO_COLOR="1")
        assert written
        assert not [code for code in (b"\x1b[3", b"\x1b[9", b"\x1b[4") if code in written], written


def test_a_failure_is_one_line_and_exit_code_1() -> None:
    assert failed(here("--continue", "-p", "hello"))


def test_an_unknown_name_is_one_line_and_exit_code_2() -> None:
    assert misused(here("sessions", "show", "no-such-session"))
    assert misused(here("memory", "show", "no-such-memory"))
    assert misused(lamina("--resume", "no-such-session", "-p", "hello"))
    assert misused(lamina("no-such-command"))


@pytest.mark.parametrize("group", ["memory", "sessions"])
def test_a_group_alone_shows_what_is_in_it(group: str) -> None:
    done = here(group)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == here(group, "--help").stdout


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("memroy", "list"), "Did you mean 'memory'?"),
        (("memory", "lst"), "Did you mean 'list'?"),
        (("zzz",), "Run `lamina --help` to list the commands."),
        (("sessions", "zzz"), "Run `lamina sessions --help` to list the commands."),
        (("replay",), "Run `lamina replay --help` for usage."),
    ],
)
def test_a_word_that_is_missing_or_wrong_is_met_with_what_to_do(words: tuple[str, ...], hint: str) -> None:
    done = here(*words)
    assert misused(done)
    assert done.stderr.endswith(f"{hint}\n")


def test_an_interrupt_while_it_is_loaded_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt", "utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    command = [sys.executable, "-c", "from lamina.cli import run; run()"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=False, env={**os.environ, "PYTHONPATH": path}
    )
    assert (done.returncode, done.stderr) == (130, "lamina: Stopped.\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
@pytest.mark.parametrize("arguments", ["--help", "config", "-p hello", "-p hello --output-format json"])
def test_an_output_that_takes_no_more_is_named_and_a_failure(arguments: str) -> None:
    script = f"\"$0\" -c 'from lamina.cli.main import main; main()' {arguments} > /dev/full"
    done = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert "lamina: Standard output: no space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_every_option_of_every_command_is_explained() -> None:
    silent = []
    groups: list[tuple[str, click.Context, click.Group]] = [("lamina", click.Context(command), command)]
    while groups:
        path, context, group = groups.pop()
        for name in group.list_commands(context):
            found = group.get_command(context, name)
            assert found is not None
            if isinstance(found, click.Group):
                groups.append((f"{path} {name}", click.Context(found, parent=context), found))
            options = [each for each in found.params if isinstance(each, click.Option)]
            silent += [f"{path} {name} {each.opts[0]}" for each in options if not each.help]
    assert silent == []


INTERRUPTED = """
import sys, time
from lamina.cli.interrupts import protect_imports
protect_imports()
try:
    import interrupted
    time.sleep(120)
except KeyboardInterrupt:
    print(interrupted.whole)
"""


def test_an_interrupt_during_an_import_waits_until_the_module_is_whole(tmp_path: Path) -> None:
    """An exception inside Python's import machinery may leave its lock held, and other threads would wait for it forever."""
    (tmp_path / "interrupted.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhole = True\n")
    program = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.spec("Z12")
@pytest.mark.skipif(sys.platform != "linux", reason="needs file names that are no text")
def test_a_directory_whose_name_is_no_text_is_no_traceback(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    assert here("memory", "list", "--json", cwd=odd).stdout == "[]\n"
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = lamina(b"-p", "Remember: caf\xe9 \u90e8\u7f72 on Thursdays".encode(), cwd=odd, stdin=b"", **ascii_only)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    done = lamina(b"forget", "caf\xe9 \u90e8\u7f72".encode(), b"--yes", cwd=odd, stdin=b"", **ascii_only)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("command", [(), ("memory",), ("sessions",), ("team",)])
def test_help_fits_a_narrow_terminal(command: tuple[str, ...]) -> None:
    written, code = on_a_terminal(*command, "--help", COLUMNS="40")
    assert code == 0
    lines = [line for line in written.decode().replace("\r", "").split("\n") if "lamina " not in line]  # examples stay whole
    assert len(lines) > 10
    assert max(map(len, lines)) < 40


def test_p_without_a_prompt_reads_standard_input(tmp_path: Path) -> None:
    for arguments in (("-p",), ("-p", "-"), ()):
        assert "not a language model" in lamina(*arguments, cwd=tmp_path, stdin=b"help").stdout
