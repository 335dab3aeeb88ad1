"""A company that has hydrotick installed: records in PostgreSQL, the launcher of Dagster, and the
services of the page on operating.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from hydro_core.spark.pipeline.rows import rows_at
from hydrotick.flows.flows import Flows
from hydrotick.instance.opening import open_instance
from hydrotick.project.project import Project, project_at
from tests.orchestration.web import Api, answers
from tests.support.services import Services, shown, units
from tests.unit.projects.test_exposition import parsed
from tests.wheel.environment import Environment
from tests.wheel.served import free_port

SECONDS = 600
OUTPUTS = {"totals": "totals", "report": "report"}

_PROJECT = '[dagster]\nsensors = "running"\nsensor_seconds = 1\n'
_OF_TOTALS = {
    "program": "totals.hydro",
    "ticks": {"start": "2026-01-01", "every": "1d"},
    "inputs": {
        "payments": {"path": "payments", "column": "day", "wait": "landed", "late": "correct"}
    },
    "expect": {"totals": [{"column": "user", "not_null": True, "unique": True}]},
}
_OF_REPORT = {
    "program": "report.hydro",
    "ticks": {"start": "2026-01-01", "every": "1d"},
    "inputs": {"totals": {"flow": "totals", "output": "totals"}},
}
TOTALS = """\
payments = source("user string, amount long")
payments
  -> persist()
  -> aggregate(by="user", total=sum("amount"), largest=max("amount"))
  -> delta()
  -> totals
"""
_REPORT = """\
totals = source("user string, total long, largest long")
totals
  -> persist()
  -> aggregate(by="user", days=count(), best=max("total"))
  -> delta()
  -> report
"""
_USERS = ("ann", "bob", "cat", "dan", "eve")
_QUEUE = """\
run_coordinator:
  module: dagster
  class: QueuedRunCoordinator
  config: {dequeue_interval_seconds: 1}
"""
_ENDED = "ended with "
_COMMANDS = f"""
import shlex, sys
from hydro_core.cli.main import main
for line in sys.stdin:
    print(f"{_ENDED}{{main(shlex.split(line))}}", flush=True)
"""


def day(number: int) -> str:
    """The key of a tick, from 1 on."""
    return f"2026-01-{number:02}"


class Shop:
    """A project of two flows, of which the second reads what the first gives."""

    def __init__(self, at: Path, environment: Environment, **variables: str) -> None:
        self.at, self.home, self._installed = at, at / "data", environment
        self.variables = {
            **environment.variables,
            "HYDROTICK_SPARK_MASTER": "local[2]",
            "HYDROTICK_SPARK_MEMORY": "1g",
            **variables,
        }
        for name, declared, program in (
            ("totals", _OF_TOTALS, TOTALS),
            ("report", _OF_REPORT, _REPORT),
        ):
            folder = at / "assets" / name
            folder.mkdir(parents=True)
            (folder / "asset.yaml").write_text(json.dumps(declared))
            (folder / f"{name}.hydro").write_text(program)
        (at / "hydrotick.toml").write_text(_PROJECT)

    def land(self, name: str, *days: int) -> None:
        """Rows of some days land, as one file."""
        lines = [
            f"{day(number)},{user},{(number * 37 + place * 11 + len(name)) % 23}"
            for number in days
            for place, user in enumerate(_USERS)
            if (number + place) % 3
        ]
        folder = self.home / "landing" / "payments"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.csv").write_text("\n".join(["day,user,amount", *lines, ""]))

    def edit(self) -> None:
        """The program of the first flow counts no small amounts any more."""
        program = self.at / "assets" / "totals" / "totals.hydro"
        large = "payments -> filter(lambda p: p.amount > 6)\n"
        program.write_text(TOTALS.replace("payments\n", large, 1))

    def command(self, *words: str) -> str:
        """What a command of hydrotick says, which ends with 0."""
        done = self._installed.run(["hydrotick", *words], self.at, self.variables)
        assert done.returncode == 0, done.stdout
        assert "Traceback" not in done.stdout
        return done.stdout

    def commands(self) -> subprocess.Popen[str]:
        """A process in which one Spark does the commands that it is given, a line each."""
        return subprocess.Popen(
            [self._installed.python, "-c", _COMMANDS],
            cwd=self.at,
            env=self.variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def project(self) -> Project:
        """The project as it is now."""
        return project_at(self.at)

    def committed(self, flow: str) -> int:
        """How many ticks of a flow are committed."""
        found = self.project()
        last = Flows(found.settings).deployments.ledger_of(flow).last_tick
        return 0 if last is None else last + 1

    def outputs(self) -> dict[str, list[Any]]:
        """What the outputs are as of every committed tick."""
        found = self.project()
        flows = Flows(found.settings)
        return {
            f"{flow.name} {day(tick + 1)}": list(
                rows_at(flows.pipeline(flow), OUTPUTS[flow.name], tick).rows
            )
            for flow in found.flows
            for tick in range(self.committed(flow.name))
        }

    def files(self, flow: str) -> set[Path]:
        """The files of a flow's tables."""
        return set((self.home / "pipelines" / flow).rglob("*.parquet"))


class ShopBeside(Shop):
    """A project that has commands alone: one after the other, while something else goes on."""

    def __init__(self, at: Path, environment: Environment) -> None:
        super().__init__(at, environment)
        self._turns = ThreadPoolExecutor(1)
        self._done: list[Future[object]] = []
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> ShopBeside:
        self._process = self.commands()
        return self

    def __exit__(self, *_: object) -> None:
        self._turns.shutdown(cancel_futures=True, wait=False)
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._turns.shutdown()

    def then(self, do: Callable[[Shop], object]) -> None:
        """Does something when all is done that was asked for before."""
        self._done.append(self._turns.submit(do, self))

    def ends(self) -> None:
        """Waits until all is done, as it should be."""
        for one in self._done:
            one.result(SECONDS)

    def command(self, *words: str) -> str:
        assert self._process is not None
        to, said = self._process.stdin, self._process.stdout
        assert to is not None
        assert said is not None
        to.write(f"{shlex.join(words)}\n")
        to.flush()
        lines: list[str] = []
        for line in said:
            if line.startswith(_ENDED):
                assert line == f"{_ENDED}0\n", "".join(lines)
                return "".join(lines)
            lines.append(line)
        raise AssertionError("".join(lines))


class RunningShop(Shop):
    """A project that services run, with Dagster's records in a PostgreSQL."""

    def __init__(self, at: Path, environment: Environment, postgres: str) -> None:
        self.dagster, self._told = at.parent / "dagster", at.parent / "told.jsonl"
        tell = f"cat >> {self._told} && echo >> {self._told}"
        super().__init__(
            at,
            environment,
            DAGSTER_HOME=str(self.dagster),
            DAGSTER_POSTGRES_URL=postgres,
            HYDROTICK_PROJECT=str(at),
            HYDROTICK_HOME=str(at / "data"),
            HYDROTICK_FAILURE_COMMAND=shlex.join(["sh", "-c", tell]),
        )
        self.dagster.mkdir()
        said = f"telemetry: {{enabled: false}}\n{_QUEUE}{shown('dagster.yaml')}"
        (self.dagster / "dagster.yaml").write_text(said)

    @contextmanager
    def served(self) -> Iterator[Services]:
        """Within it the services run."""
        code, web = free_port(), free_port()
        workspace = shown("workspace.yaml").replace("4266", str(code))
        (self.at / "workspace.yaml").write_text(workspace)
        places = {"/srv/venv": str(self._installed.place), "4266": str(code), "3000": str(web)}
        commands = {}
        for name, said in units().items():
            words = re.sub("|".join(places), lambda found: places[found[0]], said).split()
            commands[name.removeprefix("hydrotick-")] = words
        with Services(self.at, commands, self.variables) as services:
            services.start("code", "worker", "daemon", "web")
            until(lambda: answers(Api(web)), services)
            yield services

    def metrics(self) -> Mapping[str, str]:
        """What is told to Prometheus."""
        return parsed(self.command("metrics"))

    def told(self) -> list[Mapping[str, Any]]:
        """The failures that somebody was told of."""
        if not self._told.exists():
            return []
        return [json.loads(line) for line in self._told.read_text().splitlines() if line]

    @contextmanager
    def records(self) -> Iterator[dg.DagsterInstance]:
        """Dagster's records."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DAGSTER_POSTGRES_URL", self.variables["DAGSTER_POSTGRES_URL"])
            with open_instance(self.dagster) as instance:
                yield instance


def until(holds: Callable[[], object], services: Services, every: float = 0.5) -> None:
    """Waits until something holds, while the services run."""
    end = time.monotonic() + SECONDS
    while not holds():
        assert not services.ended(), services.ended()
        assert time.monotonic() < end
        time.sleep(every)
