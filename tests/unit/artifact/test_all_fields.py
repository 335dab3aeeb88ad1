"""Every field of what a deployment is made of survives write and read.

Equality does not look at fields with `compare=False`, so they are gone through here one by one:
whether a column may be null was lost so.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from dataclasses import Field as DataField
from pathlib import Path
from typing import Any, get_args

import pytest

from hydro_core import Flow
from hydro_core.artifact.deployment import (
    Deployment,
    Sharding,
    Validation,
    program_meaning,
    read_deployment,
    write_deployment,
)
from hydro_core.artifact.functions import stored_call
from hydro_core.artifact.make import DeploymentMetadata, deployment_of
from hydro_core.catalog.registry import CATALOG
from hydro_core.compile import CompiledProgram, compile_graph, compile_text
from hydro_core.functions.tree import Expr, Fn
from hydro_core.optimize.cost import Statistics
from hydro_core.optimize.optimizer import optimize
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import Row

REQUIRED = """
a = source("k long not null, deep struct<at: date not null, in: array<struct<i: int not null>>>")
b = source("k long, deep struct<at: date, in: array<struct<i: int>>>")
unused = a -> filter(lambda r: r.k > 0)
a -> select("k", "deep") -> filter(lambda r: r.deep is not None) -> kept
b -> select("k", "deep") -> persist() -> aggregate(by="k", n=count()) -> counted
a -> map(lambda r: ()) -> none
c = source("_1 long not null, w long")
c -> select("_1") -> first
"""
"""Two types that are equal but for `not null`, and a row that no schema can name."""


def clock(r: Any) -> bool:
    return bool(r["k"] > random.random())


def _changing() -> CompiledProgram:
    """A function that does not give the same each time, and what is warned of it."""
    flow = Flow()
    flow.source("a", "k long").filter(clock).sink("out")
    return compile_graph(flow.graph())


def _programs() -> Iterator[tuple[str, Callable[[], CompiledProgram]]]:
    for op in CATALOG.values():
        schemas = {name: parse_ddl(text) for name, text in op.example.schemas.items()}
        text = op.example.program
        yield op.name, lambda text=text, schemas=schemas: compile_text(text, schemas)
    yield "required", lambda: compile_text(REQUIRED, file="required.hydro")
    yield "changing", _changing


def _deployment(program: CompiledProgram) -> Deployment:
    sharding = Sharding(2, {"a": ("k",)}, ("b",), says="a by k")
    params = {"threshold": "2"}
    given = DeploymentMetadata({"t.hydro": "…"}, Validation(20, 7), sharding, params=params)
    plan = optimize(program.typed, Statistics(ticks=5), explain=True)
    return deployment_of("flow", program.typed, plan, given)


@dataclass
class _LoopWalk:
    """Goes through two values side by side."""

    differ: list[str] = field(default_factory=list)
    seen: dict[type, set[str]] = field(default_factory=dict)
    """Of each class the fields that had another value than their default."""
    done: dict[tuple[int, int], Any] = field(default_factory=dict)
    """What was gone through, which is held: another object could get its identity."""

    def compare(self, one: Any, other: Any, path: str) -> None:
        if (id(one), id(other)) in self.done:
            return
        self.done[id(one), id(other)] = (one, other)
        match one:
            case Fn():
                self._fields(one, other, path)
                self.compare(stored_call(one), stored_call(other), f"{path}.call")
            case _ if is_dataclass(one):
                self._fields(one, other, path)
            case Mapping():
                self.compare(list(one), list(other), f"{path} keys")
                for key in one:
                    self.compare(one[key], other[key], f"{path}[{key!r}]")
            case list() | tuple() if not isinstance(one, str):
                if len(one) != len(other):
                    self.differ.append(f"{path}: {len(one)} and {len(other)}")
                for i, (left, right) in enumerate(zip(one, other, strict=False)):
                    self.compare(left, right, f"{path}[{i}]")
            case _ if type(one).__eq__ is not object.__eq__ and one != other:
                self.differ.append(f"{path}: {one!r} and {other!r}")

    def _fields(self, one: Any, other: Any, path: str) -> None:
        if type(one) is not type(other):
            self.differ.append(f"{path}: {type(one).__name__} and {type(other).__name__}")
            return
        for each in fields(one):
            value = getattr(one, each.name)
            if isinstance(one, Fn) and each.name == "call":
                self.seen.setdefault(type(one), set()).add("call")
                continue
            if value != _default(each):
                self.seen.setdefault(type(one), set()).add(each.name)
            self.compare(value, getattr(other, each.name), f"{path}.{each.name}")


def _default(each: DataField[Any]) -> Any:
    if each.default is not MISSING:
        return each.default
    return each.default_factory() if each.default_factory is not MISSING else MISSING


@pytest.mark.parametrize("program", [pytest.param(made, id=name) for name, made in _programs()])
def test_every_field_is_read_as_it_was_written(
    program: Callable[[], CompiledProgram], tmp_path: Path
) -> None:
    made = _deployment(program())
    walk = _LoopWalk()
    walk.compare(made, read_deployment(tmp_path, write_deployment(tmp_path, made)), "deployment")
    assert walk.differ == []


def test_the_programs_use_every_field_that_equality_leaves_out() -> None:
    """So no field is kept by nobody having set it."""
    walk = _LoopWalk()
    for _, program in _programs():
        made = _deployment(program())
        walk.compare(made, made, "deployment")
    unset = {
        f"{of.__name__}.{each.name}"
        for of, found in walk.seen.items()
        for each in fields(of)
        if not each.compare and each.init and each.name not in found
    }
    # a function is bound to what it is applied to wherever it is asked: its types are not stored
    assert unset == {f"{node.__name__}.type" for node in get_args(Expr) if node in walk.seen}
    assert {Row, Fn, Sharding} <= walk.seen.keys()


def test_what_is_required_is_said_of_what_was_read(tmp_path: Path) -> None:
    program = compile_text(REQUIRED)
    found = read_deployment(tmp_path, write_deployment(tmp_path, _deployment(program)))
    for typed in (found.program.typed, found.plan.typed):
        assert str(typed.schemas["a"]) == str(program.typed.schemas["a"])
    assert "not null" not in str(found.plan.typed.schemas["b"])
    assert program_meaning(found.program.typed) == program_meaning(program.typed)


def test_a_deployment_that_0_2_0_wrote_is_written_as_it_was(tmp_path: Path) -> None:
    """One of a program with slots, bounds, cycles, views, values and functions of each kind."""
    stored = Path(__file__).parent / "of_0_2_0" / "deployments" / "1"
    number = write_deployment(tmp_path, read_deployment(stored.parent.parent, 1))
    for file in stored.iterdir():
        again = (tmp_path / "deployments" / str(number) / file.name).read_text("utf-8")
        assert again == file.read_text("utf-8"), file.name
