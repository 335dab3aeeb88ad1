"""The first five minutes: from `pip install` of the wheel to the first committed tick, and how long
the commands of every day take.

    python -m benchmarks.first_minutes [--wheel FILE] [--cold] [--java] [--rounds N]

Everything is in a directory of its own: an environment with nothing in it, a new project. Java is
hidden from it unless `--java` is given. `--cold` has pip download every package again, the default
takes what its cache has. Each command is a process; its processor time is that of all processes
that it starts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from benchmarks.measure import RESULTS, as_table

ROOT = Path(__file__).resolve().parents[1]
EVERY_DAY = ("check", "test", "status", "show", "completion")
JAVA = ("java", "javac", "jar", "keytool")


class Environment:
    """An environment and a project that somebody begins with.

    Args:
        directory: where both are.
        java: whether the machine's Java may be seen.
    """

    def __init__(self, directory: Path, java: bool) -> None:
        self.directory = directory
        self.bin = directory / "environment" / "bin"
        hidden = ("PYTHON", "HYDROTICK", "VIRTUAL_ENV", "JAVA_HOME")
        self.variables = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
        path = os.environ["PATH"] if java else str(_without_java(directory / "path"))
        self.variables["PATH"] = f"{self.bin}{os.pathsep}{path}"
        self.rows: list[dict[str, object]] = []

    def run(self, what: str, *words: str | Path, cwd: Path | None = None) -> float:
        """Runs a command, notes what it took, and gives its seconds."""
        cpu, began = _children(), time.perf_counter()
        done = subprocess.run(
            words,
            cwd=cwd or self.directory,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - began
        if done.returncode:
            sys.exit(f"{what} failed:\n{done.stdout}{done.stderr}")
        row = {"what": what, "seconds": round(seconds, 2), "cpu": round(_children() - cpu, 2)}
        self.rows.append(row)
        print(f"{what:<44}{seconds:>9.2f} s{row['cpu']:>9} s of processors", flush=True)
        return seconds


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _without_java(directory: Path) -> Path:
    """A directory with every command of the PATH, but for Java's."""
    directory.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for file in Path(place).glob("*"):
            link = directory / file.name
            if file.name not in JAVA and not link.is_symlink() and file.is_file():
                link.symlink_to(file)
    return directory


def build(directory: Path) -> Path:
    """The wheel of this checkout, made from a copy of what it needs."""
    source = directory / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    for name in ("hydro_core", "orchestration"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    words = ["pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", directory, source]
    subprocess.run([sys.executable, "-m", *words], check=True)
    (made,) = directory.glob("*.whl")
    return made


def first_minutes(it: Environment, wheel: Path, cold: bool) -> float:
    """Does what a newcomer types, and gives the seconds up to the first committed tick."""
    venv.create(it.bin.parent, with_pip=True, symlinks=True)
    cache = ["--no-cache-dir"] if cold else []
    install = (it.bin / "python", "-m", "pip", "install", "-q", *cache, wheel)
    seconds = it.run(f"pip install ({'cold' if cold else 'warm'})", *install)
    seconds += it.run("hydrotick init shop", "hydrotick", "init", "shop")
    shop = it.directory / "shop"
    first = ("hydrotick", "backfill", "totals", "--to", "2026-01-01")
    seconds += it.run("hydrotick backfill: the first tick", *first, cwd=shop)
    it.rows.append({"what": "all, to the first committed tick", "seconds": round(seconds, 1)})
    it.run("hydrotick backfill: the other six", "hydrotick", "backfill", "totals", cwd=shop)
    return seconds


def every_day(it: Environment, rounds: int) -> None:
    """How long the commands of every day take, the median of some rounds."""
    shop = it.directory / "shop"
    words = {
        "check": ("check", "assets/totals/totals.hydro"),
        "test": ("test",),
        "status": ("status",),
        "show": ("show", "totals", "totals"),
        "completion": ("completion", "at", '{"show": {"places": ["FLOW"]}}', "show", ""),
    }
    for name in EVERY_DAY:
        begun = len(it.rows)
        for _ in range(rounds):
            it.run(f"hydrotick {name}", "hydrotick", *words[name], cwd=shop)
        taken, it.rows[begun:] = it.rows[begun:], []
        median = {
            key: round(statistics.median(float(str(row[key])) for row in taken), 2)
            for key in ("seconds", "cpu")
        }
        it.rows.append({"what": f"hydrotick {name}, median of {rounds}", **median})


def main() -> None:
    """Measures what the arguments say."""
    parser = argparse.ArgumentParser(description="The first five minutes.")
    parser.add_argument("--wheel", type=Path, help="the wheel (default: made of this checkout)")
    parser.add_argument("--cold", action="store_true", help="pip downloads every package")
    parser.add_argument("--java", action="store_true", help="the machine's Java may be used")
    parser.add_argument("--rounds", type=int, default=5, help="of the commands of every day")
    parser.add_argument("--out", type=Path, default=RESULTS / "first_minutes.json")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hydrotick-first-") as scratch:
        directory = Path(scratch)
        wheel = (asked.wheel or build(directory)).absolute()
        it = Environment(directory, asked.java)
        first_minutes(it, wheel, asked.cold)
        every_day(it, asked.rounds)
    print(as_table(it.rows))
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    found = {"cold": asked.cold, "java": asked.java, "rows": it.rows}
    asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
