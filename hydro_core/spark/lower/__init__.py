"""Lowerings: one function for each operator, from relations to a relation.

Other folders use `registry` (`lower`, `Step`), `items` and `relations`, and `explained`, which
gives the runtime of a program's functions. The modules of operators are `linear`, `joins`, `keyed`,
`ordered`, `running`, `positional`, `over_time`; importing this package registers all of them.
"""

from hydro_core.spark.lower import joins as joins
from hydro_core.spark.lower import keyed as keyed
from hydro_core.spark.lower import linear as linear
from hydro_core.spark.lower import ordered as ordered
from hydro_core.spark.lower import over_time as over_time
from hydro_core.spark.lower import positional as positional
from hydro_core.spark.lower import running as running
