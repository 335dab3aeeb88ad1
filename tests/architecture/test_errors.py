"""Every error is written once, and the page of errors has it."""

from __future__ import annotations

from collections import defaultdict
from typing import get_args

from hydro_core.errors import CODES, Code
from tools.error_sentences import error_sentences, places_of_sentences


def test_every_code_says_what_it_means() -> None:
    assert set(CODES) == set(get_args(Code))
    assert all(says.endswith(".") for says in CODES.values())


def test_the_codes_are_those_there_are() -> None:
    found = error_sentences()
    assert len(found) > 400
    assert {one.code for one in found} == set(CODES)


def test_a_sentence_is_written_in_one_place() -> None:
    assert {says: places for says, places in places_of_sentences().items() if len(places) > 1} == {}


def test_errors_are_found_in_whatever_way_they_are_made() -> None:
    by_code = defaultdict(set)
    for one in error_sentences():
        by_code[one.code].add(one.message)
    assert "`{name}` is not an input" in by_code["input"]  # by `Error.of`
    assert "there is no file `{path}`" in by_code["config"]  # by a function that is given it
    assert "flow `{name}`, `{place}`: nothing is expected" in by_code["config"]  # by a method
    assert "nothing flows into `{name}`" in by_code["port"]  # by a name, on one of two ways
    assert "no column would be left" in by_code["type"]  # by `TypeProblem`
    assert "`{name}` takes at least one argument" in by_code["type"]  # by an entry's type rule
