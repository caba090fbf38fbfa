"""What preparing a request costs, at 100, 1,000 and 10,000 messages.

    python bench/before_call.py [--repeat N] [--json]

One turn of a tool loop is timed (process CPU time): `add_tool_result` and `before_call` together, with the transcript written
to a real file. `after_call` is what recording the answer takes. A request is held until its answer is recorded, as any loop holds it, and
so is the copied list: letting go of a list of 10,000 messages is work too, and not part of preparing one. Beside it, in the same run:
copying the plain list (the least any library can do), `json.dumps` of the request (what an SDK does with it next) and a re-count of
every message at four characters a token (what most libraries do before each call).
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lamina.core.settings import Settings
from lamina.session.session import Session

SIZES = (100, 1_000, 10_000)
RESULT = "def handler(event):\n    return event['value'] * 2  # doubled\n" * 50


def filled(home: Path, messages: int) -> Session:
    """A session that holds so many messages: one prompt, then calls and results, in a window that takes them all."""
    # Nothing is compacted or cleared, so that the conversation stays as long as it is said to be.
    settings = Settings(auto_compact=False, size_clearing=False, session_notes=False)
    session = Session(
        "anthropic:claude-sonnet-5-5",
        system="Be brief.",
        home=home,
        cwd=home,
        window=1_000_000_000,
        tools=[TOOL],
        settings=settings,
    )
    session.add_user("Fix the failing test.")
    for index in range(messages // 2 - 1):
        session.after_call(answer(index))
        session.add_tool_result(f"toolu_{index}", RESULT)
    session.before_call()
    return session


TOOL = {
    "name": "Read",
    "description": "Read a file.",
    "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}},
}


def answer(index: int) -> dict[str, Any]:
    return {
        "id": f"msg_{index}",
        "model": "claude-sonnet-5-5",
        "role": "assistant",
        "stop_reason": "tool_use",
        "content": [
            {"type": "text", "text": f"Step {index}: reading the next file."},
            {"type": "tool_use", "id": f"toolu_{index}", "name": "Read", "input": {"file_path": f"src/module_{index}.py"}},
        ],
        "usage": {
            "input_tokens": 10,
            "cache_read_input_tokens": 1_000 + index * 60,
            "cache_creation_input_tokens": 60,
            "output_tokens": 40,
        },
    }


def milliseconds(run: Callable[[], object]) -> float:
    begin = time.process_time_ns()
    held = run()
    took = time.process_time_ns() - begin
    del held
    return took / 1e6


def turn_cost(session: Session, messages: int, repeat: int) -> dict[str, float]:
    prepare, whole, record = [], [], []
    for index in range(messages, messages + repeat):
        reply = answer(index)

        def hear(reply: dict[str, Any] = reply) -> None:
            session.after_call(reply)

        heard = milliseconds(hear)

        def take(index: int = index) -> None:
            session.add_tool_result(f"toolu_{index}", RESULT)

        taken = milliseconds(take)
        called = milliseconds(session.before_call)
        prepare.append(called)
        whole.append(taken + called)
        record.append(heard)
    return {
        "before_call": statistics.median(prepare),
        "best": min(prepare),
        "with the result": statistics.median(whole),
        "after_call": statistics.median(record),
    }


def beside(session: Session, repeat: int) -> dict[str, float]:
    request = session.before_call()
    few = max(3, repeat // 50)

    def count() -> int:
        return sum(len(str(block)) for message in request["messages"] for block in message["content"]) // 4

    return {
        "list copy": statistics.median(milliseconds(request["messages"].copy) for _ in range(repeat)),
        "json.dumps": statistics.median(milliseconds(lambda: json.dumps(request)) for _ in range(few)),
        "count all": statistics.median(milliseconds(count) for _ in range(few)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows: dict[int, dict[str, float]] = {}
    for size in SIZES:
        with tempfile.TemporaryDirectory() as home, filled(Path(home), size) as session:
            gc.collect()
            gc.freeze()
            rows[size] = turn_cost(session, size, options.repeat) | beside(session, options.repeat)
    if options.json:
        print(json.dumps(rows))
        return
    names = list(next(iter(rows.values())))
    print(f"{'messages':>10} " + " ".join(f"{name:>16}" for name in names) + f" {'json.dumps ÷ ours':>18}   (ms CPU, median)")
    for size, row in rows.items():
        ratio = row["json.dumps"] / row["before_call"]
        print(f"{size:>10,} " + " ".join(f"{row[name]:>16.4f}" for name in names) + f" {ratio:>18.1f}")
    growth = rows[SIZES[-1]]["before_call"] - rows[SIZES[0]]["before_call"]
    print(f"before_call at {SIZES[-1]:,} messages costs {growth:+.4f} ms over its cost at {SIZES[0]}.")


if __name__ == "__main__":
    main()
