"""The chat channel of the paper as a flow: a tick an hour, with a day of sample messages."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from hydro_core import FlowAsset, Landing, Ticks

_SAMPLE = Path(__file__).with_name("sample") / "ticks.json"


def _land(landing: Path) -> None:
    """Lands the sample ticks, each row with the number of its tick."""
    import pyarrow as pa
    from deltalake import write_deltalake

    sample = json.loads(_SAMPLE.read_text(encoding="utf-8"))
    for name, columns in (("add_member", ["user"]), ("messages", ["user", "text"])):
        rows = [
            {"tick": t, **row}
            for t, batch in enumerate(sample["ticks"])
            for row in batch.get(name, [])
        ]
        schema = pa.schema([("tick", pa.int64()), *((column, pa.string()) for column in columns)])
        path = landing / "chat" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_deltalake(path, pa.Table.from_pylist(rows, schema=schema), mode="overwrite")


CHAT = FlowAsset(
    name="chat",
    program=Path(__file__).with_name("chat.hydro"),
    description="Everybody gets every message, also those from before they joined.",
    ticks=Ticks(
        start=datetime(2026, 1, 1, tzinfo=UTC), every="1h", end=datetime(2026, 1, 2, tzinfo=UTC)
    ),
    inputs={
        "add_member": Landing(path="chat/add_member", column="tick"),
        "messages": Landing(path="chat/messages", column="tick"),
    },
    schemas={"add_member": "user string", "messages": "user string, text string"},
    outputs={"notify": "Who is to be told now, and what: a pair of a member and a message."},
    land=_land,
)
