"""Functions and the adversarial items they are tried on, by the type of the item."""

from __future__ import annotations

from tests.spark.cases_arrays import ARRAYS
from tests.spark.cases_numbers import DECIMALS, HALVES, INTEGERS, NUMBERS, WRITTEN
from tests.spark.cases_others import MOMENTS, OTHERS, STRINGS

CASES = {
    "integers": INTEGERS,
    "numbers": NUMBERS,
    "halves": HALVES,
    "written numbers": WRITTEN,
    "strings": STRINGS,
    "moments": MOMENTS,
    "arrays": ARRAYS,
    "decimals": DECIMALS,
    "others": OTHERS,
}
