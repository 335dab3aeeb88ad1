"""The functions of the language that Python's builtins lack, for flows in Python.

A text program has them by their names.

>>> from hydro_core import fn
>>> fn.coalesce(None, 3), fn.try_int("4x"), fn.soundex("Rupert")
(3, None, 'R163')
"""

from hydro_core.functions.library import regex as _regex
from hydro_core.functions.library.calendars import add_months as add_months
from hydro_core.functions.library.calendars import date_diff as date_diff
from hydro_core.functions.library.calendars import date_trunc as date_trunc
from hydro_core.functions.library.calendars import from_zone as from_zone
from hydro_core.functions.library.calendars import hop as hop
from hydro_core.functions.library.calendars import last_day as last_day
from hydro_core.functions.library.calendars import quarter as quarter
from hydro_core.functions.library.calendars import to_zone as to_zone
from hydro_core.functions.library.calendars import window_start as window_start
from hydro_core.functions.library.collections import coalesce as coalesce
from hydro_core.functions.library.collections import greatest as greatest
from hydro_core.functions.library.collections import least as least
from hydro_core.functions.library.collections import nullif as nullif
from hydro_core.functions.library.parsing import base64_decode as base64_decode
from hydro_core.functions.library.parsing import base64_encode as base64_encode
from hydro_core.functions.library.parsing import crc32 as crc32
from hydro_core.functions.library.parsing import get_json_object as get_json_object
from hydro_core.functions.library.parsing import md5 as md5
from hydro_core.functions.library.parsing import parse_json as parse_json
from hydro_core.functions.library.parsing import sha1 as sha1
from hydro_core.functions.library.parsing import sha256 as sha256
from hydro_core.functions.library.parsing import sha512 as sha512
from hydro_core.functions.library.parsing import to_json as to_json
from hydro_core.functions.library.parsing import try_boolean as try_boolean
from hydro_core.functions.library.parsing import try_date as try_date
from hydro_core.functions.library.parsing import try_decimal as try_decimal
from hydro_core.functions.library.parsing import try_float as try_float
from hydro_core.functions.library.parsing import try_int as try_int
from hydro_core.functions.library.parsing import try_parse_json as try_parse_json
from hydro_core.functions.library.parsing import try_timestamp as try_timestamp
from hydro_core.functions.library.parsing import uuid5 as uuid5
from hydro_core.functions.library.parsing import xxhash64 as xxhash64
from hydro_core.functions.library.regex import regexp_count as regexp_count
from hydro_core.functions.library.regex import regexp_extract as regexp_extract
from hydro_core.functions.library.regex import regexp_extract_all as regexp_extract_all
from hydro_core.functions.library.regex import regexp_like as regexp_like
from hydro_core.functions.library.regex import regexp_replace as regexp_replace
from hydro_core.functions.library.wording import concat_ws as concat_ws
from hydro_core.functions.library.wording import initcap as initcap
from hydro_core.functions.library.wording import levenshtein as levenshtein
from hydro_core.functions.library.wording import lpad as lpad
from hydro_core.functions.library.wording import rpad as rpad
from hydro_core.functions.library.wording import soundex as soundex
from hydro_core.functions.library.wording import split_part as split_part
from hydro_core.functions.library.wording import substring_index as substring_index
from hydro_core.functions.library.wording import translate as translate
from hydro_core.functions.library.wording import url_param as url_param
from hydro_core.functions.library.wording import url_part as url_part

re = _regex.ReModule
