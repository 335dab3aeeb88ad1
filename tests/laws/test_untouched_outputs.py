"""An output that an edit leaves alone is `same`, whatever the edit does beside it.

The edit adds or removes every other output of the program. What is stored for the output may change
with the plan; what the output is may not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from random import Random

import pytest

from hydro_core.artifact.deployment import Deployment
from hydro_core.artifact.make import deployment_of
from hydro_core.compile import CompiledProgram, compile_graph, compile_text
from hydro_core.errors import ProgramError
from hydro_core.lang.resolve import parse
from hydro_core.optimize.compare import SAME_TEXT
from hydro_core.optimize.optimizer import optimize
from hydro_core.program_change.difference import difference
from hydro_core.types.ddl import parse_ddl
from tests.laws.operator_pairs import READERS, Part, all_pairs, made, program_of
from tests.laws.programs import RandomProgram, random_program
from tests.support.deployments import output_states, records
from tests.support.row_programs import Program
from tests.support.row_programs import random_program as random_row_program

TOTALS = (
    'orders -> persist() -> aggregate(by="product", total=sum("amount"), n=count()) -> totals\n'
)
RECENT = 'orders -> window(3) -> aggregate(by="user", recent=sum("amount")) -> recent\n'
ORDERS = "user string, product string, amount long"


def deployed(compiled: CompiledProgram) -> Deployment:
    return deployment_of("flow", compiled.typed, optimize(compiled.typed))


def judge(alone: Deployment, together: Deployment, outputs: Collection[str]) -> None:
    for before, after in ((alone, together), (together, alone)):
        found = difference(before, after, records(before))
        changes = {name: output_states(found)[name] for name in outputs}
        assert {*changes.values()} == {"same"}, f"{changes}\n{after.program}"
        assert not found.wanted.outputs & {*outputs}, found.wanted


@pytest.mark.parametrize("more", ["", ", at timestamp", ", id long, city string"])
def test_a_window_beside_a_total_of_rows_with_columns_that_nobody_reads(more: str) -> None:
    source = f'orders = source("{ORDERS}{more}")\n'
    alone, together = (deployed(compile_text(source + text)) for text in (TOTALS, TOTALS + RECENT))
    judge(alone, together, ["totals"])


def test_cycles_that_saturation_does_not_finish() -> None:
    sources = 'a = source("k long, v long")\nb = source("k long, v long")\n'
    cycles = "".join(
        f"x{i} = a -> union(y{i})\ny{i} = x{i} -> prev() -> filter(lambda r: r.v != {i})\n"
        f"x{i} -> delta() -> out{i}\n"
        for i in range(12)
    )
    texts = sources + cycles, sources + cycles + "b -> window(3) -> unique() -> recent\n"
    alone, together = (deployed(compile_text(text)) for text in texts)
    judge(alone, together, [f"out{i}" for i in range(12)])
    found = difference(alone, together, records(alone))
    assert {found.proofs[name] for name in found.proofs} == {(SAME_TEXT,)}


def judge_pair(parts: tuple[Part, ...]) -> None:
    alone, together = (deployed(program_of(made(some))) for some in (parts[:1], parts))
    judge(alone, together, ["out0"])


def beside_each_reader() -> Mapping[str, tuple[Part, ...]]:
    """Every reader once as the neighbour."""
    found = {}
    for parts in Random(15).sample(all_pairs(), len(all_pairs())):
        found.setdefault(parts[1].reader, parts)
    return found


@pytest.mark.parametrize("reader", sorted(READERS))
def test_beside_each_operator(reader: str) -> None:
    judge_pair(beside_each_reader()[reader])


@pytest.mark.slow
@pytest.mark.parametrize("number", range(8))
def test_beside_each_operator_hundreds_of_times(number: int) -> None:
    for parts in all_pairs()[number::64]:
        judge_pair(parts)


def apart(program: Program) -> Program:
    """The program, with names of streams and outputs of its own."""
    names = {s.name: f"z_{s.name}" for s in program.steps}
    steps = tuple(
        replace(s, name=names[s.name], inputs=tuple(names.get(i, i) for i in s.inputs))
        for s in program.steps
    )
    return Program(steps, {f"z_{n}": names.get(s, s) for n, s in program.outputs.items()})


def judge_rows(seed: int) -> None:
    rng = Random(seed)
    first = random_row_program(rng, rng.randint(2, 7))
    second = apart(random_row_program(rng, rng.randint(1, 4)))
    both = Program((*first.steps, *second.steps), {**first.outputs, **second.outputs})
    try:
        alone, together = (deployed(compile_text(str(p))) for p in (first, both))
    except ProgramError:
        return
    judge(alone, together, first.outputs)


def judge_items(seed: int) -> None:
    """Programs of all operators, cycles among them, that share inputs of one type."""
    first, second = random_program(seed), random_program(seed + 100_000, steps=3)
    text, schemas = renamed(second, first.schemas)
    alone = compiled(first.text, first.schemas)
    together = compiled(first.text + text, {**first.schemas, **schemas})
    judge(deployed(alone), deployed(together), alone.typed.graph.sinks)


def compiled(text: str, schemas: Mapping[str, str]) -> CompiledProgram:
    return compile_graph(parse(text), {name: parse_ddl(of) for name, of in schemas.items()})


def renamed(program: RandomProgram, shared: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The program and its inputs with names of its own, but for inputs that are shared."""
    defined = re.findall(r"^(\w+) = |-> (?:\[\w+\])?(\w+)$", program.text, re.MULTILINE)
    names = {name for pair in defined for name in pair if name} | {*program.schemas}
    new = {name: f"z_{name}" for name in names}
    for name, schema in program.schemas.items():
        new[name] = next((n for n, of in shared.items() if of == schema), new[name])
    words = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    text = re.sub(rf'(?<![\w."])({words})(?!\w|\()', lambda m: new[m[0]], program.text)
    text = re.sub(r"\bout(\d)", r"z_out\1", text)
    return text, {new[name]: of for name, of in program.schemas.items()}


@pytest.mark.parametrize("seed", range(8))
def test_beside_random_programs_over_rows(seed: int) -> None:
    judge_rows(seed)


@pytest.mark.parametrize("seed", range(12))
def test_beside_random_programs_of_all_operators(seed: int) -> None:
    judge_items(seed)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_beside_random_programs_a_thousand_times(number: int) -> None:
    for seed in range(100 + 50 * number, 150 + 50 * number):
        judge_rows(seed)
        judge_items(seed)
