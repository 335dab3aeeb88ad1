"""The Python API: the same graph as the text, and errors that point into the Python file."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from hydro_core import Flow, agg, over
from hydro_core.catalog.registry import CATALOG, NAMES
from hydro_core.cli.main import main
from hydro_core.errors import ProgramError
from hydro_core.lang.flow import Stream
from hydro_core.lang.resolve import parse

RATE = 3


def chat() -> Flow:
    flow = Flow("chat")
    members = flow.source("add_member", "user string")
    messages = flow.source("messages", "user string, text string")
    members.persist().cross(messages.persist()).named("broadcast").delta().sink("notify")
    return flow


CHAT = """\
add_member = source("user string")
messages = source("user string, text string")
add_member -> persist() -> [0]broadcast
messages -> persist() -> [1]broadcast
broadcast = cross() -> delta() -> notify
"""


def test_text_and_python_give_the_same_graph() -> None:
    assert chat().graph() == parse(CHAT, name="chat")
    assert chat().to_text() == CHAT


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_operator_is_a_method(name: str) -> None:
    if name in ("source", "source_iter", "tick", "null"):
        assert inspect.getdoc(getattr(Flow, name))
    if name not in ("source", "source_iter", "tick"):
        assert inspect.getdoc(getattr(Stream, name))


def everything(flow: Flow) -> None:
    """Every operator once."""
    pairs = flow.source("pairs", "(string, long)")
    rows = flow.source("rows", "k string, v long")
    longs = flow.source("longs", "long")
    late = flow.forward("late", "long")
    flow.source_iter([1, 2]).identity().inspect(lambda x: x).union(late, longs).sink("all")
    late.define(longs.map(lambda x: x * 2).filter(lambda x: x > 1).prev().named("kept"))
    longs.filter_map(lambda x: x if x > 1 else None).flat_map(lambda x: [x, x]).sink("f")
    flow.source_iter([[1], [2]], schema="array<long>").flatten().tee().sink("g")
    parts = longs.partition(lambda x: "even" if x % 2 == 0 else "odd", ["even", "odd"])
    parts["even"].chain(parts["odd"]).cross(late).sink("h")
    longs.cross_singleton(longs.fold(0, lambda s, x: s + x, commutative=True)).sink("i")
    pairs.join(pairs, how="left").sink("j")
    rows.join(rows, on="k", suffix="_r").sink("k")
    rows.join(rows, how="left", suffix="_r", where=lambda x, y: x.v < y.v).sink("jw")
    day = timedelta(days=1)
    moments = rows.with_columns(at=lambda r: datetime(2026, 1, 1)).select("k", "at")
    since = moments.rename(since="at")
    moments.join_asof(since, on="k", direction="nearest", within=day, how="inner").sink("ja")
    longs.sort().zip(longs.sort()).zip_longest(longs.sort().enumerate()).sink("l")
    pairs.anti_join(pairs.map(lambda k, v: k)).difference(pairs).unique().sink("m")
    pairs.sort().unique_keyed().sink("n")
    rows.sort_by_key(lambda r: r.v, descending=True).limit(2, by="k").sink("o")
    longs.sort().scan(0, lambda s, x: s + x).next_stratum().sink("p")
    pairs.sort().scan_keyed(0, lambda s, x: s + x).sink("q")
    longs.reduce(lambda a, b: max(b, a), commutative=True).sink("r")
    pairs.fold_keyed(0, lambda s, x: s + x, commutative=True).sink("s")
    rows.reduce_keyed(lambda a, b: {"k": a.k, "v": a.v + b.v}, by="k", commutative=True).sink("t")
    rows.latest(by="k", order=lambda r: r.v).sink("u")
    rows.aggregate(by="k", n=agg.count(), t=agg.sum("v"), d=agg.count_distinct("k", "v")).sink("v")
    rows.over(by="k", order="v", n=over.row_number(), t=over.running(agg.sum("v"))).sink("ov")
    rows.top(2, by="k", order=lambda r: r.v, descending=True, ties=True).sink("to")
    rows.select("k", w=lambda r: r.v + 1).with_columns(w=lambda r: r.w * 2).sink("w")
    rows.rename(key="k").drop("v").old().window(3).delta().changes().sink("x")
    longs.map(lambda x: ("persist", x)).sort().persist_mut().persist().sink("y")
    pairs.map(lambda k, v: ("persist", k, v)).sort().persist_mut_keyed().sink("z")
    longs.null()
    flow.null().sink("nothing")
    flow.tick().sink("now")


def test_every_operator_is_written_as_text() -> None:
    flow = Flow()
    everything(flow)
    graph = flow.graph()
    assert {node.op.name for node in graph} == set(CATALOG)
    assert parse(flow.to_text()) == graph
    assert flow.check().strata.count > 1


def test_a_cycle() -> None:
    flow = Flow()
    edges = flow.source("edges", "(long, long)")
    reached = flow.forward("reached", "long")
    step = reached.map(lambda v: (v, 0)).join(edges).map(lambda k, vw: vw[1])
    reached.define(flow.source_iter([0]).union(step).unique())
    reached.sink("out")
    checked = flow.check()
    assert [sorted(c) for c in checked.strata.recursive] == [
        ["join_1", "map_1", "map_2", "reached", "union_1"]
    ]


def test_functions_close_over_constants() -> None:
    flow = Flow()

    def priced(a: int, b: int) -> dict[str, int]:
        return {"a": a, "price": b * RATE}

    flow.source("x", "(long, long)").map(priced).sink("out")
    assert "map(lambda a, b: {'a': a, 'price': b * 3})" in flow.to_text()
    assert str(flow.check().typed.outputs["out"].item) == "row<a long, price long>"


def test_a_function_that_cannot_be_read_says_what_it_gives() -> None:
    unreadable: Callable[[int], int] = eval("lambda x: x")
    flow = Flow()
    flow.source("x", "long").map(unreadable, returns="long").sink("out")
    assert str(flow.check().typed.outputs["out"].item) == "long"
    flow = Flow()
    flow.source("x", "long").map(unreadable).sink("out")
    with pytest.raises(ProgramError, match="cannot be read"):
        flow.check()


def test_load_and_parse(tmp_path: Path) -> None:
    file = tmp_path / "chat.hydro"
    file.write_text(CHAT)
    assert Flow.load(file).graph() == chat().graph()
    flow = Flow.parse("a -> map(f) -> out", f=abs)
    flow.stream("map_1").sink("more")
    assert list(flow.graph().sinks) == ["out", "more"]


def wrong(build: Callable[[Flow], object]) -> ProgramError:
    flow = Flow()
    with pytest.raises(ProgramError) as caught:
        _build_and_check(flow, build)
    return caught.value


def _build_and_check(flow: Flow, build: Callable[[Flow], object]) -> None:
    build(flow)
    flow.check()


@pytest.mark.parametrize(
    ("code", "build"),
    [
        ("name", lambda f: f.source("a b")),
        ("name", lambda f: [f.source("a"), f.source("a")]),
        ("name", lambda f: f.source("a", "long").named("b")),
        ("name", lambda f: [f.tick().named("b"), f.null().named("b")]),
        ("name", lambda f: [x := f.forward("x"), x.define(f.tick()), x.define(f.tick())]),
        ("name", lambda f: [x := f.forward("x"), x.define(x), x.sink("out")]),
        ("undefined", lambda f: f.forward("x").sink("out")),
        ("undefined", lambda f: f.stream("x")),
        ("undefined", lambda f: f.tick().union(Flow().tick())),
        ("port", lambda f: f.source("a", "long").partition(lambda x: 1, [1, 2]).sink("out")),
        ("port", lambda f: f.source("a", "long").partition(lambda x: 1, [1, 2])[3]),
        ("arity", lambda f: f.tick().drop()),
        ("type", lambda f: f.source("a", "lon")),
        ("type", lambda f: f.tick().map(3)),
        ("type", lambda f: f.tick().chain(3)),
        ("type", lambda f: f.tick().limit("x")),
        ("type", lambda f: f.tick().aggregate(n=3)),
        ("type", lambda f: f.tick().select("tock").sink("out")),
        ("type", lambda f: [x := f.forward("x", "string"), x.define(f.tick()), x.sink("out")]),
        ("ordering", lambda f: f.tick().enumerate().sink("out")),
        ("cycle", lambda f: [x := f.forward("x"), x.define(f.tick().union(x).sort()), x.sink("o")]),
        ("input", lambda f: f.source("a").sink("out")),
    ],
)
def test_errors(code: str, build: Callable[[Flow], object]) -> None:
    assert wrong(build).code == code


def test_errors_point_into_the_python_file() -> None:
    (found,) = wrong(lambda f: f.tick().enumerate().sink("out")).diagnostics
    assert found.span is not None
    assert found.span.file == __file__
    assert "f.tick().enumerate()" in found.span.text


def test_errors_within_a_function_point_at_it() -> None:
    def total(r: object) -> object:
        return {
            "tick": r.tick,  # type: ignore[attr-defined]
            "sum": r.sum + 1,  # type: ignore[attr-defined]
        }

    (found,) = wrong(lambda f: f.tick().map(total).sink("out")).diagnostics
    assert found.span is not None
    assert found.span.first_line.strip().startswith('"sum": r.sum')


def test_what_a_notebook_shows() -> None:
    assert chat()._repr_html_().startswith("<svg")
    assert "stratum_1" in chat().draw("mermaid")
    assert repr(chat().stream("broadcast")) == "<stream broadcast>"


def test_a_notebook_shows_what_is_checked_and_run() -> None:
    flow = Flow("f")
    pay = flow.source("pay", "user string, items long")
    pay.sink("all")
    pay.map(lambda p: (p.user, p.items)).sink("pairs")
    pay.map(lambda p: p.items).sink("n")
    assert flow.check()._repr_html_().startswith("<svg")
    (tick,) = flow.run([{"pay": [{"user": "<ann>", "items": i} for i in range(25)]}])
    assert tick["n"] == list(range(25))
    shown = tick._repr_html_()
    assert shown.count("<table>") == 3
    assert "<caption>all: 25 item(s)</caption><thead><tr><th>user</th><th>items</th></tr>" in shown
    assert "<tr><td>&lt;ann&gt;</td><td>19</td></tr>" in shown
    assert "<td>20</td>" not in shown
    assert shown.count("<p>… 5 more</p>") == 3
    assert "<thead><tr><th>_1</th><th>_2</th></tr>" in shown
    (empty,) = flow.run([{}])
    assert empty._repr_html_().count("0 item(s)") == 3


def test_a_stream_is_not_iterated() -> None:
    with pytest.raises(TypeError, match="before its flow runs"):
        list(Flow().tick())


TOLD = """\
rows = source("k string, v long")
others = source("k string, w long")
rows -> persist() -> join(right=others, on="k", how="left") -> joined
rows -> persist() -> aggregate(by="k", total=sum(lambda r: r.v * 2)) -> totals
"""


@pytest.mark.parametrize(
    ("words", "ask"),
    [
        (["check"], lambda flow: flow.check()),
        (["optimize"], lambda flow: flow.optimize()),
        (["optimize", "--explain"], lambda flow: flow.optimize(explain=True)),
    ],
)
def test_python_prints_what_the_commands_print(
    words: list[str],
    ask: Callable[[Flow], object],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "told.hydro"
    file.write_text(TOLD)
    assert main([*words, str(file)]) == 0
    printed = capsys.readouterr().out
    assert f"{ask(Flow.load(file))}\n" == printed
    assert ("`joined` is stored anew in each tick" in printed) == (words == ["check"])
    assert ("`totals` in changes" in printed) == ("--explain" in words)
