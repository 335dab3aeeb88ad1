"""Runs as people handle them in Dagster's UI, where nothing but the wheel is installed: cancelled,
executed again from the failure or as a whole, tried again by a policy; a backfill that is cancelled
in the middle, and taken up again. Dagster's default launcher starts them, and Spark computes ticks.

Whatever is done, every tick has in the end what its rows give, and no committed tick is made again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hydro_core.spark.pipeline.rows import rows_at
from hydrotick.flows.flows import Flows
from hydrotick.project.project import project_at
from tests.orchestration.web import Api
from tests.pages.blocks import ALL
from tests.wheel.environment import SECONDS, Environment
from tests.wheel.served import served

pytestmark = [pytest.mark.wheel, pytest.mark.slow]

DAYS, ROWS, USERS = 9, 40_000, 50
_PROGRAM = """
payments = source("user long, amount long")
all = payments -> persist()
all -> rows
all -> aggregate(by="user", n=count(), total=sum("amount")) -> totals
"""
_DECLARED = {
    "program": "totals.hydro",
    "ticks": {"start": "2026-01-01", "every": "1d", "end": f"2026-01-{DAYS + 1:02}"},
    "inputs": {"payments": {"path": "payments", "column": "day", "late": "next"}},
    "outputs": {"totals": {"as": "table"}},
    "expect": {"totals": [{"column": "user", "not_null": True, "unique": True}]},
}
_SETTINGS = """
[spark]
master = "local[2]"
memory = "1g"
few_rows = 1
small_writes = 1
[ticks]
range = 1
[dagster]
sensors = "stopped"
"""
_DAGSTER = """
telemetry: {enabled: false}
run_retries: {enabled: true, max_retries: 0}
"""
_ENDED = {"SUCCESS", "FAILURE", "CANCELED"}
_LAUNCH = """mutation($p: ExecutionParams!){launchRun(executionParams: $p){
  __typename ... on LaunchRunSuccess{run{runId}} ... on PythonError{message}}}"""
_AGAIN = """mutation($p: ReexecutionParams!){launchRunReexecution(reexecutionParams: $p){
  __typename ... on LaunchRunSuccess{run{runId}} ... on PythonError{message}}}"""
_TERMINATE = """mutation($run: String!){terminateRun(runId: $run){
  __typename ... on TerminateRunFailure{message}}}"""
_BACKFILL = """mutation($p: LaunchBackfillParams!){launchPartitionBackfill(backfillParams: $p){
  __typename ... on LaunchBackfillSuccess{backfillId} ... on PythonError{message}}}"""
_CANCEL = """mutation($id: String!){cancelPartitionBackfill(backfillId: $id){
  __typename ... on PythonError{message}}}"""
_BACKFILL_AGAIN = """mutation($p: ReexecutionParams!){reexecutePartitionBackfill(
  reexecutionParams: $p){__typename ... on LaunchBackfillSuccess{backfillId}
  ... on PythonError{message}}}"""
_STATE = """query($id: String!){partitionBackfillOrError(backfillId: $id){
  ... on PartitionBackfill{status runs(limit: 20){runId status}}}}"""
_RUN = """query($run: ID!){runOrError(runId: $run){... on Run{status tags{key value}}}}"""
_RUNS = "{runsOrError{... on Runs{results{runId status parentRunId tags{key value}}}}}"
_MADE = """query($k: AssetKeyInput!){assetNodeOrError(assetKey: $k){... on AssetNode{
  assetMaterializations(limit: 200){partition runId description}}}}"""
_WHERE = "{repositoriesOrError{... on RepositoryConnection{nodes{name location{name}}}}}"


def _day(number: int) -> str:
    return f"2026-01-{number:02}"


class ByHand:
    """The flow of a project, as somebody handles its runs."""

    def __init__(self, at: Path, environment: Environment) -> None:
        self.at, self._environment = at, environment
        self.dagster = at.parent / "dagster"
        folder = at / "assets" / "totals"
        folder.mkdir(parents=True)
        (folder / "asset.yaml").write_text(json.dumps(_DECLARED))
        (folder / "totals.hydro").write_text(_PROGRAM)
        (at / "hydrotick.toml").write_text(_SETTINGS)

    def land(self, number: int, rows: int = ROWS) -> None:
        """The rows of a day land; without a user they are refused by a check."""
        numbers = pa.array(range(number, number + rows), pa.int64())
        table = pa.table(
            {
                "day": pa.array([_day(number)] * rows).cast(pa.date32()),
                "user": pa.array([value.as_py() % USERS for value in numbers]),
                "amount": numbers,
            }
        )
        folder = self.at / "data" / "landing" / "payments"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / f"{_day(number)}.parquet")

    def wrong(self, number: int) -> None:
        """The file of a day has one row that no program takes."""
        folder = self.at / "data" / "landing" / "payments"
        day = pa.array([_day(number)]).cast(pa.date32())
        table = pa.table({"day": day, "user": [None], "amount": [1]})
        types = pa.schema([("day", pa.date32()), ("user", pa.int64()), ("amount", pa.int64())])
        pq.write_table(table.cast(types), folder / f"{_day(number)}.parquet")

    @property
    def commits(self) -> list[tuple[int, int]]:
        """The ticks of every row of the ledger."""
        found = project_at(self.at)
        ledger = Flows(found.settings).deployments.ledger_of("totals")
        ledger.refresh()
        return [(one.first, one.last) for one in ledger.commits() if one.ticks]

    def totals(self, tick: int) -> dict[int, tuple[int, int]]:
        """What is stored as of a tick."""
        found = project_at(self.at)
        (flow,) = found.flows
        rows = rows_at(Flows(found.settings).pipeline(flow), "totals", tick).rows
        return {row["user"]: (row["n"], row["total"]) for row in rows}

    def status(self, *words: str) -> tuple[int, Any]:
        """What `status` says of the flow, and its exit code."""
        asked = ["hydrotick", "status", "totals", "--format", "json", *words]
        variables = {**self._environment.variables, "DAGSTER_HOME": str(self.dagster)}
        done = self._environment.run(asked, self.at, variables)
        assert "Traceback" not in done.stdout
        return done.returncode, json.loads(done.stdout[done.stdout.index("{") :])["flows"][0]


def _wanted(tick: int) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for day in range(1, tick + 2):
        for number in range(day, day + ROWS):
            n, total = found.get(number % USERS, (0, 0))
            found[number % USERS] = n + 1, total + number
    return found


class Ui:
    """What the UI asks of Dagster."""

    def __init__(self, port: int) -> None:
        self._api = Api(port)
        (node,) = self._api(_WHERE)["repositoriesOrError"]["nodes"]
        self._selector = {
            "repositoryName": node["name"],
            "repositoryLocationName": node["location"]["name"],
        }

    def launch(self, first: int, last: int, **more: str) -> str:
        """A run of the flow's job for some days."""
        ends = {"start": _day(first), "end": _day(last)}
        tags = {f"dagster/asset_partition_range_{end}": key for end, key in ends.items()}
        tags = {"dagster/partition": _day(first)} if first == last else tags
        said = [{"key": key, "value": value} for key, value in {**tags, **more}.items()]
        asked = {
            "selector": {**self._selector, "jobName": "totals_job"},
            "runConfigData": {},
            "mode": "default",
            "executionMetadata": {"tags": said},
        }
        return self._started(self._api(_LAUNCH, p=asked)["launchRun"])

    def again(self, run: str, strategy: str) -> str:
        """The run is executed again, `FROM_FAILURE` or `ALL_STEPS`."""
        asked = {"parentRunId": run, "strategy": strategy}
        return self._started(self._api(_AGAIN, p=asked)["launchRunReexecution"])

    def terminate(self, run: str) -> None:
        """As by the button of the run."""
        found = self._api(_TERMINATE, run=run)["terminateRun"]
        assert found["__typename"] == "TerminateRunSuccess", found

    def state(self, run: str) -> str:
        """How a run is."""
        return str(self._api(_RUN, run=run)["runOrError"]["status"])

    def tags(self, run: str) -> Mapping[str, str]:
        """What is written at a run."""
        return {tag["key"]: tag["value"] for tag in self._api(_RUN, run=run)["runOrError"]["tags"]}

    def end(self, run: str) -> str:
        """How it has ended, for which it is waited."""
        until(lambda: self.state(run) in _ENDED)
        return self.state(run)

    def runs(self) -> list[Any]:
        """All runs, the last ones first."""
        return list(self._api(_RUNS)["runsOrError"]["results"])

    def backfill(self, first: int, last: int) -> str:
        """A backfill of the outputs."""
        keys = [_day(number) for number in range(first, last + 1)]
        outputs = [{"path": ["totals", name]} for name in ("rows", "totals")]
        asked = {"assetSelection": outputs, "partitionNames": keys}
        found = self._api(_BACKFILL, p=asked)["launchPartitionBackfill"]
        assert "backfillId" in found, found
        return str(found["backfillId"])

    def cancel(self, backfill: str) -> None:
        """It is cancelled."""
        found = self._api(_CANCEL, id=backfill)["cancelPartitionBackfill"]
        assert found["__typename"] == "CancelBackfillSuccess", found

    def backfill_again(self, backfill: str) -> str:
        """What it has left is taken up again."""
        asked = {"parentRunId": backfill, "strategy": "FROM_FAILURE"}
        found = self._api(_BACKFILL_AGAIN, p=asked)["reexecutePartitionBackfill"]
        assert "backfillId" in found, found
        return str(found["backfillId"])

    def backfilled(self, backfill: str) -> Any:
        """How a backfill is, and its runs."""
        return self._api(_STATE, id=backfill)["partitionBackfillOrError"]

    def made(self, output: str) -> list[Any]:
        """Every partition that was recorded, the last ones first."""
        found = self._api(_MADE, k={"path": ["totals", output]})
        return list(found["assetNodeOrError"]["assetMaterializations"])

    @staticmethod
    def _started(found: Any) -> str:
        assert found["__typename"] == "LaunchRunSuccess", found
        return str(found["run"]["runId"])


def until(holds: Callable[[], object], every: float = 0.2) -> None:
    """Waits until something holds."""
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(every)


@pytest.fixture
def shop(environment: Environment, tmp_path: Path) -> ByHand:
    return ByHand(tmp_path / "shop", environment)


@pytest.fixture
def ui(environment: Environment, shop: ByHand) -> Iterator[Ui]:
    folder = shop.at.parent
    (page,) = [block for block in ALL if block.file == "definitions.py"]
    (folder / "definitions.py").write_text(page.text, encoding="utf-8")
    shop.dagster.mkdir()
    (shop.dagster / "dagster.yaml").write_text(_DAGSTER, encoding="utf-8")
    words = ["dagster", "dev", "-f", "definitions.py"]
    with served(environment, words, folder, {"DAGSTER_HOME": str(shop.dagster)}) as port:
        yield Ui(port)


def test_runs_are_cancelled_and_executed_again(ui: Ui, shop: ByHand) -> None:
    for number in range(1, DAYS + 1):
        shop.land(number)
    _cancelled(ui, shop)
    _tried_again(ui, shop)
    _backfilled(ui, shop)
    last = ui.launch(DAYS, DAYS)
    assert ui.end(last) == "SUCCESS"
    assert shop.commits == [(tick, tick) for tick in range(DAYS)]
    for tick in range(DAYS):
        assert shop.totals(tick) == _wanted(tick)
    assert {one["partition"] for one in ui.made("totals")} == set(map(_day, range(1, DAYS + 1)))
    code, told = shop.status("--verify")
    assert (code, told["stopped"], told["open"]) == (0, False, 0), told


def _cancelled(ui: Ui, shop: ByHand) -> None:
    """A run of four ticks is cancelled when one is done; then it is executed again, twice."""
    run = ui.launch(1, 4)
    until(lambda: shop.commits)
    ui.terminate(run)
    assert ui.end(run) == "CANCELED"
    done = len(shop.commits)
    assert shop.commits == [(tick, tick) for tick in range(done)]
    code, told = shop.status()
    assert (code, told["committed"], told["stopped"]) == (1, done, True), told
    assert "was terminated at" in told["next"]
    assert run in told["next"]
    from_failure = ui.again(run, "FROM_FAILURE")
    assert ui.end(from_failure) == "SUCCESS"
    code, told = shop.status()
    assert (code, told["committed"], told["stopped"]) == (0, 4, False), told
    assert shop.commits == [(tick, tick) for tick in range(4)]
    whole = ui.again(from_failure, "ALL_STEPS")
    assert ui.end(whole) == "SUCCESS"
    assert shop.commits == [(tick, tick) for tick in range(4)]
    code, told = shop.status()
    assert (code, told["committed"], told["stopped"]) == (0, 4, False), told


def _tried_again(ui: Ui, shop: ByHand) -> None:
    """A run of a tick that is wrong is tried again by Dagster's policy, then mended by somebody."""
    shop.wrong(5)
    run = ui.launch(5, 5, **{"dagster/max_retries": "1"})
    assert ui.end(run) == "FAILURE"
    until(lambda: any(one["parentRunId"] == run for one in ui.runs()))
    until(lambda: all(one["status"] in _ENDED for one in ui.runs()))
    (again,) = (one["runId"] for one in ui.runs() if one["parentRunId"] == run)
    code, told = shop.status()
    assert (code, told["committed"], told["stopped"]) == (1, 4, True), told
    assert again in told["next"]
    shop.land(5)
    assert ui.end(ui.again(again, "FROM_FAILURE")) == "SUCCESS"
    code, told = shop.status()
    assert (code, told["committed"], told["stopped"]) == (0, 5, False), told


def _backfilled(ui: Ui, shop: ByHand) -> None:
    """A backfill over committed and open ticks is cancelled in the middle, and taken up again."""
    backfill = ui.backfill(3, 8)
    until(lambda: len(shop.commits) > 5)
    ui.cancel(backfill)
    until(lambda: ui.backfilled(backfill)["status"] == "CANCELED")
    until(lambda: all(one["status"] in _ENDED for one in ui.runs()))
    code, told = shop.status()
    assert (code, told["committed"], told["stopped"]) == (1, len(shop.commits), True), told
    taken_up = ui.backfill_again(backfill)
    until(lambda: ui.backfilled(taken_up)["status"].startswith(("COMPLETED", "FAILED")))
    assert ui.backfilled(taken_up)["status"] == "COMPLETED_SUCCESS"
    assert shop.commits == [(tick, tick) for tick in range(8)]
