"""What lies at a path, and how it is read: whole by Arrow or Spark where they read exactly that.

Both read Delta tables, and Parquet of plain types, by themselves; the rest is read piece by piece.
Either way a `Found` says what the columns are before any row is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake.exceptions import DeltaError

from hydro_core.files.csv_files import csv_type, header_of, surveyed_csv
from hydro_core.files.inputs import InputFile, Lacking, first_lacking
from hydro_core.files.kinds import (
    UNREADABLE,
    Declared,
    among,
    base_of,
    files_at,
    folder_texts,
    is_delta,
    refuse,
    refuse_delta,
    refuse_parquet,
    refuse_untyped,
)
from hydro_core.files.parquet import delta_rows, files_with, may_be_finer, opened_parquet
from hydro_core.files.pieces import surveyed_json
from hydro_core.files.row_batch import FileForm, folder_type, folder_value, item_type, plain_type
from hydro_core.storage.arrow import name_of
from hydro_core.storage.delta import delta_table, sizes_in, table_file
from hydro_core.storage.remote import DataPlace, RemotePath, name_below
from hydro_core.types.arrow import arrow_type
from hydro_core.types.common import merge
from hydro_core.types.item import ItemType, Row
from hydro_core.types.values import UNFIT, ValueProblem

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

# Arrow's datasets (with pandas) are loaded where they read something: what lies in a landing is
# asked without them, too.


@dataclass(frozen=True, slots=True)
class FileSet:
    """The files of an input, and what is known of their columns."""

    files: Sequence[DataPlace]
    form: FileForm
    names: Sequence[str]
    """The columns; none of JSON lines with a schema, where only reading all rows tells them."""
    types: Mapping[str, ItemType] | None = None
    """The types of the columns that were read; None: not known, and not needed."""
    dataset: Dataset | None = None
    """The rows as Arrow reads them by itself, where it does."""
    is_plain: bool = False
    """Whether Spark reads the rows by itself as Arrow does."""
    version: int | None = None
    """The version of a Delta table."""
    table: str | None = None
    """The identity of a Delta table."""
    bytes: int = 0
    """What the files take."""
    lacking: Lacking = field(default_factory=dict)
    """The declared columns that a file lacks; not of JSON lines, which only their rows tell, nor of
    the files of a Delta table, which has a schema of its own.
    """

    @property
    def kind(self) -> str:
        """What it is: a Delta table, or files of a kind."""
        return self.form.kind if self.version is None else DELTA

    @property
    def by_name(self) -> Callable[[str], DataPlace]:
        """Gives the files by the names that a dataset knows them by: within a Delta table, else by
        all of their paths.
        """
        base, inner = self.form.base, self.kind == DELTA
        if not isinstance(base, RemotePath):
            return partial(Path, base) if inner else Path
        known = {name_below(f, base) if inner else name_of(f): f for f in self.files}
        return known.__getitem__


Survey = Callable[[Callable[[DataPlace], Any], Sequence[DataPlace]], Iterable[Any]]
"""Asks many files: what each answers; the error of the first that raises one is raised. `map` asks
in this process alone.
"""

DELTA = "Delta table"


def find(
    file: InputFile,
    declared: Declared,
    survey: Survey = map,
    *,
    version: int | None = None,
    only: Collection[DataPlace] | None = None,
) -> FileSet:
    """What lies at the path of an input.

    Args:
        file: the input's name, path and tick column.
        declared: the columns that the program declares.
        survey: asks files for what only all of their rows tell.
        version: of a Delta table; None: the latest.
        only: of files those that are read; None: all.
    """
    place = file.place
    # If nothing is declared, all columns are read.
    wanted = frozenset((*declared, file.column)) if declared else None
    form = FileForm("Parquet", place, declared, wanted)
    if is_delta(place):
        found = _delta(form, version)
    else:
        kind, files = files_at(place)
        files = [one for one in files if only is None or one in only]
        if not files:
            refuse(
                f"the files that were at `{file.path}` went away", "let them stay, and try again"
            )
        form = replace(form, kind=kind, base=base_of(place))
        match kind:
            case "CSV":
                found = _csv(survey, files, form)
            case "Parquet":
                found = _parquet(files, form)
            case _:
                found = _json(survey, files, form)
    return replace(found, bytes=sum(one.stat().st_size for one in found.files))


def _delta(form: FileForm, version: int | None) -> FileSet:
    path = form.base
    try:
        table = delta_table(path, version)
        names = [field.name for field in table.schema().fields]
        rows: Any = delta_rows(table)
        fields = [(n, plain_type(rows.schema.field(n).type)) for n in among(names, form.wanted)]
    except (DeltaError, *UNREADABLE) as problem:
        refuse_delta(path, problem, version)
    constants = _constants(path, rows, sizes_in(path, table))
    schema = pa.schema(fields)
    return FileSet(
        list(constants),
        replace(form, schema=schema, constants=constants),
        names,
        _item_types(path, schema),
        dataset=rows,
        is_plain=True,
        version=table.version(),
        table=str(table.metadata().id),
    )


def _constants(
    path: DataPlace, rows: Any, sizes: Mapping[str, int]
) -> dict[DataPlace, Mapping[str, Any]]:
    """The files of a Delta table, and the columns that its log has for them."""
    from pyarrow.dataset import get_partition_keys

    found: dict[DataPlace, Mapping[str, Any]] = {}
    for fragment in rows.get_fragments():
        keys = get_partition_keys(fragment.partition_expression)
        of = {name: pa.scalar(key, rows.schema.field(name).type) for name, key in keys.items()}
        found[table_file(path, fragment.path, sizes)] = of
    return found


@dataclass(frozen=True, slots=True)
class _ParquetColumns:
    """The columns of a Parquet file."""

    own: pa.Schema
    """Those within it."""
    names: Sequence[str]
    """Those that its folders name, too."""
    wanted: pa.Schema
    """Those that are read, in plain types."""
    plain: bool
    """Whether Spark reads these as Arrow does."""
    is_exact: bool
    """Whether a reading in microseconds loses no digit of their times."""


def _parquet(files: Sequence[DataPlace], form: FileForm) -> FileSet:
    folders = {file: folder_texts(file, form.base) for file in files}
    constants = _constants_of(folders, form)
    found: list[_ParquetColumns] = []
    first: list[DataPlace] = []
    for file in files:
        try:
            stored = _stored(file, form, (folders[file], constants[file]), found)
        except UNREADABLE as problem:
            refuse_parquet(file, problem, form.base)
        if not found or stored is not found[-1]:
            found.append(stored)
            first.append(file)
    own_columns = list(zip(first, (stored.wanted for stored in found), strict=True))
    schema = _common_schema(own_columns, form.declared)
    rows, is_plain = None, False
    # Arrow reads of a file what a folder names, too, if the file has it.
    twice = any(
        constants[file].keys() & {*s.own.names} for file, s in zip(first, found, strict=True)
    )
    if not twice and all(s.is_exact and s.wanted.equals(schema) for s in found):
        own = found[0].own
        known = [own.field(n) if n in own.names else schema.field(n) for n in schema.names]
        rows = files_with(constants, pa.schema(known))
        is_plain = all(stored.plain for stored in found)
    each = zip(first, (stored.names for stored in found), strict=True)
    undeclared = [field for field in schema if field.name not in form.declared]
    return FileSet(
        files,
        replace(form, schema=pa.schema(undeclared), constants=constants),
        list(dict.fromkeys(name for stored in found for name in stored.names)),
        {field.name: item_type(field.type) for field in schema},
        rows,
        is_plain,
        lacking=first_lacking(form.declared, each),
    )


def _constants_of(
    folders: Mapping[DataPlace, Mapping[str, str | None]], form: FileForm
) -> dict[DataPlace, Mapping[str, Any]]:
    """What folders say of the columns of files: values of the declared types, or of the one that
    all of them have.
    """
    names = among(dict.fromkeys(name for texts in folders.values() for name in texts), form.wanted)
    types = {
        name: form.declared[name]
        if name in form.declared
        else folder_type(texts[name] for texts in folders.values() if name in texts)
        for name in names
    }

    @cache
    def value(folder: DataPlace, name: str, text: str | None) -> Any:
        try:
            return folder_value(text, types[name])
        except ValueProblem as problem:
            if not form.tolerant:
                refuse(f"`{folder}` names the column `{name}`: {problem}", UNFIT)
            # Each row says then that it is none.
            return pa.scalar(text, pa.string())

    return {
        file: {
            name: value(file.parent, name, text) for name, text in texts.items() if name in types
        }
        for file, texts in folders.items()
    }


_Named = tuple[Mapping[str, str | None], Mapping[str, Any]]
"""What the folders of a file name: all columns, and the values of those that are read."""


def _stored(
    file: DataPlace, form: FileForm, named: _Named, before: Sequence[_ParquetColumns]
) -> _ParquetColumns:
    """The columns of a file; those of the last one `before` it, if they are the same: mostly they
    are. A landing may have thousands of files, so each is opened once.
    """
    with opened_parquet(file) as opened:
        own, is_exact = opened.schema_arrow, not may_be_finer(opened.metadata)
    folders, constants = named
    # What a folder names counts, as for Spark and Arrow, also if the file has such a column.
    names = [*(name for name in own.names if name not in folders), *folders]
    columns = among(names, form.wanted)
    plain = not constants and all(_spark_has(own.field(n).type) for n in columns)
    types = [constants[n].type if n in constants else own.field(n).type for n in columns]
    wanted = pa.schema([(name, plain_type(of)) for name, of in zip(columns, types, strict=True)])
    found = _ParquetColumns(own, names, wanted, plain, is_exact)
    if before and before[-1] == found:
        return before[-1]
    _item_types(file, wanted)
    return found


def _common_schema(
    each: Sequence[tuple[DataPlace, pa.Schema]], declared: Declared = MappingProxyType({})
) -> pa.Schema:
    """The columns of several files, in the types that hold what is in all of them; a column that
    is declared has that type where files differ, and each is read as it is.
    """
    common: dict[str, tuple[pa.DataType, DataPlace]] = {}
    for file, schema in each:
        for column in schema:
            before, first = common.setdefault(column.name, (column.type, file))
            if before == column.type:
                continue
            if column.name in declared:
                common[column.name] = arrow_type(declared[column.name]), first
                continue
            both = [pa.schema([("x", of)]) for of in (before, column.type)]
            try:
                wider = pa.unify_schemas(both, promote_options="permissive").field(0).type
            except pa.ArrowException:
                types = f"{before} in `{first}` and {column.type} in `{file}`"
                refuse(f"the column `{column.name}` is {types}", UNFIT)
            common[column.name] = wider, file if wider == column.type else first
    return pa.schema([(name, of) for name, (of, _) in common.items()])


def _item_types(place: DataPlace, columns: pa.Schema) -> Mapping[str, ItemType]:
    """The types of columns; one that no item has is refused."""
    types = {}
    for column in columns:
        try:
            types[column.name] = item_type(column.type)
        except ValueProblem:
            refuse(
                f"`{place}`: its column `{column.name}` is of type {column.type}, "
                "which no item has",
                "write it as a struct, an array or text, or leave it out of the schema",
            )
    return types


def _spark_has(found: pa.DataType) -> bool:
    """Whether Spark reads values of this type as Arrow does: moments of microseconds, say."""
    return plain_type(found) == found or found in (
        pa.large_string(),
        pa.large_binary(),
        pa.string_view(),
        pa.binary_view(),
        pa.dictionary(pa.int32(), pa.string()),
    )


def _csv(survey: Survey, files: Sequence[DataPlace], form: FileForm) -> FileSet:
    for name, declared in form.declared.items():
        csv_type(name, declared)
    headers = [header_of(file, form.wanted) for file in files]
    names = list(dict.fromkeys(name for header in headers for name in header))
    open_names = among(names, form.wanted)
    if form.tolerant or all(name in form.declared for name in open_names):
        typed = {n: csv_type(n, t) for n, t in form.declared.items() if n in names}
        # A column of which nothing is declared is text: one wrong field would tell its type.
        texts = {n: pa.string() for n in open_names if n not in typed}
        schema = pa.schema(list((typed | texts).items()))
    else:
        schemas = list(survey(partial(surveyed_csv, form=form), files))
        schema = _common_schema(list(zip(files, schemas, strict=True)))
    types = {field.name: item_type(field.type) for field in schema}
    lacking = first_lacking(form.declared, zip(files, headers, strict=True))
    return FileSet(files, replace(form, schema=schema), names, types, lacking=lacking)


def _json(survey: Survey, files: Sequence[DataPlace], form: FileForm) -> FileSet:
    if form.declared:
        return FileSet(files, form, [])
    answers = list(survey(surveyed_json, files))
    names = list(dict.fromkeys(name for _, found in answers for name in found))
    try:
        common: Any = merge(t for t, _ in answers)
    except ValueProblem as problem:
        refuse_untyped(form.base, problem)
    types = {f.name: f.type for f in common.fields} if isinstance(common, Row) else {}
    return FileSet(files, form, names, types)
