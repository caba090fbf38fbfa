"""Memory on a system without fcntl, directory descriptors and O_NOFOLLOW: it works, with what is weaker said in the docs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HIDE = """
import os, sys, tempfile, json
sys.modules["fcntl"] = None
for name in ("O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "geteuid", "fchmod", "uname", "pread", "register_at_fork"):
    if hasattr(os, name):
        delattr(os, name)
os.supports_dir_fd, os.supports_fd = set(), set()
from lamina.memory.memory import Memory
with Memory.open(path=sys.argv[1]) as memory:
    memory.save("a", type="project", description="d", body="one")
    memory.save("a", type="project", description="d", body="two")
    memory.remove("a")
    memory.restore("a")
    print(json.dumps([memory.get("a").body, memory.index(), [v.action for v in memory.log()], len(memory.headers())]))
"""


def test_a_memory_is_saved_updated_forgotten_and_restored(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HIDE, str(tmp_path / "memory")], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == '["two\\n", "- [a](a.md) \\u2014 d\\n", ["restore", "remove", "save", "save"], 1]'
