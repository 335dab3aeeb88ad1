"""What Spark needs beside its package is made ready once, and told where it cannot be had."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hydro_core.settings import SparkSettings
from hydro_core.spark.session.ready import NotReadyError, made_ready
from hydro_core.spark.session.session import start_session
from tests.support.refused import Refused
from tests.unit.spark.test_java import fake_java

JAR = "io.delta_delta-spark_4.2_2.13-4.4.0.jar"


@pytest.fixture(autouse=True)
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)


def fetches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> Path:
    """Has a script in place of the process that fetches; gives the file that it writes into."""
    calls = tmp_path / "calls"
    fake = tmp_path / "python"
    fake.write_text(
        f"#!{sys.executable}\nimport os, sys, pathlib\n"
        f"share, scratch = map(pathlib.Path, sys.argv[3:5])\n"
        f"open({str(calls)!r}, 'a').write(os.environ['JAVA_HOME'] + '\\n')\n{script}\n"
    )
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    return calls


FETCHED = f"(share / 'jars').mkdir(); (share / 'jars' / {JAR!r}).write_bytes(b'x' * 2**20)"


def test_it_is_fetched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    share = tmp_path / "share"
    java_home = fake_java(share / "jdk", "21.0.8")
    calls = fetches(monkeypatch, tmp_path, FETCHED)
    found = made_ready(share)
    assert found == (java_home, (share / "jars" / JAR,))
    assert made_ready(share) == found
    assert calls.read_text().splitlines() == [str(java_home)]
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "hydrotick: the jars of Delta 4.4.0 are fetched from Maven Central, once"
    assert said[1].startswith("hydrotick: 1 jars, 1.0 MiB, after ")
    assert len(said) == 2


def test_who_asks_at_the_same_time_waits(tmp_path: Path) -> None:
    share = tmp_path / "share"
    fake_java(share / "jdk", "21.0.8")
    script = (
        "import sys, time; from pathlib import Path\n"
        "import hydro_core.spark.session.ready as ready\n"
        "def fetched(share, java_home, packages, key):\n"
        "    print('fetched'); time.sleep(1); (share / 'jars').mkdir()\n"
        f"    (share / 'jars' / {JAR!r}).touch(); return ready.DELTA.jars(share)\n"
        "ready._fetched = fetched\n"
        f"assert ready.made_ready(Path({str(share)!r})).jars\n"
    )
    words = [sys.executable, "-c", script]
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(said) == ["", "fetched\n"]


def test_jars_that_do_not_come_are_told_with_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = tmp_path / "share"
    fake_java(share / "jdk", "21.0.8")
    fetches(monkeypatch, tmp_path, "sys.exit('Host repo1.maven.org not found.')")
    with pytest.raises(NotReadyError, match=r"fetched: Host repo1\.maven\.org not found") as caught:
        start_session(SparkSettings(share=share))
    assert caught.value.code == "config"
    assert "reaches Maven Central" in str(caught.value)
    assert f"copy the directory {share / 'jars'}" in str(caught.value)
    assert not (share / "fetching").exists()


def test_no_java_is_told_with_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with refused(NotReadyError, "config"):
        start_session(SparkSettings(share=tmp_path / "share"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_environment_of_somebody_else(tmp_path: Path) -> None:
    share = tmp_path / "theirs"
    share.mkdir(mode=0o555)
    with pytest.raises(NotReadyError, match="cannot be put into"):
        made_ready(share / "hydrotick")


def test_a_place_that_cannot_be_made(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "file").touch()
    with refused(NotReadyError, "config"):
        made_ready(tmp_path / "file" / "share")
