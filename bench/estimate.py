"""How well the token estimate meets what providers report, on recorded sessions.

    python bench/estimate.py PATH        PATH holds *.jsonl of Claude Code or Pi, in one directory per source

A step is what was added to the conversation between two consecutive responses; the truth is what the second request's prompt
grew by. Claude Code writes output counts before a response is complete, so there the step holds the response as well (prompt to
prompt); Pi writes final counts, so there it holds what came after the response, which is what a live session estimates.

Printed: the error per step of several rules in the same run, for the shipped starting values and for values fitted without the
directory they are tested on; thresholds crossed; the time per block.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import NamedTuple, TypeAlias

from estimate_steps import Step, read_steps

from lamina.conversation.window.estimate import BLANK, LETTER, MARK, RARE, START, Calibration, estimate, observe
from lamina.conversation.window.features import Features, measure, measure_all
from lamina.conversation.window.thresholds import thresholds
from lamina.core.blocks import Block, read_block, text, tool_result
from lamina.core.policy import CLASSIC

# Thresholds are tried for every window from the smallest that holds a coding agent's system prompt and tools up to the usual one.
WINDOWS = range(32_000, 200_001, 1_000)
# What a published measurement gives for English prose between two generations of one provider's tokenizers.
DEARER_WORDS = 0.45
# Passes of the fit: each gives the steps that are far off less weight, and twelve no longer change the third digit.
FIT_PASSES = 12


# Rules: each gives one estimate per step, in order.

Rule: TypeAlias = Callable[[list[Step]], list[int]]


def calibrated(steps: list[Step], features: Callable[[Step], Features] = lambda step: step.added) -> list[int]:
    found: list[int] = []
    calibration, session = START, ""
    for step in steps:
        if step.session != session:
            calibration, session = START, step.session
        added = features(step)
        found.append(estimate(added, calibration))
        calibration = observe(calibration, added, step.truth)
    return found


RULES: dict[str, Rule] = {
    "chars/4": lambda steps: [step.chars // 4 for step in steps],
    "chars/2.9 + 61 per block": lambda steps: [round(step.chars / 2.9) + 61 * step.blocks for step in steps],
    "plain rule (T2)": lambda steps: [step.added.plain for step in steps],
    "starting values": lambda steps: [estimate(step.added) for step in steps],
    "calibrated": calibrated,
}


def held_out(steps: list[Step]) -> list[int]:
    """Calibrated, but each directory starts from values fitted on the others only."""
    found: dict[int, int] = {}
    for source in sorted({step.source for step in steps}):
        weights = fit([step for step in steps if step.source != source])
        inside = [index for index, step in enumerate(steps) if step.source == source]
        guesses = calibrated([steps[index] for index in inside], partial(refitted, weights=weights))
        found |= dict(zip(inside, guesses, strict=True))
    return [found[index] for index in range(len(steps))]


def refitted(step: Step, *, weights: list[float]) -> Features:
    """Features that the shipped starting values turn into what the fitted ones would give."""
    letters, blanks, marks, rare, *frames = (count * weight for count, weight in zip(step.counts, weights, strict=True))
    scaled = (round(letters / LETTER), round(blanks / BLANK), round(marks / MARK), step.added.wide, round(rare / RARE))
    return Features(*scaled, frame=round(sum(frames)), flat=step.added.flat)


def fit(steps: list[Step]) -> list[float]:
    """Weights by least relative error, steps far off counting less with each pass (so that unseen context does not pull)."""
    rows = [(step.counts, step.truth) for step in steps if not step.added.flat]
    trust = [1.0] * len(rows)
    weights: list[float] = []
    for _ in range(FIT_PASSES):
        weights = least_squares(rows, trust)
        guesses = [sum(count * weight for count, weight in zip(counts, weights, strict=True)) for counts, _ in rows]
        trust = [1 / max(0.03, abs(guess - truth) / (truth + 40)) for guess, (_, truth) in zip(guesses, rows, strict=True)]
    return [max(0.0, weight) for weight in weights]


def least_squares(rows: list[tuple[tuple[int, ...], int]], trust: list[float]) -> list[float]:
    size = len(rows[0][0])
    system = [[0.0] * (size + 1) for _ in range(size)]
    for (counts, truth), weight in zip(rows, trust, strict=True):
        scale = weight / (truth + 40) ** 2
        for i, count in enumerate(counts):
            if count:
                row, part = system[i], count * scale
                for j, other in enumerate(counts):
                    row[j] += part * other
                row[size] += part * truth
    return solve(system)


def solve(system: list[list[float]]) -> list[float]:
    """Gauss-Jordan with pivots; a feature that never occurs gets no weight."""
    size = len(system)
    for i in range(size):
        pivot = max(range(i, size), key=lambda row: abs(system[row][i]))
        system[i], system[pivot] = system[pivot], system[i]
        if abs(system[i][i]) < 1e-12:
            system[i] = [float(i == j) for j in range(size)] + [0.0]
        system[i] = [value / system[i][i] for value in system[i]]
        for j in range(size):
            if j != i and (factor := system[j][i]):
                system[j] = [value - factor * by for value, by in zip(system[j], system[i], strict=True)]
    return [row[size] for row in system]


# Report.


class Quality(NamedTuple):
    steps: int
    median: float
    p95: float
    bias: float


def quality(steps: list[Step], guesses: list[int]) -> Quality:
    errors = [abs(guess - step.truth) / step.truth for step, guess in zip(steps, guesses, strict=True)]
    bias = sum(guesses) / sum(step.truth for step in steps) - 1
    return Quality(len(steps), median(errors), quantiles(errors, n=20)[-1] if len(errors) > 1 else errors[0], bias)


class Crossings(NamedTuple):
    seen: int  # the estimate stood at or above the autocompact threshold too
    in_margin: int  # it did not, and the true count was still below blocking: the next response shows it in time
    unseen: list[str]  # it did not, and the true count was at or above blocking


def crossings(steps: list[Step], guesses: list[int], windows: Iterable[int]) -> Crossings:
    """Every call, in every window, whose true count first reaches the autocompact threshold."""
    seen = in_margin = 0
    unseen: list[str] = []
    for window in windows:
        at = thresholds(window, None, CLASSIC.window)
        for step, guess in zip(steps, guesses, strict=True):
            if not step.before < at.autocompact <= step.after:
                continue
            if step.before + guess >= at.autocompact:
                seen += 1
            elif step.after < at.blocking:
                in_margin += 1
            else:
                unseen.append(f"{Path(step.session).name}: {step.before:,} to {step.after:,}, estimated {step.before + guess:,}")
    return Crossings(seen, in_margin, unseen)


def print_quality(steps: list[Step], rules: dict[str, list[int]]) -> None:
    print(f"\n{'rule':<28}{'steps':>7}{'median':>9}{'95th':>9}{'bias':>9}")
    sources = ["", *sorted({step.source for step in steps})]
    for source in sources:
        print(f"-- {source or 'all'}")
        for name, guesses in rules.items():
            pairs = [(step, guess) for step, guess in zip(steps, guesses, strict=True) if source in ("", step.source)]
            q = quality([step for step, _ in pairs], [guess for _, guess in pairs])
            print(f"{name:<28}{q.steps:>7}{q.median:>9.1%}{q.p95:>9.1%}{q.bias:>+9.1%}")


def print_crossings(steps: list[Step], rules: dict[str, list[int]]) -> None:
    print(f"\n{'thresholds crossed':<28}{'window':>16}{'seen':>7}{'in margin':>11}{'unseen':>8}")
    for name, guesses in rules.items():
        for label, windows in (("200,000", (200_000,)), (f"{len(WINDOWS)} windows", WINDOWS)):
            found = crossings(steps, guesses, windows)
            print(f"{name:<28}{label:>16}{found.seen:>7}{found.in_margin:>11}{len(found.unseen):>8}")
            for what, times in Counter(found.unseen).items() if name == "calibrated" else ():
                print(f"    unseen in {times} windows: {what}")


def print_shifted(steps: list[Step]) -> None:
    """The same steps as a tokenizer would report them that takes more for words and as much as before for all else."""
    shifted = [step._replace(after=step.after + round(step.added.letters * LETTER * DEARER_WORDS)) for step in steps]
    print(f"\nwords {DEARER_WORDS:.0%} dearer")
    for name in ("starting values", "calibrated"):
        q = quality(shifted, RULES[name](shifted))
        print(f"{name:<28}{q.steps:>7}{q.median:>9.1%}{q.p95:>9.1%}{q.bias:>+9.1%}")


def print_cost() -> None:
    prose = "The quick brown fox jumps over the lazy dog, and then returns 42 values.\n" * 41
    samples: dict[str, Block] = {
        "text, 3 KB English": text(prose[:3_000]),
        "text, 3 KB Japanese": text(("この関数は設定を読み込み、結果を返します。\n" * 60)[:1_000]),
        "tool call, 3 KB": read_block({"type": "tool_use", "id": "a", "name": "Write", "input": {"content": prose[:3_000]}}),
        "tool result, 3 KB": tool_result("a", prose[:3_000]),
    }
    print(f"\n{'time':<28}{'per call':>10}")
    for name, block in samples.items():
        print(f"{name:<28}{best_of(partial(measure, block)):>8.1f} µs")
    added = measure_all(samples.values())
    print(f"{'estimate':<28}{best_of(lambda: estimate(added)):>8.1f} µs")
    print(f"{'learn from a response':<28}{best_of(lambda: observe(Calibration(), added, 3_000)):>8.1f} µs")


def best_of(call: Callable[[], object], *, times: int = 2_000, tries: int = 5) -> float:
    """Microseconds per call, the best of several tries: other processes only ever make it slower."""
    best = float("inf")
    for _ in range(tries):
        start = perf_counter()
        for _ in range(times):
            call()
        best = min(best, perf_counter() - start)
    return best / times * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    root = parser.parse_args().path
    dropped: Counter[str] = Counter()
    steps = read_steps(root, dropped)
    if not steps:
        print(f"{root}: no steps found; give a directory with *.jsonl of Claude Code or Pi.", file=sys.stderr)
        return 1
    print(f"{len(steps)} steps in {len({step.session for step in steps})} sessions; left out: {dict(dropped)}")
    rules = {name: rule(steps) for name, rule in RULES.items()}
    if len({step.source for step in steps}) > 1:
        rules["calibrated, held out"] = held_out(steps)
    print_quality(steps, rules)
    print_crossings(steps, rules)
    print_shifted(steps)
    names = ("letter", "blank", "mark", "rare", "text", "thinking", "call", "key", "result")
    print("\nfitted on all:", ", ".join(f"{name} {weight:.3g}" for name, weight in zip(names, fit(steps), strict=True)))
    print_cost()
    return 0


if __name__ == "__main__":
    sys.exit(main())
