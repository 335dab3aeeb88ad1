"""What travels to workers is whole: they have nothing of the project's own modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hydro_core.artifact.functions import ReferenceCall
from hydro_core.errors import DataError
from hydro_core.spark.functions.apply import pack, unpack
from tests.support.refused import Refused

ROOT = Path(__file__).parents[3]
RATES = "RATE = 3\n\ndef rated(x):\n    return x * RATE\n"
PRICES = "from rates_of_a_project import rated\n\ndef price(x):\n    return rated(x) + 1\n"
LOCKED = """
import threading

LOCK = threading.Lock()

def locked(x):
    with LOCK:
        return x + 1
"""
ELSEWHERE = """
import sys
from hydro_core.spark.functions.apply import unpack
assert not any(name.endswith("_of_a_project") for name in sys.modules)
print(unpack(bytes.fromhex(sys.stdin.read()))(13))
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two modules of a project, of which one imports the other, neither loaded yet."""
    for name, text in {"rates": RATES, "prices": PRICES}.items():
        (tmp_path / f"{name}_of_a_project.py").write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, f"{name}_of_a_project", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def called_elsewhere(packed: bytes) -> str:
    """What a process that has not these modules gets of 13."""
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        input=packed.hex(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or done.stderr


@pytest.mark.usefixtures("modules")
def test_a_function_that_a_deployment_names_travels_with_its_modules() -> None:
    assert called_elsewhere(pack(ReferenceCall("prices_of_a_project", "price"))) == "40"


def test_one_whose_module_holds_a_lock_travels_by_its_name(modules: Path) -> None:
    (modules / "rates_of_a_project.py").write_text(LOCKED, encoding="utf-8")
    packed = pack(ReferenceCall("rates_of_a_project", "locked"))
    assert isinstance(unpack(packed), ReferenceCall)
    assert unpack(packed)(13) == 14


def test_one_of_an_installed_module_travels_by_its_name() -> None:
    packed = pack(ReferenceCall("math", "isqrt"))
    assert isinstance(unpack(packed), ReferenceCall)
    assert called_elsewhere(packed) == "3"


def test_one_that_is_another_by_now_is_told_when_it_is_called(
    modules: Path, refused: Refused
) -> None:
    assert modules.exists()
    packed = pack(ReferenceCall("prices_of_a_project", "price", "lambda x: x"))
    with refused(DataError, "state"):
        unpack(packed)(13)
