"""From a typed program to a plan for a range of ticks, independent of the engine that runs it."""
