"""The settings: origins, locks, the budget, changes with undo and conflict, in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import expect

from lamina.core.policy import POLICIES
from lamina.core.settings import Settings
from lamina.web.settings_view import can_change

from . import patient
from .conftest import Watched
from .looks import bad_contrast, small_or_unnamed
from .serving import Served, environ_of, serving

# Each drives a browser; the frame, a session, memories and the inbox are in the README's run.
pytestmark = pytest.mark.exhaustive


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    home = tmp_path / ".lamina"
    home.mkdir()
    (home / "settings.json").write_text('{"theirs": 1, "lamina": {"notes": {"firstAt": 9000}}}', "utf-8")
    environ = {**environ_of(tmp_path), "LAMINA_SPILL": "0", "ANTHROPIC_API_KEY": "sk-secret-1"}
    with serving(tmp_path, environ=environ) as page:
        yield page


def get(served: Served, path: str = "/settings") -> httpx2.Response:
    return patient.get(served.base + path, cookies=served.cookies())


def post(served: Served, **fields: str) -> httpx2.Response:
    headers = {"X-Lamina-Secret": served.keys.secret}
    return patient.post(f"{served.base}/settings/set", json=fields, headers=headers, cookies=served.cookies())


def written(served: Served) -> dict[str, object]:
    assert served.site.home is not None
    found: dict[str, object] = json.loads((served.site.home / "settings.json").read_text("utf-8"))
    return found


@pytest.mark.spec("V1")
def test_every_setting_has_its_value_origin_and_meaning_and_secrets_stay_hidden(served: Served) -> None:
    rows = {row["key"]: row for row in get(served, "/settings?format=json").json()["settings"]}
    assert set(rows) == {row.key for row, _ in Settings()}
    assert (rows["lamina.notes.firstAt"]["value"], rows["lamina.notes.firstAt"]["source"]) == (9000, "user")
    assert rows["lamina.spill"]["source"] == "environment"
    shown = get(served).text
    assert "Set by the environment:" in shown
    assert "LAMINA_SPILL" in shown
    assert "sk-secret-1" not in shown + json.dumps(rows)
    assert "0 of 200 calls today" in shown
    assert 'lang="zh-CN"' in get(served, "/settings?lang=zh").text
    assert re.findall('<li id="(.*?)"', get(served, "/settings?q=FIRST+tokens&changed=1").text) == ["lamina.notes.firstAt"]
    assert "No setting matches." in get(served, "/settings?q=%3Cb%3E").text


@pytest.mark.spec("V6")
def test_a_switch_is_written_to_the_users_file_and_undone(watched: Watched, served: Served) -> None:
    page = watched.page()
    page.goto(served.link)
    page.goto(f"{served.base}/settings")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for width in (1_400, 360):
            page.set_viewport_size({"width": width, "height": 900})
            assert (bad_contrast(page), small_or_unnamed(page)) == ([], [])
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("link", name="Layer 1: tool results").click()
    below = page.evaluate("document.querySelector('.top').getBoundingClientRect().bottom")
    assert page.evaluate("document.getElementById('results').getBoundingClientRect().top") >= below
    row = page.locator('[id="lamina.recall"]')
    expect(row.locator(".value")).to_have_text("on")
    expect(row.get_by_role("switch", name="lamina.recall", checked=True)).to_be_visible()
    row.get_by_role("switch").focus()
    page.keyboard.press("Enter")
    expect(row.locator(".value")).to_have_text("off")
    expect(row.get_by_role("switch", checked=False)).to_be_focused()
    assert written(served) == {"theirs": 1, "lamina": {"notes": {"firstAt": 9000}, "recall": False}}
    page.click("#undo")
    expect(row.locator(".value")).to_have_text("on")
    assert written(served) == {"theirs": 1, "lamina": {"notes": {"firstAt": 9000}}}
    number = page.locator('[id="lamina.notes.firstAt"]')
    number.locator("input.val").fill("12000")
    number.get_by_role("button", name="Save").click()
    expect(number.locator(".value")).to_have_text("12,000")
    expect(page.locator('[id="lamina.spill"]')).to_contain_text("Locked")
    policy = page.locator('[id="lamina.policy"]')
    assert policy.get_by_role("combobox", name="lamina.policy").locator("option").all_inner_texts() == list(POLICIES)
    policy.get_by_role("combobox").select_option("thrifty")
    policy.get_by_role("button", name="Save").click()
    expect(policy.locator(".value")).to_have_text("thrifty")
    reach = page.locator('[id="lamina.extractionEvery"]')
    expect(reach).to_contain_text("a whole number from 1 to 1,000")
    assert "1 to 1,000" in page.locator(f"[id='{reach.locator('input.val').get_attribute('aria-describedby')}']").inner_text()


def test_a_chinese_page_describes_settings_and_their_origin_in_chinese(served: Served) -> None:
    shown = get(served, "/settings?lang=zh").text
    for row, _ in Settings():
        assert row.help not in shown, row.key
        assert not can_change(row) or row.kind.says not in shown, row.key
    assert "策略 balanced" in shown
    assert "policy balanced" not in shown
    assert "词元" in shown
    assert post(served, key="lamina.compaction", base="null", value="false").status_code == 200
    shown = get(served, "/settings?lang=zh").text
    assert "compaction is off" not in shown
    assert "压缩已关闭" in shown


def test_a_bad_value_a_conflict_and_a_foreign_key_change_nothing(served: Served) -> None:
    before = written(served)
    bad = post(served, key="lamina.notes.firstAt", base="9000", value="many")
    assert bad.status_code == 400
    assert "lamina.notes.firstAt" in bad.json()["message"]
    conflict = post(served, key="lamina.notes.firstAt", base="7000", value="8000")
    assert conflict.status_code == 409
    assert "In the file: 9,000" in conflict.json()["html"]
    for key in ("hooks", "lamina.anthropicApiKey", "lamina.baseUrl", "nothing", "theirs", ""):
        assert post(served, key=key, base="null", value="x").status_code == 400, key
    assert post(served, key="lamina.recall", base="{", value="true").status_code == 400
    assert post(served, key="lamina.notes.firstAt", base="9000", raw='"many"').status_code == 400
    assert written(served) == before
    assert served.site.home is not None
    (served.site.home / "settings.json").write_text("{broken", "utf-8")
    assert post(served, key="lamina.recall", base="null", value="false").status_code == 400
    assert get(served).status_code == 200
    assert (served.site.home / "settings.json").read_text("utf-8") == "{broken"


def test_a_linked_settings_file_stays_a_link(tmp_path: Path) -> None:
    from lamina.disk.settings_write import ChangedSetting, set_user_setting, user_document, value_in

    real = tmp_path / "dotfiles" / "lamina.json"
    real.parent.mkdir()
    real.write_text("{}", "utf-8")
    (tmp_path / "settings.json").symlink_to(real)
    set_user_setting(tmp_path, "lamina.recall", False, expected=None)
    assert json.loads(real.read_text("utf-8")) == {"lamina": {"recall": False}}
    assert (tmp_path / "settings.json").is_symlink()
    assert value_in(user_document(tmp_path), "lamina.recall") is False
    with pytest.raises(ChangedSetting):
        set_user_setting(tmp_path, "lamina.recall", True, expected=None)
