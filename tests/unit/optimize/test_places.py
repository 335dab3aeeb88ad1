"""The nodes of a plan are where the program gives their streams."""

from __future__ import annotations

from hydro_core.analysis.infer import infer
from hydro_core.lang.resolve import parse
from hydro_core.optimize.optimizer import optimize

PROGRAM = """\
flights = source("tail string, route string")
flights -> select("route") -> persist() -> unique() -> delta() -> new_routes

statistics = flights -> persist() -> aggregate(by="route", n=count())
statistics -> delta() -> changes

today = flights -> select("tail") -> unique()
yesterday = today -> prev()
today -> difference(neg=yesterday) -> back
"""


def test_what_a_rule_brings_in_is_where_its_stream_is_given() -> None:
    typed = infer(parse(PROGRAM))
    plan = optimize(typed).graph
    lines = {node.id: node.span.line if node.span else None for node in plan}
    (kept,) = {node.inputs[0].node for node in plan if node.op.name == "old"}
    assert lines[kept] == 2
    assert plan["statistics"].op.name == "running_aggregate"
    assert lines["statistics"] == 4
    assert lines["yesterday"] == 8
