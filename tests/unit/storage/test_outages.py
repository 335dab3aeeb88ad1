"""A store that answers no more, from some request on, while a command runs.

The command says so, takes it for nothing else (lost, damaged, stopped, nothing there), and changes
nothing. No Spark: ticks are committed as in `test_corrections_in_a_store`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from hydro_core.cli.main import main
from hydrotick.code_location.next_run import next_run
from hydrotick.project.project import current
from hydrotick.runner.runner import TickRunner
from tests.support.store_server import BUCKET, SECRET, StoreServer
from tests.unit.storage.test_corrections_in_a_store import tick

PROGRAM = 'x = source("k string")\nx -> persist() -> unique() -> all\nx -> delta() -> now\n'
ASSET = """program: small.hydro
ticks: {start: 2026-01-01, every: 1d}
inputs:
  x: {path: small/x, column: tick}
"""
TICKS = 3
COMMANDS: Mapping[str, Sequence[str]] = {
    "status": ("status",),
    "verify": ("status", "--verify"),
    "plan": ("plan", "small"),
    "deploy": ("deploy", "small", "--yes"),
    "forget": ("forget", "small", "--where", "k=x", "--dry-run"),
    "correct": ("correct", "small", "--from", "2026-01-02", "--yes"),
    "reset": ("reset", "small", "--yes"),
    "copy": ("copy", "there"),
    "show": ("show", "small", "now"),
}
ANSWERS = {
    "no answer": (0, ""),
    "an error": (500, "InternalError"),
    "refused": (403, "AccessDenied"),
}
SAYS = re.compile(r"the store (?:is busy|cannot be reached|says)|have not the right")
MISTAKEN = re.compile(
    r"Traceback|: whole|damaged|cut off|has lost|is lost|restore|nothing to (?:remove|deploy)"
    r"|this removes|no tick of|is not in s3|nobody has told|stopped:"
)


@dataclass
class Shop:
    """The project, and what its store has."""

    server: StoreServer
    home: Path

    def run(self, words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
        capsys.readouterr()
        code = main([*words])
        said = capsys.readouterr()
        return code, said.out + said.err

    @property
    def stored(self) -> Mapping[str, bytes]:
        """What is in the bucket, but for notes of who is at work."""
        memory = self.server.memory
        assert memory is not None
        return {
            name: found.content for name, found in memory._objects.items() if "lock" not in name
        }


@pytest.fixture
def shop(server: StoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    for name in ("HYDROTICK_HOME", "HYDROTICK_PROJECT", "DAGSTER_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder, landed = tmp_path / "assets" / "small", tmp_path / "data" / "landing" / "small" / "x"
    for path in (folder, landed):
        path.mkdir(parents=True)
    (tmp_path / "hydrotick.toml").write_text(
        f'[storage]\nendpoint = "{server.url}"\nregion = "us-east-1"\npatience = 1\n'
        f'data = "s3://{BUCKET}/data"\n'
    )
    (folder / "asset.yaml").write_text(ASSET)
    (folder / "small.hydro").write_text(PROGRAM)
    (landed / "1.jsonl").write_text(
        "".join(f'{{"tick": {n}, "k": "{k}"}}\n' for n in range(TICKS) for k in (f"first{n}", "x"))
    )
    monkeypatch.chdir(tmp_path)
    found = current()
    runner = TickRunner(found.settings)
    (flow,) = found.flows
    runner.deployments.prepare(flow)
    for number in range(TICKS):
        tick(runner.pipeline(flow), number, "first")
    server.asked.clear()
    return Shop(server, tmp_path)


def outage(
    shop: Shop, command: str, how: str, first: int, capsys: pytest.CaptureFixture[str]
) -> bool:
    """Whether the command asked so often at all; it does nothing and says why, if it did."""
    before, words = shop.stored, COMMANDS[command]
    failing = shop.server.failing(lambda number, *_: ANSWERS[how] if number >= first else None)
    with failing:
        code, said = shop.run(words, capsys)
        reached = len(shop.server.asked) > first
    if reached:
        assert code == 1, f"{command}, from request {first} on: {said}"
        assert SAYS.search(said), f"{command}, from request {first} on: {said}"
        assert not MISTAKEN.search(said), f"{command}, from request {first} on: {said}"
        assert SECRET not in said
        assert shop.stored == before, command
    return reached


@pytest.mark.parametrize("how", ["refused", "no answer"])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_outage_while_a_command_begins(
    shop: Shop, command: str, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for first in (0, 1, 5) if how == "refused" else (2,):
        assert outage(shop, command, how, first, capsys) or first


@pytest.mark.slow
@pytest.mark.parametrize("how", ANSWERS)
@pytest.mark.parametrize("command", COMMANDS)
def test_an_outage_at_each_request(
    shop: Shop, command: str, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first = 0
    while first < 150 and outage(shop, command, how, first, capsys):
        first += 1
    assert first > 5


def test_a_sensor_goes_on_to_look(shop: Shop) -> None:
    """What runs next is not known for now; nothing has stopped it."""
    found = current()
    with shop.server.failing(lambda *_: ANSWERS["refused"]):
        said = next_run(found.flows[0], TickRunner(found.settings), None)
    assert said.ticks is None
    assert not said.stopped
    assert not said.goes_on
    assert "not known" in said.says
    assert "right" in said.says
