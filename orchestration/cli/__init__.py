"""The commands about projects and flows, a module for each; `pyproject.toml` names them."""
