"""A cluster on this machine that shares nothing: Spark's master and workers as its own scripts
start them, each in namespaces of its own.

A worker sees the system and the Python packages of this environment, as a node of a cluster has
them. The project's folder, jars, homes and the directory of temporary files are empty there, and
what a worker writes nobody else sees: whoever names a file of another process finds nothing. What
one has started ends with it, whatever it was killed by.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
import pytest

from hydro_core.spark.session.java import default_share
from hydro_core.spark.session.ready import made_ready

ROOT = Path(__file__).parents[2]
_SECONDS_TO_START = 60
_OWN = ("tmp", "home", "local", "work")
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"Successfully registered with master")

# What a node is: all that could be shared is hidden, then what every node has stands there again.
_ALONE = """
set -e
mount -t tmpfs none /mnt
mkdir /mnt/own
mount --bind "$OWN" /mnt/own
n=0
for there in $KEPT; do
  mkdir /mnt/kept$n
  mount --bind "$there" /mnt/kept$n
  n=$((n + 1))
done
for there in $HIDDEN; do
  mkdir -p "$there"
  mount -t tmpfs none "$there"
done
n=0
for there in $KEPT; do
  mkdir -p "$there"
  mount --bind /mnt/kept$n "$there"
  n=$((n + 1))
done
for there in $EMPTY; do
  if [ -d "$there" ]; then mount -t tmpfs none "$there"; fi
done
mkdir -p /tmp/node
mount --bind /mnt/own /tmp/node
umount -l /mnt
cd /tmp/node
exec "$@"
"""


def namespaces() -> Sequence[str] | None:
    """The words that start a process in namespaces of its own; None where that is not allowed."""
    program = shutil.which("unshare")
    of_all = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    for words in (of_all, ["--user", "--map-root-user", *of_all]):
        tried = [program or "unshare", *words]
        test = [*tried, "sh", "-c", "mount -t tmpfs none /mnt"]
        if program and not subprocess.run(test, capture_output=True, check=False).returncode:
            return tried
    return None


@dataclass
class Node:
    """A process of the cluster, with all that it has started."""

    name: str
    folder: Path
    process: subprocess.Popen[bytes]
    host: str = "127.0.0.1"

    @property
    def log(self) -> str:
        """What it has printed."""
        return (self.folder / "log").read_text(errors="replace")

    @property
    def errors_of_executors(self) -> str:
        """What its executors have printed."""
        found = (self.folder / "work").rglob("stderr")
        return "\n".join(file.read_text(errors="replace") for file in sorted(found))

    def lives(self) -> bool:
        """Whether it runs."""
        return self.process.poll() is None

    def kill(self) -> None:
        """Ends it at once, and all processes within it, as a machine that loses its power."""
        if self.lives():
            # What was started in namespaces ends with the first process in them.
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


@dataclass
class Standalone:
    """A master and its workers."""

    folder: Path
    cores: int = 1
    memory: str = "1g"
    shared: Sequence[Path] = ()
    """Directories that all nodes have at the same path, as if they mounted them."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What the workers have beside what every process has: credentials."""
    nodes: dict[str, Node] = field(default_factory=dict)
    url: str = ""

    def start_master(self) -> None:
        """Starts the master, which chooses its port."""
        words = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0"]
        self._start("master", [*words, "--webui-port", "0"])
        self.url = self._said("master", _MASTER)[1]

    def start_workers(self, *names: str) -> None:
        """Starts workers, and waits until the master knows them."""
        for name in names:
            # Each has an address: of one host Spark takes the disks for shared.
            host = f"127.0.0.{len(self.nodes) + 1}"
            words = ["org.apache.spark.deploy.worker.Worker", "--host", host]
            words += ["--port", "0", "--webui-port", "0", "--cores", str(self.cores)]
            words += ["--memory", self.memory, "--work-dir", "/tmp/node/work", self.url]
            self._start(name, words, host)
        for name in names:
            self._said(name, _REGISTERED)

    def end(self) -> None:
        """Ends all of it."""
        for node in self.nodes.values():
            node.kill()

    def _start(self, name: str, words: Sequence[str], host: str = "127.0.0.1") -> None:
        alone = namespaces()
        assert alone is not None
        folder = self.folder / name
        for one in _OWN:
            (folder / one).mkdir(parents=True, exist_ok=True)
        spark = Path(pyspark.__file__).parent
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [*alone, "sh", "-c", _ALONE, "node", str(spark / "bin" / "spark-class"), *words],
                cwd="/",
                env={**self._environment(folder, spark), "SPARK_LOCAL_IP": host},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.nodes[name] = Node(name, folder, process, host)

    def _environment(self, folder: Path, spark: Path) -> dict[str, str]:
        share = default_share()
        java = made_ready(share).java_home
        hidden = {ROOT, Path.home(), Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")}
        kept = {Path(sys.prefix), Path(sys.base_prefix), spark, java, *self.shared}
        # What lies outside of all that is hidden is there anyway.
        kept = {k for k in kept if any(k.is_relative_to(h) for h in hidden)}
        return {
            **self.environment,
            "OWN": str(folder),
            "HIDDEN": " ".join(map(str, sorted(hidden))),
            "KEPT": " ".join(map(str, sorted(kept))),
            "EMPTY": "" if java.is_relative_to(share) else str(share),
            "PATH": os.environ["PATH"],
            "JAVA_HOME": str(java),
            "SPARK_HOME": str(spark),
            "SPARK_LOCAL_DIRS": "/tmp/node/local",
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_DAEMON_MEMORY": "192m",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "MALLOC_ARENA_MAX": "2",
            "HOME": "/tmp/node/home",
            "TMPDIR": "/tmp/node/tmp",
            "LANG": "C.UTF-8",
        }

    def _said(self, name: str, wanted: re.Pattern[str]) -> re.Match[str]:
        node, until = self.nodes[name], time.monotonic() + _SECONDS_TO_START
        while (found := wanted.search(node.log)) is None:
            assert node.lives(), node.log
            assert time.monotonic() < until, node.log
            time.sleep(0.1)
        return found


def conf_of_driver() -> dict[str, str]:
    """What a session is told beside its master: executors that fit these workers, and that the
    driver is on this machine.
    """
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
    }


@contextmanager
def standalone(
    folder: Path,
    environment: Mapping[str, str],
    *,
    workers: int = 2,
    cores: int = 1,
    memory: str = "1g",
    shared: Sequence[Path] = (),
) -> Iterator[Standalone]:
    """A cluster of so many workers below a folder; all of it ends with the block."""
    if namespaces() is None:
        pytest.skip("processes get no namespaces of their own here: unshare is not allowed")
    cluster = Standalone(folder, cores, memory, shared, environment)
    try:
        cluster.start_master()
        cluster.start_workers(*(f"worker-{n + 1}" for n in range(workers)))
        yield cluster
    finally:
        cluster.end()
