"""Memories made for the page: of two projects and of Claude Code, with evidence, history, and proposals. Words of our own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from lamina import Memory
from lamina.agent.manual_dream import run_by_hand
from lamina.core.settings import Settings
from lamina.disk.paths.project import slug
from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.draft import Draft

SHOP = [
    (
        "Deploys to staging",
        "project",
        "Staging runs in us-east-1; deploy with `make deploy-staging`, never by hand.",
        "Staging runs in us-east-1; deploy with `make deploy-staging`.\n\n**Why:** a manual deploy skipped the schema check and took "
        "staging down for a day.\n\n**How to apply:** when asked to try something on staging, use the make target and wait.\n",
        ("Makefile",),
        "extraction",
    ),
    (
        "Staging database is shared",
        "project",
        "Do not reset the staging database: QA and two other teams use it.",
        "QA and two other teams use the staging database, so it is never reset.\n",
        ("config/staging.toml",),
        "user",
    ),
    (
        "Explain before running migrations",
        "feedback",
        "Say what a migration does and wait for a yes before you run it.",
        "Say what a migration does, which tables it locks, and wait for a yes.\n",
        (),
        "user",
    ),
    (
        "Grafana board for checkout",
        "reference",
        "Latency and error dashboards for checkout: internal wiki, page “Checkout SLO”.",
        "The dashboards are linked from the page “Checkout SLO” in the internal wiki.\n",
        (),
        "agent",
    ),
    (
        "Uses pnpm, not npm",
        "project",
        "Install with pnpm; npm breaks the lockfile.",
        "Install packages with pnpm, not npm. npm breaks the lockfile.\n",
        (),
        "agent",
    ),
    (
        "Package manager",
        "project",
        "The repository uses pnpm 9. CI fails on package-lock.json.",
        "Install packages with pnpm, not npm. npm breaks the lockfile. CI fails on package-lock.json.\n",
        (),
        "extraction",
    ),
]


def project_of(root: Path, name: str = "shop-api") -> Path:
    return root / "work" / name


def open_memory(root: Path, name: str = "shop-api", **settings: object) -> Memory:
    given = Settings(**settings) if settings else Settings()
    return Memory.open(project_of(root, name), home=root / ".lamina", settings=given)


def make_memories(root: Path) -> None:
    """Write the memories below a user's home."""
    shop = project_of(root)
    for file, text in (("Makefile", "deploy-staging:\n\t./deploy staging\n"), ("config/staging.toml", "region = 'us-east-1'\n")):
        (shop / file).parent.mkdir(parents=True, exist_ok=True)
        (shop / file).write_text(text, "utf-8")
    project_of(root, "infra").mkdir(parents=True, exist_ok=True)
    with open_memory(root) as memory:
        for name, kind, description, body, evidence, who in SHOP:
            why = ChangeReason(who, "", session="s-1" if who == "extraction" else None)  # type: ignore[arg-type]
            memory.save(name, type=kind, description=description, body=body, evidence=evidence, why=why)  # type: ignore[arg-type]
    with open_memory(root, "infra") as memory:
        memory.save(
            "Terraform state",
            type="project",
            description="State is in the infra bucket, one file per region.",
            body="One file per region.\n",
        )
    (shop / "Makefile").write_text("deploy-staging:\n\t./deploy staging --region eu-west-1\n", "utf-8")
    foreign = root / ".claude" / "projects" / slug(shop) / "memory"
    foreign.mkdir(parents=True, exist_ok=True)
    (foreign / "testing.md").write_text(
        "---\nname: Testing\ndescription: Run make test before a commit\ntype: feedback\n---\n\nRun make test.\n", "utf-8"
    )
    os.utime(foreign / "testing.md", (1_794_000_000, 1_794_000_000))


class MadeOnce:
    """A home that is made once, and put back as it was before each test that changes it: making it costs more than most tests."""

    def __init__(self, root: Path, *make: Callable[[Path], None]) -> None:
        self.root, self._saved, self._times = root, root.with_name(f"{root.name}-saved"), 0
        for one in make:
            one(root)
        shutil.copytree(root, self._saved, symlinks=True)

    def put_back(self) -> Path:
        # Moved away first: the git of an earlier test may still write there.
        self._times += 1
        old = self.root.rename(self.root.with_name(f"{self.root.name}-old-{self._times}"))
        shutil.copytree(self._saved, self.root, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(old, ignore_errors=True)
        return self.root


def make_proposals(root: Path, session: str | None = None, message: str | None = None) -> None:
    """Let an extraction propose a change and a new memory, and a dream a removal."""
    with open_memory(root) as memory:
        inbox = memory.store("private").inbox
        kept = memory.get("Deploys to staging")
        assert kept is not None
        moved = kept.body.replace("us-east-1", "eu-west-1 (since 9 Nov 2026)")
        why = ChangeReason("extraction", "you corrected the region", session, message)
        about = kept.description.replace("us-east-1", "eu-west-1")
        inbox.propose_save(Draft(kept.name, kept.type, about, moved), why=why)
        tests = "Prefers table-driven tests"
        inbox.propose_save(Draft(tests, "feedback", "Write tests as tables of cases.", "Write tests as tables.\n"), why=why)
        inbox.propose_removal("Grafana board for checkout", why=ChangeReason("dream", "the page it names is gone"))


def make_dream(root: Path) -> None:
    """Run a dream of rules over the memories."""
    run_by_hand("offline", cwd=project_of(root), home=root / ".lamina", settings=Settings())
