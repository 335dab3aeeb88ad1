"""The commands that pages show: in blocks of `sh`, and behind `$` in those of `console`, where what
they print stands below them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from tests.pages.blocks import ALL, Block

SHELL = [block for block in ALL if block.language in ("sh", "console")]


@dataclass(frozen=True)
class Command:
    """A command of a block: as it is typed, and what the page shows that it prints, if it does."""

    line: str
    shows: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(shlex.split(self.line, comments=True))


def commands_of(block: Block) -> Iterator[Command]:
    """The commands of a block, in their order."""
    if block.language == "console":
        parts = re.split(r"^\$ (.*)\n", block.text, flags=re.MULTILINE)[1:]
        for line, shows in zip(parts[::2], parts[1::2], strict=True):
            yield Command(line, shows)
        return
    for line in block.text.replace("\\\n", " ").splitlines():
        for command in re.split(r" && | \|\|? ", line):
            if shlex.split(command, comments=True):
                yield Command(command.partition(" #")[0].strip())
