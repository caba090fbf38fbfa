"""Chinese pages have no English sentences, also where the sentence is written in a lower package."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.history.window_decisions import WHY_CLEARED
from lamina.layers.l6_dream.record import DreamRecord, new_id, write_record
from lamina.web.words import Words

from . import patient
from .made_home import WINDOW_SESSION, make_home
from .made_memories import make_memories, open_memory
from .serving import Served, serving
from .test_memories import place

# Each drives a browser; the frame, a session, memories and the inbox are in the README's run.
pytestmark = pytest.mark.exhaustive

TOLD = (
    *(
        "message",
        "answer",
        "thinking",
        "inserted",
        "tool",
        "system",
        "memory",
        "summary",
        "image",
        "document",
        "call of {X}",
        "result of {X}",
    ),
    *(
        "a tool the model may call",
        "the system prompt",
        "inserted so that the API accepts the conversation",
        "written by the user",
    ),
    *("replaces the messages removed by compaction {1}", "replaces the messages removed by compaction {1} ({X})"),
    *(
        "replaces 1 record",
        "replaces 12 records",
        "replaces a range of messages",
        "inserted by a program",
        "written by the model",
    ),
    *("context added to the conversation ({X})", "written by the model; shortened (cold) by {1}", "cleared (size) by {1}"),
    "shown whole once; later requests show a preview, and the full text is in {X}",
    *("preview of a result that was shown once; the full text is in {X}", "preview of a large result; the full text is in {X}"),
    *("placeholder for a missing result", "result of a call in the view", "{X}, recalled ({X})"),
    "system prompt and tools; the transcript does not hold them",
    "context that the agent inserted; no record holds it",
    *("Compaction", "Went back", "Undid a decision", "Cleared 9 results", "Cleared 1 result", "Shortened 2 messages"),
    *("Collapsed 3 records", "Summarised 1 record", "Stored 2 results in files", "Model changed to {X}", "Before: {X}."),
    *("Cache break", "Cache break: {X}", "Cache expired after 7 minutes", "1,800 tokens came without a record"),
    *(*WHY_CLEARED.values(), " ".join(WHY_CLEARED.values()), "Automatic.", "Announced before the request."),
    *("The conversation continued from an earlier message.", "Decision {1} no longer applies.", "Automatic, {X}."),
    *(
        "1,234 bytes; the window shows a preview.",
        "The request has 1,800 tokens less than its records explain. No record says why.",
    ),
    *("recorded", "append", "append without notes", "recorded (not all finished)", "append without memory (not all finished)"),
    "2 sessions without reported usage, not counted in the row recorded.",
    "recorded: 1 cache break within five minutes without a cause in the transcript cost $1.20; this is taken out of the row, since "
    "no policy can prevent it.",
    *(
        "recorded: the calls for 2 summaries are not in the transcripts and estimated at $0.21.",
        "recorded: the calls for 1 summary are not in the transcripts and estimated.",
        "recorded: 2 cache breaks within five minutes without a cause in the transcript; this is taken out of the row, since no policy "
        "can prevent it.",
        "append without notes: 6 of 260 requests exceeded the context window.",
        "append: 6 of 260 requests exceeded the context window, so a provider would reject them.",
        "recorded: 1 layer failure.",
    ),
    "append: {X} ended early because the window was full; 3 calls not replayed. The session is not in the row's sum.",
    *(
        "append and 2 other rows: memory added 1,200 tokens (index and recall).",
        "recorded: memory added 1 token (index and recall).",
    ),
    "Some models have unknown prices: the cost lacks up to 7 calls.",
    "{X}: the same requests replayed cost 5% more. It is too short to be counted exactly.",
    "{X}: the same requests replayed cost 4% less. Request 1,005 read 2,000 tokens less from the cache than the one before had left there.",
    "{X}: the same requests replayed cost 7% more. Before request 12, about 3,000 tokens left the prompt, which the transcript does not "
    "record.",
    "{X}: the same requests replayed cost 4% less. Request 3 has about 9,000 tokens that are not in the transcript.",
    *("{X} skipped: 120,000 tokens of its first request are not in the file.", "{X} skipped: {X}"),
    "{X}: 1 line could not be read and was skipped ({X}). All other records are loaded.",
    *(
        "the last dream was 2 minutes ago; the next may run in 23 h 58 min",
        "only 1 of 5 sessions since the last dream",
        "3 failures in a row",
    ),
    "private memory is off: {X} is set; unset it",
    *("{X} has changed", "{X} no longer exists", "{X} is no longer in {X}", "dreaming is off", "there are no memories yet"),
    *("stopped on request", "its process ended early", "the limit of 30 answers was reached", "edited on the page"),
    *("tidied; you wrote it", "merged into {X}; depends on a change that needs approval", "undid the change of {X} by dream {1}"),
    "the dream would remove or empty 4 of 9 memories (dreams of the last day removed 2); the limit without approval is 3",
    *(
        "{X}, recalled (name: {X}; description: {X}; text: {X})",
        "{X}, recalled (similar in meaning)",
        "{X}, recalled (chosen by {X})",
    ),
    "Automatic, by price: reading the older messages again cost 9,000 input tokens since the last compaction, and a compaction costs "
    "8,000.",
    "replaces the messages removed by compaction {1} (by price: reading the older messages again cost 9,000 input tokens since the last "
    "compaction, and a compaction costs 8,000)",
    *("You", "the user said: {X}", "the user asked for it", "found worth keeping", "found in the conversation ({X})"),
    *(
        "{X} is not a path in the project",
        "{X} can't be read (permission denied)",
        "{X} is larger than 4 MB",
        "{X} leads out of the project",
    ),
    *(
        "sessions were counted 3 minutes ago (the minimum is 10)",
        "ephemeral machine",
        "{X} could not be read: permission denied.",
    ),
    *("Memory was tidied by rules (1 memory merged, 2 relative dates made absolute).", "{X} failed (500): {X}. Try again later."),
    *(
        "could not be read, and may contain it: not a directory",
        "was written by {X}, and Lamina does not change it; searches still find it there",
    ),
    "12 tokens of the previous request were not read from the cache. No record says why.",
    "12 tokens of the previous request were not read from the cache. The entry lives 5 minutes, and the pause was 2 hours.",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("home")
    make_home(root)
    with serving(root) as page:
        yield page


def test_a_sentence_of_a_lower_package_has_a_chinese_form() -> None:
    for shape in TOLD:
        sentence = shape.replace("{X}", "XYZ").replace("{1}", "p-0a1b-d")
        found = Words("zh").told(sentence)
        assert re.search(r"[\u4e00-\u9fff]", found), found
        assert not re.search(r"[A-Za-z]{3,}", found.replace("XYZ", "").replace("API", "").replace("Lamina", "")), found
        for part in ("XYZ", "p-0a1b-d", *re.findall(r"[\d,]*\d", sentence)):
            assert (part in sentence) == (part in found), found
        assert Words("en").told(sentence) == sentence
    assert Words("zh").told("Nobody wrote this sentence.") == "Nobody wrote this sentence."


def test_reasons_and_errors_of_a_chinese_page_are_told_in_chinese(tmp_path: Path) -> None:
    make_memories(tmp_path)
    with serving(tmp_path) as page:

        def change(path: str, **fields: str) -> str:
            headers = {"X-Lamina-Secret": page.keys.secret, "Accept-Language": "zh"}
            fields = {"place": place(tmp_path), **fields}
            answer = patient.post(f"{page.base}/changes/{path}", json=fields, headers=headers, cookies=page.cookies())
            return str(answer.json()["message"])

        def view(path: str) -> str:
            return patient.get(f"{page.base}{path}?lang=zh", cookies=page.cookies()).text

        assert change("memories/new", name="") == "名称：记忆需要名称；请用几个词命名，例如 testing-db。"
        assert change("memories/new", name="Package manager", body="x") == "Package manager：已经存在；请打开并编辑它。"
        gone = "整理 20200101T0000-0000：找不到（保留最近 5 次整理）；运行 `lamina dream --status` 可查看保留的整理。"
        assert change("dreams/undo", dream="20200101T0000-0000") == gone
        with open_memory(tmp_path) as memory:
            digest = memory.digest("package-manager.md")
            root = memory.store("private").store.root
            record = DreamRecord(new_id(1.0), 1.0, 1, "hand", status="killed", ended=2.0, why="stopped on request")
            write_record(root, record)
        change("memories/edit", file="package-manager.md", digest=digest, type="project", description="pnpm", body="pnpm 9")
        assert "在页面上编辑" in view(f"/memories/{place(tmp_path)}/package-manager.md")
        for path in ("/dreams", f"/dreams/{place(tmp_path)}/{record.id}"):
            assert "按要求停止" in view(path)


def test_blocks_and_decisions_of_a_chinese_page_are_told_in_chinese(served: Served) -> None:
    address, seen = f"{served.base}/sessions/claude-code/{WINDOW_SESSION}", set[str]()
    count = len(patient.get(f"{address}?format=json", cookies=served.cookies()).json()["series"]["requests"])
    for number in range(1, count + 1):
        shown = patient.get(f"{address}/requests/{number}?lang=zh", cookies=served.cookies()).text
        shown = re.sub(r"<title>.*?</title>", "", shown)
        seen |= set(re.findall(r"<dd><bdi>(.*?)</bdi>|<h3>(.*?)</h3>|<p class=\"small\">(.*?)</p>", shown))
    told = {re.sub(r"<.*?>", "", part) for parts in seen for part in parts if part}
    assert len(told) > 5
    assert [one for one in told if not re.search(r"[\u4e00-\u9fff]", one) or re.search(r"[a-z]{3,} [a-z]{2,}", one)] == []


def test_a_replay_on_a_chinese_page_has_no_english_sentence(served: Served) -> None:
    job = served.site.replays.start(
        [one.path for one in served.site.sessions().top if one.id == WINDOW_SESSION], ["lean"], ["notes"]
    )
    while job.running:
        time.sleep(0.05)
    for address in (f"/replay/{job.id}", f"/replay/{job.id}/report.html"):
        shown = patient.get(f"{served.base}{address}?lang=zh", cookies=served.cookies()).text
        assert '<html lang="zh-CN">' in shown
        shown = re.sub(
            r"<bdi>Round orders.*?</bdi>|[Rr]ound orders[^<\"]*|<(script|style)[\s\S]*?</\1>|data-words=\"[^\"]*\"", "", shown
        )
        assert re.findall(r"[a-z]{3,} [a-z]{2,} [a-z]{2,}", re.sub(r"<[^<>]*>", "|", shown)) == []
        assert "录制" in shown
        assert "当地时间" in shown
