"""The tutorial, followed from its first line to its last: what it prints is what there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages.blocks import ROOT, Block, blocks_of, rewritten

PAGE = ROOT / "docs/tutorial.md"
HYDROTICK = str(Path(sys.executable).parent / "hydrotick")
VARIES = re.compile(
    r"\s*\b[\d.,]+ (ms|s|min|d|ticks/s)\b"  # how long it took, and how long ago it is
    r"|since [\d: -]+ UTC|\(run [\w-]+\)"
)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.dagster
def test_the_tutorial(tmp_path: Path, update_golden: bool) -> None:
    """Files are saved and commands run in the order of the page."""
    folder = tmp_path
    for block in blocks_of(PAGE):
        if block.file:
            file = folder / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            folder, shown = _followed(block, folder)
            if update_golden:
                rewritten(block, shown)
            else:
                assert VARIES.sub("…", shown) == VARIES.sub("…", block.text), block.place


def _followed(block: Block, folder: Path) -> tuple[Path, str]:
    """The folder after the commands of a block, and what they print."""
    shown = []
    for command in re.findall(r"^\$ (.*)$", block.text, re.MULTILINE):
        shown.append(f"$ {command}\n")
        if command.startswith("cd "):
            folder = folder / command.removeprefix("cd ")
        else:
            shown.append(_printed(command, folder))
    return folder, "".join(shown)


def _printed(command: str, folder: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HYDROTICK_")}
    name, *words = command.split()
    assert name == "hydrotick"
    done = subprocess.run(
        [HYDROTICK, *words],
        cwd=folder,
        env={**environment, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    printed = done.stdout + done.stderr
    assert "Traceback" not in printed
    return printed.replace(f"{folder}/", "")
