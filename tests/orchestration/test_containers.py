"""The containers' commands, step by step, as processes of this machine and with its PostgreSQL."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from hydrotick.cli.init import put_project
from hydrotick.instance.opening import open_instance
from tests.orchestration.test_services import free_port, running, until
from tests.orchestration.web import Api, answers

pytestmark = pytest.mark.dagster

DOCKER = Path(__file__).parents[2] / "docker"
COMPOSE: Any = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: Mapping[str, Any] = COMPOSE["services"]


def _here(words: Sequence[str], places: Mapping[str, str]) -> list[str]:
    """A command of a container with the places that its files have here."""
    below = {there: here for there, here in places.items() if there.startswith("/")}
    found = []
    for word in words:
        moved = word
        for there, here in below.items():
            moved = moved.replace(there, here)
        found.append(places.get(word, moved))
    return found


def test_the_settings_differ_from_the_shipped_ones_by_the_storage_alone() -> None:
    shipped = DOCKER.parent / "orchestration" / "instance" / "dagster.yaml"
    ours, theirs = (yaml.safe_load(f.read_text()) for f in (DOCKER / "dagster.yaml", shipped))
    del theirs["event_log_storage"]
    assert ours.pop("storage") == {"postgres": {"postgres_url": {"env": "DAGSTER_POSTGRES_URL"}}}
    assert ours == theirs


def test_who_waits_for_whom_is_there() -> None:
    assert set(SERVICES) == {"postgres", "instance", "code", "worker", "daemon", "web"}
    for service in ("code", "worker", "daemon", "web"):
        assert set(SERVICES[service]["depends_on"]) <= set(SERVICES)
    (workspace,) = yaml.safe_load((DOCKER / "workspace.yaml").read_text())["load_from"]
    assert workspace["grpc_server"]["host"] in SERVICES
    assert str(workspace["grpc_server"]["port"]) in SERVICES["code"]["command"]
    copied = (DOCKER / "Dockerfile").read_text()
    assert "&& hydrotick ready\n" in copied
    assert "COPY dagster.yaml workspace.yaml /srv/hydrotick/" in copied


@pytest.mark.slow
@pytest.mark.spark
def test_they_run_the_ticks_of_a_project(tmp_path: Path, address: str) -> None:
    shop, own = tmp_path / "shop", tmp_path / "hydrotick"
    put_project(shop, "totals")
    (shop / "hydrotick.toml").write_text('[dagster]\nsensors = "running"\nsensor_seconds = 2\n')
    own.mkdir()
    code, web = str(free_port()), str(free_port())
    workspace = (DOCKER / "workspace.yaml").read_text()
    workspace = workspace.replace("host: code", "host: 127.0.0.1").replace("4266", code)
    (own / "workspace.yaml").write_text(workspace)
    (own / "dagster.yaml").write_text((DOCKER / "dagster.yaml").read_text())
    places = {"/srv/shop": str(shop), "/srv/hydrotick": str(own), "0.0.0.0": "127.0.0.1"}
    places |= {"4266": code, "3000": web}
    said = {
        name: _here([value], places)[0]
        for name, value in COMPOSE["x-hydrotick"]["environment"].items()
    }
    environment = {
        **os.environ,
        **said,
        "DAGSTER_POSTGRES_URL": address,
        "HYDROTICK_SPARK_MASTER": "local[2]",
        "PYTHONWARNINGS": "ignore",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    once = _here(SERVICES["instance"]["command"], places)
    subprocess.run(once, env=environment, check=True)
    home = Path(environment["DAGSTER_HOME"])
    assert (home / "dagster.yaml").read_text() == (DOCKER / "dagster.yaml").read_text()
    with pytest.MonkeyPatch.context() as patch, ExitStack() as containers:
        patch.setenv("DAGSTER_POSTGRES_URL", address)
        for name in ("worker", "code", "daemon", "web"):
            words = _here(SERVICES[name]["command"], places)
            containers.enter_context(running(words, shop, environment))
        until(lambda: answers(Api(int(web))))
        key = dg.AssetKey(["totals", "totals"])

        def recorded() -> set[str]:
            with open_instance(home) as instance:
                return instance.get_materialized_partitions(key)

        until(lambda: len(recorded()) >= 5)
        with open_instance(home) as instance:
            runs = instance.get_runs()
            said = [event.message for run in runs for event in instance.all_logs(run.run_id)]
        assert any("Handed the run to the worker." in message for message in said)
