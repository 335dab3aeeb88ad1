"""Failures that a lowering finds in the data: a column that fails the tick when it is evaluated."""

from __future__ import annotations

import json

from pyspark.sql import Column

from hydro_core.catalog.refusals import Refusal
from hydro_core.functions.fn import Fn
from hydro_core.ir.graph import Node
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import TICK
from hydro_core.spark.session.failures import AS_JSON, MARKER, payload

NUMBER = "\0"
"""Where a refusal names the number."""


def fail(
    node: Node,
    refusal: Refusal,
    item: Column | None = None,
    *,
    fn: Fn | None = None,
    tick: Column | None = None,
    number: Column | None = None,
) -> Column:
    """A column that has no value: wherever it is evaluated, the tick is refused, on this item."""
    known = payload(fn, f"`{node.op.called}`", refusal.reason, refusal.cure)
    if known["span"] is None and node.span is not None:
        s = node.span
        known["span"] = (s.file, s.line, s.column, s.end_line, s.end_column, s.text)
    before, named, after = (MARKER + json.dumps(known)[:-1]).partition(json.dumps(NUMBER)[1:-1])
    parts = [F.lit(before)]
    if named and number is not None:
        parts += [number.cast("string"), F.lit(after)]
    parts += [F.lit(', "tick": '), (F.col(TICK) if tick is None else tick).cast("string")]
    if item is not None:
        parts += [F.lit(', "items": '), F.to_json(F.struct(item.alias("_1")), AS_JSON)]
    return F.raise_error(F.concat(*parts, F.lit("}")))
