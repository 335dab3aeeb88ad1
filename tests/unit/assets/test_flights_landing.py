"""What lands is what the package holds: the counts are those of its raw files."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from assets.flights.landing import FIRST_DAY, LandedTables, land, raw_tables, read

ROWS = {"flights": 336_776, "weather": 26_115, "planes": 3_322, "airlines": 16, "airports": 1_458}


@pytest.fixture(scope="module")
def raw() -> dict[str, pa.Table]:
    return dict(raw_tables())


def test_no_row_of_the_year_is_lost(raw: dict[str, pa.Table]) -> None:
    assert {name: table.num_rows for name, table in raw.items()} == ROWS


def test_a_null_is_a_flight_that_did_not_leave_or_arrive(raw: dict[str, pa.Table]) -> None:
    nulls = {name: raw["flights"][name].null_count for name in raw["flights"].column_names}
    assert {name: count for name, count in nulls.items() if count} == {
        "tail_number": 2_512,
        "departure": 8_255,
        "departure_delay": 8_255,
        "arrival": 9_430,
        "arrival_delay": 9_430,
        "air_time": 9_430,
    }


def test_a_flight_takes_longer_than_it_is_in_the_air(raw: dict[str, pa.Table]) -> None:
    """Departure and arrival are instants: had a time zone gone wrong, whole hours would be
    missing."""
    flights = raw["flights"]
    whole = pc.subtract(flights["arrival"], flights["departure"]).cast(pa.int64())
    on_ground = pc.subtract(pc.divide(whole, 60_000_000), flights["air_time"])
    assert pc.min(on_ground).as_py() > 0
    assert pc.max(on_ground).as_py() < 5 * 60


def test_clocks_become_instants(raw: dict[str, pa.Table]) -> None:
    """The first flight of the data left Newark at 5:17 and landed in Houston, an hour west, at
    8:30."""
    wanted = (
        (pc.field("day") == FIRST_DAY)
        & (pc.field("carrier") == "UA")
        & (pc.field("flight") == 1545)
    )
    (flight,) = raw["flights"].filter(wanted).to_pylist()
    assert flight["departure"] == dt.datetime(2013, 1, 1, 10, 17, tzinfo=dt.UTC)
    assert flight["arrival"] == dt.datetime(2013, 1, 1, 14, 30, tzinfo=dt.UTC)


def test_every_clock_shows_what_the_data_says(raw: dict[str, pa.Table]) -> None:
    """The way back, by another engine: local times of the landed instants are the raw ones."""
    wrong = """
        select count(*) from raw r
        join landed f on make_date(r.year, r.month, r.day) = f.day
            and (r.carrier, r.flight, r.origin) = (f.carrier, f.flight, f.origin)
        left join airports a on a.airport = f.destination
        where strftime(timezone('America/New_York', f.scheduled_departure), '%H%M')::int
                <> r.sched_dep_time
            or strftime(timezone(coalesce(a.time_zone, 'America/Puerto_Rico'), f.scheduled_arrival),
                '%H%M')::int <> r.sched_arr_time % 2400
    """
    with duckdb.connect() as db:
        db.register("raw", read("flights"))
        db.register("landed", raw["flights"])
        db.register("airports", raw["airports"])
        joined = wrong.partition("left join")[0]
        assert db.sql(joined).fetchall() == [(ROWS["flights"],)]
        assert db.sql(wrong).fetchall() == [(0,)]


def test_weather_of_the_hour_is_there_for_nearly_every_flight(raw: dict[str, pa.Table]) -> None:
    keys = ["day", "origin", "hour"]
    joined = raw["flights"].join(raw["weather"].select(keys), keys, join_type="left semi")
    assert joined.num_rows == 335_220


def test_aircraft_are_known_from_their_first_day_on(raw: dict[str, pa.Table]) -> None:
    first = dict(
        raw["flights"].group_by("tail_number").aggregate([("day", "min")]).to_pandas().to_numpy()
    )
    assert all(first[row["tail_number"]] == row["day"] for row in raw["planes"].to_pylist())


def test_landing_appends_days_and_only_days(tmp_path: Path, raw: dict[str, pa.Table]) -> None:
    land(tmp_path, days=2)
    landed = land(tmp_path, days=3)
    again = land(tmp_path, days=1)

    assert again == landed == LandedTables.under(tmp_path)
    whole = {name: _days_of(table, 3) for name, table in raw.items()}
    for name, path in landed.paths().items():
        table = DeltaTable(path)
        assert table.to_pyarrow_table().num_rows == whole[name].num_rows
        assert table.version() == (1 if name in {"flights", "weather", "planes"} else 0)


def test_days_that_the_data_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="365 days"):
        land(tmp_path, days=366)


def _days_of(table: pa.Table, days: int) -> pa.Table:
    return table.filter(pc.field("day") < FIRST_DAY + dt.timedelta(days=days))
