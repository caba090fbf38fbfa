"""Adding a rule: the rest of the file stays, a file that can't be read is left alone, a tree can't lead the write elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.errors import PathRefused, SettingError
from lamina.disk.home.trust import trust, trusted
from lamina.disk.settings_files import load_settings
from lamina.disk.settings_write import add_local_rule, with_rule


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".lamina"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


def local(project: Path) -> Path:
    return project / ".claude" / "settings.local.json"


def test_a_rule_is_added_once_to_a_file_that_is_made_where_there_is_none(home: Path, project: Path) -> None:
    assert add_local_rule(home, project, "Bash(npm test)")
    assert add_local_rule(home, project, "Bash(npm test)")
    assert add_local_rule(home, project, "Edit")
    assert json.loads(local(project).read_text()) == {"permissions": {"allow": ["Bash(npm test)", "Edit"]}}


def test_everything_else_stays_as_it_is(home: Path, project: Path) -> None:
    local(project).parent.mkdir()
    text = """{
\t"zebra": 2.5,
\t"permissions": {
\t\t"allow": [
\t\t\t"Edit"
\t\t],
\t\t"later": "ünknown"
\t},
\t"alpha": null
}
"""
    local(project).write_text(text, "utf-8")
    add_local_rule(home, project, "Bash(ls)")
    assert local(project).read_text("utf-8") == text.replace('"Edit"', '"Edit",\n\t\t\t"Bash(ls)"')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text().filter(lambda key: key != "permissions"), JSON, max_size=4))
def test_no_value_is_lost_or_moved(data: dict[str, Any]) -> None:
    new = with_rule(json.dumps(data).encode(), "Edit", "f")
    assert new is not None
    found = json.loads(new)
    assert found.pop("permissions") == {"allow": ["Edit"]}
    assert list(found.items()) == list(data.items())


def test_half_a_surrogate_pair_survives() -> None:
    new = with_rule(b'{"a": "\\ud800"}', "Edit", "f")
    assert new is not None
    assert json.loads(new)["a"] == "\ud800"


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'{"a": 1, "a": 2}',
        b'{"permissions": 7}',
        b'{"permissions": {"allow": "Edit"}}',
        b"\xff",
        b'{"a": 1e999}',
        b"// x\n{}",
        b"[" * 200_000,
        b" " * 1_000_001,
    ],
    ids=lambda content: repr(content[:20]),
)
def test_a_file_that_cannot_be_written_back_is_left_alone(content: bytes, home: Path, project: Path) -> None:
    local(project).parent.mkdir()
    local(project).write_bytes(content)
    with pytest.raises(SettingError, match=r"settings\.local\.json"):
        add_local_rule(home, project, "Edit")
    assert local(project).read_bytes() == content


@pytest.mark.spec("F2")
def test_a_rule_in_a_tree_that_had_nothing_to_trust_counts_at_once(home: Path, project: Path) -> None:
    assert add_local_rule(home, project, "Bash(npm test)")
    assert trusted(home, project)
    loaded = load_settings(cwd=project, environ={}, home=home, trusted=trusted(home, project))
    assert loaded.permissions.allow == ("Bash(npm test)",)
    assert [path.name for path in (project / ".claude").iterdir()] == ["settings.local.json"]


@pytest.mark.spec("F2")
def test_a_rule_in_a_tree_that_is_not_trusted_waits_with_the_rest(home: Path, project: Path) -> None:
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_text('{"permissions": {"allow": ["Bash"]}}')
    assert not add_local_rule(home, project, "Bash(npm test)")
    assert not trusted(home, project)
    assert "npm test" in local(project).read_text()


def test_a_trusted_tree_stays_trusted_when_the_person_adds_to_it(home: Path, project: Path) -> None:
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_text('{"permissions": {"allow": ["Edit"]}}')
    trust(home, project)
    assert add_local_rule(home, project, "Bash(npm test)")
    assert add_local_rule(home, project, "Bash(npm test)")
    assert trusted(home, project)


@pytest.mark.parametrize("planted", ["file", "directory"])
def test_a_tree_cannot_lead_the_write_elsewhere(planted: str, home: Path, project: Path, tmp_path: Path) -> None:
    target = tmp_path / "victim"
    target.mkdir()
    (target / "settings.local.json").write_text("{}")
    if planted == "file":
        (project / ".claude").mkdir()
        local(project).symlink_to(target / "settings.local.json")
    else:
        (project / ".claude").symlink_to(target)
    with pytest.raises(PathRefused):
        add_local_rule(home, project, "Bash")
    assert (target / "settings.local.json").read_text() == "{}"
    assert not trusted(home, project)
