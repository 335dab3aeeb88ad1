"""The reference has every operator, argument, aggregate, type and error code; of commands see
`test_commands`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from hydro_core.catalog.aggregates import AGGREGATES
from hydro_core.catalog.registry import ALGEBRA, CATALOG, TYPED
from hydro_core.catalog.spec import OpSpec
from hydro_core.errors import CODES
from hydro_core.types.item import SCALARS
from tests.pages.blocks import ALL, ROOT, Block

LANGUAGE = (ROOT / "docs/language.md").read_text(encoding="utf-8")
OPERATORS = (ROOT / "docs/operators.md").read_text(encoding="utf-8")
RAISED_ELSEWHERE = {"state", "config"}
"""Codes that no program by itself leads to."""


def section(page: str, title: str) -> str:
    """What stands below a heading of the third level."""
    found = re.search(rf"^### {re.escape(title)}\n(.*?)(?=^##|\Z)", page, re.DOTALL | re.MULTILINE)
    assert found is not None, f"there is no section `{title}`"
    return found[1]


@pytest.mark.parametrize("op", CATALOG.values(), ids=lambda op: op.name)
def test_operator(op: OpSpec) -> None:
    """It is there with its meaning, its ports, every argument, and an example that is checked."""
    says = section(OPERATORS, op.name)
    assert op.summary in says
    assert "```hydrotick\n" in says
    assert "# tick 0: " in says
    for name in op.aliases:
        assert f"`{name}`" in OPERATORS
    for port in op.inputs if len(op.inputs) > 1 else ():
        assert f"`[{port.name}]`" in says
        assert not port.keyword or f"`{port.keyword}=`" in says
    for arg in op.args:
        assert arg.summary, f"`{arg.name}` of `{op.name}` says nothing of itself"
        assert f"- `{arg.name}`: {arg.summary}" in says
        assert all(f"`{choice}`" in says for choice in arg.choices)


def test_what_functions_promise() -> None:
    for word in (*ALGEBRA, TYPED, "returns"):
        assert word in OPERATORS
        assert word in LANGUAGE


def _used() -> Iterator[str]:
    for block in ALL:
        if block.language == "hydrotick" and block.page.name == "language.md":
            yield from re.findall(r"=(\w+)\(", block.text)


@pytest.mark.parametrize(
    "aggregate", [spec for spec in AGGREGATES.values() if not spec.internal], ids=lambda a: a.name
)
def test_aggregate(aggregate: object) -> None:
    """It is in the table with its meaning and its other names, and in a program that is checked."""
    spec = AGGREGATES[aggregate.name]  # type: ignore[attr-defined]
    assert spec.summary in OPERATORS
    assert all(f"`{name}`" in OPERATORS for name in (spec.name, *spec.aliases))
    assert all(f"`{name}`" in LANGUAGE for name in spec.aliases)
    assert spec.name in set(_used())


@pytest.mark.parametrize("code", CODES)
def test_error_code(code: str) -> None:
    """It has a section, and a program that ends so."""
    section(LANGUAGE, code)
    shown = [block for block in ALL if block.language == "error" and _ends_so(block, code)]
    assert shown or code in RAISED_ELSEWHERE


def _ends_so(block: Block, code: str) -> bool:
    return block.page.name == "language.md" and f"error[{code}]" in block.text


@pytest.mark.parametrize("name", SCALARS)
def test_type(name: str) -> None:
    written = {"integer": "int"}.get(name, name)
    assert f"`{written}`" in LANGUAGE
