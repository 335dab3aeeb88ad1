"""The wheel, and a fresh environment of it: made once."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.wheel.following", "tests.wheel.served", "tests.wheel.company")

from tests.wheel.environment import Environment, made_in, wheel_in  # noqa: E402


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel_in(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return made_in(tmp_path_factory.mktemp("fresh"), wheel)
