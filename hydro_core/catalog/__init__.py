"""The operator catalogue: what every operator is, once."""
