"""Copies the project in a home, or restores it, and kills itself: copy|restore HOME DIR MOMENT."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from hydrotick.copies.copying import copy_project, readers_first
from hydrotick.copies.note import note_in
from hydrotick.copies.restoring import Restorable, restore
from tests.orchestration.shop import Shop


def main(what: str, home: Path, to: Path, moment: str) -> None:
    """Dies when the part of that name is begun."""
    shop = Shop(home)

    def step(name: str) -> None:
        if name == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    if what == "copy":
        copy_project(shop.project, to, step)
    else:
        asked = Restorable(to, note_in(to), tuple(readers_first(shop.flows)), whole=True)
        restore(asked, shop.settings, step)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
