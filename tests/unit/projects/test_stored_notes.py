"""What a deployment stores of places is about the project, and not about the machine."""

from __future__ import annotations

import shutil
from pathlib import Path

from hydrotick.cli.init import put_project
from hydrotick.deploy.deployments import deployment_for
from hydrotick.project.project import project_at

PROGRAM = """
payments = source("user string, amount long")
paid = payments -> persist()
spare = paid -> filter(lambda r: r.amount > 1)
paid -> aggregate(by="user", total=median("amount")) -> totals
"""


def test_places_in_notes_are_those_of_the_project(tmp_path: Path) -> None:
    found = []
    for number in range(2):
        root = tmp_path / f"at{number}" / "shop"
        put_project(root, "totals")
        (root / "assets" / "totals" / "totals.hydro").write_text(PROGRAM)
        (flow,) = project_at(root).flows
        found.append(deployment_for(flow).notes)
        shutil.rmtree(root)
    assert any("assets/totals/totals.hydro:" in note for note in found[0]), found[0]
    assert str(tmp_path) not in "\n".join(found[0])
    assert found[0] == found[1]
