"""A changed program takes over: what it would change, what it may keep, the switch, and back."""
