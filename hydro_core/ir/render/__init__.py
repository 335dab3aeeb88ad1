"""Drawings of a program: text, mermaid, dot, JSON, and SVG that needs neither a browser nor a
server.
"""

from __future__ import annotations

from hydro_core.ir.render.formats import dot, json, mermaid, text
from hydro_core.ir.render.picture import Picture, picture_of
from hydro_core.ir.render.svg import svg

__all__ = ["Picture", "dot", "json", "mermaid", "picture_of", "svg", "text"]
