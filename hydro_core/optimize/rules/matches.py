"""What is known of matches in a history: which of them are new."""

from __future__ import annotations

from hydro_core.optimize.rule import Line, lines

MATCHES: tuple[Line, ...] = (
    *lines("""
semi-split-right: (join:semi ?s ?a (chain (prev ?b) ?c))
    => (chain (join:semi ?s ?a (prev ?b)) (join:semi ?s (join:anti ?t ?a (prev ?b)) ?c))
    when (opposite ?s ?t)
    what had no match before may have one in the new part
semi-before-anti: (join:semi ?s (join:anti ?t ?a ?b) ?c)
    => (join:anti ?t (join:semi ?s ?a ?c) ?b)
    both keep a row or not by its key alone, so either may come first
"""),
    *(
        (
            f"{how}-before-single",
            (
                f"(join:{how} ?j (map ?m (filter ?p (cross_singleton ?a ?u))) ?b) => (map ?m"
                " (filter ?p (cross_singleton (select ?s (aggregate ?c"
                f" (join:{how} ?j ?a ?b))) ?u)))"
            ),
            "a match keeps a row or not by its key alone, and each row is there once",
            "(kept ?a ?c ?s)",
            "(first ?m)",
        )
        for how in ("semi", "anti")
    ),
    *(
        (
            f"equal-to-single{called}",
            f"(map ?m (filter ?p (cross_singleton ?a ?u))) => (join:semi ?j ?a {single})",
            "what equals the one item in a column has a match in it",
            f"({fact} ?p ?j{renames})",
            "(first ?m)",
        )
        for called, fact, renames, single in (
            ("", "equates", "", "?u"),
            ("-renamed", "equates_as", " ?r", "(rename ?r ?u)"),
        )
    ),
)
