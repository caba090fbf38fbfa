"""Facts planted in a conversation: where they are after a compaction.

    python bench/coverage.py [--facts 60] [--tokens 63000] [--json]

A history of about --tokens tokens is made, one fact in each of its rounds, by turns in what the person said, in an answer, in a tool's
result and in a call's arguments. It is compacted once. Then each fact is looked for: in the next request; else by one call of a tool that a
model could make from what it knows, the fact's subject, through the agent's own desk and its permissions: Expand with `find` under the id
the summary names, or Grep on the transcript it names. What neither finds is lost.

No model takes part. The summariser is one of three: `rules` (the offline function), `none` (8,000 characters that hold no fact: the worst a
model can do), `all` (every fact it was shown: the best). Beside it, computed from the same history: the newest 20 messages alone, which
is what SummarizationMiddleware's defaults left in four of five compactions.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from beside import BY_RULES, Beside, answer, in_form, says_nothing

from lamina.agent.agent import Agent
from lamina.core.blocks import ToolUse, read_block
from lamina.core.settings import Settings
from lamina.session.session import Session
from lamina.tools.registry import builtin_tools
from lamina.tools.tool import definition

# Below an effective window of 180,000 tokens a policy's tail and budgets shrink in proportion, so that what is left stays under 25,000.
WINDOWS = {"classic": 200_000, "lean": 100_000}
LANGCHAIN_KEEPS = 20
KINDS = ("said", "answered", "result", "argument")
BIRDS = ("osprey", "heron", "plover", "dunlin", "avocet", "bittern", "curlew", "siskin", "wigeon", "garganey")
PARTS = ("ledger", "router", "parser", "sampler", "indexer", "gateway")
# Ordinary words of a terminal, a hundred characters or so a line, none of which says anything about a fact.
FILLER = "step {number:05d} ok: module compiled, cache warm, nothing to report, moving on to the next unit of the batch\n"
# What is said of a thing, in four forms; the last has no number in it.
FORMS = (
    "The quota of the {subject} is {number} units.",
    "The {subject} listens on port {number}.",
    "The ticket for the {subject} is LAM-{number}.",
    "The keeper of the {subject} is called {name}.",
)
NAMES = ("Marlow", "Quill", "Tamsin", "Orrin", "Petra", "Wendel", "Sable", "Ione")
_NODE = re.compile(r"This compaction is ([0-9a-f-]{36})")


class Fact(NamedTuple):
    kind: str
    subject: str
    sentence: str


class Found(NamedTuple):
    context: int
    one_call: int
    lost: int


def all_facts(request: dict[str, Any]) -> list[dict[str, Any]]:
    shown = json.dumps(request["messages"])
    return in_form("\n".join(fact.sentence for fact in planted(len(BIRDS) * len(PARTS)) if fact.sentence in shown))


SUMMARISERS = {"rules": BY_RULES["summary"], "none": says_nothing, "all": all_facts}


def planted(count: int) -> list[Fact]:
    subjects = [f"{bird} {part}" for part in PARTS for bird in BIRDS]
    found = []
    for at, subject in enumerate(subjects[:count]):
        # Every form comes in every place.
        form = FORMS[at // len(KINDS) % len(FORMS)]
        said = form.format(subject=subject, number=4_000 + 37 * at, name=NAMES[at % len(NAMES)])
        found.append(Fact(KINDS[at % len(KINDS)], subject, said))
    return found


def play(session: Session, facts: list[Fact], tokens: int) -> list[str]:
    """The rounds, two messages each: a result leaves with what is said next. The texts, for the systems beside."""
    lines = tokens * 4 // len(FILLER) // len(facts)
    messages: list[str] = []
    for at, fact in enumerate(facts):
        held = {kind: fact.sentence if kind == fact.kind else "" for kind in KINDS}
        # A fact stands in the middle: the ends of a long text are what a rule would keep.
        filler = [FILLER.format(number=at * lines + line) for line in range(lines)]
        middle = "".join([*filler[: lines // 2], f"{held['result']}\n", *filler[lines // 2 :]])
        asked = f"Please look at unit {at} next. {held['said']}"
        call = {"file_path": f"/work/unit_{at}/notes.txt", "content": f"unit {at}\n{held['argument']}\n"}
        use = {"type": "tool_use", "id": f"call_{at}", "name": "Write", "input": call}
        said = {"type": "text", "text": f"Unit {at} is next. {held['answered']} I write it down and go on."}
        session.add_user(asked)
        session.after_call(answer(f"msg_{at}", [said, use]))
        session.add_tool_result(f"call_{at}", middle)
        messages += [asked, json.dumps([said, use]) + middle]
    session.after_call(answer("end", [{"type": "text", "text": "All units are done."}]))
    return messages


def one_call(agent: Agent, summary: str, fact: Fact) -> bool:
    node = _NODE.search(summary)
    transcript = str(agent.session.path)
    calls = [use("Expand", node=node[1], find=fact.subject)] if node else []
    calls.append(use("Grep", pattern=fact.subject, path=transcript, output_mode="content"))
    return any(fact.sentence in agent.tool_runner.run((call,))[0].result.text for call in calls)


def use(name: str, **given: str) -> ToolUse:
    block = read_block({"type": "tool_use", "id": name, "name": name, "input": given})
    assert isinstance(block, ToolUse)
    return block


def measure(home: Path, policy: str, summariser: str, facts: list[Fact], tokens: int) -> dict[str, Any]:
    provider = Beside(summary=SUMMARISERS[summariser])
    settings = Settings(session_notes=False, notes_compaction=False)
    tools = [definition(tool) for tool in builtin_tools()]
    with Session(
        provider,
        home=home,
        cwd=home,
        policy=policy,
        window=WINDOWS[policy],
        settings=settings,
        tools=tools,
        instructions=False,
        memory=False,
    ) as session:
        messages = play(session, facts, tokens)
        agent = Agent(session, mode="ask")
        before = session.window_state.tokens
        session.compact()
        session.add_user("Go on.")
        sent = json.dumps(session.before_call()["messages"], ensure_ascii=False)
        kinds = {kind: [0, 0, 0] for kind in KINDS}
        for fact in facts:
            place = 0 if fact.sentence in sent else 1 if one_call(agent, sent, fact) else 2
            kinds[fact.kind][place] += 1
        newest = "\n".join(messages[-LANGCHAIN_KEEPS:])
        total = [sum(row[place] for row in kinds.values()) for place in range(3)]
        return {
            "policy": policy,
            "summariser": summariser,
            "before": before,
            "after": session.window_state.tokens,
            **Found(*total)._asdict(),
            "kinds": kinds,
            "newest_20_messages": sum(fact.sentence in newest for fact in facts),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=60)
    parser.add_argument("--tokens", type=int, default=63_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    facts, rows = planted(given.facts), []
    for policy in WINDOWS:
        for summariser in SUMMARISERS:
            with tempfile.TemporaryDirectory() as home:
                rows.append(measure(Path(home), policy, summariser, facts, given.tokens))
    if given.json:
        print(json.dumps(rows))
        return
    head = f"{'policy':<9}{'summariser':<12}{'tokens':>20}{'in context':>12}{'one call':>10}{'lost':>6}"
    print(f"{head}   in context / one call / lost, by place")
    for row in rows:
        places = "  ".join(f"{kind} {'/'.join(map(str, counts))}" for kind, counts in row["kinds"].items())
        size = f"{row['before']:,} → {row['after']:,}"
        print(
            f"{row['policy']:<9}{row['summariser']:<12}{size:>20}{row['context']:>12}{row['one_call']:>10}{row['lost']:>6}   {places}"
        )
    alone = rows[0]["newest_20_messages"]
    print(f"the newest {LANGCHAIN_KEEPS} messages alone: {alone} in context, {given.facts - alone} lost")


if __name__ == "__main__":
    main()
