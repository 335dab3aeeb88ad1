"""Normal forms: trees that are equal only for functions that do the same, and their stored text."""
