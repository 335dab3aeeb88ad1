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
        rest = [(*s[:at], *s[at + 1 :]) for s in (given, arrived)]
        yield Story(rest[0], rest[1], story.violation)
        if at + 1 < len(arrived):
            rest = [(*s[:at], s[at] | s[at + 1], *s[at + 2 :]) for s in (given, arrived)]
            yield Story(rest[0], rest[1], story.violation)
    for fewer in _one_less(arrived):
        yield Story(given, fewer, story.violation)
    for fewer in _one_less(given):
        yield Story(fewer, arrived, story.violation)


def _one_less(ticks: tuple[Facts, ...]) -> Iterator[tuple[Facts, ...]]:
    for at, facts in enumerate(ticks):
        for fact in sorted(facts, key=repr):
            yield (*ticks[:at], facts - {fact}, *ticks[at + 1 :])
