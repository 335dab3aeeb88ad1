"""The operators as methods of a stream, family by family as in the catalogue."""
