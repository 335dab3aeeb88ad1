"""The flights of New York's airports in 2013 as a flow: a tick a day, all of the year."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from hydro_core import Expect, FlowAsset, Landing, Ticks


def _land(landing: Path) -> None:
    """Lands the whole year; days that are there stay as they are."""
    from .landing import land

    land(landing / "flights")


FLIGHTS = FlowAsset(
    name="flights",
    program=Path(__file__).with_name("flights.hydro"),
    description="Departures from EWR, JFK and LGA with aircraft and weather, routes, delays.",
    ticks=Ticks(
        start=datetime(2013, 1, 1, tzinfo=UTC), every="1d", end=datetime(2014, 1, 1, tzinfo=UTC)
    ),
    inputs={
        name: Landing(path=f"flights/{name}", column="day")
        for name in ("flights", "weather", "planes", "airlines", "airports")
    },
    expect={
        "departures": (
            Expect("carrier", not_null=True),
            Expect("origin", one_of=("EWR", "JFK", "LGA")),
            Expect("distance", at_least=1),
        ),
        "new_routes": (Expect("airline", not_null=True),),
        "delay_statistics": (Expect("flights", at_least=1), Expect("cancelled", at_least=0)),
        "back_in_service": (Expect("tail_number", not_null=True, unique=True),),
    },
    outputs={
        "departures": (
            "Every flight of the day with its aircraft, as far as known, and its hour's weather."
        ),
        "new_routes": "Carrier, origin and destination that were never flown before this day.",
        "delay_statistics": (
            "Flights, cancellations and delays per carrier and origin up to the day: what changed."
        ),
        "back_in_service": "Aircraft that fly on the day and did not fly the day before.",
    },
    land=_land,
)
