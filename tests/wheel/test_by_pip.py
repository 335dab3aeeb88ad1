"""What pip makes of the wheel and of the locked versions is what the other tests run in."""

from __future__ import annotations

import re
import subprocess
import venv
from pathlib import Path

import pytest

from tests.pages.blocks import ROOT
from tests.wheel.environment import Environment

pytestmark = [pytest.mark.wheel, pytest.mark.slow]

_NO_NETWORK = re.compile(r"NewConnectionError|NameResolutionError|ConnectTimeoutError|ProxyError")


def test_pip_installs_the_same(wheel: Path, environment: Environment, tmp_path: Path) -> None:
    place = tmp_path / "environment"
    venv.create(place, with_pip=True, symlinks=True)
    found = Environment(place, environment.home, environment.programs)
    mine = set(found.packages())
    constraints = tmp_path / "constraints.txt"
    constraints.write_text(_constraints(), encoding="utf-8")
    pip = [found.python, "-m", "pip", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "install", "--no-input", "--constraint", constraints, wheel],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and _NO_NETWORK.search(done.stdout + done.stderr):
        pytest.skip("no packages can be had here")
    assert done.returncode == 0, done.stderr
    checked = subprocess.run([*pip, "check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    made = {name: one for name, one in found.packages().items() if name not in mine}
    assert made == environment.packages()


def _constraints() -> str:
    """The locked versions, as pip takes them: without extras and hashes."""
    lock = (ROOT / "requirements" / "lock.txt").read_text(encoding="utf-8")
    pinned = re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?(==[^\\\n]+)", lock, re.MULTILINE)
    return "".join(f"{name}{version.strip()}\n" for name, version in pinned)
