"""Deployments in a store: there as a whole or not at all, whoever else writes one meanwhile."""

from __future__ import annotations

from contextlib import suppress

import pytest

from hydro_core.artifact.deployment import (
    Deployment,
    deployment_name,
    deployment_numbers,
    newest_deployment,
    read_deployment,
    remove_deployment,
    write_deployment,
)
from hydro_core.artifact.make import deployment_of
from hydro_core.compile import compile_text
from hydro_core.errors import DataError, HydroError
from hydro_core.optimize.optimizer import optimize
from tests.support.refused import Refused
from tests.support.store_server import StoreServer

PROGRAM = 'pay = source("user string, amount long")\npay -> persist() -> {} -> out\n'


@pytest.fixture(scope="module")
def made() -> tuple[Deployment, Deployment]:
    found = []
    for step in ("unique()", 'aggregate(by="user", total=sum("amount"))'):
        typed = compile_text(PROGRAM.format(step)).typed
        found.append(deployment_of("shop", typed, optimize(typed)))
    return found[0], found[1]


def test_they_are_read_as_they_were_written(
    server: StoreServer, made: tuple[Deployment, Deployment]
) -> None:
    place = server.at("pipelines/shop")
    assert deployment_numbers(place) == ()
    assert [write_deployment(place, one) for one in made] == [1, 2]
    assert deployment_numbers(place) == (1, 2)
    assert [read_deployment(place, number) for number in (1, 2)] == list(made)
    found = newest_deployment(place, deployment_name(made[0]))
    assert found is not None
    assert (found.number, found.deployment) == (1, made[0])
    remove_deployment(place, 1)
    assert deployment_numbers(place) == (2,)
    assert list((place / "deployments" / "1").files()) == []


def test_one_that_was_changed_is_refused(
    server: StoreServer, made: tuple[Deployment, Deployment], refused: Refused
) -> None:
    place = server.at("pipelines/shop")
    number = write_deployment(place, made[0])
    [file] = [f for f in (place / "deployments").files() if f.name == "program.json"]
    file.write_bytes(b'{"p.hydro": "another"}\n')
    with refused(DataError, "state"):
        read_deployment(place, number)


@pytest.mark.parametrize("lost", [False, True], ids=["refused", "done and refused"])
def test_at_every_request_the_store_fails(
    server: StoreServer, made: tuple[Deployment, Deployment], lost: bool
) -> None:
    place, at = server.at("pipelines/shop"), 1
    write_deployment(place, made[0])
    while True:
        before = deployment_numbers(place)

        def fault(
            number: int, *_: str, at: int = at
        ) -> tuple[int, str] | tuple[int, str, bool] | None:
            if number != at:
                return None
            return (403, "AccessDenied", True) if lost else (403, "AccessDenied")

        with server.failing(fault), suppress(HydroError):
            write_deployment(place, made[1])
        done = len(server.asked) < at
        # All that are there are whole.
        for number in deployment_numbers(place):
            assert read_deployment(place, number) == made[0 if number == 1 else 1]
        assert deployment_numbers(place) in (before, (*before, len(before) + 1))
        if done:
            return
        at += 1


def test_two_who_write_at_once_have_two_numbers(
    server: StoreServer, made: tuple[Deployment, Deployment]
) -> None:
    place = server.at("pipelines/shop")
    written: list[int] = []

    def other(_: int, method: str, path: str) -> None:
        if method == "PUT" and path.endswith("/1/deployment.json") and not written:
            written.append(1)
            written.append(write_deployment(place, made[0]))

    with server.failing(other):
        number = write_deployment(place, made[1])
    assert (written, number) == ([1, 1], 2)
    assert [read_deployment(place, n) for n in (1, 2)] == list(made)
    # What was written for the number that another took is gone.
    assert len(list((place / "deployments" / "1").files())) == 4
