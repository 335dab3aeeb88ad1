"""Normal forms, by which stored state is known, are what they were: byte for byte.

A form that differs makes the state of every deployment another one. What was written here is
never written again; functions may be added.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hydro_core.functions.forms import stored_form
from hydro_core.types.ddl import parse_ddl
from tests.support.functions import text

FORMS = json.loads((Path(__file__).parent / "stored_forms.json").read_text("utf-8"))


@pytest.mark.parametrize(("source", "types", "form"), FORMS, ids=[source for source, *_ in FORMS])
def test_a_form_is_what_is_stored(source: str, types: list[str], form: str) -> None:
    assert repr(stored_form(text(source), tuple(map(parse_ddl, types)))) == form
