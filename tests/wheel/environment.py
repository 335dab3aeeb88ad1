"""A fresh environment: the wheel, what its metadata asks for, and nothing else; on a machine
without a Java, in a home that nobody has used.

The packages are those of this environment, which are the locked ones: of each that the wheel needs
by its metadata, and by that of what it needs, the files that it has installed are linked. So there
is no package of the tests, and none that nobody declares, and it takes seconds and no network.
`test_by_pip.py` judges it: pip installs the same.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hydro_core.spark.session.java import default_share
from tests.pages.blocks import ROOT

SOURCES = ("assets", "tests", "hydro_core", "orchestration")
SECONDS = 600
_NOT_OF_A_BARE_MACHINE = ("java", "python", "pip", "hydrotick", "dagster")
_MACHINE = ("/usr/bin", "/bin")


@dataclass(frozen=True)
class Environment:
    """Where the wheel is installed, the home of who uses it, and the programs of the machine."""

    place: Path
    home: Path
    programs: Path

    @property
    def python(self) -> Path:
        return self.place / "bin" / "python"

    @property
    def variables(self) -> dict[str, str]:
        """All that a process is told: no Java, no Python path, no settings, not even a language.

        A JVM is told not to optimize, as in all tests: each of these lives for a minute.
        """
        path = f"{self.place / 'bin'}:{self.programs}"
        compilers = os.environ["JDK_JAVA_OPTIONS"]
        return {"HOME": str(self.home), "PATH": path, "JDK_JAVA_OPTIONS": compilers}

    def run(
        self, words: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end; what it prints is taken as one text, `stdout`."""
        return subprocess.run(
            [self.place / "bin" / words[0], *words[1:]],
            cwd=folder,
            env=variables or self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def packages(self) -> dict[str, str]:
        """What is installed, with its version."""
        return {name: one.version for name, one in _installed(_site(self.place)).items()}


def wheel_in(place: Path) -> Path:
    """The wheel, built without a network from a copy: what builds leave behind is not in it."""
    source = place / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    for folder in SOURCES:
        shutil.copytree(
            ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*build, "--no-build-isolation", "-w", place / "dist", source], check=True)
    (made,) = (place / "dist").glob("*.whl")
    return made


def made_in(place: Path, wheel: Path, *extras: str) -> Environment:
    """A fresh environment of the wheel, and of what its extras of these names ask for."""
    venv.create(place / "environment", with_pip=False, symlinks=True)
    found = Environment(place / "environment", place / "home", place / "programs")
    found.home.mkdir()
    _programs(found.programs)
    pip = [sys.executable, "-m", "pip", "--python", str(found.python), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", "--no-compile", wheel], check=True)
    site, there = _site(found.place), _installed(_site(Path(sys.prefix)))
    own = _installed(site)["hydrotick"]
    for distribution in needed(own, there, *extras):
        _link(distribution, found.place)
    # Where there is no network, these are copied from an environment that has them: they are what
    # the first command that starts Spark would fetch.
    jars = found.place / "share" / "hydrotick" / "jars"
    shutil.copytree(default_share() / "jars", jars)
    return found


def needed(
    first: Distribution, there: Mapping[str, Distribution], *extras: str
) -> list[Distribution]:
    """What a distribution needs by its metadata, and by that of what it needs, of what is there."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    open_: list[tuple[Distribution, str]] = [(first, extra) for extra in ("", *extras)]
    while open_:
        distribution, extra = open_.pop()
        for text in distribution.requires or ():
            wanted = Requirement(text)
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
                continue
            name = canonicalize_name(wanted.name)
            other = there[name]
            assert wanted.specifier.contains(other.version, prereleases=True), text
            found[name] = other
            for more in ("", *wanted.extras):
                if (name, more) not in seen:
                    seen.add((name, more))
                    open_.append((other, more))
    return list(found.values())


def _programs(place: Path) -> None:
    """The machine's programs, but for a Java and for Pythons of others."""
    place.mkdir()
    for folder in _MACHINE:
        for file in Path(folder).iterdir():
            link = place / file.name
            if not file.name.startswith(_NOT_OF_A_BARE_MACHINE) and not link.is_symlink():
                link.symlink_to(file)


def _site(environment: Path) -> Path:
    (site,) = environment.glob("lib/python3*/site-packages")
    return site


def _installed(site: Path) -> dict[str, Distribution]:
    there = importlib.metadata.distributions(path=[str(site)])
    return {canonicalize_name(one.metadata["Name"]): one for one in there}


def _link(distribution: Distribution, environment: Path) -> None:
    """Puts the files of a distribution where they are in its own environment."""
    for source, place in _files(distribution):
        target = environment / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if place.parts[0] == "bin" and _is_of_python(source):
            _, _, rest = source.read_text(encoding="utf-8").partition("\n")
            target.write_text(f"#!{environment / 'bin' / 'python'}\n{rest}", encoding="utf-8")
            target.chmod(0o755)
            continue
        try:
            os.link(source, target)
        except OSError:  # another file system
            shutil.copy2(source, target)


def _files(distribution: Distribution) -> Iterator[tuple[Path, Path]]:
    """The files, each with its place in the environment."""
    here = Path(sys.prefix)
    for file in distribution.files or ():
        source = Path(os.path.normpath(str(file.locate())))
        if source.is_file():
            yield source, source.relative_to(here)


def _is_of_python(script: Path) -> bool:
    with script.open("rb") as opened:
        first = opened.readline()
    return first.startswith(b"#!") and str(Path(sys.prefix)).encode() in first
