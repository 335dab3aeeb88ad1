"""`hydrotick worker` says how the worker is, and is not asked by everybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from hydro_core.cli.main import run_command
from hydro_core.errors import HydroError
from hydrotick.cli.init import put_project
from hydrotick.cli.worker import _shown
from hydrotick.project.settings import ProjectSettings, project_settings
from hydrotick.worker.wire import place_of
from tests.support.refused import Refused


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "shop"
    put_project(made, "totals")
    monkeypatch.chdir(made)
    for name in ("HYDROTICK_HOME", "HYDROTICK_WORKER", "HYDROTICK_WORKER_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return made


def _settings(shop: Path, text: str, **environ: str) -> ProjectSettings:
    (shop / "hydrotick.toml").write_text(text)
    return project_settings({"HYDROTICK_PROJECT": str(shop), **environ})


@pytest.mark.parametrize("words", [["--status"], ["--drain"]])
def test_without_a_worker_that_is_told(shop: Path, words: list[str], refused: Refused) -> None:
    with refused(HydroError, "state") as caught:
        run_command(["worker", *words])
    assert str(shop / "data" / "worker" / "worker.sock") in str(caught.value)


def test_others_do_not_ask_it_without_a_token(shop: Path, refused: Refused) -> None:
    with refused(HydroError, "config"):
        run_command(["worker", "--listen", "0.0.0.0:7077"])


@pytest.mark.parametrize(
    "words",
    [["--listen", "none"], ["--listen", "7077"], ["--metrics", "a:b"], ["--flows", "0"]],
)
def test_what_is_no_address_is_misuse(words: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run_command(["worker", *words])


def test_how_it_is_for_people() -> None:
    status = {
        "process": "host:1@2",
        "takes": True,
        "flows": 2,
        "project": "/srv/shop",
        "running": [{"flow": "totals", "seconds": 1.5, "process": 7}],
        "waiting": [{"flow": "report", "seconds": 0.5}],
        "processes": [
            {"process": 7, "flow": "totals", "busy": True, "memory_mb": 900},
            {"process": 8, "flow": "other", "busy": False, "memory_mb": 1800},
        ],
    }
    assert _shown(status).splitlines() == [
        "host:1@2 takes work; 2 flow(s) at a time, /srv/shop",
        "  runs   totals for 1.5 s, process 7",
        "  waits  report for 0.5 s",
        "  idle   process 8, 1,800 MiB, other was its last flow",
    ]


def test_where_it_is_asked(shop: Path) -> None:
    (shop / "secret").write_text("a secret\n")
    text = '[worker]\naddress = "there:7077"\ntoken_file = "secret"\nflows = 3\nmemory = "4g"\n'
    found = _settings(shop, text)
    assert (found.worker.flows, found.worker.memory) == (3, "4g")
    place = place_of(found)
    assert place is not None
    assert (str(place), place.token, place.needed) == ("there:7077", "a secret", True)
    assert "secret" not in repr(found)
    other = place_of(_settings(shop, text, HYDROTICK_WORKER="[::1]:1", HYDROTICK_WORKER_TOKEN="x"))
    assert other is not None
    assert (other.address, other.token) == (("::1", 1), "x")
    assert place_of(_settings(shop, text, HYDROTICK_WORKER="none")) is None
    near = place_of(_settings(shop, ""))
    assert near is not None
    assert not near.needed


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('address = "there"', "`address` is 'there', which is no address"),
        ('address = "there:99999"', "which is no address"),
        ("flows = 0", "`flows` is 0, which is no number of flows"),
        ('memory = "much"', "which is no size"),
        ('token_file = "gone"', "the worker's token cannot be read"),
    ],
)
def test_what_is_wrong_is_told(shop: Path, text: str, says: str) -> None:
    with pytest.raises(HydroError) as caught:
        _settings(shop, f"[worker]\n{text}\n")
    assert says in str(caught.value)


def test_a_wrong_address_of_the_environment_is_told(shop: Path, refused: Refused) -> None:
    with refused(HydroError, "config"):
        _settings(shop, "", HYDROTICK_WORKER="there")
