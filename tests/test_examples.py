"""The examples run as they stand and show what their text says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["anthropic_loop.py", "openai_loop.py"])
def test_an_example_runs_and_reads_most_of_its_input_from_the_cache(name: str, root: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(root / "examples" / name)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    share = int(done.stdout.splitlines()[-1].partition("%")[0])
    assert share > 50
    assert "0 breaks" in done.stdout
