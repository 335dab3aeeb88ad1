"""Drawings of a program: text, mermaid, dot, JSON, and SVG that needs neither a browser nor a
server.
"""

from __future__ import annotations

from hydro_core.ir.render.dot import dot
from hydro_core.ir.render.json import json
from hydro_core.ir.render.mermaid import mermaid
from hydro_core.ir.render.picture import Picture, picture_of
from hydro_core.ir.render.svg import svg
from hydro_core.ir.render.text import text

__all__ = ["Picture", "dot", "json", "mermaid", "picture_of", "svg", "text"]
