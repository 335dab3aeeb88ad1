"""The formats of deployments."""

from __future__ import annotations

FORMAT = 7
"""The format of what is written. 2: running results are operators. 4: types are text (DDL), and say
which columns are `not null`. 5: trees have one node for every operation. 6: and one
for tuples, rows, lists and sets. 7: and one for what has variables.
"""

READ = (3, 4, 5, 6, 7)
"""The formats that are read; any other is refused."""
