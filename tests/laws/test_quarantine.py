"""Random programs with functions that fail: they mean what they mean without the items that fail.

The judge is the program as it is written, by its definitions, of whose operators each gets the
items alone on which it does not fail; an operator is asked about one item at a time.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hydro_core.analysis.infer import infer
from hydro_core.catalog.classes import PerItem, Projection
from hydro_core.catalog.spec import functions_of
from hydro_core.compile import CompiledProgram, compile_graph, compile_text, optimized, stratified
from hydro_core.errors import DataError
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Node
from hydro_core.lang.resolve import parse
from hydro_core.plan.tick_plan import Kind, kinds_of
from hydro_core.project.failing import refused, without_failing
from hydro_core.reference.bag import Bag
from hydro_core.reference.definitions.registry import definition_of
from hydro_core.reference.interpreter import Hooks, run_ticks
from hydro_core.reference.site import Moment, Site
from hydro_core.running import read_ticks
from hydro_core.ticks.tick import Outputs, TickInput
from hydro_core.types.item import QUARANTINE, Order
from hydro_core.types.json import to_json
from hydro_core.validation.random_ticks import same_items
from tests.laws.test_failing_ticks import FAILING
from tests.support.flows import INPUTS, typed_program
from tests.support.row_programs import numbers, random_program
from tests.support.stored import MODES, storable, stored_outputs

TICKS = 5
ROWS = {
    "a": ("k", "v", "w"),
    "b": ("k", "v", "w"),
    "c": ("k", "z"),
}


@dataclass
class Judge:
    """Takes the items out of a program's streams on which the operator that gets them fails."""

    program: CompiledProgram
    failed: dict[tuple[int, str], Bag] = field(default_factory=dict)

    def outputs(self, ticks: Sequence[TickInput]) -> list[Outputs]:
        hooks = Hooks(keep=self._keep)
        return list(run_ticks(self.program.typed, self.program.strata, ticks, hooks=hooks))

    def quarantined(self, tick: int) -> Counter[str]:
        """The items of a tick that are put in quarantine, by what they are in JSON."""
        typed, found = self.program.typed, Counter[str]()
        kinds = kinds_of(typed, ())
        for node in typed.graph:
            if not node.inputs:
                continue
            end, now = node.inputs[0], self._shown(node, tick)
            if kinds[end.node] is not Kind.E:
                now = now - self._shown(node, tick - 1)
            found.update(now)
        return found

    def _shown(self, node: Node, tick: int) -> Counter[str]:
        of = self.program.typed.types[node.inputs[0]].item
        items = self.failed.get((tick, node.id), Bag())
        return Counter(json.dumps(to_json(x, of), ensure_ascii=False) for x in items)

    def _keep(self, node: Node, port: int, tick: int, bag: Bag) -> Bag:
        if not any(_of_an_item(node)):
            return bag
        kept, lost = list[Any](), list[Any]()
        for x in bag:
            (kept if self._fits(node, tick, x) else lost).append(x)
        self.failed[tick, node.id] = Bag(lost)
        return Bag(kept)

    def _fits(self, node: Node, tick: int, item: Any) -> bool:
        typed = self.program.typed
        inputs = tuple(map(typed.types.__getitem__, node.inputs))
        output = typed.of(node.id).item if node.op.outputs == "one" else inputs[0].item
        site = Site(node, inputs, output, Moment(tick))
        try:
            if not isinstance(node.cls, PerItem | Projection):
                # What they make of many items is open to how many there are; the calls are not.
                for fn in _of_an_item(node):
                    site.call(fn, item)
                return True
            found = definition_of(node.op.name).function(site, Bag([item]))
            for made in found if isinstance(found, Bag) else ():
                site.fit(made, output)
        except DataError:
            return False
        return True


def _of_an_item(node: Node) -> Iterator[Fn]:
    """The functions that an operator calls with an item of its input alone."""
    if len(node.inputs) == 1:
        args = (arg for arg in node.op.args if not arg.leading)
        yield from (fn for arg in args for fn in functions_of(node.args.get(arg.name)))


MORE_FAILING = {
    "lambda x: (0, x[0] + x[1])": "lambda x: (0, 6 // x[0] + x[1])",
    "[x, (x[1], x[0])] if x[0] else []": "[x] * (6 // x[0] - 2)",
}


def of_pairs(seed: int) -> tuple[str, list[dict[str, list[Any]]]]:
    """A program on pairs of numbers, most of whose functions fail where one of them is 0."""
    rng = Random(seed)
    text, _ = typed_program(rng, rng.randint(6, 10))
    for always, failing in [*list(FAILING.items())[:-1], *MORE_FAILING.items()]:
        parts = text.split(always)
        ends = [failing if rng.random() < 0.8 else always for _ in parts[1:]]
        text = "".join([parts[0], *(end + part for end, part in zip(ends, parts[1:], strict=True))])
    return text, [
        {
            n: [[rng.randint(0, 2) for _ in range(2)] for _ in range(rng.randint(0, 4))]
            for n in INPUTS
        }
        for _ in range(TICKS)
    ]


def _failing(rng: Random, line: str, columns: Mapping[str, Sequence[str]]) -> str:
    """A statement, some of whose functions fail."""
    if "with_columns(" in line or "filter(" in line:
        line = line.replace(" or 0)", ")").replace(" or 1)", " // 1)").replace("-(", "6 // (")
    elif "limit(" in line:
        line = line.replace(" or 0)", ")")
    elif "aggregate(" in line and rng.random() < 0.5:
        line = re.sub(r'sum\("(\w)"\)', r"sum(lambda r: 6 // r.\1)", line)
    name, _, is_step = line.partition(" = ")
    by = [column for column in numbers(columns.get(name, ())) if column in "kvz"]
    if is_step and "source(" not in line and by and rng.random() < 0.4:
        line += f" -> filter(lambda r: 6 // r.{rng.choice(by)} != 3)"
    return line


def of_rows(seed: int) -> tuple[str, list[dict[str, list[Any]]]]:
    """A program on rows, of whose functions many fail where a column is null or 0."""
    rng = Random(seed)
    program = random_program(rng, rng.randint(4, 9))
    columns = program.columns()
    lines = [_failing(rng, line, columns) for line in str(program).splitlines()]
    values = {"k": (0, 1, None), "v": (0, 1, 2, None), "w": ("x", "y", None), "z": (1, 2)}

    def row(names: Sequence[str]) -> dict[str, Any]:
        return {name: rng.choice(values[name]) for name in names}

    ticks = [
        {n: [row(names) for _ in range(rng.randint(0, 4))] for n, names in ROWS.items()}
        for _ in range(TICKS)
    ]
    return "\n".join(lines), ticks


MAKERS = {"pairs": of_pairs, "rows": of_rows}


def made(kind: str, seed: int) -> tuple[str, CompiledProgram, CompiledProgram, list[TickInput]]:
    """A text, its program, the one with a quarantine, and ticks."""
    text, given = MAKERS[kind](seed)
    program = compile_text(text)
    used = program.typed.inputs
    ticks = read_ticks(program.typed, [{n: tick[n] for n in used} for tick in given])
    quarantining = compile_graph(without_failing(infer(parse(text))))
    return text, program, quarantining, list(ticks)


def compare(
    program: CompiledProgram, expected: Sequence[Outputs], found: Sequence[Outputs]
) -> None:
    assert len(found) == len(expected)
    for tick, outputs in enumerate(expected):
        for name, stream in program.typed.outputs.items():
            ordered = stream.order is Order.TOTAL
            assert same_items(outputs[name], found[tick][name], ordered), (tick, name)


def in_quarantine(found: Sequence[Outputs]) -> Iterator[Counter[str]]:
    for outputs in found:
        yield Counter(row["row"] for row in outputs.get(QUARANTINE, ()))


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("seed", range(25))
def test_a_program_goes_on_without_the_items_that_fail(kind: str, seed: int) -> None:
    text, program, quarantining, ticks = made(kind, seed)
    judge = Judge(program)
    try:
        expected, as_written = judge.outputs(ticks), list[Outputs]()
        for runs in (quarantining, optimized(quarantining)):
            found = list(run_ticks(runs.typed, runs.strata, ticks))
            compare(program, expected, found)
            as_written = as_written or found
            compare(quarantining, as_written, found)
            if not program.strata.recursive:
                told = list(in_quarantine(found))
                assert told == [judge.quarantined(tick) for tick in range(TICKS)]
    except Exception as error:
        error.add_note(text)
        raise


def test_many_of_these_programs_lose_items() -> None:
    for kind in MAKERS:
        losing = 0
        for seed in range(40):
            _, program, _, ticks = made(kind, seed)
            judge = Judge(program)
            judge.outputs(ticks)
            losing += any(judge.failed.values())
        assert losing >= 15, kind


def check_stored(kind: str, seed: int, mode: str, directory: Path, spark: SparkSession) -> None:
    text, _, quarantining, ticks = made(kind, seed)
    try:
        quarantining = storable(quarantining)
        expected = list(run_ticks(quarantining.typed, quarantining.strata, ticks))
        found = stored_outputs(directory, quarantining, ticks, mode, spark)
        compare(quarantining, expected, found)
    except Exception as error:
        error.add_note(text)
        raise


@pytest.mark.spark
@pytest.mark.parametrize(("kind", "seed", "mode"), [("pairs", 1, "few"), ("rows", 3, "switched")])
def test_pipelines_lose_what_their_program_loses(
    kind: str, seed: int, mode: str, tmp_path: Path, spark: SparkSession
) -> None:
    check_stored(kind, seed, mode, tmp_path, spark)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("seed", range(100, 120))
def test_more_pipelines_lose_what_their_program_loses(
    kind: str, seed: int, mode: str, tmp_path: Path, spark: SparkSession
) -> None:
    check_stored(kind, seed, mode, tmp_path, spark)


REFUSED = """
a = source("k string, v long")
a -> fold(0, lambda s, r: s + 6 // r.v, commutative=True) -> out
a -> {where} -> more
"""


def test_functions_of_more_than_an_item_are_refused() -> None:
    typed = infer(parse(REFUSED.replace("{where}", "map(lambda r: 6 // r.v)"), file="p.hydro"))
    (found,) = refused(typed)
    assert found.message == (
        "`fold`: the function lambda s, r: s + 6 // r.v is called with an accumulator, so no item "
        "can be put in quarantine where it fails"
    )
    assert found.span is not None
    assert (found.span.line, found.operator) == (3, "fold")
    assert stratified(typed).graph.sinks.keys() == {"out", "more"}
