"""Every operator of the language page, with the columns that the page gives it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from hydro_core.catalog.registry import CATALOG, NAMES, lookup
from hydro_core.catalog.spec import (
    Always,
    Arg,
    Args,
    Barrier,
    HeldByAll,
    Never,
    OnAnyField,
    OnKey,
    OpSpec,
    OrderRule,
    Replicated,
)
from hydro_core.compile import compile_text
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import Order
from tests.unit.shared import shared

OPERATORS = [
    "source",
    "source_iter",
    "tick",
    "sink",
    "null",
    "identity",
    "map",
    "filter",
    "filter_map",
    "inspect",
    "select",
    "with_columns",
    "rename",
    "drop",
    "flat_map",
    "flatten",
    "tee",
    "partition",
    "union",
    "chain",
    "cross",
    "cross_singleton",
    "join",
    "join_asof",
    "zip",
    "zip_longest",
    "anti_join",
    "difference",
    "unique",
    "unique_keyed",
    "sort",
    "sort_by_key",
    "limit",
    "enumerate",
    "scan",
    "scan_keyed",
    "fold",
    "reduce",
    "fold_keyed",
    "reduce_keyed",
    "latest",
    "aggregate",
    "over",
    "top",
    "persist",
    "old",
    "window",
    "prev",
    "delta",
    "changes",
    "persist_mut",
    "persist_mut_keyed",
    "next_stratum",
]


def test_all_are_there() -> None:
    assert set(CATALOG) == set(OPERATORS)
    assert {name for name in NAMES if name not in CATALOG} == {"defer_tick", "demux"}
    assert lookup("demux") is CATALOG["partition"]
    assert lookup("nothing") is None


@pytest.mark.parametrize("op", CATALOG.values(), ids=lambda op: op.name)
def test_example_compiles_and_uses_the_operator(op: OpSpec) -> None:
    example = op.example
    schemas = {name: parse_ddl(text) for name, text in example.schemas.items()}
    compiled = compile_text(example.program, schemas)
    assert any(node.op is op for node in compiled.graph)
    assert len(example.ticks) == len(example.gives)
    assert all(set(gives) == set(compiled.typed.outputs) for gives in example.gives)


@pytest.mark.parametrize("op", CATALOG.values(), ids=lambda op: op.name)
def test_entry_is_sound(op: OpSpec) -> None:
    ports = [name for port in op.inputs for name in (port.name, *port.aliases)]
    assert len(set(ports)) == len(ports)
    assert len({arg.name for arg in op.args}) == len(op.args)
    assert op.summary
    assert not op.summary.endswith(".")
    # A required argument by place never follows one that may be left out.
    optional = [not arg.required for arg in op.args if arg.positional and arg.kind != "computed"]
    assert optional == sorted(optional)
    assert op.at(Args(_plain(op.args))).name == op.name


def _plain(args: tuple[Arg, ...]) -> tuple[tuple[str, object], ...]:
    from hydro_core.functions.tree import Fn

    plain = {"integer": 1, "function": Fn("f", "f", ("x",), max)}
    return tuple((arg.name, plain.get(arg.kind, arg.default)) for arg in args)


@cache
def page_rows() -> dict[str, tuple[str, ...]]:
    """The columns of the page's table by operator: linear, zero, strata, order, partition rule."""
    page: Path | None = shared("spec/language.md")
    if page is None:
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for line in page.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 8 and "`" in cells[0]:
            for name in _names(cells[0]):
                found[name] = tuple(cells[3:])
    return found


def _names(cell: str) -> Iterator[str]:
    for code in re.findall(r"`([^`]+)`", cell):
        name = re.match(r"\w+", code)
        if name and name.group() in NAMES:
            yield name.group()


def test_page_has_the_same_operators() -> None:
    if page_rows():
        assert {NAMES[name].name for name in page_rows()} == set(OPERATORS)


def columns(column: int) -> list[tuple[str, str]]:
    return [(name, row[column]) for name, row in page_rows().items()]


@pytest.mark.parametrize(("name", "said"), columns(0))
def test_linear(name: str, said: str) -> None:
    op = NAMES[name]
    linear = {port.name for port in op.inputs if port.linear}
    every = {port.name for port in op.inputs}
    match said:
        case "–":
            assert op.family == "io"
        case "yes" | "each side" | "each unpadded side":
            assert linear == every
        case "no" if name == "join_asof":
            # in both together; each left row has its own result
            assert linear == {"0"}
        case "no":
            assert not linear
            assert not op.idempotent or name in ("unique_keyed", "latest")
        case "idempotent":
            assert op.idempotent
        case _:
            assert linear == {said}


@pytest.mark.parametrize(("name", "said"), columns(1))
def test_zero(name: str, said: str) -> None:
    op = NAMES[name]
    if said.startswith("yes with `by`"):
        assert op.at(Args((("by", ("k",)), ("aggregates", ())))).zero
        assert not op.at(Args((("by", None), ("aggregates", ())))).zero
    elif said != "–":
        assert op.zero == (said in ("yes", "left yes"))


@pytest.mark.parametrize(("name", "said"), columns(2))
def test_strata(name: str, said: str) -> None:
    op = NAMES[name]
    barriers = {port.name: port.barrier for port in op.inputs}
    blocking = {port for port, barrier in barriers.items() if barrier is Barrier.STRATUM}
    match said:
        case "–":
            assert not blocking
        case "same" | "same (monotone)":
            assert set(barriers.values()) == {Barrier.NONE}
        case "blocking":
            assert set(barriers.values()) == {Barrier.STRATUM}
        case "breaks":
            assert set(barriers.values()) == {Barrier.TICK}
        case "right blocking":
            assert blocking == {"1"}
        case "`single` blocking" | "`neg` blocking":
            assert blocking == {said.split("`")[1]}
        case _:
            assert name == "join"
            assert not blocking


@pytest.mark.parametrize(("name", "said"), columns(3))
def test_order(name: str, said: str) -> None:
    op = NAMES[name]
    needs = any(port.needs is Order.TOTAL for port in op.inputs)
    words = {
        "keeps": OrderRule.KEEPS,
        "keeps first": OrderRule.KEEPS,
        "keeps if both have it": OrderRule.KEEPS_IF_ALL,
        "gives": OrderRule.GIVES,
        "loses": OrderRule.LOSES,
    }
    if said in ("–", "none"):
        assert op.family == "io" or op.order is OrderRule.LOSES
    elif said.startswith("needs, "):
        assert needs
        assert op.order is words[said.removeprefix("needs, ")]
    else:
        assert op.order is words[said]
        assert not needs or name.startswith(("fold", "reduce"))


@pytest.mark.parametrize(("name", "said"), columns(4))
def test_partition(name: str, said: str) -> None:
    op = NAMES[name]
    rules = {
        "always": Always,
        "held by every shard, emitted by one": HeldByAll,
        "as `source_iter`": HeldByAll,
        "ordered outputs: never": Always,
        "never": Never,
        "single side replicated": Replicated,
        "on the key": OnKey,
        "on the same field of both, any": OnAnyField,
        "on any field of the item": OnAnyField,
        "on the item": OnAnyField,
    }
    if said in rules:
        assert isinstance(op.partition, rules[said])
    else:
        with_key = op.at(Args((("by", ("k",)), ("n", 1), ("aggregates", ()))))
        without = op.at(Args((("by", None), ("n", 1), ("aggregates", ()))))
        assert isinstance(with_key.partition, OnKey)
        assert isinstance(without.partition, Never)


def test_a_padded_side_waits_for_the_other() -> None:
    join = NAMES["join"]
    found = {}
    for how in ("inner", "left", "right", "outer", "semi", "anti"):
        left, right = join.at(Args((("how", how),))).inputs
        found[how] = (left.barrier is Barrier.STRATUM, right.barrier is Barrier.STRATUM)
        assert left.linear == (how in ("inner", "left", "semi", "anti"))
        assert right.linear == (how in ("inner", "right"))
    assert found == {
        "inner": (False, False),
        "left": (False, True),
        "right": (True, False),
        "outer": (True, True),
        "semi": (False, False),
        "anti": (False, True),
    }


def test_arguments_are_equal_only_if_they_are_the_same_value() -> None:
    def init(value: object) -> Args:
        return Args((("init", value),))

    assert init(1) != init(True)
    assert init(1) != init(1.0)
    assert init([1, {"a": 0.0}]) == init([1, {"a": 0.0}])
    assert init([1]) != init((1,))
    assert len({init([1]), init([1]), init([True])}) == 2
