"""Ticks from files, and outputs to files: `hydrotick run --input … --out …`."""
