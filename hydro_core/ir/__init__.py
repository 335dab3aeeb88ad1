"""The program as a graph: nodes, what they read, and ways to walk, check and draw it."""
