"""Every benchmark, one after the other, each in a process of its own: what `make bench` runs."""

from __future__ import annotations

import subprocess
import sys

BENCHMARKS = ("benchmarks.tick", "benchmarks.optimizer", "benchmarks.incremental")


def main() -> int:
    """Runs all; gives 1 if one of them could not be run."""
    failed = 0
    for name in BENCHMARKS:
        print(f"== {name}", flush=True)
        failed |= subprocess.run([sys.executable, "-m", name], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
