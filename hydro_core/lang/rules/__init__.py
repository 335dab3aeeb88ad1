"""Rules over time (`*.dl`): a third way into the graph, beside text programs and Python."""
