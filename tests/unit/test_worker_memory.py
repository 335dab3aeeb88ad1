"""What a process of the worker holds: its own memory, not pages of files that it looks into."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from hydrotick.worker.service import _resident

SIZE = 64 << 20


def test_pages_of_files_do_not_count(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(SIZE))
    before = _resident(os.getpid())
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as pages:
        assert sum(pages[at] for at in range(0, SIZE, 4096)) == 0
        assert _resident(os.getpid()) - before < SIZE // 4
    own = bytearray(os.urandom(SIZE))
    assert _resident(os.getpid()) - before > SIZE // 2
    assert own


def test_a_process_that_has_ended_holds_nothing() -> None:
    assert _resident(2**22 + 1) == 0
