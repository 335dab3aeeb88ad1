"""Schedules: which of the messages under way arrive in a tick, and which wait.

A fact that is sent in one tick after another is one message. A schedule is made from its seed:
a manner of delivering, and what chance decides within it. A tick is a function of what holds and of
what comes in, so one that was computed is not computed again; and where a schedule comes to what an
earlier one has seen, it tries to go on in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from hydro_core.validation.simulation.schedules.machine import (
    GroundFact,
    HeldFacts,
    RuleMachine,
    Stepped,
    Violation,
)

ComingIn = Sequence[frozenset[GroundFact]]
"""What comes from outside, tick by tick."""
ChooseArriving = Callable[[int, Sequence[GroundFact]], list[GroundFact]]
"""Of the messages under way in a tick, in the order of their sending, those that arrive."""

MOST_KNOWN = 50_000
"""So many ticks are kept, lest a long search fills the memory."""
TRIES = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """How far schedules go."""

    ticks: int = 60
    duplicates: bool = False
    """Whether what has arrived may arrive again."""


@dataclass(frozen=True, slots=True)
class Played:
    """A schedule: what arrived in each tick, and what it led to."""

    arrived: tuple[frozenset[GroundFact], ...]
    violation: Violation | None


@dataclass(slots=True)
class KnownTicks:
    """The ticks that were computed, and the ways that were tried."""

    machine: RuleMachine
    ticks: dict[object, tuple[Stepped, tuple[GroundFact, ...]]] = field(default_factory=dict)
    tried: set[int] = field(default_factory=set)
    computed: int = 0

    def step(
        self,
        state: HeldFacts,
        arrived: frozenset[GroundFact],
        tick: int,
        given: frozenset[GroundFact],
    ) -> tuple[Stepped, tuple[GroundFact, ...]]:
        """The tick, and what it sends in an order that does not depend on the run."""
        machine = self.machine
        clock = tick if machine.reads_clock or tick <= machine.last_special_tick else -1
        key = (state, arrived, given, clock)
        found = self.ticks.get(key)
        if found is None:
            if len(self.ticks) >= MOST_KNOWN:
                self.ticks.clear()
            stepped = machine.step(state, arrived, tick, given)
            found = (stepped, tuple(sorted(stepped.sent, key=repr)))
            self.ticks[key] = found
            self.computed += 1
        return found


def play(memory: KnownTicks, given: ComingIn, choose: ChooseArriving, limits: Limits) -> Played:
    """Runs one schedule until what must not hold does, until nothing moves, or to its limit."""
    machine = memory.machine
    state, under_way = machine.start, dict[GroundFact, None]()
    last_sent: frozenset[GroundFact] = frozenset()
    arrived: list[frozenset[GroundFact]] = []
    busy_until = max(len(given), machine.last_special_tick + 1)
    for tick in range(max(limits.ticks, busy_until)):
        chosen = frozenset(choose(tick, tuple(under_way))) if under_way else frozenset[GroundFact]()
        if not limits.duplicates:
            for fact in chosen:
                del under_way[fact]
        now = given[tick] if tick < len(given) else frozenset[GroundFact]()
        stepped, sent = memory.step(state, chosen, tick, now)
        arrived.append(chosen)
        if stepped.violation is not None:
            return Played(tuple(arrived), stepped.violation)
        under_way.update((fact, None) for fact in sent if fact not in last_sent)
        last_sent = stepped.sent
        is_still = stepped.state == state and not machine.reads_clock
        if is_still and tick >= busy_until and not under_way:
            break
        state = stepped.state
    return Played(tuple(arrived), None)


# Manners of delivering


def manner(random: Random) -> ChooseArriving:
    """A way to choose what arrives."""
    make = random.choice((_each, _one_by_one, _by_priority, _lagging, _last_first))
    return make(random)


def _each(random: Random) -> ChooseArriving:
    """Each message arrives by chance."""
    chance = random.choice((0.1, 0.3, 0.5, 0.8, 1.0))
    return lambda _, under_way: [fact for fact in under_way if random.random() < chance]


def _one_by_one(random: Random) -> ChooseArriving:
    return lambda _, under_way: [random.choice(under_way)]


def _by_priority(random: Random) -> ChooseArriving:
    """Every message has a priority by chance: some wait for all others."""
    priorities: dict[GroundFact, float] = {}

    def choose(_: int, under_way: Sequence[GroundFact]) -> list[GroundFact]:
        for fact in under_way:
            if fact not in priorities:
                priorities[fact] = random.random()
        count = random.choice((1, 1, 2, 3))
        return sorted(under_way, key=priorities.__getitem__)[:count]

    return choose


def _lagging(random: Random) -> ChooseArriving:
    """Messages that have some value (a node's name, say) are late; now and then it is another."""
    slow: list[object] = []

    def choose(_: int, under_way: Sequence[GroundFact]) -> list[GroundFact]:
        if not slow or random.random() < 0.1:
            number, row = random.choice(under_way)
            slow[:] = [random.choice(row) if row else number]
        late = {fact for fact in under_way if slow[0] in fact[1]}
        fast = [f for f in under_way if f not in late and random.random() < 0.7]
        return fast + [f for f in under_way if f in late and random.random() < 0.05]

    return choose


def _last_first(random: Random) -> ChooseArriving:
    """The latest message comes first, mostly."""
    return lambda _, under_way: [
        under_way[-1] if random.random() < 0.7 else random.choice(under_way)
    ]


# The search


@dataclass(frozen=True, slots=True)
class Explored:
    """How far a search is: schedules, the ticks in them, and what was found."""

    schedules: int
    ticks: int
    computed: int
    found: Played | None = None
    number: int = 0
    """Which schedule has found it."""


@dataclass(frozen=True, slots=True)
class ScheduleSearch:
    machine: RuleMachine
    given: ComingIn
    limits: Limits
    progress: Callable[[Explored], None] = lambda _: None

    def run(self, schedules: int, seed: int) -> Explored:
        """Runs schedules until one leads to what must not hold."""
        memory, ticks = KnownTicks(self.machine), 0
        for number in range(schedules):
            random = Random(f"{seed}/{number}")  # noqa: S311 - schedules, no secrets
            choose = _fresh(manner(random), memory.tried)
            played = play(memory, self.given, choose, self.limits)
            ticks += len(played.arrived)
            if played.violation is not None:
                return Explored(number + 1, ticks, memory.computed, played, number)
            if number % 100 == 99:
                self.progress(Explored(number + 1, ticks, memory.computed))
        return Explored(schedules, ticks, memory.computed)


def _fresh(choose: ChooseArriving, tried: set[int]) -> ChooseArriving:
    """Chooses again where the same messages were under way, and the same ones arrived."""

    def again(tick: int, under_way: Sequence[GroundFact]) -> list[GroundFact]:
        chosen = choose(tick, under_way)
        for _ in range(TRIES):
            way = hash((frozenset(under_way), frozenset(chosen)))
            if way not in tried:
                tried.add(way)
                break
            chosen = choose(tick, under_way)
        return chosen

    return again


def replay(
    memory: KnownTicks, given: ComingIn, arriving: Sequence[frozenset[GroundFact]], limits: Limits
) -> Played:
    """A schedule that is given; what is not under way when it should arrive does not arrive."""

    def choose(tick: int, under_way: Sequence[GroundFact]) -> list[GroundFact]:
        now = arriving[tick] if tick < len(arriving) else frozenset[GroundFact]()
        return [fact for fact in under_way if fact in now]

    exact = replace(limits, ticks=max(len(arriving), len(given)))
    return play(memory, given, choose, exact)
