"""Which deployment of a flow serves: the one that the ledger's last row names.

A flow that was never deployed is deployed by its first tick. Its deployment is written before that,
and is no more than a draft until a row of the ledger names it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hydro_core.artifact.files import (
    WrittenDeployment,
    name_at,
    name_of,
    newest,
    numbers,
    remove,
    write,
)
from hydro_core.catalog.forms import Form
from hydro_core.errors import DataError, ProgramError
from hydro_core.lang.params import changed_params, written
from hydro_core.lang.source import PROGRAMS
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.program_change.said import said
from hydro_core.project.check import no_such_output, takes_back
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.program import params_given, program_of, served, sharding_of
from hydro_core.storage.remote import DataPlace
from hydro_core.types.item import declared_columns

from .programs import deployment_for, plan_as_written, said_instead, texts_of

if TYPE_CHECKING:
    from hydro_core.artifact.deployment import Deployment
    from hydro_core.compile import Compiled
    from hydro_core.spark.store.ledger.commit import Commit
    from hydro_core.spark.store.ledger.ledger import Ledger


COPIES = "copies"
"""The column by which the log of an output says how often a row comes, or goes."""


class Deployments:
    """The deployments of all flows of a project, each read once; none is made by looking."""

    def __init__(self, pipelines: DataPlace) -> None:
        self._pipelines = pipelines
        self._ledgers: dict[str, Ledger] = {}
        self._serving: dict[str, WrittenDeployment] = {}
        self._drafts: dict[str, WrittenDeployment] = {}

    def ledger(self, flow: FlowAsset) -> Ledger:
        """The ledger of a flow's pipeline, read anew: what is new since it was read last."""
        return self.ledger_of(flow.name)

    def ledger_of(self, flow: str) -> Ledger:
        from hydro_core.spark.store.ledger.ledger import Ledger

        if flow not in self._ledgers:
            self._ledgers[flow] = Ledger(self._pipelines / flow)
        self._ledgers[flow].refresh()
        return self._ledgers[flow]

    def output_of(
        self, flow: FlowAsset, name: str, columns: Collection[str] | None
    ) -> tuple[DataPlace, int | None]:
        """The table of another flow's output, which an input of this one is, and the version of it
        that the other flow's ledger names: what lies there beyond that has not happened.

        Args:
            flow: the one that reads.
            name: its input.
            columns: those that it reads; None: the program does not say which.

        Raises:
            ProgramError: it has no such output; or that is a log of changes, and what it takes back
                would be read as what it gives (code `config`).
        """
        read = flow.reads[name]
        directory, commit = self._pipelines / read.flow, self.ledger_of(read.flow).last
        if commit is None:
            return directory / "outputs" / read.output, None
        tables = {r["of"]: (t, r) for t, r in commit.tables.items() if r["role"] == "output"}
        if read.output not in tables:
            raise no_such_output(flow, name, tables)
        table, record = tables[read.output]
        if record["mode"] == Form.CHANGES.stored and COPIES not in (columns or ()):
            raise takes_back(flow, name)
        return directory / table, commit.versions.get(table)

    def commit(self, flow: FlowAsset) -> Commit | None:
        """The last commit of a flow's pipeline, read anew; None before the first."""
        return self.ledger(flow).last

    def seen(self, flow: FlowAsset) -> Commit | None:
        """The last commit when it was looked for last; None before the first look."""
        known = self._ledgers.get(flow.name)
        return None if known is None else known.last

    def serving(self, flow: FlowAsset) -> WrittenDeployment | None:
        """The deployment that serves; None before the first commit.

        Raises:
            DataError: it is not there, or cannot be read (code `state`).
        """
        commit = self.commit(flow)
        if commit is None:
            return None
        known = self._serving.get(flow.name)
        if known is None or known.name != commit.plan:
            directory = self._pipelines / flow.name
            known = newest(directory, commit.plan)
            if known is None:
                raise DataError.of(
                    "state",
                    f"the deployment of `{flow.name}` that serves is not in "
                    f"{directory / 'deployments'}",
                    help="restore the directory from a copy; or start the flow over: "
                    f"`hydrotick reset {flow.name}`",
                )
            self._serving[flow.name] = known
        return known

    def draft(self, flow: FlowAsset) -> WrittenDeployment | None:
        """The deployment that is written of the program, if that was not changed since.

        Raises:
            HydroError: the program is wrong, and a deployment is written.
        """
        known = self._drafts.get(flow.name) or newest(self._pipelines / flow.name)
        if known is None or said_instead(flow, known.deployment) is not None:
            return None
        self._drafts[flow.name] = known
        return known

    def prepared(self, flow: FlowAsset) -> WrittenDeployment:
        """The deployment that serves, or that the first tick makes serve, which is written now.

        Raises:
            HydroError: the program is wrong, or its deployment cannot be written.
        """
        serving = self.serving(flow)
        if serving is not None:
            return serving
        found = self.draft(flow)
        if found is None:
            found = self._drafts[flow.name] = self.written(flow, deployment_for(flow))
        return found

    def first(self, flow: FlowAsset) -> WrittenDeployment:
        """What the first tick would make serve; it is not written, if it is not there already.

        Raises:
            HydroError: the program is wrong.
        """
        found = self.draft(flow)
        if found is not None:
            return found
        return self.next(flow, deployment_for(flow))

    def next(self, flow: FlowAsset, made: Deployment) -> WrittenDeployment:
        """A deployment as the flow's next one, with the number that it is written by; it is not."""
        number = max(numbers(self._pipelines / flow.name), default=0) + 1
        return WrittenDeployment(number, name_of(made), made)

    def written(self, flow: FlowAsset, deployment: Deployment) -> WrittenDeployment:
        """A deployment, written as the flow's next one; it does not serve by that."""
        number = write(self._pipelines / flow.name, deployment)
        return WrittenDeployment(number, name_of(deployment), deployment)

    def forget(self, flow: FlowAsset, keep: timedelta, now: datetime) -> tuple[int, ...]:
        """Removes the deployments that were given up longer ago than `keep`, and gives their
        numbers; those that never served go with them.
        """
        serving, commit = self.serving(flow), self.commit(flow)
        if serving is None or commit is None:
            return ()
        directory = self._pipelines / flow.name
        stays: set[str | None] = {serving.name}
        plan = commit.plan
        for one in reversed(self.ledger(flow).commits()):
            if one.plan != plan and now - commit.committed < keep:
                stays.add(one.plan)
            plan, commit = one.plan, one
        gone = [n for n in numbers(directory) if n < serving.number]
        gone = [n for n in gone if name_at(directory, n) not in stays]
        for number in gone:
            remove(directory, number)
        return tuple(gone)

    def plan(self, flow: FlowAsset) -> TickPlan:
        """The plan by which ticks run; that of the program as written where none is prepared.

        Raises:
            HydroError: there is no deployment, and the program is wrong.
        """
        found = self.shown(flow)
        return plan_as_written(flow) if found is None else found.deployment.plan

    def shown(self, flow: FlowAsset) -> WrittenDeployment | None:
        """The deployment that serves, else the one that is written of the program as it is now.

        Raises:
            HydroError: there is a deployment, none serves, and the program is wrong.
        """
        return self.serving(flow) or self.draft(flow)

    def named(self, flow: FlowAsset, name: str) -> WrittenDeployment | None:
        """A written deployment by its name, whether it serves or not; None where it is not there.

        Raises:
            DataError: it cannot be read (code `state`).
        """
        known = (self._serving.get(flow.name), self._drafts.get(flow.name))
        same = next((one for one in known if one is not None and one.name == name), None)
        return same or newest(self._pipelines / flow.name, name)

    def naive(self, flow: FlowAsset) -> Compiled:
        """The program as it was written of which the plan is that ticks run by.

        Raises:
            HydroError: there is no deployment that serves, and the program is wrong.
        """
        from hydro_core.compile import stratified

        found = self.shown(flow)
        if found is None:
            return program_of(flow)
        return stratified(found.deployment.program.typed)

    def undeployed(self, flow: FlowAsset) -> Undeployed:
        """What of the program is not deployed; nothing where it is the one that serves.

        The optimizer is not asked: a program that says the same in another way is told, too.
        """
        serving = self.serving(flow)
        if serving is None:
            return Undeployed()
        try:
            now = said_instead(flow, serving.deployment)
        except (DataError, ProgramError) as error:
            first = error.diagnostics[0].message
            says = f"`{_named(flow)}` cannot be deployed as it is: {first}"
            return Undeployed(says, deployable=False)
        if now is None:
            return Undeployed()
        was = said(serving.deployment.program.typed)
        changed = {name for name, meant in was[1].items() if now[1].get(name) != meant}
        params = changed_params(serving.deployment.params, written(params_given(flow)))
        if params and texts_of(flow) == serving.deployment.program.texts:
            return Undeployed(f"not deployed: {', '.join(params)}", frozenset(changed))
        has = serving.deployment.sharding
        if not changed and now[0] == was[0] and sharding_of(flow) != has:
            return Undeployed(f"the shards that its asset asks for are not deployed; {served(has)}")
        return Undeployed(f"`{_named(flow)}` has changes that are not deployed", frozenset(changed))


@dataclass(frozen=True, slots=True)
class Undeployed:
    """What of a program is not deployed, in words, and which outputs say something else by it."""

    says: str = ""
    outputs: frozenset[str] = frozenset()
    deployable: bool = True
    """Whether it can be deployed; else `says` has why not."""


def fitted(flow: FlowAsset, plan: TickPlan, which: str = "that serves") -> FlowAsset:
    """What the asset says, as far as it is about what a plan reads and gives.

    The asset may be ahead of the deployment that serves. `which`: the one whose plan it is.

    Raises:
        DataError: the plan reads an input of which the asset does not say where it lands.
    """
    missing = [name for name in plan.graph.sources if name not in flow.inputs]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        raise DataError.of(
            "config",
            f"the deployment of `{flow.name}` {which} reads {listed}, and its asset does "
            "not say any more where that lands",
            help="say it again in `inputs` until a program without it is deployed "
            f"(`hydrotick deploy {flow.name}`)",
        )
    given = {
        name: declared_columns(stream.item) or {"item": stream.item}
        for name, stream in plan.typed.outputs.items()
    }
    expect = {
        output: tuple(e for e in expected if e.column in given[output])
        for output, expected in flow.expect.items()
        if output in given
    }
    inputs = {name: flow.inputs[name] for name in plan.graph.sources}
    return replace(flow, expect={o: e for o, e in expect.items() if e}, inputs=inputs)


def _named(flow: FlowAsset) -> str:
    program = str(flow.program)
    return Path(program).name if program.endswith(PROGRAMS) else program
