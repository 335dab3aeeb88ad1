"""What the operations of a story do: to real flows, and to what these should be."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.operating.asked import Committed, Done, How, tick_of
from tests.operating.landing import Place
from tests.operating.model import Flow, Past, Served, UnclearError
from tests.operating.programs import NamedRows, named
from tests.operating.story import FEED, KEYS, MAIN, Op

if TYPE_CHECKING:
    from tests.operating.world import World


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


def _put_anew(place: Place, op: Op) -> None:
    if op.number < len(place.files) and op.number not in place.there:
        place.put_anew(op.number, op.rows)


def _exchange(place: Place, op: Op) -> None:
    if op.first in place.there and op.first != op.number:
        place.exchange(op.number, op.first)


LANDINGS: Mapping[str, Callable[[Place, Op], None]] = {
    "land": lambda place, op: place.land(op.rows),
    "remove": _only_there(_remove),
    "restore": _restore,
    "rewrite": _only_there(lambda place, op: place.rewrite(op.number, op.rows)),
    "put anew": _put_anew,
    "rename": _only_there(lambda place, op: place.rename(op.number)),
    "exchange": _only_there(_exchange),
    "touch": _only_there(lambda place, op: place.touch(op.number)),
}


def _tick(world: World, flow: Flow, op: Op) -> Iterator[str]:
    first, last = flow.done, min(flow.done + op.number, world.limit(flow)) - 1
    if last >= first:
        yield from _ticked(world, flow, op, (first, last))


def _again(world: World, flow: Flow, op: Op) -> Iterator[str]:
    """Asks for all committed ticks, too, and so many open ones: those are not computed again."""
    last = min(flow.done + op.number, world.limit(flow)) - 1
    if last >= flow.done:
        yield from _ticked(world, flow, op, (0, last))
    elif flow.done:
        before = world.hands.sequence(flow.name)
        yield from _is_code(world.hands.tick(flow.name, 0, flow.done - 1), 0)
        if world.hands.sequence(flow.name) != before:
            yield "committed ticks were made again"


def _ticked(world: World, flow: Flow, op: Op, asked: tuple[int, int]) -> Iterator[str]:
    first, last = asked
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


def _backfill(world: World, flow: Flow, op: Op) -> Iterator[str]:
    """From a committed tick to an open one, as one range: whatever programs these were made by."""
    if op.number >= flow.done:
        return
    begun, last = flow.done, min(flow.done + op.first, world.limit(flow)) - 1
    last = max(last, begun - 1)
    refuses = flow.refuses(op.number)
    before = world.hands.sequence(flow.name)
    done = world.hands.backfill(flow.name, op.number, last, op.kill)
    commits = world.hands.commits(flow.name, before)
    _noted(world, flow, done)
    again = [one for one in commits if one.first < begun]
    if len(again) > 1 or (refuses and commits):
        yield f"committed ticks are made again by one commit, if nobody has to decide: {commits}"
    yield from _followed(flow, again, may_correct=True)
    refuses = refuses or (last >= begun and (flow.refuses() or flow.is_held))
    yield from _is_code(done, 1 if refuses else 0)
    yield from _followed(flow, commits[len(again) :], may_correct=False)
    if done.code == 0 and (flow.done != last + 1 or not again or again[0].first > op.number):
        yield f"{flow.done} ticks are committed, {again} anew"


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
    versions = world.setting.versions_of(flow.name)
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
        began = flow.state.served[-1].is_unreported or (how.says == "now" and not flow.is_whole)
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


def _forget(world: World, flow: Flow, op: Op) -> Iterator[str]:
    """Forgets somebody, first in the flow that feeds, then in the one that reads it; where rows are
    gone already nobody can tell whose they were, and it is passed over.
    """
    flows = [world.flows[name] for name in (FEED, MAIN) if name in world.flows]
    value = KEYS[op.number]
    gone = any(world.flows[of].gone(name) for of, name in world.places)
    # Where nothing lies, nobody can tell whether a path is misspelled.
    if not gone and all(place.there for place in world.places.values()):
        for each in flows:
            yield from _forgotten(world, each, value, op.kill if each is flow else 0)


def _forgotten(world: World, flow: Flow, value: str, kill: int) -> Iterator[str]:
    places = [place for (of, _), place in world.places.items() if of == flow.name]
    if any(place.has(value) for place in places):
        before = world.hands.sequence(flow.name)
        yield from _is_code(world.hands.forget(flow.name, value), 1)
        if world.hands.sequence(flow.name) != before:
            yield "what was refused stands in the ledger"
    for place in places:
        place.forget(value)
    may_be_refused = flow.refuses()
    before = world.hands.sequence(flow.name)
    done = world.hands.forget(flow.name, value, kill)
    _noted(world, flow, done)
    yield from _is_code(done, 0, *((1,) if may_be_refused else ()))
    yield from _followed(flow, world.hands.commits(flow.name, before), may_correct=True)
    if done.code == 0:
        del flow.state.served[:-1]
        flow.state.cleared = 0
    elif done.is_killed:
        flow.state.cleared = len(flow.state.served) - 1
    elif flow.name == MAIN and FEED in world.flows:
        raise UnclearError("the history of what it has read is gone, so any tick may have changed")


def _copy(world: World, flow: Flow, op: Op) -> Iterator[str]:
    if flow.done:
        yield from _is_code(world.hands.copy(flow.name), 0)
        world.copies[flow.name] = flow.copied()


def _put_back(world: World, flow: Flow, op: Op) -> Iterator[str]:
    if flow.name == MAIN and flow.name in world.copies:
        yield from _is_code(world.hands.put_back(flow.name), 0)
        flow.state = world.copies.pop(flow.name)
        flow.withheld = {}
        world.behind.add(flow.name)


def _copy_all(world: World, flow: Flow, op: Op) -> Iterator[str]:
    """Copies the project, when every flow has begun."""
    if all(one.done for one in world.flows.values()):
        yield from _is_code(world.hands.copy_all(), 0)
        world.copied = {name: one.copied() for name, one in world.flows.items()}


def _put_back_all(world: World, flow: Flow, op: Op) -> Iterator[str]:
    """Puts that copy back; not what is read alone where somebody has read it."""
    if not world.copied:
        return
    if FEED in world.flows:
        yield from _is_code(world.hands.put_back_all(FEED), 1)
    yield from _is_code(world.hands.put_back_all(), 0)
    for name, one in world.flows.items():
        one.state = copy.deepcopy(world.copied[name])
        one.withheld = {}
        world.behind.add(name)


def _noted(world: World, flow: Flow, done: Done) -> None:
    """Keeps in mind whether Dagster has records of something that failed."""
    if done.is_killed:
        world.behind.add(flow.name)
    elif done.code == 0:
        world.behind.discard(flow.name)
    if world.hands.is_recorded:
        (world.troubled.discard if done.code == 0 else world.troubled.add)(flow.name)


def _is_code(done: Done, *codes: int) -> Iterator[str]:
    if not done.is_killed and done.code not in codes:
        yield f"it ends with {done.code}, and not with {codes}: {done.said}"


OPERATIONS: Mapping[str, Callable[[World, Flow, Op], Iterator[str]]] = {
    "tick": _tick,
    "again": _again,
    "backfill": _backfill,
    "correct": _correct,
    "accept": _accept,
    "edit": _edit,
    "deploy": _deploy,
    "rollback": _rollback,
    "compact": _compact,
    "forget": _forget,
    "copy": _copy,
    "put back": _put_back,
    "copy all": _copy_all,
    "put back all": _put_back_all,
}
_NO_SEAM = ("cannot keep a part of its past", "is stored as what each tick changes")
"""What is said where an output cannot be of two programs."""
THOROUGH = frozenset({"compact", "forget", "put back", "put back all", "rollback", "deploy"})
"""Operations after which all that is stored is looked through."""
