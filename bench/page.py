"""The page in a real browser over a large home: first view, clicks, memory, CPU when idle, and how fast a running session is followed.

    python bench/page.py [--sessions 2000] [--bytes 200000] [--memories 10000] [--requests 5000] [--times 5] [--only WORDS] [--keep DIR]

Makes the home (bench/source_home.py), a session with many requests (tests/web/made_home.py) and memories, and starts `lamina ui`
in its own process, without an index and with one. In all starts but the last it is clicked through at once (bench/page_start.py). Needs
playwright and a Chromium; LAMINA_TEST_BROWSER names another.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from lamina.disk.paths.project import slug

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from page_clicks import CHART, VIEW, clicks, measure, press, visit  # noqa: E402
from page_meter import MARK, MOST_LOADED, Cost, Meter, cpu_seconds  # noqa: E402
from page_rare_clicks import SAVING, rare_clicks  # noqa: E402
from page_start import forget_what_was_read, impatient  # noqa: E402
from source_home import make  # noqa: E402
from tests.web.conftest import ARGUMENTS, find_browser  # noqa: E402
from tests.web.made_home import ClaudeSession, long_session, window_session  # noqa: E402
from tests.web.made_memories import make_dream, make_memories, make_proposals, open_memory, project_of  # noqa: E402

LONG_ID = "10000000-0000-4000-8000-000000000001"
LONG = f"/sessions/claude-code/{LONG_ID}"
BUSY_ID = "30000000-0000-4000-8000-000000000003"
BUSY = f"/sessions/claude-code/{BUSY_ID}"
# Calls in one turn of the busy session.
CALLS = 600
RUNNING = "20000000-0000-4000-8000-000000000002"
IDLE_SECONDS = 10
# Files that changed in the last two seconds are looked at by every view. Nobody's memories were all written just now.
SETTLE_SECONDS = 3
# Of the server, each with its own first seconds; in the last one each click is measured several times.
STARTS = ("no index, then memories", "no index", "an index, then memories", "an index, then sessions", "an index")
PRICES = "The cache of prices expires after {hours} hours, and the job that fills it runs in the minutes before that.\n"
# Milliseconds after which a click counts as one that is never answered.
HANG = 15_000


def memories(person: Path, count: int) -> None:
    """Memories of twenty projects, as Lamina keeps them."""
    for number in range(count):
        directory = person / ".lamina/projects" / f"-work-project-{number % 20}" / "memory"
        directory.mkdir(parents=True, exist_ok=True)
        text = f"The service {number} listens on port {8_000 + number % 1_000}."
        head = f"---\nname: port-{number}\ndescription: {text}\ntype: project\n---\n"
        (directory / f"project_port_{number}.md").write_text(f"{head}{text}\n", "utf-8")


def fill(person: Path, arguments: argparse.Namespace) -> None:
    make(person, arguments.sessions, arguments.bytes)
    memories(person, arguments.memories)
    make_memories(person)
    make_dream(person)
    project = person / ".claude/projects/-work-shop-api"
    made = long_session(project / f"{LONG_ID}.jsonl", "/work/shop-api", arguments.requests)
    made.write()
    make_proposals(person, LONG_ID, next(row["uuid"] for row in made.rows[len(made.rows) // 2 :] if row["type"] == "user"))
    window_session(project / f"{RUNNING}.jsonl", "/work/shop-api").write()
    busy_session(project / f"{BUSY_ID}.jsonl").write()
    with open_memory(person) as memory:
        for name, about, hours in (("Cache of prices", "When prices expire", "2"), ("Prices in the cache", "The cache", "3")):
            memory.save(name, type="project", description=about, body=PRICES.format(hours=hours))


def busy_session(path: Path) -> ClaudeSession:
    """A session with one turn of many calls."""
    made = ClaudeSession(path, "/work/shop-api")
    made.user("Look at every file.")
    for number in range(CALLS):
        if made.window > 150_000:
            made.compact()
        made.call(
            ("Read", "Bash", "Grep")[number % 3], {"file_path": f"src/shop/file_{number}.py"}, made.draw.randrange(60, 2_000)
        )
    made.answer({"type": "text", "text": "I have looked at all of them."})
    return made


def start(person: Path) -> tuple[subprocess.Popen[str], str, float]:
    environ = {**os.environ, "HOME": str(person), "LAMINA_HOME": str(person / ".lamina")}
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR"):
        environ.pop(name, None)
    began = time.perf_counter()
    command = [sys.executable, "-c", "from lamina.cli.main import main; main()", "ui", "--json", "--port", "7499"]
    server = subprocess.Popen(command, env=environ, cwd=person, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    return server, str(json.loads(server.stdout.readline())["url"]), began


def memory_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1_000
    return 0.0


def show(name: str, value: float, unit: str, most: float | None = None, used: float | None = None) -> None:
    limit = f"   (at most {most:g})" if most is not None else ""
    busy = f"   server CPU {used:.0f} ms" if used is not None else ""
    print(f"{name:58}{value:>10.1f} {unit}{limit}{busy}", flush=True)


def first_opening(meter: Meter, base: str) -> None:
    """Open a session that nobody has opened before, and again while its blocks are still being read."""
    page = meter.page
    page.goto(f"{base}/sessions")
    meter.click(visit(LONG), "h1", loads=True)
    meter.show("the long session, first time, its title", MOST_LOADED)
    with meter.measure():
        page.locator(CHART).first.wait_for()
    meter.show("... and its chart", None)
    meter.click(visit(LONG), CHART)
    meter.show("the long session, again at once, its chart", MOST_LOADED)
    page.evaluate(MARK)
    meter.click(press('.top nav a[href="/memories"]'), VIEW)
    meter.show("... and another view at once")


def live(page: Page, base: str, person: Path) -> None:
    path = person / ".claude/projects/-work-shop-api" / f"{RUNNING}.jsonl"
    session = window_session(path, "/work/shop-api")
    session.write()
    page.goto(f"{base}/sessions/claude-code/{RUNNING}?r=9999")
    page.locator("#chart path.area").first.wait_for()
    page.locator("html[data-live]").wait_for(state="attached")
    page.wait_for_timeout(1_500)
    waits = []
    for number in range(5):
        known, count = len(session.rows), int(page.locator(".scrub").get_attribute("max") or 0)
        session.user(f"And step {number}?")
        session.answer({"type": "text", "text": "Done."})
        with open(path, "a", encoding="utf-8") as file:
            file.write("".join(json.dumps(row) + "\n" for row in session.rows[known:]))
        began = time.perf_counter()
        page.locator(f'.scrub[max="{count + 1}"]').wait_for(state="attached")
        waits.append(1_000 * (time.perf_counter() - began))
    show("a running session is followed after (worst of 5)", max(waits), "ms", 1_000)


def addresses(page: Page, base: str) -> tuple[str, str, str]:
    """Return the addresses of a small session, of a memory that was written by Lamina, and of a dream."""
    small = page.request.get(f"{base}/sessions?q=project-1&source=claude-code&format=json").json()["sessions"][0]["url"]
    found = page.request.get(f"{base}/memories?by=user&format=json").json()["memories"][0]["url"]
    dream = page.request.get(f"{base}/dreams?format=json").json()["dreams"][0]["url"]
    return small, found, dream


def slowest(found: list[tuple[str, Cost]]) -> list[tuple[str, Cost]]:
    return sorted(found, key=lambda one: -one[1].wall)[:5]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("sessions", 2_000), ("bytes", 200_000), ("memories", 10_000), ("requests", 5_000), ("times", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--only", default="", help="Measure only the clicks with these words in their names.")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    path = find_browser()
    if path is None:
        sys.exit("No browser found. Install chromium, or set LAMINA_TEST_BROWSER to one.")
    person = arguments.keep or Path(tempfile.mkdtemp(prefix="lamina-page-"))
    try:
        if not (person / ".claude").exists():
            fill(person, arguments)
            time.sleep(SETTLE_SECONDS)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
            for name in STARTS:
                if "no index" in name:
                    shutil.rmtree(person / ".lamina/cache", ignore_errors=True)
                    forget_what_was_read(person)
                page = browser.new_context(viewport={"width": 1_400, "height": 1_000}).new_page()
                page.set_default_timeout(HANG)
                server, link, began = start(person)
                try:
                    page.goto(link)
                    show(
                        f"first view with {name}, from the start of the command",
                        1_000 * (time.perf_counter() - began),
                        "ms",
                        1_500,
                        1_000 * cpu_seconds(server.pid),
                    )
                    base = link.partition("/?")[0]
                    meter = Meter(server.pid, page)
                    if name != "an index":
                        impatient(meter, base, LONG, 2 if "memories" in name else 0)
                    if name == "no index":
                        while page.request.get(f"{base}/sessions?format=json").json()["reading"]:
                            page.wait_for_timeout(500)
                        show("... until all sessions are read", time.perf_counter() - began, "s")
                    elif name == "an index":
                        first_opening(meter, base)
                        small, memory, dream = addresses(page, base)
                        rare = rare_clicks(LONG, BUSY, small, memory, slug(project_of(person)))
                        found = measure(
                            meter, base, [*clicks(LONG, small, memory, dream), *rare], arguments.times, arguments.only
                        )
                        print("slowest medians:", ", ".join(f"{name} {cost.wall:.0f} ms" for name, cost in slowest(found)))
                        live(page, base, person)
                        page.goto("about:blank")
                        time.sleep(2)
                        before = cpu_seconds(server.pid)
                        time.sleep(IDLE_SECONDS)
                        show(
                            "CPU without a page, of a second", (cpu_seconds(server.pid) - before) / IDLE_SECONDS * 1_000, "ms", 1
                        )
                        show("peak memory of the server", memory_mb(server.pid), "MB", 250)
                        measure(meter, base, [SAVING], 1, arguments.only)
                        page.wait_for_timeout(1_000 * IDLE_SECONDS)
                        show("... after ten seconds of a replay", memory_mb(server.pid), "MB", 250)
                    print(f"{meter.late} of {meter.made} clicks took longer than they may", flush=True)
                finally:
                    server.terminate()
                    server.wait()
                page.context.close()
            browser.close()
    finally:
        if arguments.keep is None:
            shutil.rmtree(person, ignore_errors=True)


if __name__ == "__main__":
    main()
