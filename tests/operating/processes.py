"""Operates the flows of a project as people do: each operation is a command, a process of its own.

What kills one of them kills it with its Java, at any moment.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import yaml

from hydrotick.project.settings import ProjectSettings
from tests.operating.asked import Done, How, key_of
from tests.operating.hands import Hands
from tests.operating.model import TICKS
from tests.operating.programs import KEY, columns_of, outputs_of
from tests.operating.story import MAIN

_SECONDS = 600
_BEGIN, _EACH = 4.0, 3.0
"""A process is killed so many seconds after it was started, and so many more with each number."""


class Processes(Hands):
    """The flows of a project in a folder of their own."""

    is_recorded = True

    def __post_init__(self) -> None:
        self.settings = ProjectSettings(
            home=self.home / "data", spark_master="local[2]", sample_keys=self.sample_keys
        )
        (self.home / "data").mkdir(parents=True)
        (self.home / "copies").mkdir()
        for name in self.declared:
            (self.home / "assets" / name).mkdir(parents=True)

    def write(self, name: str, text: str, shards: int = 1) -> None:
        super().write(name, text, shards)
        declared = {
            "program": f"{name}.hydro",
            "ticks": {"start": "2026-01-01", "every": "1d", "end": key_of(TICKS)},
            "inputs": {
                given: {"flow": of.fed_by, "output": "o", "late": of.late}
                if of.fed_by
                else {"path": f"{name}/{given}", **of.words}
                for given, of in self.declared[name].items()
            },
            **({"shards": shards} if shards > 1 else {}),
        }
        outputs = sorted(outputs_of(text)) if self.has_tables and name == MAIN else ()
        if outputs:
            warned = {"not_null": True, "severity": "warn"}
            declared["outputs"] = {o: {"as": "table"} for o in outputs}
            declared["expect"] = {
                o: [{"column": columns_of(text, o)[0], **warned}] for o in outputs
            }
        asset = self.home / "assets" / name / "asset.yaml"
        asset.write_text(yaml.safe_dump(declared, sort_keys=False), encoding="utf-8")

    def tick(self, name: str, first: int, last: int, kill: int = 0) -> Done:
        return self._run(kill, "backfill", name, "--to", key_of(last))

    def correct(self, name: str, first: int, kill: int = 0) -> Done:
        return self._run(kill, "correct", name, "--from", key_of(first), "--yes")

    def backfill(self, name: str, first: int, last: int, kill: int = 0) -> Done:
        asked = ("--from", key_of(first), "--to", key_of(last), "--yes")
        return self._run(kill, "backfill", name, *asked)

    def deploy(self, name: str, how: How, kill: int = 0) -> Done:
        return self._run(kill, "deploy", name, "--yes", *how.words)

    def rollback(self, name: str, kill: int = 0) -> Done:
        return self._run(kill, "rollback", name, "--yes")

    def compact(self, name: str, keep_hours: int, kill: int = 0) -> Done:
        return self._run(kill, "compact", name, "--keep-hours", str(keep_hours))

    def forget(self, name: str, value: str, kill: int = 0) -> Done:
        return self._run(kill, "forget", name, "--where", f"{KEY}={value}", "--yes")

    def command(self, *words: str, style: str = "json") -> Done:
        return self._run(0, *words, "--format", style)

    def _program(self, name: str) -> Path:
        return self.home / "assets" / name / f"{name}.hydro"

    def _run(self, kill: int, *words: str) -> Done:
        command = [sys.executable, "-m", "hydro_core.cli.main", *words]
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        for name in [name for name in environment if name.startswith("HYDROTICK_")]:
            del environment[name]
        environment["HYDROTICK_SAMPLE_KEYS"] = str(self.sample_keys)
        with subprocess.Popen(
            command,
            cwd=self.home,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=_BEGIN + _EACH * kill if kill else _SECONDS)
            except subprocess.TimeoutExpired:
                if not kill:
                    raise
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return Done(-9, "killed", is_killed=True)
        return Done(process.returncode, out if process.returncode == 0 or out else err)
