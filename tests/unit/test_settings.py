"""Settings are values with copies, sizes are what the JVM takes them for."""

from __future__ import annotations

import dataclasses

import pytest

from hydro_core.settings import Settings, SparkSettings, size_in_bytes


def test_a_copy_changes_limits_and_spark_at_once() -> None:
    changed = Settings().with_(max_iterations=3, master="local[1]", memory="4g")
    assert (changed.max_iterations, changed.spark.master) == (3, "local[1]")
    assert changed.spark.memory_bytes == 4 * 2**30
    assert Settings().spark == SparkSettings()


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().max_iterations = 3  # type: ignore[misc]


def test_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="max_iteration"):
        Settings().with_(max_iteration=3)


@pytest.mark.parametrize(
    ("text", "size"), [("512m", 2**29), ("2g", 2**31), ("2GB", 2**31), ("1t", 2**40)]
)
def test_sizes(text: str, size: int) -> None:
    assert size_in_bytes(text) == size


@pytest.mark.parametrize("text", ["", "2", "1.5g", "-1g", "2 g", "g"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        size_in_bytes(text)
