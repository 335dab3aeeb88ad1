"""What is said of plans that are not incremental: what they go through, why, and what to write."""

import pytest

from hydro_core.compile import compile_text
from hydro_core.optimize.cost import InputStatistics, Statistics
from hydro_core.optimize.growth import Note
from hydro_core.optimize.optimizer import optimize
from hydro_core.optimize.report import as_text

ROWS = 'a = source("k long, v long, d decimal(30,2)"); b = source("k long, w long")\n'
HISTORIES = ROWS + "p = a -> persist(); q = b -> persist()\n"


def _notes(text: str) -> tuple[Note, ...]:
    return optimize(compile_text(text).typed).notes


@pytest.mark.parametrize("how", ["anti", "left", "right", "outer"])
def test_rows_that_leave_are_the_reason_and_changes_the_cure(how: str) -> None:
    text = HISTORIES + f'p -> join(right=q, on="k", how="{how}")'
    assert not _notes(text + " -> out"), "an output stores what changes"
    assert not _notes(text + " -> unique() -> out"), "distinct rows go by what changes"
    median = ' -> aggregate(by="k", m=median("v")) -> out'
    assert not _notes(text + median), "results by key are made of the keys that change"
    note = next(n for n in _notes(text + " -> sort() -> out") if n.operator == "join")
    assert note.reads == "all of history"
    assert "leave" in note.reason
    assert "`-> changes()`" in note.cure
    assert not _notes(text + " -> changes() -> out"), "the cure is one"


def test_what_is_made_anew_is_named() -> None:
    text = 'a -> persist() -> sort() -> limit(10) -> aggregate(by="k", m=max_by("v", "k")) -> out'
    notes = _notes(ROWS + 'a -> persist() -> sort() -> map(lambda r: {"k": r.k, "v": r.v}) -> out')
    assert [n.operator for n in notes] == ["sort", "map"]
    assert notes[1].reason == "it reads what `sort_1` makes, and that is made anew in each tick"
    assert notes[1].cure == "make `sort_1` incremental first"
    assert not _notes(ROWS + text), "the first ten are kept, and these are few"


def test_what_has_no_key_goes_on_from_the_last_rows_or_says_why_not() -> None:
    over = 'a -> persist() -> over(order="v", n={}) -> out'
    assert not _notes(ROWS + over.format("row_number()"))
    assert not _notes(ROWS + over.format('running(sum(lambda r: r["v"]))'))
    (note,) = _notes(ROWS + over.format("ntile(2)"))
    assert "moves others" in note.reason
    assert _notes(ROWS + over.format("running(sum(lambda r: len(str(r))))")), "looks at whole rows"
    asof = 'h = a -> persist(); h -> join_asof(right=h, at="v", since="v", suffix="_r") -> out'
    (note,) = _notes(ROWS + asof)
    assert note.operator == "join_asof"
    assert "without a key" in note.reason
    assert "`on=…`" in note.cure


def test_the_first_of_a_sorted_history_are_told_by_their_changes() -> None:
    first = 'a -> persist() -> sort_by_key(lambda r: r.v) -> limit(3, by="k")'
    assert not _notes(f"{ROWS}{first} -> delta() -> out")
    assert not _notes(f'{ROWS}{first} -> aggregate(by="k", m=max("v")) -> out')
    (note,) = _notes(f"{ROWS}{first} -> out")
    assert note.reads == "all rows of a running result"
    assert "brought into an order" in note.reason
    assert "`-> delta()`" in note.cure


@pytest.mark.parametrize(
    ("aggregate", "reason"),
    [
        ('first("v")', "`first` gives the values themselves"),
        ('stddev("v")', "`stddev` squares differences"),
        ('avg("d")', "a mean of decimals of so many digits"),
    ],
)
def test_an_aggregate_is_its_own_reason_where_it_is(aggregate: str, reason: str) -> None:
    text = f'{ROWS}a -> persist() -> sort_by_key(lambda r: r.v) -> aggregate(by="k", m={aggregate})'
    note = next(n for n in _notes(text + " -> sort() -> out") if n.operator == "aggregate")
    assert note.reason.startswith(reason)
    assert note.cure


@pytest.mark.parametrize("after", ["", ' -> aggregate(by="m", n=count())', " -> changes()"])
def test_of_results_by_key_that_nobody_wants_whole_only_the_keys_that_are_new_are_read(
    after: str,
) -> None:
    assert not _notes(f'{ROWS}a -> persist() -> aggregate(by="k", m=median("v")){after} -> out')


def test_a_fold_without_a_declaration_is_told_which() -> None:
    text = "a -> persist() -> sort() -> fold(0, lambda s, r: s + r.v) -> out"
    note = next(n for n in _notes(ROWS + text) if n.operator == "fold")
    assert "commutative=True" in note.cure


AGGREGATED = ROWS + 'n = a -> persist() -> aggregate(by="k", n=count())\n'


@pytest.mark.parametrize(
    "rest",
    [
        'n -> flat_map(lambda r: [{"k": r.n}]) -> aggregate(m=median("k")) -> out',
        'n -> map(lambda r: {"k": r.n}) -> latest(by="k", order="k") -> out',
    ],
)
def test_going_through_a_running_result_is_not_incremental(rest: str) -> None:
    notes = _notes(AGGREGATED + rest)
    assert [n.reads for n in notes] == ["all rows of a running result"]
    assert all(n.cure for n in notes)


@pytest.mark.parametrize(
    "rest",
    [
        "n -> out",
        "n -> unique() -> out",
        'n -> join(right=n, on="k", suffix="_r") -> out',
        "n -> filter(lambda r: r.n > 3) -> map(lambda r: r.n) -> out",
        "n -> map(lambda r: r.n) -> delta() -> out",
        'b -> join(right=n, on="k") -> out',
        "a -> persist() -> aggregate(n=count()) -> cross(right=b) -> out",
    ],
)
def test_reading_a_running_result_item_by_item_or_by_key_is_incremental(rest: str) -> None:
    assert _notes(AGGREGATED + rest) == ()


def test_what_a_cost_assumes_stands_beside_it() -> None:
    printed = as_text(optimize(compile_text(ROWS + "a -> persist() -> out; b -> more").typed))
    assert "each input 1,000 rows in a tick and 100,000 in history" in printed.splitlines()[1]


def test_a_state_of_keys_costs_less_than_a_history() -> None:
    loop = "s = union(); a -> s; x -> prev() -> s; x = s -> {}; x -> out"
    text = 'a = source("k long, v long")\n' + loop
    state = optimize(compile_text(text.format('latest(by="k", order="v")')).typed)
    history = optimize(compile_text(text.format("filter(lambda r: r.v != 3)")).typed)
    assert state.cost_before < history.cost_before


def test_a_union_of_two_types_is_called_a_union_and_costs_as_one() -> None:
    found = {}
    for b in ("long", "double"):
        sources = f'a = source("long"); b = source("{b}"); c = b -> persist(); h = a -> persist()\n'
        body = "u = h -> union(c); u -> sort() -> limit(3) -> out"
        found[b] = optimize(compile_text(sources + body).typed)
    assert found["double"].cost_before == found["long"].cost_before
    assert all(":" not in n.reason for n in found["double"].notes)
    [of_union] = [n for n in found["double"].notes if n.operator == "union"]
    assert of_union.reason.startswith("`union` has no rule")


def _told(text: str, statistics: Statistics) -> list[str]:
    return [note.operator for note in optimize(compile_text(text).typed, statistics).notes]


SORTED = ROWS + 'a -> persist() -> aggregate(by="k", n=count()) -> sort() -> out'


@pytest.mark.parametrize(("keys", "told"), [(4.0, []), (None, ["sort"])])
def test_what_does_not_grow_with_history_is_not_told(keys: float | None, told: list[str]) -> None:
    known = {"a": InputStatistics(rows=1000, keys=keys)}
    assert _told(SORTED, Statistics(inputs=known)) == told


def test_a_table_that_is_there_from_the_first_tick_does_not_grow() -> None:
    text = ROWS + "b -> persist() -> sort() -> out; a -> persist() -> sort() -> others"
    still = Statistics(inputs={"b": InputStatistics(rows=0.001, history=10_000)})
    notes = optimize(compile_text(text).typed, still).notes
    assert [note.name for note in notes] == ["sort_2"]


def test_statements_are_told_at_this_length_of_history_and_at_ten_times() -> None:
    known = Statistics(ticks=100, inputs={"a": InputStatistics(rows=10, history=1000)})
    found = optimize(compile_text(ROWS + "p = a -> persist()\np -> sort() -> out").typed, known)
    costs = {of.name: of for of in found.statements}
    assert (costs["p"].now.reads, costs["p"].longer.reads) == (1000, 10_000)
    assert costs["p"].now.stores == costs["p"].longer.stores == 10
    assert "at 10 times the history" in as_text(found)


def test_history_is_longer_by_what_ticks_bring() -> None:
    known = {
        "lines": InputStatistics(rows=1000, history=1e6),
        "parts": InputStatistics(rows=10, history=2e5, keys=7),
    }
    longer = Statistics(ticks=100, inputs=known).longer(2)
    assert longer.ticks == 1100
    assert longer.inputs["lines"].history == 2e6
    assert longer.inputs["parts"] == InputStatistics(rows=10, history=2.1e5, keys=7)
