"""The object stores that a project reads: credentials, rights, clocks."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from hydro_core.errors import HydroError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.storage.remote import Remote

from ..project.settings import ProjectSettings
from .finding import Finding, looked

_MOST_APART = 300
"""Seconds: a store refuses what is signed at a moment that is further away than fifteen minutes."""
_SECONDS = 5


def stores_of(flows: Sequence[FlowAsset], settings: ProjectSettings) -> Mapping[str, Remote]:
    """The places in stores that flows read, by the flow and the input."""
    found = {}
    for flow in flows:
        for name, landing in flow.landings.items():
            try:
                place = settings.landed(landing.path)
            except HydroError:
                # What is wrong with it is told with the flow.
                continue
            if isinstance(place, Remote):
                found[f"{flow.name}, input `{name}`"] = place
    return found


def of_landings(places: Mapping[str, Remote]) -> Iterator[Finding]:
    """Whether what has landed can be listed and read."""
    for name, place in places.items():
        yield from looked(name, lambda place=place: _read(place))  # type: ignore[misc]


def _read(place: Remote) -> str:
    first = next(place.files(), None)
    if first is None:
        there = place.is_file()
        return f"{place} is there" if there else f"{place} can be listed, and nothing has landed"
    first.store.read_range(first.key, 0, min(1, first.stat().st_size))
    return f"{place} can be listed and read"


def of_clocks(places: Mapping[str, Remote]) -> Iterator[Finding]:
    """Whether the clock here is that of the stores, as far as they tell."""
    for endpoint in sorted({_endpoint(p) for p in places.values() if p.kind == "s3"}):
        found = _difference(endpoint)
        if found is None:
            continue
        what, seconds = f"clock beside {endpoint}", abs(found)
        if seconds > _MOST_APART:
            cure = "let this machine's clock be set by the network (NTP)"
            yield Finding(what, "wrong", f"{seconds:.0f} s apart", cure)
        else:
            yield Finding(what, "ok", f"{seconds:.0f} s apart")


def _endpoint(place: Remote) -> str:
    region = place.settings.region or "us-east-1"
    return place.settings.endpoint or f"https://s3.{region}.amazonaws.com"


def _difference(endpoint: str) -> float | None:
    """The seconds by which the clock here is ahead; None: the server does not tell its own."""
    url = urlsplit(endpoint)
    kind = http.client.HTTPConnection if url.scheme == "http" else http.client.HTTPSConnection
    link = kind(url.netloc, timeout=_SECONDS)
    try:
        link.request("HEAD", "/")
        said = link.getresponse().getheader("Date")
        return time.time() - parsedate_to_datetime(said).timestamp() if said else None
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        link.close()
