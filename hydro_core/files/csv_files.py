"""CSV: its records as columns of types, and the rows that are none.

Arrow converts blocks of whole records (`csv_records`). Which fields of a block do not fit is asked
only where it refuses the block, so rejects cost nothing where there are none. Who reads strictly
refuses a file for its first reject; who is tolerant has the rejects beside the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.files.csv_records import Records, parsed, records_of
from hydro_core.files.kinds import ReadNames, among
from hydro_core.files.plain import in_types_of, item_type, plain_table, plain_type
from hydro_core.files.row_batch import ArrowRows, FileForm, Reject
from hydro_core.files.unreadable import UNREADABLE, refuse, refuse_file
from hydro_core.storage.remote import DataPlace
from hydro_core.types.arrow import arrow_type
from hydro_core.types.item import BINARY, BOOLEAN, FLOATS, INTEGERS, Decimal, ItemType, Scalar
from hydro_core.types.values import describe

_NUMBERS = frozenset(Scalar(name) for name in INTEGERS + FLOATS)
_TIGHTEST_FIRST = (
    *(pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s")),
    *(pa.timestamp("s"), pa.timestamp("ns"), pa.float64(), pa.string()),
)
"""The types of columns of which none is declared: the first that all fields are of."""
_ALSO: Mapping[pa.DataType, Collection[pa.DataType]] = {
    pa.null(): _TIGHTEST_FIRST,
    pa.int64(): (pa.float64(),),
    pa.date32(): (pa.timestamp("s"),),
}
"""Types whose fields are all of other types, too."""
_Types = Mapping[int, pa.DataType]
"""Columns by their places in the file."""
_MISFIT = "mend the file, or declare the type that the column has"
_RAGGED = "mend the line; a field that holds a comma or a line's end is quoted"


def header_of(file: DataPlace, wanted: ReadNames) -> list[str]:
    """The names of the columns of a file, each of which that is read stands there once."""
    try:
        with closing(records_of(file)) as found:
            header, _ = next(found)
    except UNREADABLE as problem:
        refuse_file(file, problem)
    twice = [name for name, count in Counter(among(header, wanted)).items() if count > 1]
    if twice:
        refuse(
            f"`{file}` has several columns `{twice[0]}`",
            "give each a name of its own in the file's first line",
        )
    return header


def csv_type(name: str, item: ItemType) -> pa.DataType:
    """How a column is read: dates, timestamps and decimals as text, of which they are made."""
    if not isinstance(item, Scalar | Decimal) or item == BINARY:
        refuse(
            f"the column `{name}` is of type {item}, which CSV has no form for",
            "use Parquet or JSON lines",
        )
    return arrow_type(item) if item == BOOLEAN or item in _NUMBERS else pa.string()


def csv_rows(file: DataPlace, form: FileForm) -> Iterator[ArrowRows]:
    """The rows of a file, block by block; those that are none, too, if the form is tolerant."""
    known = {field.name: field.type for field in form.schema or ()}
    for header, records in records_of(file):
        block = _Block(records, header)
        types = {n: known.get(header[n], pa.string()) for n in _places(header, form.wanted)}
        table, rejects = block.rows(types)
        if not form.tolerant:
            _refuse_first(file, block, rejects)
        wrong = {row: reject.reason for row, reject in rejects.items()}
        yield ArrowRows(in_types_of(plain_table(table), form.schema), header, wrong, records)


def surveyed_csv(file: DataPlace, form: FileForm) -> pa.Schema:
    """The wanted columns of a file and their types: those that all of its rows have."""
    fit: dict[int, list[pa.DataType]] = {}
    names: list[str] = []
    try:
        for header, records in records_of(file):
            names, block = header, _Block(records, header)
            for place in _places(header, form.wanted):
                if header[place] not in form.declared:
                    fit.setdefault(place, list(_TIGHTEST_FIRST))
            if not block.narrow(fit):
                _refuse_first(file, block, block.rows({})[1])
    except UNREADABLE as problem:
        refuse_file(file, problem)
    declared = {n: csv_type(n, t) for n, t in form.declared.items()}
    found = {names[place]: plain_type(types[0]) for place, types in fit.items()}
    return pa.schema([(n, declared.get(n) or found[n]) for n in among(names, form.wanted)])


def _places(header: list[str], wanted: ReadNames) -> list[int]:
    return [place for place, name in enumerate(header) if wanted is None or name in wanted]


def _refuse_first(file: DataPlace, block: _Block, rejects: Mapping[int, Reject]) -> None:
    if rejects:
        row = min(rejects)
        rejects[row].refuse(file, block.records[row].number)


@dataclass(frozen=True, slots=True)
class _Block:
    """Records, and the names of their columns."""

    records: Records
    header: list[str]

    def rows(self, types: _Types) -> tuple[pa.Table, Mapping[int, Reject]]:
        """The records as columns of types, and those that are none: they are null."""
        ragged: list[Any] = []
        misfits: list[tuple[int, Reject]] = []
        content = self.records.right()
        try:
            table = self._parsed(content, types, ragged)
        except pa.ArrowInvalid:
            ragged.clear()
            table = self._parsed(content, dict.fromkeys(types, pa.string()), ragged)
            for at, (name, of) in enumerate(zip(table.column_names, types.values(), strict=True)):
                texts = table.column(at).combine_chunks()
                column, wrong = _typed(texts, of)
                table = table.set_column(at, name, column)
                misfits += ((n, _misfit(name, texts[n].as_py(), of)) for n in wrong)
        if not (ragged or misfits or self.records.wrong):
            return table, {}
        return self._beside_rejects(table, ragged, misfits)

    def narrow(self, fit: Mapping[int, list[pa.DataType]]) -> bool:
        """Takes the types of columns away that a field is not of; gives whether all are rows."""
        ragged: list[Any] = []

        def fits(types: _Types) -> bool:
            try:
                self._parsed(self.records.right(), types, ragged)
            except pa.ArrowInvalid:
                return False
            return True

        untested = {place: types[:-1] for place, types in fit.items()}
        while asked := {place: types[0] for place, types in untested.items() if types}:
            all_fit = fits(asked)
            for place, of in asked.items():
                is_fit = all_fit or fits({place: of})
                if not is_fit:
                    fit[place].remove(of)
                known = (of, *(_ALSO.get(of, ()) if is_fit else ()))
                untested[place] = [t for t in untested[place] if t not in known]
        return not (ragged or self.records.wrong)

    def _parsed(self, content: bytes, types: _Types, ragged: list[Any]) -> pa.Table:
        """Records as Arrow reads them, without those of another number of fields."""
        # Names may stand twice in a header, places do not; without any column, rows are counted.
        names = [str(place) for place in range(len(self.header))]
        read = dict(types) or {0: pa.string()}
        table = parsed(content, names, {names[n]: of for n, of in read.items()}, ragged)
        return table.rename_columns([self.header[n] for n in read])

    def _beside_rejects(
        self, table: pa.Table, ragged: list[Any], misfits: list[tuple[int, Reject]]
    ) -> tuple[pa.Table, Mapping[int, Reject]]:
        """Rows of a table at the places of their records, with nulls where a record is no row."""
        rejects, count = dict(self.records.wrong), len(self.records)
        right = [n for n in range(count) if n not in rejects]
        for row in ragged:
            problem = (
                f"has {row.actual_columns} fields, and the file's first line {len(self.header)}"
            )
            rejects[right[row.number - 1]] = Reject(problem, _RAGGED)
        rows = [n for n in range(count) if n not in rejects]
        places: Any = np.full(count, -1)
        places[rows] = range(len(rows))
        table = table.take(pa.array(places, pa.int64(), mask=places < 0))
        for n, reject in misfits:
            rejects.setdefault(rows[n], reject)
        return table, rejects


def _misfit(column: str, value: str, of: pa.DataType) -> Reject:
    return Reject(f"{describe(value)} is not of type {item_type(of)}", _MISFIT, column)


def _typed(texts: Any, of: pa.DataType) -> tuple[Any, list[int]]:
    """Fields as values of a type, as Arrow converts those of a file, and those that are none."""
    if pa.types.is_string(of):
        return texts, []
    # Asked of Arrow one by one, wrong fields take 200 times as long as right ones.
    wrong = [n for n, t in enumerate(texts.to_pylist()) if t is not None and _cannot_be(t, of)]
    if wrong:
        right = np.ones(len(texts), bool)
        right[wrong] = False
        texts = pc.if_else(pa.array(right), texts, None)
    column, others = _asked(texts, of)
    return column, [*wrong, *others]


def _cannot_be(text: str, of: pa.DataType) -> bool:
    """Whether a field is surely none of a type: Python takes all that Arrow takes, but for 0x1F."""
    try:
        if pa.types.is_boolean(of):
            return text.strip().lower() not in ("true", "false", "0", "1")
        if pa.types.is_floating(of):
            float(text)
        elif pa.types.is_integer(of):
            return not -(1 << of.bit_width - 1) <= int(text) < 1 << of.bit_width - 1
    except ValueError:
        return "0x" not in text.lower()
    return False


def _asked(texts: Any, of: pa.DataType) -> tuple[Any, list[int]]:
    """The same by asking Arrow for all fields, for halves of them, and at last for single ones."""
    fields = ("" if t is None else '"' + t.replace('"', '""') + '"' for t in texts.to_pylist())
    content = "".join(f"{field},\n" for field in fields).encode()
    try:
        return parsed(content, ["x", "end"], {"x": of}).column("x").combine_chunks(), []
    except pa.ArrowInvalid:
        if len(texts) == 1:
            nothing: Any = pa.array([None], of)
            return nothing, [0]
    half = len(texts) // 2
    first, wrong = _asked(texts.slice(0, half), of)
    second, others = _asked(texts.slice(half), of)
    return pa.concat_arrays([first, second]), [*wrong, *(half + n for n in others)]
