"""Write docs/chat-screens.md: the chat in fifteen screens of 80 × 24, in English and in Chinese.

    python scripts/generate_screens.py            run the chat in tmux and write the page
    python scripts/generate_screens.py --check    fail if the page is out of date

Needs tmux. The screens are those of the program itself on a real terminal, in a new home. Four of them talk to a scripted model on this
machine. Ids, seconds, prices and the size of a summary are replaced by fixed ones, since they differ from run to run.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from generated_page import ROOT, write_or_check

sys.path.insert(0, str(ROOT / "src"))

from lamina.testing import MessagesServer

INTRO = """\
# The chat in fifteen screens

Each block is a whole terminal of 80 × 24 as `lamina` draws it, captured from a real run by `python scripts/generate_screens.py`. Colours
are not shown. Ids, seconds, prices, the size of a summary and the path of the project are replaced by fixed ones.
"""
MAIN = "from lamina.cli.main import main; main()"
MODEL = "anthropic:claude-sonnet-5-5"
ANSWER = """\
## Where the tests spend their time

The **slowest** file is `tests/test_orders.py`:

| file | tests | seconds |
|---|---:|---:|
| tests/test_orders.py | 42 | 12.8 |
| tests/test_users.py | 17 | 1.9 |

1. Create the schema once per run.
2. Run it in parallel:

```sh
pytest -n 4 tests/test_orders.py
```
"""
CHINESE_ANSWER = """\
## 测试时间

最慢的文件是 `tests/test_orders.py`，因为每个测试都重新创建数据库：

| 文件 | 测试 | 秒 |
|---|---:|---:|
| tests/test_orders.py | 42 | 12.8 |
| tests/test_users.py | 17 | 1.9 |

- 每次运行只创建一次数据库。
- **并行**运行测试。
"""
# The longest a screen may take to show what is expected.
PATIENCE = 60.0
FIXED = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "1a2b3c4d-0000-4000-8000-000000000000"),
    (re.compile(r"\b[0-9a-f]{8}\b"), "1a2b3c4d"),
    (re.compile(r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]"), "⠋"),
    (re.compile(r"· \d+ s ·"), "· 2 s ·"),
    (re.compile(r"in \d\.\d\b"), "in 0.4"),
    (re.compile(r"\$0\.(?!0000)\d{4}"), "$0.0123"),
    (re.compile(r"/tmp/\w+/\w+/shop"), "/home/you/shop"),
    # A summary names the transcript, whose random id counts as a token more or less.
    (re.compile(r"(?<=会变成约 )\d,\d{3}"), "9,540"),
)


class Chat:
    """A chat in a terminal of tmux."""

    def __init__(self, home: Path, *arguments: str, **environ: str) -> None:
        self._socket = f"lamina-screens-{os.getpid()}-{home.name}"  # a server that ends must not be met again
        project = home / "shop"
        project.mkdir(exist_ok=True)
        given = {"HOME": str(home), "PYTHONPATH": str(ROOT / "src"), "LC_ALL": "C.UTF-8", "LAMINA_EXTRACTION": "1", **environ}
        words = [
            "env",
            "-u",
            "LAMINA_HOME",
            *(f"{name}={value}" for name, value in given.items()),
            sys.executable,
            "-c",
            MAIN,
            *arguments,
        ]
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", str(project), shlex.join(words))

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(["tmux", "-u", "-L", self._socket, *words], check=True, capture_output=True, timeout=PATIENCE)
        return done.stdout.decode()

    def type(self, text: str) -> None:
        """Wait for an empty prompt, so that nothing is typed into the output of the last command, and type a line."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            prompts = [line.strip() for line in self._tmux("capture-pane", "-p").split("\n") if line.lstrip().startswith(">")]
            if prompts[-1:] == [">"]:
                break
            time.sleep(0.1)
        self._tmux("send-keys", "-l", text)
        self._tmux("send-keys", "Enter")

    def screen(self, *expected: str) -> str:
        """Wait until the screen shows all of these and return it."""
        until, shown = time.monotonic() + PATIENCE, ""
        while time.monotonic() < until:
            shown = self._tmux("capture-pane", "-p")
            if all(words in shown for words in expected):
                return settle(shown)
            time.sleep(0.1)
        raise SystemExit(f"{expected} did not appear in:\n{shown}")

    def close(self) -> None:
        self._tmux("kill-server")


def settle(text: str) -> str:
    for pattern, fixed in FIXED:
        text = pattern.sub(fixed, text)
    return "\n".join(line.rstrip() for line in text.rstrip("\n").split("\n"))


@contextmanager
def chat(home: Path, *arguments: str, **environ: str) -> Iterator[Chat]:
    opened = Chat(home, *arguments, **environ)
    try:
        yield opened
    finally:
        opened.close()


def offline(home: Path) -> Iterator[tuple[str, str]]:
    with chat(home) as terminal:
        yield "The first start", terminal.screen("background: none")
        terminal.type("I'm a data engineer and new to Rust.")
        yield "A fact is remembered while you read the answer", terminal.screen("Remembered: ", "background: none")
        terminal.type("Remember: integration tests use a real database")
        terminal.screen("I will remember that", "background: none")
        terminal.type("What do integration tests use?")
        yield "A question is answered from memory", terminal.screen("You told me: ", "background: none", "\n\n>")
        terminal.type("/clear")
        terminal.screen("Started session", "background: none")
        terminal.type("run for n in 1 2 3; do echo step $n; sleep 1; done; until [ -e done ]; do sleep 0.1; done")
        yield "A permission question", terminal.screen("n no, or type what to do instead", "\n  >")
        time.sleep(1)  # a key pressed before the question reads is lost
        terminal.type("y")
        yield "A running command, with the status line below it", terminal.screen("step 3", "Ctrl-C stops")
        (home / "shop" / "done").touch()


def with_model(home: Path, server: MessagesServer) -> Iterator[tuple[str, str]]:
    go = threading.Event()
    environ = {"ANTHROPIC_API_KEY": "any", "ANTHROPIC_BASE_URL": server.url, "LAMINA_EXTRACTION": "0"}
    with chat(home, "--model", MODEL, **environ) as terminal:
        terminal.screen("background: none")
        server.fail(529, kind="overloaded_error", message="Overloaded")
        server.reply(text=ANSWER, delay=go)
        terminal.type("Why do the tests take so long?")
        yield "A call that is sent again", terminal.screen("Retry 1 of", "Ctrl-C stops")
        go.set()
        yield "An answer in Markdown", terminal.screen("pytest -n 4 tests/test_orders.py", "background: none", "\n\n>")
        terminal.type("/clear")
        terminal.screen("Started session", "background: none")
        server.reply(text=CHINESE_ANSWER)
        terminal.type("为什么测试这么慢？")
        yield "An answer in Chinese", terminal.screen("并行运行测试", "后台：无", "\n\n>")
        server.reply(text="我先运行测试。", tool_use=("Bash", {"command": "make test"}))
        terminal.type("请运行测试")
        yield "A permission question in Chinese", terminal.screen("y 同意", "\n  >")


def in_chinese(home: Path) -> Iterator[tuple[str, str]]:
    with chat(home, LC_ALL="zh_CN.UTF-8", PYTHONUTF8="1") as terminal:
        yield "The first start in Chinese", terminal.screen("后台：无")
        terminal.type("记住：部署只在星期二进行")
        terminal.screen("后台：无", "\n\n>")
        terminal.type("部署在星期几进行？")
        yield "A first chat in Chinese", terminal.screen("你告诉过我：", "后台：无", "\n\n>")
        terminal.type("/clear")
        terminal.screen("已开始会话", "后台：无")
        terminal.type("/help")
        yield "The commands in Chinese", terminal.screen("Shift-Tab", "后台：无", "\n>")
        terminal.type("/clear")
        terminal.screen("已开始会话", "后台：无")
        terminal.type("我是后端工程师，刚开始学 Rust。")
        yield "A fact is remembered in Chinese", terminal.screen("已记住：", "后台：无", "\n>")
        terminal.type("/compact --preview")
        terminal.screen("压缩", "后台：无")
        terminal.type("/dream")
        terminal.screen("整理完成", "后台：无")
        terminal.type("/cost")
        yield (
            "A preview of compaction, a dream and the costs in Chinese",
            terminal.screen("整理完成", "  提取记忆 ", "后台：无", "\n>"),
        )
        terminal.type("/clear")
        terminal.screen("已开始会话", "后台：无")
        terminal.type("write 说明.txt: 部署只在星期二进行")
        terminal.screen("y 同意", "\n  >")
        time.sleep(1)
        terminal.type("y")
        yield "A file is written after a question in Chinese", terminal.screen("已写入 说明.txt", "后台：无", "\n>")


@contextmanager
def new_homes(*names: str) -> Iterator[list[Path]]:
    """Make home directories with the same paths in every run: paths are part of the prompt, and its tokens are on the screens."""
    directory = Path(tempfile.gettempdir(), "lamina_screens")
    directory.mkdir()
    try:
        homes = [directory / name for name in names]
        for home in homes:
            home.mkdir()
        yield homes
    finally:
        shutil.rmtree(directory)


def page() -> str:
    parts = [INTRO]
    with new_homes("one", "two", "three") as homes, MessagesServer() as server:
        for run in (offline(homes[0]), with_model(homes[1], server), in_chinese(homes[2])):
            for title, screen in run:
                parts.append(f"\n## {title}\n\n```text\n{screen}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    sys.exit(write_or_check("docs/chat-screens.md", page(), "scripts/generate_screens.py", sys.argv[1:]))
