"""Schedules of what is asynchronous: protocols are safe, broken ones are found and made small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hydro_core.errors import DataError
from hydro_core.lang.rules.translate import read_rules
from hydro_core.validation.simulation.schedules import (
    GroundFact,
    Limits,
    ScheduledRules,
    ScheduleSearch,
    SearchProgress,
    Story,
    replay,
    shown,
    smallest,
)
from tests.support.refused import Refused

EXAMPLES = Path(__file__).parents[4] / "examples" / "rules"
PROTOCOLS = ("paxos", "two_phase_commit", "multi_paxos")
FOURTH = ('acceptor("a3").', 'acceptor("a3"). acceptor("a4").')
ONE = ("quorum(2)", "quorum(1)")
ANY_BALLOT = {
    "paxos": ("accept(a, b, v), promised(a, b).", "accept(a, b, v)."),
    "multi_paxos": ("accept(a, b, place, c), promised(a, b).", "accept(a, b, place, c)."),
}
BROKEN = [
    pytest.param("paxos", FOURTH, id="half of four is no quorum", marks=pytest.mark.slow),
    pytest.param("paxos", ONE, id="one is no quorum"),
    pytest.param("paxos", ANY_BALLOT["paxos"], id="what was promised must be kept"),
    pytest.param(
        "paxos",
        ("answer(_, b, last, v), last > 0,", "ballot(b, _, v), last > 0,"),
        id="what was accepted must be proposed",
    ),
    pytest.param(
        "multi_paxos",
        FOURTH,
        id="half of four is no quorum for a log either",
        marks=pytest.mark.slow,
    ),
    pytest.param(
        "multi_paxos",
        ANY_BALLOT["multi_paxos"],
        id="nor may old leaders write",
        marks=pytest.mark.slow,
    ),
    pytest.param(
        "multi_paxos",
        ("answered(a, b), expected(a, b, n), told(a, b, n)", "answered(a, b), expected(a, b, n)"),
        id="a promise without its log is none",
        marks=pytest.mark.slow,
    ),
    pytest.param(
        "two_phase_commit",
        (
            'decide(t, "abort") :- timeout(t), !decided(t, _), !ready(t).',
            'decide(t, "abort") :- timeout(t), !decided(t, _).',
        ),
        id="no transaction is decided twice",
    ),
    pytest.param(
        "two_phase_commit",
        ("agreed(t, n), participants(n), !decided", "agreed(t, n), n > 1, !decided"),
        id="all must agree",
    ),
]


LIMITS = Limits()


def text_of(name: str) -> str:
    return (EXAMPLES / f"{name}.dl").read_text(encoding="utf-8")


def explored(text: str, schedules: int, seed: int = 0, limits: Limits = LIMITS) -> SearchProgress:
    return ScheduleSearch(ScheduledRules(read_rules(text)), (), limits).run(schedules, seed)


@pytest.mark.parametrize("duplicates", [False, True], ids=["once", "duplicates"])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_is_safe(name: str, duplicates: bool) -> None:
    limits = Limits(30, duplicates) if duplicates else Limits()
    assert explored(text_of(name), 10, limits=limits).found is None


@pytest.mark.slow
@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_is_safe_in_a_thousand_schedules(name: str) -> None:
    assert explored(text_of(name), 1_000).found is None


@pytest.mark.parametrize(("name", "change"), BROKEN)
def test_a_broken_protocol_is_found(name: str, change: tuple[str, str]) -> None:
    text = text_of(name)
    assert change[0] in text
    rules = ScheduledRules(read_rules(text.replace(*change)))
    done = ScheduleSearch(rules, (), Limits()).run(2_000, 0)
    assert done.found is not None
    story = smallest(rules, (), done.found, Limits())
    assert story.size <= Story((), done.found.arrived, story.violation).size
    assert _is_least(rules, story)


def _is_least(rules: ScheduledRules, story: Story) -> bool:
    """Without any one of its messages, the schedule breaks nothing."""
    for at, facts in enumerate(story.arrived):
        for fact in facts:
            arrived = [f - {fact} if i == at else f for i, f in enumerate(story.arrived)]
            found = replay(rules, story.given, arrived, Limits()).violation
            if found is not None and found.never == story.violation.never:
                return False
    return replay(rules, story.given, story.arrived, Limits()).violation == story.violation


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_comes_to_its_end(name: str) -> None:
    """What never happens is safe, too: here something does, on most ways."""
    wanted = {"paxos": "learned", "two_phase_commit": "done", "multi_paxos": "learned"}[name]
    rules = ScheduledRules(read_rules(text_of(name)), shown=True)
    run, arriving, last = rules.run(), frozenset[GroundFact](), frozenset[GroundFact]()
    for _ in range(20):
        outcome = run.tick(arriving)
        arriving, last = outcome.sent - last, outcome.sent
    rows = [row for number, row in outcome.holds if number == rules.numbers[wanted]]
    expected = {"paxos": 1, "two_phase_commit": 9, "multi_paxos": 2}[name]
    assert len(rows) == expected, rows


def test_the_same_seed_tells_the_same_story_in_every_process() -> None:
    program = (
        "from tests.unit.validation.simulation.test_schedules import *\n"
        "rules = ScheduledRules(read_rules(text_of('paxos').replace(*ONE)))\n"
        "done = ScheduleSearch(rules, (), Limits()).run(2_000, 3)\n"
        "story = smallest(rules, (), done.found, Limits())\n"
        "print(done.number, [shown(rules, facts) for facts in story.arrived])\n"
    )
    root = Path(__file__).parents[4]
    told = [
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=root,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]
    assert "accept" in told[0]


DELAYED = """
.input ping(n: long)
pong(n)@async :- ping(n).
seen(n) :- pong(n).
seen(n)@next :- seen(n).
.output seen
"""


def test_messages_are_reordered_delayed_and_merged() -> None:
    """Each of these happens in some schedule: what must never hold says that it does not."""
    never = (
        "seen(2), !seen(1)",  # sent later, arrives sooner
        "seen(1), seen(2), pong(1), pong(2)",  # sent at different ticks, arrive at one
        "late(1), !seen(1)",  # takes long
    )
    late = "tock(1)@next :- ping(2). late(n)@next :- tock(n). late(n)@next :- late(n).\n"
    for invariant in never:
        rules = ScheduledRules(read_rules(f"{DELAYED}{late}.never {invariant}.\n"))
        ping = rules.numbers["ping"]
        given = [frozenset({(ping, (1,))}), frozenset({(ping, (2,))})]
        done = ScheduleSearch(rules, given, Limits()).run(500, 0)
        assert done.found is not None, invariant
        story = smallest(rules, given, done.found, Limits())
        assert story.violation.never == 0
    assert explored(f"{DELAYED}.never pong(n), !seen(n).", 50).found is None


def test_what_arrives_twice_is_found_where_that_is_asked_for() -> None:
    counted = """
        go()@0.
        add(1)@async :- go().
        total(n + k)@next :- total(n), add(k).
        total(n)@next :- total(n), !add(_).
        total(0)@0.
        .output total
        .never total(n), n > 1.
    """
    assert explored(counted, 200).found is None
    found = explored(counted, 200, limits=Limits(duplicates=True)).found
    assert found is not None


def test_an_expression_that_fails_is_named(refused: Refused) -> None:
    text = "n(0). p(x) :- n(y), x = (1 // y). .never p(_).\n.output p\n"
    with refused(DataError, "runtime", at="1:25") as caught:
        explored(text, 1)
    span = caught.value.diagnostics[0].span
    assert span is not None
    assert span.line == 1


def test_facts_are_shown_as_they_are_written() -> None:
    rules = ScheduledRules(
        read_rules('p(1, "a", null, true). q(). .never p(_, _, _, _), q().\n'), shown=True
    )
    facts = rules.run().tick(()).holds
    assert shown(rules, facts) == 'p(1, "a", null, true), q()'
