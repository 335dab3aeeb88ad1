"""Whether two runs gave the same: the one comparison for all that run programs to judge them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hydro_core.types.values import canonical, sort_key


def same_items(a: Sequence[Any], b: Sequence[Any], ordered: bool) -> bool:
    """Whether these are the same items, each as often, and in the same order if `ordered`."""
    left, right = list(map(canonical, a)), list(map(canonical, b))
    if left == right or (not ordered and Counter(left) == Counter(right)):
        return True
    if len(a) != len(b):
        return False
    if not ordered:
        a, b = sorted(a, key=sort_key), sorted(b, key=sort_key)
    return all(map(_alike, a, b))


def _alike(x: Any, y: Any) -> bool:
    """Whether two values differ in the last bits of floating-point numbers at most.

    Sums of these depend on the order of the additions, which is the plan's.
    """
    if isinstance(x, float) and isinstance(y, float):
        return math.isclose(x, y, rel_tol=1e-12, abs_tol=1e-12)
    if isinstance(x, dict) and isinstance(y, dict):
        return x.keys() == y.keys() and all(_alike(x[name], y[name]) for name in x)
    if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
        return len(x) == len(y) and all(map(_alike, x, y))
    return bool(canonical(x) == canonical(y))
