"""The operator catalogue: one entry for each operator."""
