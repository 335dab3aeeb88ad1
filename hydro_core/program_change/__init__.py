"""A changed program beside the one that is deployed: what they share of outputs and of state."""
