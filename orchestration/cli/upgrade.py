"""`hydrotick upgrade`: what is stored is taken to the formats of the version at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import dagster as dg

from hydro_core.artifact.files import name_at, numbers, unread
from hydro_core.cli.command import Asked
from hydro_core.errors import HydroError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.store.ledger.ledger import Ledger
from hydro_core.spark.store.ledger.lock import WriterLock
from hydro_core.spark.store.stored_format import FORMAT, format_of, migrate, migrations_of
from hydro_core.storage.remote import DataPlace

from ..instance.opening import open_existing
from ..project import project
from ..project.console import Console, flow_named
from ..project.settings import ProjectSettings

_NOTHING, _WRONG, _CHANGES = 0, 1, 3


@dataclass(frozen=True, slots=True)
class Upgraded:
    """What becomes of a flow's directory or of Dagster's records: the steps, what else is to be
    known, what is in the way, and the format that a directory has then.
    """

    name: str
    steps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""
    format: int | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        if self.problem:
            return (self.problem,)
        return (*(self.steps or ("as this version has it",)), *self.notes)


def upgrade(options: Asked) -> int:
    found = project.current()
    flows = found.flows if options.flow is None else [flow_named(options.flow, found)]
    told = [_of_flow(flow, found.settings, dry=options.dry_run) for flow in flows]
    told.append(_of_instance(found.settings, dry=options.dry_run))
    lines = [f"{one.name}: {line}" for one in told for line in one.lines]
    as_json = {"format": FORMAT, "upgraded": [asdict(one) for one in told]}
    Console(options).give(as_json, "\n".join(lines))
    if any(one.problem for one in told):
        return _WRONG
    return _CHANGES if options.dry_run and any(one.steps for one in told) else _NOTHING


def _of_flow(flow: FlowAsset, settings: ProjectSettings, *, dry: bool) -> Upgraded:
    directory = settings.pipelines / flow.name
    if not Ledger(directory).exists:
        return Upgraded(flow.name)
    try:
        steps = tuple(migration.says for _, migration in migrations_of(directory))
        notes = tuple(_deployments(directory))
        if steps and not dry:
            with WriterLock(directory).at_work("an upgrade"):
                migrate(directory)
        return Upgraded(flow.name, steps, notes, format=format_of(directory).number)
    except HydroError as error:
        return Upgraded(flow.name, problem=str(error))


def _deployments(directory: DataPlace) -> list[str]:
    """The deployments that this version does not read; none of them serves, or that is told first.

    They stay as they are: their names are those of what they hold.
    """
    return [
        f"deployment {number} ({name_at(directory, number)}): {why}"
        for number in numbers(directory)
        if (why := unread(directory, number))
    ]


def _of_instance(settings: ProjectSettings, *, dry: bool) -> Upgraded:
    """Dagster's own records: their tables have revisions, which follow Dagster's releases."""
    name = "Dagster's records"
    try:
        with open_existing(settings.dagster_home) as instance:
            if instance is None:
                return Upgraded(name)
            steps = tuple(_behind(instance))
            if steps and not dry:
                instance.upgrade()
            return Upgraded(name, steps)
    except HydroError as error:
        return Upgraded(name, problem=str(error))


def _behind(instance: dg.DagsterInstance) -> Sequence[str]:
    storages = {
        "runs": instance.run_storage,
        "events": instance.event_log_storage,
        "schedules": instance.schedule_storage,
    }
    found = []
    for name, storage in storages.items():
        revision = storage.alembic_version() if storage is not None else None
        if revision is not None and revision[0] != revision[1]:
            found.append(f"{name}: revision {revision[0]} becomes {revision[1]}")
    return found
