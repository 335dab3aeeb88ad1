"""Failures that a lowering finds in the data: a column that fails the tick when it is evaluated."""

from __future__ import annotations

import json

from pyspark.sql import Column

from hydro_core.functions.fn import Fn
from hydro_core.ir.graph import Node
from hydro_core.spark.columns.dry import F
from hydro_core.spark.failures import MARKER, payload
from hydro_core.spark.relation import TICK


def fail(
    node: Node,
    reason: str,
    item: Column | None = None,
    *,
    fn: Fn | None = None,
    tick: Column | None = None,
) -> Column:
    """A column without values.

    Where it is evaluated, the tick fails for this reason, on this item.
    """
    known = payload(fn, f"`{node.op.name}`", reason)
    if known["span"] is None and node.span is not None:
        s = node.span
        known["span"] = (s.file, s.line, s.column, s.end_line, s.end_column, s.text)
    start = F.lit(MARKER + json.dumps(known)[:-1] + ', "tick": ')
    parts = [start, (F.col(TICK) if tick is None else tick).cast("string")]
    if item is not None:
        listed = F.to_json(F.array(item))
        parts += [F.lit(', "item": '), F.substr(listed, F.lit(2), F.length(listed) - 2)]
    return F.raise_error(F.concat(*parts, F.lit("}")))
