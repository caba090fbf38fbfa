"""A home with something of every kind in it, all of it about one person."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from lamina.core.records import Spill
from lamina.core.settings import Settings
from lamina.disk.paths.project import slug
from lamina.maintenance.forget.forget import ForgetReport, forget, remains
from lamina.maintenance.forget.subject import Subject
from lamina.maintenance.kept_files import KeptFiles, kept_files
from lamina.memory.memory import Memory
from lamina.memory.store.contract import ChangeReason
from lamina.session.base import conversation_of
from lamina.session.session import Session

NAME = "Anna Lee"
COPIED = "She keeps her keys under the blue flower pot."


def answered(text: str, key: str = "m1") -> dict[str, object]:
    usage = {"input_tokens": 5, "output_tokens": 5}
    content = [{"type": "text", "text": text}]
    return {
        "id": key,
        "type": "message",
        "role": "assistant",
        "model": "x",
        "content": content,
        "stop_reason": "end_turn",
        "usage": usage,
    }


def called(name: str, given: dict[str, object]) -> dict[str, object]:
    content = [{"type": "tool_use", "id": "call-1", "name": name, "input": given}]
    return answered("", "m2") | {"content": content, "stop_reason": "tool_use"}


def make_session(home: Path, cwd: Path) -> Path:
    """A session with a tool call, a spilled result, notes and a summary of its own."""
    with Session("offline", home=home, cwd=cwd) as session:
        session.add_user(f"Who is {NAME}?\nAnd what is the weather?")
        session.before_call()
        session.after_call(called("Read", {"file_path": "/x/people.txt", "why": "anna\nlee"}))
        session.add_tool_result("call-1", f"Bob\n{NAME}, 7 River Road\nCarl")
        session.before_call()
        session.after_call(answered(f"I know:\n{COPIED}\nThat is all.", "m3"))
        path = session.path
        assert path is not None
        results = path.with_suffix("") / "tool-results"
        results.mkdir(parents=True, exist_ok=True)
        data = f"one\n{NAME}\nthree\n".encode()
        (results / "call-1.txt").write_bytes(data)
        uuid, parent, time = conversation_of(session).head()
        digest = hashlib.sha256(data).hexdigest()
        conversation_of(session).append(
            [Spill(uuid, parent, time, "call-1", "one…", str(results / "call-1.txt"), len(data), digest)]
        )
    notes = path.with_suffix("") / "session-memory"
    notes.mkdir(parents=True, exist_ok=True)
    (notes / "summary.md").write_text(f"# Task\n\nFind a house.\n\n# People\n\n- {NAME}: 7 River Road\n- Bob\n")
    return path


def make_memory(home: Path, cwd: Path, settings: Settings | None = None) -> Path:
    with Memory.open(cwd, home=home, settings=settings or Settings()) as memory:
        memory.save("anna-lee", type="user", description="Who Anna is", body=f"{COPIED}\nShort.")
        memory.save("food", type="feedback", description="What they eat", body=f"Bread.\n\n- {NAME}: no nuts\n- Bob: all\n")
        memory.save("trashed", type="project", description="x", body=f"Once {NAME} was here.\n\nAnd Bob.")
        memory.remove("trashed", why=ChangeReason("user", f"{NAME} asked for it"))
        memory.save("plain", type="project", description="Nothing of it", body="Bob only.")
        root = memory.path
    (root / "logs" / "2026").mkdir(parents=True)
    (root / "logs" / "2026" / "day.md").write_text(f"- 10:00 met {NAME}\n- 11:00 met Bob\n")
    (root / ".inbox").mkdir(exist_ok=True)
    (root / ".inbox" / "0123456789ab.json").write_text(json.dumps({"id": "0123456789ab", "body": NAME}))
    return root


def make_home(home: Path, cwd: Path) -> Path:
    """The memory directory; `cwd` is the project."""
    cwd.mkdir(parents=True, exist_ok=True)
    make_session(home, cwd)
    root = make_memory(home, cwd)
    pack = root / ".history" / "git" / "objects" / "pack"
    pack.mkdir(parents=True)  # earlier versions kept a git copy of the journal
    (pack / "pack-1.pack").write_bytes(b"PACK compressed")
    team = root / "team"
    team.mkdir(exist_ok=True)
    (team / "people.md").write_text(f"---\nname: people\ndescription: who\n---\n\n{NAME} leads.\n\nBob follows.\n")
    (team / "MEMORY.md").write_text(f"- [people](people.md) — who\n- a line on {NAME}\n")
    agent = home / "agent-memory" / "tester"
    agent.mkdir(parents=True)
    (agent / "MEMORY.md").write_text(f"- {NAME} likes short tests\n- Bob too\n")
    inside = cwd / ".claude" / "agent-memory-local" / "writer"
    inside.mkdir(parents=True)
    (inside / "style.md").write_text(f"{NAME} writes long sentences.\n\nBob does not.\n")
    (home / "history").write_text(json.dumps(f"ask {NAME}") + "\n" + json.dumps("ask Bob") + "\n")
    return root


def all_of(home: Path, cwd: Path, *, everywhere: bool = False) -> KeptFiles:
    return kept_files(home, cwd, Settings(), person=home.parent, everywhere=everywhere)


def forgotten(home: Path, cwd: Path, subject: str = NAME, *, everywhere: bool = False) -> ForgetReport:
    wanted = Subject(subject)
    report = forget(all_of(home, cwd, everywhere=everywhere), wanted, do=True)
    report.left = remains([home], wanted, inside=lambda _: True)
    return report


def texts(directory: Path) -> str:
    """All files below, one after the other."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    return "\n".join(path.read_bytes().decode("utf-8", "replace") for path in paths)


def project(home: Path, cwd: Path) -> Path:
    return home / "projects" / slug(cwd)
