"""A driver of a cluster that shares nothing with it: MASTER URL HOME WHAT; it prints what is there.

All that lands and all that is kept is in the bucket of the server at URL.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from hydro_core.project.flow_asset import FlowAsset, FlowSpark
from hydro_core.settings import Settings
from hydro_core.spark.executor import shell
from hydro_core.spark.session.session import shared_session
from hydro_core.spark.store.delta import write
from hydrotick.runner.runner import TickRunner
from tests.orchestration.changing import by_name
from tests.orchestration.late import IN_TIME, OPEN
from tests.orchestration.small import contents
from tests.orchestration.test_pipelines_in_a_store import AllInStore, changes, ticks
from tests.support.standalone import conf_of_driver
from tests.support.store_server import StoreServer

LABELS = """
from datetime import date

SINCE = {name: date(2020 + place, 1, 1) for place, name in enumerate(("ann", "bob", "cat"))}


def label(payment) -> str:
    # No expression of Spark: Python runs it, where the rows are.
    user, amount = payment.user, payment.amount
    return f"{user} since {tuple(SINCE.get(user, date.max).isocalendar())}: {amount:>{len(user)}}"
"""
MADE = """
from hydro_core import Flow, agg

from labels import label

flow = Flow("small")
payments = flow.source("payments", "user string, amount long")
history = payments.persist()
history.aggregate(by="user", total=agg.sum("amount")).delta().sink("totals")
labelled = payments.with_columns(label=label)
labelled.persist().unique().delta().sink("before")
"""
"""A flow in Python, whose function is of a module of the project."""


_NONE_ARE_FEW = {"few_rows": 0, "small_write_rows": 0}


def with_own_modules(late: Any) -> Any:
    """The flow is one in Python that imports what stands beside it."""
    folder = Path(late.flow.program).parent
    for name, text in {"labels": LABELS, "made": MADE}.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    # What stands in the folder of an asset is found in it; here it is that of the command.
    sys.path.insert(0, str(folder))
    for name in ("labels", "made"):
        sys.modules.pop(name, None)
    late.flow = replace(late.flow, program="made:flow")
    late.open()
    return late


def corrected(late: Any) -> Iterator[Mapping[str, list[str]]]:
    """What there is after ticks, and after a correction."""
    yield ticks(late).by_name
    late.correct(1)
    yield late.by_name


class OnCluster(AllInStore):
    """The small flow on a cluster; with `many`, rows are never taken for few."""

    def __init__(
        self, server: StoreServer, home: Path, master: str, *, many: bool, kind: str = "parquet"
    ) -> None:
        self.many = many
        super().__init__(server, home)
        self.kind = kind
        conf = conf_of_driver()
        self.project = replace(self.project, spark_master=master, spark_conf=conf)
        self.open()

    def open(self) -> None:
        """As a new process does."""
        self.runner = ManyRunner(self.project) if self.many else TickRunner(self.project)


class ManyRunner(TickRunner):
    @property
    def settings(self) -> Settings:
        return super().settings.with_(**_NONE_ARE_FEW)

    def settings_for(self, flow: FlowAsset) -> Settings:
        return super().settings_for(flow).with_(**_NONE_ARE_FEW)


def jsonable(steps: Iterator[Mapping[str, list[str]]]) -> list[dict[str, list[str]]]:
    """What is there after each step."""
    return [dict(step) for step in steps]


IN_ROUNDS = """
payments = source("user string, amount long")
payments -> persist() -> aggregate(by="user", total=sum("amount")) -> delta() -> totals
payments -> persist() -> down
down = union() -> unique()
down -> filter(lambda p: p.amount > 0) -> with_columns(amount=lambda p: p.amount - 25) -> down
down -> delta() -> before
"""
"""A flow with a cycle, each of whose rounds keeps its rows with the executors."""


def in_rounds(late: Any) -> Iterator[Mapping[str, list[str]]]:
    """What there is after each tick of the flow with a cycle."""
    late.edit(IN_ROUNDS)
    late.land([(tick, f"u{n}", 100 + tick * n) for tick in range(OPEN) for n in range(20)])
    late.open()
    for tick in range(OPEN):
        late.ran((tick, tick))
        yield late.by_name


class Kills:
    """Asks for the end of workers: at each tick but the first of one, at another moment."""

    def __init__(self, home: Path) -> None:
        self.home, self.lost, self.done = home, 0, list[str]()
        self._due = ["task", "written", "checkpointed"]
        write.checkpointed = self._after(write.checkpointed, "checkpointed")  # type: ignore[assignment]
        write.write_parquet = self._after(write.write_parquet, "written")  # type: ignore[assignment]
        is_lost = shell.is_lost

        def counted(error: BaseException) -> bool:
            found = is_lost(error)
            self.lost += found
            return found

        shell.is_lost = counted

    def ticks(self, late: Any) -> Iterator[Mapping[str, list[str]]]:
        """Runs the flow with a cycle."""
        for tick, found in enumerate(in_rounds(late)):
            yield found
            self.now = tick < OPEN - 1 and self._due[tick]
            if self.now == "task":
                self.now = False
                threading.Thread(target=self._in_a_task, daemon=True).start()

    now: str | bool = False

    def _after(self, work: Callable[..., Any], moment: str) -> Callable[..., Any]:
        def does(*given: Any, **named: Any) -> Any:
            done = work(*given, **named)
            if self.now == moment:
                self.now = False
                self._kill(host_of(done[0]) if moment == "checkpointed" else "any")
            return done

        return does

    def _in_a_task(self) -> None:
        tracker = shared_session().sparkContext.statusTracker()
        while not any(
            info and info.numActiveTasks
            for stage in tracker.getActiveStageIds()
            if (info := tracker.getStageInfo(stage))
        ):
            time.sleep(0.01)
        self._kill("any")

    def _kill(self, host: str) -> None:
        asked = self.home / "kill"
        (self.home / "new").write_text(host)
        (self.home / "new").rename(asked)
        while asked.exists():
            time.sleep(0.02)
        self.done.append(host)


def host_of(kept: DataFrame) -> str:
    """The machine that has rows which are kept with its executors."""
    context: Any = kept.sparkSession.sparkContext
    rows: Any = kept._jdf.queryExecution().logical().rdd()
    master, blocks = context._jsc.sc().env().blockManager().master(), context._jvm.org.apache.spark
    for part in range(rows.getNumPartitions()):
        there = master.getLocations(blocks.storage.RDDBlockId(rows.id(), part))
        for place in range(there.size()):
            return str(there.apply(place).host())
    raise AssertionError("nobody has the rows")


def turns(server: StoreServer, home: Path, master: str) -> Any:
    """Flows that run here and on the cluster take turns in one process."""
    here = AllInStore(server, home)
    here.land(IN_TIME)
    there = replace(here.flow, name="there", spark=FlowSpark(conf_of_driver(), master))
    windows = [here.flow.ticks.calendar.window(tick) for tick in range(OPEN)]
    found: list[Any] = []
    for window in windows:
        for flow in (here.flow, there):
            (report,) = here.runner.run(flow, [window], lambda _: None)
            master_ = here.runner.pipeline(flow).spark.sparkContext.master
            found.append([report.problem, master_])
    same = [by_name(contents(flow, here.runner)) for flow in (here.flow, there)]
    return [found, same[0] == same[1]]


def main(master: str, url: str, home: Path, what: str) -> Any:
    """Does what is asked, and gives what is there then."""
    server = StoreServer(url)

    def late(*, many: bool = True) -> OnCluster:
        return OnCluster(server, home, master, many=many)

    def killed() -> Any:
        kills = Kills(home)
        return [jsonable(kills.ticks(late())), kills.lost, kills.done]

    made: Mapping[str, Callable[[], Any]] = {
        "many": lambda: jsonable(changes(late())),
        "few": lambda: jsonable(changes(late(many=False))),
        "own": lambda: jsonable(corrected(with_own_modules(late()))),
        "killed": killed,
        "turns": lambda: turns(server, home, master),
    }
    return made[what]()


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])))  # noqa: T201
