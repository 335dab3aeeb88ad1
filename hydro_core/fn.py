"""The functions of the language that Python's builtins lack, for flows in Python.

A text program has them by their names.

>>> from hydro_core import fn
>>> fn.coalesce(None, 3), fn.try_int("4x"), fn.soundex("Rupert")
(3, None, 'R163')
"""

from __future__ import annotations

from hydro_core.functions.library.data import (
    base64_decode,
    base64_encode,
    coalesce,
    crc32,
    date_trunc,
    greatest,
    least,
    levenshtein,
    md5,
    sha256,
    soundex,
    try_date,
    try_float,
    try_int,
    url_param,
    url_part,
    uuid5,
)
from hydro_core.functions.library.regex import (
    ReModule,
    regexp_count,
    regexp_extract,
    regexp_extract_all,
    regexp_like,
    regexp_replace,
)

re = ReModule

__all__ = [
    "base64_decode",
    "base64_encode",
    "coalesce",
    "crc32",
    "date_trunc",
    "greatest",
    "least",
    "levenshtein",
    "md5",
    "re",
    "regexp_count",
    "regexp_extract",
    "regexp_extract_all",
    "regexp_like",
    "regexp_replace",
    "sha256",
    "soundex",
    "try_date",
    "try_float",
    "try_int",
    "url_param",
    "url_part",
    "uuid5",
]
