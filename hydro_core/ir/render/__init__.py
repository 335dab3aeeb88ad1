"""Drawings of a program: text, mermaid, dot, JSON, and SVG that needs neither a browser nor a
server.
"""

from __future__ import annotations

from hydro_core.ir.render.formats import dot, json, mermaid, svg, text
from hydro_core.ir.render.layout import Picture, picture_of

__all__ = ["Picture", "dot", "json", "mermaid", "picture_of", "svg", "text"]
