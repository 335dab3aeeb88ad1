"""Dagster's instance of a project: opened to write or to ask, and the storages that it names.

Which storage that is says its `dagster.yaml`: SQLite in its directory, PostgreSQL, or any other
that Dagster has. So the records are asked and written through the instance alone.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dagster as dg
import sqlalchemy as db
import yaml
from dagster._core.events import ASSET_CHECK_EVENTS, ASSET_EVENTS
from dagster._core.execution.compute_logs import redirect_to_file
from dagster._core.instance.ref import compute_logs_directory
from dagster._core.storage.compute_log_manager import CapturedLogContext, ComputeIOType
from dagster._core.storage.event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable
from dagster._core.storage.local_compute_log_manager import (
    IO_TYPE_EXTENSION,
    LocalComputeLogManager,
)
from dagster._serdes import ConfigurableClassData
from dagster_shared.check import CheckError
from sqlalchemy.exc import SQLAlchemyError

from hydro_core.errors import DataError, HydroError, TransientError
from hydro_core.machine.locks import FileLock

from . import SETTINGS, prepare_instance

_SECONDS_TO_OPEN = 120
"""Another process makes the tables of a fresh instance meanwhile, in seconds."""


@contextmanager
def open_instance(directory: Path) -> Iterator[dg.DagsterInstance]:
    """The project's Dagster instance; it is made where there is none.

    Raises:
        HydroError: its settings are wrong (code `config`), or what stores its records does not
            answer (code `state`).
    """
    # The first run of an instance makes its tables, of which alembic tells line by line.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    with ExitStack() as opened:
        # Tables are made by one process at a time: Dagster's migrations do not expect another.
        with _alone(directory):
            opened.enter_context(_at_home(directory))
            instance = _opened(directory, opened)
        yield instance


@contextmanager
def open_existing(directory: Path) -> Iterator[dg.DagsterInstance | None]:
    """The project's Dagster instance, if there is one: to look makes none.

    Raises:
        HydroError: it cannot be opened.
    """
    if not directory.exists():
        yield None
        return
    with open_instance(directory) as instance:
        yield instance


@contextmanager
def read_instance(directory: Path) -> Iterator[dg.DagsterInstance]:
    """The project's Dagster instance, to be asked only: nothing is written where it is.

    Of one that is not there, and of one without records, there is nothing to ask. Records that may
    not be written are copied: SQLite writes beside a database that is only read.

    Raises:
        HydroError: it cannot be opened.
    """
    if not directory.exists():
        with dg.DagsterInstance.ephemeral() as instance:
            yield instance
    elif os.access(directory, os.W_OK):
        with open_instance(directory) as instance:
            yield instance
    else:
        with TemporaryDirectory(prefix="hydrotick-") as copied:
            home = Path(copied) / "home"
            shutil.copytree(directory, home, ignore=_WITHOUT_LOGS)
            with open_instance(home) as instance:
                yield instance


_WITHOUT_LOGS = shutil.ignore_patterns("storage", "workers", "*.lock", "*.sock")


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Makes the instance's directory ready, with nobody else at it meanwhile.

    Where nothing may be written, as in a container whose settings are mounted, nothing is.
    """
    if directory.exists() and not os.access(directory, os.W_OK):
        yield
        return
    with FileLock(directory / "opening.lock").waited_for(_SECONDS_TO_OPEN):
        prepare_instance(directory)
        yield


def _opened(directory: Path, opened: ExitStack) -> dg.DagsterInstance:
    silent: tuple[type[Exception], ...] = (SQLAlchemyError, *_not_answered())
    try:
        instance = opened.enter_context(dg.DagsterInstance.get())
        # Each makes its tables when it is asked for first.
        _ = instance.run_storage, instance.event_log_storage, instance.schedule_storage
    except (ImportError, yaml.YAMLError, dg.DagsterError, CheckError) as error:
        raise _wrong(directory, error) from error
    except silent as error:
        message = f"Dagster's records do not answer: {_first_line(error.__cause__ or error)}"
        cure = f"see that what {directory / SETTINGS} names is running and lets this machine in"
        raise TransientError.of("state", message, help=cure) from error
    return instance


def _wrong(directory: Path, error: Exception) -> HydroError:
    cure = f"mend {directory / SETTINGS}; a library that it names is to be installed"
    if getattr(error, "name", None) == "psycopg":
        cure = (
            "write the address as `postgresql+psycopg2://…`: this release of SQLAlchemy takes "
            "`postgresql://` for psycopg, and dagster-postgres comes with psycopg2"
        )
    wrong = getattr(error, "errors", None)
    # Dagster adds the stack of its own code to what is wrong with a value.
    says = wrong[0].message.partition("\n\nStack Trace:")[0] if wrong else _first_line(error)
    message = f"Dagster's instance in {directory} cannot be opened: {says}"
    return DataError.of("config", message, help=cure)


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _not_answered() -> tuple[type[Exception], ...]:
    """Errors of the library for PostgreSQL when it gives up."""
    try:
        from dagster_postgres.utils import DagsterPostgresException
    except ImportError:
        return ()
    return (DagsterPostgresException,)


@contextmanager
def _at_home(directory: Path) -> Iterator[None]:
    # The shipped settings name the directory by Dagster's own variable.
    before = os.environ.get("DAGSTER_HOME")
    os.environ["DAGSTER_HOME"] = str(directory)
    try:
        yield
    finally:
        if before is None:
            del os.environ["DAGSTER_HOME"]
        else:
            os.environ["DAGSTER_HOME"] = before


class EventLog(ConsolidatedSqliteEventLogStorage):
    """The storage that the shipped `dagster.yaml` names; its database is Dagster's own."""

    @cached_property
    def _engine(self) -> db.Engine:
        engine = db.create_engine(
            self._conn_string, poolclass=db.pool.NullPool, connect_args={"timeout": 30}
        )
        no_wait = "PRAGMA synchronous=OFF"
        db.event.listen(engine, "connect", lambda connection, _: connection.execute(no_wait))
        return engine

    @contextmanager
    def _connect(self) -> Iterator[db.Connection]:
        with self._engine.connect() as connection, connection.begin():
            yield connection

    def forget(self, runs: Sequence[str], kept: Sequence[str]) -> int:
        """Removes the events of runs, but those of the kept types; gives how many runs had some."""
        forgotten = 0
        kind = SqlEventLogStorageTable.c.dagster_event_type
        for run in runs:
            with self.run_connection(run) as connection:
                removed = connection.execute(
                    SqlEventLogStorageTable.delete()
                    .where(SqlEventLogStorageTable.c.run_id == run)
                    .where(db.or_(kind.is_(None), kind.not_in(kept)))
                )
            forgotten += removed.rowcount > 0
        return forgotten


KEPT_DAYS = 30
"""Causes of failures are looked for within a month."""

_ENDED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]
_KEPT_EVENTS = sorted(event.value for event in ASSET_EVENTS | ASSET_CHECK_EVENTS)


def forget_old_logs(instance: dg.DagsterInstance, days: int) -> int:
    """Removes the logs of runs that ended more than `days` days ago; gives how many runs had some.

    It does nothing in an instance whose events are stored otherwise than in the shipped way.
    """
    events = instance.event_log_storage
    if not isinstance(events, EventLog):
        return 0
    before = datetime.now(UTC) - timedelta(days=days)
    old = instance.get_run_records(dg.RunsFilter(statuses=_ENDED, updated_before=before))
    forgotten = events.forget([record.dagster_run.run_id for record in old], _KEPT_EVENTS)
    storage = Path(instance.root_directory) / "storage"
    for record in old:
        shutil.rmtree(storage / record.dagster_run.run_id, ignore_errors=True)
    return forgotten


class Printed(LocalComputeLogManager):
    """The storage that the shipped `dagster.yaml` names; its files are where Dagster's own are."""

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> Printed:
        directory = compute_logs_directory(config_value["base_dir"])
        return cls(**{**config_value, "base_dir": directory}, inst_data=inst_data)

    @contextmanager
    def capture_logs(self, log_key: Sequence[str]) -> Iterator[CapturedLogContext]:
        out, err = (
            Path(self.get_captured_local_path(log_key, IO_TYPE_EXTENSION[kind]))
            for kind in (ComputeIOType.STDOUT, ComputeIOType.STDERR)
        )
        out.parent.mkdir(parents=True, exist_ok=True)
        with redirect_to_file(sys.stdout, out), redirect_to_file(sys.stderr, err):
            yield CapturedLogContext(log_key)
        # Its presence says that the files are complete.
        Path(self.complete_artifact_path(log_key)).touch()
