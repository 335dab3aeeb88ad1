"""Functions of a program on Spark: as columns where these are exact, else as Arrow UDFs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from io import BytesIO
from pickle import PicklingError
from types import ModuleType
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]

from hydro_core.artifact.functions import ReferenceCall
from hydro_core.errors import DataError
from hydro_core.functions.call import call_accumulate, call_item, call_pair, kind_of, shown
from hydro_core.functions.result_type import result_type
from hydro_core.functions.tree import Fn
from hydro_core.spark.frames.dry import BLANK, dry_run
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.columns import NotCompilable, predicate_column, to_column
from hydro_core.spark.functions.guards import PythonComparison, noting
from hydro_core.spark.session.failures import failure_text
from hydro_core.types.arrow import from_arrow, to_arrow
from hydro_core.types.item import BOOLEAN, Array, ItemType
from hydro_core.types.values import canonical, conform

# Functions that run as Python inside Spark: Arrow batches, with one call for each item.
#
# A function is sent to the workers by value, with the values that it closes over; a module that
# only the driver can import (a flow in the current directory) is sent with it. An error names
# function, item and tick, and fails the job. Workers load this module, so it imports little.


Accumulate = Callable[[Fn, Any, Any], Any]
Choose = Callable[[Iterator[Any]], Any]
_INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]")


class FunctionFailure(Exception):  # noqa: N818 - it carries a failure out of a worker
    """A function failed in a worker; the text is a failure for `spark.session.failures`."""


def udf_column(
    fn: Fn,
    column: Column,
    item: ItemType,
    result: ItemType,
    tick: Column | None = None,
    noting: PythonComparison | None = None,
) -> Column:
    """The results of `fn` on the items of `column`, as items of type `result`."""
    return _run(fn, (column, item), (result, partial(conform, to=result)), tick, noting)


def udf_predicate(
    fn: Fn,
    column: Column,
    item: ItemType,
    tick: Column | None = None,
    noting: PythonComparison | None = None,
) -> Column:
    """True where the result of `fn` for an item is truthy in Python."""
    return _run(fn, (column, item), (BOOLEAN, bool), tick, noting)


def _run(
    fn: Fn,
    given: tuple[Column, ItemType],
    gives: tuple[ItemType, Callable[[Any], Any]],
    tick: Column | None,
    noting: PythonComparison | None,
) -> Column:
    (column, item), (result, finish) = given, gives
    packed = pack((fn, finish))

    def results(items: Any, ticks: list[int | None]) -> list[Any]:
        function, finish = unpack(packed)
        return [
            guarded(function, t, lambda x: finish(call_item(function, x)), x)
            for x, t in zip(from_arrow(items, item), ticks, strict=True)
        ]

    def of_items(items: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        return to_arrow(results(items, [None] * len(items)), result)

    def of_ticks(items: pa.Array, ticks: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        return to_arrow(results(items, ticks.to_pylist()), result)

    if noting is not None:
        compared = _recorder(results, result, noting)
        made = python_function(compared, spark_type(result), fn.name)
        return made(column, known(tick), noting.column)
    made = python_function(of_items if tick is None else of_ticks, spark_type(result), fn.name)
    return made(column) if tick is None else made(column, tick)


def known(tick: Column | None) -> Column:
    """The tick as a long; null if there is none."""
    return (F.lit(None) if tick is None else tick).cast("long")


def _recorder(
    results: Callable[[Any, list[int | None]], list[Any]],
    result: ItemType,
    noting: PythonComparison,
) -> Callable[..., Any]:
    """The function, extended by a comparison: it records that Spark's result differs for some
    item.
    """
    accumulator, mark = noting.accumulator, noting.mark

    def compared(items: pa.Array, ticks: pa.Array, of_spark: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        found = results(items, ticks.to_pylist())
        pairs = zip(found, from_arrow(of_spark, result), strict=True)
        if any(canonical(mine) != canonical(other) for mine, other in pairs):
            accumulator.add(frozenset([mark]))
        return to_arrow(found, result)

    return compared


def guarded(fn: Fn, tick: int | None, compute: Callable[..., Any], *items: Any) -> Any:
    """The result of `compute` for the items; its error is a failure that names function, items and
    tick.
    """
    try:
        return compute(*items)
    except Exception as error:  # noqa: BLE001 - whatever a user's function raises
        told = " and ".join(map(shown, items))
        raise FunctionFailure(failure_text(fn, kind_of(error), str(error), told, tick)) from None


def pack(value: Any) -> bytes:
    """The value, functions and all, as bytes that a worker can read."""
    try:
        return _packed(value, whole=True)
    except (TypeError, PicklingError):
        # A module may hold an object without bytes, such as a lock: a worker on this machine
        # imports it.
        return _packed(value, whole=False)


def _packed(value: Any, *, whole: bool) -> bytes:
    packed = BytesIO()
    with ExitStack() as registered:
        _Pickler(packed, registered, whole=whole).dump(value)  # type: ignore[no-untyped-call]
    return packed.getvalue()


class _Pickler(cloudpickle.Pickler):
    """Pickles by value everything that a worker could not import; with `whole`, also the function
    of a `ReferenceCall` into such a module.
    """

    def __init__(self, packed: BytesIO, registered: ExitStack, *, whole: bool) -> None:
        super().__init__(packed)  # type: ignore[no-untyped-call]
        self._registered, self._whole = registered, whole
        registered.enter_context(_by_value(_homeless_modules()))

    def reducer_override(self, value: Any) -> Any:
        if self._whole and isinstance(value, ReferenceCall):
            found = self._homeless(value)
            if found is not None:
                return _as_it_is, (found,)
        return super().reducer_override(value)  # type: ignore[no-untyped-call]

    def _homeless(self, call: ReferenceCall) -> Callable[..., Any] | None:
        """The function, if a worker could not import its module."""
        try:
            found = call.made
        except DataError:
            # It fails where an item needs it, with an error for this item.
            return None
        if not _is_homeless(call.module, sys.modules[call.module]):
            return None
        self._registered.enter_context(_by_value(_homeless_modules()))
        return found


def _as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


@lru_cache(maxsize=256)
def unpack(packed: bytes) -> Any:
    """The value again; a worker unpacks each only once."""
    return cloudpickle.loads(packed)


def _homeless_modules() -> Iterator[ModuleType]:
    return (module for name, module in list(sys.modules.items()) if _is_homeless(name, module))


def _is_homeless(name: str, module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if not file or name.split(".", maxsplit=1)[0] in ("__main__", "hydro_core"):
        return False
    return not file.startswith((sys.prefix, sys.base_prefix)) and not _INSTALLED.search(file)


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


def folded_in_python(  # noqa: PLR0913 - what there is to know of a fold
    fn: Fn,
    acc: ItemType,
    item: ItemType,
    values: Column,
    start: Column,
    *,
    pairwise: bool,
    tick: Column | None = None,
) -> Column:
    """The fold of each array from its start; `pairwise`: the function takes two whole items."""
    run = _of_arrays(fn, (acc, item, acc), _last, pairwise=pairwise)
    return run(values, start, known(tick))


def scanned_in_python(  # noqa: PLR0913 - what there is to know of a scan
    fn: Fn,
    acc: ItemType,
    item: ItemType,
    values: Column,
    start: Column,
    *,
    pairwise: bool = False,
    tick: Column | None = None,
) -> Column:
    """The accumulators after each element of each array; `pairwise` as for folds."""
    run = _of_arrays(fn, (acc, item, Array(acc)), lambda found: list(found)[1:], pairwise=pairwise)
    return run(values, start.cast(spark_type(acc)), known(tick))


def _last(accumulators: Iterator[Any]) -> Any:
    last = None
    for last in accumulators:  # noqa: B007 - one at a time: they may be large
        pass
    return last


def _of_arrays(
    fn: Fn, types: tuple[ItemType, ItemType, ItemType], choose: Choose, *, pairwise: bool
) -> Callable[[Column, Column, Column], Column]:
    acc, item, result = types
    call: Accumulate = call_pair if pairwise else call_accumulate
    packed = pack(fn)

    # Spark evaluates these annotations, and at run time an Array takes no parameter.
    def batch(arrays: pa.Array, starts: pa.Array, ticks: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        function = unpack(packed)
        groups = zip(
            from_arrow(arrays, Array(item)), from_arrow(starts, acc), ticks.to_pylist(), strict=True
        )
        found = [
            choose(_accumulators(function, start, xs or (), (acc, call, tick)))
            for xs, start, tick in groups
        ]
        return to_arrow(found, result)

    return python_function(batch, spark_type(result), fn.name)


def _accumulators(
    fn: Fn, start: Any, values: Iterable[Any], how: tuple[ItemType, Accumulate, int | None]
) -> Iterator[Any]:
    """The start, and the accumulator after each value."""
    acc, call, tick = how
    yield start
    for x in values:
        start = guarded(fn, tick, lambda a, b: conform(call(fn, a, b), acc), start, x)
        yield start


@dataclass(slots=True)
class PythonColumns:
    """The columns that Python computes, counted at their construction."""

    made: int = 0


_counted: ContextVar[PythonColumns | None] = ContextVar("python_columns", default=None)


@contextmanager
def python_columns() -> Iterator[PythonColumns]:
    """Counts the Python columns that are built inside the block, nested blocks included.

    After such a column Spark does not know the partitioning of the rows any more, not even that
    they are in one partition.
    """
    outer, columns = _counted.get(), PythonColumns()
    token = _counted.set(columns)
    try:
        yield columns
    finally:
        _counted.reset(token)
        if outer is not None:
            outer.made += columns.made


def python_function(
    run: Callable[..., Any], result: spark_types.DataType, name: str
) -> Callable[..., Column]:
    """From Arrow arrays to one of them, as a function of columns whose result has this type.

    The name appears in plans and in Spark's own drawings.
    """
    run.__name__ = name
    made: Callable[..., Column] = arrow_udf(run, result)

    def column(*arguments: Column) -> Column:
        recorder = _counted.get()
        if recorder is not None:
            recorder.made += 1
        return made(*arguments)

    return column


# Functions of a program on Spark: as columns where these are exact, else in Python workers.


def apply(
    fn: Fn,
    column: Column,
    item: ItemType,
    *,
    result: ItemType | None = None,
    tick: Column | None = None,
) -> Column:
    """The results of `fn` on the items of `column`, as items of type `result` (default: the type of
    `fn`).

    A failing function fails the job; the error names `tick`, if given.
    """
    wanted = result if result is not None else result_type(fn, (item,), spread=True)

    return _compiled_or_in_python(
        fn,
        lambda: to_column(fn, ((column, item),), result=wanted),
        lambda noted: udf_column(fn, column, item, wanted, tick, noted),
    )


def is_column(fn: Fn, item: ItemType) -> bool:
    """True if `fn` on items of this type is a column of Spark, not computed by Python."""
    try:
        with dry_run():
            to_column(fn, ((BLANK, item),), result=result_type(fn, (item,), spread=True))
    except NotCompilable:
        return False
    return True


def apply_predicate(
    fn: Fn, column: Column, item: ItemType, *, tick: Column | None = None
) -> Column:
    """True where the result of `fn` for the items of `column` is truthy in Python; never null."""
    return _compiled_or_in_python(
        fn,
        lambda: predicate_column(fn, ((column, item),)),
        lambda noted: udf_predicate(fn, column, item, tick, noted),
    )


def _compiled_or_in_python(
    fn: Fn, compiled: Callable[[], Column], in_python: Callable[[PythonComparison | None], Column]
) -> Column:
    try:
        return compiled()
    except NotCompilable:
        pass
    try:
        noted = noting(fn, compiled)
    except NotCompilable:
        # It is no expression of Spark anyway: there is nothing to compare with.
        noted = None
    return in_python(noted)
