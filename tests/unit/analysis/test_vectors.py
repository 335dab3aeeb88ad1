"""The vectors' programs compile, or fail with their code."""

from __future__ import annotations

from typing import Any

import pytest

from hydro_core.compile import compile_text
from hydro_core.errors import ProgramError
from hydro_core.types.ddl import parse_ddl
from tests.unit.shared import or_skipped, vectors

AT_RUN_TIME = {"runtime", "state", "input", "config"}
CASES = vectors("dfir", "fuzz", "ordered")


@pytest.mark.parametrize("vector", or_skipped(CASES), ids=lambda v: v["name"])
def test_vector(vector: dict[str, Any]) -> None:
    schemas = {name: parse_ddl(ddl) for name, ddl in vector.get("schemas", {}).items()}
    codes = [vector["error"], *vector.get("error_alternatives", [])] if "error" in vector else []
    if codes and codes[0] not in AT_RUN_TIME:
        with pytest.raises(ProgramError) as caught:
            compile_text(vector["program"], schemas)
        assert caught.value.code in codes
    else:
        assert compile_text(vector["program"], schemas).strata.count >= 1
