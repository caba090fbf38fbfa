"""Whole memories that are not worth keeping, and memories that only resemble them. Words of our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lamina.language.excluded_kinds import ARCHITECTURE, find_excluded

BENCH = Path(__file__).parents[2] / "bench"
EXCLUDED = [
    ("Directory layout", "src/\n  api/ - HTTP handlers\n  db/ - models\ntests/ - pytest"),
    (
        "Project structure of the shop",
        "- `src/cart/`: the basket\n- `src/pay/`: payments\n- `web/`: the React app\n- `infra/`: Terraform",
    ),
    ("How the repository is organised", "├── cmd\n│   └── server\n├── internal\n└── pkg"),
    ("The architecture is hexagonal", "The architecture is hexagonal, with ports and adapters."),
    ("This week's PRs", "- #101 Add retry\n- #102 Fix the login\n- #103 Bump dependencies"),
    ("week's PRs", "101, 102, 103"),
    ("PRs merged this week: 101, 102, 103", "PRs merged this week: 101, 102, 103"),
    ("Recent changes", "- 1a2b3c4 rename the client\n- 9f8e7d6 drop Python 3.9\n- 77aa88b add a cache"),
    ("Fixed the login bug", "The token refresh compared the wrong clock. Fixed by using the server's time in auth.py."),
    ("Bug fix: duplicate mails", "Two workers took the same row. The fix was a unique index."),
    ("Root cause of the crash in checkout", "The root cause was a nil map; we fixed it by making the map in the constructor."),
    ("Current task", "We are halfway through the migration: 3 of 7 services are done."),
    ("Progress of the importer", "Done: parser, lexer. Next: the writer. TODO: tests."),
    ("ログイン画面は終わった、次は検索のテストを書く", "ログイン画面は終わった、次は検索のテストを書く"),
    ("登录页做完了，接下来写搜索", "登录页做完了，接下来写搜索"),
    ("로그인 화면은 끝났고 다음은 검색", "로그인 화면은 끝났고 다음은 검색"),
    ("Der Login ist fertig, als nächstes die Suche", "Der Login ist fertig, als nächstes die Suche"),
    ("La connexion est terminée, ensuite la recherche", "La connexion est terminée, ensuite la recherche"),
    ("El acceso está terminado, ahora toca la búsqueda", "El acceso está terminado, ahora toca la búsqueda"),
    ("Next steps", "1. write the tests\n2. update the docs\n3. open the PR"),
    ("CLAUDE.md says to use tabs", "CLAUDE.md says to use tabs and to run make lint."),
    ("目录结构", "src/ 放源代码\ntests/ 放测试\ndocs/ 放文档"),
    ("本周的 PR", "#12 加重试\n#14 修登录\n#15 升级依赖"),
    ("Verzeichnisstruktur des Projekts", "src/ enthält den Code, tests/ die Tests, docs/ die Doku."),
    ("Folder structure", "app/models - tables\napp/views - pages\napp/jobs - background work\nconfig - settings"),
    ("Code organization", "The code is split into three modules: ingest/, query/ and admin/."),
    (
        "Module layout of the backend",
        "backend/auth/ handles login; backend/billing/ handles invoices; backend/core/ has the shared code.",
    ),
    ("Merged pull requests of the sprint", "* PR 881: dark theme\n* PR 884: faster search\n* PR 890: export to CSV"),
    ("Open tickets", "PAY-12 refund screen, PAY-15 double mails, PAY-19 wrong VAT"),
    ("Changelog of last week", "- add OAuth (#55)\n- remove the old API (#58)"),
    ("Fix for the flaky test", "The test waited for the wrong event. Solved by waiting for 'ready'."),
    ("Solution for the timeout error", "The error was resolved by raising the pool size to 20 in db.py."),
    ("What we changed today", "Renamed User to Account in commit 3fe21ab and c0ffee1."),
    ("Status: refactoring", "Refactoring of the parser is half done, lexer is next."),
    ("To-do list for the release", "- tag v2\n- publish the notes\n- tell support"),
    ("Where I stopped", "I was editing checkout.ts line 40 and still have to handle refunds."),
    ("AGENTS.md states that commits need a ticket", "AGENTS.md states that commits need a ticket."),
    ("プロジェクトのディレクトリ構成", "src/ ソース\ntests/ テスト\ndocs/ 文書"),
    ("今週のPR", "#201 ログイン修正\n#202 検索を高速化"),
    ("Les PR de la semaine", "- #31 thème sombre\n- #32 recherche"),
    ("Estructura de carpetas", "src/ código\ntests/ pruebas\ndocs/ documentación"),
    ("이번 주 PR", "#7 검색\n#8 로그인"),
    ("Der Fehler beim Login wurde behoben", "Der Fehler wurde durch ein Update der Bibliothek behoben."),
    ("修复登录问题", "登录问题通过升级库修复了。"),
    ("Source tree", "cmd/api — the server\ncmd/worker — jobs\npkg/store — the database"),
    ("Package structure", "com.acme.order holds orders, com.acme.invoice holds invoices."),
    ("Monorepo overview", "- apps/web\n- apps/admin\n- packages/ui\n- packages/config"),
    ("Tickets closed in sprint 14", "SHOP-101, SHOP-104, SHOP-110"),
    ("Commits since Monday", "abc1234 fix typo\ndef5678 add test"),
    ("Hotfix: null pointer in cart", "Added a null check in Cart.java."),
    ("How we solved the memory leak", "We solved the leak by closing the cursor."),
    ("The deadlock was fixed by ordering the locks", "The deadlock was fixed by ordering the locks."),
    ("Working on the invoice export", "I am working on the invoice export; two tests still fail."),
    ("Pending work", "We still need to migrate the users table."),
    ("Step 3 of 5 is done", "Step 3 of 5 is done."),
    ("What AGENTS.md says", "AGENTS.md says to run make check."),
    ("当前任务", "正在改登录页，还差两个测试"),
    ("Aktueller Stand", "Wir sind gerade dabei, den Export umzubauen."),
    ("最近的提交", "1a2b3c4 修登录\n2b3c4d5 升级依赖"),
]
KEPT = [
    ("Releases are cut on Thursdays", "See RELEASING.md. The release manager rotates."),
    ("PR descriptions name the ticket", "A PR without a ticket such as PAY-12 is not merged."),
    ("Fixes for customers go through support first", "Support confirms the fix with the customer."),
    ("Project structure is decided by Ilse", "Ask Ilse before adding a package."),
    ("The status page is at status.acme.io", "Update it within ten minutes of an incident."),
    ("Two reviewers for changes of the billing code", "Agreed after the March incident (#812)."),
    ("Commits are signed", "Commits are signed with a hardware key since the audit."),
    ("The user prefers small commits", "Small commits, one idea each."),
    ("Merge requests are squashed", "Merge requests are squashed before they are merged."),
    ("Progress reports go to Anna on Fridays", "Anna collects progress reports for the board."),
    ("Next release is on 2026-03-15", "Freeze on 2026-03-10."),
    ("Feature branches live at most three days", "Longer ones are split."),
]


@pytest.mark.spec("S8")
@pytest.mark.parametrize(("description", "body"), EXCLUDED)
def test_a_memory_that_can_be_looked_up_is_recognized(description: str, body: str) -> None:
    kind = find_excluded(description, body)
    assert kind is not None
    assert (find_excluded(description, body, architecture=False) is None) == (kind in ARCHITECTURE)


@pytest.mark.spec("S8")
@pytest.mark.parametrize(("description", "body"), KEPT)
def test_a_memory_that_resembles_such_a_list_is_kept(description: str, body: str) -> None:
    assert find_excluded(description, body) is None


@pytest.mark.spec("S8")
def test_no_memory_of_the_benches_is_held_back() -> None:
    files = [json.loads((BENCH / name).read_text("utf-8"))["memories"] for name in ("recall_corpus.json", "find_corpus.json")]
    stores = json.loads((BENCH / "silence_corpus.json").read_text("utf-8"))["stores"]
    memories = [memory for found in (*files, *(store["memories"] for store in stores)) for memory in found]
    assert len(memories) > 400
    assert [memory["name"] for memory in memories if find_excluded(memory["description"], memory["body"])] == []
