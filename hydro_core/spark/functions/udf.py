"""Functions that run as Python inside Spark: whole Arrow batches, item by item within them.

A function travels to the workers by value, with what it closes over; a module that only the driver
can import (a flow beside the current directory) travels with it. An error names function, item and
tick, and fails the job.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from types import ModuleType
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Column
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]

from hydro_core.functions.evaluate import call_item
from hydro_core.functions.failed_call import kind_of, shown
from hydro_core.functions.fn import Fn
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.session.failures import failure_text
from hydro_core.types.arrow import from_arrow, to_arrow
from hydro_core.types.item import BOOLEAN, ItemType
from hydro_core.types.values import conform

_INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]")


class FunctionFailure(Exception):  # noqa: N818 - it carries a failure out of a worker
    """A function failed in a worker; the text is a failure for `spark.session.failures`."""


def udf_column(
    fn: Fn, column: Column, item: ItemType, result: ItemType, tick: Column | None = None
) -> Column:
    """The results of `fn` on the items of `column`, as items of type `result`."""
    return _run(fn, column, item, result, tick, partial(conform, to=result))


def udf_predicate(fn: Fn, column: Column, item: ItemType, tick: Column | None = None) -> Column:
    """Whether what `fn` gives for an item is true as Python sees it."""
    return _run(fn, column, item, BOOLEAN, tick, bool)


def _run(
    fn: Fn,
    column: Column,
    item: ItemType,
    result: ItemType,
    tick: Column | None,
    finish: Callable[[Any], Any],
) -> Column:
    packed = pack(fn)

    def results(items: Any, ticks: list[int | None]) -> pa.Array[Any]:
        function = unpack(packed)
        computed = [
            guarded(function, t, lambda x: finish(call_item(function, x)), x)
            for x, t in zip(from_arrow(items, item), ticks, strict=True)
        ]
        return to_arrow(computed, result)

    def of_items(items: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        return results(items, [None] * len(items))

    def of_ticks(items: pa.Array, ticks: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        return results(items, ticks.to_pylist())

    run = of_items if tick is None else of_ticks
    # The name is what plans and Spark's own drawings show.
    run.__name__ = fn.name
    made = arrow_udf(run, spark_type(result))
    results_column: Column = made(column) if tick is None else made(column, tick)
    return results_column


def guarded(fn: Fn, tick: int | None, compute: Callable[..., Any], *items: Any) -> Any:
    """What `compute` gives for the items; its error is a failure that names all there is."""
    try:
        return compute(*items)
    except Exception as error:  # noqa: BLE001 - whatever a user's function raises
        told = " and ".join(map(shown, items))
        raise FunctionFailure(failure_text(fn, kind_of(error), str(error), told, tick)) from None


def pack(value: Any) -> bytes:
    """The value, functions and all, as bytes that a worker can read."""
    with _by_value(_homeless_modules()):
        packed: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]
    return packed


@lru_cache(maxsize=256)
def unpack(packed: bytes) -> Any:
    """The value again; a worker reads each only once."""
    return cloudpickle.loads(packed)


def _homeless_modules() -> Iterator[ModuleType]:
    """Loaded modules that a worker would not find: neither installed nor of this package."""
    homes = (sys.prefix, sys.base_prefix)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or name.split(".")[0] in ("__main__", "hydro_core"):
            continue
        if not file.startswith(homes) and not _INSTALLED.search(file):
            yield module


@contextmanager
def _by_value(modules: Iterator[ModuleType]) -> Iterator[None]:
    known = cloudpickle.list_registry_pickle_by_value()  # type: ignore[no-untyped-call]
    registered = {m.__name__: m for m in modules if m.__name__ not in known}.values()
    for module in registered:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
