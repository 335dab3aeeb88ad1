"""Lives through stories: does each operation to real flows, and says what is wrong afterwards."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.operating.hands import Committed, Declared, Done, Hands, How, tick_of
from tests.operating.landing import Place
from tests.operating.model import TICKS, Flow, Past, Rows, Served, State, UnclearError, of_values
from tests.operating.programs import FEEDS, NamedRows, Outputs, named, outputs_of
from tests.operating.story import FEED, MAIN, Op, Setting, Story, WrongError


class World:
    """The flows of a story: as they are, and as they should be."""

    def __init__(self, setting: Setting, home: Path, hands: type[Hands] = Hands) -> None:
        self.setting = setting
        self.troubled: set[str] = set()
        """The flows of which something failed or was killed last: their records may say so."""
        is_fed = "flow" in setting.kinds.values()
        declared = {
            MAIN: {
                name: Declared(late, FEED)
                if setting.kinds[name] == "flow"
                else Declared(
                    late,
                    holds=name in setting.holds,
                    waits=name in setting.waits,
                    column=setting.columns.get(name, "tick"),
                )
                for name, late in setting.late.items()
            }
        }
        declared |= {FEED: {"a": Declared(setting.feed_late)}} if is_fed else {}
        self.hands = hands(home, declared, setting.sample_keys)
        self.places = {
            (flow, name): Place(
                self.hands.landing(flow, name), name, self._kind(flow, name), of.column
            )
            for flow, inputs in declared.items()
            for name, of in inputs.items()
            if not of.fed_by
        }
        self.flows = {
            flow: Flow(
                flow,
                {name: of.late for name, of in inputs.items()},
                [name for name, of in inputs.items() if of.holds],
                self._landed(flow),
                setting.versions[0] if flow == MAIN else FEEDS[setting.feed],
            )
            for flow, inputs in declared.items()
        }
        self.copies: dict[str, State] = {}
        for flow in self.flows.values():
            self.write(flow)

    def write(self, flow: Flow) -> None:
        """The program of a flow lies there as it is written."""
        shards = self.setting.shards_of(flow.written) if flow.name == MAIN else 1
        self.hands.write(flow.name, flow.written, shards)

    def _kind(self, flow: str, name: str) -> str:
        return self.setting.kinds[name] if flow == MAIN else "parquet"

    def _landed(self, flow: str) -> Callable[[str], Rows]:
        def landed(name: str) -> Rows:
            place = self.places.get((flow, name))
            if place is not None:
                return place.rows()
            ticks = self.flows[FEED].outputs() if self.flows[FEED].done else []
            return Rows((tick, *row) for tick, found in enumerate(ticks) for row in found["o"])

        return landed

    def limit(self, flow: Flow) -> int:
        """How many ticks may run."""
        is_fed = flow.name == MAIN and FEED in self.flows
        waited = self.setting.waits if flow.name == MAIN else ()
        # Rows after the last tick, too: they are of a later one.
        there = [flow.landed(name, end=2 * TICKS) for name in waited]
        landed = [max((row[0] for row in rows), default=0) for rows in there]
        return min(self.flows[FEED].done if is_fed else TICKS, *landed, TICKS)

    def step(self, op: Op) -> Iterator[str]:
        """Does something, and gives what is wrong with what came of it."""
        flow = self.flows.get(op.flow)
        if flow is None:
            return
        place = self.places.get((op.flow, op.input))
        if op.what in _LANDINGS:
            if place is not None:
                _LANDINGS[op.what](place, op)
        else:
            found = list(_OPERATIONS[op.what](self, flow, op))
            yield from found
            if found:
                return
        for each in self.flows.values():
            yield from self.judged(each, thorough=bool(op.kill) or op.what in _THOROUGH)

    def judged(self, flow: Flow, *, thorough: bool = False) -> Iterator[str]:
        """What is wrong with a flow as it is now."""
        told = self.hands.status(flow.name)
        yield from self._status(flow, told.code, told.flow)
        if not flow.done:
            return
        for name in flow.late:
            yield from flow.told(name, told.late(name), told.changed(name))
            arrived = flow.state.arrived.get(name)
            if arrived is not None and told.arrived(name) != arrived:
                yield f"`{name}`: {told.arrived(name)} is told to have arrived late, not {arrived}"
        if not flow.state.served[-1].is_untold:
            yield from _differences(flow, self.hands.outputs(flow.name, flow.text))
        if thorough:
            yield from self.hands.problems(flow.name)

    def _status(self, flow: Flow, code: int, told: Mapping[str, object]) -> Iterator[str]:
        may_run = flow.done if flow.is_held else self.limit(flow)
        wanted = {"committed": flow.done, "open": max(0, may_run - flow.done)}
        if flow.done:
            wanted["deployment"] = flow.state.served[-1].number
        for what, value in wanted.items():
            if told[what] != value:
                yield f"`{flow.name}`: status says {what}={told[what]}, and it is {value}"
        if flow.name not in self.troubled and (code or told["stopped"]):
            yield f"`{flow.name}`: status ends with {code}: {told['next']}"
        if not flow.done:
            return
        is_told, same = bool(told["undeployed"]), flow.written == flow.text
        maybe_same = self.setting.is_maybe_same(flow.written, flow.text)
        if (same and is_told) or not (maybe_same or is_told):
            yield f"`{flow.name}`: status says of changes: {told['undeployed']!r}"


def _differences(flow: Flow, found: Mapping[str, Sequence[Sequence[object]]]) -> Iterator[str]:
    """Which outputs are not what the program gives."""
    wanted: Sequence[Outputs] = flow.outputs()
    if set(found) != outputs_of(flow.text):
        yield f"`{flow.name}` has the outputs {sorted(found)}"
        return
    for output, ticks in found.items():
        for tick, rows in enumerate(ticks):
            should, has = wanted[tick][output], of_values(rows)  # type: ignore[arg-type]
            if has != should:
                yield f"`{output}` of `{flow.name}` at tick {tick} is {has}, not {should}"
                return


def run(story: Story, home: Path, hands: type[Hands] = Hands) -> int:
    """Lives through a story, and gives how many of its operations could be judged.

    Raises:
        WrongError: something is not as it must be.
    """
    world = World(story.setting, home, hands)
    for number, op in enumerate(story.ops):
        try:
            problems = list(world.step(op))
        except UnclearError:
            return number
        except Exception as error:  # noqa: BLE001 - whatever a command ends with is told with the story
            problems = ["".join(traceback.format_exception(error))]
        if problems:
            raise WrongError(number, op, problems)
    return len(story.ops)


def _only_there(act: Callable[[Place, Op], None]) -> Callable[[Place, Op], None]:
    def on_files_that_are_there(place: Place, op: Op) -> None:
        if op.number in place.there:
            act(place, op)

    return on_files_that_are_there


def _remove(place: Place, op: Op) -> None:
    if len(place.there) > 1:
        place.remove(op.number)


def _restore(place: Place, op: Op) -> None:
    if op.number < len(place.files) and op.number not in place.there:
        place.restore(op.number)


_LANDINGS: Mapping[str, Callable[[Place, Op], None]] = {
    "land": lambda place, op: place.land(op.rows),
    "remove": _only_there(_remove),
    "restore": _restore,
    "rewrite": _only_there(lambda place, op: place.rewrite(op.number, op.rows)),
    "touch": _only_there(lambda place, op: place.touch(op.number)),
}


def _tick(world: World, flow: Flow, op: Op) -> Iterator[str]:
    first, last = flow.done, min(flow.done + op.number, world.limit(flow)) - 1
    if last < first:
        return
    refuses, corrects = flow.refuses() or flow.is_held, flow.to_correct()
    before = world.hands.sequence(flow.name)
    done = world.hands.tick(flow.name, first, last, op.kill)
    commits = world.hands.commits(flow.name, before)
    _noted(world, flow, done)
    yield from _is_code(done, 1 if refuses else 0)
    if refuses and commits:
        yield "ticks ran, and somebody has to decide first"
    if corrects is not None and commits and commits[0].first > corrects:
        yield f"tick {corrects} is to be corrected first: {commits}"
    if not flow.state.served and commits:
        flow.state.served.append(Served(world.hands.number(flow.name) or 0, flow.written))
    yield from _followed(flow, commits, may_correct=corrects is not None)
    if done.code == 0 and flow.done != last + 1:
        yield f"{flow.done} ticks are committed"


def _followed(flow: Flow, commits: Sequence[Committed], *, may_correct: bool) -> Iterator[str]:
    """Does what the ledger says was done."""
    for commit in commits:
        if commit.first < flow.done:
            if not may_correct:
                yield f"committed ticks were made again: {commit}"
            yield from flow.correct(commit.first, commit.late)
        else:
            flow.tick(commit.last)
            for name, late in flow.state.arrived.items():
                if late != commit.late.get(name, {}):
                    yield f"`{name}`: {commit.late.get(name)} arrived late, and not {late}"
            flow.withheld |= {name: flow.surplus(name) for name in flow.late}


def _correct(world: World, flow: Flow, op: Op) -> Iterator[str]:
    if op.number >= flow.done:
        return
    corrects = flow.to_correct()
    first = op.number if corrects is None else min(op.number, corrects)
    refuses = flow.refuses(op.number)
    before = world.hands.sequence(flow.name)
    done = world.hands.correct(flow.name, op.number, op.kill)
    commits = world.hands.commits(flow.name, before)
    _noted(world, flow, done)
    yield from _is_code(done, 1 if refuses else 0)
    if done.code == 0 and (len(commits) != 1 or commits[0].first > first):
        yield f"ticks from {first} on are to be computed again by one commit: {commits}"
    yield from _followed(flow, commits, may_correct=True)


def _accept(world: World, flow: Flow, op: Op) -> Iterator[str]:
    if not flow.done:
        return
    yield from _is_code(world.hands.command("accept", flow.name, "--yes"), 0)
    flow.accept()


def _edit(world: World, flow: Flow, op: Op) -> Iterator[str]:
    versions = world.setting.versions
    if flow.name == MAIN:
        flow.written = versions[op.number % len(versions)]
        world.write(flow)
    yield from ()


def _deploy(world: World, flow: Flow, op: Op) -> Iterator[str]:
    yield from _edit(world, flow, op)
    if not flow.done:
        return
    maybe_same = world.setting.is_maybe_same(flow.written, flow.text)
    wanted = [0] if flow.written == flow.text else [3, *([0] if maybe_same else [])]
    how = How(op.how, min(op.first, flow.done - 1))
    or_refused = [] if flow.is_whole and not how.says else [1]
    keeps = bool(how.says or flow.state.served[-1].kept)
    plan = world.hands.plan(flow.name, how, as_text=op.number % 2 == 0 and not keeps)
    yield from _is_code(plan, *wanted, *or_refused)
    past = _past(flow, plan) if keeps and plan.code in (0, 3) else {}
    before = world.hands.sequence(flow.name)
    done = world.hands.deploy(flow.name, how, op.kill)
    _noted(world, flow, done)
    yield from _is_code(done, 0, *or_refused)
    if done.code == 1 and flow.is_whole and not any(why in done.said for why in _NO_SEAM):
        yield f"it is refused, and nothing speaks against it: {done.said}"
    if world.hands.sequence(flow.name) > before:
        number = world.hands.number(flow.name) or 0
        began = flow.state.served[-1].is_untold or (how.says == "now" and not flow.is_whole)
        # One that is deployed again goes by its last number, wherever it served before.
        known = [
            replace(one, number=number) if one.text == flow.written else one
            for one in flow.state.served
        ]
        flow.state.served[:] = [*known, Served(number, flow.written, past, began)]
        flow.state.arrived = {}
    elif done.code == 0 and not maybe_same:
        yield "nothing was deployed"


def _past(flow: Flow, plan: Done) -> Past:
    """Of each output what it keeps of its past, as `plan` has it."""
    serving, ticks = flow.state.served[-1], [named(flow.text, tick) for tick in flow.outputs()]
    found: dict[str, Sequence[NamedRows]] = {}
    for name, of in json.loads(plan.said)["outputs"].items():
        if of["change"] == "same":
            found[name] = serving.kept.get(name, ())
        elif of["change"] in ("changed", "columns"):
            first = tick_of(of["restated"][0]) if of["restated"] else flow.done
            found[name] = [tick[name] for tick in ticks[:first]]
    return {name: past for name, past in found.items() if past}


def _rollback(world: World, flow: Flow, op: Op) -> Iterator[str]:
    if not flow.done:
        return
    before = world.hands.sequence(flow.name)
    done = world.hands.rollback(flow.name, op.kill)
    _noted(world, flow, done)
    if len(flow.state.served) < 2:
        yield from _is_code(done, 1)
        return
    may_be_refused = not flow.is_whole or len(flow.state.served) - 2 < flow.state.cleared
    yield from _is_code(done, 0, *((1,) if may_be_refused else ()))
    if world.hands.sequence(flow.name) > before:
        flow.state.served.pop()
        flow.state.arrived = {}


def _compact(world: World, flow: Flow, op: Op) -> Iterator[str]:
    if not flow.done:
        return
    yield from _is_code(world.hands.compact(flow.name, op.number, op.kill), 0)
    if not op.number and not op.kill:
        del flow.state.served[:-1]
        flow.state.cleared = 0
    elif not op.number:
        flow.state.cleared = len(flow.state.served) - 1


def _copy(world: World, flow: Flow, op: Op) -> Iterator[str]:
    if flow.done:
        yield from _is_code(world.hands.copy(flow.name), 0)
        world.copies[flow.name] = flow.copied()


def _put_back(world: World, flow: Flow, op: Op) -> Iterator[str]:
    if flow.name == MAIN and flow.name in world.copies:
        world.hands.put_back(flow.name)
        flow.state = world.copies.pop(flow.name)
        flow.withheld = {}
    yield from ()


def _noted(world: World, flow: Flow, done: Done) -> None:
    """Keeps in mind whether Dagster has records of something that failed."""
    if world.hands.is_recorded:
        (world.troubled.discard if done.code == 0 else world.troubled.add)(flow.name)


def _is_code(done: Done, *codes: int) -> Iterator[str]:
    if not done.is_killed and done.code not in codes:
        yield f"it ends with {done.code}, and not with {codes}: {done.said}"


_OPERATIONS: Mapping[str, Callable[[World, Flow, Op], Iterator[str]]] = {
    "tick": _tick,
    "correct": _correct,
    "accept": _accept,
    "edit": _edit,
    "deploy": _deploy,
    "rollback": _rollback,
    "compact": _compact,
    "copy": _copy,
    "put back": _put_back,
}
_NO_SEAM = ("cannot keep a part of its past", "is stored as what each tick changes")
"""What is said where an output cannot be of two programs."""
_THOROUGH = frozenset({"compact", "put back", "rollback", "deploy"})
