"""Without fcntl, msvcrt or directory-relative calls everything still works, with weaker guarantees."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# Runs in a fresh interpreter, because the modules look at what the system has when they are imported.
SCRIPT = """
import os, sys
from pathlib import Path
hidden = sys.argv[1].split(",")
import fcntl, struct, types
for name in {"fcntl", "msvcrt"} & set(hidden):
    sys.modules[name] = None
if "dir_fd" in hidden:
    os.supports_dir_fd.clear()
    del os.O_NOFOLLOW, os.pread
if "windows locks" in hidden:
    # What msvcrt does, by locks of Linux that belong to a descriptor as those of Windows do.
    def locking(fd, mode, size):
        kind = fcntl.F_WRLCK if mode == 2 else fcntl.F_UNLCK
        flock = struct.pack("hhlli", kind, os.SEEK_SET, os.lseek(fd, 0, os.SEEK_CUR), size, 0)
        try:
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, flock)
        except BlockingIOError:
            raise PermissionError(13, "busy") from None
    sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2, LK_UNLCK=0)
    os.name, name = "nt", os.name
    import lamina.disk.temp_files
    os.name = name
from lamina.core.errors import DiskError, LockHeld, PathRefused
from lamina.disk import dirfd
from lamina.disk.locks import kernel_lock
from lamina.disk.locks.dream_lock import HeldDreamLock, DreamLock
from lamina.disk.append import Appender
from lamina.disk.files import replace, update
from lamina.disk.temp_files import sweep_temps
from lamina.disk.locks.lock_file import LifeLock, guard, live_holder
from lamina.disk.trees.rootdir import RootDir
base = Path(sys.argv[2])

def refused(act):
    try:
        act()
    except PathRefused:
        return True
    return False

assert dirfd.HAS_DIR_FD == ("dir_fd" not in hidden)
assert kernel_lock.kernel_locks() == ("msvcrt" not in hidden)

replace(base / "a" / "f", b"one")
assert update(base / "a" / "f", lambda old: old + b" two")
assert (base / "a" / "f").read_bytes() == b"one two"
with Appender.open(base / "log") as log:
    assert log.append([b"x", b"y"]) == 0
    log.sync()
(base / "log").write_bytes(b"stub")
with Appender.open(base / "log") as log:
    assert log.append([b"x"]) == 5

first = LifeLock.acquire(base / "lock")
assert LifeLock.acquire(base / "lock") is None
assert live_holder(base / "lock") .startswith(f"process {os.getpid()} on ")
first.close()
assert live_holder(base / "lock") is None
LifeLock.acquire(base / "lock").close()
with guard(base / "g"):
    try:
        with guard(base / "g", timeout=0):
            raise AssertionError("two holders")
    except LockHeld:
        pass

(base / "outside").mkdir()
(base / "outside" / "x").write_bytes(b"precious")
with RootDir.open(base / "root") as root:
    root.replace("d/x", b"x")
    assert root.read_bytes("d/x", 10) == b"x"
    os.symlink(base / "outside", base / "root" / "link")
    os.symlink(base / "outside" / "x", base / "root" / "x")
    for rel in ("link/x", "x"):
        assert refused(lambda: root.replace(rel, b"evil")), rel
        assert refused(lambda: root.read_bytes(rel, 10)), rel
        assert refused(lambda: root.append(rel, [b"evil"])), rel
    assert [entry.name for entry in root.listdir()] == ["d"]
    root.rename("d/x", "d/y")
    assert root.unlink("d/y")
assert (base / "outside" / "x").read_bytes() == b"precious"

left = base / ".lamina-0123456789abcdef.tmp"
left.touch()
if "msvcrt" in hidden:
    assert sweep_temps(base, now=left.stat().st_mtime + 60) == 0
    assert sweep_temps(base, now=left.stat().st_mtime + 7200) == 1
else:
    assert sweep_temps(base) == 1

if "msvcrt" in hidden:
    (base / "lock.held").write_text("999999999")
    LifeLock.acquire(base / "lock").close()
    (base / "lock.held").write_text("1")
    assert LifeLock.acquire(base / "lock") is None

with RootDir.open(base / "memory") as root:
    lock = DreamLock(root)
    hold = lock.acquire(None)
    assert isinstance(hold, HeldDreamLock) == kernel_lock.kernel_locks()
    if isinstance(hold, HeldDreamLock):
        assert lock.acquire(lock.last_ns()).reason == "held"
        assert lock.holder().alive
        with hold.fence():
            pass
        assert hold.commit() and lock.holder() is None and lock.last_ns() == hold.acquired_ns
        with lock.acquire(hold.acquired_ns):
            pass
        assert lock.last_ns() == hold.acquired_ns
        dead = lock.acquire(hold.acquired_ns)
        dead.leave()
        assert lock.recover() and lock.last_ns() == hold.acquired_ns
    else:
        assert hold.reason == "unsupported"
print("all of it")
"""


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="plays Windows by means of Linux")


@pytest.mark.parametrize(
    "hidden",
    [
        "nothing",
        "dir_fd",
        "fcntl,msvcrt",
        "fcntl,msvcrt,dir_fd",
        pytest.param("fcntl,dir_fd,windows locks", marks=LINUX),
    ],
)
def test_every_primitive_works_without(hidden: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, hidden, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all of it\n"
