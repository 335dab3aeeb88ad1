"""What changes in histories, windows and padded joins: told from what came and what left."""

from __future__ import annotations

Line = tuple[str, ...]
_PADDED = "a row without a match is there until the first match comes; all other pairs stay"


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
