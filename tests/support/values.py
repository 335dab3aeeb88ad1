"""Random items, and random types of items."""

from __future__ import annotations

from datetime import UTC

from hypothesis import strategies as st

from hydro_core.types.item import (
    SCALARS,
    UNKNOWN,
    Array,
    Decimal,
    Field,
    ItemType,
    Row,
    Scalar,
    Tuple,
)
from hydro_core.types.values import RowItem, Struct

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.binary(max_size=4),
    st.dates(),
    st.datetimes(timezones=st.just(UTC)),
    st.decimals(allow_nan=False, allow_infinity=False, places=2, max_value=10**9),
)
items = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(Struct),
        st.dictionaries(st.sampled_from(["a", "b", "keys"]), inner).map(RowItem),
    ),
    max_leaves=6,
)


scalar_types = st.one_of(
    st.sampled_from(SCALARS).map(Scalar),
    st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: Decimal(p, s))),
    st.just(UNKNOWN),
)
names = st.one_of(
    st.sampled_from(
        ["a", "long", "array", "decimal", "struct", "not", "comment", "x y", "ü", "`", "1a", "_2"]
    ),
    st.text(
        st.characters(exclude_characters="\n", exclude_categories=["Cs"]), min_size=1, max_size=5
    ),
)


def rows(inner: st.SearchStrategy[ItemType]) -> st.SearchStrategy[ItemType]:
    fields = st.lists(st.tuples(names, inner), min_size=1, max_size=3, unique_by=lambda f: f[0])
    return fields.map(lambda found: Row(tuple(Field(n, t) for n, t in found)))


types = st.recursive(
    scalar_types,
    lambda inner: st.one_of(
        inner.map(Array),
        st.lists(inner, min_size=1, max_size=3).map(lambda ts: Tuple(tuple(ts))),
        rows(inner),
    ),
    max_leaves=5,
)
