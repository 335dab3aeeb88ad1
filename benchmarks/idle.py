"""What the services of a project take while nothing is due.

    python -m benchmarks.idle [--flows 2 50] [--minutes N]

The units of docs/operating.md, with so many flows whose ticks are all committed, and their sensors
running: processor seconds a minute and memory (what is shared counts by share) of each service, its
processes together. The sensors look at every flow each 30 seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import psutil

from benchmarks.launched import company, compiled
from benchmarks.measure import RESULTS, as_table, note
from hydrotick.instance import prepare_instance
from tests.orchestration.launched import Company, free_port, until
from tests.orchestration.web import Api, answers
from tests.support.services import Services, shown, units

DAYS = 3
UNITS = ("code", "daemon", "web", "worker")
BACKFILLS = """
import sys
from hydro_core.cli.main import run_command
for name in sys.argv[1:]:
    assert run_command(["backfill", name]) == 0
"""


def idle(at: Path, flows: int, minutes: float) -> Iterator[dict[str, object]]:
    """A row for each service, and one for all."""
    made = company(at, flows, DAYS, 300)
    (made.shop / "hydrotick.toml").write_text('[dagster]\nsensors = "running"\n')
    variables = {
        **os.environ,
        **made.environment,
        "DAGSTER_HOME": str(prepare_instance(made.home / "dagster")),
        "HYDROTICK_PROJECT": str(made.shop),
        **compiled(at),
        "PYTHONWARNINGS": "ignore",
    }
    names = sorted(folder.name for folder in (made.shop / "assets").iterdir())
    words = [sys.executable, "-c", BACKFILLS, *names]
    subprocess.run(words, cwd=made.shop, env=variables, check=True, stdout=subprocess.DEVNULL)
    note(f"{flows} flows have all their ticks")
    with _services(made, variables) as services:
        services.start(*UNITS[:1])
        services.start(*UNITS[1:])
        web = int(services.words("web")[services.words("web").index("-p") + 1])
        until(lambda: answers(Api(web)))
        # All sensors have been asked twice, and the answers have found their way.
        time.sleep(90)
        before = {name: _used(services.processes(name)) for name in UNITS}
        began = time.monotonic()
        time.sleep(minutes * 60)
        passed = (time.monotonic() - began) / 60
        used = {name: _used(services.processes(name)) - before[name] for name in UNITS}
        memory = {name: _memory(services.processes(name)) for name in UNITS}
        assert not services.ended(), services.ended()
    for name in (*UNITS, "all"):
        one = (name,) if name in UNITS else UNITS
        yield {
            "flows": flows,
            "service": name,
            "CPU s a minute": round(sum(used[each] for each in one) / passed, 2),
            "MiB": sum(memory[each] for each in one),
        }


def _services(made: Company, variables: dict[str, str]) -> Services:
    code, web = str(free_port()), str(free_port())
    (made.shop / "workspace.yaml").write_text(shown("workspace.yaml").replace("4266", code))
    bin_ = str(Path(sys.executable).parent)
    commands = {
        name.removeprefix("hydrotick-"): said.replace("/srv/venv/bin", bin_)
        .replace("4266", code)
        .replace("3000", web)
        .split()
        for name, said in units().items()
    }
    return Services(made.shop, commands, variables)


def _used(processes: Sequence[psutil.Process]) -> float:
    """Seconds of processor time, of those that have ended too."""
    found = 0.0
    for process in processes:
        with suppress(psutil.Error):
            times = process.cpu_times()
            found += times.user + times.system + times.children_user + times.children_system
    return found


def _memory(processes: Sequence[psutil.Process]) -> int:
    """MiB, of what is shared by share."""
    found = 0
    for process in processes:
        with suppress(psutil.Error):
            found += process.memory_full_info().pss
    return int(found // 2**20)


def main() -> int:
    """Measures, prints a table, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", type=int, nargs="+", default=[2, 50])
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "idle.json")
    asked = parser.parse_args()
    rows: list[dict[str, object]] = []
    for flows in asked.flows:
        with tempfile.TemporaryDirectory(prefix="hydrotick-idle-") as at:
            rows += idle(Path(at), flows, asked.minutes)
    print(as_table(rows))
    said = {"at": datetime.now(UTC).isoformat(), "load": os.getloadavg(), "rows": rows}
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(said, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
