"""A schema of more levels than anything has is told as such."""

from __future__ import annotations

import pytest

from hydro_core.errors import TypeProblem
from hydro_core.types.ddl import parse_ddl


@pytest.mark.parametrize("text", ["x " + "array<" * 5000, "(" * 5000, "x " + "struct<a:" * 5000])
def test_it_is_told_that_it_nests_too_deep(text: str) -> None:
    with pytest.raises(TypeProblem, match="nests too deep") as caught:
        parse_ddl(text)
    assert len(str(caught.value)) < 200
