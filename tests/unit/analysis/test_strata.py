"""Strata: as few as the blocking inputs allow, and cycles that cannot run."""

from __future__ import annotations

import pytest

from hydro_core.compile import CompiledProgram, compile_text
from hydro_core.errors import ProgramError
from hydro_core.types.ddl import parse_ddl


def compiled(text: str, **schemas: str) -> CompiledProgram:
    return compile_text(text, {name: parse_ddl(ddl) for name, ddl in schemas.items()})


def strata(text: str, **schemas: str) -> dict[str, int]:
    return dict(compiled(text, **schemas).strata.of)


def test_a_blocking_input_begins_a_stratum() -> None:
    assert strata("a -> sort() -> map(lambda x: x) -> out", a="long") == {
        "a": 0,
        "sort_1": 1,
        "map_1": 1,
        "out": 1,
    }


def test_only_the_input_that_is_named_blocks() -> None:
    found = strata(
        "a -> anti_join(neg=n) -> out\nn = b -> unique()\na -> cross_singleton(single=b) -> o",
        a="(long, long)",
        b="long",
    )
    assert found["anti_join_1"] == 1
    assert found["n"] == 0
    assert found["cross_singleton_1"] == 1


def test_what_was_read_of_the_tick_before_is_there_from_the_beginning() -> None:
    found = strata("s = a -> sort() -> delta()\ns -> prev() -> out\ns -> old() -> o", a="long")
    assert (found["s"], found["prev_1"], found["old_1"]) == (2, 0, 0)


def test_handoffs() -> None:
    strata = compiled(
        "s = a -> sort()\ns -> zip(right=t) -> out\nt = s -> delta() -> sort()", a="long"
    ).strata
    assert [(str(e), i, j) for e, i, j in strata.handoffs] == [
        ("a", 0, 1),
        ("s", 1, 4),
        ("t", 3, 4),
        ("s", 1, 2),
        ("delta_1", 2, 3),
    ]


def test_a_cycle_is_one_stratum() -> None:
    found = compiled(
        "x = union() -> unique()\na -> sort() -> x\nx -> filter(lambda v: v > 3) -> x\n"
        "x -> sort() -> out\nb -> difference(neg=x) -> o",
        a="long",
        b="long",
    ).strata
    assert [sorted(c) for c in found.recursive] == [["filter_1", "union_1", "x"]]
    assert found.of["x"] == found.of["filter_1"] == 1
    assert found.of["difference_1"] == 2
    assert found.members(0) == ("a", "b")
    assert found.count == 3


def test_a_padded_join_waits() -> None:
    for how, number in (("inner", 0), ("left", 1), ("right", 0), ("outer", 1), ("anti", 1)):
        text = f'a -> join(right=s, how="{how}") -> out\ns = a -> unique()'
        assert strata(text, a="(long, long)")["join_1"] == (1 if how == "right" else number)


@pytest.mark.parametrize(
    "text",
    [
        "x = a -> difference(neg=x)\nx -> out",
        "x = union() -> sort()\na -> x\nx -> filter(lambda v: v > 3) -> x\nx -> out",
        "x = a -> union(y)\ny = x -> delta()\nx -> out",
        "x = a -> union(y)\ny = x -> next_stratum()\nx -> out",
        "x = a -> union(y)\ny = x -> cross_singleton(single=x) -> map(lambda p, q: p)\nx -> out",
    ],
)
def test_a_cycle_through_a_blocking_input(text: str) -> None:
    with pytest.raises(ProgramError) as caught:
        compiled(text, a="long")
    assert caught.value.code == "cycle"


@pytest.mark.parametrize("past", ["prev()", "old()", "prev() -> sort()", "sort() -> prev()"])
def test_the_past_breaks_a_cycle(past: str) -> None:
    found = compiled(f"x = a -> difference(neg=y)\ny = x -> {past}\nx -> out", a="long")
    assert not found.strata.recursive


def test_the_cycle_is_printed_operator_by_operator_with_where_to_break_it() -> None:
    with pytest.raises(ProgramError) as caught:
        compiled(
            "seen = union()\na -> seen\nseen -> map(lambda k: (k, 1)) -> [pos]new\n"
            "seen -> [neg]new\nnew = anti_join() -> map(lambda k, v: k) -> seen\nseen -> out",
            a="long",
        )
    (found,) = caught.value.diagnostics
    assert found.message.endswith(
        "new: anti_join() -> map() -> seen: union() -> [neg]new: anti_join()"
    )
    assert found.help == "let the next tick read it: `seen -> prev() -> [neg]new`"
