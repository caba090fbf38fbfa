"""Weigh the rooms of the package: thousands of characters of Python, templates and scripts, without indentation, rounded up.

    python scripts/weigh.py            fail if a room is heavier than scripts/weights.json says
    python scripts/weigh.py --write    record the weights of today

Prompts, catalogues and word lists are data and weigh nothing. A room may become lighter at any time. If it has to become heavier, record
the new weights and say in the commit what was bought.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE, RECORDED = ROOT / "src" / "lamina", ROOT / "scripts" / "weights.json"
KINDS = frozenset({".py", ".html", ".j2", ".js"})


def weights() -> dict[str, int]:
    """Return the thousands of characters of each entry of the package."""
    rooms: dict[str, int] = {}
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in KINDS:
            room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
            rooms[room] = rooms.get(room, 0) + sum(len(line.strip()) for line in path.read_text("utf-8").splitlines())
    return {room: math.ceil(characters / 1000) for room, characters in rooms.items()}


def main(arguments: list[str]) -> int:
    weighed = weights()
    if "--write" in arguments:
        RECORDED.write_text(json.dumps(weighed, indent=1) + "\n", "utf-8")
    recorded: dict[str, int] = json.loads(RECORDED.read_text("utf-8"))
    heavier = {room: size for room, size in weighed.items() if size > recorded.get(room, 0)}
    for room, size in heavier.items():
        print(
            f"weigh: {room} has {size:,} thousand characters, {size - recorded.get(room, 0):,} more than recorded",
            file=sys.stderr,
        )
    print(f"weigh: {sum(weighed.values()):,} thousand characters in {len(weighed)} rooms, {sum(recorded.values()):,} recorded")
    if heavier:
        print(
            "weigh: make it lighter, or run `python scripts/weigh.py --write` and say in the commit what was bought",
            file=sys.stderr,
        )
    return 1 if heavier else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
