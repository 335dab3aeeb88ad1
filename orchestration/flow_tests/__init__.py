"""`hydrotick test`: a flow's tests, ticks in and outputs out, written beside it in YAML."""
