"""Normal forms of all functions at hand are what they were when this was written.

Stored state is known by them: a digest that differs is a state that is computed again in every
deployment. `tests/support/all_functions.py` writes all that is said of each function, to compare.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden.vectors import shared
from tests.support.all_functions import digests

DIGESTS = json.loads((Path(__file__).parent / "forms_of_programs.json").read_text("utf-8"))


def test_normal_forms_are_what_they_were() -> None:
    if shared("vectors") is None:
        pytest.skip("the shared vectors are not here")
    found = digests()
    assert len(DIGESTS.keys() & found.keys()) > 1000
    assert {label: found.get(label) for label in DIGESTS if label in found} == {
        label: digest for label, digest in DIGESTS.items() if label in found
    }
