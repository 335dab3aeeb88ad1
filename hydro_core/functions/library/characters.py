"""What Python's texts take for blanks, digits and so on, read from the running Python."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from functools import lru_cache


@lru_cache
def characters(test: str) -> tuple[str, ...]:
    """The characters of which a test of `str` holds: `characters("isspace")`."""
    holds = getattr(str, test)
    return tuple(c for c in map(chr, range(sys.maxunicode + 1)) if holds(c))


@lru_cache
def all_of(test: str) -> str:
    """The inside of a regular expression's class of these characters."""
    return ranges(map(ord, characters(test)))


def ranges(codes: Iterable[int]) -> str:
    """The inside of a regular expression's class of these code points, in order."""
    found: list[list[int]] = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in found)


# What ICU in Spark 4.2 knows and Unicode 14, the oldest that a supported Python has, does not:
# letters with an upper case, and characters with a lower case or a part in where words end
# (U+0295 and U+1171E beside a Σ are left aside).
_YOUNG = {
    "upper": "19b 264 1c8a a7cd a7cf a7d3 a7d5 a7db 10d70-10d85 16ebb-16ed3",
    "lower": """ 897 ece 1acf-1add 1ae0-1aeb 1c89-1c8a a7cb-a7cf a7d2 a7d4 a7da-a7dc a7f1 10d4e
10d50-10d65 10d69-10d6d 10d6f-10d85 10ec5 10efa-10eff 11241 113bb-113c0 113ce 113d0 113d2
113e1-113e2 11b60 11b62-11b64 11b66 11dd9 11f00-11f01 11f36-11f3a 11f40 11f42 11f5a 13439-13440
13447-13455 1611e-16129 1612d-1612f 16d40-16d42 16d6b-16d6c 16ea0-16eb8 16ebb-16ed3 16ff2-16ff3
1df25-1df2a 1e030-1e06d 1e08f 1e4eb-1e4ef 1e5ee-1e5ef 1e6e3 1e6e6 1e6ee-1e6ef 1e6f5 1e6ff
""",
}


@lru_cache
def young(case: str) -> str:
    """The characters that Spark changes or minds in `upper` or `lower`, and this Python does not.

    As the inside of a regular expression's class. Upper and lower case are ICU's in Spark: for the
    version in Spark 4.2 they are Python's but for these, which got their other case after Unicode
    14. Such a character bounds words to Python, so the context of a final sigma ends there too.
    """
    codes = [
        code
        for part in _YOUNG[case].split()
        for code in range(int(part.split("-")[0], 16), int(part.split("-")[-1], 16) + 1)
    ]
    if case == "upper":
        return ranges(code for code in codes if chr(code).upper() == chr(code))
    return ranges(code for code in codes if unicodedata.category(chr(code)) == "Cn")
