"""The order of a rule's atoms means nothing: what it costs is what the best order costs."""

from __future__ import annotations

from itertools import permutations

from hydro_core.compile import compile_graph
from hydro_core.lang.rules.translate import graph_of_rules, read_rules
from hydro_core.optimize.cost import Statistics
from hydro_core.optimize.optimizer import optimize

INPUTS = """
.input orders(o: long, c: long)
.input line(o: long, p: long)
.input part(p: long, kind: string)
.input customer(c: long, city: string)
.output out
"""
ATOMS = ("orders(o, c)", "line(o, p)", "part(p, kind)", 'customer(c, "Bern")')
STATISTICS = Statistics.of(
    {
        "inputs": {
            "line": {"rows": 100_000},
            "orders": {"rows": 30_000, "keys": 30_000},
            "part": {"rows": 20_000},
            "customer": {"rows": 2_000},
        }
    }
)
NEARLY = 1.05
"""A plan puts columns into their order, which another order of atoms may not need."""


def test_four_atoms_in_a_bad_order_cost_what_they_cost_in_a_good_one() -> None:
    found = []
    for atoms in list(permutations(ATOMS))[::4]:
        rules = f"{INPUTS}out(c, kind) :- {', '.join(atoms)}."
        plan = optimize(compile_graph(graph_of_rules(read_rules(rules))).typed, STATISTICS)
        found.append((plan.cost_before, plan.cost_after))
    written, planned = zip(*found, strict=True)
    assert max(written) > 2 * min(written)
    assert max(planned) <= NEARLY * min(planned)
    assert min(planned) <= min(written)
