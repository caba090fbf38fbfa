"""What outlives a session: saved, found again, traced, taken back.

    pip install . && python examples/memory.py

A memory is a markdown file with a name, a type and a description. No model is needed for any of this.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import lamina


def described(memory: lamina.Memory) -> str:
    found = memory.get("deploys")
    return found.description if found is not None else "nothing"


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        with lamina.Memory.open(Path(place), home=Path(place, "home")) as memory:
            memory.save(
                "testing-db",
                type="feedback",
                description="Integration tests use a real database",
                body="Integration tests run against a real database.\n\n**Why:** Mocks once hid a broken migration.",
            )
            memory.save("deploys", type="project", description="Deploys go out on Tuesdays", body="Tuesdays at ten.")

        # Another process, another day.
        with lamina.Memory.open(Path(place), home=Path(place, "home")) as memory:
            [best] = memory.recall("which database do the tests use?", k=1)
            print(f"found: {best.topic.name} ({best.score:.2f})")
            memory.save("deploys", type="project", description="Deploys go out on Fridays", body="Fridays, at ten.")
            print(f"changed: {described(memory)}")
            memory.restore("deploys")
            print(f"restored: {described(memory)}")
            memory.remove("testing-db")
            print(f"left: {', '.join(topic.name for topic in memory.topics())}")
            for version in memory.log():
                print(f"  {version.action} {version.name}")


if __name__ == "__main__":
    main()
