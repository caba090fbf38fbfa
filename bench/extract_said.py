"""What is kept without a model of 2,063 utterances in seven languages: recall, precision, types and reasons, per item (layer 5, offline).

    python bench/extract_said.py                             # all parts, one line for each mistake
    python bench/extract_said.py --tuned-only                # while changing the judges
    python bench/extract_said.py --file new.tsv --counts     # another file, without the mistakes, so that it stays unseen
    python bench/extract_said.py --all                       # one line for each utterance

`extract_said.tsv` has the utterances: the type that should be kept ("-" for none) and the reason that belongs into the memory as its Why:
"-" for none, "yes", or its text. A second type after "+" may be kept beside the first: the utterance states both. `\\n` in an utterance is
a line break. Each utterance goes through an agent with the offline provider,
so the figures count what is in memory afterwards.

The figures: recall (how many of the utterances worth keeping were kept under their type), precision (how many of the memories were worth
keeping), types (how many of those have the right type), and both at once. A second memory of an utterance counts as not worth keeping,
unless the utterance states two things.

The parts differ in who wrote them:

- tuned, fresh and later (332), held-out (49): by authors of the program, short and full of look-alikes.
- development (154), development-2 (40): by authors of the program, with the mistakes in view.
- stranger-1 to stranger-7 (60 each), stranger-8 (120): written without knowledge of the program; those of stranger-6 and stranger-7 are
  short, and stranger-8 has the text of each reason.
- stranger-9 (179), stranger-10 (78): by an author of the program, in one go, with pasted logs and code.
- stranger-11 (120): by somebody who had not seen the program. First measure: recall 85%, precision 93% (both at once).
- stranger-12 (160): by somebody else who had not seen the program. First measure: recall 90%, precision 93.5% (72 of 77), types 100%,
  17 of 21 reasons, 3 false. The wrong ones: two sarcastic orders, a comment in code without a fence, a command for a sheet, and a second
  memory of another type. Then they were looked at and mended; one label became "user+user", because the utterance states both.

- stranger-13 (200): by a third one. First measure: recall 93%, precision 96.9% (93 of 96), types 100%, 25 of 28 reasons, 5 false. Its
  mistakes were looked at, and a rule for two sarcastic openings came from them.
- stranger-14 (200): by a fourth one, measured once with that rule: recall 84%, precision 97.7% (85 of 87), types 98.8%, 19 of 23 reasons,
  5 false. Nobody has looked at it.

The judges are trained on all parts but the last two, so what this prints for the others is no measure. The estimate for new
utterances is `scripts/train_extract.py --validate`, which leaves out one part after the other. A part that is measured before anybody
looked at it is better still: `--file NEW.tsv --counts`.

docs/extraction.md has the figures.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lamina.agent.agent import Agent
from lamina.language.detection import WHY
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

    @property
    def types(self) -> list[str]:
        """The type that should be kept, and those that may be kept beside it."""
        return [] if self.keep == "-" else self.keep.split("+")


class Kept(NamedTuple):
    type: str
    why: str | None
    name: str


def utterances(file: Path = SAID) -> list[Utterance]:
    with file.open(encoding="utf-8", newline="") as rows:
        found = [Utterance(**row) for row in csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE)]
    return [each._replace(said=each.said.replace("\\n", "\n")) for each in found]


def keep(said: str, home: Path) -> list[Kept]:
    """Return what a conversation with this utterance leaves in memory."""
    (project := home / "project").mkdir(parents=True)
    provider = offline({**DEFAULT_TABLE, "chat": lambda _: [{"type": "text", "text": "Fine."}]})
    with Agent.open(provider, cwd=project, home=home / "lamina", mode="all", interactive=True) as agent:
        agent.run(said)
    with Memory.open(project, home=home / "lamina") as memory:
        return [
            Kept(str(topic.type), found["why"] if (found := WHY.search(topic.body)) else None, topic.file)
            for topic in memory.topics()
        ]


def reason_is_kept(wanted: Utterance, kept: Kept) -> bool:
    """Return whether the memory gives the reason as its Why: the expected text, where the utterance has one."""
    return kept.why is not None and (wanted.why == "yes" or wanted.why.casefold() in kept.why.casefold())


class Score(NamedTuple):
    found: int = 0  # utterances worth keeping that were kept under their type
    wanted: int = 0  # utterances worth keeping
    kept: int = 0  # memories
    worth: int = 0  # those of them that are worth keeping
    right: int = 0  # those of them that have the right type, too
    whys: int = 0
    reasons: int = 0  # sentences that were kept and give a reason
    stated: int = 0  # reasons that were given, kept or not
    false_whys: int = 0  # memories with a Why although no reason was given, or with another text

    def plus(self, wanted: Utterance, found: Sequence[Kept]) -> Score:
        types = wanted.types
        first = next((kept for kept in found if kept.type in types[:1]), None)
        reasons = first is not None and wanted.why != "-"
        whys = reasons and first is not None and reason_is_kept(wanted, first)
        return Score(
            self.found + (first is not None),
            self.wanted + bool(types),
            self.kept + len(found),
            self.worth + min(len(found), len(types)),
            self.right + (Counter(types) & Counter(kept.type for kept in found)).total(),
            self.whys + whys,
            self.reasons + reasons,
            self.stated + (bool(types) and wanted.why != "-"),
            self.false_whys + sum(kept.why is not None for kept in found) - whys,
        )

    def __str__(self) -> str:
        figures = {
            "recall": (self.found, self.wanted),
            "precision": (self.worth, self.kept),
            "types": (self.right, self.worth),
            "both": (self.right, self.kept),
        }
        shares = ", ".join(f"{name} {part / max(1, all_):.1%} ({part} of {all_})" for name, (part, all_) in figures.items())
        return f"{shares}; {self.whys} of {self.reasons} reasons, {self.stated} stated, {self.false_whys} false"


def _mistakes(score: Score) -> tuple[int, int, int, int]:
    return score.kept - score.right, score.wanted - score.found, score.reasons - score.whys, score.false_whys


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuned-only", action="store_true", help="leave the held-out part alone")
    parser.add_argument("--part", help="only this part, such as held-out or stranger-3")
    parser.add_argument("--file", type=Path, default=SAID, help="another file of utterances in the same form")
    parser.add_argument("--all", action="store_true", help="print the utterances with the right result, too")
    parser.add_argument("--counts", action="store_true", help="print only the counts")
    options = parser.parse_args()
    scores = dict[str, Score]()
    for each in utterances(options.file):
        if (options.tuned_only and each.part != "tuned") or options.part not in (None, each.part):
            continue
        with tempfile.TemporaryDirectory() as directory:
            found = keep(each.said, Path(directory).resolve())
        before = scores.get(each.part, Score())
        scores[each.part] = after = before.plus(each, found)
        mistake = any(now > then for now, then in zip(_mistakes(after), _mistakes(before), strict=True))
        if not options.counts and (options.all or mistake):
            got = ", ".join(f"{kept.type} {kept.name}{f' (why: {kept.why})' if kept.why else ''}" for kept in found) or "-"
            print(f"{each.part}\t{each.language}\twanted {each.keep} (why: {each.why})\tgot {got}\t{each.said!r}")
    for part, score in scores.items():
        print(f"{part}: {score}")


if __name__ == "__main__":
    main()
