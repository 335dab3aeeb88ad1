"""Runs a command on the shop in a home and kills itself at a step: HOME STEP COUNT WORDS…

A step is `carry` (a file is copied) or `rename` (a part is put in its place).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hydro_core.cli.main import main
from hydro_core.spark.pipeline import copies as copy
from tests.orchestration.shop import Shop


def _killing(step: Callable[..., Any], count: int) -> Callable[..., Any]:
    left = iter(range(count))

    def killing(*words: Any) -> Any:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(*words)

    return killing


if __name__ == "__main__":
    home, name, times, *line = sys.argv[1:]
    patch = pytest.MonkeyPatch()
    Shop(Path(home)).serve(patch)
    of: Any = copy if name == "carry" else Path
    patch.setattr(of, name, _killing(getattr(of, name), int(times)))
    sys.exit(main(line))
