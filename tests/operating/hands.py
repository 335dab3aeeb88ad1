"""Operates real flows: each operation as a process of its own would, over one Spark session.

Nothing is kept between two operations but what lies on the disk. What writes the ledger is called
below the command line, where no run of Dagster has to be recorded; all else is the command itself.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

from deltalake import DeltaTable

from hydro_core.cli.main import main
from hydro_core.errors import HydroError
from hydro_core.project.flow_asset import (
    Expect,
    FlowAsset,
    FlowOutput,
    KeptOutput,
    Landing,
)
from hydro_core.spark.pipeline.copies import verify
from hydro_core.spark.pipeline.prepared import PreparedRange
from hydro_core.spark.pipeline.rework import StagedPast
from hydro_core.spark.pipeline.rows import rows_at
from hydrotick.deploy.planning import plan_deployment
from hydrotick.deploy.switch import deploy, predecessor, roll_back
from hydrotick.project import project
from hydrotick.project.project import Project
from hydrotick.project.settings import ProjectSettings
from hydrotick.quality.judge import measure
from hydrotick.runner.correction import planned
from hydrotick.runner.forgetting import forget, forget_plan
from hydrotick.runner.runner import TickRunner
from tests.operating.asked import AXIS, DAILY, Committed, Declared, Done, How, Told
from tests.operating.programs import KEY, Values, columns_of, outputs_of
from tests.operating.story import MAIN

_DEEP = 5
"""A lock is not taken more often within itself."""


class NotCommittedError(Exception):
    """A tick was reported as failed."""


class KilledError(BaseException):
    """The process ends here, as far as the flow can tell."""


@dataclass
class Hands:
    """Operates the flows of one project.

    Args:
        home: of the project.
        declared: of each flow its inputs.
        sample_keys: for how many keys ticks are judged by the program.
        has_tables: whether the outputs of the flow that all is about are tables, too, and have
            something expected of them.
    """

    home: Path
    declared: Mapping[str, Mapping[str, Declared]]
    sample_keys: int = 0
    has_tables: bool = False
    settings: ProjectSettings = field(init=False)
    shards: dict[str, int] = field(init=False, default_factory=dict)
    """Into how many shards each flow is to be cut."""

    is_recorded: ClassVar[bool] = False
    """Whether Dagster has records of what failed and of what was killed."""

    def __post_init__(self) -> None:
        self.settings = ProjectSettings(
            home=self.home, spark_master="local[2]", sample_keys=self.sample_keys
        )
        (self.home / "programs").mkdir(parents=True)
        (self.home / "copies").mkdir()

    def write(self, name: str, text: str, shards: int = 1) -> None:
        """Edits the program of a flow, and into how many shards it is cut."""
        self._program(name).write_text(text, encoding="utf-8")
        self.shards[name] = shards

    def landing(self, flow: str, name: str) -> Path:
        """Where rows of an input land."""
        return self.settings.landing / flow / name

    def asset(self, name: str) -> FlowAsset:
        """The flow as its folder declares it."""
        inputs: dict[str, Landing | FlowOutput] = {}
        for given, of in self.declared[name].items():
            late: Any = of.late
            inputs[given] = (
                FlowOutput(of.fed_by, "o", late=late)
                if of.fed_by
                else Landing(f"{name}/{given}", **of.words)
            )
        program, shards = self._program(name), self.shards.get(name, 1)
        text = program.read_text(encoding="utf-8")
        names = sorted(outputs_of(text)) if self.has_tables and name == MAIN else ()
        # What is only shown: of columns that are padded there are nulls.
        expect = {
            o: (Expect(columns_of(text, o)[0], not_null=True, severity="warn"),) for o in names
        }
        kept = dict.fromkeys(names, KeptOutput("table"))
        how: Any = {"shards": shards, "expect": expect, "outputs": kept}
        return FlowAsset(name, program, DAILY, inputs, **how)

    def tick(self, name: str, first: int, last: int, kill: int = 0) -> Done:
        """As `backfill --to`."""

        def run(flow: FlowAsset, runner: TickRunner) -> None:
            windows = [AXIS.window(tick) for tick in range(first, last + 1)]
            for report in runner.run(flow, windows, lambda _: None):
                if not report.committed:
                    raise NotCommittedError(f"tick {report.window.key}: {report.problem}")

        return self._guarded(name, run, kill)

    def correct(self, name: str, first: int, kill: int = 0) -> Done:
        """As `correct --from`."""

        def run(flow: FlowAsset, runner: TickRunner) -> None:
            plan = planned(runner, flow, AXIS.window(first).key)
            for report in runner.correct(flow, plan.asked, lambda _: None):
                if not report.committed:
                    raise NotCommittedError(f"tick {report.window.key}: {report.problem}")

        return self._guarded(name, run, kill)

    def backfill(self, name: str, first: int, last: int, kill: int = 0) -> Done:
        """As `backfill --from --to` from a committed tick on."""
        corrected = self.correct(name, first, kill)
        if corrected.code != 0 or corrected.is_killed:
            return corrected
        return self.tick(name, first, last, kill)

    def plan(self, name: str, how: How, *, as_text: bool) -> Done:
        """What deploying would do."""
        return self.command("plan", name, *how.words, style="text" if as_text else "json")

    def deploy(self, name: str, how: How, kill: int = 0) -> Done:
        """As `deploy --yes`."""

        def run(flow: FlowAsset, runner: TickRunner) -> None:
            change = plan_deployment(flow, runner, how.options)
            if change is not None:
                deploy(change, runner, lambda _: None)

        return self._guarded(name, run, kill)

    def rollback(self, name: str, kill: int = 0) -> Done:
        """As `rollback --yes`."""

        def run(flow: FlowAsset, runner: TickRunner) -> None:
            roll_back(flow, runner, predecessor(flow, runner), lambda _: None)

        return self._guarded(name, run, kill)

    def compact(self, name: str, keep_hours: int, kill: int = 0) -> Done:
        """As `compact --keep-hours`."""
        if not kill:
            return self.command("compact", name, "--keep-hours", str(keep_hours))

        def run(flow: FlowAsset, runner: TickRunner) -> None:
            runner.pipeline(flow).compact(keep_hours)

        return self._guarded(name, run, kill)

    def forget(self, name: str, value: str, kill: int = 0) -> Done:
        """As `forget --yes` of whoever has a value in the column that all inputs have."""

        def run(flow: FlowAsset, runner: TickRunner) -> None:
            values = dict.fromkeys(flow.inputs, (KEY, value))
            forget(forget_plan(runner, flow, values), lambda _: None)

        return self._guarded(name, run, kill)

    def command(self, *words: str, style: str = "json") -> Done:
        """A command of the project, in this process."""
        flows = [self.asset(name) for name in self.declared]
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.object(project, "current", return_value=Project(self.settings, flows)),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = main([*words, "--format", style])
        return Done(code, out.getvalue() if code == 0 or out.getvalue() else err.getvalue())

    def status(self, name: str) -> Told:
        """What `status` says."""
        done = self.command("status", name)
        return Told(done.code, json.loads(done.said)["flows"][0])

    def copy(self, name: str) -> Done:
        """Copies the pipeline."""
        shutil.rmtree(self._copy(name), ignore_errors=True)
        return self.command("copy", name, str(self._copy(name)))

    def put_back(self, name: str) -> Done:
        """Puts the copy in the place of the pipeline."""
        return self.command("restore", str(self._copy(name)), name, "--yes")

    def copy_all(self) -> Done:
        """Copies the project, after the copy before is removed."""
        shutil.rmtree(self._copy_of_all, ignore_errors=True)
        return self.command("copy", str(self._copy_of_all))

    def put_back_all(self, *names: str) -> Done:
        """Puts that copy in the place of the project, or of some of its flows."""
        return self.command("restore", str(self._copy_of_all), *names, "--yes")

    def outputs(self, name: str, text: str) -> dict[str, list[list[Values]]]:
        """All outputs at every committed tick, as `show` reads them."""
        flow, runner = self._opened(name)
        pipeline, done = runner.pipeline(flow), runner.next_tick(flow)
        found: dict[str, list[list[Values]]] = {}
        for output in pipeline.output_tables:
            columns = columns_of(text, output) if output in outputs_of(text) else ()
            found[output] = [
                [
                    tuple(row.get(c, "no such column") for c in columns)
                    for row in rows_at(pipeline, output, tick).rows
                ]
                for tick in range(done)
            ]
        return found

    def tables(self, name: str, text: str) -> dict[str, list[Values]]:
        """The outputs that are tables, as any reader of Delta finds them."""
        flow, runner = self._opened(name)
        found = {}
        for output in flow.tables if self.has_tables else ():
            place = runner.table_of(flow, output) if output in outputs_of(text) else None
            if isinstance(place, Path):
                rows = DeltaTable(place).to_pyarrow_table().to_pylist()
                found[output] = [tuple(row[c] for c in columns_of(text, output)) for row in rows]
        return found

    def done(self, name: str) -> int:
        """How many ticks are committed."""
        flow, runner = self._opened(name)
        return runner.next_tick(flow)

    def number(self, name: str) -> int | None:
        """The number of the deployment that serves."""
        flow, runner = self._opened(name)
        serving = runner.deployments.active(flow)
        return None if serving is None else serving.number

    def sequence(self, name: str) -> int:
        """The number of the ledger's last row."""
        flow, runner = self._opened(name)
        last = runner.deployments.ledger(flow).last
        return -1 if last is None else last.sequence

    def commits(self, name: str, after: int) -> list[Committed]:
        """The rows of the ledger after one that have ticks."""
        flow, runner = self._opened(name)
        return [
            Committed(one.first, one.last, {read.name: dict(read.late) for read in one.inputs})
            for one in runner.deployments.ledger(flow).commits()
            if one.sequence > after and one.ticks
        ]

    def problems(self, name: str) -> Sequence[str]:
        """What `status --verify` finds."""
        return verify(self.settings.pipelines / name, measure).problems

    def _program(self, name: str) -> Path:
        return self.home / "programs" / f"{name}.hydro"

    def _copy(self, name: str) -> Path:
        return self.home / "copies" / name

    @property
    def _copy_of_all(self) -> Path:
        # What is copied has no copies of itself.
        return self.home.with_name(f"{self.home.name}-copied")

    def _opened(self, name: str) -> tuple[FlowAsset, TickRunner]:
        """The flow as a new process finds it."""
        return self.asset(name), TickRunner(self.settings)

    def _guarded(self, name: str, run: Callable[[FlowAsset, TickRunner], None], kill: int) -> Done:
        flow, runner = self._opened(name)
        try:
            if not kill:
                run(flow, runner)
            else:
                with _dying(runner, flow, kill):
                    run(flow, runner)
        except (HydroError, NotCommittedError) as error:
            return Done(1, str(error))
        except KilledError as killed:
            return Done(-9, f"killed at `{killed}`", is_killed=True)
        return Done()


@contextmanager
def _dying(runner: TickRunner, flow: FlowAsset, nth: int) -> Iterator[None]:
    """Ends at the n-th step that a pipeline tells of, and nothing is tidied up after it."""
    pipeline, steps = runner.pipeline(flow), 0

    def step(name: str) -> None:
        nonlocal steps
        steps += 1
        if steps == nth:
            StagedPast.abandon = lambda self: None  # type: ignore[method-assign]
            PreparedRange.abandon = lambda self: None  # type: ignore[method-assign]
            raise KilledError(name)

    abandons = StagedPast.abandon, PreparedRange.abandon
    pipeline.step = step
    try:
        yield
    except KilledError:
        # As the end of the process does.
        for _ in range(_DEEP):
            pipeline.lock.release()
        raise
    finally:
        StagedPast.abandon, PreparedRange.abandon = abandons  # type: ignore[method-assign]
