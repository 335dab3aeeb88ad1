"""Types and orders of streams."""

from __future__ import annotations

import pytest

from hydro_core.analysis.infer import Typed, infer
from hydro_core.errors import ProgramError
from hydro_core.lang.resolve import parse
from hydro_core.types.ddl import parse_ddl, to_ddl


def typed(text: str, **schemas: str) -> Typed:
    return infer(parse(text), {name: parse_ddl(ddl) for name, ddl in schemas.items()})


def output(text: str, **schemas: str) -> str:
    return to_ddl(typed(text, **schemas).outputs["out"].item)


ROWS = {"a": "k string, v int, w double", "b": "k string, v long, x date"}
PAIRS = {"a": "(int, string)", "b": "(long, date)"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a -> out", "k string, v int, w double"),
        ('a -> select("w", "k") -> out', "w double, k string"),
        ('a -> select("k", d=lambda r: r.v * 2) -> out', "k string, d bigint"),
        ("a -> with_columns(v=lambda r: r.w, z=lambda k, v, w: k) -> out",
         "k string, v double, w double, z string"),
        ('a -> rename(v="w", w="v") -> out', "k string, w int, v double"),
        ('a -> drop("v") -> out', "k string, w double"),
        ('a -> join(right=b, on="k", suffix="_r") -> out',
         "k string, v int, w double, v_r bigint, x date"),
        ('a -> join(right=b, on=["v", "k"]) -> out', "v bigint, k string, w double, x date"),
        ('a -> join(right=b, on="v", how="semi") -> out', "k string, v int, w double"),
        ('a -> join(right=b, on="v", how="anti") -> out', "k string, v int, w double"),
        ('a -> aggregate(by=["v", "k"], n=count(), t=sum("v")) -> out',
         "v int, k string, n bigint, t bigint"),
        ("a -> aggregate(m=max(lambda r: r.w)) -> out", "m double"),
        ('a -> fold_keyed(0, lambda s, r: s + r.v, by="k", commutative=True) -> out',
         "k string, value bigint"),
        ('a -> fold_keyed({"n": 0}, lambda s, r: {"n": s.n + 1}, by="k", commutative=True) -> out',
         "k string, n bigint"),
        ('a -> reduce_keyed(lambda x, y: x, by="k", commutative=True) -> out',
         "k string, v int, w double"),
        ('a -> latest(by="k", order=lambda r: r.v) -> out', "k string, v int, w double"),
        ("a -> changes() -> out", "(bigint, struct<k: string, v: int, w: double>)"),
        ("tick() -> out", "tick bigint, start timestamp, end timestamp"),
    ],
)  # fmt: skip
def test_rows(text: str, wanted: str) -> None:
    schemas = {n: d for n, d in ROWS.items() if n in parse(text).sources}
    assert parse_ddl(output(text, **schemas)) == parse_ddl(wanted)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a -> join(right=b) -> out", "(bigint, (string, date))"),
        ('a -> join(right=b, how="outer") -> out', "(bigint, (string, date))"),
        ('a -> join(right=b, how="semi") -> out', "(int, string)"),
        ("a -> cross(right=b) -> out", "((int, string), (bigint, date))"),
        ("a -> map(lambda k, v: k) -> out", "int"),
        ("a -> map(lambda x: (x, len(x._2))) -> out", "((int, string), bigint)"),
        ("a -> flat_map(lambda k, v: (k, len(v))) -> out", "bigint"),
        ("a -> map(lambda k, v: k) -> fold([], lambda s, x: s + [x], commutative=True) -> out",
         "array<int>"),
        ("a -> map(lambda k, v: k) -> fold(0, lambda s, x: s + x / 2, commutative=True) -> out",
         "double"),
        ("a -> sort() -> enumerate() -> out", "(bigint, (int, string))"),
        ("a -> sort() -> scan_keyed('', lambda s, v: s + v) -> out", "(int, string)"),
        ("a -> map(lambda k, v: ('persist', k, v)) -> sort() -> persist_mut_keyed() -> out",
         "(int, string)"),
        ("source_iter([[1, 2], [3, None]]) -> flatten() -> out", "bigint"),
        ("source_iter([1, 2.5]) -> out", "double"),
        ("source_iter([]) -> map(lambda x: x) -> out", "void"),
        ("source_iter([]) -> union(a) -> out", "(int, string)"),
        ("null() -> union(a) -> out", "(int, string)"),
    ],
)  # fmt: skip
def test_tuples(text: str, wanted: str) -> None:
    schemas = {n: d for n, d in PAIRS.items() if n in parse(text).sources}
    assert parse_ddl(output(text, **schemas)) == parse_ddl(wanted)


def test_unions_widen_numbers_and_take_the_first_columns() -> None:
    found = output("a -> union(b) -> out", a="k string, v int", b="v double, k string")
    assert parse_ddl(found) == parse_ddl("k string, v double")


def test_a_cycle_takes_the_type_of_what_flows_in() -> None:
    text = (
        "x = union() -> unique()\na -> x\n"
        "x -> map(lambda v: v + 0.5) -> filter(lambda v: v < 9) -> x\nx -> out"
    )
    assert output(text, a="long") == "double"


def test_a_cycle_through_prev() -> None:
    text = "x = a -> union(y)\ny = x -> prev() -> map(lambda v: (v[0], v[1] + 1))\nx -> out"
    assert parse_ddl(output(text, a="(string, int)")) == parse_ddl("(string, long)")


STREAK = """
streak -> prev() -> [1]joined
a -> map(lambda k: (k, 1)) -> [0]joined
joined = join(how="left")
streak = joined -> map(lambda t, v: (t, v[0] + (0 if v[1] is None else v[1])))
streak -> out
"""


@pytest.mark.parametrize("columns", [False, True])
def test_a_cycle_through_a_padded_side(columns: bool) -> None:
    if not columns:
        assert output(STREAK, a="string") == "(string, long)"
        return
    text = """
    before = streak -> prev()
    joined = a -> join(right=before, on="k", how="left", suffix="_before")
    streak = joined -> select("k", n=lambda r: 1 + (r.n or 0))
    streak -> out
    """
    assert output(text, a="k string") == "k string, n long"


def test_a_long_cycle_is_typed_whatever_the_order_of_its_parts() -> None:
    steps = [f"s{i + 1} = s{i} -> map(lambda x: x)" for i in range(300)]
    text = "\n".join([*reversed(steps), "s0 = a -> union(back)", "back = s300 -> prev()"])
    assert output(f"{text}\ns300 -> out", a="long") == "long"


def test_sinks_of_one_name_add_up() -> None:
    found = typed("a -> sort() -> out\nb -> sort() -> out", a="int", b="long").outputs["out"]
    assert str(found) == "long NoOrder"


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("a -> out", "NoOrder"),
        ("a -> sort() -> out", "TotalOrder"),
        ("a -> sort() -> filter(lambda x: x > 1) -> unique() -> prev() -> out", "TotalOrder"),
        ("a -> sort() -> persist() -> out", "NoOrder"),
        ("s = a -> sort()\ns -> chain(right=s) -> out", "TotalOrder"),
        ("s = a -> sort()\ns -> chain(right=a) -> out", "NoOrder"),
        ("s = a -> sort()\ns -> union(s) -> out", "NoOrder"),
        ("s = a -> sort()\ns -> difference(neg=a) -> out", "TotalOrder"),
        ("s = a -> sort()\ns -> cross_singleton(single=a) -> out", "TotalOrder"),
        ("s = a -> sort()\ns -> zip(right=s) -> out", "TotalOrder"),
        ("a -> sort() -> fold(0, lambda s, x: s) -> out", "NoOrder"),
        # A cycle through the tick before keeps an order, one within the tick has none.
        ("s = a -> sort()\nx = s -> chain(right=y)\ny = x -> prev()\nx -> out", "TotalOrder"),
        ("s = a -> sort()\nx = s -> chain(right=y)\ny = x -> filter(lambda v: v > 3)\nx -> out",
         "NoOrder"),
    ],
)  # fmt: skip
def test_order(text: str, order: str) -> None:
    assert typed(text, a="long").outputs["out"].order.value == order


@pytest.mark.parametrize(
    ("text", "single"),
    [
        ("a -> out", False),
        ("a -> reduce(lambda x, y: x, commutative=True) -> map(lambda x: x) -> out", True),
        ("a -> sort() -> limit(1) -> prev() -> out", True),
        ("a -> sort() -> limit(2) -> out", False),
        ("tick() -> persist() -> out", False),
        ("tick() -> out", True),
        ("a -> cross(right=t) -> out\nt = tick()", False),
        ("t = tick()\nt -> cross(right=t) -> out", True),
    ],
)
def test_single(text: str, single: bool) -> None:
    schemas = {"a": "long"} if "a ->" in text else {}
    assert typed(text, **schemas).outputs["out"].single is single


def test_an_input_needs_a_type_unless_part_of_the_program_will_do() -> None:
    with pytest.raises(ProgramError) as caught:
        typed("a -> map(lambda x: x + 1) -> out")
    assert caught.value.code == "input"
    partial = infer(parse("a -> map(lambda x: x + 1) -> out"), partial=True)
    assert to_ddl(partial.inputs["a"].item) == "void"


def test_diagnostics_are_collected_and_do_not_follow_from_each_other() -> None:
    with pytest.raises(ProgramError) as caught:
        typed('a -> select("q") -> select("z") -> out\na -> enumerate() -> o', a="k string")
    assert [(d.code, d.operator) for d in caught.value.diagnostics] == [
        ("type", "select"),
        ("ordering", "enumerate"),
    ]


NOT_NULL = """
a = source("k string not null, v long not null, w long")
b = source("k string not null, x long not null")
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a -> filter(lambda r: r.v > 1) -> out", "k string not null, v long not null, w long"),
        ('a -> rename(z="v") -> drop("w") -> out', "k string not null, z long not null"),
        ('a -> select("v", u=lambda r: r.v) -> out', "v long not null, u long"),
        ("a -> with_columns(v=lambda r: None) -> out", "k string not null, v void, w long"),
        ('a -> aggregate(by="k", m=max("v")) -> out', "k string not null, m long"),
        ("a -> union(a) -> out", "k string not null, v long not null, w long"),
        ('a -> select("k", "v") -> union(c) -> out\nc = a -> select("k", v=lambda r: r.w)',
         "k string not null, v long"),
        ('a -> join(right=b, on="k") -> out', "k string, v long not null, w long, x long not null"),
        ('a -> join(right=b, on="k", how="left") -> out',
         "k string, v long not null, w long, x long"),
        ('a -> join(right=b, on="k", how="right") -> out',
         "k string, v long, w long, x long not null"),
        ('a -> join(right=b, on="k", how="outer") -> out', "k string, v long, w long, x long"),
        ('a -> join(right=b, on="k", how="semi") -> out',
         "k string not null, v long not null, w long"),
        ("a -> map(lambda r: r) -> out", "k string, v long, w long"),
        ("s = a -> union(t)\nt = s -> prev() -> with_columns(v=lambda r: r.w)\ns -> out",
         "k string, v long, w long"),
    ],
)  # fmt: skip
def test_what_is_declared_not_null_is_so_as_long_as_nothing_pads_it(text: str, wanted: str) -> None:
    unread = "" if "right=b" in text else "b -> null()\n"
    assert output(NOT_NULL + unread + text) == wanted
