"""What the rules keep of 172 utterances in five languages: recall and precision, per item (layer 5, offline).

    python bench/extract_said.py                 # both parts, one line for each mistake
    python bench/extract_said.py --tuned-only    # while changing the rules
    python bench/extract_said.py --all           # one line for each utterance

`extract_said.tsv` has the utterances: the type that should be kept ("-" for none) and whether the sentence gives a reason, which belongs
into the memory as its Why. A third of them, chosen by a checksum, is held out: nobody looks at its results while changing the rules.
Each utterance goes through an agent with the offline provider, so the figures count what is in memory afterwards.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lamina.agent.agent import Agent
from lamina.memory.memory import Memory
from lamina.providers.offline import DEFAULT_TABLE
from lamina.session.provider import offline

SAID = Path(__file__).with_name("extract_said.tsv")


class Utterance(NamedTuple):
    part: str
    language: str
    keep: str
    why: str
    said: str


class Kept(NamedTuple):
    type: str
    why: bool
    name: str


def utterances() -> list[Utterance]:
    with SAID.open(encoding="utf-8", newline="") as rows:
        return [Utterance(**row) for row in csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE)]


def keep(said: str, home: Path) -> list[Kept]:
    """Return what a conversation with this utterance leaves in memory."""
    (project := home / "project").mkdir(parents=True)
    provider = offline({**DEFAULT_TABLE, "chat": lambda _: [{"type": "text", "text": "Fine."}]})
    with Agent.open(provider, cwd=project, home=home / "lamina", mode="all", interactive=True) as agent:
        agent.run(said)
    with Memory.open(project, home=home / "lamina") as memory:
        return [Kept(str(topic.type), "**Why:**" in topic.body, topic.file) for topic in memory.topics()]


class Score(NamedTuple):
    right: int = 0
    wrong: int = 0  # kept although nothing should be, or under another type
    missed: int = 0
    whys: int = 0
    reasons: int = 0  # sentences that were kept and give a reason

    def plus(self, wanted: Utterance, found: Sequence[Kept]) -> Score:
        right = next((kept for kept in found if kept.type == wanted.keep), None)
        reasons = right is not None and wanted.why == "yes"
        return Score(
            self.right + (right is not None),
            self.wrong + len(found) - (right is not None),
            self.missed + (wanted.keep != "-" and right is None),
            self.whys + (reasons and right is not None and right.why),
            self.reasons + reasons,
        )

    def __str__(self) -> str:
        recall, precision = self.right / max(1, self.right + self.missed), self.right / max(1, self.right + self.wrong)
        counts = f"{self.right} right, {self.wrong} wrong, {self.missed} missed, {self.whys} of {self.reasons} reasons"
        return f"recall {recall:.0%}, precision {precision:.0%} ({counts})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuned-only", action="store_true", help="leave the held-out part alone")
    parser.add_argument("--all", action="store_true", help="print the utterances with the right result, too")
    options = parser.parse_args()
    scores = dict[str, Score]()
    for each in utterances():
        if options.tuned_only and each.part != "tuned":
            continue
        with tempfile.TemporaryDirectory() as directory:
            found = keep(each.said, Path(directory).resolve())
        before = scores.get(each.part, Score())
        scores[each.part] = after = before.plus(each, found)
        if options.all or after.wrong > before.wrong or after.missed > before.missed:
            got = ", ".join(f"{kept.type} {kept.name}{' with a Why' if kept.why else ''}" for kept in found) or "-"
            print(f"{each.part}\t{each.language}\twanted {each.keep}\tgot {got}\t{each.said}")
    for part, score in scores.items():
        print(f"{part}: {score}")


if __name__ == "__main__":
    main()
