"""What the flights program means, written once more as SQL over the raw data: history recomputed
for every day.
"""

from __future__ import annotations

from datetime import date, timedelta

import duckdb
import pyarrow as pa

from assets.flights.landing import FIRST_DAY, raw_tables

_DEPARTURES = """
    select f.tail_number, f.day, f.carrier, f.flight, f.origin, f.destination, f.hour,
           f.scheduled_departure, f.departure_delay, f.arrival_delay, f.distance,
           p.year_built, p.manufacturer, p.model, p.seats,
           w.temperature, w.wind_speed, w.precipitation, w.visibility
    from flights f
    left join planes p on p.tail_number is not distinct from f.tail_number and p.day <= $day
    left join weather w on w.origin = f.origin and w.hour = f.hour and w.day = $day
    where f.day = $day
"""
_NEW_ROUTES = """
    select r.carrier, r.origin, r.destination, l.name as airline, a.name as destination_name
    from (
        select carrier, origin, destination from flights where day = $day
        except
        select carrier, origin, destination from flights where day < $day
    ) r
    left join airlines l on l.carrier = r.carrier
    left join airports a on a.airport = r.destination
"""
_DELAY_STATISTICS = """
    select carrier, origin, count(*) as flights,
           count(*) filter (departure_delay is null) as cancelled,
           count(*) filter (departure_delay > 15) as late,
           sum(departure_delay)::bigint as delay_minutes, max(departure_delay) as longest_delay
    from flights where day <= $day group by carrier, origin
    except
    select carrier, origin, count(*), count(*) filter (departure_delay is null),
           count(*) filter (departure_delay > 15),
           sum(departure_delay)::bigint, max(departure_delay)
    from flights where day < $day group by carrier, origin
"""
_BACK_IN_SERVICE = """
    select distinct tail_number from flights where day = $day and tail_number is not null
    except
    select tail_number from flights where day = $day - interval 1 day
"""
QUERIES = {
    "departures": _DEPARTURES,
    "new_routes": _NEW_ROUTES,
    "delay_statistics": _DELAY_STATISTICS,
    "back_in_service": _BACK_IN_SERVICE,
}


def day_of(tick: int) -> date:
    """The day of a tick."""
    return FIRST_DAY + timedelta(days=tick)


class ByHand:
    """The outputs of every tick by DuckDB, from the raw data alone."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("set timezone = 'UTC'")
        for name, table in raw_tables().items():
            self._connection.register(name, table)

    def output(self, name: str, tick: int) -> pa.Table:
        """The rows of output `name` at `tick`."""
        return self._connection.sql(QUERIES[name], params={"day": day_of(tick)}).to_arrow_table()

    def count(self, name: str, tick: int, got: pa.Table) -> tuple[int, int]:
        """How many rows of `got` are missing or too many, as bags: (0, 0) where it is right."""
        want = self.output(name, tick)
        columns = ", ".join(want.column_names)
        self._connection.register("got", got.select(want.column_names))
        self._connection.register("want", want)
        sides = []
        for left, right in (("want", "got"), ("got", "want")):
            query = (
                f"select count(*) from (select {columns} from {left}"
                f" except all select {columns} from {right})"
            )
            ((rows,),) = self._connection.execute(query).fetchall()
            sides.append(int(rows))
        return sides[0], sides[1]
