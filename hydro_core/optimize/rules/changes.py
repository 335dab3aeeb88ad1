"""What changes in keyed results, windows and padded joins: told from what came and what left.

A tick touches few keys. The new results of those that differ from their old ones are what is new;
what is no longer there counts where copies are counted.
"""

from __future__ import annotations

from hydro_core.catalog.group import AGGREGATE, FOLD_KEYED, LATEST, REDUCE_KEYED
from hydro_core.catalog.internal import LEAVING, continuing
from hydro_core.catalog.spec import OpSpec

Line = tuple[str, ...]
_KEYS = "of the keys that the batch names, the new results that differ from the old ones"
_OF_KEYS = "only the results of keys that the batch names change"
_MOVED = "of the keys that come or leave, the new results that differ from the old ones"
_OF_MOVED = "only the results of keys that come or leave change"
_PADDED = "a row without a match is there until the first match comes; all other pairs stay"


def _both(name: str, whole: str, now: str, before: str, *when: str) -> tuple[Line, Line]:
    """The new items, and all changes, of what has one item for each key."""
    moved = LEAVING.name in now
    new, all_of_them = (_MOVED, _OF_MOVED) if moved else (_KEYS, _OF_KEYS)
    return (
        (f"delta-{name}", f"(delta {whole}) => (difference {now} {before})", new, *when),
        (
            f"changes-{name}",
            f"(changes {whole}) => (changes_between {now} {before})",
            all_of_them,
            *when,
        ),
    )


def _keyed(op: OpSpec, *when: str) -> tuple[Line, Line]:
    whole = f"({op.name} ?f (persist ?b))"
    before = f"(join:semi ?j (prev {whole}) ?b)"
    return _both(
        op.name.replace("_", "-"),
        whole,
        f"({_going_on(op)} ?f {before} ?b)",
        before,
        "(semi_on ?f ?j)",
        *when,
    )


def _going_on(op: OpSpec) -> str:
    """The operator that goes on from the results of `op`."""
    found = continuing(op)
    assert found is not None, f"nothing goes on from {op.name}"
    return found.name


def _in_parts() -> tuple[Line, Line]:
    whole = "(aggregate ?f (persist ?b))"
    before = f"(join:semi ?j (prev {whole}) ?b)"
    now = f"(aggregate_from ?f {before} ?b)"
    return _both(
        "aggregate-parts",
        f"(aggregate_result ?h {whole})",
        f"(aggregate_result ?h {now})",
        f"(aggregate_result ?h {before})",
        "(semi_on ?f ?j)",
        "(mergeable ?f)",
        "(result_of ?h ?f)",
    )


def _moving() -> tuple[Line, Line]:
    whole = "(aggregate ?f (window ?n ?b))"
    before = f"(join:semi ?j (prev {whole}) (union ?b (leaving ?n ?b)))"
    now = f"(aggregate_moved ?f {before} ?b (leaving ?n ?b))"
    return _both(
        "aggregate-window",
        f"(aggregate_result ?h {whole})",
        f"(aggregate_result ?h {now})",
        f"(aggregate_result ?h {before})",
        "(semi_on ?f ?j)",
        "(moves ?f)",
        "(result_of ?h ?f)",
    )


KEYED: tuple[Line, ...] = (
    *_keyed(LATEST),
    *_keyed(FOLD_KEYED, "(resumable ?f)"),
    *_keyed(REDUCE_KEYED, "(resumable ?f)"),
    *_keyed(AGGREGATE, "(mergeable ?f)"),
    *_in_parts(),
    *_moving(),
)

COUNTED: tuple[Line, ...] = (
    (
        "changes-growing",
        "(changes ?x) => (counted (delta ?x))",
        "what grows changes by what is new",
        "(growing ?x)",
    ),
    (
        "delta-window",
        "(delta (window ?n ?a)) => (minus ?a (leaving ?n ?a))",
        "a window gains what came, but for what replaces an equal item that leaves",
    ),
    (
        "changes-window",
        "(changes (window ?n ?a)) => (changes_between ?a (leaving ?n ?a))",
        "a window changes by what comes and what leaves",
    ),
)


def _padded(name: str, whole: str, new: str, lost: str, when: str) -> tuple[Line, Line]:
    return (
        (f"delta-{name}", f"(delta {whole}) => (minus {new} {lost})", _PADDED, when),
        (f"changes-{name}", f"(changes {whole}) => (changes_between {new} {lost})", _PADDED, when),
    )


_LOST_LEFT = "(join:anti ?t (join:semi ?s (old ?a) ?b) (old ?b))"
_LOST_RIGHT = "(join:anti ?t (join:semi ?s (old ?b) ?a) (old ?a))"
_NONE_LEFT = "(join:anti ?t ?a ?a)"
_NONE_RIGHT = "(join:anti ?t ?b ?b)"
"""Streams of the other side's type without items: what is joined with them is padded."""
PADDED: tuple[Line, ...] = (
    *_padded(
        "left-join",
        "(join:left ?l (persist ?a) (persist ?b))",
        "(chain (join ?i (old ?a) ?b) (join:left ?l ?a (persist ?b)))",
        f"(join:left ?l {_LOST_LEFT} {_NONE_RIGHT})",
        "(padded ?l ?i ?s ?t)",
    ),
    *_padded(
        "right-join",
        "(join:right ?l (persist ?a) (persist ?b))",
        "(chain (join ?i ?a (old ?b)) (join:right ?l (persist ?a) ?b))",
        f"(join:right ?l {_NONE_LEFT} {_LOST_RIGHT})",
        "(padded ?l ?i ?s ?t)",
    ),
    *_padded(
        "outer-join",
        "(join:outer ?o (persist ?a) (persist ?b))",
        (
            "(chain (join ?i (old ?a) ?b) (chain (join:left ?l ?a (persist ?b))"
            f" (join:right ?r {_NONE_LEFT} (join:anti ?t ?b (persist ?a)))))"
        ),
        (
            f"(chain (join:left ?l {_LOST_LEFT} {_NONE_RIGHT})"
            f" (join:right ?r {_NONE_LEFT} {_LOST_RIGHT}))"
        ),
        "(padded_both ?o ?i ?s ?t ?l ?r)",
    ),
    (
        "semi-split-right",
        (
            "(join:semi ?s ?a (chain (prev ?b) ?c)) => (chain (join:semi ?s ?a (prev ?b))"
            " (join:semi ?s (join:anti ?t ?a (prev ?b)) ?c))"
        ),
        "what had no match before may have one in the new part",
        "(opposite ?s ?t)",
    ),
    (
        "semi-before-anti",
        "(join:semi ?s (join:anti ?t ?a ?b) ?c) => (join:anti ?t (join:semi ?s ?a ?c) ?b)",
        "both keep a row or not by its key alone, so either may come first",
    ),
    (
        "changes-anti-join",
        (
            "(changes (join:anti ?t (persist ?a) (persist ?b))) =>"
            f" (changes_between (join:anti ?t ?a (persist ?b)) {_LOST_LEFT})"
        ),
        "new rows without a match come, old ones whose first match is new go",
        "(opposite ?s ?t)",
    ),
)
