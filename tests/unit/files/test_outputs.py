from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from hydro_core.errors import HydroError
from hydro_core.files.outputs import OutputFiles
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import LONG, UNKNOWN, Array, Order, Row, StreamType, Tuple
from hydro_core.types.values import RowItem, Struct
from tests.support.refused import Refused


def written(path: Path, schema: str, items: list[Any], order: Order = Order.NONE) -> pa.Table:
    with OutputFiles(path, {"out": StreamType(parse_ddl(schema), order)}) as files:
        files.write(0, {"out": items})
        files.write(1, {"out": []})
        files.write(2, {"out": items[:1]})
    return pyarrow.parquet.read_table(path / "out")


def test_a_row(tmp_path: Path) -> None:
    at = datetime(2024, 1, 1, tzinfo=UTC)
    row = RowItem(k="a", price=Decimal("2.50"), at=at, pair=Struct((1, None)), tags=["x"])
    table = written(
        tmp_path,
        "k string, price decimal(4,2), at timestamp, pair (long, string), tags array<string>",
        [row],
    )
    assert table.column_names == ["tick", "k", "price", "at", "pair", "tags"]
    assert table.to_pylist()[1] == {
        "tick": 2,
        "k": "a",
        "price": Decimal("2.50"),
        "at": at,
        "pair": {"_1": 1, "_2": None},
        "tags": ["x"],
    }


def test_a_tuple_in_an_order(tmp_path: Path) -> None:
    table = written(
        tmp_path, "(long, string)", [Struct((2, "b")), Struct((1, "a")), None], Order.TOTAL
    )
    assert table.to_pylist() == [
        {"tick": 0, "_1": 2, "_2": "b", "position": 0},
        {"tick": 0, "_1": 1, "_2": "a", "position": 1},
        {"tick": 0, "_1": None, "_2": None, "position": 2},
        {"tick": 2, "_1": 2, "_2": "b", "position": 0},
    ]


def test_scalars_arrays_and_null(tmp_path: Path) -> None:
    assert written(tmp_path / "a", "long", [1, None]).column("item").to_pylist() == [1, None, 1]
    assert written(tmp_path / "b", "array<long>", [[1], []]).column("item").to_pylist() == [
        [1],
        [],
        [1],
    ]


def test_an_output_of_unknown_items(tmp_path: Path) -> None:
    with OutputFiles(tmp_path, {"out": StreamType(UNKNOWN)}) as files:
        files.write(0, {"out": []})
    assert pyarrow.parquet.read_table(tmp_path / "out").num_rows == 0


@pytest.mark.parametrize(
    ("schema", "order"), [("tick long", Order.NONE), ("position long, k string", Order.TOTAL)]
)
def test_a_column_that_the_files_need(
    tmp_path: Path, schema: str, order: Order, refused: Refused
) -> None:
    with refused(HydroError, "type"):
        written(tmp_path, schema, [], order)


def test_a_position_of_its_own_where_there_is_no_order(tmp_path: Path) -> None:
    assert written(tmp_path, "position long", [RowItem(position=7)]).column_names == [
        "tick",
        "position",
    ]


def test_a_second_run_replaces_the_first(tmp_path: Path) -> None:
    written(tmp_path, "long", [1, 2])
    assert written(tmp_path, "string", ["a"]).column("item").to_pylist() == ["a", "a"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_what_others_have_written_is_not_touched(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "out").mkdir()
    pyarrow.parquet.write_table(pa.table({"a": [1]}), tmp_path / "out" / "x.parquet")
    with refused(HydroError, "config"):
        written(tmp_path, "long", [1])
    assert [p.name for p in tmp_path.rglob("*.parquet")] == ["x.parquet"]


@pytest.mark.parametrize("below", ["", "below"])
def test_a_file_is_no_folder_of_outputs(tmp_path: Path, below: str, refused: Refused) -> None:
    (tmp_path / "there").write_text("a program")
    stream = StreamType(parse_ddl("long"))
    with refused(HydroError, "config"):
        OutputFiles(tmp_path / "there" / below, {"out": stream})
    assert (tmp_path / "there").read_text() == "a program"


def test_a_run_that_fails_leaves_nothing_new(tmp_path: Path) -> None:
    written(tmp_path, "long", [1])

    def fail() -> None:
        with OutputFiles(tmp_path, {"out": StreamType(parse_ddl("long"))}) as files:
            files.write(0, {"out": [5]})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert pyarrow.parquet.read_table(tmp_path / "out").column("item").to_pylist() == [1, 1]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_an_output_whose_name_is_no_file_name(tmp_path: Path, refused: Refused) -> None:
    with refused(HydroError, "config"):
        OutputFiles(tmp_path, {"../out": StreamType(parse_ddl("long"))})


UNFIT = ["a\0b", "a/b", "..", ".hidden", "x" * 256, "ö" * 128, "a\nb"]


@pytest.mark.parametrize("name", UNFIT)
def test_a_name_that_no_folder_has_is_refused(tmp_path: Path, name: str, refused: Refused) -> None:
    with refused(HydroError, "config") as caught:
        OutputFiles(tmp_path / "out", {"fine": StreamType(LONG), name: StreamType(LONG)})
    assert str(caught.value).isprintable() or "\0" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("names", [("out", "Out"), ("é", "e\u0301"), ("ss", "ß")])
def test_names_that_would_share_a_folder_are_refused(
    tmp_path: Path, names: tuple[str, str], refused: Refused
) -> None:
    with refused(HydroError, "config"):
        OutputFiles(tmp_path / "out", {name: StreamType(LONG) for name in names})


def test_other_names_are_those_of_their_folders(tmp_path: Path) -> None:
    names = [
        "x!",
        "x?",
        "x*",
        "[x]",
        "{x,y}",
        "out",
        "out_",
        "_out",
        "a b",
        "0",
        "1",
        "a\\b",
        "a%20",
    ]
    for _ in range(2):  # written again, what was there is replaced
        with OutputFiles(tmp_path, {name: StreamType(LONG) for name in names}) as files:
            files.write(0, {name: [number] for number, name in enumerate(names)})
    assert sorted(folder.name for folder in tmp_path.iterdir()) == sorted(names)
    for number, name in enumerate(names):
        found = pyarrow.parquet.ParquetFile(tmp_path / name / "part-00000.parquet").read()
        assert found["item"].to_pylist() == [number]


def test_a_row_without_columns_is_its_tick_alone(tmp_path: Path) -> None:
    stream = StreamType(Row(()), Order.NONE)
    with OutputFiles(tmp_path, {"out": stream}) as files:
        files.write(0, {"out": [RowItem(), RowItem()]})
    assert pyarrow.parquet.read_table(tmp_path / "out").to_pydict() == {"tick": [0, 0]}


def test_rows_without_columns_inside_an_item_have_no_place_in_a_file(
    tmp_path: Path, refused: Refused
) -> None:
    stream = StreamType(Tuple((LONG, Array(Row(())))), Order.NONE)
    with refused(HydroError, "type"):
        OutputFiles(tmp_path, {"out": stream})
    assert not list(tmp_path.iterdir())
