"""A pipeline: a program over its stored past, the next ticks, and all that is done to them."""
