"""A page, followed from its first line to its last, as its reader does in an own environment.

Files with a name are saved, commands are typed at a terminal in the order of the page, and what it
shows of what they print is compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.orchestration.web import Api, answers
from tests.pages.blocks import ROOT, Block, blocks_of, following, rewritten
from tests.pages.command_lines import Command, commands_of
from tests.wheel.environment import Environment
from tests.wheel.served import served
from tests.wheel.terminal import at_a_terminal

VARIES = re.compile(
    r"\s*\b[\d.,]+ (ms|s|min|d|ticks/s)\b"  # how long it took, and how long ago it is
    r"|since [\d: -]+ UTC|\(run [\w-]+\)"
)
_SAVED = ("hydrotick", "rules", "json", "csv")
"""What a reader saves wherever he is; other files are shown, unless they say in which folder."""


@dataclass(frozen=True)
class Story:
    """What a reader does with a page.

    Args:
        page: the page, from the root of the repository.
        slow: whether it takes minutes.
        before: what the text above a command says that is done before it; what "" says comes first.
        ends: with what commands end that do not end with 0.
        says: what is on the screen of commands of which the page does not show what they print.
    """

    page: str
    slow: bool = True
    before: Mapping[str, Callable[[Environment, Path], object]] = field(default_factory=dict)
    ends: Mapping[str, int] = field(default_factory=dict)
    says: Mapping[str, str] = field(default_factory=dict)


class Reader:
    """Who follows a page."""

    def __init__(self, environment: Environment, folder: Path, story: Story, skipped: set[str]):
        self._environment, self._folder, self._story = environment, folder, story
        self._skipped = skipped

    def follow(self, update_golden: bool = False) -> None:
        """Does what the page says, and compares."""
        self._before("")
        for block in blocks_of(ROOT / self._story.page):
            if block.file and (block.language in _SAVED or "/" in block.file):
                file = self._folder / block.file
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text, encoding="utf-8")
            elif block.language in ("sh", "console"):
                printed = "".join(map(self._done, commands_of(block)))
                if block.language == "console" and update_golden:
                    rewritten(block, printed)
                elif block.language == "console":
                    shown = [VARIES.sub("…", text) for text in (printed, block.text)]
                    assert [block.place, *shown[0].splitlines()] == [
                        block.place,
                        *shown[1].splitlines(),
                    ]
            elif block.language == "python" and not block.file:
                self._python(block)

    def _done(self, command: Command) -> str:
        """Runs a command; gives it and what it prints, as a page shows it."""
        name, *words = command.words
        if command.line in self._skipped:
            return f"$ {command.line}\n{command.shows}"
        self._before(command.line)
        if name == "cd":
            self._folder = (self._folder / words[0]).resolve()
            assert self._folder.is_dir()
            return f"$ {command.line}\n"
        if command.words == ("hydrotick", "dev"):
            return self._dev(command)
        if command.shows is None:
            self._at_a_terminal(command)
            return ""
        done = self._environment.run(command.words, self._folder)
        assert "Traceback" not in done.stdout, done.stdout
        return f"$ {command.line}\n{done.stdout}"

    def _at_a_terminal(self, command: Command) -> None:
        ended, screen = at_a_terminal(self._environment, command.words, self._folder)
        assert ended == self._story.ends.get(command.line, 0), screen
        assert "Traceback" not in screen, screen
        assert self._story.says.get(command.line, "") in screen, screen

    def _dev(self, command: Command) -> str:
        with served(self._environment, ["hydrotick", "dev"], self._folder) as port:
            assert answers(Api(port))
        return f"$ {command.line}\n"

    def _python(self, block: Block) -> None:
        """What a reader pastes into a file and runs, where the page shows what it prints."""
        after = following(block)
        if after is not None and after.language == "text":
            done = self._environment.run(["python", "-c", block.text], self._folder)
            assert done.stdout == after.text, block.place

    def _before(self, line: str) -> None:
        if line in self._story.before:
            self._story.before[line](self._environment, self._folder)
