"""From relations to a relation: one function for each operator, by families."""
