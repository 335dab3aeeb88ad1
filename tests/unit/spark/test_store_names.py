"""Directories of tables: no two names share one, whatever the file system tells apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hydro_core.errors import DataError
from hydro_core.spark.store.layout import directory_names, readable
from hydro_core.spark.store.ledger.ledger import Ledger
from tests.support.refused import Refused

PLAIN = ["totals", "new_routes", "Totals2", "camelCase", "a-b.c", "größe", "7", "x" * 100]
TWINS = [
    *("out", "out_", "_out", ".out", "Out", "OUT", "out~", "out!", "out?", "out/", "out\0"),
    *("é", "e\u0301", "ss", "ß", "\ud800", "\ud801", "", ".", "..", "*", "[a]", "a"),
    *("x" * 99, "x" * 100, "x" * 101, "x" * 300, "ö" * 50, "ö" * 51),
]
NAMES = st.lists(
    st.one_of(st.sampled_from(TWINS), st.text(st.characters(codec=None), max_size=8)), unique=True
)


def test_plain_names_are_their_own_directories() -> None:
    assert directory_names(PLAIN) == {name: name for name in PLAIN}


def test_of_names_alike_the_one_in_lower_case_is_plain() -> None:
    found = directory_names(["out", "Out", "OUT"])
    assert found["out"] == "out"
    assert found["Out"].startswith("Out~")


@given(NAMES)
def test_directories_are_distinct_short_and_harmless(names: list[str]) -> None:
    found = directory_names(names)
    assert len({directory.casefold() for directory in found.values()}) == len(names)
    for directory in found.values():
        assert 0 < len(directory.encode()) <= 100
        assert directory[0] not in "_."
        assert not set(directory) & set("/\\*?[]{}%:|<>\0 ")


def test_twins_are_told_apart() -> None:
    found = directory_names(TWINS)
    assert len({directory.casefold() for directory in found.values()}) == len(TWINS)
    # What a directory is does not hang on what else a program has, but for names that differ in
    # case only.
    alone = {name: directory_names([name])[name] for name in TWINS}
    assert {name for name in TWINS if found[name] != alone[name]} == {"Out", "OUT", "ß"}


def test_names_of_slots_stay_what_they_were() -> None:
    assert readable("broadcast_1 changes") == "broadcast_1_changes"
    assert readable("split[evens]") == "split_evens"
    assert readable("?") == "unnamed"


@pytest.mark.parametrize("name", ["a[1]", "a|b", "a^b", "a%20b", "a\\b"])
def test_a_directory_that_tables_cannot_be_in_is_refused(
    tmp_path: Path, name: str, refused: Refused
) -> None:
    directory = tmp_path / name
    with refused(DataError, "config") as caught:
        Ledger(directory).create()
    assert caught.value.code == "config"
    assert not directory.exists()
