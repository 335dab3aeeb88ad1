"""All functions of the programs at hand, and what is said of each: what a change must leave alone.

`python -m tests.support.all_functions FILE` writes a line for each, `--spark` with its columns: two
such files, of before and after a change, are compared by `diff`.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, get_args

from hydro_core.analysis.identity import applied_to
from hydro_core.analysis.infer import Typed, infer
from hydro_core.catalog.spec import functions_of
from hydro_core.errors import HydroError, TypeProblem
from hydro_core.functions.forms import known_by, printed, stored_form
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.known_folds import known_fold
from hydro_core.functions.lineage import FieldMap, field_map
from hydro_core.functions.result_type import result_type
from hydro_core.functions.tree import Expr, Fn
from hydro_core.lang.resolve import parse
from hydro_core.optimize.calls import is_total
from hydro_core.spark.functions.columns.value import NotCompilable
from hydro_core.spark.lower.explained import runtime
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType
from tests.golden.cases import all_cases
from tests.golden.vectors import shared, vectors
from tests.spark import test_library as library
from tests.spark.cases import CASES
from tests.spark.differential import function
from tests.support.functions import text
from tests.support.random_expressions import DDL, random_expression

ROOT = Path(__file__).resolve().parents[2]
FORMS = ROOT / "tests/unit/functions/stored_forms.json"
RANDOM_FUNCTIONS, CALLS = 600, 4


@dataclass(frozen=True)
class Found:
    """A function, where it is from, and what it is applied to."""

    label: str
    fn: Fn
    inputs: tuple[ItemType, ...]


def all_functions() -> Iterator[Found]:
    """Those of the vectors, the cases, the queries, and random ones."""
    for label, program, schemas in programs():
        typed = typed_of(program, schemas)
        if typed is not None:
            yield from of_program(label, typed)
    for source, types, _ in json.loads(FORMS.read_text("utf-8")):
        yield Found(f"form {source}", text(source), tuple(map(parse_ddl, types)))
    random, row = Random(25), parse_ddl(DDL)
    for _ in range(RANDOM_FUNCTIONS):
        source = f"lambda r: {random_expression(random)}"
        yield Found(f"random {source}", text(source), (row,))
    for name, case in CASES.items():
        for source in (*case.compiled.splitlines(), *case.python.splitlines()):
            yield Found(f"column {name}: {source}", function(source), (parse_ddl(case.ddl),))
    for name, calls in library.calls().items():
        for call in calls[:CALLS]:
            yield Found(f"library {name}", function_of(call, ("r",)), (library.ITEM,))


def programs() -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Programs, with the schemas of inputs that they do not declare."""
    for vector in vectors("dfir", "fuzz", "ordered"):
        yield f"vector {vector['name']}", vector["program"], vector.get("schemas", {})
    for case in all_cases():
        yield f"case {case.name}", case.program, case.schemas
    for file in sorted((ROOT / "benchmarks").rglob("*.hydro")):
        yield f"query {file.parent.parent.name} {file.stem}", file.read_text("utf-8"), {}


def typed_of(program: str, schemas: Mapping[str, str]) -> Typed | None:
    """The program with its types, open where only data would say them; None if it has an error."""
    known = {name: parse_ddl(ddl) for name, ddl in schemas.items()}
    try:
        return infer(parse(program), known, partial=True)
    except HydroError:
        return None


def of_program(label: str, typed: Typed) -> Iterator[Found]:
    """The functions of a program."""
    for node in typed.graph:
        for arg in node.op.args:
            over = applied_to(node, arg, typed)
            for number, fn in enumerate(functions_of(node.args.get(arg.name))):
                yield Found(f"{label} {node.id} {arg.name} {number}", fn, over)


def form_of(found: Found) -> str:
    """The text that stored state is known by."""
    return repr(stored_form(found.fn, found.inputs))


def said_of(found: Found) -> Iterator[tuple[str, str]]:
    """All that is said of a function without running it."""
    fn, inputs = found.fn, found.inputs
    yield "normal form", form_of(found)
    yield "as tests", repr(_printed(known_by(fn, inputs)))
    yield "source", fn.source
    yield "fold", _tried(lambda: _sorted(known_fold(fn)))
    if inputs:
        yield "type", _tried(lambda: result_type(fn, inputs))
        yield "lineage", _tried(lambda: _sorted(_lineage(fn, inputs)))
        yield "total", repr([is_total(fn, inputs[-1], there=there) for there in (True, False)])
        yield "runs", _tried(lambda: runtime(fn, inputs))


def _tried(ask: Any) -> str:
    try:
        return str(ask())
    except (TypeProblem, NotCompilable) as problem:
        return f"{type(problem).__name__}: {problem} {getattr(problem, 'place', '')}"


def _lineage(fn: Fn, inputs: tuple[ItemType, ...]) -> FieldMap:
    found = field_map(fn, inputs)
    made = {path: _printed(tree) for path, tree in found.made.items()}
    return replace(found, made=made)


def _printed(value: Any) -> Any:
    """What is told in trees, as stored forms tell it."""
    return (
        printed(value)
        if isinstance(value, get_args(Expr))
        else tuple(map(_printed, value))
        if isinstance(value, tuple)
        else value
    )


def _sorted(value: Any) -> str:
    """The text of a value, sets in an order."""
    match value:
        case frozenset() | set():
            return f"{{{', '.join(sorted(map(_sorted, value)))}}}"
        case Mapping():
            return f"{{{', '.join(f'{k}: {_sorted(v)}' for k, v in value.items())}}}"
        case tuple() if not hasattr(value, "_fields"):
            return f"({', '.join(map(_sorted, value))})"
        case _ if hasattr(type(value), "__dataclass_fields__"):
            names = type(value).__dataclass_fields__
            inside = ", ".join(f"{n}={_sorted(getattr(value, n))}" for n in names)
            return f"{type(value).__name__}({inside})"
        case _:
            return repr(value)


def digests() -> dict[str, str]:
    """The hashes of functions' normal forms, by where the functions are; not of random ones."""
    found: dict[str, list[str]] = {}
    for one in all_functions():
        if not one.label.startswith("random "):
            found.setdefault(one.label, []).append(form_of(one))
    return {
        label: hashlib.sha256("\n".join(forms).encode()).hexdigest()[:16]
        for label, forms in found.items()
    }


def columns_of(found: Found) -> str:
    """The text of the function's column; a Spark must be there."""
    from pyspark.sql import functions as F

    from hydro_core.spark.functions.columns.compiler import to_column

    def column() -> str:
        given = [(F.col(f"input{i}"), item) for i, item in enumerate(found.inputs)]
        result = result_type(found.fn, found.inputs)
        return str(to_column(found.fn, given, result=result)._jc.toString())  # type: ignore[attr-defined]

    return _tried(column)


def main(file: str, *options: str) -> None:
    """Writes what is said of all functions."""
    if "--spark" in options:
        from pyspark.sql import SparkSession

        SparkSession.builder.master("local[1]").getOrCreate()
    with Path(file).open("w", encoding="utf-8") as out:
        for found in all_functions():
            lines = dict(said_of(found))
            if "--spark" in options and found.inputs:
                lines["column"] = columns_of(found)
            out.writelines(
                json.dumps([found.label, name, said], ensure_ascii=False) + "\n"
                for name, said in lines.items()
            )


if __name__ == "__main__":
    assert shared("vectors") is not None
    main(*sys.argv[1:])
