"""What `make setup` does: the virtual environment, its packages, a Java if there is none, the Delta
jars.

Runs on a bare Python 3.11 or later with the standard library only. Each step leaves a stamp with
the hash of what it was made from, so a second run finds nothing to do and takes a moment.

    python3 tools/bootstrap.py [--venv .venv] [--without-spark]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
OLDEST_PYTHON = (3, 11)

Install = Callable[..., None]
"""Installs what its arguments say, as `pip install` does."""


class SetupError(Exception):
    """A step failed: what happened and what to do."""


class Environment:
    """One virtual environment, with the stamps of the steps that were done in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.python = directory / "bin" / "python"
        self.share = directory / "share" / "hydrotick"

    def make(self) -> None:
        """Creates the environment, with pip in it or with that of the Python that runs this."""
        if self.python.exists() and self._has_pip():
            return
        say("virtual environment", f"in {self.directory.name}")
        if not self.python.exists():
            shutil.rmtree(self.directory, ignore_errors=True)
        import venv

        try:
            import ensurepip  # noqa: F401 - Debian ships a venv without it

            venv.create(self.directory, with_pip=True, symlinks=True)
        except (ImportError, subprocess.CalledProcessError):
            venv.create(self.directory, with_pip=False, symlinks=True)
            if not outer_pip():
                raise SetupError(
                    "this Python has neither `ensurepip` nor a pip of its own, so it cannot "
                    "install packages.\nOn Debian and Ubuntu: apt-get install python3-venv"
                ) from None

    def pip(self, *arguments: str) -> None:
        """Runs `pip install` for this environment."""
        command = [*self._pip(), "install", "--quiet", "--no-input", "--disable-pip-version-check"]
        run([*command, *arguments])

    def bring_uv(self) -> bool:
        """Installs the locked uv, which installs packages in a quarter of pip's time; says whether
        it runs here: not every machine has a wheel of it.
        """
        try:
            self.pip("--require-hashes", "--no-deps", "--requirement", str(REQUIREMENTS / "uv.txt"))
            run([self._uv, "--version"], stdout=subprocess.DEVNULL)
        except (SetupError, OSError):
            return False
        return True

    def uv(self, *arguments: str) -> None:
        """Runs `uv pip install` for this environment, from where pip has its packages."""
        index = self._index_of_pip()
        environment = {**os.environ, **({"UV_DEFAULT_INDEX": index} if index else {})}
        command = [self._uv, "pip", "install", "--quiet", "--no-config", "--python", self.python]
        run([*command, *arguments], environment=environment)

    def is_done(self, step: str, fingerprint: str) -> bool:
        """Whether the step was done for this fingerprint."""
        stamp = self.share / f"{step}.stamp"
        return stamp.is_file() and stamp.read_text() == fingerprint

    def done(self, step: str, fingerprint: str) -> None:
        """Leaves the step's stamp."""
        self.share.mkdir(parents=True, exist_ok=True)
        (self.share / f"{step}.stamp").write_text(fingerprint)

    @property
    def _uv(self) -> Path:
        return self.directory / "bin" / "uv"

    def _pip(self) -> list[str | Path]:
        if self._has_pip():
            return [self.python, "-m", "pip"]
        return [sys.executable, "-m", "pip", "--python", self.python]

    def _index_of_pip(self) -> str:
        """The index that pip is told to use; empty where it uses its own."""
        command = [*self._pip(), "config", "list"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [line.partition("=") for line in done.stdout.splitlines()]
        return next((url.strip("'") for key, _, url in lines if key.endswith(".index-url")), "")

    def _has_pip(self) -> bool:
        return any(self.directory.glob("lib/python3*/site-packages/pip/__init__.py"))


def main() -> int:
    """Does every step that is not done yet."""
    parser = argparse.ArgumentParser(description="the environment that hydrotick runs in")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--without-spark", action="store_true", help="what Spark needs is left out")
    asked = parser.parse_args()
    environment = Environment(asked.venv.resolve())
    started = time.monotonic()
    try:
        if sys.version_info < OLDEST_PYTHON:
            raise SetupError(
                f"hydrotick needs Python 3.11 or later, and this is {sys.version.split()[0]}: "
                "name another one with `make PYTHON=python3.12`"
            )
        steps = (packages, project) if asked.without_spark else (packages, project, spark)
        worked = [step(environment) for step in steps]
    except SetupError as error:
        sys.stderr.write(f"setup: {error}\n")
        return 1
    if any(worked):
        say("ready", f"after {time.monotonic() - started:.0f} s")
    return 0


def packages(environment: Environment) -> bool:
    """Installs the locked packages, each checked against its hash."""
    build, lock = REQUIREMENTS / "build.txt", REQUIREMENTS / "lock.txt"
    fingerprint = fingerprint_of(build, lock)
    if environment.python.exists() and environment.is_done("packages", fingerprint):
        return False
    environment.make()
    say("packages", "some 150, the largest is Spark: a minute or two")
    if not _installed(environment.uv if environment.bring_uv() else None, build, lock):
        say("packages", "uv does not install them here, so pip does: a few minutes more")
        _install(environment.pip, build, lock)
    environment.done("packages", fingerprint)
    return True


def _installed(by_uv: Install | None, build: Path, lock: Path) -> bool:
    try:
        if by_uv is not None:
            _install(by_uv, build, lock)
    except SetupError:
        return False
    return by_uv is not None


def _install(install: Install, build: Path, lock: Path) -> None:
    # Two of the packages are sources: they are built with the locked setuptools, not with whatever
    # is newest.
    install("--require-hashes", "--no-deps", "--requirement", str(build))
    install("--require-hashes", "--no-deps", "--no-build-isolation", "--requirement", str(lock))


def project(environment: Environment) -> bool:
    """Installs this project itself, editable: a change of the code needs no new set-up."""
    fingerprint = fingerprint_of(ROOT / "pyproject.toml") + str(ROOT)
    if environment.is_done("project", fingerprint):
        return False
    say("hydrotick", "as it stands in this directory")
    environment.pip("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    environment.done("project", fingerprint)
    return True


def spark(environment: Environment) -> bool:
    """Makes ready what Spark needs beside its package, the last thing that a network is needed for:
    a Java where the machine has none that Spark can use, and the Delta jars.

    The archive of the classes that Spark loads is not built here: `hydrotick ready` builds it where
    many JVMs start, which is where it pays.
    """
    # The Java of the environment variables is part of it: another one may be used next time.
    machine = f"{os.environ.get('JAVA_HOME')} {shutil.which('java')}"
    session = ROOT / "hydro_core" / "spark" / "session"
    ours = (session / f"{name}.py" for name in ("java", "jars", "ready"))
    fingerprint = f"{fingerprint_of(*ours)} {machine}"
    if environment.is_done("spark", fingerprint):
        return False
    say("Spark", "a Java if there is none, the jars of Delta")
    run([environment.python, "-m", "hydro_core.spark.session.ready"])
    environment.done("spark", fingerprint)
    return True


def outer_pip() -> bool:
    """Whether the Python that runs this has a pip for other environments, 22.3 or later."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--version"], capture_output=True, text=True, check=False
    )
    words = done.stdout.split()
    return done.returncode == 0 and tuple(int(part) for part in words[1].split(".")[:2]) >= (22, 3)


def fingerprint_of(*paths: Path) -> str:
    """A hash of the files' contents and of the Python that runs this."""
    digest = hashlib.sha256(f"{sys.version_info[:2]}".encode())
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def run(
    command: list[str | Path],
    stdout: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Runs a command in the project's directory; its failure is the set-up's."""
    done = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=stdout, env=environment, check=False
    )
    if done.returncode != 0:
        words = " ".join(
            Path(part).name if isinstance(part, Path) else part for part in command[:5]
        )
        raise SetupError(
            f"`{words} …` failed (its message is above); `make setup` goes on from here"
        )


def say(what: str, more: str) -> None:
    """One line of progress."""
    sys.stderr.write(f"setup: {what} ({more})\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
