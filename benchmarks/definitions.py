"""How long the code location takes to load, by its flows: each in a fresh process, beyond Dagster.

Every flow is the flights under another name, with a number of its own in the program, deployed: its
deployment is made as any, its ledger has a few rows that name it. Tables are not looked at when
definitions load, so there are none. Seconds are those of the imports and of the definitions, up to
the repository that the code server serves; `import dagster` comes before.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.fresh import flights_in, program_at
from benchmarks.measure import Ratio, note, parser_of, report
from hydro_core.spark.store.ledger.ledger import Ledger
from hydro_core.spark.store.ledger.records import Commit
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner

GOAL = 1.0
"""Seconds that 20 flows may take."""
PROGRAM = Path("assets/flights/flights.hydro")
TICKS = 3


def deployed(home: Path, flows: int) -> None:
    """Flows that have run a few ticks, as far as definitions see."""
    runner = TickRunner(ProjectSettings(home=home))
    text = PROGRAM.read_text(encoding="utf-8")
    for i in range(flows):
        name = f"flights_{i}"
        program = program_at(home, name)
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text.replace("> 15", f"> {15 + i}"), encoding="utf-8")
        flow = flights_in(home, home / "landing", name)
        made = runner.deployments.prepare(flow)
        ledger, now = Ledger(runner.directory(flow)), datetime.now(UTC)
        ledger.create()
        tables = {t.name: 1 for t in made.deployment.tables}
        for t in range(TICKS):
            ledger.append(Commit(t, t, t, made.name, tables, tables, started=now, committed=now))


def in_fresh_process(*words: str) -> dict[str, Any]:
    """What `benchmarks.fresh` prints."""
    asked = [sys.executable, "-m", "benchmarks.fresh", *words]
    done = subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def row_of(flows: int, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The medians of loading so many flows."""

    def median(*names: str) -> float:
        return statistics.median(sum(run[name] for name in names) for run in runs)

    return {
        "flows": flows,
        "runs": len(runs),
        "imports": median("imports_seconds"),
        "definitions": median("flows_seconds"),
        "seconds": median("imports_seconds", "flows_seconds"),
        "cpu_seconds": median("imports_cpu", "flows_cpu"),
        "goal": GOAL if flows == 20 else None,
    }


def main() -> int:
    """Measures each number of flows in turns."""
    parser = parser_of("definitions", __doc__ or "")
    parser.add_argument("--flows", type=int, nargs="+", default=[1, 20, 50])
    parser.add_argument("--rounds", type=int, default=5, help="measured runs of each")
    asked = parser.parse_args()
    runs: dict[int, list[dict[str, Any]]] = {flows: [] for flows in asked.flows}
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
        deployed(Path(scratch), max(asked.flows))
        note(f"{max(asked.flows)} flows are deployed")
        for turn in range(asked.rounds + 1):
            for flows in asked.flows:
                found = in_fresh_process("definitions", scratch, str(flows))
                if found["loaded"]:
                    sys.exit(f"definitions load {', '.join(found['loaded'])}")
                # The first one compiles modules and fills the caches of the file system.
                if turn:
                    runs[flows].append(found)
    rows = [row_of(flows, of) for flows, of in runs.items()]
    ratios = [
        Ratio(f"definitions of {row['flows']} flows over a second", row["seconds"], row["goal"])
        for row in rows
    ]
    report("definitions of deployed flows, beyond `import dagster`", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
