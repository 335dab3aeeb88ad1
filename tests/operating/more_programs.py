"""Programs with state by an order, by keys, over cycles, or for a while, with their edits."""

from __future__ import annotations

from collections.abc import Mapping

from tests.operating.programs import Family, of_one, of_two

_AT = (
    "timed = a -> with_columns(at=lambda r: datetime(2026, 1, 1, tzinfo=timezone.utc)"
    " + timedelta(days=r.v))\n"
)
_SEE = ' -> select("k", "v") -> o'

MORE_FAMILIES: Mapping[str, Family] = {
    "another type": of_one(
        "a -> persist() -> o\na -> persist() -> p",
        "a -> persist() -> o",
        'a -> persist() -> o\na -> persist() -> select("k") -> p',
        'a -> persist() -> o\na -> persist() -> select("k", v=lambda r: f"{r.v}") -> p',
        'a -> persist() -> o\na -> select("k", v=lambda r: r.v * 0.5) -> p',
        'a -> persist() -> o\na -> persist() -> aggregate(by="k", v=sum("v")) -> p',
        "a -> persist() -> o\na -> persist() -> sort() -> p",
    ),
    "over": of_one(
        'a -> persist() -> over(by="k", order="v", n=row_number(), s=running(sum("v"))) -> o',
        'a -> persist() -> over(by="k", order="v", n=row_number(), s=running(sum("v")),'
        ' p=lag("v")) -> o',
        'a -> persist() -> over(by="k", order="v", descending=True, n=rank(), l=lead("v")) -> o',
        'a -> window(2) -> over(by="k", order="v", n=dense_rank(), s=whole(sum("v"))) -> o',
        'a -> persist() -> over(by="k", order="v", s=session(gap=1), w=rolling(sum("v"),'
        ' within=1), t=rolling(max("v"), rows=2)) -> o',
        'a -> persist() -> over(by="k", order="v", n=row_number()) -> delta() -> o',
        'a -> persist() -> over(n=row_number(), order=["v", "k"]) -> o',
    ),
    "top": of_one(
        'a -> persist() -> top(2, by="k", order="v") -> o',
        'a -> persist() -> top(2, by="k", order="v", descending=True, ties=True) -> o',
        'a -> persist() -> top(2, order="v", descending=True) -> o',
        'a -> persist() -> top(1, by="k", order="v") -> delta() -> o',
        'a -> persist() -> sort_by_key(lambda r: r.v) -> limit(2, by="k") -> select("k", "v") -> o',
        "a -> persist() -> sort() -> limit(3) -> o",
        "a -> persist() -> unique() -> sort_by_key(lambda r: r.v, descending=True)"
        ' -> unique_keyed(by="k") -> o',
    ),
    "folded": of_one(
        "a -> persist() -> sort() -> scan_keyed(1, lambda acc, r: (acc * 2 + r.v) % 97,"
        ' by="k") -> o',
        "a -> persist() -> sort() -> fold_keyed(1, lambda acc, r: (acc * 2 + r.v) % 97,"
        ' by="k") -> o',
        'a -> persist() -> fold_keyed(0, lambda acc, r: acc + r.v, by="k", commutative=True,'
        " associative=True) -> o",
        'a -> persist() -> reduce_keyed(lambda x, y: {"k": x.k, "v": max(x.v, y.v)}, by="k",'
        " commutative=True, associative=True, idempotent=True) -> o",
        "a -> persist() -> fold(0, lambda acc, r: acc + r.v, commutative=True, associative=True)"
        ' -> map(lambda n: {"n": n}) -> o',
        'a -> persist() -> sort() -> enumerate() -> map(lambda n, r: {"n": n, "k": r.k}) -> o',
    ),
    "lists": of_one(
        'a -> persist() -> aggregate(by="k", s=count_distinct("v"), m=max_by("v", "v")) -> o',
        'a -> persist() -> aggregate(by="k", m=min("v"), n=count_if(lambda r: r.v > 2)) -> o',
        'a -> persist() -> aggregate(n=count(), s=sum("v"), m=max("v")) -> o',
        'a -> window(2) -> aggregate(by="k", m=min("v"), n=count()) -> delta() -> o',
        'a -> persist() -> unique() -> aggregate(by="k", n=count(), m=max("v")) -> o',
    ),
    "mutable": of_one(
        'a -> map(lambda r: ("persist" if r.v > 1 else "delete", r.k, r.v)) -> sort()'
        ' -> persist_mut_keyed() -> map(lambda k, v: {"k": k, "v": v}) -> o',
        'a -> map(lambda r: ("persist" if r.v > 2 else "delete", r.k, r.v)) -> sort()'
        ' -> persist_mut_keyed() -> map(lambda k, v: {"k": k, "v": v}) -> o',
        'a -> map(lambda r: ("persist" if r.v > 1 else "delete", r.k)) -> sort()'
        ' -> persist_mut() -> map(lambda k: {"k": k}) -> o',
    ),
    "changes": of_one(
        'a -> persist() -> aggregate(by="k", s=sum("v")) -> changes()'
        ' -> map(lambda n, r: {"n": n, "k": r.k, "s": r.s}) -> o',
        'a -> persist() -> unique() -> changes() -> map(lambda n, r: {"n": n, "k": r.k}) -> o',
        'a -> window(2) -> changes() -> map(lambda n, r: {"n": n, "k": r.k}) -> o',
    ),
    "cycle": of_one(
        'e = a -> persist() -> map(lambda r: (r.k, "xyz"[r.v % 3]))\n'
        "reach = union() -> unique()\ne -> reach\n"
        "reach -> map(lambda p, q: (q, p)) -> join(right=e) -> map(lambda k, v: v) -> reach\n"
        'reach -> map(lambda p, q: {"p": p, "q": q}) -> o',
        'e = a -> persist() -> map(lambda r: (r.k, "xyz"[r.v % 3]))\n'
        "reach = union() -> unique()\ne -> reach\n"
        "reach -> map(lambda p, q: (q, p)) -> join(right=e) -> map(lambda k, v: v) -> reach\n"
        'reach -> map(lambda p, q: {"p": p, "q": q}) -> delta() -> o',
        'e = a -> window(2) -> map(lambda r: (r.k, "xyz"[r.v % 3]))\n'
        "reach = union() -> unique()\ne -> reach\n"
        "reach -> map(lambda p, q: (q, p)) -> join(right=e) -> map(lambda k, v: v) -> reach\n"
        'reach -> map(lambda p, q: {"p": p, "q": q}) -> o',
        "up = union() -> unique()\na -> persist() -> map(lambda r: r.v) -> up\n"
        'up -> filter(lambda v: v < 5) -> map(lambda v: v + 2) -> up\nup -> map(lambda v: {"v": v})'
        " -> o",
    ),
    "before me": of_one(
        'x = union() -> aggregate(by="k", v=sum("v"))\na -> x\nx -> prev() -> x\nx -> o',
        'x = union() -> aggregate(by="k", v=sum("v"))\na -> x\n'
        "x -> prev() -> filter(lambda r: r.v < 9) -> x\nx -> o",
        'x = union() -> aggregate(by="k", v=max("v"))\na -> x\n'
        "x -> prev() -> with_columns(v=lambda r: r.v - 1) -> filter(lambda r: r.v > 0) -> x\n"
        "x -> o",
        "x = a -> difference(neg=seen)\nx -> old() -> map(lambda r: r) -> seen\nseen = identity()\n"
        "x -> o",
    ),
    "for a while": of_one(
        _AT + 'timed -> persist(for_=timedelta(days=2), by="at")' + _SEE,
        _AT + 'timed -> persist(for_=timedelta(days=3), by="at")' + _SEE,
        _AT + 'timed -> persist(for_=timedelta(days=2), by="at")'
        ' -> aggregate(by="k", s=sum("v"), n=count()) -> o',
        _AT + 'timed -> persist(for_=timedelta(days=2), by="at") -> aggregate(by="k", m=max("v"))'
        " -> delta() -> o",
        _AT + 'timed -> persist(for_=timedelta(days=2), by="at") -> top(1, by="k", order="v")'
        ' -> select("k", "v") -> o',
        _AT + 'timed -> persist(for_=timedelta(days=2), by="at") -> select("k") -> unique() -> o',
    ),
    "clock": of_one(
        "t = tick()\na -> persist() -> cross_singleton(single=t)"
        ' -> map(lambda r, t: {"k": r.k, "v": r.v, "age": t.tick - r.v}) -> o',
        "t = tick()\na -> cross_singleton(single=t)"
        ' -> map(lambda r, t: {"k": r.k, "v": r.v, "at": t.tick}) -> persist() -> o',
        'a -> persist() -> old() -> aggregate(by="k", s=sum("v")) -> o',
    ),
    "as of": of_two(
        'a -> join_asof(right=hb, on="k", at="v", since="w") -> o',
        'a -> persist() -> join_asof(right=hb, on="k", at="v", since="w") -> o',
        'a -> persist() -> join_asof(right=hb, on="k", at="v", since="w", direction="forward")'
        " -> o",
        'a -> persist() -> join_asof(right=hb, on="k", at="v", since="w", direction="nearest",'
        ' within=1, how="inner") -> o',
        'a -> join_asof(right=hb, on="k", at="v", since="w", direction="nearest", within=2) -> o',
        'a -> persist() -> join_asof(right=hb, on="k", at="v", since="w") -> delta() -> o',
        'ha = a -> persist()\nb -> join_asof(right=ha, on="k", at="w", since="v") -> o',
    ),
    "by a condition": of_two(
        'a -> persist() -> join(right=hb, on="k", where=lambda l, r: l.v < r.w) -> o',
        'a -> persist() -> join(right=hb, on="k", where=lambda l, r: l.v < r.w, how="left") -> o',
        'a -> persist() -> join(right=hb, on="k", where=lambda l, r: l.v < r.w, how="outer") -> o',
        'a -> persist() -> join(right=hb, on="k", where=lambda l, r: l.v <= r.w and r.w < l.v + 2,'
        ' how="anti") -> o',
        'a -> join(right=hb, on="k", where=lambda l, r: l.v < r.w, how="semi") -> o',
        'a -> persist() -> join(right=hb, where=lambda l, r: l.v == r.w, suffix="_r") -> o',
        'a -> persist() -> join(right=hb, on="k", where=lambda l, r: l.v < r.w, how="right") -> o',
    ),
    "padded": of_two(
        'a -> persist() -> join(right=hb, on="k", how="left") -> o',
        'a -> persist() -> join(right=hb, on="k", how="right") -> o',
        'a -> persist() -> join(right=hb, on="k", how="outer") -> o',
        'a -> persist() -> join(right=hb, on="k", how="outer")'
        ' -> aggregate(by="k", n=count(), s=sum("v"), m=max("w")) -> o',
        'hb2 = hb -> aggregate(by="k", w=sum("w"))\n'
        'a -> persist() -> join(right=hb2, on="k", how="left") -> delta() -> o',
        'a -> join(right=hb, on="k", how="outer") -> o',
        'hb2 = hb -> unique()\na -> window(2) -> join(right=hb2, on="k", how="left") -> o',
    ),
    "without": of_two(
        'nb = hb -> map(lambda r: {"k": r.k, "v": r.w})\na -> persist() -> difference(neg=nb) -> o',
        'nb = hb -> map(lambda r: {"k": r.k, "v": r.w})\n'
        "a -> persist() -> difference(neg=nb) -> delta() -> o",
        'nb = hb -> map(lambda r: {"k": r.k, "v": r.w})\na -> difference(neg=nb) -> o',
        'nb = b -> map(lambda r: {"k": r.k, "v": r.w})\n'
        "a -> persist() -> union(nb) -> unique() -> o",
        'm = hb -> aggregate(m=max("w"))\na -> persist() -> cross_singleton(single=m)'
        " -> filter(lambda r, m: m.m is not None and r.v >= m.m)"
        ' -> map(lambda r, m: {"k": r.k, "v": r.v}) -> o',
        "a -> persist() -> cross(right=hb)"
        ' -> map(lambda l, r: {"k": l.k, "v": l.v, "w": r.w}) -> o',
    ),
}
