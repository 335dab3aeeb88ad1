"""Syntax becomes trees: what may be written, what names mean, and expressions and statements."""
