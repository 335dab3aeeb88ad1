"""The units of the page on operating, each as processes of this machine, as systemd has them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from tests.pages.blocks import ALL

_SECONDS_TO_END = 30


def units() -> dict[str, str]:
    """What each unit starts, by its file's name."""
    blocks = [block for block in ALL if block.file.endswith(".service")]
    return {
        Path(block.file).stem: found[1]
        for block in blocks
        if (found := re.search(r"^ExecStart=(.+)$", block.text, re.MULTILINE))
    }


def shown(file: str) -> str:
    """The file of that name that the page on operating shows."""
    (text,) = (b.text for b in ALL if b.file == file and b.page.stem == "operating")
    return text


class Services:
    """Commands as services, by their names; what is left of them ends with the block.

    Args:
        folder: where they run, with a log of each.
        commands: their words.
        environment: what all of them have.
    """

    def __init__(
        self, folder: Path, commands: Mapping[str, list[str]], environment: Mapping[str, str]
    ) -> None:
        self._folder, self._commands, self._environment = folder, commands, environment
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Services:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._running):
            self.kill(name)

    def start(self, *names: str) -> None:
        """Starts some; what they print goes on in their logs."""
        for name in names:
            with (self._folder / f"{name}.log").open("ab") as log:
                self._running[name] = subprocess.Popen(
                    self._commands[name],
                    cwd=self._folder,
                    env=dict(self._environment),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )

    def restart(self, name: str) -> None:
        """Ends one as `systemctl restart` does, and starts it."""
        process = self._running[name]
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_SECONDS_TO_END)
        self.kill(name)
        self.start(name)

    def kill(self, name: str) -> None:
        """Kills one, and with it what it has started, as is done to a unit's control group."""
        process = self._running.pop(name)
        with suppress(psutil.Error):
            below = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            for one in below:
                with suppress(psutil.Error):
                    one.kill()
        process.wait()

    def words(self, name: str) -> list[str]:
        """The command of one."""
        return self._commands[name]

    def processes(self, name: str) -> list[psutil.Process]:
        """The processes of one, those that it has started too."""
        found: list[psutil.Process] = []
        with suppress(psutil.Error):
            first = psutil.Process(self._running[name].pid)
            found = [first, *first.children(recursive=True)]
        return found

    def ended(self) -> list[str]:
        """Those that have ended by themselves, with what they have said last."""
        return [
            f"{name}: {self.log(name)[-3000:]}"
            for name, process in self._running.items()
            if process.poll() is not None
        ]

    def log(self, name: str) -> str:
        """All that one has printed."""
        return (self._folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")
