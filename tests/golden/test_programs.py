"""The `*.case` files on the reference interpreter."""

from __future__ import annotations

import json

import pytest

from hydro_core.engines import Options
from hydro_core.errors import HydroError
from hydro_core.lang.resolve import parse
from hydro_core.running import run_json
from tests.golden.cases import Case, all_cases


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_case(case: Case) -> None:
    if case.error is not None:
        with pytest.raises(HydroError) as caught:
            run_json(parse(case.program), case.schemas, case.ticks, Options(optimized=False))
        code, words = case.error
        assert caught.value.code == code
        assert words in str(caught.value)
    else:
        found = run_json(parse(case.program), case.schemas, case.ticks, Options(optimized=False))
        assert [*map(_text, found)] == [*map(_text, case.outputs)]


def _text(tick: dict[str, list[object]]) -> str:
    """JSON tells 1 from 1.0 and true, and NaN is NaN."""
    return json.dumps(tick, sort_keys=True, ensure_ascii=False)
