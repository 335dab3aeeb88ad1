"""The pages for people, and the blocks of code that they show.

A fence says the language and, if the block is a file that later commands of the page use, its name:
"```hydrotick totals.hydro". That of a table of ticks says when they are, if they have times:
"```ticks 1h from 2026-01-01". What a test makes of each language stands in `test_programs.py` (what
runs in milliseconds), `files_of_tests.py` (declarations) and `test_commands.py` (command lines).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("assets/*/README.md")),
)
_BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code: where its text begins, what it is in, and the file that it stands for."""

    page: Path
    line: int
    language: str
    file: str
    text: str
    start: int
    """Where the text begins in the page, in characters."""

    @property
    def place(self) -> str:
        """Where it stands, as a test names it."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page, in their order."""
    return list(_blocks(page, page.read_text(encoding="utf-8")))


def _blocks(page: Path, text: str) -> Iterator[Block]:
    for found in _BLOCK.finditer(text):
        language, _, file = found[1].partition(" ")
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, language, file.strip(), found[2], found.start(2))


ALL = [block for page in PAGES for block in blocks_of(page)]


def following(block: Block) -> Block | None:
    """The next block of the same page."""
    return next((b for b in ALL if b.page == block.page and b.start > block.start), None)


def rewritten(block: Block, text: str) -> None:
    """Puts another text into a block, where it stands in the page by now."""
    page = block.page.read_text(encoding="utf-8")
    number = [b.start for b in blocks_of_text(block.page)].index(block.start)
    now = list(_blocks(block.page, page))[number]
    page = page[: now.start] + text + page[now.start + len(now.text) :]
    block.page.write_text(page, encoding="utf-8")


def blocks_of_text(page: Path) -> list[Block]:
    """The blocks of a page as they were when the tests were collected."""
    return [block for block in ALL if block.page == page]
