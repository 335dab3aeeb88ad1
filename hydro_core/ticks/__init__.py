"""Ticks from files, and outputs to files: what `hydrotick run --input … --out …` does around a program."""
