"""What optimizing costs: wall time in a fresh process, e-nodes and memory, for joins and for longer
flows.

    python -m benchmarks.optimizer                   # every case in a process of its own
    python -m benchmarks.optimizer --only join-4     # one case, in this process

Wall times are those of a busy machine, CPU time is of the whole process. Memory is the peak of the
resident set of the fresh process as the kernel counts it, beside what a bare interpreter has: the
e-graph is a library of its own, loaded without its Python layer, and nothing else is imported.
Goals: under 1 s for a 4-way join and a flow of 20 operators, under 5 s for an 8-way join, below
500 MB.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

GOALS = {"join-4": 1.0, "rows-4": 1.0, "flow-20": 1.0, "join-8": 5.0}
"""Seconds."""
MOST_MB = 500
PAIR = "(long, long)"
STEPS = (
    "map(lambda x: (x[1], x[0]))",
    "filter(lambda x: x[0] != 1)",
    "map(lambda x: (x[0], x[1] + 1))",
    "unique()",
    "flat_map(lambda x: [x, (x[1], x[0])])",
)
WAYS = (2, 3, 4, 5, 6, 7, 8)
ORDERS = (3, 4)
LENGTHS = (5, 10, 20, 40, 60)


def join(ways: int) -> str:
    """A join of so many histories, of which the new results are wanted."""
    lines = [f'a{i} = source("{PAIR}"); p{i} = a{i} -> persist()' for i in range(ways)]
    lines.append("j0 = p0")
    lines += [
        f"j{i} = j{i - 1} -> join(right=p{i}) -> map(lambda k, v: (k, v[1]))"
        for i in range(1, ways)
    ]
    return "\n".join([*lines, f"j{ways - 1} -> delta() -> out"])


def rows(ways: int) -> str:
    """A chain of joins by columns of so many histories, which may be taken in every order."""
    lines = [
        f'a{i} = source("c{i} long, c{i + 1} long, v{i} long"); p{i} = a{i} -> persist()'
        for i in range(ways)
    ]
    lines.append("j1 = p0 -> join(right=p1, on='c1')")
    lines += [f"j{i} = j{i - 1} -> join(right=p{i}, on='c{i}')" for i in range(2, ways)]
    return "\n".join([*lines, f"j{ways - 1} -> delta() -> out"])


def flow(length: int) -> str:
    """A flow of about so many operators: steps, joins and sums over histories, three outputs."""
    lines = [f'a{i} = source("{PAIR}"); p{i} = a{i} -> persist()' for i in range(3)]
    lines.append("s0 = p0")
    for i in range(1, max(2, length - 5)):
        if i % 6 == 5:
            step = f"join(right=p{i % 3}) -> map(lambda k, v: (k, v[0]))"
        elif i % 6 == 2:
            step = f"union(p{i % 3})"
        else:
            step = STEPS[i % len(STEPS)]
        lines.append(f"s{i} = s{i - 1} -> {step}")
    last = max(1, length - 6)
    lines += [
        f"s{last} -> delta() -> new",
        f"s{last // 2} -> fold_keyed(0, lambda s, v: s + v, commutative=True) -> totals",
        f"s{last} -> unique() -> delta() -> distinct",
    ]
    return "\n".join(lines)


def programs() -> dict[str, str]:
    """The cases by their names."""
    return {
        **{f"join-{n}": join(n) for n in WAYS},
        **{f"rows-{n}": rows(n) for n in ORDERS},
        **{f"flow-{n}": flow(n) for n in LENGTHS},
    }


def measure(name: str) -> dict[str, object]:
    """One case, in this process: import, compile, optimize."""
    bare = _peak_mb()
    started = time.perf_counter()
    from hydro_core.compile import best_plan, compile_text

    imported = time.perf_counter()
    compiled = compile_text(programs()[name])
    ready = time.perf_counter()
    found = best_plan(compiled)
    done = time.perf_counter()
    return {
        "case": name,
        "operators": len(compiled.graph.nodes),
        "e_nodes": found.saturation.nodes,
        "saturated": found.saturation.saturated,
        "import_s": round(imported - started, 3),
        "compile_s": round(ready - imported, 3),
        "optimize_s": round(done - ready, 3),
        "process_cpu_s": round(time.process_time(), 3),
        "cheaper": round(found.cost_before / found.cost_after, 1),
        "notes": len(found.notes),
        "bare_mb": bare,
        "peak_mb": _peak_mb(),
    }


def _peak_mb() -> int:
    """The most memory that this process has held, in MB.

    `getrusage` would count what the process that started this one held when it did.
    """
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def main() -> int:
    """Prints a table of all cases, and 1 if a goal is missed; or one case as JSON."""
    if sys.argv[1:2] == ["--only"]:
        print(json.dumps(measure(sys.argv[2])))
        return 0
    # imported here: it needs Spark, which would count as memory of a case
    from benchmarks.measure import Ratio, note, parser_of, report

    given = parser_of("optimizer", __doc__ or "").parse_args()
    found = []
    for name in programs():
        command = [sys.executable, "-m", "benchmarks.optimizer", "--only", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
        note(f"{name}: {found[-1]['optimize_s']} s, {found[-1]['peak_mb']} MB")
    ratios = [
        Ratio(f"{row['case']}: seconds of optimizing", row["optimize_s"], GOALS[row["case"]])
        for row in found
        if row["case"] in GOALS
    ]
    most = max(row["peak_mb"] for row in found)
    ratios.append(Ratio("MB of optimizing, the most of all cases", most, MOST_MB))
    report("Optimizing in a fresh process", found, ratios, given)
    return int(any(ratio.goal is not None and ratio.value > ratio.goal for ratio in ratios))


if __name__ == "__main__":
    sys.exit(main())
