"""`hydrotick doctor` says what is wrong before a tick meets it, and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hydro_core.cli.main import main
from hydrotick.project.settings import project_settings
from tests.support.store_server import SECRET, StoreServer

PROGRAM = 'x = source("user string, v long")\nx -> out\n'
ASSET = """program: p.hydro
ticks: {{start: 2026-01-01, every: 1d}}
inputs:
  x: {{path: {path}, column: day}}
"""


@pytest.fixture
def project(tmp_path: Path, server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "assets" / "one"
    folder.mkdir(parents=True)
    (folder / "p.hydro").write_text(PROGRAM)
    (folder / "asset.yaml").write_text(ASSET.format(path="s3://landing/rows"))
    said = f'[storage]\nendpoint = "{server.url}"\nregion = "us-east-1"\npatience = 2\n'
    (tmp_path / "hydrotick.toml").write_text(said)
    monkeypatch.chdir(tmp_path)
    for name in ("HYDROTICK_HOME", "HYDROTICK_PROJECT", "DAGSTER_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["doctor", "--no-spark", "--format", "json", *words])
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err
    return code, {one["what"]: one for one in json.loads(said.out)["findings"]}


def test_all_is_well(
    project: Path, server: StoreServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.put("rows/1.csv", b"day,user,v\n")
    code, found = asked(capsys)
    landing = found["one, input `x`"]
    assert (code, landing["state"]) == (0, "ok")
    assert landing["says"] == "s3://landing/rows can be listed and read"
    assert found[f"clock beside {server.url}"]["state"] == "ok"
    assert found["flows"]["says"] == "one"
    # What was written to see whether it can be is gone.
    assert not [file for file in project.rglob("*doctor*") if "storage" not in str(file)]
    assert main(["doctor", "--no-spark"]) == 0
    assert "all that ticks need is there" in capsys.readouterr().out


def test_a_store_that_does_not_let_it_be_read(
    project: Path, server: StoreServer, capsys: pytest.CaptureFixture[str]
) -> None:
    with server.failing(lambda *_: (403, "SignatureDoesNotMatch")):
        code, found = asked(capsys)
    told = found["one, input `x`"]
    assert (code, told["state"]) == (1, "wrong")
    assert "credentials are not those of anybody it knows" in told["says"]
    assert "AWS_ACCESS_KEY_ID" in told["cure"]
    asset = project / "assets" / "one" / "asset.yaml"
    asset.write_text(ASSET.format(path="s3://nowhere/rows"))
    assert "there is no bucket `nowhere`" in asked(capsys)[1]["one, input `x`"]["says"]


def test_a_landing_that_is_a_store(
    project: Path, server: StoreServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.put("all/rows/1.csv", b"day,user,v\n")
    toml = project / "hydrotick.toml"
    toml.write_text(toml.read_text() + '[paths]\nlanding = "s3://landing/all"\n')
    (project / "assets" / "one" / "asset.yaml").write_text(ASSET.format(path="rows"))
    code, found = asked(capsys)
    assert code == 0
    assert found["one, input `x`"]["says"] == "s3://landing/all/rows can be listed and read"
    settings = project_settings(at=project)
    assert str(settings.landed("rows")) == "s3://landing/all/rows"
    assert settings.landed("/elsewhere") == Path("/elsewhere")
    assert str(settings.landed("s3://other/x")) == "s3://other/x"
    toml.write_text('[paths]\nlanding = "s3://user:pw@landing"\n')
    code, found = asked(capsys)
    assert code == 1
    assert "which is no place in a store" in found["settings"]["says"]


def test_a_clock_that_is_wrong(
    project: Path,
    server: StoreServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert project.is_dir()
    monkeypatch.setattr("hydrotick.cli.doctor._difference", lambda _: -1000.0)
    code, found = asked(capsys)
    told = found[f"clock beside {server.url}"]
    assert (code, told["state"], told["says"]) == (1, "wrong", "1000 s apart")


def test_settings_and_flows_that_are_wrong(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "assets" / "one" / "asset.yaml").write_text("program: 1\n")
    code, found = asked(capsys)
    assert (code, found["flow `one`"]["state"]) == (1, "wrong")
    for said, match in (
        ('secret_key = "x"', "has no setting `secret_key`"),
        ('endpoint = "http://user:pass@host"', "which is no address of a server"),
    ):
        (project / "hydrotick.toml").write_text(f"[storage]\n{said}\n")
        code, found = asked(capsys)
        assert code == 1
        assert match in found["settings"]["says"]


@pytest.mark.skipif("os.geteuid() == 0", reason="root may write everywhere")
def test_a_directory_that_may_not_be_written(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "data").mkdir(mode=0o555)
    code, found = asked(capsys)
    assert (code, found["tables and ledgers"]["state"]) == (1, "wrong")
