"""What deciding about a clearing costs, at 100, 1,000 and 10,000 messages (M7 asks for less than 0.1 ms).

    python bench/micro.py [--repeat N] [--rounds N] [--json]

Timed is the whole of layer 2's step before a call (following what is new in the view, and the decision), once per new call and
result, in microseconds of process CPU time. Beside it, in the same run: the same decision by a walk over the view, which is what
libraries do that keep no registry. The same session is played `--rounds` times. "p99" is of all steps of all rounds; for "p99, best" each
step counts with the round it was fastest in, which takes out what other programs did to the caches meanwhile, and leaves in whatever
a step itself makes dear. Three states: nothing to clear; much to clear that may not be cleared because it would not save enough; and the
policy `balanced` while the cache is warm. The clearing itself (files, record, receipt) is timed once.
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

from msgspec.structs import replace

from lamina.conversation.window.features import measure_all
from lamina.core.blocks import ToolResult, ToolUse
from lamina.core.policy import BALANCED, CLASSIC, Policy
from lamina.core.settings import Settings
from lamina.layers.l2_micro import step as micro
from lamina.session.base import conversation_of
from lamina.session.session import Session

SIZES = (100, 1_000, 10_000)
RESULT = "def handler(event):\n    return event['value'] * 2  # doubled\n" * 50
TOOL = {"name": "Read", "description": "Read a file.", "input_schema": {"type": "object"}}
QUIET = Settings(auto_compact=False, session_notes=False, spill=False)
# Everything stays, whatever it holds; or everything is looked at and nothing saves enough.
IDLE = replace(CLASSIC, window=replace(CLASSIC.window, warning_offset=0), micro=replace(CLASSIC.micro, clear_from=999_999_000))
WARM = replace(BALANCED, window=IDLE.window, micro=replace(BALANCED.micro, clear_from=999_999_000))
LOOKING = replace(
    CLASSIC,
    window=replace(CLASSIC.window, warning_offset=999_999_000),
    micro=replace(CLASSIC.micro, keep_tokens=1_000, save_at_least=500_000_000),
)
CLEARING = replace(LOOKING, micro=replace(LOOKING.micro, save_at_least=1_000))


def answer(index: int) -> dict[str, Any]:
    use = {"type": "tool_use", "id": f"toolu_{index}", "name": "Read", "input": {"file_path": f"src/module_{index}.py"}}
    usage = {"input_tokens": 1_000 + index * 60, "output_tokens": 40}
    return {"id": f"msg_{index}", "model": "m", "content": [use], "stop_reason": "tool_use", "usage": usage}


def filled(home: Path, messages: int, policy: Policy) -> Session:
    window = 1_000_000_000
    session = Session(
        "anthropic:claude-sonnet-5-5",
        home=home,
        cwd=home,
        window=window,
        tools=[TOOL],
        settings=QUIET,
        policy=policy,
        instructions=False,
        memory=False,
    )
    session.add_user("Fix the failing test.")
    for index in range(messages // 2 - 1):
        step(session, index)
    return session


def step(session: Session, index: int) -> None:
    session.after_call(answer(index))
    session.add_tool_result(f"toolu_{index}", RESULT)


def walk(session: Session) -> list[str]:
    """The decision without a registry: every block is looked at, each one's size is known already."""
    c = conversation_of(session)
    calls = {block.id: block.name for _, block in c.log.view.blocks() if isinstance(block, ToolUse)}
    rows = [
        (block.tool_use_id, measure_all((block,), c.memo).plain)
        for _, block in c.log.view.blocks()
        if isinstance(block, ToolResult) and calls.get(block.tool_use_id) in c.policy.micro.clearable
    ]
    left = sum(tokens for _, tokens in rows)
    chosen: list[str] = []
    for name, tokens in rows[: -c.policy.micro.keep_last]:
        if left <= c.policy.micro.keep_tokens:
            break
        left -= tokens
        chosen.append(name)
    return chosen


def microseconds(run: Callable[[], object]) -> float:
    begin = time.process_time_ns()
    run()
    return (time.process_time_ns() - begin) / 1e3


def played(messages: int, policy: Policy, repeat: int) -> tuple[list[float], list[float]]:
    """Microseconds of each step's decision, and of some walks."""
    with tempfile.TemporaryDirectory() as home, filled(Path(home), messages, policy) as session:
        micro.clear(conversation_of(session))
        ours, walked = [], []
        gc.collect()
        gc.disable()
        for index in range(messages, messages + repeat):
            step(session, index)
            ours.append(microseconds(lambda: micro.clear(conversation_of(session))))
            if index % 10 == 0:
                walked.append(microseconds(lambda: walk(session)))
        gc.enable()
        assert not any(type(one).__name__ == "Clear" for one in conversation_of(session).log.decisions.values())
        return ours, walked


def measure(messages: int, policy: Policy, repeat: int, rounds: int) -> dict[str, float]:
    runs = [played(messages, policy, repeat) for _ in range(rounds)]
    ours = [took for run, _ in runs for took in run]
    best = [min(steps) for steps in zip(*(run for run, _ in runs), strict=True)]
    middle, walked = statistics.median(ours), statistics.median(took for _, run in runs for took in run)
    return {"p50": middle, "p99": p99(ours), "p99, best": p99(best), "walk": walked, "ratio": walked / middle}


def p99(times: list[float]) -> float:
    return sorted(times)[len(times) * 99 // 100]


def clearing(messages: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as home, filled(Path(home), messages, CLEARING) as session:
        took = microseconds(lambda: micro.clear(conversation_of(session))) / 1e3
        (decision,) = conversation_of(session).log.decisions.values()
        return {"results": len(getattr(decision, "markers", {})), "ms": took}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found: dict[str, Any] = {}
    for messages in SIZES:
        found[str(messages)] = {
            "nothing to clear": measure(messages, IDLE, given.repeat, given.rounds),
            "too little saved": measure(messages, LOOKING, given.repeat, given.rounds),
            "balanced, warm": measure(messages, WARM, given.repeat, given.rounds),
            "clearing": clearing(messages),
        }
    if given.json:
        print(json.dumps(found))
        return
    names = ("p50", "p99", "p99, best", "walk")
    print(f"{'messages':>9} {'state':<17} " + " ".join(f"{name:>10}" for name in names) + f" {'walk ÷ ours':>12}   (µs CPU)")
    for messages_, states in found.items():
        for state in ("nothing to clear", "too little saved", "balanced, warm"):
            row = states[state]
            print(f"{messages_:>9} {state:<17} " + " ".join(f"{row[name]:10.1f}" for name in names) + f" {row['ratio']:12.0f}")
        row = states["clearing"]
        print(f"{messages_:>9} {'clearing':<17} {row['results']} results in {row['ms']:.0f} ms")


if __name__ == "__main__":
    main()
