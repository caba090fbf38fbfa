"""What the local rules keep of fifty turns, and what they should have kept: precision and recall (layer 5, offline).

    python bench/extract.py

The corpus is our own: short turns in five languages, sixteen of which say something worth keeping. The rules were written looking at
the first half; the second half was not looked at while they were changed. Each turn runs through an agent with the offline provider, so
what counts is what lies in memory afterwards, permission checks and guard included.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lamina.agent.agent import Agent
from lamina.memory.memory import Memory
from lamina.providers.offline import DEFAULT_TABLE, OfflineProvider
from lamina.session.provider import offline


class Turn(NamedTuple):
    """`keep`: the type of the memory that should come of it; empty: none should."""

    said: str
    keep: str = ""
    answer: str = "Done."  # of a turn before it, which an approval is about


FIRST_HALF = (
    Turn("I'm a data engineer, mostly Airflow and Spark, and I'm new to Rust.", "user"),
    Turn("Rename the variable x to count in calc.py."),
    Turn("No, never commit directly to main. Open a branch, even for one line.", "feedback"),
    Turn("Why does this test fail?"),
    Turn("The parser never returns when the input is empty, please fix that."),
    Turn("We freeze merges on Thursday because the mobile team cuts a release branch.", "project"),
    Turn("For now just skip the flaky test."),
    Turn("Our pipeline bugs are tracked in Linear, in the board called INGEST.", "reference"),
    Turn("Fetch https://example.org/data.csv and count the rows."),
    Turn("我是后端工程师，前端不太懂，请解释得详细一点。", "user"),
    Turn("把这个函数改成异步的。"),
    Turn("以后提交信息一律用英文写。", "feedback"),
    Turn("这个报错是什么意思？"),
    Turn("テストを実行して、結果を教えて。"),
    Turn("今後は、コミットする前に必ずテストを実行してください。", "feedback"),
    Turn("この関数の名前を変えてください。"),
    Turn("이 함수를 두 개로 나눠 줘."),
    Turn("앞으로는 답변을 짧게 해 주세요.", "feedback"),
    Turn("Bitte benenne die Datei um."),
    Turn("Was macht diese Funktion?"),
    Turn("The fix for the crash is to close the file in a finally block."),
    Turn("I'm a bit confused by this error, can you explain it?"),
    Turn("Looks good, thanks."),
    Turn("The config lives in src/app/config.py."),
    Turn("Don't touch the tests in this commit."),
)
SECOND_HALF = (
    Turn(
        "Perfect, keep doing that.", "feedback", "I put the whole refactoring into one pull request instead of five small ones."
    ),
    Turn("Ship it."),
    Turn("ok"),
    Turn("I prefer tabs over spaces, everywhere.", "feedback"),
    Turn("Please add a docstring to every function."),
    Turn("The build is broken on my machine, it always prints 'missing header'."),
    Turn("Ich bin Physikerin und programmiere seit zehn Jahren in Fortran.", "user"),
    Turn("Ab jetzt bitte keine Abkürzungen in Variablennamen.", "feedback"),
    Turn("Lies die Datei README.md und fasse sie zusammen."),
    Turn("下周五上线，之前不要合并大的改动。", "project"),
    Turn("运行一下测试。"),
    Turn("监控面板在 https://grafana.example.org/d/abc 上看。", "reference"),
    Turn("帮我看一下这个文件有多少行。"),
    Turn("私は機械学習の研究者です。", "user"),
    Turn("エラーが出ました。"),
    Turn("来週の月曜日にデモがあるので、動くものを優先してください。", "project"),
    Turn("오류 메시지를 읽어 줘."),
    Turn("테스트가 실패했어요."),
    Turn("Could you check whether the server is running?"),
    Turn("This function should never be called with None."),
    Turn("Use a dictionary here."),
    Turn("I think we could try another approach, maybe a queue."),
    Turn("The last commit was made by Anna on Friday."),
    Turn("def add(a, b): return a + b  # always return the sum"),
    Turn("Revert that."),
)


class Score(NamedTuple):
    kept: int = 0  # as it should be
    wrong: int = 0  # kept, and should not have been, or with another type
    missed: int = 0

    @property
    def precision(self) -> float:
        return self.kept / (self.kept + self.wrong) if self.kept + self.wrong else 1.0

    @property
    def recall(self) -> float:
        return self.kept / (self.kept + self.missed) if self.kept + self.missed else 1.0

    def __str__(self) -> str:
        figures = f"precision {self.precision:.0%}, recall {self.recall:.0%}"
        return f"{figures} ({self.kept} kept, {self.wrong} wrongly, {self.missed} missed)"


def kept_of(turn: Turn, home: Path) -> list[str]:
    """The types of what a conversation of this turn leaves in memory."""
    project = home / "project"
    project.mkdir(parents=True)
    said = iter((turn.answer, "Fine."))
    chat = OfflineProvider({**DEFAULT_TABLE, "chat": lambda _: [{"type": "text", "text": next(said)}]})
    provider = offline(chat.table)
    with Agent.open(provider, cwd=project, home=home / "lamina", mode="all", interactive=True) as agent:
        agent.run("Go on with the task.")
        agent.run(turn.said)
    with Memory.open(project, home=home / "lamina") as memory:
        return [str(topic.type) for topic in memory.topics()]


def score(turns: Sequence[Turn], *, tell: bool) -> Score:
    total = Score()
    for turn in turns:
        with tempfile.TemporaryDirectory() as directory:
            found = kept_of(turn, Path(directory).resolve())
        right = turn.keep in found
        wrong = len(found) - right
        total = Score(total.kept + right, total.wrong + wrong, total.missed + (bool(turn.keep) and not right))
        if tell and (wrong or (turn.keep and not right)):
            print(f"  wanted {turn.keep or 'nothing'}, got {', '.join(found) or 'nothing'}: {turn.said}")
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first-only", action="store_true", help="only the half the rules were written with")
    parser.add_argument("--json", action="store_true", dest="as_json")
    wanted = parser.parse_args()
    halves = {"first": FIRST_HALF} | ({} if wanted.first_only else {"second, held out": SECOND_HALF})
    found = {name: score(turns, tell=not wanted.as_json) for name, turns in halves.items()}
    if wanted.as_json:
        print(
            json.dumps({name: {**one._asdict(), "precision": one.precision, "recall": one.recall} for name, one in found.items()})
        )
        return
    for name, one in found.items():
        print(f"{name}: {one}")


if __name__ == "__main__":
    main()
