"""Where the project keeps its things and how much of the machine it may take: the only reader of
the environment, which wins over the project's `hydrotick.toml`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from hydro_core.errors import DataError
from hydro_core.machine.environment import conf_of, wrong_variable
from hydro_core.project.discover import ASSETS, PROJECT, SETTINGS, project_root
from hydro_core.settings import Settings, size_in_bytes
from hydro_core.storage.remote import DataPlace, RemotePath, is_remote, place_at, remote_at
from hydro_core.storage.settings import PATIENCE, StorageSettings

from .logs import TEXT
from .settings_file import (
    FLOWS,
    OPENLINEAGE,
    FileSettings,
    WorkerSettings,
    settings_in,
    settings_of_environment,
    worker_token,
    wrong_directory,
)

HOME = "HYDROTICK_HOME"
DAGSTER_HOME = "DAGSTER_HOME"
_RANGE_TICKS, _WHY_ROWS = "HYDROTICK_RANGE_TICKS", "HYDROTICK_WHY_ROWS"
_SAMPLE_KEYS = "HYDROTICK_SAMPLE_KEYS"
_PIPELINES, _LANDING, _DERIVED = "pipelines", "landing", "derived"
_RANGE = 100
_SENSOR_SECONDS = 30


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The settings of one deployment; each has an environment variable of the name in brackets.

    `root` [HYDROTICK_PROJECT] is the project's folder, None where there is none: the nearest with
    `assets/`, from the current folder upwards.
    `home` [HYDROTICK_HOME] holds landing tables, pipelines and Dagster's own records; landing
    tables are elsewhere where `landing_at` says so, or `landing_store`, the URL of a folder in a
    store, Dagster's instance where `dagster_at` [DAGSTER_HOME] does.
    `spark_master` [HYDROTICK_SPARK_MASTER] and `spark_memory` [HYDROTICK_SPARK_MEMORY] say where
    Spark runs and what it may take; into `shuffle_partitions` parts it shuffles rows, one per core
    if it is not said; `spark_conf` has settings of Spark's own. Up to `few_rows` rows are one job
    of one task, and up to `small_writes` are written without Spark. `range_ticks`
    [HYDROTICK_RANGE_TICKS] says how many ticks are computed together where many are asked for.
    `why_rows` [HYDROTICK_WHY_ROWS] says how many rows
    of an input `hydrotick why` looks at. `sample_keys` [HYDROTICK_SAMPLE_KEYS] says for how many
    keys a tick's outputs are judged, 0 for none, where the flow does not. Of a failed tick the
    command `failure_command` [HYDROTICK_FAILURE_COMMAND] is told on its standard input, and the
    address `failure_webhook` [HYDROTICK_FAILURE_WEBHOOK] by a POST, as a JSON object.

    `pool` is Dagster's pool that runs of all flows take a place in, else each flow has its own. The
    sensors of the flows look every `sensor_seconds`, and run as soon as they are loaded where
    `sensors_run`, else when somebody starts them. Their tables are compacted by a schedule,
    `compact`, if that is said. The UI links to lines of programs below `code_url`, where the
    project's folder is shown on the web, else in an editor.

    Runs of ticks are told as OpenLineage events to `openlineage` [OPENLINEAGE_URL], which is
    `file:PATH` or a server's URL, of jobs in `openlineage_namespace` [OPENLINEAGE_NAMESPACE]; a
    server knows them by `openlineage_key` [OPENLINEAGE_API_KEY]. [OPENLINEAGE_DISABLED] tells none.

    Processes log as `log_format` says [HYDROTICK_LOG_FORMAT]: `text` or `json`.
    `storage` says how object stores are reached; pipelines are in `data_store`, the URL of a folder
    in one, where that is said, and so are landing tables that are said to be nowhere else.
    `worker` says which service runs ticks [HYDROTICK_WORKER, HYDROTICK_WORKER_TOKEN].
    """

    home: Path = Path("data")
    spark_master: str | None = None
    spark_memory: str | None = None
    shuffle_partitions: int | None = None
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    lookups: str | None = None
    few_rows: int | None = None
    small_writes: int | None = None
    range_ticks: int = _RANGE
    why_rows: int = 100_000
    sample_keys: int = 8
    failure_command: str | None = None
    failure_webhook: str | None = None
    root: Path | None = None
    landing_at: Path | None = None
    landing_store: str | None = None
    data_store: str | None = None
    dagster_at: Path | None = None
    pool: str | None = None
    sensors_run: bool = False
    sensor_seconds: int = _SENSOR_SECONDS
    compact: str | None = None
    code_url: str | None = None
    openlineage: str | None = None
    openlineage_namespace: str = "default"
    openlineage_key: str | None = field(default=None, repr=False)
    log_format: str = TEXT
    storage: StorageSettings = field(default_factory=StorageSettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)

    @property
    def core(self) -> Settings:
        """The settings of the core, as the project changes them."""
        return self.core_with({})

    def core_with(self, conf: Mapping[str, str], master: str | None = None) -> Settings:
        """The same with further settings of Spark's own, which win over those of the project, and
        perhaps another master.
        """
        # As a setting of its own: a session of another master is another session.
        where = {} if master is None else {"spark.master": master}
        wanted = {
            "master": master or self.spark_master,
            "memory": self.spark_memory,
            "shuffle_partitions": self.shuffle_partitions,
            "few_rows": self.few_rows,
            "small_write_rows": self.small_writes,
            "lookup_bytes": None if self.lookups is None else size_in_bytes(self.lookups),
            "extra": tuple(sorted({**self.spark_conf, **conf, **where}.items())),
        }
        return Settings().with_(
            **{name: value for name, value in wanted.items() if value not in (None, ())}
        )

    def url_of(self, file: Path) -> str | None:
        """Where a file of the project is on the web; None where that is not known."""
        if self.code_url is None or self.root is None or not file.is_relative_to(self.root):
            return None
        return f"{self.code_url.rstrip('/')}/{file.relative_to(self.root).as_posix()}"

    @property
    def landing(self) -> Path:
        """Tables that outside systems write."""
        return self.landing_at or self.home / _LANDING

    def landed(self, path: str) -> DataPlace:
        """Where an input lands: its path from the landing on, or what it is a URL of."""
        place = place_at(path, self.storage)
        if isinstance(place, RemotePath):
            return place
        if self.landing_store is None or place.is_absolute():
            return self.landing / place
        return remote_at(self.landing_store, self.storage) / PurePosixPath(place)

    @property
    def pipelines(self) -> DataPlace:
        """A directory for each flow: its state, outputs and ledger."""
        if self.data_store is not None:
            return remote_at(self.data_store, self.storage) / _PIPELINES
        return self.home / _PIPELINES

    @property
    def dagster_home(self) -> Path:
        """The directory of Dagster's instance, whose `dagster.yaml` says where its records are."""
        return self.dagster_at or self.home / "dagster"


def project_settings(
    environ: Mapping[str, str] | None = None,
    at: Path | None = None,
    given: FileSettings | None = None,
) -> ProjectSettings:
    """The settings as the environment and `hydrotick.toml` give them, defaults where both are
    silent.

    Args:
        environ: the environment; None: that of this process.
        at: the project's folder; None: the environment or the current folder tell.
        given: what wins over the file.

    Raises:
        HydroError: a value that nothing can be made of (code `config`).
    """
    environ = os.environ if environ is None else environ
    unreported = environ.get("OPENLINEAGE_DISABLED", "").lower() in ("true", "1")
    of_environment = settings_of_environment(
        {**environ, OPENLINEAGE: ""} if unreported else environ
    )
    if at is not None and not (at / ASSETS).is_dir():
        message = f"{at} is no project: there is no folder `{ASSETS}` in it"
        cure = "name the folder of one, or make one with `hydrotick init DIR`"
        raise DataError.of("config", message, help=cure)
    root = project_root(environ) if at is None else at.absolute()
    file = FileSettings() if root is None else settings_in(root / SETTINGS)
    said = of_environment.over(file if given is None else given.over(file))
    ticks = environ.get(_RANGE_TICKS)
    base = root or Path.cwd()
    home = _directory(environ, HOME) or base / (said.home or "data")
    in_store = said.landing is not None and is_remote(said.landing)
    landing_store = said.landing if in_store else None
    if said.landing is None and said.storage_data is not None:
        # Data lands in the store of all data, if no more is said.
        landing_store = f"{said.storage_data.rstrip('/')}/{_LANDING}"
    return ProjectSettings(
        home=home,
        landing_at=None if in_store else _below(base, said.landing),
        landing_store=landing_store,
        data_store=said.storage_data,
        dagster_at=_directory(environ, DAGSTER_HOME) or _below(base, said.dagster),
        pool=said.pool,
        sensors_run=said.sensors == "running",
        sensor_seconds=said.sensor_seconds or _SENSOR_SECONDS,
        compact=said.compact,
        code_url=said.code_url,
        spark_master=said.spark_master,
        spark_memory=said.spark_memory,
        shuffle_partitions=said.shuffle_partitions,
        spark_conf=conf_of(said.spark_conf or {}),
        lookups=said.lookups,
        few_rows=said.few_rows,
        small_writes=said.small_writes,
        range_ticks=_number(_RANGE_TICKS, ticks, "ticks") if ticks else said.range_ticks or _RANGE,
        why_rows=_number(_WHY_ROWS, environ.get(_WHY_ROWS) or "100000", "rows"),
        sample_keys=_number(_SAMPLE_KEYS, environ.get(_SAMPLE_KEYS) or "8", "keys", least=0),
        failure_command=environ.get("HYDROTICK_FAILURE_COMMAND"),
        failure_webhook=environ.get("HYDROTICK_FAILURE_WEBHOOK"),
        openlineage=None if unreported else _openlineage(said.openlineage, base),
        openlineage_namespace=said.namespace or "default",
        openlineage_key=environ.get("OPENLINEAGE_API_KEY") or None,
        log_format=said.log_format or TEXT,
        root=root,
        storage=StorageSettings(
            endpoint=said.storage_endpoint,
            region=said.storage_region,
            profile=said.storage_profile,
            anonymous=said.storage_anonymous or False,
            derived=str(home.absolute() / _DERIVED) if said.storage_data else None,
            patience=said.storage_patience or PATIENCE,
        ).where(environ),
        worker=WorkerSettings(
            said.worker_address,
            worker_token(environ, _below(base, said.worker_token_file)),
            said.worker_flows or FLOWS,
            said.worker_memory,
            said.worker_metrics,
        ),
    )


def _below(base: Path, path: str | None) -> Path | None:
    return None if path is None else base / path


def _openlineage(to: str | None, base: Path) -> str | None:
    """Where OpenLineage events go: a server, or a file below `base` where it is relative."""
    if to is None or not to.startswith("file:"):
        return to
    path = to.removeprefix("file:")
    return f"file:{base / (path.removeprefix('//') if path.startswith('///') else path)}"


def _directory(environ: Mapping[str, str], name: str) -> Path | None:
    given = environ.get(name)
    if not given:
        return None
    wrong = wrong_directory(given)
    if wrong is None and name == DAGSTER_HOME and not Path(given).is_absolute():
        wrong = "a relative path, which Dagster takes from nobody", "write it from `/` on"
    if wrong is None and Path(given).exists() and not Path(given).is_dir():
        wrong = "a file", "write the path of a directory"
    if wrong is not None:
        raise wrong_variable(name, given, *wrong)
    return Path(given).absolute()


def environment_of(settings: ProjectSettings) -> dict[str, str]:
    """The variables by which another process finds the same project, wherever it is started."""
    root = {} if settings.root is None else {PROJECT: str(settings.root)}
    elsewhere = settings.dagster_at
    dagster = {} if elsewhere is None else {DAGSTER_HOME: str(elsewhere.absolute())}
    return {**root, HOME: str(settings.home), **dagster}


def leading_elsewhere() -> list[str]:
    """The variables that are set, and by which commands are not about the folder at hand."""
    return [name for name in (PROJECT, HOME, DAGSTER_HOME) if os.environ.get(name)]


def _number(name: str, value: str, of: str, *, least: int = 1) -> int:
    if not value.isdecimal() or int(value) < least:
        raise wrong_variable(name, value, f"no number of {of}", f"write {least} or more")
    return int(value)
