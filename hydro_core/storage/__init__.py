"""Where data lies that is no directory of this machine: object stores, by URLs."""
