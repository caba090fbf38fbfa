"""A browser visits the views of a Chinese page, unfolds them and changes things: it finds no English sentence that is not the user's."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import lamina
from lamina import Session
from lamina.core.settings import Settings
from lamina.layers.l6_dream.record import DreamRecord, SkippedChange, new_id, write_record
from lamina.memory.store.contract import ChangeReason
from lamina.web.safety import MOST_BODY

from . import patient
from .conftest import Watched
from .made_home import make_home
from .made_memories import make_dream, make_memories, make_proposals, open_memory, project_of
from .serving import serving
from .test_memories import place

pytestmark = pytest.mark.exhaustive


# What a browser shows of a page, or reads out: texts, and the attributes with words.
SHOWN = """() => {
  const found = [document.title], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) if (!walk.currentNode.parentElement.closest('script, style, noscript')) found.push(walk.currentNode.data);
  for (const one of document.querySelectorAll('*'))
    for (const name of ['aria-label', 'aria-valuetext', 'title', 'placeholder', 'alt'])
      if (one.hasAttribute(name)) found.push(one.getAttribute(name));
  return found;
}"""
# Views that others do not link to, or link to only with data of their own.
STARTS = (
    *(
        "/",
        "/sessions",
        "/memories",
        "/dreams",
        "/replay",
        "/settings",
        "/nowhere",
        "/search?q=rounded",
        "/search?q=zzz",
        "/memories/new",
    ),
    *(
        "/memories/trash",
        "/memories/duplicates",
        "/memories/forget?subject=staging",
        "/memories?q=deploy+staging",
        "/memories?q=zzz",
    ),
    *(
        "/sessions?q=zzz",
        "/dreams/nowhere/nothing",
        "/replay/nothing",
        "/memories/nowhere/nothing.md",
        "/sessions/lamina/nothing",
    ),
)
# Three words in a row, with a space between them: no path, no key of a setting, no list of values.
SENTENCE = re.compile(r"(?<![\w/.-])[A-Za-z][a-z'’-]*(?:[,;:.]? [(“`]?[A-Za-z][a-z'’-]*[)”`]?){2,}(?![\w/])")
# English that a Chinese page shows for a reason: words that were sent to a model, names of values, keys of the keyboard.
ENGLISH = (
    r"An old tool result stood here; it was cleared to sav.*|The beginning of this conversation is not shown",  # sent to the model
    r"private, team, \w+.*|[\w-]+(?:, [\w-]+){2,}",  # values of settings, tools
    r"o s m d r",  # keys
    r"you corrected the region|the page it names is gone",  # reasons that tests gave
)


# A block's title begins with the name of its tool.
TOOLS = frozenset({"bash", "read", "grep", "edit", "webfetch", "run"})
# Fields of a session's records that hold our own words: why a memory was recalled, and why a decision was made.
OURS = frozenset({"receipt", "reason", "why", "because"})


def words_of_the_user(root: Path) -> str:
    """Return the words in the sessions and memories of a home, and in the files of its projects, one space between them."""
    texts: list[str] = []

    def keep(value: object) -> None:
        match value:
            case str():
                texts.append(value)
            case dict():
                for name, each in value.items():
                    if name not in OURS:
                        keep(each)
            case list():
                for each in value:
                    keep(each)
            case _:
                pass

    for path in root.rglob("*"):
        if path.suffix == ".jsonl" and ".history" not in path.parts:
            for line in path.read_text("utf-8").splitlines():
                keep(json.loads(line))
        elif path.is_file() and (path.suffix in (".md", ".toml") or path.name == "Makefile"):
            texts.append(path.read_text("utf-8"))
        elif path.suffix == ".json" and ".inbox" in path.parts:
            proposal = json.loads(path.read_text("utf-8"))
            keep([proposal.get("name"), proposal.get("description"), proposal.get("body")])
    return plain(" ".join(texts))


def stored_sentences(root: Path) -> str:
    """Return our own sentences that the files of a home hold, in the plain form: why something was done, and the answers of a dream.

    A file keeps the English sentence of a `Text`, without its template. If the sentence has values, no catalogue can have it, so it is
    shown in English (docs/ui.md). One without values, which stands in the source as it is, is left out here: the page has to translate it.
    """
    source, kept = "".join(path.read_text("utf-8") for path in Path(lamina.__file__).parent.rglob("*.py")), list[str]()

    def keep(value: object, *, ours: bool = False) -> None:
        match value:
            case str() if ours and f'"{value}"' not in source:
                kept.append(plain(value))
            case dict():
                for name, each in value.items():
                    keep(each, ours=name in OURS)
            case list():
                for each in value:
                    keep(each, ours=ours)
            case _:
                pass

    for path in (root / ".lamina").rglob("*.jsonl"):
        for line in path.read_text("utf-8").splitlines():
            keep(json.loads(line))
    for path in (root / ".lamina").rglob("record.json"):
        record = json.loads(path.read_text("utf-8"))
        keep(record)
        keep([turn["text"] for turn in record.get("turns", ())], ours=True)
    return " | ".join(kept)


def plain(text: str) -> str:
    return re.sub(r"[^a-z]+", " ", text.lower()).strip()


def english_in(shown: Iterable[str], users: str) -> list[str]:
    """Return the English sentences that are neither the user's nor an exception."""
    return sorted({one for text in shown for one in SENTENCE.findall(text) if not _is_known(one, users)})


def _is_known(sentence: str, users: str) -> bool:
    """Whether a sentence is an exception, or the user's, maybe after the name of a tool."""
    name, _, rest = plain(sentence).partition(" ")
    mine = f"{name} {rest}" in users or (name in TOOLS and rest in users)
    return mine or any(re.fullmatch(form, sentence.strip()) for form in ENGLISH)


def own_session(root: Path) -> None:
    """A session of Lamina in which memories are recalled, results are stored, and a compaction is undone."""
    tools = [{"name": "run_tests", "description": "Run the tests.", "input_schema": {"type": "object", "properties": {}}}]
    common = {
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "usage": {"input_tokens": 5_000, "output_tokens": 9},
    }
    with Session("offline", cwd=project_of(root), home=root / ".lamina", tools=tools, settings=Settings()) as session:
        for number in range(3):
            session.add_user("How do I deploy to staging? Use the make target for deploys to staging.")
            session.before_call()
            call = {"type": "tool_use", "id": f"call-{number}", "name": "run_tests", "input": {}}
            session.after_call({**common, "id": f"a{number}", "content": [call], "stop_reason": "tool_use"})
            session.add_tool_result(f"call-{number}", "FAILED test_tax\n" * 9_000)
            session.before_call()
            done = [{"type": "text", "text": "Done."}]
            session.after_call({**common, "id": f"b{number}", "content": done, "stop_reason": "end_turn"})
            session.end_turn()
            if number == 1:
                session.compact()
        session.undo()


def with_reasons(root: Path) -> None:
    """A home whose views tell why: of recalls, blocks, decisions, dreams, proposals, evidence, and of what can't be read."""
    make_home(root, others=2)
    make_memories(root)
    own_session(root)
    make_proposals(root)
    make_dream(root)
    own = {"budgetCalls": "many", "budgetCals": 3, "zzz": 1, "extraGuidelines": [], "micro": {"clearable": [1]}}
    mistakes = {"lamina": own, "bare": True, "permissions": {"allow": [1]}, "hooks": {"X": [1]}, "env": {"LAMINA_HOME": "x"}}
    (root / ".lamina" / "settings.json").write_text(json.dumps(mistakes), "utf-8")
    loop = root / ".codex" / "sessions"
    loop.parent.mkdir()
    loop.symlink_to(loop)
    (project_of(root) / "config" / "staging.toml").unlink()
    with open_memory(root) as memory:
        store = memory.store("private").store.root
        failed = "Anthropic rejected the API key or account (401): XYZ. Check the key and its permissions."
        left = SkippedChange("a.md", "was changed by someone else while the dream ran; their version stays")
        for at, why in enumerate((failed, "/x: is larger than 9 MiB; check it by hand.", "the limit of 30 answers was reached")):
            write_record(
                store, DreamRecord(new_id(9.0 + at), 9.0, 1, "hand", status="failed", ended=9.5, why=why, skipped=(left,))
            )
        for file, who, why in (
            ("pnpm-is-used.md", "agent", "the user asked for it"),
            ("npm-is-not.md", "agent", "found in the conversation (program output)"),
            ("lockfile.md", "extraction", "the user said: npm breaks the lockfile"),
        ):
            name, reason = file.removesuffix(".md"), ChangeReason(who, why)  # type: ignore[arg-type]
            memory.save(
                name, type="project", description="npm breaks the lockfile", body="npm\n", evidence=("/etc/passwd",), why=reason
            )


def shape_of(address: str) -> str:
    """Return the view of an address without what it shows: addresses of one shape are shown alike."""
    path, _, query = address.partition("#")[0].partition("?")
    path = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d{8}T[\w-]+|\d+", "N", path)
    path = re.sub(r"^(/memories|/dreams|/sessions)/[^/]+/[^/]+", r"\1/P/F", path)
    return f"{path}?{' '.join(sorted({part.partition('=')[0] for part in query.split('&')}))}"


def unfold(page: Page) -> None:
    """Open all that is folded, and wait until it is read."""
    while page.evaluate("() => [...document.querySelectorAll('details:not([open])')].map(one => one.open = true).length"):
        page.wait_for_function(
            "() => [...document.querySelectorAll('details[open][data-load]')].every(one => one.children.length > 1)"
        )
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def test_no_view_of_a_chinese_page_has_an_english_sentence(tmp_path: Path, watched: Watched) -> None:
    with_reasons(tmp_path)
    users, told, seen = f"{words_of_the_user(tmp_path)} | {stored_sentences(tmp_path)}", dict[str, str](), Counter[str]()
    with serving(tmp_path) as served:
        page = watched.page()
        page.goto(f"{served.link}&lang=zh")
        left = [*STARTS]
        while left:
            address = left.pop(0)
            seen[shape_of(address)] += 1
            if seen[shape_of(address)] > (1 if "?" in address else 3) or address.endswith("/report.html"):
                continue
            page.goto(f"{served.base}{address}")
            unfold(page)
            shown = page.evaluate(SHOWN)
            told |= dict.fromkeys(english_in(shown, users), address)
            links = page.evaluate("() => [...document.querySelectorAll('a[href^=\"/\"]')].map(one => one.getAttribute('href'))")
            left += [one for one in dict.fromkeys(links) if "lang=" not in one and "format=" not in one and one not in left]
        page.keyboard.press("?")
        told |= dict.fromkeys(english_in(page.evaluate(SHOWN), users), "the keys")
        watched.expect("status of 404")  # views that do not exist
    assert len(seen) > 25
    assert told == {}


# Forms that cannot be done, by the address they are sent to. A place is filled in.
REFUSED: tuple[tuple[str, dict[str, str]], ...] = (
    ("/changes/memories/new", {"name": ""}),
    ("/changes/memories/new", {"name": "Package manager", "body": "x"}),
    ("/changes/memories/new", {"name": "x", "type": "feedback"}),
    ("/changes/memories/new", {"name": "long", "body": "x" * 2_000_000}),
    ("/changes/memories/new", {"name": "here", "body": "x", "place": "nowhere"}),
    ("/changes/memories/edit", {"file": "nothing.md", "digest": "0", "body": "x"}),
    ("/changes/memories/edit", {"file": "../../x.md", "digest": "0", "body": "x"}),
    ("/changes/memories/edit", {"file": "package-manager.md", "digest": "0", "body": "x", "description": "x", "type": "project"}),
    ("/changes/memories/remove", {"file": "nothing.md", "digest": "0"}),
    ("/changes/memories/restore", {"file": "nothing.md", "version": "zzz", "digest": "0"}),
    ("/changes/memories/check", {"file": "nothing.md", "digest": "0"}),
    ("/changes/dreams/undo", {"dream": "20200101T0000-0000"}),
    ("/changes/dreams/undo", {"dream": "zzz"}),
    ("/changes/dreams/stop", {}),
    ("/changes/dreams/start", {"place": "nowhere"}),
    ("/changes/inbox/accept", {"ids": "zzz"}),
    ("/changes/inbox/refuse", {"ids": "zzz"}),
    ("/settings/set", {"key": "lamina.budgetCalls", "value": "many", "base": "null"}),
    ("/settings/set", {"key": "lamina.autocompactPercent", "value": "700", "base": "null"}),
    ("/settings/set", {"key": "lamina.policy", "value": "zzz", "base": "null"}),
    ("/settings/set", {"key": "lamina.memoryMode", "value": "zzz", "base": "null"}),
    ("/settings/set", {"key": "zzz", "value": "1", "base": "null"}),
    ("/settings/set", {"key": "lamina.budgetCalls", "value": "7", "base": "{"}),
    ("/settings/set", {"key": "lamina.budgetCalls", "value": "7", "base": "3"}),
    ("/changes/memories/forget", {"subject": "staging", "typed": "stag", "project": ""}),
    ("/changes/memories/forget", {"subject": "s", "typed": "s", "project": ""}),
    ("/changes/memories/forget", {"subject": "staging", "typed": "staging", "project": "", "digest": "0"}),
    ("/replay/start", {}),
    ("/replay/start", {"session": "zzz", "policy": "lean"}),
    ("/replay/nothing/stop", {}),
)


def test_what_a_chinese_page_answers_to_a_form_that_cannot_be_done_is_chinese(tmp_path: Path) -> None:
    make_memories(tmp_path)
    told = dict[str, str]()
    with serving(tmp_path) as served, serving(tmp_path, read_only=True) as looking:
        for at in (served, looking):
            headers = {"X-Lamina-Secret": at.keys.secret, "Accept-Language": "zh"}
            for address, fields in REFUSED:
                form = {"place": place(tmp_path), **fields}
                answer = patient.post(f"{at.base}{address}", json=form, headers=headers, cookies=at.cookies())
                assert answer.status_code in (400, 403, 409), (address, fields, answer.text)
                message = answer.json()["message"]
                assert re.search(r"[\u4e00-\u9fff]", message), message
                told |= dict.fromkeys(SENTENCE.findall(re.sub(r"<.*?>", " ", message + answer.json().get("html", ""))), message)
        for headers, content, sentence in (
            ({}, b"{}", "更改必须来自页面本身。请重新加载页面后再试。"),
            ({"X-Lamina-Secret": served.keys.secret}, b" " * (MOST_BODY + 1), "更改的内容过大。"),
            ({"X-Lamina-Secret": served.keys.secret}, b"{", "无法读取表单。请重新加载页面后再试。"),
        ):
            given = {**headers, "Accept-Language": "zh"}
            answer = patient.post(f"{served.base}/settings/set", content=content, headers=given, cookies=served.cookies())
            assert sentence in answer.text
    assert {one: message for one, message in told.items() if not _is_known(one, words_of_the_user(tmp_path))} == {}
