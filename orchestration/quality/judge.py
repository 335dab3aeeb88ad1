"""Verdicts on ticks before the commit: laws by facts of state tables, expectations by counts.

Several ticks can be judged together: the laws hold of a range as they hold of a tick, and what is
expected of an output is expected of its rows, or of those of one tick.

Facts are gathered in one pass over what a tick wrote: counts, and sums of the hashes of rows. A
hash sum is that of a bag: it does not depend on the order of the rows, and sums of bags are sums of
hash sums.

Values are compared as the language compares them: NaN is above all numbers and equal to itself,
-0.0 equals 0.0, texts go by code point. A null breaks `not_null` alone. Great Expectations judges
the counts: through its frames a NaN is a null, and a decimal beside a float is not itself. Rows
come in pieces, of which one alone is held. Which values repeat shows in no piece: where there are
several, executors count them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.project.check import at_least, at_most, digits_of, equal_value, is_exact
from hydro_core.project.flow_asset import Expect, FlowAsset
from hydro_core.spark.frames.row_hashes import row_hashes
from hydro_core.types.item import BOOLEAN, FLOATS, ItemType, Scalar
from hydro_core.types.values import ValueProblem, canonical

from .suites import (
    MOST_ROWS,
    TICK,
    Check,
    CheckFacts,
    TableFacts,
    Verdict,
    checks_of_columns,
    judge_counts,
    laws_frame,
    laws_suite,
    validate_rows,
)

if TYPE_CHECKING:
    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.pipeline.prepared import PreparedRange
    from hydro_core.spark.store.delta.write import WrittenRows
    from hydro_core.spark.store.ledger.records import Commit
    from hydro_core.spark.store.schema import TableSpec


@dataclass(frozen=True, slots=True)
class TickVerdicts:
    """The verdicts on ticks that were judged together, each with its asset; how many rows each
    tick had in the outputs that were judged; and the facts that the ledger keeps.
    """

    verdicts: Sequence[tuple[str, Verdict]]
    rows: Mapping[str, Counter[int]]
    facts: Mapping[str, Any]


def judge(flow: FlowAsset, pipeline: Pipeline, prepared: PreparedRange) -> TickVerdicts:
    """The verdicts on ticks that are written, and the facts that the ledger keeps of them."""
    facts = state_facts(prepared, pipeline.ledger.last_run)
    laws = validate_rows(laws_suite(flow.name), laws_frame(facts), "table")
    verdicts = [(f"state/{slot}", verdict) for slot, found in laws.items() for verdict in found]
    rows: dict[str, Counter[int]] = {}
    for output in flow.expect:
        shown = prepared.shown(output, lambda: pipeline.spark)
        pieces = shown.pieces([TICK])
        rows[output] = Counter(t for piece in pieces for t in piece[TICK].to_numpy().tolist())
        verdicts += _judge_output(flow, output, shown, pipeline)
    specs = {slot: written.spec for slot, written in prepared.state.items()}
    return TickVerdicts(verdicts, rows, kept(facts, specs))


def judge_again(flow: FlowAsset, pipeline: Pipeline, tick: int, asset: str) -> tuple[Verdict, ...]:
    """The verdicts on one asset of a committed tick, from the stored tables alone."""
    from hydro_core.spark.store.outputs.changes import shown_within

    kind, _, slot = asset.rpartition("/")
    if kind != "state":
        spec, ticks = pipeline.output_tables[asset], (tick, tick)
        with shown_within(pipeline.store, spec, ticks, lambda: pipeline.spark) as shown:
            return tuple(verdict for _, verdict in _judge_output(flow, asset, shown, pipeline))
    facts = committed_facts(pipeline, tick, slot)
    if facts is None:
        return ()
    return validate_rows(laws_suite(flow.name), laws_frame([facts]), "table")[slot]


def _judge_output(
    flow: FlowAsset, output: str, shown: WrittenRows, pipeline: Pipeline
) -> list[tuple[str, Verdict]]:
    expected = flow.expect.get(output, ())
    facts = counted(expected, shown, lambda: pipeline.spark)
    return [(output, verdict) for verdict in judge_counts(flow.name, output, expected, facts)]


_MODULUS = 2**64


def key_sum(rows: pa.Table, count: str | None = None) -> int:
    """The sum of the hashes of all rows, modulo 2**64: their order does not count; each as often as
    the column `count` says.
    """
    if count is None:
        return int(row_hashes(rows).sum(dtype=np.uint64)) % _MODULUS
    hashes = row_hashes(rows.drop_columns([count])) * rows[count].to_numpy().astype(np.uint64)
    return int(hashes.sum(dtype=np.uint64)) % _MODULUS


def measure(rows: pa.Table, spec: TableSpec) -> tuple[int, int]:
    """How many rows there are, and the sum of their hashes.

    Changes count as the rows that they add and take away, in whichever tick: so both are the same
    when a log has been summed up.
    """
    if not spec.is_log:
        return rows.num_rows, key_sum(rows)
    counts = pc.sum(rows[spec.count_column]).as_py() or 0
    return counts, key_sum(rows.drop_columns([spec.tick]), spec.count_column)


def measure_all(pieces: Iterable[pa.Table], spec: TableSpec) -> tuple[int, int, pa.Schema]:
    """The same of rows that come in pieces, of which there is at least one; and their columns."""
    rows, keys, schema = 0, 0, spec.arrow_schema
    for piece in pieces:
        more, sum_ = measure(piece, spec)
        rows, keys, schema = rows + more, (keys + sum_) % _MODULUS, piece.schema
    return rows, keys, schema


def state_facts(prepared: PreparedRange, before: Commit | None) -> list[TableFacts]:
    """What a range that is written but not committed did to each state table that grows.

    `before` is the commit of the tick before; what it does not tell of a table, the table tells.
    """
    recorded: Mapping[str, Any] = {} if before is None else before.checks.get("tables", {})
    facts = []
    for slot, written in prepared.state.items():
        spec = written.spec
        known = recorded.get(spec.name)
        if spec.form.stored == "last" or spec.bound is not None:
            before_rows, before_keys = 0, 0
        elif known is not None:
            before_rows, before_keys = known["rows"], int(known["keys"])
        else:
            before_rows, before_keys, _ = measure_all(prepared.read_before(spec.name), spec)
        batch_rows, batch_keys, _ = measure_all(written.pieces(), spec)
        written_rows, written_keys, back = measure_all(prepared.read_back(spec.name), spec)
        facts.append(
            TableFacts(
                table=slot,
                before_rows=before_rows,
                batch_rows=batch_rows,
                written_rows=written_rows,
                after_rows=written_rows if spec.bound else prepared.stored_rows(spec.name),
                before_keys=before_keys,
                batch_keys=batch_keys,
                written_keys=written_keys,
                after_keys=(before_keys + written_keys) % _MODULUS,
                declared_type=_type(spec.arrow_schema),
                stored_type=_type(back),
            )
        )
    return facts


def committed_facts(pipeline: Pipeline, tick: int, slot: str) -> TableFacts | None:
    """The facts of a committed tick, worked out anew from the whole table; None where none were
    kept, or where a log has been summed up since.
    """
    specs = {spec.of: spec for spec in pipeline.tables if spec.role == "state"}
    commit = pipeline.ledger.commit_of(tick)
    spec = specs.get(slot)
    if commit is None or spec is None or spec.name not in commit.checks.get("tables", {}):
        return None
    if spec.is_log and pipeline.store.tables[spec.name].summed_to() >= commit.first:
        return None
    known = commit.checks["tables"][spec.name]
    parts = (0, commit.first - 1), (commit.first, commit.last), (0, commit.last)
    old, new, all_rows = (measure_all(pipeline.store.pieces(spec.name, *p), spec) for p in parts)
    if spec.form.stored == "last":
        old, all_rows = (0, 0, spec.arrow_schema), new
    before_rows, before_keys, _ = old
    written_rows, written_keys, _ = new
    after_rows, after_keys, stored = all_rows
    batch_rows = int(known.get("batch_rows", commit.rows[spec.name]))
    return TableFacts(
        table=slot,
        before_rows=before_rows,
        batch_rows=batch_rows,
        written_rows=written_rows,
        after_rows=after_rows,
        before_keys=before_keys,
        batch_keys=int(known["batch_keys"]),
        written_keys=written_keys,
        after_keys=after_keys,
        declared_type=_type(spec.arrow_schema),
        stored_type=_type(stored),
    )


def kept(facts: list[TableFacts], specs: Mapping[str, TableSpec]) -> dict[str, dict[str, Any]]:
    """Facts as the ledger stores them, for the next tick and for checks of committed ticks."""
    return {
        specs[fact.table].name: {
            "rows": fact.after_rows,
            "keys": str(fact.after_keys),
            "batch_rows": fact.batch_rows,
            "batch_keys": str(fact.batch_keys),
        }
        for fact in facts
        if specs[fact.table].bound is None
    }


def kept_of_all(commits: Sequence[Commit]) -> dict[str, dict[str, Any]]:
    """Stored facts of commits that become one: of their batches, the sum."""
    found: dict[str, dict[str, Any]] = {}
    for commit in commits:
        for name, known in commit.checks.get("tables", {}).items():
            found[name], before = known, found.get(name)
            if before is not None and not commit.replaces(name):
                keys = int(before["batch_keys"]) + int(known["batch_keys"])
                rows = before["batch_rows"] + known["batch_rows"]
                found[name] = {**known, "batch_rows": rows, "batch_keys": str(keys % _MODULUS)}
    return found


def _type(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


Mask = Any
"""Arrow's column of booleans: of each row whether it breaks a check."""


def counted(
    expected: Sequence[Expect], shown: WrittenRows, session: Callable[[], Any]
) -> Mapping[str, CheckFacts]:
    types, found = dict(shown.spec.items), dict[str, CheckFacts]()
    asked: dict[str, Callable[[pa.Table], Mask]] = {}
    for check in checks_of_columns(expected):
        column, name = check.expect.column, check.name
        if column not in types:
            found[name] = CheckFacts(problem=f"the output has no column `{column}`")
        elif check.kind == "unique" and shown.table is None:
            found[name] = _repeated(column, shown, session)
        else:
            try:
                asked[name] = _breaking(check, types[column])
            except ValueProblem as problem:
                found[name] = CheckFacts(problem=f"the column is {types[column]}: {problem}")
    columns = dict.fromkeys((TICK, *(e.column for e in expected if e.column in types)))
    for piece in shown.pieces(list(columns)) if asked else ():
        for name, mask in asked.items():
            found[name] = found.get(name, CheckFacts()).and_of(_facts(piece, mask(piece)))
    return found


def _facts(rows: pa.Table, broken: Mask) -> CheckFacts:
    there = pc.indices_nonzero(broken)
    some = rows.drop_columns([TICK]).take(there[:MOST_ROWS]).to_pylist()
    return CheckFacts(rows.num_rows, len(there), tuple(map(_texts, some)))


def _texts(row: Mapping[str, Any]) -> Mapping[str, str]:
    return {name: "null" if value is None else str(value) for name, value in row.items()}


def _breaking(check: Check, of: ItemType) -> Callable[[pa.Table], Mask]:
    expect, column = check.expect, check.expect.column
    match check.kind:
        case "not_null":
            return lambda rows: rows[column].is_null()
        case "unique":
            return lambda rows: _repeats(rows, column)
        case "between":
            return _beyond(expect, of)
        case "one_of":
            values = [equal_value(value, of) for value in expect.one_of]
            return lambda rows: _is_none_of(rows[column], values, of)
        case "matches":
            pattern = re.compile(expect.matches or "")
            return lambda rows: _without_match(rows[column], pattern)


def _repeats(rows: pa.Table, column: str) -> Mask:
    values = zip(rows[TICK].to_pylist(), rows[column].to_pylist(), strict=True)
    keys = [None if value is None else (tick, canonical(value)) for tick, value in values]
    counts = Counter(keys)
    return pa.array([key is not None and counts[key] > 1 for key in keys], pa.bool_())


def _repeated(column: str, shown: WrittenRows, session: Callable[[], Any]) -> CheckFacts:
    from hydro_core.spark.store.outputs.changes import repeated

    told = repeated(shown.frame(session()), TICK, column, MOST_ROWS)
    values = [str(value) for _, value in told.some]
    return CheckFacts(shown.rows, told.rows, tuple({column: v} for v in dict.fromkeys(values)))


def _beyond(expect: Expect, of: ItemType) -> Callable[[pa.Table], Mask]:
    least = None if expect.at_least is None else at_least(expect.at_least, of)
    most = None if expect.at_most is None else at_most(expect.at_most, of)

    def broken(rows: pa.Table) -> Mask:
        column = _comparable(rows[expect.column], of)
        masks = []
        if least is not None:
            # A comparison with NaN is false, which is right here: nothing is above it.
            masks.append(pc.less(column, pa.scalar(_number(least), column.type)))
        if most is not None:
            masks.append(pc.greater(column, pa.scalar(_number(most), column.type)))
            if of in _FLOATS:
                masks.append(pc.is_nan(column))
        return pc.fill_null(_any(masks), False)

    return broken


def _any(masks: Sequence[Mask]) -> Mask:
    first, *others = masks
    for mask in others:
        first = pc.or_(first, mask)
    return first


def _is_none_of(column: Any, values: Sequence[Any], of: ItemType) -> Mask:
    there = _comparable(column, of)
    among = _comparable(pa.array(map(_number, values), there.type), of)
    return pc.and_(pc.invert(pc.is_in(there, among)), column.is_valid())


def _without_match(column: Any, pattern: re.Pattern[str]) -> Mask:
    coded = column.combine_chunks().dictionary_encode()
    wrong = [pattern.search(text) is None for text in coded.dictionary.to_pylist()]
    of_each: Any = pa.array(wrong, pa.bool_()).take(coded.indices)
    return pc.fill_null(of_each, False)


_FLOATS = tuple(map(Scalar, FLOATS))
_NAN = pa.scalar(float("nan"), pa.float64())


def _comparable(column: Any, of: ItemType) -> Any:
    """The column in a type that holds the bounds as well, in which equal values are the same."""
    if is_exact(of):
        precision, scale = digits_of(of)
        # One digit more is room for the first number beyond all of them.
        return column.cast(pa.decimal256(precision + 1, scale))
    if of in _FLOATS:
        # A sum with 0.0 has no -0.0; a NaN may have any of many forms.
        plain = pc.add(column.cast(pa.float64()), 0.0)
        return pc.if_else(pc.is_nan(plain), _NAN, plain)
    return column.cast(pa.int8()) if of == BOOLEAN else column


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value
