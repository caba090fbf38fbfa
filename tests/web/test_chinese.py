"""Chinese pages have no English sentences, also where the sentence is written in a lower package."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.layers.l6_dream.record import DreamRecord, new_id, write_record

from . import patient
from .made_home import WINDOW_SESSION, make_home
from .made_memories import make_memories, open_memory
from .serving import Served, serving
from .test_memories import place

# Each drives a browser; the frame, a session, memories and the inbox are in the README's run.
pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("home")
    make_home(root)
    with serving(root) as page:
        yield page


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
