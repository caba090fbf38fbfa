"""Write docs/a-week.md: a week of use without an API key, told as commands and what they print.

    python scripts/generate_week.py            run the commands and write the page
    python scripts/generate_week.py --check    fail if the page is out of date

Every command runs in a new home and project. What differs from run to run is replaced by a fixed text: dates, times,
ids and the paths of the home and project. The commands run within seconds of each other, so all of them show the same date.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from generated_page import ROOT, write_or_check

INTRO = """\
# A week without an API key

Lamina needs no model to remember, find, correct and delete. This page shows a week of it in one project: each block holds the commands
and exactly what they print. All outputs come from one run of `python scripts/generate_week.py`, so they show the same date. Ids, times
and the path of the project are replaced by fixed ones.
"""

DAYS = (
    (
        "Monday: tell it something",
        "Start with `Remember:`. The stand-in that answers without a key saves the text and says under which name. "
        "`memory save` takes\nthe name, type and text from you.",
        (
            'lamina -p "Remember: integration tests use a real database, because mocks hid a broken migration"',
            'lamina -p "Remember: 部署只在星期二进行"',
            "lamina memory save testing-style --type feedback --description 'How tests are written' 'Mocks only at the borders.'",
            "lamina memory list",
        ),
    ),
    (
        "Tuesday: ask for it",
        "A new session knows what an earlier one was told.",
        ('lamina -p "What do integration tests use?"', 'lamina memory search "broken migration" --explain'),
    ),
    (
        "Wednesday: find out where it came from",
        "`lamina search` finds memories and the messages they came from.",
        ('lamina search "real database" -k 2',),
    ),
    (
        "Thursday: correct it",
        "`edit` opens your editor; here `sed` is the editor. The log keeps both versions.",
        ("EDITOR='sed -i s/Mocks/Fakes/' lamina memory edit testing-style", "lamina memory diff testing-style"),
    ),
    (
        "Friday: remove it, and bring it back",
        "`remove` moves a memory to the trash.",
        ("lamina memory remove testing-style", "lamina memory log --removed", "lamina memory restore testing-style"),
    ),
    (
        "Saturday: see what is set",
        "`config` lists only what differs from the defaults. `--all` lists the rest.",
        ("LAMINA_RECALL=0 lamina config | head -n 2",),
    ),
    (
        "Sunday: delete a subject for good",
        "`forget` removes a subject from memories, their history and the recorded sessions. Nothing brings it back.",
        ("lamina forget 星期二 --yes --anywhere | tail -n 1", "lamina memory list"),
    ),
)
DATE = re.compile(r"\b20\d\d-\d\d-\d\d(?:([ T])\d\d:\d\d)?")
UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
ID = re.compile(r"(?<![-\w])(?=[0-9a-f]*[0-9])[0-9a-f]{8,16}(?![-\w])")
PATIENCE = 120


def run(line: str, home: Path, project: Path) -> str:
    """Return what a line prints in a shell, both streams, as the page shows it."""
    environ = {"PATH": f"{home}/bin:{os.environ['PATH']}", "HOME": str(home), "PYTHONUTF8": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=project,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{line} failed: {done.stdout.decode()}")
    return settle(done.stdout.decode(), home, project)


def settle(text: str, home: Path, project: Path) -> str:
    """Replace what differs from run to run."""
    text = text.replace(str(project), "~/shop").replace(re.sub(r"[^A-Za-z0-9]", "-", str(project)), "-home-me-shop")
    text = text.replace(str(home), "~")
    text = DATE.sub(lambda found: "2026-11-16" + (f"{found[1]}09:00" if found[1] else ""), text)
    text = UUID.sub("1a2b3c4d-0000-4000-8000-000000000000", text)
    return ID.sub(lambda found: ("1a2b3c4d" * 2)[: len(found[0])], text).rstrip()


def page() -> str:
    with tempfile.TemporaryDirectory() as directory:
        home, project = Path(directory, "home"), Path(directory, "home", "shop")
        project.mkdir(parents=True)
        command = home / "bin" / "lamina"
        command.parent.mkdir()
        code = "from lamina.cli.main import main; main()"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{code}" "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        parts = [INTRO]
        for title, words, lines in DAYS:
            shown = "\n".join(f"$ {line}\n{run(line, home, project)}".rstrip() for line in lines)
            parts.append(f"\n## {title}\n\n{words}\n\n```\n{shown}\n```\n")
        return "".join(parts)


if __name__ == "__main__":
    sys.exit(write_or_check("docs/a-week.md", page(), "scripts/generate_week.py", sys.argv[1:]))
