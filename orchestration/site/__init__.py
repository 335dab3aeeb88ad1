"""`hydrotick docs`: what flows are, as a small site that needs no server and no network."""
