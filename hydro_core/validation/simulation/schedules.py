"""Rules under schedules: when what is asynchronous arrives, and what must never hold.

A schedule says which of the messages under way arrive in a tick, and which wait. The reference
interpreter runs it: what arrives is a row of an input, what is sent a row of an output. A fact that
is sent in one tick after another is one message. A schedule is made from its seed: a manner of
delivering, and what chance decides within it. One that ends where it must not is made smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hydro_core.compile import CompiledProgram, compile_graph
from hydro_core.delivery import open_graph
from hydro_core.lang.rules.predicates import Predicate
from hydro_core.lang.rules.syntax import RuleProgram
from hydro_core.lang.rules.translate import ASYNC, Rules, with_invariants
from hydro_core.reference.interpreter import ReferenceRun, reference_program
from hydro_core.ticks.tick import TickInput
from hydro_core.types.item import ItemType, Row, Tuple
from hydro_core.types.json import json_text, to_json
from hydro_core.types.values import RowItem, Struct

GroundFact = tuple[int, tuple[Any, ...]]
"""The number of a predicate, and a row of it."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Violated invariant: its number and its variables."""

    never: int
    values: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class TickOutcome:
    """Facts that hold in a tick, messages that it sends, and violations."""

    holds: frozenset[GroundFact]
    """Facts of the predicates that are shown."""
    sent: frozenset[GroundFact]
    violation: Violation | None


class ScheduledRules:
    """Rules as a program whose asynchronous predicates are inputs, with an output per invariant."""

    def __init__(
        self,
        rules: Rules,
        schemas: Mapping[str, ItemType] | None = None,
        name: str = "flow",
        *,
        shown: bool = False,
    ) -> None:
        """`shown`: whether a tick tells all that holds in it, not only what is sent."""
        self.rules = rules
        self.predicates: tuple[Predicate, ...] = tuple(rules.predicates.values())
        self.numbers = {p.name: i for i, p in enumerate(self.predicates)}
        observed, self._never = with_invariants(rules, shown=shown)
        graph = open_graph(observed, schemas, name)
        self.program: CompiledProgram = compile_graph(graph, schemas or {})
        self.reference = reference_program(self.program.typed, self.program.strata)
        self.reads_clock = any(p.form == "clock" for p in self.predicates)
        self.last_special_tick = max(
            (r.at or 0 for r in rules.program.rules if r.at is not None), default=-1
        )

    def run(self) -> RulesRun:
        return RulesRun(self)

    def batches(self, facts: Iterable[GroundFact]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for number, row in facts:
            predicate = self.predicates[number]
            item = self.program.typed.inputs[predicate.name].item
            found.setdefault(predicate.name, []).append(_item(predicate, row, item))
        return found

    def outcome(self, outputs: Mapping[str, Sequence[Any]]) -> TickOutcome:
        holds, sent = set[GroundFact](), set[GroundFact]()
        for name, items in outputs.items():
            if name in self.numbers:
                holds.update(self._facts(name, items))
            elif name.endswith(ASYNC):
                sent.update(self._facts(name.removesuffix(ASYNC), items))
        violation = None
        for number, (name, variables) in enumerate(self._never):
            rows = [tuple(item[v] for v in variables) for item in outputs[name]]
            if rows and violation is None:
                row = min(rows, key=repr)
                violation = Violation(number, tuple(zip(variables, row, strict=True)))
        return TickOutcome(frozenset(holds), frozenset(sent), violation)

    def _facts(self, name: str, items: Sequence[Any]) -> Iterator[GroundFact]:
        number, predicate = self.numbers[name], self.rules.predicates[name]
        return ((number, _row(predicate, item)) for item in items)


def _item(predicate: Predicate, row: tuple[Any, ...], item: ItemType) -> Any:
    match item:
        case Tuple():
            return Struct(row)
        case Row():
            values = dict(zip(predicate.columns, row, strict=True))
            return RowItem({name: values.get(name) for name in item.names})
        case _:
            return row[0]


class RulesRun:
    """One run of the rules on the reference interpreter."""

    def __init__(self, rules: ScheduledRules) -> None:
        self._rules = rules
        self._run = ReferenceRun(rules.reference)

    def tick(self, facts: Iterable[GroundFact]) -> TickOutcome:
        """The next tick, in which these facts arrive or come in.

        Raises:
            DataError: an expression fails (code `runtime`).
        """
        batches = self._rules.batches(facts)
        return self._rules.outcome(self._run.tick(TickInput(batches)))

    def state(self) -> object:
        """State that a tick leaves for later ones."""
        past = self._run.past()
        return {name: [frozenset(bag.counts()) for bag in bags] for name, bags in past.items()}


ComingIn = Sequence[frozenset[GroundFact]]
"""Facts from outside, tick by tick."""
ChooseArriving = Callable[[int, Sequence[GroundFact]], list[GroundFact]]
"""Chooses the messages that arrive in a tick among those under way, in the order of sending."""

TRIES = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """How far schedules go."""

    ticks: int = 60
    duplicates: bool = False
    """Messages may arrive more than once."""


@dataclass(frozen=True, slots=True)
class PlayedSchedule:
    """A schedule: what arrived in each tick, and what it led to."""

    arrived: tuple[frozenset[GroundFact], ...]
    violation: Violation | None


def play(
    rules: ScheduledRules, given: ComingIn, choose: ChooseArriving, limits: Limits
) -> PlayedSchedule:
    """Runs one schedule until what must not hold does, until nothing moves, or to its limit."""
    run, under_way = rules.run(), dict[GroundFact, None]()
    last_sent: frozenset[GroundFact] = frozenset()
    arrived: list[frozenset[GroundFact]] = []
    busy_until = max(len(given), rules.last_special_tick + 1)
    for tick in range(max(limits.ticks, busy_until)):
        chosen = frozenset(choose(tick, tuple(under_way))) if under_way else frozenset[GroundFact]()
        if not limits.duplicates:
            for fact in chosen:
                del under_way[fact]
        now = given[tick] if tick < len(given) else frozenset[GroundFact]()
        is_quiet = tick >= busy_until and not rules.reads_clock
        before = run.state() if is_quiet else None
        outcome = run.tick(chosen | now)
        arrived.append(chosen)
        if outcome.violation is not None:
            return PlayedSchedule(tuple(arrived), outcome.violation)
        # In the same order in every process: a set's own order differs.
        sent = sorted(outcome.sent, key=repr)
        under_way.update((fact, None) for fact in sent if fact not in last_sent)
        last_sent = outcome.sent
        if is_quiet and not under_way and run.state() == before:
            break
    return PlayedSchedule(tuple(arrived), None)


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
class SearchProgress:
    schedules: int
    ticks: int
    found: PlayedSchedule | None = None
    number: int = 0
    """Number of the schedule that violates an invariant."""


@dataclass(frozen=True, slots=True)
class ScheduleSearch:
    """Runs schedules of a program until one breaks an invariant."""

    rules: ScheduledRules
    given: ComingIn
    limits: Limits
    progress: Callable[[SearchProgress], None] = lambda _: None

    def run(self, schedules: int, seed: int) -> SearchProgress:
        tried, ticks = set[int](), 0
        for number in range(schedules):
            random = Random(f"{seed}/{number}")  # noqa: S311 - schedules, no secrets
            choose = _fresh(manner(random), tried)
            played = play(self.rules, self.given, choose, self.limits)
            ticks += len(played.arrived)
            if played.violation is not None:
                return SearchProgress(number + 1, ticks, played, number)
            if number % 100 == 99:
                self.progress(SearchProgress(number + 1, ticks))
        return SearchProgress(schedules, ticks)


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
    rules: ScheduledRules,
    given: ComingIn,
    arriving: Sequence[frozenset[GroundFact]],
    limits: Limits,
) -> PlayedSchedule:
    """A schedule that is given; what is not under way when it should arrive does not arrive."""

    def choose(tick: int, under_way: Sequence[GroundFact]) -> list[GroundFact]:
        now = arriving[tick] if tick < len(arriving) else frozenset[GroundFact]()
        return [fact for fact in under_way if fact in now]

    exact = replace(limits, ticks=max(len(arriving), len(given)))
    return play(rules, given, choose, exact)


# A smaller schedule

Facts = frozenset[GroundFact]


@dataclass(frozen=True, slots=True)
class Story:
    """Facts from outside and messages, tick by tick, and the violation that they lead to."""

    given: tuple[Facts, ...]
    arrived: tuple[Facts, ...]
    violation: Violation

    @property
    def size(self) -> tuple[int, int]:
        """How many facts come in or arrive, and in how many ticks."""
        facts = sum(map(len, self.given)) + sum(map(len, self.arrived))
        return facts, len(self.arrived)


def smallest(
    rules: ScheduledRules, given: ComingIn, played: PlayedSchedule, limits: Limits
) -> Story:
    """The least schedule, as far as leaving out one thing after another leads, that breaks the
    same invariant.
    """
    assert played.violation is not None
    count = len(played.arrived)
    padded = (*given[:count], *[Facts()] * max(0, count - len(given)))
    story = Story(tuple(padded), played.arrived, played.violation)
    better: Story | None = story
    while better is not None:
        story = better
        tried = (_kept(rules, other, limits) for other in _smaller(story))
        better = next((s for s in tried if s is not None and s.size < story.size), None)
    return story


def _kept(rules: ScheduledRules, story: Story, limits: Limits) -> Story | None:
    """The story as it goes, if it still breaks the invariant."""
    played = replay(rules, story.given, story.arrived, limits)
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


# Facts and JSON


def facts_of(rules: ScheduledRules, tick: TickInput) -> frozenset[GroundFact]:
    return frozenset(
        (rules.numbers[name], _row(rules.rules.predicates[name], item))
        for name, batch in tick.batches.items()
        for item in batch
    )


def _row(predicate: Predicate, item: Any) -> tuple[Any, ...]:
    if isinstance(item, Mapping):
        return tuple(item[column] for column in predicate.columns)
    return tuple(item) if isinstance(item, tuple) else (item,)


def shown(rules: ScheduledRules, facts: Iterable[GroundFact]) -> str:
    """Facts as the program would write them, in an order that does not depend on the run."""
    return ", ".join(sorted(_shown(rules, fact) for fact in facts))


def _shown(rules: ScheduledRules, fact: GroundFact) -> str:
    number, row = fact
    predicate = rules.predicates[number]
    values = "" if predicate.columns == ("holds",) else ", ".join(map(value_text, row))
    return f"{predicate.name}({values})"


def value_text(value: Any) -> str:
    return json_text(to_json(value))


def as_ticks(
    rules: ScheduledRules, ticks: Sequence[Iterable[GroundFact]]
) -> list[dict[str, list[Any]]]:
    """Facts that come in, tick by tick, as `hydrotick run --deliver given` takes them."""
    types = rules.program.typed.inputs
    return [
        {
            name: [to_json(item, types[name].item) for item in batch]
            for name, batch in rules.batches(sorted(facts, key=repr)).items()
        }
        for facts in ticks
    ]


def invariant_text(program: RuleProgram, number: int) -> str:
    _, span = program.never[number]
    start = program.source.offset(span.line, span.column)
    end = program.source.offset(span.end_line, span.end_column)
    return " ".join(program.source.text[start:end].split()).removesuffix(".")
