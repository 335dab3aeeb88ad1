"""What optimizing costs: wall time in a fresh process, e-nodes and memory, for joins and for longer
flows.

    python benchmarks/optimizer.py            # every case in a process of its own
    python benchmarks/optimizer.py join-4     # one case, in this process

Wall times are those of a busy machine, CPU time is of the whole process. Goals: under 1 s for a
4-way join and a flow of 20 operators, under 5 s for an 8-way join, below 500 MB.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

PAIR = "(long, long)"
STEPS = (
    "map(lambda x: (x[1], x[0]))",
    "filter(lambda x: x[0] != 1)",
    "map(lambda x: (x[0], x[1] + 1))",
    "unique()",
    "flat_map(lambda x: [x, (x[1], x[0])])",
)
WAYS = (2, 3, 4, 5, 6, 7, 8)
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
    return {f"join-{n}": join(n) for n in WAYS} | {f"flow-{n}": flow(n) for n in LENGTHS}


def measure(name: str) -> dict[str, object]:
    """One case, in this process: import, compile, optimize."""
    started = time.perf_counter()
    from hydro_core.compile import compile_text
    from hydro_core.optimize.optimizer import optimize

    imported = time.perf_counter()
    compiled = compile_text(programs()[name])
    ready = time.perf_counter()
    found = optimize(compiled.typed)
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
        "memory_mb": _memory(),
    }


def _memory() -> int:
    """The most memory that this process held, in MB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    """Prints a line for each case."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
        return
    for name in programs():
        command = [sys.executable, str(Path(__file__)), name]
        print(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


if __name__ == "__main__":
    main()
