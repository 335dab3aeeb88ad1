"""By which fields of a range's batches its stored rows are looked up, and of which all are read."""

from __future__ import annotations

import pytest

from hydro_core.compile import compile_text, optimized
from hydro_core.plan.lookups import lookups
from hydro_core.plan.planner import plan
from hydro_core.types.ddl import parse_ddl

WITH = "h = q -> persist(); i = join(on='k', suffix='_q') -> out; "
JOIN = "h = b -> persist(); j = join(); h -> [1]j; "
ROWS = {
    "r": "k long, s string, v long",
    "q": "k long, s string, w long",
    "p": "v long, w long",
    "s": "m double",
}


def found(text: str, *, optimize: bool = False) -> dict[str, list[str] | None]:
    """By slot `input: own=other, …` for each lookup, sorted; None where all rows are read."""
    schemas = {**dict.fromkeys("ab", "(string, long)"), **ROWS}
    used = {n: parse_ddl(t) for n, t in schemas.items() if n in text.replace(";", " ").split()}
    compiled = compile_text(text, used)
    made = plan((optimized(compiled) if optimize else compiled).typed)
    looked_up = lookups(made, made.graph.sinks)
    return {
        slot.id: sorted(map(str, looked_up[slot.id].found)) if slot.id in looked_up else None
        for slot in made.slots
    }


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (JOIN + "a -> [0]j; j -> out", {"b": ["a: 0=0"]}),
        ("r -> join(right=h, on='k', suffix='_q') -> out; h = q -> persist()", {"q": ["r: k=k"]}),
        ("r -> join(right=h, on=('k', 's')) -> out; h = q -> persist()", {"q": ["r: k=k, s=s"]}),
        (WITH.replace("suf", "how='left', suf") + "r -> [0]i; h -> [1]i", {"q": ["r: k=k"]}),
        ("r -> join(right=h, on='k', how='semi') -> out; h = q -> persist()", {"q": ["r: k=k"]}),
        ("r -> join(right=h, on='k', how='anti') -> out; h = q -> persist()", {"q": ["r: k=k"]}),
        ("a -> difference(neg=h) -> out; h = b -> persist()", {"b": ["a: 0=0, 1=1"]}),
        ("c = cross(); a -> [0]c; b -> persist() -> [1]c; c -> out", {"b": ["a: "]}),
        (JOIN + "a -> map(lambda k, v: (k, v + 1)) -> [0]j; j -> out", {"b": ["a: 0=0"]}),
        (JOIN + "a -> map(lambda k, v: (str(v), k)) -> [0]j; j -> out", {"b": ["a: "]}),
        (JOIN + "u = union(); a -> u; b -> u; u -> [0]j; j -> out", {"b": ["a: 0=0", "b: 0=0"]}),
        (WITH + "r -> with_columns(k=lambda r: r.v * 2) -> [0]i; h -> [1]i", {"q": ["r: "]}),
        (WITH + "r -> [0]i; h -> with_columns(k=lambda r: r.w * 2) -> [1]i", {"q": ["r: "]}),
    ],
)  # fmt: skip
def test_events_meet_what_has_their_key(text: str, wanted: dict[str, list[str]]) -> None:
    assert found(text) == wanted


def test_who_takes_all_rows_of_a_result_in_each_tick_has_them() -> None:
    """A key that is in no batch is counted again in each tick: its stored row is needed."""
    text = (
        "s = r -> persist() -> aggregate(by='k', v=sum('v')); s -> aggregate(n=count()) -> one; "
        "s -> persist() -> aggregate(by='k', n=count()) -> delta() -> out"
    )
    known = found(text, optimize=True)
    assert known.pop("moving_aggregate_1") is None
    assert known == dict.fromkeys(known) != {}


def test_what_no_filter_lets_pass_looks_up_nothing() -> None:
    once = JOIN + "a -> filter(lambda k, v: v > 1) -> [0]j; j -> out"
    assert found(once) == {"b": ["a where lambda k, v: v > 1: 0=0"]}
    twice = JOIN + "a -> filter(lambda k, v: v > 1) -> filter(lambda x: x[0]) -> [0]j; j -> out"
    assert found(twice) == {"b": ["a where lambda k, v: v > 1 and lambda x: x[0]: 0=0"]}
    behind = (
        JOIN + "a -> map(lambda k, v: (k, v + 1)) -> filter(lambda k, v: v > 1) -> [0]j; j -> out"
    )
    assert found(behind) == {"b": ["a: 0=0"]}


FILTERED = "h = q -> persist() -> latest(by='k', order='w') -> filter(lambda x: x.w > 1); "
STORED = "running_latest_1 by k of r where lambda x: x.w > 1"


@pytest.mark.parametrize("how", ["inner", "semi"])
def test_rows_without_a_partner_look_up_nothing(how: str) -> None:
    text = f"l = r -> persist(); {FILTERED}"
    text += "s = l -> aggregate(by='k', n=count()); "
    text += f"l -> join(right=h, on='k', how='{how}', suffix='_q') -> join(right=s, on='k') -> out"
    there = found(text, optimize=True)
    assert there["running_latest_1"] == ["q: k=k", "r: k=k"]
    assert there["r"] == ["q: k=k", f"r that meets (q: k=k; {STORED}: k=k): k=k"]


@pytest.mark.parametrize("how", ["left", "anti"])
def test_rows_that_stay_without_a_partner_look_up_all_that_they_meet(how: str) -> None:
    text = f"l = r -> persist(); {FILTERED} s = l -> aggregate(by='k', n=count()); "
    text += f"l -> join(right=h, on='k', how='{how}', suffix='_q') -> join(right=s, on='k') -> out"
    assert found(text, optimize=True)["r"] == ["q: k=k", "r: k=k"]


def test_renamed_columns_are_followed_on_both_sides() -> None:
    text = "h = q -> persist() -> rename(x='k'); r -> rename(x='k') -> [0]j; h -> [1]j; j -> out; "
    text += "j = join(on='x', suffix='_q')"
    assert found(text) == {"q": ["r: k=k"]}


def test_a_join_behind_a_join_is_looked_up_by_what_events_bring() -> None:
    text = (
        "h = q -> persist() -> select('k', 'w'); g = p -> persist() -> select('v')\n"
        "r -> join(right=h, on='k') -> join(right=g, on='v') -> out"
    )
    assert found(text) == {"q": ["r: k=k"], "p": ["r: v=v"]}
    other = text.replace("select('v')", "select('w')").replace("on='v'", "on='w'")
    # What the first join finds has the key of the second one.
    assert found(other) == {"q": ["r: k=k"], "p": ["q by k of r: w=w", "q: w=w"]}


@pytest.mark.parametrize(
    "text",
    [
        # Somebody looks at all of the history.
        JOIN
        + "a -> [0]j; j -> out; h -> fold(0, lambda n, x: n + x[1], commutative=True) -> total",
        JOIN + "a -> [0]j; j -> out; h -> unique() -> map(lambda k, v: v) -> sort() -> each",
        JOIN + "a -> [0]j; j -> out; h -> prev() -> before",
        JOIN + "a -> [0]j; j -> out; a -> persist() -> difference(neg=h) -> prev() -> left",
        # The events may come without a row of an input.
        JOIN + "a -> prev() -> [0]j; j -> out",
        JOIN + "r -> aggregate(n=count()) -> map(lambda r: ('x', r.n)) -> [0]j; j -> out",
        JOIN + "source_iter([('x', 1)]) -> [0]j; j -> out",
        # The rows without a partner are in the output.
        "r -> join(right=h, on='k', how='outer', suffix='_q') -> out; h = q -> persist()",
        "r -> join(right=h, on='k', how='right', suffix='_q') -> out; h = q -> persist()",
    ],
)
def test_all_rows_are_read_where_somebody_looks_at_them(text: str) -> None:
    slots = found(text)
    assert slots["q" if "q" in slots else "b"] is None


def test_two_items_at_once_are_seen_whatever_comes_with_them() -> None:
    assert found("c = cross_singleton(); a -> [input]c; b -> persist() -> [single]c; c -> out") == {
        "b": None
    }


def test_an_output_that_only_adds_reads_nothing_of_its_history() -> None:
    assert found("a -> persist() -> out") == {"a": []}
    assert found("a -> persist() -> map(lambda k, v: v) -> out") == {"a": []}


def test_the_additions_of_a_join_of_histories_meet_what_is_new() -> None:
    text = "p = a -> persist(); q = b -> persist(); p -> [0]j; q -> [1]j; j = join()\n"
    assert found(text + "j -> delta() -> out") == {"a": ["b: 0=0"], "b": ["a: 0=0"]}
    assert found(text + "j -> window(2) -> out") == {"a": None, "b": None, "j": None}


def test_what_is_first_seen_is_compared_as_a_whole() -> None:
    slots = found("a -> persist() -> unique() -> delta() -> new", optimize=True)
    assert list(slots.values()) == [["a: 0=0, 1=1"]]


def test_running_results_go_on_from_those_of_new_keys() -> None:
    total = "t = r -> persist() -> aggregate(by='k', total=sum('v'))\n"
    assert list(found(total + "t -> out", optimize=True).values()) == [["r: k=k"]]
    assert list(found(total + "t -> delta() -> out", optimize=True).values()) == [["r: k=k"]]


def test_events_meet_running_results_of_their_keys() -> None:
    text = (
        "t = r -> persist() -> aggregate(by='k', total=sum('v'))\n"
        "t -> delta() -> new; q -> join(right=t, on='k') -> out"
    )
    assert list(found(text, optimize=True).values()) == [["q: k=k", "r: k=k"]]


@pytest.mark.parametrize("where", ["", ", where=lambda l, r: r.w <= l.v"])
@pytest.mark.parametrize("how", ["semi", "anti"])
@pytest.mark.parametrize(
    "end",
    [
        "changes() -> out",
        "aggregate(by='k', n=max('v')) -> out",
        "select('k') -> unique() -> changes() -> out",
        "join(right=g, on='k', how='semi') -> changes() -> out",
    ],
)
def test_matches_of_two_histories_look_up_what_is_new(how: str, where: str, end: str) -> None:
    text = "h = r -> persist(); g = q -> persist() -> select('k', 'w'); "
    slots = found(f"{text}h -> join(right=g, on='k', how='{how}'{where}) -> {end}", optimize=True)
    assert "q: k=k" in str(slots)
    assert all(slot and "q: " not in slot for slot in slots.values()), slots


@pytest.mark.parametrize("how", ["inner", "semi", "anti"])
def test_a_history_is_looked_up_by_what_leaves_a_window(how: str) -> None:
    text = "h = r -> window(3); g = q -> persist() -> select('k', 'w'); "
    text += f"h -> join(right=g, on='k', how='{how}') -> changes() -> out"
    slots = found(text, optimize=True)
    assert slots.pop("r", ()) is None
    assert ["r of 3 ticks ago: k=k" in (rows or ()) for rows in slots.values()] == [True], slots


def test_all_that_is_new_of_what_is_stored_is_made_whoever_looks_at_it() -> None:
    text = (
        "h = r -> old(); g = q -> persist() -> select('k', 'w'); j = h -> join(right=g, on='k')\n"
    )
    text += "q -> join(right=o, on='k', suffix='_j') -> met; "
    assert found(f"{text} o = j") == {"q": ["q: k=k"], "r": ["q: k=k"]}
    assert found(f"{text} o = j -> old()") == {"j": ["q: k=k"], "q": None, "r": None}


def test_one_result_of_everything_is_read_as_it_is() -> None:
    text = "r -> persist() -> aggregate(total=sum('v')) -> out"
    assert list(found(text, optimize=True).values()) == [None]


def test_what_is_new_to_who_has_a_history_a_tick_later_is_found_if_somebody_looks_at_it() -> None:
    text = """
        a -> old() -> delta() -> out
        n = difference(); b -> [pos]n; n -> old() -> [neg]n; n -> new
        h = q -> old(); h -> later; r -> join(right=h, on="k", suffix="_q") -> joined
        older = p -> old(); r -> join(right=older, on="v") -> met
    """
    schemas = {"a": "(string, long)", "b": "(string, long)", **ROWS}
    made = plan(compile_text(text, {n: parse_ddl(t) for n, t in schemas.items()}).typed)
    needed = lookups(made, made.graph.sinks)
    last_ticks = {slot: one.last_tick for slot, one in needed.items()}
    assert last_ticks == {"a": True, "n": False, "q": True, "p": False}


MEDIANS = "m = r -> persist() -> aggregate(by='k', m=median('v'))\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("m -> delta() -> out", ["r: k=k"]),
        ("m -> out", ["r: k=k"]),
        ("m -> changes() -> map(lambda n, r: (r.k, n)) -> out", ["r: k=k"]),
        # Older results are looked at, each made of all rows of its key.
        ("m -> delta() -> out; q -> join(right=m, on='k') -> met", ["q: k=k", "r: k=k"]),
        ("q -> join(right=m, on='k') -> met", ["q: k=k", "r: k=k"]),
        ("m -> delta() -> out; m -> prev() -> before", None),
        ("m -> delta() -> out; m -> aggregate(n=count_distinct('m')) -> all", None),
    ],
)  # fmt: skip
def test_results_by_key_that_tell_their_changes_meet_the_rows_of_new_keys(
    text: str, wanted: list[str] | None
) -> None:
    assert found(MEDIANS + text)["r"] == wanted


DIMENSIONS = """
h = r -> persist()
l = q -> persist() -> latest(by="k", order="w")
m = p -> persist() -> latest(by="w", order="v")
padded = h -> join(right=l, on="k", how="left", suffix="_q")
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        # A row of `l` that goes has another `w` than the one that comes.
        (
            "h -> join(right=l, on='k', suffix='_q') -> join(right=m, on='w', suffix='_p')",
            {
                "r": ["l by w of p: k=k", "q: k=k"],
                "l": ["p: w=w", "q: k=k", "r: k=k"],
                "m": ["l by k of q: w=w", "l by k of r: w=w", "p: w=w", "q: w=w"],
            },
        ),
        (
            "l -> join(right=h, on='k', how='anti') -> join(right=m, on='w', suffix='_p')",
            {
                "r_read": ["l by w of p: k=k", "q: k=k", "r: k=k"],
                "l": ["p: w=w", "q: k=k", "r: k=k"],
                "m": ["l by k of q: w=w", "l by k of r: w=w", "p: w=w", "q: w=w"],
            },
        ),
        # A padded row has no field of the other side.
        (
            "padded -> join(right=m, on='w', suffix='_p')",
            {"m": ["p: w=w", "q: ", "r: "]},
        ),
        # A result that is computed is not known before.
        (
            "l -> aggregate(by='k', w=sum('w')) -> join(right=m, on='w', suffix='_p')",
            {"m": ["p: w=w", "q: "]},
        ),
    ],
)
def test_rows_that_are_found_find_others(text: str, wanted: dict[str, list[str]]) -> None:
    slots = found(f"{DIMENSIONS}{text} -> aggregate(n=count()) -> out", optimize=True)
    assert {name: slots[name] for name in wanted} == wanted


def test_distinct_items_of_a_history_meet_those_that_are_wanted() -> None:
    each = "u = b -> persist() -> unique()\n"
    assert found(each + "a -> join(right=u) -> out") == {"b": ["a: 0=0"]}
    assert found(each + "u -> delta() -> out") == {"b": ["b: 0=0, 1=1"]}
    assert found(each + "u -> window(2) -> out")["b"] is None


def test_what_an_item_shares_with_those_it_comes_from_is_its_key() -> None:
    latest = "x = r -> persist() -> latest(by='k', order='v')\nh = p -> persist()\n"
    told = latest + "n = x -> changes() -> map(lambda n, r: {'k': r.k, 'v': r.v})\n"
    assert found(told + "n -> join(right=h, on='v') -> out")["p"] == ["r: "]
    # Events come with all of an item that comes.
    events = latest.replace("-> persist() -> latest", "-> latest")
    assert found(events + "x -> join(right=h, on='v') -> out")["p"] == ["r: v=v"]


BOTH = "h = r -> persist(); g = q -> persist() -> select('k', 'w'); "


@pytest.mark.parametrize(
    ("how", "left", "right"),
    [
        # Which older rows have their first match now; was there one before?
        ("anti", ["q: k=k"], ["q: k=k", "r: k=k"]),
        ("left", ["q: k=k"], ["q: k=k", "r: k=k"]),
        ("right", ["q: k=k", "r: k=k"], ["r: k=k"]),
        ("outer", ["q: k=k", "r: k=k"], ["q: k=k", "r: k=k"]),
        ("semi", ["q: k=k"], ["q: k=k", "r: k=k"]),
    ],
)
def test_rows_of_histories_without_a_match_meet_what_is_new(
    how: str, left: list[str] | None, right: list[str] | None
) -> None:
    joined = f"{BOTH}x = h -> join(right=g, on='k', how='{how}')\nx -> "
    slots = found(f"{joined}delta() -> out")
    assert (slots["r"], slots["q"]) == (left, right)
    slots = found(f"{joined}unique() -> aggregate(n=count()) -> out")
    assert (slots["r"], slots["q"]) == (None, None)


def test_items_of_a_history_that_are_in_no_other_meet_what_is_new() -> None:
    text = "h = a -> persist(); g = b -> persist(); x = h -> difference(neg=g)\nx -> delta() -> out"
    assert found(text) == {"a": ["b: 0=0, 1=1"], "b": ["a: 0=0, 1=1", "b: 0=0, 1=1"]}


TOTALS = """
t = r -> persist() -> aggregate(by='k', v=sum('v'), s=max('v'))
most = t -> aggregate(v=max('v'))
"""
WITH_MOST = "t with the greatest v: k=k"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("most -> out", [WITH_MOST]),
        ("t -> join(right=most, on='v') -> out", [WITH_MOST]),
        ("t -> join(right=most, on='v', how='semi') -> out", [WITH_MOST]),
        ("m = most -> rename(x='v'); t -> join(right=m, on={'v': 'x'}) -> out", [WITH_MOST]),
        ("t -> join(right=most, on='v') -> aggregate(n=count()) -> out", [WITH_MOST]),
        ("t -> aggregate(a=min('s'), b=max('v')) -> out", [WITH_MOST, "t with the least s: k=k"]),
        ("t -> rename(w='v') -> aggregate(w=max('w')) -> out", [WITH_MOST]),
        ("t -> top(3, order='v', descending=True) -> out", ["t with the 3 greatest v: k=k"]),
        ("t -> top(2, order=['v', 's'], descending=True, ties=True) -> out",
         ["t with the 2 greatest v: k=k"]),
        # Nulls come first; a key's first are of that key.
        ("t -> top(3, order='v') -> out", None),
        ("f = t -> top(1, by='s', order='v', descending=True); f -> sort() -> out", None),
        # Rows without a partner stay; all are counted; the column is another; no key is shown.
        ("t -> join(right=most, on='v', how='left') -> out", None),
        ("t -> join(right=most, on='v', how='anti') -> out", None),
        ("most -> out; t -> aggregate(n=count_distinct('v')) -> all", None),
        ("t -> aggregate(a=max('v'), n=count()) -> out", None),
        ("t -> aggregate(a=max(lambda x: x.v)) -> out", None),
        ("m = most -> rename(x='v'); t -> join(right=m, on={'s': 'x'}) -> out", None),
        ("t -> filter(lambda x: x.v > 0) -> aggregate(v=max('v')) -> out", None),
        ("t -> select('v') -> aggregate(v=max('v')) -> out", None),
        ("t -> prev() -> join(right=most, on='v') -> out", None),
    ],
)  # fmt: skip
def test_of_all_rows_those_with_the_greatest_value_are_looked_at(
    text: str, wanted: list[str] | None
) -> None:
    slots = found(TOTALS + text, optimize=True)
    own = None if wanted is None else sorted([*wanted, "r: k=k"])
    assert slots["t"] == own


def test_who_has_the_greatest_value_looks_up_others() -> None:
    text = (
        f"{TOTALS}l = q -> persist() -> latest(by='k', order='w') -> select('k', 'w')\n"
        "t -> join(right=most, on='v') -> {join} -> out"
    )
    met = ["q: k=k", "r: k=k", "t by k of r: k=k", "t by k of t with the greatest v: k=k"]
    joined = found(text.replace("{join}", "join(right=l, on='k')"), optimize=True)
    assert met in joined.values()
    first = text.replace("join(right=most, on='v')", "top(1, order='v', descending=True)")
    first = first.replace("{join}", "join(right=l, on='k')")
    assert met in found(first, optimize=True).values()
    without = found(text.replace("{join}", "join(right=l, on='k', how='anti')"), optimize=True)
    assert met in without.values()
    padded = text.replace("t -> join(right=most, on='v') -> {join}", "l -> join(right=b, on='k')")
    assert None in found(padded + "; b = t -> join(right=most, on='v', how='left')").values()
