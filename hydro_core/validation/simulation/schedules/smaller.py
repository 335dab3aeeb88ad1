"""A schedule that ends where it must not is made smaller: fewer messages, rows and ticks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hydro_core.validation.simulation.schedules.explore import (
    ComingIn,
    KnownTicks,
    Limits,
    Played,
    replay,
)
from hydro_core.validation.simulation.schedules.machine import GroundFact, RuleMachine, Violation

Facts = frozenset[GroundFact]


@dataclass(frozen=True, slots=True)
class Story:
    """What comes in and what arrives, tick by tick, and what that leads to."""

    given: tuple[Facts, ...]
    arrived: tuple[Facts, ...]
    violation: Violation

    @property
    def size(self) -> tuple[int, int]:
        """How many facts come in or arrive, and in how many ticks."""
        facts = sum(map(len, self.given)) + sum(map(len, self.arrived))
        return facts, len(self.arrived)


def smallest(machine: RuleMachine, given: ComingIn, played: Played, limits: Limits) -> Story:
    """The least schedule, as far as leaving out one thing after another leads, that breaks the
    same invariant.
    """
    assert played.violation is not None
    count = len(played.arrived)
    padded = (*given[:count], *[Facts()] * max(0, count - len(given)))
    story = Story(tuple(padded), played.arrived, played.violation)
    memory = KnownTicks(machine)
    better: Story | None = story
    while better is not None:
        story = better
        tried = (_kept(memory, other, limits) for other in _smaller(story))
        better = next((s for s in tried if s is not None and s.size < story.size), None)
    return story


def _kept(memory: KnownTicks, story: Story, limits: Limits) -> Story | None:
    """The story as it goes, if it still breaks the invariant."""
    played = replay(memory, story.given, story.arrived, limits)
    found = played.violation
    if found is None or found.never != story.violation.never:
        return None
    count = len(played.arrived)
    return Story(story.given[:count], played.arrived, found)


def _smaller(story: Story) -> Iterator[Story]:
    """The story without a tick (its facts come with the next one or not at all), or a fact."""
    given, arrived = story.given, story.arrived
    for at in range(len(arrived)):
        rest = _without(given, at), _without(arrived, at)
        yield Story(*rest, story.violation)
        if at + 1 < len(arrived):
            later = _merged(given, at), _merged(arrived, at)
            yield Story(*later, story.violation)
    for at, facts in enumerate(arrived):
        for fact in sorted(facts, key=repr):
            yield Story(given, _replaced(arrived, at, facts - {fact}), story.violation)
    for at, facts in enumerate(given):
        for fact in sorted(facts, key=repr):
            yield Story(_replaced(given, at, facts - {fact}), arrived, story.violation)


def _without(ticks: tuple[Facts, ...], at: int) -> tuple[Facts, ...]:
    return (*ticks[:at], *ticks[at + 1 :])


def _merged(ticks: tuple[Facts, ...], at: int) -> tuple[Facts, ...]:
    return (*ticks[:at], ticks[at] | ticks[at + 1], *ticks[at + 2 :])


def _replaced(ticks: tuple[Facts, ...], at: int, facts: Facts) -> tuple[Facts, ...]:
    return (*ticks[:at], facts, *ticks[at + 1 :])
