"""Flows take turns: none waits for longer than one piece of work of each other."""

from __future__ import annotations

from hydrotick.worker.service import Fit, WorkerJob, WorkQueue

FIT = Fit("/shop", "c0de", "", "")


def _job(flow: str) -> WorkerJob:
    return WorkerJob(flow, FIT, {"run": f"of {flow}"})


def test_a_flow_with_much_to_do_keeps_no_other_waiting() -> None:
    turns = WorkQueue()
    for flow in ("year", "year", "year", "day", "hour"):
        turns.add(_job(flow))
    done = []
    while len(turns):
        job = turns.next(set())[0]
        turns.take(job)
        done.append(job.flow)
        if done == ["year", "day"]:
            # Who has had a turn goes behind those who wait for their first.
            turns.add(_job("day"))
    assert done == ["year", "day", "hour", "year", "day", "year"]


def test_of_a_flow_one_piece_of_work_goes_on_in_the_order_that_it_was_asked_for() -> None:
    turns, first, second, other = WorkQueue(), _job("a"), _job("a"), _job("b")
    for job in (first, second, other):
        turns.add(job)
    assert turns.next({"a"}) == [other]
    assert turns.next(set()) == [first, other]
    assert turns.next({"a", "b"}) == []


def test_what_is_not_wanted_any_more_has_no_turn() -> None:
    turns, job = WorkQueue(), _job("a")
    turns.add(job)
    assert turns.drop(job)
    assert not turns.drop(job)
    assert not len(turns)
    assert job.as_json()["run"] == "of a"
