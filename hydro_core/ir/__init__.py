"""The program as a graph: nodes, their inputs, and ways to walk, check and draw it."""
