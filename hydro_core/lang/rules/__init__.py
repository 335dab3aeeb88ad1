"""Rules over time (`*.dl`): a third front end, next to text programs and Python."""
