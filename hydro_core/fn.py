"""The functions of the language that Python's builtins lack, for flows in Python.

A text program has them by their names.

>>> from hydro_core import fn
>>> fn.coalesce(None, 3), fn.try_int("4x"), fn.soundex("Rupert")
(3, None, 'R163')
"""

from __future__ import annotations

from hydro_core.functions.library.calendars import (
    add_months,
    date_diff,
    date_trunc,
    from_zone,
    last_day,
    quarter,
    to_zone,
)
from hydro_core.functions.library.data import (
    coalesce,
    greatest,
    least,
    nullif,
)
from hydro_core.functions.library.hashes import (
    base64_decode,
    base64_encode,
    crc32,
    md5,
    sha1,
    sha256,
    sha512,
    uuid5,
    xxhash64,
)
from hydro_core.functions.library.json_texts import (
    get_json_object,
    parse_json,
    to_json,
    try_parse_json,
)
from hydro_core.functions.library.parsing import (
    try_boolean,
    try_date,
    try_decimal,
    try_float,
    try_int,
    try_timestamp,
)
from hydro_core.functions.library.regex import (
    ReModule,
    regexp_count,
    regexp_extract,
    regexp_extract_all,
    regexp_like,
    regexp_replace,
)
from hydro_core.functions.library.windows import (
    hop,
    window_start,
)
from hydro_core.functions.library.wording import (
    concat_ws,
    initcap,
    levenshtein,
    lpad,
    rpad,
    soundex,
    split_part,
    substring_index,
    translate,
    url_param,
    url_part,
)

re = ReModule

__all__ = [
    "add_months",
    "base64_decode",
    "base64_encode",
    "coalesce",
    "concat_ws",
    "crc32",
    "date_diff",
    "date_trunc",
    "from_zone",
    "get_json_object",
    "greatest",
    "hop",
    "initcap",
    "last_day",
    "least",
    "levenshtein",
    "lpad",
    "md5",
    "nullif",
    "parse_json",
    "quarter",
    "re",
    "regexp_count",
    "regexp_extract",
    "regexp_extract_all",
    "regexp_like",
    "regexp_replace",
    "rpad",
    "sha1",
    "sha256",
    "sha512",
    "soundex",
    "split_part",
    "substring_index",
    "to_json",
    "to_zone",
    "translate",
    "try_boolean",
    "try_date",
    "try_decimal",
    "try_float",
    "try_int",
    "try_parse_json",
    "try_timestamp",
    "url_param",
    "url_part",
    "uuid5",
    "window_start",
    "xxhash64",
]
