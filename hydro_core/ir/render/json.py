"""The picture as JSON values: for programs that draw themselves."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hydro_core.ir.render.picture import Picture


def json(picture: Picture) -> dict[str, Any]:
    """An object with `name`, `boxes` and `arrows`, each with the fields of `Box` and `Arrow`."""
    return {
        "name": picture.name,
        "boxes": [{**asdict(box), "role": box.role.value} for box in picture.boxes],
        "arrows": [asdict(arrow) for arrow in picture.arrows],
    }
