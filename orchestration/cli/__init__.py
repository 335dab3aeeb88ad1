"""The commands about projects and flows, a module for each; `hydrotick.commands` names them."""
