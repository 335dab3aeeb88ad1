"""A session for small ranges, beside the one for all others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from pyspark.sql import SparkSession

_QUICK = {
    # Its estimates and its stages cost more than a small job does; sizes of files are known.
    "spark.sql.adaptive.enabled": "false",
}
"""What differs in it."""


@lru_cache(maxsize=4)
def quick_session(spark: SparkSession) -> SparkSession:
    """A session beside the given one, in the same process, for small ranges."""
    session = spark.newSession()
    for key, value in {**_settings_of(spark), **_QUICK}.items():
        session.conf.set(key, value)
    return session


def _settings_of(spark: SparkSession) -> Mapping[str, str]:
    """What was set on the session after it was started, which a new one does not inherit."""
    keys = ("spark.sql.shuffle.partitions",)
    return {key: value for key in keys if (value := spark.conf.get(key, None)) is not None}
