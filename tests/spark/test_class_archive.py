"""Every JVM starts with the archive of classes that fits it, and does without one that does not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hydro_core.spark.session.classes import _number, archive_of, flags_for, make_archive
from hydro_core.spark.session.java import default_share
from hydro_core.spark.session.ready import made_ready

SESSION = """
import sys
from pathlib import Path
from hydro_core.settings import SparkSettings
from hydro_core.spark.session.launch import jvm_process
from hydro_core.spark.session.session import start_session

session = start_session(SparkSettings(master="local[1]", share=Path(sys.argv[1])))
rows = session.range(3)
rows.write.format("delta").save(sys.argv[2])
maps = Path(f"/proc/{jvm_process()}/maps").read_text()
print(session.read.format("delta").load(sys.argv[2]).count(), f"{sys.argv[1]}/classes" in maps)
"""


@pytest.fixture
def share(tmp_path: Path) -> Path:
    """A directory of its own with the jars, so that its archive is nobody else's."""
    made = tmp_path / "a share"
    shutil.copytree(made_ready(default_share()).jars[0].parent, made / "jars")
    return made


def _made(share: Path, content: bytes) -> Path:
    """An archive that has the right name."""
    java_home, jars = made_ready(share)
    place = share / "classes" / f"{_number(java_home, jars)}-{len(content)}.jsa"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(content)
    assert archive_of(share, java_home, jars) == place
    return place


def _started(share: Path) -> str:
    """What a session says: the rows of a table that it wrote, and whether it had the archive."""
    table = share / "table"
    shutil.rmtree(table, ignore_errors=True)
    words = [sys.executable, "-c", SESSION, str(share), str(table)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300, cwd=share)
    assert "cds" not in done.stderr.lower()
    return done.stdout.strip()


def test_one_of_another_length_is_none(tmp_path: Path) -> None:
    home, jars = tmp_path / "jdk", [tmp_path / "delta.jar"]
    assert flags_for(archive_of(tmp_path, home, jars)) == ()
    (tmp_path / "classes").mkdir()
    archive = tmp_path / "classes" / f"{_number(home, jars)}-5.jsa"
    archive.write_text("whole")
    assert f'"-XX:SharedArchiveFile={archive}"' in flags_for(archive_of(tmp_path, home, jars))
    archive.write_text("cut")
    assert archive_of(tmp_path, home, jars) is None


def test_another_java_or_other_jars_have_another_archive(tmp_path: Path) -> None:
    home = tmp_path / "jdk"
    home.mkdir()
    (home / "release").write_text('JAVA_VERSION="17.0.1"')
    seen = {_number(home, [tmp_path / name]) for name in ("a.jar", "b.jar")}
    (home / "release").write_text('JAVA_VERSION="17.0.2"')
    seen.add(_number(home, [tmp_path / "a.jar"]))
    assert len(seen) == 3


@pytest.mark.spark
@pytest.mark.slow
def test_a_broken_archive_is_left_alone(share: Path) -> None:
    _made(share, b"no archive at all")
    assert _started(share) == "3 False"


@pytest.mark.spark
@pytest.mark.slow
def test_an_archive_is_made_and_used_until_it_fits_no_more(share: Path) -> None:
    assert make_archive(share, *made_ready(share)).startswith("an archive of classes, ")
    assert _started(share) == "3 True"
    (archive,) = (share / "classes").iterdir()
    whole = archive.read_bytes()
    archive.unlink()
    # One that ends the JVM is removed, and the JVM starts without it.
    cut = _made(share, whole[: len(whole) // 2])
    assert _started(share) == "3 False"
    assert not cut.exists()
    _made(share, whole)
    # The JVM finds by itself that a jar is not the one that it was.
    next((share / "jars").glob("*storage*")).touch()
    assert _started(share) == "3 False"


def test_why_no_archive_is_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no memory >&2\nexit 3\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    said = make_archive(tmp_path, tmp_path / "jdk", [])
    assert said == "no archive of classes could be made: no memory"
    assert list((tmp_path / "classes").iterdir()) == []
