"""Whether two plans give the same: equal items, up to the last bits of floating-point numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hydro_core.types.values import canonical, sort_key


def same_items(a: Sequence[Any], b: Sequence[Any], *, ordered: bool = False) -> bool:
    """Whether two streams of a tick are the same, up to the last bits of floating-point numbers."""
    left, right = list(map(canonical, a)), list(map(canonical, b))
    if left == right or (not ordered and Counter(left) == Counter(right)):
        return True
    if len(a) != len(b):
        return False
    if not ordered:
        a, b = sorted(a, key=sort_key), sorted(b, key=sort_key)
    return all(map(alike, a, b))


def alike(x: Any, y: Any) -> bool:
    """Whether two values differ in the last bits of floating-point numbers at most.

    Sums of these depend on the order of the additions, which is the plan's.
    """
    if isinstance(x, float) and isinstance(y, float):
        return math.isclose(x, y, rel_tol=1e-12, abs_tol=1e-12)
    if isinstance(x, dict) and isinstance(y, dict):
        return x.keys() == y.keys() and all(alike(x[name], y[name]) for name in x)
    if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
        return len(x) == len(y) and all(map(alike, x, y))
    return bool(canonical(x) == canonical(y))
