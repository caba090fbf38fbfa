"""The catalogue of translations: their form only. A missing translation shows English, and a release lists it."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "translations.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_a_translation_has_the_placeholders_of_its_template_and_is_used(script: dict[str, Any]) -> None:
    places, literals, entries = script["templates"](), script["literals"](), script["catalogue"]()
    assert len(places) > 500
    assert [template for template in entries if template not in literals] == [], "run python scripts/translations.py"
    assert script["other_placeholders"](entries) == []
    assert [text for text in entries.values() if not text or "|" in text or "##" in text] == []


def test_every_surface_addresses_the_user_in_the_same_form(script: dict[str, Any]) -> None:
    assert [text for text in script["catalogue"]().values() if "您" in text] == [], "use 你, as README.zh-CN.md does"


def test_both_forms_of_a_template_have_the_same_placeholders_or_the_plural_has_more(script: dict[str, Any]) -> None:
    def fields(template: str) -> set[str]:
        return {field for _, field, _, _ in Formatter().parse(template) if field}

    for template, place in script["templates"]().items():
        singular, bar, plural = template.partition("|")
        assert not bar or fields(plural) >= fields(singular), place
        assert all(re.fullmatch(r"[a-z_]+", field) for field in fields(template)), place


def test_a_template_with_a_meaning_is_a_text_so_that_the_meaning_is_not_shown() -> None:
    shown = []
    for path in (SCRIPT.parents[1] / "src").rglob("*.py"):
        calls = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
        for call in calls:
            plain = [one for given in call.args[:1] for one in (getattr(given, "body", given), getattr(given, "orelse", given))]
            named = getattr(call.func, "id", getattr(call.func, "attr", "")) == "words" and not call.keywords
            literals = {one.value for one in plain if named and isinstance(one, ast.Constant) and isinstance(one.value, str)}
            shown += [f"{path.name}: {literal}" for literal in literals if "##" in literal]
    assert shown == []
